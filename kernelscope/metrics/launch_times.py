"""When the host asked for each kernel, and on which threads: what iterations are counted by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.grouping import begins, group
from kernelscope.metrics.intervals import ordered
from kernelscope.metrics.launches import launch_rows
from kernelscope.trace import Array, Table, Trace, distinct, is_missing

Int64s = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)
"""Stands for a missing id in a column that :func:`ids` made wide."""


@dataclass(frozen=True, slots=True, eq=False)
class LaunchTimes:
    """The launch calls of a trace, of opaque graphs, too, and the call of each kernel.

    Attributes
    ----------
    call_of_kernel : ndarray of int32, shape (kernels,)
        Row in the calls without wrappers; −1 where no call was recorded.
    at : ndarray of int64, shape (kernels,)
        When the call that launched each kernel started; where there is none, the start of the
        execution stands in for it.
    process : ndarray of int64, shape (kernels,)
        The process of each kernel.
    graph_at, graph_process : ndarray of int64, shape (graphs,)
        The same of each graph that was traced as one unit.
    calls : dict of int to ndarray of int64
        Process → starts of its launch calls, sorted; of its executions, where the capture holds
        none of its calls.
    threads : frozenset of (process, thread)
        The threads that launched anything.
    """

    call_of_kernel: npt.NDArray[np.int32]
    at: Int64s
    process: Int64s
    graph_at: Int64s
    graph_process: Int64s
    calls: dict[int, Int64s]
    threads: frozenset[tuple[int, int]]


def launch_times(trace: Trace) -> LaunchTimes:
    """Find out when, and where, each kernel and each opaque graph of `trace` was launched."""
    calls = calls_without_wrappers(trace.api_calls)
    launched = np.zeros(len(calls), dtype=np.bool_)
    rows, at, process = _launched(trace.kernels, calls, launched)
    _, graph_at, graph_process = _launched(trace.graphs, calls, launched)
    callers, threads, starts = (
        calls[name] if launched.all() else calls[name][launched]
        for name in ("process_id", "thread_id", "start_ns")
    )
    by_process = _times_by(callers, starts)
    active = {*distinct(process).tolist(), *distinct(graph_process).tolist()}
    if any(each not in by_process for each in active):
        work = np.concatenate([process, graph_process]), np.concatenate([at, graph_at])
        by_process = _times_by(*work) | by_process
    pairs = _pairs(callers, threads)
    return LaunchTimes(rows, at, process, graph_at, graph_process, by_process, pairs)


def _launched(
    work: Table, calls: Table, launched: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], Int64s, Int64s]:
    """Return call, time and process of each launch, and mark those calls in `launched`."""
    rows = launch_rows(work, calls)
    at = work["start_ns"].astype(np.int64)
    found = rows >= 0
    launched[rows[found]] = True
    at[found] = calls["start_ns"][rows[found]]
    return rows, at, ids(work["process_id"])


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
    wide = column.astype(np.int64)
    wide[is_missing(column)] = UNKNOWN
    return wide
