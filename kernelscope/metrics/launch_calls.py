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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.graph_gaps import gaps_before_nodes
from kernelscope.metrics.grouping import Rows
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaunchCalls:
    """The n launch calls of a trace, read column by column as the table of :func:`launch_calls`.

    Columns that others determine are made when they are asked for: an analysis needs few of
    them at a time, and all together take more memory than the trace.

    Attributes
    ----------
    calls : Table
        The CUDA calls proper.
    own : ndarray of int or None
        Their rows in ``trace.api_calls``; None where they are all.
    launched : ndarray of bool, shape (len(calls),)
        Which of them are launch calls.
    start, end, first : ndarray of int64, shape (n,)
        When each began and returned, and when its first execution started.
    kernel : Categorical
        What each launched.
    columns : mapping of str to ndarray, shape (n,) each
        ``device_id``, ``executions`` and ``graph``, and ``intra_graph_gap_ns`` where there is
        any.
    """

    calls: Table
    own: npt.NDArray[np.intp] | None
    launched: Bools
    start: Int64s
    end: Int64s
    first: Int64s
    kernel: Categorical
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.start)

    def categories(self, name: str) -> tuple[str, ...]:
        """Return the distinct texts of a text column."""
        return self.kernel.categories if name == "kernel" else self.calls.categories(name)

    def __getitem__(self, name: str) -> Array:
        """Return a column as the table would store it; of texts, their codes."""
        if name in _MADE:
            return _MADE[name](self)
        if name in self.columns:
            return self.columns[name]
        if name == "intra_graph_gap_ns":
            return np.broadcast_to(np.int64(MISSING), self.start.shape)
        return _chosen(self.calls[name], self.launched)

    def table(self) -> Table:
        """Return every column, under ``launch_results.LAUNCH_CALLS``."""
        columns: dict[str, ColumnData] = {
            column.name: self[column.name] for column in results.LAUNCH_CALLS.columns
        }
        columns["kernel"] = self.kernel
        columns["name"] = Categorical(self["name"], self.categories("name"))
        return Table.make(results.LAUNCH_CALLS, columns)


def _row(calls: LaunchCalls) -> Int32s:
    rows = np.flatnonzero(calls.launched)
    return (rows if calls.own is None else calls.own[rows]).astype(np.int32)


def _queue(calls: LaunchCalls) -> Int64s:
    queue = calls.first - calls.end
    queue[queue < 0] = MISSING  # also where the clocks disagree
    return queue


def _latency(calls: LaunchCalls) -> Int64s:
    latency = calls.first - calls.start
    latency[latency < -CLOCK_TOLERANCE_NS] = MISSING
    return latency


def _overlap(calls: LaunchCalls) -> Int64s:
    early = calls.first < calls.end
    if not early.any():
        return np.broadcast_to(np.int64(MISSING), calls.start.shape)
    early &= ~unclear(calls.first, calls.start)
    return np.where(early, calls.end - calls.first, MISSING)


_MADE: dict[str, Callable[[LaunchCalls], Array]] = {
    "row": _row,
    "kernel": lambda calls: calls.kernel.codes,
    "start_ns": lambda calls: calls.start,
    "end_ns": lambda calls: calls.end,
    "first_start_ns": lambda calls: calls.first,
    "overhead_ns": lambda calls: np.asarray(calls.end - calls.start),
    "queue_ns": _queue,
    "latency_ns": _latency,
    "overlap_ns": _overlap,
}
"""Column → how it is made."""


class LaunchColumns(Protocol):
    """Launch calls, whether as a table or as :class:`LaunchCalls`."""

    def __len__(self) -> int: ...

    def __getitem__(self, name: str, /) -> Array: ...

    def categories(self, name: str, /) -> tuple[str, ...]:
        """Return the distinct texts of a text column."""
        ...


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
    table = find_launch_calls(trace, launches=launches).table()
    return table if window is None else table.take(starts_inside(table, window))


def find_launch_calls(
    trace: Trace, *, launches: LaunchTimes | None = None, first: Int64s | None = None
) -> LaunchCalls:
    """Find the calls of :func:`launch_calls`, without making every column.

    Parameters
    ----------
    trace, launches
        As :func:`launch_calls` takes them.
    first : ndarray of int64, shape (calls,), optional
        What :func:`first_starts` found of all of its executions.
    """
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    work = executions_by_call(trace, launches)
    if trace.capture.serialised is not None:
        work, first = [], None
    first = first_starts(work, len(calls)) if first is None else first
    launched = first != NEVER
    columns, kernel = _launched(trace, calls, work, first, int(np.count_nonzero(launched)))
    gaps = _gaps_of_calls(work, len(calls))
    if gaps is not None:
        columns["intra_graph_gap_ns"] = gaps
    texts = (*trace.kernels.categories("name"), results.GRAPH)
    return LaunchCalls(
        calls=calls,
        own=launches.own,
        launched=launched,
        start=_chosen(calls["start_ns"], launched),
        end=_chosen(calls["end_ns"], launched),
        first=_chosen(first, launched),
        kernel=Categorical(_chosen(kernel, launched), texts),
        columns={name: _chosen(column, launched) for name, column in columns.items()},
    )


def _chosen(column: Array, rows: Bools) -> Array:
    """Return the chosen rows; a value that is broadcast to all rows still is."""
    if column.strides == (0,):
        return np.broadcast_to(column[:1], int(np.count_nonzero(rows))) if len(column) else column
    return column[rows]


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
        start = each.table["start_ns"]
        known = each.call >= 0
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
    return calls.holds("name", lambda text: text.startswith(prefixes))


def _launched(
    trace: Trace, calls: Table, work: Sequence[Executions], first: Int64s, launched: int
) -> tuple[dict[str, Array], Int32s]:
    """Return device and executions of each call, and whether it launched a graph; its kernel.

    Parameters
    ----------
    trace, calls, work, first
        The executions of all calls, and when the first of each call started.
    launched : int
        How many calls have any.
    """
    known = [slice(None) if (each.call >= 0).all() else np.flatnonzero(each.call >= 0)
             for each in work]  # fmt: skip
    single = launched == sum(
        len(each.call[rows]) for each, rows in zip(work, known, strict=True)
    )  # each call started but one
    kernel = np.full(len(calls), -1, dtype=np.int32)
    graph = starts_with(calls, GRAPH_LAUNCHES)
    count: Array = np.broadcast_to(np.int32(1), first.shape)
    count = count if single else np.zeros(len(calls), dtype=np.int32)
    device = _same_device(work, len(calls))
    same = device.strides == (0,)
    rows: Rows
    for each, rows in zip(work[::-1], known[::-1], strict=True):
        call = each.call[rows]
        if "graph_node_id" not in each.table.schema.names:
            graph[call] = True
        elif not _all_missing(each.table["graph_node_id"]):
            graph[call[~is_missing(each.table["graph_node_id"][rows])]] = True
        if not single:  # the lowest row of each table stays, and that of the first table
            np.add.at(count, call, np.int32(1))
            leads = np.flatnonzero(each.table["start_ns"][rows] == first[call])[::-1]
            call = call[leads]
            picked: Rows = leads if isinstance(rows, slice) else rows[leads]
        else:
            picked = rows
        if not same:
            device[call] = each.table["device_id"][picked]
        if each.table is trace.kernels:
            kernel[call] = each.table["name"][picked]
    if graph.any():
        kernel[graph] = len(trace.kernels.categories("name"))
    return {"device_id": device, "graph": graph, "executions": count}, kernel


def _same_device(work: Sequence[Executions], calls: int) -> Array:
    """Return the device of every call, without memory, if all work is on it; else zeros."""
    devices = [each.table["device_id"] for each in work if len(each.table)]
    if devices and all(each.strides == (0,) and each[0] == devices[0][0] for each in devices):
        return np.broadcast_to(devices[0][:1], calls)
    return np.zeros(calls, dtype=np.result_type(np.int32, *devices))


def _all_missing(column: Array) -> bool:
    return bool(is_missing(column[:1] if column.strides == (0,) else column).all())


def _gaps_of_calls(work: Sequence[Executions], calls: int) -> Int64s | None:
    """Return how long none of its nodes ran between those of each call; None without any node."""
    columns = [
        _nodes(each)
        for each in work
        if "graph_node_id" in each.table.schema.names
        and not _all_missing(each.table["graph_node_id"])
    ]
    if not columns:
        return None
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
