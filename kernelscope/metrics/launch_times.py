"""When the host asked for each kernel, and on which threads: what iterations are counted by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.api_calls import rows_without_wrappers
from kernelscope.metrics.grouping import begins, group
from kernelscope.metrics.intervals import ordered
from kernelscope.metrics.launches import launch_rows
from kernelscope.trace import Array, Table, Trace, distinct, is_missing

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)
"""Stands for a missing id in a column that :func:`ids` made wide."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaunchTimes:
    """The launch calls of a trace, and the call of each kernel, copy and opaque graph.

    Attributes
    ----------
    api_calls : Table
        The CUDA calls proper: those of the trace without call-chain wrappers.
    own : ndarray of int or None
        Their rows in ``trace.api_calls``; None where they are all.
    call_of_kernel, call_of_copy, call_of_graph : ndarray of int32
        Row in `api_calls` for each row of ``trace.kernels``, ``trace.copies`` and
        ``trace.graphs``; −1 where no call was recorded.
    threads : frozenset of (process, thread)
        The threads that launched kernels or graphs.
    """

    api_calls: Table
    own: npt.NDArray[np.intp] | None
    call_of_kernel: Int32s
    call_of_copy: Int32s
    call_of_graph: Int32s
    threads: frozenset[tuple[int, int]]


def launch_times(trace: Trace) -> LaunchTimes:
    """Which call launched each kernel, copy and opaque graph of `trace`, when, and where?"""
    own = rows_without_wrappers(trace.api_calls)
    calls = trace.api_calls if own is None else trace.api_calls.take(own)
    of_kernel, of_copy, of_graph = (
        launch_rows(work, calls) for work in (trace.kernels, trace.copies, trace.graphs)
    )
    launched = marked_rows(len(calls), of_kernel, of_graph)
    callers, threads = (_picked(calls[name], launched) for name in ("process_id", "thread_id"))
    return LaunchTimes(calls, own, of_kernel, of_copy, of_graph, _pairs(callers, threads))


def calls_by_process(trace: Trace, launches: LaunchTimes) -> dict[int, Int64s]:
    """When did each process launch kernels and opaque graphs?

    Returns
    -------
    dict of int to ndarray of int64
        Process → starts of the calls that launched any, sorted; of its executions, where the
        capture holds none of its calls.
    """
    calls = launches.api_calls
    launched = marked_rows(len(calls), launches.call_of_kernel, launches.call_of_graph)
    callers, starts = (_picked(calls[name], launched) for name in ("process_id", "start_ns"))
    by_process = _times_by(callers, starts)
    works = (trace.kernels, launches.call_of_kernel), (trace.graphs, launches.call_of_graph)
    active = {each for work, _ in works for each in distinct(ids(work["process_id"])).tolist()}
    if all(each in by_process for each in active):
        return by_process
    process = np.concatenate([ids(work["process_id"]) for work, _ in works])
    at = np.concatenate([called_at(work, rows, launches) for work, rows in works])
    return _times_by(process, at) | by_process


def marked_rows(count: int, *rows: Int32s) -> npt.NDArray[np.bool_]:
    """Return which of `count` calls are among `rows`, in which −1 stands for none."""
    marked = np.zeros(count + 1, dtype=np.bool_)  # the spare last place stands for −1
    for some in rows:
        marked[some] = True
    return marked[:-1]


def called_at(work: Table, rows: Int32s, launches: LaunchTimes) -> Int64s:
    """When was each of some executions launched? Where that is not known, when did it begin?

    Parameters
    ----------
    work : Table
        Kernels, copies or graphs.
    rows : ndarray of int32, shape (n,)
        What `launches` says of them: the rows of their calls.
    launches : LaunchTimes
        Of the same trace.
    """
    calls, found = launches.api_calls, rows >= 0
    if found.all():
        return np.asarray(calls["start_ns"][rows])
    at = work["start_ns"].copy()
    at[found] = calls["start_ns"][rows[found]]
    return at


def _picked(column: Array, chosen: npt.NDArray[np.bool_]) -> Array:
    """Return the chosen rows; a value that is broadcast to all rows still is."""
    if column.strides == (0,):
        return np.broadcast_to(column[:1], int(np.count_nonzero(chosen)))
    return column if chosen.all() else column[chosen]


def _pairs(processes: Array, threads: Array) -> frozenset[tuple[int, int]]:
    """Return the distinct (process, thread): of stretches of calls, which are far fewer."""
    new = begins(processes, threads)
    keys = group(processes[new], threads[new]).keys
    return frozenset((_known(process), _known(thread)) for process, thread in keys)


def _times_by(process: Array, times: Int64s) -> dict[int, Int64s]:
    """Return the times of each process, sorted."""
    groups = group(process)
    return {
        _known(key): ordered(times[rows])
        for (key,), rows in zip(groups.keys, groups.rows(), strict=True)
    }


def _known(value: int | None) -> int:
    return UNKNOWN if value is None else value


def ids(column: Array) -> Int64s:
    """Return a column of ids as int64, with `UNKNOWN` where missing, however it is stored."""
    if column.dtype == np.int64:
        return column
    if len(column) and column.strides == (0,):  # one value, broadcast to all rows
        return np.broadcast_to(ids(column[:1].copy()), column.shape)
    wide = column.astype(np.int64)
    wide[is_missing(column)] = UNKNOWN
    return wide
