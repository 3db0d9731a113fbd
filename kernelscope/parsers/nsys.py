"""Nsight Systems SQLite exports, 2020.3 to 2026.2, lazy or not, trimmed or extended.

`recognises` looks at table names; `parse` reads the columns that kernelscope knows and leaves
the rest alone. Every table and almost every column may be absent: what is absent becomes
missing values, and ``capture.not_recorded`` says how to record it. Tables that can hold secrets
of the profiled process (its environment) are never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import coded, floats, integers, labelled, stacked, unset
from kernelscope.parsers.nsys_devices import devices_table
from kernelscope.parsers.nsys_export import Export, first_present, text_of
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
    missing_value,
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
        "ranges": _ranges(export),
        "overheads": _overheads(export),
        "threads": _threads(export),
    }
    tables["devices"] = devices_table(export, tables["kernels"])
    tables["processes"] = _processes(export, tables)
    sound, left_out = quarantined(tables)
    return Trace(capture=_capture(export), quarantine=left_out, **sound)


def _interval(columns: Mapping[str, Array | None], rows: int) -> dict[str, ColumnData]:
    """Return start and end; an event without one is left to the quarantine."""
    absent = np.broadcast_to(np.int64(missing_value(np.dtype(np.int64))), (rows,))
    start, end = columns.get("start"), columns.get("end")
    return {
        "start_ns": absent if start is None else start,
        "end_ns": absent if end is None else end,
    }


def _present(columns: Mapping[str, ColumnData | None]) -> dict[str, ColumnData]:
    return {name: data for name, data in columns.items() if data is not None}


def _device_event(
    export: Export, read: Mapping[str, Array | None], rows: int
) -> dict[str, ColumnData]:
    device = read.get("deviceId")
    columns = _interval(read, rows)
    columns["device_id"] = np.zeros(rows, dtype=np.int32) if device is None else device
    columns |= _present(
        {
            "process_id": export.process_of_global_pid(read.get("globalPid"), rows),
            **{ours: read.get(theirs) for ours, theirs in names.EVENT_COLUMNS.items()},
        }
    )
    return columns


_EVENT = ("start", "end", "deviceId", "globalPid", *names.EVENT_COLUMNS.values())


def _kernels(export: Export) -> Table:
    wanted = ("demangledName", "shortName", "mangledName", "launchType")
    read = export.read(names.KERNEL, (*_EVENT, *wanted, *names.KERNEL_COLUMNS.values()))
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
    columns = _device_event(export, numbers, read.rows) | _present(
        {
            "name": full,
            "short_name": short,
            "launch_type": launch_type,
            **{ours: numbers.get(theirs) for ours, theirs in names.KERNEL_COLUMNS.items()},
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
    columns = _thread_event(export, numbers, read.rows) | _present(
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


def _thread_event(
    export: Export, read: Mapping[str, Array | None], rows: int
) -> dict[str, ColumnData]:
    process, thread = export.process_and_thread(read.get("globalTid"))
    return _interval(read, rows) | _present({"process_id": process, "thread_id": thread})


def _copies(export: Export) -> Table:
    copied, filled = _memcpy(export), _memset(export)
    if copied is None or filled is None:
        return copied or filled or Table.empty(schema.COPIES)
    both = {n: stacked(copied.columns[n], filled.columns[n]) for n in schema.COPIES.names}
    return Table.make(schema.COPIES, both)


def _memcpy(export: Export) -> Table | None:
    wanted = (
        "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "migrationCause",
    )  # fmt: skip
    read = export.read(names.MEMCPY, (*_EVENT, *wanted))
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    columns = _device_event(export, numbers, read.rows) | _present(
        {
            "kind": labelled(numbers.get("copyKind"), names.COPY_KINDS)
            or Categorical.constant("unknown", read.rows),
            "src_memory": labelled(numbers.get("srcKind"), names.MEMORY_KINDS),
            "dst_memory": labelled(numbers.get("dstKind"), names.MEMORY_KINDS),
            "bytes": numbers.get("bytes"),
            "src_device_id": unset(numbers.get("srcDeviceId"), names.UNSET_ID),
            "dst_device_id": unset(numbers.get("dstDeviceId"), names.UNSET_ID),
            "migration_cause": labelled(numbers.get("migrationCause"), names.MIGRATION_CAUSES),
        }
    )
    return Table.make(schema.COPIES, columns)


def _memset(export: Export) -> Table | None:
    read = export.read(names.MEMSET, (*_EVENT, "bytes", "memKind"))
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    columns = _device_event(export, numbers, read.rows) | _present(
        {
            "kind": Categorical.constant("memset", read.rows),
            "dst_memory": labelled(numbers.get("memKind"), names.MEMORY_KINDS),
            "bytes": numbers.get("bytes"),
        }
    )
    return Table.make(schema.COPIES, columns)


def _syncs(export: Export) -> Table:
    read = export.read(names.SYNCHRONIZATION, (*_EVENT, "eventId"))
    if not read.rows:
        return Table.empty(schema.SYNCS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    for name in ("deviceId", "contextId", "streamId"):
        numbers[name] = unset(numbers.get(name), names.UNSET_ID)
    event = unset(numbers.get("eventId"), names.UNSET_ID, 0)
    columns = _device_event(export, numbers, read.rows)
    columns.pop("graph_node_id", None)
    columns |= _present(
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


def _ranges(export: Export) -> Table:
    wanted = (
        "start", "end", "eventType", "category", "text", "textId", "globalTid", "endGlobalTid",
        "domainId", "uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue",
        "floatValue",
    )  # fmt: skip
    read = export.read(names.NVTX, wanted)
    event_type = integers(read.columns.get("eventType"))
    if event_type is None or not read.rows:
        return Table.empty(schema.RANGES)
    chosen = np.zeros(read.rows, dtype=np.bool_)
    for style in names.RANGE_STYLES:
        chosen |= event_type == style
    text = text_of(export, read.columns.get("text"), read.columns.get("textId"), read.rows)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n not in ("text", "textId")}
    process, thread = export.process_and_thread(numbers.get("globalTid"))
    _, end_thread = export.process_and_thread(numbers.get("endGlobalTid"))
    domain = _domains(process, numbers.get("domainId"), event_type, text)
    end, closed = _closed(export, numbers, read.rows)
    columns: dict[str, ColumnData | None] = {
        **_interval(numbers, read.rows),
        "end_ns": end,
        "closed": closed,
        "process_id": process,
        "thread_id": thread,
        "end_thread_id": end_thread,
        "domain": domain,
        "name": text,
        "style": labelled(event_type, names.RANGE_STYLES),
        "category": numbers.get("category"),
        "payload_int": _first_integer(
            *(numbers.get(f"{n}Value") for n in ("uint64", "int64", "uint32", "int32"))
        ),
        "payload_float": floats(read.columns.get("doubleValue")),
    }
    return Table.make(schema.RANGES, _present(columns)).take(chosen)


def _first_integer(*columns: Array | None) -> Array | None:
    """Return, row by row, the first value that is set: an NVTX event has one payload at most."""
    found: Array | None = None
    for column in columns:
        if column is None or is_missing(column).all():
            continue
        wide = column.astype(np.int64)
        wide[is_missing(column)] = missing_value(wide.dtype)
        found = wide if found is None else np.where(is_missing(found), wide, found)
    return found


def _closed(export: Export, numbers: Mapping[str, Array | None], rows: int) -> tuple[Array, Array]:
    """Return the ends of ranges, and which were really closed.

    A range that the program never closed is exported with the end of the trace as its end
    (2022.4.2) or with none; both end with the trace here and say so.
    """
    start, end = numbers.get("start"), numbers.get("end")
    duration = export.single("ANALYSIS_DETAILS", "duration")
    if start is None or end is None:
        return np.full(rows, 0 if duration is None else duration), np.zeros(rows, dtype=np.bool_)
    open_ended = is_missing(end)
    last = max(int(start.max()), int(end.max()), duration or 0)
    closed = ~open_ended if duration is None else ~(open_ended | (end == duration))
    return np.where(open_ended, np.int64(last), end), closed


def _domains(
    process: Array | None, domain_id: Array | None, event_type: Array, text: Categorical
) -> Categorical:
    """Return each event's domain by name: ids are per process, and 0 is the default domain."""
    rows = len(event_type)
    if domain_id is None or not rows:
        return Categorical.constant("", rows)
    owner = np.zeros(rows, dtype=np.int64) if process is None else process.astype(np.int64)
    known: dict[tuple[int, int], str] = {}
    for row in np.flatnonzero(event_type == names.NVTX_DOMAIN_CREATE).tolist():
        if text.codes[row] >= 0:
            known[int(owner[row]), int(domain_id[row])] = text.categories[text.codes[row]]
    ids = np.where(is_missing(domain_id), 0, domain_id).astype(np.int64)
    processes = distinct(owner)
    place = np.searchsorted(processes, owner)
    width = int(ids.max()) + 1

    def label(pair: int) -> str:
        process, number = divmod(pair, width)
        default = "" if number == 0 else f"domain {number}"
        return known.get((int(processes[process]), number), default)

    return coded(place * width + ids, label)


def _overheads(export: Export) -> Table:
    read = export.read(names.OVERHEAD, ("start", "end", "globalTid", "nameId"))
    if not read.rows:
        return Table.empty(schema.OVERHEADS)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n != "nameId"}
    columns = _thread_event(export, numbers, read.rows)
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
        schema.THREADS, _present({"process_id": process, "thread_id": thread, "name": name})
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
        started_at=_started_at(export.single("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")),
        recorded=recorded,
        not_recorded=_not_recorded(export, recorded),
        warnings=_warnings(version),
        read_paths=dict(export.read_paths),
    )


def _not_recorded(export: Export, recorded: tuple[str, ...]) -> tuple[NotRecorded, ...]:
    """Tell tables that were not traced from those that were, and saw nothing."""
    traced = export.traced_events
    missing = []
    for table, (_, event, how) in names.HOW_TO_RECORD.items():
        if table not in recorded:
            saw_none = event in traced
            missing.append(
                NotRecorded(table, "it was traced, and nothing occurred" if saw_none else how)
            )
    return tuple(missing)


def _started_at(epoch_ns: int | None) -> str | None:
    if epoch_ns is None:
        return None
    seconds, rest = divmod(epoch_ns, 1_000_000_000)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


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
