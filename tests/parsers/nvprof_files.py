"""Databases as nvprof writes them, of every version, from a few rows."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

VERSIONS = (8, 9, 11, 12, 16)
P = "CUPTI_ACTIVITY_KIND_"

Row = Mapping[str, Any]

_LAUNCH = (
    "gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory "
    "localMemoryPerThread localMemoryTotal"
)
_KERNEL = (
    "cacheConfig:BLOB sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested "
    f"partitionedGlobalCacheExecuted start end completed deviceId contextId streamId {_LAUNCH} "
    "correlationId gridId name 11:queued 11:submitted 11:launchType "
    "11:isSharedMemoryCarveoutRequested 11:sharedMemoryCarveoutRequested 12:sharedMemoryExecuted "
    "16:graphNodeId 16:shmemLimitConfig 16:graphId 16:pAccessPolicyWindow:BLOB"
)
_CALL = "cbid start end processId threadId correlationId returnValue"
_COPY = "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId"
_DEVICE = (
    "flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize "
    "numThreadsPerWarp coreClockRate numMemcpyEngines numMultiprocessors maxIPC "
    "maxWarpsPerMultiprocessor maxBlocksPerMultiprocessor maxSharedMemoryPerMultiprocessor "
    "maxRegistersPerMultiprocessor maxRegistersPerBlock maxSharedMemoryPerBlock "
    "maxThreadsPerBlock computeCapabilityMajor computeCapabilityMinor id eccEnabled uuid:BLOB "
    "name 16:isCudaVisible"
)
TABLES: dict[str, str] = {
    "MEMCPY": f"{_COPY} correlationId runtimeCorrelationId 16:graphNodeId 16:graphId",
    "MEMCPY2": f"{_COPY} srcDeviceId srcContextId dstDeviceId dstContextId correlationId",
    "MEMSET": "value bytes start end deviceId contextId streamId correlationId 9:flags "
    "9:memoryKind 16:graphNodeId",
    "KERNEL": _KERNEL,
    "CONCURRENT_KERNEL": _KERNEL,
    "CDP_KERNEL": f"cacheConfig:BLOB registersPerThread start end deviceId contextId streamId "
    f"{_LAUNCH} correlationId gridId parentGridId name",
    "DRIVER": _CALL,
    "RUNTIME": _CALL,
    "METRIC": "id value:BLOB correlationId flags",
    "METRIC_INSTANCE": "id value:BLOB instance correlationId flags",
    "DEVICE": _DEVICE,
    "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    "NAME": "objectKind objectId:BLOB name",
    "MARKER": "flags timestamp id objectKind objectId:BLOB name 9:domain",
    "MARKER_DATA": "flags id payloadKind payload:BLOB color category",
    "OVERHEAD": "overheadKind objectKind objectId:BLOB start end",
    "UNIFIED_MEMORY_COUNTER": "counterKind value start end address srcId dstId streamId "
    "processId flags",
    "9:CUDA_EVENT": "correlationId contextId streamId eventId",
    "9:SYNCHRONIZATION": "type start end correlationId contextId streamId cudaEventId",
}
"""Table → its columns; what has a number before it came with that version."""

V100: dict[str, Any] = {
    "id": 0, "name": "Tesla V100-SXM2-16GB", "computeCapabilityMajor": 7, "numMultiprocessors": 80,
    "globalMemoryBandwidth": 898_048_000, "coreClockRate": 1_530_000,
    "globalMemorySize": 16_914_055_168, "numThreadsPerWarp": 32, "uuid": bytes(range(1, 17)),
    "maxWarpsPerMultiprocessor": 64, "maxBlocksPerMultiprocessor": 32, "isCudaVisible": 1,
}  # fmt: skip
KERNEL: dict[str, Any] = {
    "start": 1000, "end": 1500, "correlationId": 7, "contextId": 1, "streamId": 7,
    "registersPerThread": 32, "name": "_Z3addPfS_i",
    **dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1),
}  # fmt: skip


def thread_object(process: int, thread: int) -> bytes:
    """An objectId: process, thread, and four bytes of padding."""
    return struct.pack("<III", process, thread, 0)


def write(
    path: Path, version: int | None = 12, *, leave_out: Sequence[str] = (), **rows: Any
) -> Path:
    """Write a database with the given rows, every other table empty.

    What a row does not say is 0, or no bytes; texts of `name` and `domain` go to the string
    table, None is the string that is not there.
    """
    strings: dict[str, int] = {"-- null --": 0}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT UNIQUE)")
        database.execute("CREATE TABLE Version(version INTEGER)")
        if version is not None:
            database.execute("INSERT INTO Version VALUES (?)", (version,))
        for table, spelled in TABLES.items():
            since, _, name = table.rpartition(":")
            if int(since or 0) <= (version or 12) and name not in leave_out:
                kinds = _columns(spelled, version or 12)
                _table(database, name, kinds, rows.pop(name, ()), strings)
        assert not rows, f"version {version} has no tables {sorted(rows)}"
        database.executemany(
            "INSERT INTO StringTable VALUES (?, ?)", [(n, text) for text, n in strings.items()]
        )
    return path


def _columns(spelled: str, version: int) -> dict[str, str]:
    columns: dict[str, str] = {}
    for word in spelled.split():
        parts = word.split(":")
        since = int(parts.pop(0)) if parts[0].isdigit() else 0
        if since <= version:
            columns[parts[0]] = parts[1] if len(parts) > 1 else "INT"
    return columns


def _table(
    database: sqlite3.Connection,
    name: str,
    columns: dict[str, str],
    rows: Sequence[Row],
    strings: dict[str, int],
) -> None:
    declared = ", ".join(f"{column} {kind} NOT NULL" for column, kind in columns.items())
    database.execute(f"CREATE TABLE {P}{name}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {declared})")
    for row in rows:
        values = [
            _value(row.get(column, b"" if kind == "BLOB" else 0), column, strings)
            for column, kind in columns.items()
        ]
        places = ", ".join("?" for _ in values)
        database.execute(f"INSERT INTO {P}{name}({', '.join(columns)}) VALUES ({places})", values)


def _value(value: Any, column: str, strings: dict[str, int]) -> Any:
    if column not in ("name", "domain") or value == 0:
        return value
    text = "-- null --" if value is None else value
    return strings.setdefault(text, len(strings))
