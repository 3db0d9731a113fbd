"""The calls that launched work, in order of time on each thread, and what each launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Key, begins, group
from kernelscope.metrics.intervals import ascending, latest, sorting
from kernelscope.metrics.launch_times import LaunchTimes, launch_times, marked_rows
from kernelscope.metrics.runs import expanded
from kernelscope.trace import Table, Trace, is_missing

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Launching:
    """The m host calls that launched any kernel, copy, memset or graph traced as one unit.

    Attributes
    ----------
    rows : ndarray of int32, shape (m,)
        Row of each call in ``trace.api_calls``: by thread, then by start.
    start, end : ndarray of int64, shape (m,)
        When each began and ended, in ns.
    graph : ndarray of bool, shape (m,)
        Whether it launched a CUDA graph.
    threads : mapping of (process, thread) to slice
        Where each thread's calls stand.
    kernel_call, copy_call, graph_call : ndarray of int32
        The call, as a number from 0 to m − 1, that launched each row of ``trace.kernels``,
        ``trace.copies`` and ``trace.graphs``; −1 where there is none.
    kernel_row, copy_row, graph_row : ndarray of int32
        The same as rows of ``trace.api_calls``.
    """

    rows: Int32s
    start: Int64s
    end: Int64s
    graph: Bools
    threads: Mapping[Key, slice]
    kernel_call: Int32s
    copy_call: Int32s
    graph_call: Int32s
    kernel_row: Int32s
    copy_row: Int32s
    graph_row: Int32s

    def __len__(self) -> int:
        return len(self.rows)


def launching(
    trace: Trace, launches: LaunchTimes | None = None, *, opaque: bool = True
) -> Launching:
    """Which calls launched work?

    Call-chain wrappers are left out: they stand around calls that are rows themselves. So are
    the launches of graphs traced as one unit where `opaque` is not set, as in ``nsys stats``.
    """
    launches = launches or launch_times(trace)
    calls, own = launches.api_calls, launches.own
    of_graph = launches.call_of_graph
    launched_by = [
        launches.call_of_kernel,
        launches.call_of_copy,
        of_graph if opaque else np.full_like(of_graph, -1),
    ]
    keys, parts = _by_thread(calls, np.flatnonzero(marked_rows(len(calls), *launched_by)))
    parts = [_by_start(part, calls["start_ns"]) for part in parts]
    order = np.concatenate([np.empty(0, dtype=np.int32), *parts])
    bounds = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    number = np.full(len(calls) + 1, -1, dtype=np.int32)  # the spare last place stands for −1
    number[order] = np.arange(len(order), dtype=np.int32)
    kernel_call, copy_call, graph_call = (number[by] for by in launched_by)
    kernel_row, copy_row, graph_row = (_outside(by, own) for by in launched_by)
    return Launching(
        rows=_outside(order, own),
        start=calls["start_ns"][order],
        end=calls["end_ns"][order],
        graph=_graph_launches(calls, order)
        | marked_rows(
            len(order),
            _of_nodes(trace.kernels, kernel_call),
            _of_nodes(trace.copies, copy_call),
            graph_call,
        ),
        threads={key: slice(*pair) for key, pair in zip(keys, pairwise(bounds), strict=True)},
        kernel_call=kernel_call,
        copy_call=copy_call,
        graph_call=graph_call,
        kernel_row=kernel_row,
        copy_row=copy_row,
        graph_row=graph_row,
    )


def _outside(rows: Int32s, own: npt.NDArray[Any] | None) -> Int32s:
    if own is None or not len(own):
        return rows
    return np.where(rows < 0, np.int32(-1), own[rows]).astype(np.int32)


def _by_thread(calls: Table, rows: npt.NDArray[np.intp]) -> tuple[tuple[Key, ...], list[Int32s]]:
    """Return the threads that made some calls, and the calls of each.

    Calls are recorded thread by thread or by time, and a thread makes many in a row: stretches
    of them are far fewer than calls.
    """
    process, thread = (
        calls[name] if len(rows) == len(calls) else calls[name][rows]
        for name in ("process_id", "thread_id")
    )
    first = np.flatnonzero(begins(process, thread))
    last = np.append(first[1:], len(rows))
    whose = group(process[first], thread[first])
    narrow = rows.astype(np.int32)
    return whose.keys, [
        narrow[expanded(first[stretches], last[stretches])[1]] for stretches in whose.rows()
    ]


def _by_start(rows: Int32s, start: npt.NDArray[Any]) -> Int32s:
    times = start[rows]
    in_order = bool((times[1:] >= times[:-1]).all())
    return rows if in_order else rows[sorting(times)]


def _graph_launches(calls: Table, rows: Int32s) -> Bools:
    """Return which calls launch a CUDA graph by their names."""
    table = [text.startswith(GRAPH_LAUNCHES) for text in calls.categories("name")] + [False]
    return np.array(table, dtype=np.bool_)[calls["name"][rows]]


def _of_nodes(work: Table, call: Int32s) -> Int32s:
    """Return the calls that launched the nodes of graphs."""
    return call[np.flatnonzero(~is_missing(work["graph_node_id"]))]


def calls_open_at(calls: Table, process: int | None, thread: int | None, times: Int64s) -> Bools:
    """Return, for each of `times`, whether a thread was inside a CUDA call of its own.

    Call-chain wrappers count, too: they are the thread's own calls just as well.
    """
    mine = np.flatnonzero(_is(calls["process_id"], process) & _is(calls["thread_id"], thread))
    start, end = calls["start_ns"][mine], calls["end_ns"][mine]
    if not ascending(start):
        order = sorting(start)
        start, end = start[order], end[order]
    # One is open if any that has begun ends later.
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)))
    place = latest(start, times) if ascending(times) else np.searchsorted(start, times, "right") - 1
    return np.asarray(reach[place + 1] > times)


def _is(column: npt.NDArray[Any], value: int | None) -> Bools:
    return np.asarray(is_missing(column) if value is None else column == value)
