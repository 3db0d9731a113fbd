"""The GPUs that an nvprof database describes. Its ids are CUDA ordinals: no trap here."""

from __future__ import annotations

import uuid
from typing import Any

from kernelscope import schema
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.convert import integers
from kernelscope.parsers.cupti_names import DEVICE_COLUMNS
from kernelscope.parsers.nvprof_database import Database
from kernelscope.trace import Table, missing_value

_UUID_BYTES = 16


def devices_table(database: Database) -> Table:
    """Return the `devices` table; clocks come in kHz and bandwidths in kB/s, as CUPTI has them."""
    read = database.read(names.DEVICE, ("id", "name", "isCudaVisible", *DEVICE_COLUMNS.values()))
    plain = {name: _plain(integers(raw)) for name, raw in read.columns.items()}
    if "id" not in plain:
        return Table.empty(schema.DEVICES)
    uuids = _uuids(database, read.rows)
    rows = [
        _row(database, {name: values[i] for name, values in plain.items()}, uuids[i])
        for i in range(read.rows)
    ]
    rows.sort(key=lambda row: (row["device_id"] is None, row["device_id"] or 0))
    return Table.of_records(schema.DEVICES, rows)


def _plain(values: Any) -> list[int | None]:
    missing = missing_value(values.dtype)
    return [None if value == missing else value for value in values.tolist()]


def _row(database: Database, read: dict[str, int | None], uuid_: str | None) -> dict[str, Any]:
    """Return one device; a 0 in what describes it means *not known*."""
    row: dict[str, Any] = {}
    for ours, theirs in DEVICE_COLUMNS.items():
        value = read.get(theirs)
        known = value is not None and (value > 0 or ours == "compute_minor")
        row[ours] = value * (1000 if ours in names.THOUSANDS else 1) if known and value else None
        if ours == "compute_minor" and known:
            row[ours] = value
    visible = read.get("isCudaVisible") != 0
    return row | {
        "device_id": read["id"] if visible else None,
        "name": database.strings.get(read.get("name") or 0),
        "uuid": uuid_,
        "identifies": visible and uuid_ is not None,
    }


def _uuids(database: Database, rows: int) -> list[str | None]:
    blobs = database.file.read_bytes(names.DEVICE, "uuid", _UUID_BYTES)
    if blobs is None or len(blobs.length) != rows:
        return [None] * rows
    texts = [str(uuid.UUID(bytes=each.tobytes())) for each in blobs.data]
    known = (blobs.length == _UUID_BYTES) & blobs.data.any(axis=1)
    return [text if there else None for text, there in zip(texts, known, strict=True)]
