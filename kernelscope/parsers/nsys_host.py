"""What the host did beside calling CUDA: events, operating-system calls, threads on cores."""

from __future__ import annotations

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import integers
from kernelscope.parsers.nsys_events import present, thread_event
from kernelscope.parsers.nsys_export import Export, first_present
from kernelscope.trace import Array, Table, is_missing

PLAUSIBLE_CORES = 1 << 16


def event_records_table(export: Export) -> Table:
    """Return where CUDA events were recorded.

    When is told by the call that recorded them: the rows carry no time of their own (the column
    ``timestamp`` of 2026 was 0 in the files seen).
    """
    wanted = ("deviceId", "globalPid", *names.EVENT_COLUMNS.values(), "eventId")
    read = export.read(names.EVENT_RECORDS, wanted)
    if not read.rows:
        return Table.empty(schema.EVENT_RECORDS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    columns = {
        "process_id": export.process_of_global_pid(numbers.get("globalPid"), read.rows),
        "device_id": numbers.get("deviceId"),
        "event_id": numbers.get("eventId"),
        **{ours: numbers.get(theirs) for ours, theirs in names.EVENT_COLUMNS.items()},
    }
    return Table.make(schema.EVENT_RECORDS, present(columns))


def os_calls_table(export: Export) -> Table:
    """Return the calls of the operating system's libraries.

    Rows of another event class tell when this tracing began and ended; they are no calls.
    """
    read = export.read(names.OS_CALLS, ("start", "end", "globalTid", "nameId", "eventClass"))
    if not read.rows:
        return Table.empty(schema.OS_CALLS)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n != "nameId"}
    columns = thread_event(export, numbers, read.rows)
    columns["name"] = first_present(
        export.texts(read.columns.get("nameId")), default="[unnamed]", rows=read.rows
    )
    table = Table.make(schema.OS_CALLS, columns)
    kind = numbers.get("eventClass")
    calls = None if kind is None else kind == names.OS_CALL_CLASS
    return table if calls is None or calls.all() else table.take(calls)


def on_core_table(export: Export) -> Table:
    """Return the stretches in which threads ran, from the records of their being switched.

    A thread is on its core from a record of being switched in to its next one of being switched
    out. A thread that was first seen being switched out was running when recording began; one
    that was not switched out again ran until it ended. Both ends are those of the first and
    last record of any thread.
    """
    read = export.read(names.SCHEDULING, ("start", "cpu", "isSchedIn", "globalTid"))
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    time, thread, switched_in = (numbers.get(n) for n in ("start", "globalTid", "isSchedIn"))
    if time is None or thread is None or switched_in is None or not read.rows:
        return Table.empty(schema.ON_CORE)
    known = np.flatnonzero(~(is_missing(time) | is_missing(thread) | is_missing(switched_in)))
    order = known[np.lexsort((time[known], thread[known]))]  # stable: equal times as recorded
    if not len(order):
        return Table.empty(schema.ON_CORE)
    start, end, row = _stretches(time[order], thread[order], switched_in[order] != 0)
    cpu = numbers.get("cpu")
    columns = thread_event(
        export, {"start": start, "end": end, "globalTid": thread[order][row]}, len(row)
    )
    return Table.make(
        schema.ON_CORE, columns | present({"cpu": None if cpu is None else cpu[order][row]})
    )


def _stretches(time: Array, thread: Array, switched_in: Array) -> tuple[Array, Array, Array]:
    """Return start, end, and a row of each stretch, of records sorted by thread, then time."""
    new = np.ones(len(time) + 1, dtype=np.bool_)
    np.not_equal(thread[1:], thread[:-1], out=new[1:-1])
    first, last = new[:-1], new[1:]
    in_before = np.concatenate(([False], switched_in[:-1])) & ~first
    begins = switched_in & ~in_before
    running = ~switched_in & first
    ends = ~switched_in & (in_before | first)
    lasting = switched_in & last
    order = np.flatnonzero(begins | running)
    start = np.where(running, time.min(), time)[order]
    end = np.where(lasting, time.max(), time)[np.flatnonzero(ends | lasting)]
    return start, end, order


def cpu_cores(export: Export) -> int | None:
    """Return how many processor cores the machine has; None where the file does not say.

    Of the table that also holds the program's environment this one value is asked for, and
    nothing else of it is read.
    """
    text = export.file.value_of(names.SYSTEM, "name", "CpuCores", "value")
    if text is None or not text.isdigit() or not 0 < int(text) < PLAUSIBLE_CORES:
        return None
    return int(text)
