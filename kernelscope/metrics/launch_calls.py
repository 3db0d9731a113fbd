"""Launch calls one by one: when each reached the device, and what it cost until then.

Of a launch call that starts at ``call.start``, returns at ``call.end``, and whose first execution
starts at ``first.start``:

- *overhead* = ``call.end − call.start``, inflated by tracing;
- *latency* = ``first.start − call.start``;
- *queue time* = ``first.start − call.end``; where that is negative there is none, and the time
  by which the execution started before the call returned is *overlap*.

Host and device clocks are fitted to one another by the profiler. A first execution that starts up
to 1 µs before its call is put down to that (its latency is the small negative number that was
recorded); one that starts earlier has no latency, queue time or overlap, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.graph_gaps import gaps_before_nodes
from kernelscope.metrics.health import CLOCK_TOLERANCE_NS
from kernelscope.metrics.intervals import Int64s, sums_by
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.launching import GRAPH_LAUNCHES
from kernelscope.metrics.window import Window, starts_inside
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    Trace,
    is_missing,
    missing_value,
    widened,
)

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]

MISSING = missing_value(np.dtype(np.int64))
NEVER = int(np.iinfo(np.int64).max)
"""When the first execution of a call without any starts."""


@dataclass(frozen=True, slots=True, eq=False)
class Executions:
    """Some executions, and the call that launched each.

    Attributes
    ----------
    table : Table
        Kernels, copies or graphs.
    call : ndarray of int32, shape (len(table),)
        Row in the calls without wrappers; −1 for none.
    """

    table: Table
    call: Int32s


def launch_calls(
    trace: Trace, window: Window | None = None, *, launches: LaunchTimes | None = None
) -> Table:
    """How long did each launch take to reach the device?

    A launch call is one that started a kernel, a graph node or a graph traced as one unit; of
    nested calls with one correlation id it is the innermost. Copies and memsets count as
    executions only where they are nodes of a graph. A serialised capture has none: its kernels
    waited for the profiler.

    Parameters
    ----------
    trace : Trace
        Its calls, kernels, copies and graphs are read.
    window : Window, optional
        Only calls that start in it; by default all.
    launches : LaunchTimes, optional
        What :func:`kernelscope.metrics.launch_times.launch_times` found in `trace`.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCH_CALLS``, in the order of ``trace.api_calls``. Where several
        executions of a call start at once, device and kernel are those of the first kernel row,
        else of the first whole graph, else of the first copy.
    """
    if trace.capture.serialised is not None:
        return Table.empty(results.LAUNCH_CALLS)
    launches = launches or launch_times(trace)
    own, calls = launches.own, launches.api_calls
    work = executions_by_call(trace, launches)
    first = first_starts(work, len(calls))
    rows = np.flatnonzero(first != NEVER)
    begun, start, end = first[rows], calls["start_ns"][rows], calls["end_ns"][rows]
    device, kernel, graph, count = _launched(trace, calls, work, first)
    columns: dict[str, ColumnData] = {
        name: calls[name][rows] for name in ("process_id", "thread_id", "correlation_id")
    }
    columns |= {
        "row": (rows if own is None else own[rows]).astype(np.int32),
        "name": Categorical(calls["name"][rows], calls.categories("name")),
        "kernel": Categorical(kernel[rows], (*trace.kernels.categories("name"), results.GRAPH)),
        "graph": graph[rows],
        "start_ns": start,
        "end_ns": end,
        "device_id": device[rows],
        "first_start_ns": begun,
        "executions": count[rows],
        **_times(start, end, begun),
    }
    gaps = _gaps_of_calls(work, len(calls))
    if gaps is not None:
        columns["intra_graph_gap_ns"] = gaps[rows]
    table = Table.make(results.LAUNCH_CALLS, columns)
    return table if window is None else table.take(starts_inside(table, window))


def executions_by_call(trace: Trace, launches: LaunchTimes) -> list[Executions]:
    """Return what launch calls start: kernels, graphs traced as one unit, and copies in graphs.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and graphs are read.
    launches : LaunchTimes
        The calls of its kernels, copies and graphs.
    """
    nodes = np.flatnonzero(~is_missing(trace.copies["graph_node_id"]))
    others = (
        Executions(trace.graphs, launches.call_of_graph),
        Executions(trace.copies.take(nodes), launches.call_of_copy[nodes]),
    )
    return [
        Executions(trace.kernels, launches.call_of_kernel),
        *(each for each in others if len(each.table)),
    ]


def first_starts(work: Sequence[Executions], calls: int) -> Int64s:
    """Return when the first execution of each call starts, shape (calls,); `NEVER` for none."""
    first = np.full(calls, NEVER)
    for each in work:
        known = each.call >= 0
        start = each.table["start_ns"]
        if known.all():
            np.minimum.at(first, each.call, start)
        else:
            np.minimum.at(first, each.call[known], start[known])
    return first


def unclear(first: Int64s, start: Int64s) -> Bools:
    """Return which first executions start so long before their call that the clocks disagree."""
    return np.asarray(start - first > CLOCK_TOLERANCE_NS)


def intra_graph_gaps(trace: Trace, *, launches: LaunchTimes | None = None) -> tuple[Int64s, Int64s]:
    """How long had no node of its graph launch been running when each later node started?

    Parameters
    ----------
    trace : Trace
        Its calls, kernels and copies are read.
    launches : LaunchTimes, optional
        The calls of its kernels.

    Returns
    -------
    kernels, copies : ndarray of int64, shape (kernels,) and (copies,)
        In ns, 0 where an earlier node still ran; missing for the first node of a launch, for
        what is no node, and where the launch was not recorded.
    """
    launches = launches or launch_times(trace)
    call = np.concatenate((launches.call_of_kernel, launches.call_of_copy))
    node, start, end = (
        np.concatenate((widened(trace.kernels[name]), widened(trace.copies[name])))
        for name in ("graph_node_id", "start_ns", "end_ns")
    )
    rows = np.flatnonzero(~is_missing(node) & (call >= 0))
    gaps = np.full(len(node), MISSING)
    gaps[rows] = gaps_before_nodes(call[rows], start[rows], end[rows])
    return gaps[: len(trace.kernels)], gaps[len(trace.kernels) :]


def starts_with(calls: Table, prefixes: tuple[str, ...]) -> Bools:
    """Return which calls have a name that begins with one of `prefixes`."""
    table = [text.startswith(prefixes) for text in calls.categories("name")] + [False]
    return np.array(table, dtype=np.bool_)[calls["name"]]


def _launched(
    trace: Trace, calls: Table, work: Sequence[Executions], first: Int64s
) -> tuple[Array, Int32s, Bools, Int32s]:
    """Return of each call: device and kernel of its first execution, if a graph, executions."""
    wide = np.result_type(*(each.table["device_id"].dtype for each in work))
    device = np.zeros(len(calls), dtype=wide)
    kernel = np.full(len(calls), -1, dtype=np.int32)
    graph = starts_with(calls, GRAPH_LAUNCHES)
    count = np.zeros(len(calls), dtype=np.int32)
    for each in reversed(work):  # kernels come last, and the lowest row of each table: they stay
        call = each.call
        rows = np.flatnonzero(call >= 0) if (call < 0).any() else np.arange(len(call))
        np.add.at(count, call[rows], np.int32(1))
        if "graph_node_id" not in each.table.schema.names:
            graph[call[rows]] = True
        else:
            nodes = ~is_missing(each.table["graph_node_id"])
            graph[call[rows[nodes[rows]]]] = True
        rows = rows[each.table["start_ns"][rows] == first[call[rows]]][::-1]
        device[call[rows]] = each.table["device_id"][rows]
        if each.table is trace.kernels:
            kernel[call[rows]] = each.table["name"][rows]
    kernel[graph] = len(trace.kernels.categories("name"))
    return device, kernel, graph, count


def _gaps_of_calls(work: Sequence[Executions], calls: int) -> Int64s | None:
    """Return how long none of its nodes ran between those of each call; None without any node."""
    columns = [_nodes(each) for each in work if "graph_node_id" in each.table.schema.names]
    call, start, end = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    if not len(call):
        return None
    gaps = gaps_before_nodes(call, start, end)
    total = np.full(calls, MISSING)
    total[call] = sums_by(call, np.where(gaps == MISSING, 0, gaps), calls)[call]
    return total


def _nodes(work: Executions) -> tuple[Int32s, Int64s, Int64s]:
    rows = np.flatnonzero(~is_missing(work.table["graph_node_id"]) & (work.call >= 0))
    return work.call[rows], work.table["start_ns"][rows], work.table["end_ns"][rows]


def _times(start: Int64s, end: Int64s, first: Int64s) -> dict[str, ColumnData]:
    """Return overhead, queue time, latency and overlap of calls."""
    doubtful = unclear(first, start)
    queue, latency = first - end, first - start
    early = queue < 0
    columns: dict[str, ColumnData] = {"overhead_ns": end - start, "latency_ns": latency}
    if early.any():  # else there is none, which takes no memory
        columns["overlap_ns"] = np.where(early & ~doubtful, -queue, MISSING)
    queue[early] = MISSING  # also where the clocks disagree
    latency[doubtful] = MISSING
    return columns | {"queue_ns": queue}
