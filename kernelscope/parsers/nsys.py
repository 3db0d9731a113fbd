"""Nsight Systems SQLite exports, 2020.3 to 2026.2, lazy or not, trimmed or extended.

`recognises` looks at table names; `parse` reads the columns that kernelscope knows and leaves
the rest alone. Every table and almost every column may be absent: what is absent becomes
missing values, and ``capture.not_recorded`` says how to record it. Tables that can hold secrets
of the profiled process (its environment) are never read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import coded, integers, labelled, unset, utc_time, within
from kernelscope.parsers.nsys_devices import devices_table
from kernelscope.parsers.nsys_events import (
    EVENT,
    device_event,
    present,
    thread_event,
)
from kernelscope.parsers.nsys_export import Export, first_present
from kernelscope.parsers.nsys_graphs import graph_nodes_table, graphs_table
from kernelscope.parsers.nsys_host import (
    cpu_cores,
    event_records_table,
    on_core_table,
    os_calls_table,
)
from kernelscope.parsers.nsys_ranges import ranges_table
from kernelscope.parsers.nsys_samples import gpu_samples_table, samples_lacking
from kernelscope.parsers.quarantine import quarantined
from kernelscope.parsers.sqlite import SqliteFile
from kernelscope.trace import (
    Array,
    Capture,
    Categorical,
    ColumnData,
    NotRecorded,
    Table,
    Trace,
    distinct,
    is_missing,
    stacked,
)

NAME = "nsys"
DESCRIPTION = "Nsight Systems SQLite export"


def recognises(file: SqliteFile) -> bool:
    """Return whether the tables are those of an Nsight Systems export; never raises."""
    tables = set(file.tables)
    version = {"META_DATA_EXPORT", "EXPORT_META_DATA"}
    known = {"TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU", "ThreadNames"}
    events = {names.KERNEL, names.RUNTIME, names.MEMCPY, names.NVTX, "OSRT_API"}
    return "StringIds" in tables and bool(tables & (version | known | events))


def parse(file: SqliteFile) -> Trace:
    """Read an export into canonical tables.

    Raises
    ------
    DamagedFileError
        If a page that holds a wanted column cannot be read.
    """
    export = Export.open(file)
    tables = {
        "kernels": _kernels(export),
        "api_calls": _api_calls(export),
        "copies": _copies(export),
        "syncs": _syncs(export),
        "event_records": event_records_table(export),
        "ranges": ranges_table(export),
        "overheads": _overheads(export),
        "os_calls": os_calls_table(export),
        "on_core": on_core_table(export),
        "threads": _threads(export),
    }
    tables["graphs"] = graphs_table(export, tables["kernels"], tables["copies"])
    tables["graph_nodes"] = graph_nodes_table(export)
    tables["devices"] = devices_table(export, tables["kernels"])
    tables["processes"] = _processes(export, tables)
    tables["gpu_samples"] = gpu_samples_table(export)
    sound, left_out = quarantined(tables)
    return Trace(capture=_capture(export), quarantine=left_out, **sound)


def _kernels(export: Export) -> Table:
    wanted = ("demangledName", "shortName", "mangledName", "launchType")
    read = export.read(
        names.KERNEL, (*EVENT, "graphNodeId", *wanted, *names.KERNEL_COLUMNS.values())
    )
    if not read.rows:
        return Table.empty(schema.KERNELS)
    numbers = {name: integers(raw) for name, raw in read.columns.items() if name not in wanted}
    short = export.texts(read.columns.get("shortName"))
    full = first_present(
        export.texts(read.columns.get("demangledName")),
        short,
        export.texts(read.columns.get("mangledName")),
        default="[unnamed]",
        rows=read.rows,
    )
    launch_type = labelled(integers(read.columns.get("launchType")), names.LAUNCH_TYPES)
    columns = device_event(export, numbers, read.rows) | present(
        {
            "name": full,
            "short_name": short,
            "launch_type": launch_type,
            "graph_node_id": numbers.get("graphNodeId"),
            **{
                ours: within(numbers.get(theirs), *names.SENSIBLE.get(ours, names.ANY))
                for ours, theirs in names.KERNEL_COLUMNS.items()
            },
        }
    )
    return Table.make(schema.KERNELS, columns)


def _api_calls(export: Export) -> Table:
    wanted = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue")
    read = export.read(names.RUNTIME, wanted)
    if not read.rows:
        return Table.empty(schema.API_CALLS)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n != "nameId"}
    name = first_present(
        export.texts(read.columns.get("nameId"), text_of=api_name),
        default="[unnamed]",
        rows=read.rows,
    )
    columns = thread_event(export, numbers, read.rows) | present(
        {
            "correlation_id": numbers.get("correlationId"),
            "name": name,
            "kind": _api_kind(numbers.get("eventClass"), name),
            "return_value": numbers.get("returnValue"),
        }
    )
    return Table.make(schema.API_CALLS, columns)


def api_name(recorded: str) -> str:
    """Return a CUDA call's name without the suffixes of its ABI.

    ``cudaGraphLaunch_v10000`` → ``cudaGraphLaunch``; ``cudaLaunchKernel_ptsz_v7000`` →
    ``cudaLaunchKernel`` (``_ptsz`` and ``_ptds`` mark the per-thread default stream). Driver
    revisions such as ``cuMemAlloc_v2`` are names of their own and stay.
    """
    head, _, version = recorded.rpartition("_v")
    if head and version.isdigit() and len(version) >= 4:
        recorded = head
    for suffix in ("_ptsz", "_ptds"):
        recorded = recorded.removesuffix(suffix)
    return recorded


def _api_kind(event_class: Array | None, name: Categorical) -> Categorical:
    if event_class is not None:
        return coded(event_class, lambda number: names.API_KINDS.get(number, "wrapper"))
    kinds = ["runtime" if text.startswith("cuda") else "driver" for text in name.categories]
    order = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
    table = np.array([order[kind] for kind in kinds], dtype=np.int32)
    return Categorical(table[name.codes], tuple(order))


def _copies(export: Export) -> Table:
    copied, filled = _memcpy(export), _memset(export)
    if copied is None or filled is None:
        return copied or filled or Table.empty(schema.COPIES)
    return stacked(copied, filled)


def _memcpy(export: Export) -> Table | None:
    wanted = (
        "graphNodeId", "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId",
        "migrationCause",
    )  # fmt: skip
    read = export.read(names.MEMCPY, (*EVENT, *wanted))
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    columns = device_event(export, numbers, read.rows) | present(
        {
            "kind": labelled(numbers.get("copyKind"), names.COPY_KINDS)
            or Categorical.constant("unknown", read.rows),
            "src_memory": labelled(numbers.get("srcKind"), names.MEMORY_KINDS),
            "dst_memory": labelled(numbers.get("dstKind"), names.MEMORY_KINDS),
            "graph_node_id": numbers.get("graphNodeId"),
            "bytes": within(numbers.get("bytes"), *names.SENSIBLE["bytes"]),
            "src_device_id": unset(numbers.get("srcDeviceId"), names.UNSET_ID),
            "dst_device_id": unset(numbers.get("dstDeviceId"), names.UNSET_ID),
            "migration_cause": labelled(numbers.get("migrationCause"), names.MIGRATION_CAUSES),
        }
    )
    return Table.make(schema.COPIES, columns)


def _memset(export: Export) -> Table | None:
    read = export.read(names.MEMSET, (*EVENT, "graphNodeId", "bytes", "memKind"))
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    columns = device_event(export, numbers, read.rows) | present(
        {
            "kind": Categorical.constant("memset", read.rows),
            "dst_memory": labelled(numbers.get("memKind"), names.MEMORY_KINDS),
            "graph_node_id": numbers.get("graphNodeId"),
            "bytes": within(numbers.get("bytes"), *names.SENSIBLE["bytes"]),
        }
    )
    return Table.make(schema.COPIES, columns)


def _syncs(export: Export) -> Table:
    read = export.read(names.SYNCHRONIZATION, (*EVENT, "eventId"))
    if not read.rows:
        return Table.empty(schema.SYNCS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    for name in ("deviceId", "contextId", "streamId"):
        numbers[name] = unset(numbers.get(name), names.UNSET_ID)
    event = unset(numbers.get("eventId"), names.UNSET_ID, 0)
    columns = device_event(export, numbers, read.rows)
    columns |= present(
        {"kind": _sync_kind(numbers.get("streamId"), event, read.rows), "event_id": event}
    )
    return Table.make(schema.SYNCS, columns)


def _sync_kind(stream: Array | None, event: Array | None, rows: int) -> Categorical:
    """Tell synchronisations apart by what is set; ``syncType`` changed its meaning too often."""
    nothing = np.zeros(rows, dtype=np.bool_)
    has_stream = nothing if stream is None else ~is_missing(stream)
    has_event = nothing if event is None else ~is_missing(event)
    codes = has_stream.astype(np.int32) + 2 * has_event.astype(np.int32)
    kinds = ("context_synchronize", "stream_synchronize", "event_synchronize", "stream_wait_event")
    return Categorical(codes, kinds)


def _overheads(export: Export) -> Table:
    read = export.read(names.OVERHEAD, ("start", "end", "globalTid", "nameId"))
    if not read.rows:
        return Table.empty(schema.OVERHEADS)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n != "nameId"}
    columns = thread_event(export, numbers, read.rows)
    columns["name"] = first_present(
        export.texts(read.columns.get("nameId")), default="Unknown", rows=read.rows
    )
    return Table.make(schema.OVERHEADS, columns)


def _threads(export: Export) -> Table:
    read = export.read("ThreadNames", ("nameId", "globalTid"))
    process, thread = export.process_and_thread(integers(read.columns.get("globalTid")))
    if thread is None or not read.rows:
        return Table.empty(schema.THREADS)
    name = export.texts(read.columns.get("nameId"))
    return Table.make(
        schema.THREADS, present({"process_id": process, "thread_id": thread, "name": name})
    )


def _processes(export: Export, tables: Mapping[str, Table]) -> Table:
    read = export.read("PROCESSES", ("globalPid", "name"))
    recorded = export.process_of_global_pid(integers(read.columns.get("globalPid")), read.rows)
    name = export.texts(read.columns.get("name"))
    by_id: dict[int, str | None] = {}
    if recorded is not None:
        texts = [None] * read.rows if name is None else _row_texts(name)
        by_id = dict(zip(recorded.tolist(), texts, strict=True))
    for process in _processes_of_events(tables):
        by_id.setdefault(process, None)
    ids = np.array(sorted(by_id), dtype=np.int64)
    columns: dict[str, ColumnData] = {
        "process_id": ids,
        "name": Categorical.of([by_id[process] for process in ids.tolist()]),
    }
    return Table.make(schema.PROCESSES, columns)


def _processes_of_events(tables: Mapping[str, Table]) -> set[int]:
    found: set[int] = set()
    for name in ("kernels", "api_calls", "copies", "ranges"):
        ids = tables[name]["process_id"]
        if len(ids):
            seen = distinct(ids)
            found.update(seen[~is_missing(seen)].tolist())
    return found


def _row_texts(column: Categorical) -> list[str | None]:
    return [None if code < 0 else column.categories[code] for code in column.codes.tolist()]


def _capture(export: Export) -> Capture:
    meta = export.metadata
    start = export.single("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
    version = meta.get("EXPORT_PRODUCT_VERSION")
    recorded = tuple(
        table
        for table, (sources, _, _) in names.HOW_TO_RECORD.items()
        if any(source in export.file.tables for source in sources)
    )
    return Capture(
        file=str(export.file.path),
        format=NAME,
        profiler_version=version,
        schema=meta.get("EXPORT_SCHEMA_VERSION"),
        started_at=None if start is None else utc_time(start),
        recorded=recorded,
        not_recorded=_not_recorded(export, recorded),
        warnings=(*_warnings(version), *_without_device(export), *samples_lacking(export)),
        cpu_cores=cpu_cores(export),
        read_paths=dict(export.read_paths),
    )


def _not_recorded(export: Export, recorded: tuple[str, ...]) -> tuple[NotRecorded, ...]:
    """Tell tables that were not traced from those that were, and saw nothing.

    The second kind has no way to record it: there was nothing. That CUDA was traced is known
    from the capture's settings, or from any other table of CUDA activity.
    """
    traced = set(export.traced_events)
    if any(table.startswith("CUPTI_ACTIVITY_KIND_") for table in export.file.tables):
        traced.add("Cuda")
    return tuple(
        NotRecorded(table, "" if event in traced else how)
        for table, (_, event, how) in names.HOW_TO_RECORD.items()
        if how and table not in (*recorded, *names.NOT_MISSED)
    )


def _without_device(export: Export) -> tuple[str, ...]:
    """Say where a trimmed export does not tell devices apart any more."""
    return tuple(
        f"{table} has no column deviceId any more: all of it is taken to be on device 0."
        for table in (names.KERNEL, names.MEMCPY, names.MEMSET)
        if table in export.file.tables and "deviceId" not in export.file.tables[table]
    )


def _warnings(version: str | None) -> tuple[str, ...]:
    if version is None:
        return ()
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return (f"The profiler version {version!r} is not one that Nsight Systems writes.",)
    if (int(parts[0]), int(parts[1])) <= names.NEWEST_KNOWN:
        return ()
    newest = ".".join(str(part) for part in names.NEWEST_KNOWN)
    return (
        f"Nsight Systems {version} is newer than {newest}, the newest that kernelscope was "
        "checked with: columns that changed their meaning would go unnoticed.",
    )
