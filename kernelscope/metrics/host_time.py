"""When the threads of the host worked, when they only waited, and what says so.

A thread that is on its core is not thereby working: CUDA spins while it waits. And one inside a
CUDA call need not be on its core: it may wait for a lock. So where scheduling was recorded, a
thread is busy while on its core less its waits; where it was not, inside CUDA calls less its
waits, and what it does between calls remains unknown (METRICS, *CPU–GPU overlap*).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Groups, Rows, group
from kernelscope.metrics.intervals import (
    NO_PIECES,
    Pieces,
    clip,
    intersection,
    subtract,
    sums_by,
    total,
    union,
    unite,
)
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.overlap_results import API_CALLS, MIXED, SCHEDULING
from kernelscope.metrics.waiting import WAITS, Waiting, waiting
from kernelscope.metrics.window import Window, clipped_durations, starts_inside, whole
from kernelscope.trace import Table, Trace

Int64s = npt.NDArray[np.int64]
ThreadKey = tuple[int | None, ...]
"""(process, thread), None where it was not recorded."""

CONTRADICTION_NS = 1_000_000
"""Scheduling records that have a thread off its core this long before its first time on one,
though it began a CUDA call then, do not reach back so far; likewise after its last."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThreadTime:
    """How one driving thread spent the window: one inside a CUDA call in it.

    Attributes
    ----------
    process_id, thread_id : int or None
        Who it is.
    source : str
        One of ``CPU_SOURCES``.
    calls : int
        CUDA calls that start in the window, without wrappers.
    on_core : Pieces or None
        When it was on a core; None without scheduling records.
    busy : Pieces
        When it worked.
    high : Pieces or None
        When it may have worked, going by its NVTX ranges; None where `busy` is exact, or where
        it has none.
    waits : tuple of Pieces
        When it waited, one set per kind of `WAITS`; no moment is in two of them, or in `busy`.
    unscheduled : Pieces
        The part of the window in which it is known by its CUDA calls alone.
    """

    process_id: int | None
    thread_id: int | None
    source: str
    calls: int
    on_core: Pieces | None
    busy: Pieces
    high: Pieces | None
    waits: tuple[Pieces, ...]
    unscheduled: Pieces


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProcessTime:
    """How the driving threads of one process spent the window, taken together.

    Attributes
    ----------
    source : str
        One of ``CPU_SOURCES``.
    threads : int
        How many driving threads there are; at least one.
    busy : Pieces
        When any of them worked.
    high : Pieces or None
        When any may have worked; None where `busy` is exact or nothing more is known.
    waits : tuple of Pieces
        When none of them worked and one waited, one set per kind of `WAITS`; each moment in the
        first that holds.
    unscheduled : Pieces
        When any of them is known by its CUDA calls alone.
    """

    source: str
    threads: int
    busy: Pieces
    high: Pieces | None
    waits: tuple[Pieces, ...]
    unscheduled: Pieces


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HostActivity:
    """What the host did in a window.

    Attributes
    ----------
    window : Window
        The window.
    threads : tuple of ThreadTime
        The driving threads, by process and thread.
    processes : mapping of process to ProcessTime
        Those with driving threads.
    others : mapping of (process, thread) to int
        How long each other thread was on a core in the window, ns; those that were.
    callers : frozenset of process
        The processes of which any CUDA call was recorded, in the window or not.
    scheduled : frozenset of process
        The processes of which any thread's scheduling was recorded.
    """

    window: Window
    threads: tuple[ThreadTime, ...]
    processes: Mapping[int | None, ProcessTime]
    others: Mapping[ThreadKey, int]
    callers: frozenset[int | None]
    scheduled: frozenset[int | None]

    def others_on_core_ns(self, process: int | None) -> int | None:
        """Return Σ time on a core of the threads of `process` that drive nothing."""
        if process not in self.scheduled:
            return None
        return sum(time for key, time in self.others.items() if key[0] == process)


def host_activity(
    trace: Trace,
    window: Window | None = None,
    *,
    launches: LaunchTimes | None = None,
    waits: Waiting | None = None,
) -> HostActivity:
    """When did the host's threads work, and when did they wait?

    Parameters
    ----------
    trace : Trace
        Its CUDA calls, scheduling records and NVTX ranges are read.
    window : Window, optional
        The whole trace by default.
    launches : LaunchTimes, optional
        Of the same trace; found out where it is needed and not given.
    waits : Waiting, optional
        Of the same trace's calls without wrappers, likewise.
    """
    window = window or whole(trace)
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    callers = group(calls["process_id"], calls["thread_id"])
    recorded = recording(trace)
    running = group(trace.on_core["process_id"], trace.on_core["thread_id"])
    waits = waits or waiting(trace, launches)
    driven = _driving(calls, callers, running, window, waits)
    threads = _with_ranges(
        trace, window, [_thread_time(trace, window, recorded, mine) for mine in driven]
    )
    driving = {(each.process_id, each.thread_id) for each in threads}
    owners = list(dict.fromkeys(each.process_id for each in threads))
    return HostActivity(
        window=window,
        threads=threads,
        processes={
            owner: _process_time([each for each in threads if each.process_id == owner])
            for owner in owners
        },
        others={
            key: time
            for key, time in _on_core_by_thread(trace, running, window)
            if key not in driving
        },
        callers=frozenset(key[0] for key in callers.keys),
        scheduled=frozenset(key[0] for key in running.keys),
    )


def recording(trace: Trace) -> tuple[int, int] | None:
    """Return from when to when thread scheduling was recorded; None where it was not."""
    events = trace.on_core
    if not len(events):
        return None
    return int(events["start_ns"].min()), int(events["end_ns"].max())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Caller:
    """The CUDA calls of one thread, of the whole trace, and those of the window, clipped."""

    key: ThreadKey
    began: Int64s
    count: int
    inside: Pieces
    waits: tuple[Pieces, ...]
    stretches: Rows | None


def _driving(
    calls: Table, callers: Groups, running: Groups, window: Window, waits: Waiting
) -> list[_Caller]:
    """Return the threads inside a CUDA call in the window."""
    started = starts_inside(calls, window)
    bounds = window.start_ns, window.end_ns
    waits_of = _by_thread(callers, waits)
    stretches = dict(zip(running.keys, running.rows(), strict=True))
    found: list[_Caller] = []
    for number, (key, rows) in enumerate(zip(callers.keys, callers.rows(), strict=True)):
        began = calls["start_ns"][rows]
        start, end, _ = clip(began, calls["end_ns"][rows], *bounds)
        if len(start):
            mine = waits_of[number]
            kinds = _by_kind(waits, mine, bounds) if len(mine) else (NO_PIECES,) * len(WAITS)
            count = int(np.count_nonzero(started[rows]))
            found.append(_Caller(key, began, count, (start, end), kinds, stretches.get(key)))
    return found


def _by_thread(callers: Groups, waits: Waiting) -> list[npt.NDArray[np.intp]]:
    """Return the rows of `waits` of each thread."""
    if callers.codes is None:
        return [np.arange(len(waits.call))] * len(callers.keys)
    code = callers.codes[waits.call]
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(1, len(callers.keys)))
    return np.split(order, bounds)


def _by_kind(
    waits: Waiting, rows: npt.NDArray[np.intp], bounds: tuple[int, int]
) -> tuple[Pieces, ...]:
    """Return when a thread waited, one set per kind; each moment in the first that holds."""
    kind = waits.kind[rows]
    found = []
    for code in range(len(WAITS)):
        mine = rows[kind == code]
        start, end, _ = clip(waits.start[mine], waits.end[mine], *bounds)
        found.append(union(start, end))
    return _first_that_holds(found)


def _first_that_holds(sets: Sequence[Pieces]) -> tuple[Pieces, ...]:
    """Return the sets, each without what lies in a set that stands before it."""
    found: list[Pieces] = []
    before = NO_PIECES
    for each in sets:
        if len(each[0]):
            found.append(subtract(each, before))
            before = unite(before, each)
        else:
            found.append(NO_PIECES)
    return tuple(found)


def _thread_time(
    trace: Trace, window: Window, recorded: tuple[int, int] | None, mine: _Caller
) -> ThreadTime:
    """Work out when a thread was busy, from the best that was recorded of it."""
    waited = unite(*mine.waits)
    called = subtract(union(*mine.inside), waited)
    everything = _piece(window.start_ns, window.end_ns)
    on_core: Pieces | None = None
    busy, unscheduled, source = called, everything, API_CALLS
    if mine.stretches is not None and recorded is not None:
        events = trace.on_core["start_ns"][mine.stretches], trace.on_core["end_ns"][mine.stretches]
        known = intersection(everything, scheduling_known(mine.began, events, recorded))
        start, end, _ = clip(*events, window.start_ns, window.end_ns)
        on_core = union(start, end)
        unscheduled = subtract(everything, known)
        busy = subtract(on_core, waited)
        source = SCHEDULING
        if total(unscheduled):
            busy = unite(busy, intersection(called, unscheduled))
            source = MIXED if total(known) else API_CALLS
    return ThreadTime(
        process_id=mine.key[0],
        thread_id=mine.key[1],
        source=source,
        calls=mine.count,
        on_core=on_core,
        busy=busy,
        high=None,
        waits=mine.waits,
        unscheduled=unscheduled,
    )


def scheduling_known(began: Int64s, stretches: Pieces, recorded: tuple[int, int]) -> Pieces:
    """Return when scheduling was recorded of a thread that began CUDA calls at some times.

    A call begins on a core. One that began well before the thread's first stretch, or after its
    last, tells that the records do not reach so far; one from before all recording tells nothing.

    Parameters
    ----------
    began : ndarray of int64, shape (c,)
        When it began CUDA calls, in the whole trace.
    stretches : Pieces
        When it was on a core; at least once.
    recorded : (int, int)
        From when to when the scheduling of any thread was recorded.
    """
    low, high = recorded
    if not len(began):
        return _piece(low, high)
    first, last = int(stretches[0].min()), int(stretches[1].max())
    if int(began.min()) < first - CONTRADICTION_NS:
        early = (began >= low) & (began < first - CONTRADICTION_NS)
        low = first if early.any() else low
    if int(began.max()) > last + CONTRADICTION_NS:
        late = (began <= high) & (began > last + CONTRADICTION_NS)
        high = last if late.any() else high
    return _piece(low, high)


def _piece(start: int, end: int) -> Pieces:
    """Return one interval as pieces; none where it has no length."""
    if start >= end:
        return NO_PIECES
    return np.array([start], dtype=np.int64), np.array([end], dtype=np.int64)


def _with_ranges(
    trace: Trace, window: Window, threads: Sequence[ThreadTime]
) -> tuple[ThreadTime, ...]:
    """Say when threads that calls alone tell of may have been busy, going by their ranges."""
    events = trace.ranges
    if all(each.source == SCHEDULING for each in threads):
        return tuple(threads)
    owners = group(events["process_id"], events["thread_id"])
    rows_of = dict(zip(owners.keys, owners.rows(), strict=True))
    found: list[ThreadTime] = []
    for each in threads:
        rows = rows_of.get((each.process_id, each.thread_id))
        if each.source != SCHEDULING and each.thread_id is not None and rows is not None:
            start, end = events["start_ns"][rows], events["end_ns"][rows]
            start, end, _ = clip(start, end, window.start_ns, window.end_ns)
            open_ = intersection(union(start, end), each.unscheduled)
            high = unite(each.busy, subtract(open_, unite(*each.waits)))
            found.append(replace(each, high=high))
        else:
            found.append(each)
    return tuple(found)


def _process_time(threads: Sequence[ThreadTime]) -> ProcessTime:
    """Take the driving threads of a process together."""
    busy = unite(*(each.busy for each in threads))
    sources = {each.source for each in threads}
    highs = [each.high for each in threads if each.high is not None]
    waits = [unite(*(each.waits[kind] for each in threads)) for kind in range(len(WAITS))]
    return ProcessTime(
        source=sources.pop() if len(sources) == 1 else MIXED,
        threads=len(threads),
        busy=busy,
        high=unite(busy, *highs) if highs else None,
        waits=tuple(subtract(each, busy) for each in _first_that_holds(waits)),
        unscheduled=unite(*(each.unscheduled for each in threads)),
    )


def _on_core_by_thread(
    trace: Trace, running: Groups, window: Window
) -> list[tuple[ThreadKey, int]]:
    """Return how long each thread was on a core in the window, of those that were."""
    inside = clipped_durations(trace.on_core, window)
    codes = np.zeros(len(inside), dtype=np.intp) if running.codes is None else running.codes
    time = sums_by(codes, inside, len(running.keys)).tolist()
    return [(key, ns) for key, ns in zip(running.keys, time, strict=True) if ns]
