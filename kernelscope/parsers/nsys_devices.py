"""The GPUs that an Nsight Systems export describes, keyed by CUDA ordinal.

Three generations: ``TARGET_INFO_CUDA_GPU`` (2020: kHz, kB/s), ``TARGET_INFO_GPU`` (2021.2 on:
Hz, B/s; ``id`` is the profiler's own number and *not* the ordinal, which is ``cuDevice``), and
``TARGET_INFO_CUDA_DEVICE`` beside it (2025.1 on), which maps (process, ordinal) → ``gpuId``.
"""

from __future__ import annotations

from typing import Any

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import integers
from kernelscope.parsers.nsys_export import Export
from kernelscope.parsers.sqlite import RawColumn
from kernelscope.trace import Categorical, Table, distinct, missing_value

Row = dict[str, Any]

KILO_CLOCK = 100_000_000
"""A clock below this is in kHz: no GPU's maximum clock is under 100 MHz."""

MIB_MEMORY = 1 << 24
"""A memory size below this is in MiB: 2020.3 wrote 32510 for a GPU with 32 GB."""


def devices_table(export: Export, kernels: Table) -> Table:
    """Return the `devices` table; one row per (process or any, ordinal) that is described.

    Parameters
    ----------
    export : Export
        The open export.
    kernels : Table
        The kernels of the trace: a trimmed export with a single GPU and no ordinals is
        understood where they all ran on one device.
    """
    gpus = _rows(export, "TARGET_INFO_GPU", names.GPU_COLUMNS, ("id", "cuDevice", "deviceId"))
    mapped = _rows(export, "TARGET_INFO_CUDA_DEVICE", {"uuid": "uuid"}, ("gpuId", "cudaId", "pid"))
    early = _rows(export, "TARGET_INFO_CUDA_GPU", names.CUDA_GPU_COLUMNS, ("deviceId", "pid"))
    if mapped:
        rows = _by_process(mapped, gpus)
    elif early:
        rows = [_early(row) for row in early]
    else:
        rows = [_by_ordinal(row) for row in gpus]
        if len(rows) == 1 and rows[0]["device_id"] is None:
            rows = [rows[0] | {"device_id": _only_ordinal(kernels)}]
    rows.sort(key=_order)
    return Table.of_records(schema.DEVICES, rows)


def _order(row: Row) -> tuple[bool, int, int]:
    absent = row["device_id"] is None
    return absent, row.get("process_id") or 0, 0 if absent else row["device_id"]


def _only_ordinal(kernels: Table) -> int | None:
    used = distinct(kernels["device_id"])
    return int(used[0]) if len(used) == 1 else None


def _rows(export: Export, table: str, columns: dict[str, str], keys: tuple[str, ...]) -> list[Row]:
    """Read a small table into dictionaries: our names for `columns`, their own for `keys`."""
    read = export.read(table, (*columns.values(), *keys))
    plain: dict[str, list[Any]] = {}
    for ours, theirs in (*columns.items(), *((key, key) for key in keys)):
        raw = read.columns.get(theirs)
        if raw is not None:
            plain[ours] = _numbers(raw) if ours in _NUMERIC or ours in keys else _texts(raw)
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _numbers(raw: RawColumn) -> list[int | None]:
    values = integers(raw)
    if values is None:
        return []
    missing = missing_value(values.dtype)
    return [None if value == missing else value for value in values.tolist()]


def _texts(raw: RawColumn) -> list[str | None]:
    if isinstance(raw, Categorical):
        return [None if code < 0 else raw.categories[code] for code in raw.codes.tolist()]
    return [None if value is None else str(value) for value in _numbers(raw)]


def _by_ordinal(gpu: Row) -> Row:
    """A row of ``TARGET_INFO_GPU``: the ordinal holds for every process.

    Integrated GPUs and software adapters stand in the table with ordinal 0 and no
    multiprocessors; CUDA does not see them, so they have no ordinal here.
    """
    visible = gpu.get("sm_count") != 0
    ordinal = gpu.get("cuDevice", gpu.get("deviceId"))
    return _specs(gpu) | {
        "gpu_id": gpu.get("id"),
        "device_id": ordinal if visible else None,
        "identifies": False,
    }


def _by_process(mapped: list[Row], gpus: list[Row]) -> list[Row]:
    by_id = {gpu.get("id"): gpu for gpu in gpus}
    rows = []
    for entry in mapped:
        specs = _specs(by_id.get(entry.get("gpuId"), {}))
        rows.append(
            specs
            | {
                "process_id": entry.get("pid"),
                "device_id": entry.get("cudaId"),
                "gpu_id": entry.get("gpuId"),
                "uuid": entry.get("uuid") or specs.get("uuid"),
                "identifies": True,
            }
        )
    described = {entry.get("gpuId") for entry in mapped}
    unused = [
        _specs(gpu) | {"gpu_id": gpu.get("id"), "device_id": None, "identifies": False}
        for gpu in gpus
        if gpu.get("id") not in described
    ]
    return rows + unused


def _early(row: Row) -> Row:
    """A row of ``TARGET_INFO_CUDA_GPU`` (2020): thousands of Hz and of bytes per second."""
    clock, memory = row.get("clock_hz"), row.get("memory_bytes")
    bandwidth = row.get("memory_bytes_per_s")
    return _specs(
        row
        | {
            "clock_hz": clock * 1000 if clock and clock < KILO_CLOCK else clock,
            "memory_bytes": memory << 20 if memory and memory < MIB_MEMORY else memory,
            "memory_bytes_per_s": bandwidth * 1000 if bandwidth else None,
        }
    ) | {"process_id": row.get("pid"), "device_id": row.get("deviceId"), "identifies": False}


_NUMERIC = {column.name for column in schema.DEVICES.columns if column.dtype == "int64"}


def _specs(row: Row) -> Row:
    """Keep what describes the GPU; a 0 there, or a UUID of zeros, means *not known*."""
    kept = {name: row.get(name) for name in names.GPU_COLUMNS}
    for name, value in kept.items():
        if name in _NUMERIC and name != "compute_minor" and not value:
            kept[name] = None
    if not str(kept["uuid"] or "").strip("0-"):
        kept["uuid"] = None
    if kept["compute_major"] is None:
        kept["compute_minor"] = None
    if str(kept["bus"] or "").startswith("<UNKNOWN"):
        kept["bus"] = None
    return kept
