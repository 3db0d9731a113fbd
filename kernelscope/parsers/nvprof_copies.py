"""Copies, memsets and unified-memory migrations in an nvprof database."""

from __future__ import annotations

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.convert import integers, labelled, unset, within
from kernelscope.parsers.nsys_events import interval, present
from kernelscope.parsers.nsys_export import first_present
from kernelscope.parsers.nsys_names import COPY_KINDS, MIGRATION_CAUSES, SENSIBLE, UNSET_ID
from kernelscope.parsers.nvprof_database import EVENT, Database, device_event, unsigned
from kernelscope.trace import Array, Categorical, Table, missing_value, stacked

Numbers = dict[str, Array | None]


def copies_table(database: Database) -> Table:
    """Return the copies, peer copies, memsets and migrations, in this order."""
    table = Table.empty(schema.COPIES)
    for part in (
        _copies(database, names.MEMCPY),
        _copies(database, names.PEER_MEMCPY),
        _memsets(database),
        _migrations(database),
    ):
        if part is not None:
            table = part if not len(table) else stacked(table, part)
    return table


def _read(database: Database, table: str, *wanted: str) -> tuple[Numbers, int]:
    read = database.read(table, wanted)
    return {name: integers(raw) for name, raw in read.columns.items()}, read.rows


def _copies(database: Database, table: str) -> Table | None:
    numbers, rows = _read(
        database, table, *EVENT, "copyKind", "srcKind", "dstKind", "bytes", "srcDeviceId",
        "dstDeviceId", "graphNodeId",
    )  # fmt: skip
    if not rows:
        return None
    columns = device_event(database, numbers, rows) | present(
        {
            "kind": first_present(
                labelled(numbers.get("copyKind"), COPY_KINDS), default="unknown", rows=rows
            ),
            "src_memory": labelled(numbers.get("srcKind"), names.MEMORY_KINDS),
            "dst_memory": labelled(numbers.get("dstKind"), names.MEMORY_KINDS),
            "bytes": within(numbers.get("bytes"), *SENSIBLE["bytes"]),
            "src_device_id": unset(numbers.get("srcDeviceId"), UNSET_ID, -1),
            "dst_device_id": unset(numbers.get("dstDeviceId"), UNSET_ID, -1),
            "graph_node_id": unset(numbers.get("graphNodeId"), 0),
        }
    )
    return Table.make(schema.COPIES, columns)


def _memsets(database: Database) -> Table | None:
    numbers, rows = _read(database, names.MEMSET, *EVENT, "bytes", "memoryKind", "graphNodeId")
    if not rows:
        return None
    columns = device_event(database, numbers, rows) | present(
        {
            "kind": Categorical.constant("memset", rows),
            "dst_memory": labelled(numbers.get("memoryKind"), names.MEMORY_KINDS),
            "bytes": within(numbers.get("bytes"), *SENSIBLE["bytes"]),
            "graph_node_id": unset(numbers.get("graphNodeId"), 0),
        }
    )
    return Table.make(schema.COPIES, columns)


def _migrations(database: Database) -> Table | None:
    """Return the unified memory that moved; faults, thrashing and throttling moved none.

    Before CUDA 7.5 a counter had one time stamp, which is no interval: those are left out.
    """
    numbers, _ = _read(
        database, names.UNIFIED_MEMORY, "counterKind", "value", "start", "end", "srcId", "dstId",
        "deviceId", "streamId", "processId", "flags",
    )  # fmt: skip
    kind = numbers.get("counterKind")
    if kind is None or numbers.get("start") is None or numbers.get("end") is None:
        return None
    moved = np.isin(kind, list(names.MIGRATIONS))
    if not moved.any():
        return None
    part: Numbers = {name: None if v is None else v[moved] for name, v in numbers.items()}
    kind, count = kind[moved], int(moved.sum())
    source = unset(part.get("srcId"), UNSET_ID, -1)
    target = unset(part.get("dstId"), UNSET_ID, -1)
    device = _either(kind == 2, source, target)
    columns = interval(part, count) | present(
        {
            "device_id": part.get("deviceId") if device is None else device,
            "process_id": unsigned(part.get("processId")),
            "stream_id": unset(part.get("streamId"), UNSET_ID, -1),
            "kind": labelled(kind, names.MIGRATIONS),
            "src_memory": Categorical.constant("managed", count),
            "dst_memory": Categorical.constant("managed", count),
            "bytes": within(part.get("value"), *SENSIBLE["bytes"]),
            "src_device_id": _only(kind == 8, source),
            "dst_device_id": _only(kind == 8, target),
            "migration_cause": labelled(part.get("flags"), MIGRATION_CAUSES),
        }
    )
    if "device_id" not in columns:
        return None
    return Table.make(schema.COPIES, columns)


def _either(first: Array, source: Array | None, target: Array | None) -> Array | None:
    """Return the device of each migration: what it left if that was a device, else its target."""
    if source is None or target is None:
        return None
    return np.where(first, source.astype(np.int64), target.astype(np.int64))


def _only(rows: Array, values: Array | None) -> Array | None:
    if values is None:
        return None
    return np.where(rows, values, values.dtype.type(missing_value(values.dtype)))
