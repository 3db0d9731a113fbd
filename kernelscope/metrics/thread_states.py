"""What did a thread of the host do at each moment? At each nanosecond the first that holds:

1. It waited in a synchronisation.
2. It was held up in a call that copies, allocates, frees, loads code or launches, beyond the
   call's first 50 µs (:mod:`kernelscope.metrics.waiting`).
3. It was in another CUDA call: of nested ones the innermost.
4. It was in an NVTX range or a call of the operating system: of all that were open, whatever
   their domain, the one that began last (of those that began together the shorter). A
   start/end range belongs to the thread that opened it. While any open range is named for
   fetching data, or the innermost is an operating-system call that takes data in
   (:mod:`kernelscope.metrics.data_loading`), it is *data loading*, named by the innermost. A
   range in which the thread was off its core is told apart by ``(asleep)``.
5. It was off its core, as far as the scheduling of this thread was recorded
   (:func:`kernelscope.metrics.host_time.scheduling_known`).
6. Else it ran code of which nothing is recorded; where its scheduling was not, it may have slept
   as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.data_loading import os_call_loads_data, range_loads_data
from kernelscope.metrics.grouping import Key, begins, group
from kernelscope.metrics.host_time import recording, scheduling_known
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import NO_PIECES, Pieces, ascending, touches, touching, union
from kernelscope.metrics.library_domains import is_data_pipeline
from kernelscope.metrics.open_intervals import OpenIntervals
from kernelscope.metrics.range_names import fold_all
from kernelscope.metrics.waiting import WAITS, Waiting
from kernelscope.trace import Table, Trace, distinct, is_missing

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Labels = dict[tuple[str, str], int]

ASLEEP = "thread asleep, nothing recorded"
NOT_SCHEDULED = "scheduling not recorded"
_WAIT_CAUSES = tuple(HOST + wait.replace(": ", "_") for wait in WAITS)
_SYNCHRONIZATION = 0


Cores = Mapping[Key, tuple[Pieces, Pieces]]
"""(process, thread) → when it was on a core, and when its scheduling was recorded."""


@dataclass(frozen=True, eq=False)  # no slots: what every thread asks for is kept
class Host:
    """What was recorded of the host, and the texts by which its states are called.

    Attributes
    ----------
    trace : Trace
        Its ranges, operating-system calls and scheduling.
    calls : Table
        CUDA calls without wrappers.
    waits : Waiting
        Of those calls.
    labels : dict
        (cause, detail) → code; grows as states are met.
    """

    trace: Trace
    calls: Table
    waits: Waiting
    labels: Labels

    @cached_property
    def cores(self) -> Cores:
        """When threads were on a core, found once: one that sleeps is held against all others."""
        return on_cores(self.trace, self.calls)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class States:
    """What one thread did, as steps in time.

    Attributes
    ----------
    times : ndarray of int64, shape (k,)
        Ascending, all different.
    label : ndarray of int32, shape (k,)
        Code in the labels of what it did from ``times[i]`` until the next time.
    busy : ndarray of bool, shape (k,)
        Whether it was on its core and did not wait: known only if its scheduling is.
    """

    times: Int64s
    label: Int32s
    busy: Bools


def label_code(labels: Labels, cause: str, detail: str = "") -> int:
    """Return the code of a (cause, detail), a new one if it has none yet."""
    return labels.setdefault((cause, detail), len(labels))


def rows_of(table: Table, thread: Key) -> Rows:
    """Return the rows of one (process, thread); None stands for a missing id."""
    return np.flatnonzero(_of_thread(table, thread, slice(None)))


def _of_thread(table: Table, thread: Key, rows: Rows | slice) -> Bools:
    """Return which of some rows are those of one (process, thread)."""
    mine = np.ones(len(table["process_id"][rows]), dtype=np.bool_)
    for name, value in zip(("process_id", "thread_id"), thread, strict=True):
        column = table[name][rows]
        mine &= is_missing(column) if value is None else column == value
    return mine


def driving_threads(calls: Table) -> tuple[Key, ...]:
    """Return every (process, thread) that made a CUDA call."""
    process, thread = calls["process_id"], calls["thread_id"]
    new = begins(process, thread) if len(calls) else np.empty(0, dtype=np.bool_)
    return group(process[new], thread[new]).keys


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Layer:
    """Intervals that may overlap, each with the code of what it is called."""

    start: Int64s
    end: Int64s
    label: Int32s

    def which(self, times: Int64s) -> Rows:
        """Return which interval that is open at each time began last; −1 for none."""
        return OpenIntervals.of(self.start, self.end).latest_at(times)

    def at(self, times: Int64s) -> Int32s:
        """Return what that one is called; −1 for none."""
        return _picked(self.label, self.which(times))


def thread_states(host: Host, thread: Key, within: Pieces) -> States:
    """What did a thread do at each moment of some stretches of time?

    Parameters
    ----------
    host : Host
        What was recorded.
    thread : (process, thread)
        Whose states.
    within : Pieces
        When; outside of them the states mean nothing.
    """
    calls = _calls(host, thread, within)
    waits = [_waits(host, thread, within, synchronous=each) for each in (True, False)]
    spoken = _Spoken.of(host, thread, within)
    core, scheduled = host.cores.get(thread, NOT_RECORDED)
    edges = [within, _near(core, within), scheduled, spoken.loading]
    edges += [(each.start, each.end) for each in (calls, *waits, spoken.layer)]
    times = distinct(np.concatenate([side for pieces in edges for side in pieces]))
    known = covers(scheduled, times)
    running = covers(core, times)
    asleep = known & ~running
    label = np.full(len(times), label_code(host.labels, HOST + "code", NOT_SCHEDULED), np.int32)
    label[known] = label_code(host.labels, HOST + "code")
    label[asleep] = label_code(host.labels, HOST + "off_core", ASLEEP)
    awake = known & running
    for found in (spoken.at(times, asleep), calls.at(times)):
        np.copyto(label, found, where=found >= 0)
    for each in reversed(waits):
        found = each.at(times)
        np.copyto(label, found, where=found >= 0)
        awake &= found < 0
    return States(times, label, awake)


NOT_RECORDED = (NO_PIECES, NO_PIECES)
"""What `Host.cores` would hold of a thread whose scheduling was not recorded."""


def on_cores(trace: Trace, calls: Table) -> Cores:
    """Return when each thread was on a core, and when its scheduling was recorded.

    The latter is from the first to the last record of any thread, as far as the thread's CUDA
    calls do not say otherwise. A thread without any record has no entry.

    Parameters
    ----------
    trace : Trace
        Its scheduling records are read.
    calls : Table
        Its CUDA calls.
    """
    recorded = recording(trace)
    if recorded is None:
        return {}
    start, end = trace.on_core["start_ns"], trace.on_core["end_ns"]
    threads = group(trace.on_core["process_id"], trace.on_core["thread_id"])
    callers = group(calls["process_id"], calls["thread_id"])
    calls_of = dict(zip(callers.keys, callers.rows(), strict=True))
    found: dict[Key, tuple[Pieces, Pieces]] = {}
    for key, rows in zip(threads.keys, threads.rows(), strict=True):
        core = union(start[rows], end[rows])
        began = calls["start_ns"][calls_of.get(key, slice(0))]
        found[key] = core, scheduling_known(began, core, recorded)
    return found


def covers(pieces: Pieces, times: Int64s) -> Bools:
    """Return which of some times lie in the pieces."""
    starts, ends = pieces
    if not len(starts):
        return np.zeros(len(times), dtype=np.bool_)
    place = np.searchsorted(starts, times, side="right") - 1
    return np.asarray((place >= 0) & (ends[place] > times))


def _near(pieces: Pieces, within: Pieces) -> Pieces:
    near = touches(*pieces, within)
    return pieces[0][near], pieces[1][near]


def _seen(table: Table, thread: Key, within: Pieces) -> tuple[Rows, Int64s, Int64s]:
    """Return the rows of a thread that share any time with the pieces, their starts and ends."""
    start, end = table["start_ns"], table["end_ns"]
    if ascending(start) and ascending(end):  # few are near: look at their threads alone
        rows = touching(start, end, within)
        rows = rows[_of_thread(table, thread, rows)]
    else:
        rows = rows_of(table, thread)
        rows = rows[touching(start[rows], end[rows], within)]
    return rows, start[rows], end[rows]


def _calls(host: Host, thread: Key, within: Pieces) -> _Layer:
    rows, start, end = _seen(host.calls, thread, within)
    return _Layer(start, end, labelled(host, HOST + "cuda_call", host.calls, rows))


def _waits(host: Host, thread: Key, within: Pieces, *, synchronous: bool) -> _Layer:
    waits, calls = host.waits, host.calls
    mine = (waits.kind == _SYNCHRONIZATION) == synchronous
    for name, value in zip(("process_id", "thread_id"), thread, strict=True):
        column = calls[name][waits.call]
        mine &= is_missing(column) if value is None else column == value
    mine &= touches(waits.start, waits.end, within)
    rows, kind = waits.call[mine], waits.kind[mine]
    label = np.empty(len(rows), dtype=np.int32)
    for each, cause in enumerate(_WAIT_CAUSES):
        these = kind == each
        if these.any():
            label[these] = labelled(host, cause, calls, rows[these])
    return _Layer(waits.start[mine], waits.end[mine], label)


def labelled(host: Host, cause: str, table: Table, rows: npt.NDArray[Any]) -> Int32s:
    """Return the code of (cause, name) of some rows of a table."""
    names, codes = table.categories("name"), table["name"][rows]
    code_of = np.full(len(names) + 1, -1, dtype=np.int32)
    for code in distinct(codes).tolist():
        code_of[code] = label_code(host.labels, cause, names[code] if code >= 0 else "")
    return np.asarray(code_of[codes])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Spoken:
    """The ranges and operating-system calls of a thread: what it says that it does.

    Attributes
    ----------
    layer : _Layer
        They are called so where the thread is on its core.
    asleep, fetching : ndarray of int32
        What each is called where the thread is off its core, and while it fetches data.
    fetches : ndarray of bool
        Whether it is fetching data where it is the innermost.
    loading : Pieces
        When any range was open that is named for fetching data.
    """

    layer: _Layer
    asleep: Int32s
    fetching: Int32s
    fetches: Bools
    loading: Pieces

    @classmethod
    def of(cls, host: Host, thread: Key, within: Pieces) -> _Spoken:
        ranges, names = host.trace.ranges, host.trace.ranges.categories("name")
        rows, start, end = _seen(ranges, thread, within)
        used = distinct(ranges["name"][rows]).tolist()
        folded = dict(zip(used, fold_all([names[code] for code in used]), strict=True))
        texts = dict.fromkeys(folded.values())
        number = {text: i for i, text in enumerate(texts)}
        text_of = np.full(len(names) + 1, -1, dtype=np.int32)
        text_of[used] = [number[folded[code]] for code in used]
        text = text_of[ranges["name"][rows]]
        named = _codes(host, HOST + "range", texts)
        pipeline = [is_data_pipeline(each) for each in ranges.categories("domain")]
        loads = np.array([*map(range_loads_data, texts), False], dtype=np.bool_)[text]
        loads |= np.array([*pipeline, False])[ranges["domain"][rows]]
        calls = host.trace.os_calls
        os_rows, os_start, os_end = _seen(calls, thread, within)
        os_named = labelled(host, HOST + "os_call", calls, os_rows)
        os_loads = np.array([*map(os_call_loads_data, calls.categories("name")), False])
        layer = _Layer(
            np.concatenate((start, os_start)),
            np.concatenate((end, os_end)),
            np.concatenate((named[text], os_named)),
        )
        return cls(
            layer,
            np.concatenate((_codes(host, HOST + "range", texts, " (asleep)")[text], os_named)),
            np.concatenate(
                (
                    _codes(host, HOST + "data_loading", texts)[text],
                    labelled(host, HOST + "data_loading", calls, os_rows),
                )
            ),
            np.concatenate((loads, os_loads[calls["name"][os_rows]])),
            union(start[loads], end[loads]),
        )

    def at(self, times: Int64s, asleep: Bools) -> Int32s:
        which = self.layer.which(times)
        found = _picked(self.layer.label, which)
        np.copyto(found, _picked(self.asleep, which), where=asleep)
        fetches = covers(self.loading, times)
        if len(self.fetches):
            fetches |= self.fetches[which] & (which >= 0)
        np.copyto(found, _picked(self.fetching, which), where=fetches)
        return found


def _codes(host: Host, cause: str, texts: Iterable[str], suffix: str = "") -> Int32s:
    codes = [label_code(host.labels, cause, text + suffix) for text in texts]
    return np.array([*codes, -1], dtype=np.int32)


def _picked(values: Int32s, which: Rows) -> Int32s:
    """Return the value of each row, −1 for the row −1."""
    return np.append(values, np.int32(-1))[which]
