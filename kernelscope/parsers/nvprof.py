"""Databases of nvprof and the Visual Profiler: ``.nvprof``, ``.nvvp``, ``.sql``, versions 8–16.

A database is a dump of CUPTI's activity records, one table for each kind, most of them empty;
`Version` counts 8 (CUDA 7.5 and 8), 9, 11 (CUDA 9), 12 (CUDA 10) and 16 (CUDA 11). What is read:

=================================  ==============================================================
``CONCURRENT_KERNEL``              kernels of a timeline
``KERNEL``                         kernels of a run that collected metrics: executed one by one,
                                   so that ``capture.serialised`` says why idle time, overlap and
                                   queue times of it mean nothing
``CDP_KERNEL``                     kernels that kernels launched
``RUNTIME``, ``DRIVER``            CUDA calls, named by ``data/cupti_calls.json``
``MEMCPY``, ``MEMCPY2``,           copies, peer copies, memsets
``MEMSET``
``UNIFIED_MEMORY_COUNTER``         migrations of unified memory
``SYNCHRONIZATION``, ``CONTEXT``   synchronisations, and the device of each
``CUDA_EVENT``                     in which stream events were recorded
``MARKER``, ``MARKER_DATA``        NVTX ranges: two rows each, joined by their id
``DEVICE``, ``NAME``, ``OVERHEAD`` GPUs; names of processes and threads; the profiler's own doings
``METRIC``, ``METRIC_INSTANCE``    counters of each execution, named by ``data/nvprof_metrics.json``
=================================  ==============================================================

Not read: events (``--events``), source-level results, PC samples, OpenACC, NVLink and PCIe. What
is absent becomes missing values. Names of kernels are demangled. Thread ids are nvprof's own: the
low half of the thread's handle, which calls and ranges share. Time counts from the first event;
where the database has Unix time, ``capture.started_at`` is that moment.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelscope import schema
from kernelscope.errors import NotATraceError
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.convert import coded, integers, labelled, unset, utc_time, within
from kernelscope.parsers.demangle import available, demangled
from kernelscope.parsers.nsys_events import interval, present
from kernelscope.parsers.nsys_export import first_present
from kernelscope.parsers.nsys_names import ANY as ANY_COUNT
from kernelscope.parsers.nsys_names import KERNEL_COLUMNS, SENSIBLE, UNSET_ID
from kernelscope.parsers.nvprof_copies import copies_table
from kernelscope.parsers.nvprof_counters import counters_table, unnamed_metrics
from kernelscope.parsers.nvprof_database import (
    EVENT,
    Database,
    device_event,
    process_column,
    unsigned,
)
from kernelscope.parsers.nvprof_devices import devices_table
from kernelscope.parsers.nvprof_ranges import ranges_table
from kernelscope.parsers.nvprof_tables import CallKind, call_name
from kernelscope.parsers.quarantine import EVENT_TABLES, quarantined
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
    stacked,
    widened,
)

NAME = "nvprof"
DESCRIPTION = "nvprof and Visual Profiler databases (.nvprof, .nvvp, .sql)"

UNIX_NS = range(946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""Times from 2000 to 2100; what lies outside counts from the machine's start."""

RECORD_AGAIN = (
    "Record a timeline: nvprof --export-profile FILE.nvprof PROGRAM; or, for GPUs that nvprof does "
    "not know (compute capability 8.0 and newer) and in general: nsys profile --trace=cuda,nvtx "
    "PROGRAM"
)

FOR_COUNTERS = (
    "the profiler ran the kernels one by one, and most of them several times, to read the "
    "hardware's counters: when they ran, and beside what, says nothing of the program"
)
ONE_BY_ONE = (
    "the profiler ran the kernels one by one (nvprof --concurrent-kernels off, or a run that "
    "samples or counts): when they ran, and beside what, says nothing of the program"
)
"""Why a capture is serialised: with metric values in it, and without."""


def recognises(file: SqliteFile) -> bool:
    """Return whether the tables are those of an nvprof database; never raises."""
    return "StringTable" in file.tables and any(t.startswith(names.PREFIX) for t in file.tables)


def parse(file: SqliteFile) -> Trace:
    """Read a database into canonical tables.

    Raises
    ------
    NotATraceError
        If nothing was captured: no table of events has a row.
    DamagedFileError
        If a page that holds a wanted column cannot be read.
    """
    database = Database.open(file)
    if not any(database.rows(table) for table in names.EVENTS):
        raise NotATraceError(
            f"{file.path} is an nvprof database that holds no events: every table of activity is "
            "empty. The program used no GPU, the profiler could not trace it, or it was stopped "
            "before it wrote what it had.",
            RECORD_AGAIN,
        )
    tables = {
        "kernels": _kernels(database),
        "api_calls": _api_calls(database),
        "copies": copies_table(database),
        "syncs": _syncs(database),
        "event_records": _event_records(database),
        "overheads": _overheads(database),
        "threads": _threads(database),
        "devices": devices_table(database),
    }
    tables["ranges"], orphans = ranges_table(database, _last(tables))
    tables["processes"] = _processes(database)
    tables["counters"] = counters_table(database, tables["kernels"], tables["devices"])
    sound, left_out = quarantined(tables)
    sound, zero = _from_first_event(sound)
    warnings = _warnings(database, sound, orphans)
    return Trace(capture=_capture(database, tables, zero, warnings), quarantine=left_out, **sound)


def _kernels(database: Database) -> Table:
    table = Table.empty(schema.KERNELS)
    for name in names.KERNEL_TABLES:
        part = _kernels_of(database, name)
        if part is not None:
            table = part if not len(table) else stacked(table, part)
    return table


def _kernels_of(database: Database, table: str) -> Table | None:
    wanted = ("name", "launchType", "graphNodeId", *KERNEL_COLUMNS.values())
    read = database.read(table, (*EVENT, *wanted))
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    numbers["sharedMemoryExecuted"] = unset(numbers.get("sharedMemoryExecuted"), 0)  # not Volta on
    columns = device_event(database, numbers, read.rows) | present(
        {
            "name": _kernel_names(database, numbers.get("name"), read.rows),
            "launch_type": labelled(numbers.get("launchType"), names.LAUNCH_TYPES),
            "graph_node_id": unset(numbers.get("graphNodeId"), 0),
            **{
                ours: within(numbers.get(theirs), *SENSIBLE.get(ours, ANY_COUNT))
                for ours, theirs in KERNEL_COLUMNS.items()
            },
        }
    )
    return Table.make(schema.KERNELS, columns)


def _kernel_names(database: Database, ids: Array | None, rows: int) -> Categorical:
    mangled = database.texts(ids, rows, default="[unnamed]")
    plain = demangled(mangled.categories)
    again = Categorical.of([plain[name] for name in mangled.categories])
    return Categorical(again.codes[mangled.codes], again.categories)


def _api_calls(database: Database) -> Table:
    runtime = _calls(database, names.RUNTIME, "runtime")
    driver = _calls(database, names.DRIVER, "driver")
    if runtime is None or driver is None:
        return runtime or driver or Table.empty(schema.API_CALLS)
    return stacked(runtime, driver)


def _calls(database: Database, table: str, kind: CallKind) -> Table | None:
    wanted = ("cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue")
    read = database.read(table, wanted)
    if not read.rows:
        return None
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    number = numbers.get("cbid")
    name = None if number is None else coded(number, lambda cbid: call_name(kind, cbid))
    columns = interval(numbers, read.rows) | present(
        {
            "process_id": unsigned(numbers.get("processId")),
            "thread_id": unsigned(numbers.get("threadId")),
            "correlation_id": numbers.get("correlationId"),
            "name": first_present(name, default="[unnamed]", rows=read.rows),
            "kind": Categorical.constant(kind, read.rows),
            "return_value": numbers.get("returnValue"),
        }
    )
    return Table.make(schema.API_CALLS, columns)


def _syncs(database: Database) -> Table:
    wanted = ("type", "start", "end", "correlationId", "contextId", "streamId", "cudaEventId")
    read = database.read(names.SYNCHRONIZATION, wanted)
    if not read.rows:
        return Table.empty(schema.SYNCS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    context = unset(numbers.get("contextId"), UNSET_ID, -1)
    columns = interval(numbers, read.rows) | present(
        {
            "process_id": process_column(database, read.rows),
            "device_id": _device_of(database, context),
            "context_id": context,
            "stream_id": unset(numbers.get("streamId"), UNSET_ID, -1),
            "correlation_id": numbers.get("correlationId"),
            "kind": first_present(
                labelled(numbers.get("type"), names.SYNC_KINDS), default="unknown", rows=read.rows
            ),
            "event_id": unset(numbers.get("cudaEventId"), UNSET_ID, -1),
        }
    )
    return Table.make(schema.SYNCS, columns)


def _event_records(database: Database) -> Table:
    wanted = ("correlationId", "contextId", "streamId", "eventId")
    read = database.read(names.CUDA_EVENT, wanted)
    if not read.rows:
        return Table.empty(schema.EVENT_RECORDS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    context = unset(numbers.get("contextId"), UNSET_ID, -1)
    columns = present(
        {
            "process_id": process_column(database, read.rows),
            "device_id": _device_of(database, context),
            "context_id": context,
            "stream_id": unset(numbers.get("streamId"), UNSET_ID, -1),
            "correlation_id": numbers.get("correlationId"),
            "event_id": numbers.get("eventId"),
        }
    )
    return Table.make(schema.EVENT_RECORDS, columns)


def _device_of(database: Database, context: Array | None) -> Array | None:
    """Return the device of each context, missing where the database does not describe it."""
    read = database.read(names.CONTEXT, ("contextId", "deviceId"))
    ids, devices = (integers(read.columns.get(name)) for name in ("contextId", "deviceId"))
    if context is None or ids is None or devices is None:
        return None
    device_of = dict(zip(ids.tolist(), devices.tolist(), strict=True))
    absent = missing_value(np.dtype(np.int64))
    seen = distinct(context)
    of_seen = np.array([device_of.get(each, absent) for each in seen.tolist()], np.int64)
    return np.asarray(of_seen[np.searchsorted(seen, context)])


def _overheads(database: Database) -> Table:
    read = database.read(names.OVERHEAD, ("start", "end", "overheadKind", "objectKind"))
    if not read.rows:
        return Table.empty(schema.OVERHEADS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    objects = database.objects(names.OVERHEAD, numbers.get("objectKind"))
    process, thread = objects or (None, None)
    columns = interval(numbers, read.rows) | present(
        {
            "process_id": process,
            "thread_id": thread,
            "name": first_present(
                labelled(numbers.get("overheadKind"), names.OVERHEAD_KINDS),
                default="Unknown",
                rows=read.rows,
            ),
        }
    )
    return Table.make(schema.OVERHEADS, columns)


def _named(database: Database, kind: int) -> list[tuple[int, int, str]]:
    """Return (process, thread, name) of the named objects of one kind."""
    read = database.read(names.NAME, ("objectKind", "name"))
    kinds, strings = (integers(read.columns.get(name)) for name in ("objectKind", "name"))
    objects = database.objects(names.NAME, kinds)
    if kinds is None or strings is None or objects is None:
        return []
    chosen = np.flatnonzero((kinds == kind) & ~is_missing(objects[0]))
    return [
        (process, thread, database.strings[number])
        for process, thread, number in zip(
            *(column[chosen].tolist() for column in (*objects, strings)), strict=True
        )
        if number in database.strings
    ]


def _threads(database: Database) -> Table:
    named = _named(database, names.THREAD_OBJECT)
    if not named:
        return Table.empty(schema.THREADS)
    process, thread, name = zip(*named, strict=True)
    return Table.make(
        schema.THREADS,
        {
            "process_id": np.array(process, np.int64),
            "thread_id": np.array(thread, np.int64),
            "name": Categorical.of(name),
        },
    )


def _processes(database: Database) -> Table:
    by_id: dict[int, str | None] = dict.fromkeys(database.processes)
    by_id |= {process: name for process, _, name in _named(database, names.PROCESS_OBJECT)}
    ids = sorted(by_id)
    return Table.make(
        schema.PROCESSES,
        {"process_id": np.array(ids, np.int64), "name": Categorical.of([by_id[i] for i in ids])},
    )


def _last(tables: Mapping[str, Table]) -> int:
    """Return when the last event ended that ended at a believable time; 0 where there is none."""
    ends = [table["end_ns"] for name, table in tables.items() if name in EVENT_TABLES]
    return max((int(end[end < 1 << 62].max(initial=0)) for end in ends), default=0)


def _from_first_event(tables: dict[str, Table]) -> tuple[dict[str, Table], int]:
    """Return the tables with times that count from the first event, and when that was."""
    starts = [
        int(table["start_ns"].min())
        for name, table in tables.items()
        if name in EVENT_TABLES and len(table)
    ]
    zero = min(starts, default=0)
    moved = {
        name: _moved(table, zero) if name in EVENT_TABLES and len(table) else table
        for name, table in tables.items()
    }
    return moved, zero


def _moved(table: Table, zero: int) -> Table:
    times: dict[str, ColumnData] = {
        name: widened(table[name]) - zero for name in ("start_ns", "end_ns")
    }
    return Table.make(table.schema, {**table.columns, **times})


def _capture(
    database: Database, tables: Mapping[str, Table], zero: int, warnings: tuple[str, ...]
) -> Capture:
    recorded = tuple(table for table in names.HOW_TO_RECORD if len(tables[table]))
    serial = database.rows(names.SERIAL_KERNEL) > 0
    version = _version(database)
    return Capture(
        file=str(database.file.path),
        format=NAME,
        schema=None if version is None else str(version),
        started_at=utc_time(zero) if zero in UNIX_NS else None,
        recorded=recorded,
        not_recorded=_not_recorded(database, recorded, serial=serial),
        warnings=warnings,
        read_paths=dict(database.read_paths),
        serialised=(FOR_COUNTERS if len(tables["counters"]) else ONE_BY_ONE) if serial else None,
    )


def _not_recorded(
    database: Database, recorded: tuple[str, ...], *, serial: bool
) -> tuple[NotRecorded, ...]:
    """Tell what a timeline traces anyway, and did not see, from what was not traced.

    Every table is in every database. A timeline traces kernels and copies together.
    """
    traced = (
        {"kernels", "copies"} if {"kernels", "copies"} & set(recorded) and not serial else set()
    )
    if traced:
        newer = {"syncs": names.SYNCHRONIZATION, "event_records": names.CUDA_EVENT}
        traced |= {table for table, source in newer.items() if source in database.file.tables}
    without_remedy = {"overheads", "threads", "devices", "processes"}
    return tuple(
        NotRecorded(table, "" if table in traced else how)
        for table, how in names.HOW_TO_RECORD.items()
        if table not in recorded and table not in without_remedy
    )


def _version(database: Database) -> int | None:
    values = integers(database.file.read("Version", ("version",)).columns.get("version"))
    if values is None or not len(values) or is_missing(values[:1])[0]:
        return None
    return int(values[0])


def _warnings(database: Database, tables: Mapping[str, Table], orphans: int) -> tuple[str, ...]:
    said: list[str] = []
    version = _version(database)
    if version is None:
        said.append("The database does not say its version: columns may mean something else.")
    elif not names.OLDEST_KNOWN <= version <= names.NEWEST_KNOWN:
        said.append(
            f"Version {version} of nvprof's databases is none of {names.OLDEST_KNOWN} to "
            f"{names.NEWEST_KNOWN}, those that kernelscope was checked with: columns that changed "
            "their meaning would go unnoticed."
        )
    if len(database.processes) > 1:
        said.append(
            "The CUDA calls are of several processes, and nvprof does not say which of them a "
            "kernel belongs to: kernels have no process, and no launch."
        )
    said += [
        f"{table} has no column deviceId any more: all of it is taken to be on device 0."
        for table in names.ON_DEVICE
        if database.rows(table) and "deviceId" not in database.file.tables[table]
    ]
    if any(n.startswith("_Z") for n in tables["kernels"].categories("name")) and not available():
        said.append("Kernel names stay mangled: install pycxxfilt to read them.")
    if orphans:
        said.append(
            f"{orphans:,} NVTX ranges were open before the capture began, and are left out."
        )
    if count := unnamed_metrics(tables["counters"]):
        said.append(
            f"{count} metrics have numbers instead of names and units: nvprof writes no names, and "
            "those of this GPU's architecture are not known."
        )
    if database.rows(names.SERIAL_KERNEL) and database.rows(names.TIMELINE_KERNEL):
        said.append(
            "The database holds kernels of a timeline and of a run that executed them one by one; "
            "both count."
        )
    return tuple(said)
