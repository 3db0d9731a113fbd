"""What launches cost the host, and how long they wait for the device: by call and by kernel.

The definitions of overhead, latency, queue time and overlap stand in
:mod:`kernelscope.metrics.launch_calls`. A launch counts, with its queue time and latency
unclipped, where its *call* starts; its own duration is summed clipped to the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.aggregate import by_total, durations_by_group, sizes, statistics_by_group
from kernelscope.metrics.api_calls import calls_without_wrappers, rows_without_wrappers
from kernelscope.metrics.intervals import Int64s, sums_by
from kernelscope.metrics.launch_calls import (
    MISSING,
    LaunchColumns,
    find_launch_calls,
)
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, widened

Bools = npt.NDArray[np.bool_]

LAUNCH_NAMES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch")
NOT_LAUNCHES = ("cudaLaunchHostFunc", "cuLaunchHostFunc")
"""What calls that launch kernels or graphs are called, and calls so named that do not."""


def launches(
    trace: Trace, window: Window | None = None, *, calls: LaunchColumns | None = None
) -> Table:
    """What do launches cost the host, and how long do they wait for the device?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default all of it. A launch counts, with its queue time and latency
        unclipped, where its *call* starts; ``total_ns`` is clipped.
    calls : LaunchCalls or Table, optional
        What :func:`kernelscope.metrics.launch_calls.find_launch_calls`, or ``launch_calls``
        without a window, returned of the whole of `trace`.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCHES``: a row per call name, longest total first.
    """
    window = window or whole(trace)
    calls = find_launch_calls(trace) if calls is None else calls
    return _by_name(trace, window, calls, _counted(calls, window))


def _by_name(trace: Trace, window: Window, calls: LaunchColumns, counted: _Counted) -> Table:
    names = trace.api_calls.categories("name")
    columns = _figures(counted, calls["name"], names)
    columns["without_execution"] = _without_execution(trace, window, calls)
    return by_total(results.LAUNCHES, columns, "calls", "without_execution")


def launches_by_kernel(
    trace: Trace, window: Window | None = None, *, calls: LaunchColumns | None = None
) -> Table:
    """Which kernels' launches cost the host, or wait for the device?

    A call counts once, for the kernel that it launched; calls that launch graphs stand under
    ``[CUDA graph]``.

    Parameters
    ----------
    trace, window, calls
        As :func:`launches` takes them.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCHES_BY_KERNEL``, longest total first.
    """
    window = window or whole(trace)
    calls = find_launch_calls(trace) if calls is None else calls
    return _by_kernel(calls, _counted(calls, window))


def _by_kernel(calls: LaunchColumns, counted: _Counted) -> Table:
    columns = _figures(counted, calls["kernel"], calls.categories("kernel"))
    return by_total(results.LAUNCHES_BY_KERNEL, columns, "calls")


def launch_totals(
    trace: Trace, window: Window | None = None, *, calls: LaunchColumns | None = None
) -> Table:
    """How long do all launches take to reach the device?

    Parameters
    ----------
    trace, window, calls
        As :func:`launches` takes them.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCH_TOTALS``: one row, named ``all``; none where no call of the
        trace launched anything.
    """
    window = window or whole(trace)
    calls = find_launch_calls(trace) if calls is None else calls
    return _in_all(calls, _counted(calls, window))


def _in_all(calls: LaunchColumns, counted: _Counted) -> Table:
    if not len(calls):
        return Table.empty(results.LAUNCH_TOTALS)
    one = np.broadcast_to(np.int32(0), (len(calls),))
    return Table.make(results.LAUNCH_TOTALS, _figures(counted, one, ("all",)))


def launch_figures(trace: Trace, window: Window, calls: LaunchColumns) -> dict[str, Table]:
    """Return the tables of :func:`launches`, :func:`launches_by_kernel`, :func:`launch_totals`.

    What they have in common is found once; where all launches are of one call, its row has the
    totals.

    Parameters
    ----------
    trace, window, calls
        As :func:`launches` takes them.
    """
    counted = _counted(calls, window)
    by_name = _by_name(trace, window, calls, counted)
    used = np.flatnonzero((by_name["calls"] > 0) | (by_name["total_ns"] > 0))
    if len(used) == 1:
        row = by_name.take(used)
        columns: dict[str, ColumnData] = {
            column.name: row.columns[column.name] for column in results.LAUNCH_TOTALS.columns
        }
        columns["name"] = Categorical.constant("all", 1)
        totals = Table.make(results.LAUNCH_TOTALS, columns)
    else:
        totals = _in_all(calls, counted)
    return {
        "launches": by_name,
        "launches_by_kernel": _by_kernel(calls, counted),
        "launch_totals": totals,
    }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Counted:
    """Launch calls, and what is known of those that start in a window.

    Attributes
    ----------
    calls : LaunchColumns
        All of them.
    window : Window
        The window.
    inside : ndarray of int or None
        Those that start in it; None for all.
    values : dict of str to (ndarray of int64, ndarray of bool or None)
        Queue time, latency and overlap of those where it is known, and which of them these are;
        None for all.
    """

    calls: LaunchColumns
    window: Window
    inside: npt.NDArray[np.intp] | None
    values: dict[str, tuple[Int64s, Bools | None]]

    def of(self, column: Array) -> Array:
        """Return a column of the calls that start in the window."""
        return column if self.inside is None else column[self.inside]


def _counted(calls: LaunchColumns, window: Window) -> _Counted:
    mask = starts_inside({name: calls[name] for name in ("start_ns", "end_ns")}, window)
    counted = _Counted(calls, window, None if mask.all() else np.flatnonzero(mask), {})
    for name in ("queue_ns", "latency_ns", "overlap_ns"):
        values = counted.of(calls[name])
        known = values != MISSING
        counted.values[name] = (values, None) if known.all() else (values[known], known)
    return counted


def _figures(counted: _Counted, groups: Array, names: Sequence[str]) -> dict[str, ColumnData]:
    """Return the figures of launch calls by group, and the groups' names."""
    calls, count = counted.calls, len(names)
    overhead = durations_by_group(calls, counted.window, groups, count, "calls")
    columns: dict[str, ColumnData] = {
        "name": Categorical(np.arange(count, dtype=np.int32), tuple(names)),
        "calls": overhead["calls"],
        "total_ns": overhead["total_ns"],
        **_renamed("overhead_ns", overhead),
    }
    group = counted.of(groups)
    present: dict[str, Int64s] = {}
    for name, (values, known) in counted.values.items():
        mine = group if known is None else group[known]
        present[name] = overhead["calls"] if known is None else sizes(mine, count)
        if name == "overlap_ns":
            columns[name] = sums_by(mine, values, count)
        else:
            columns |= _renamed(name, statistics_by_group(values, mine, count))
    columns["queued"] = present["queue_ns"]
    columns["overlapping"] = present["overlap_ns"]
    columns["unknown"] = overhead["calls"] - present["latency_ns"]
    executions = counted.of(calls["executions"])
    columns["executions"] = (
        sums_by(group, widened(executions), count)
        if executions.strides != (0,) or not len(executions)
        else overhead["calls"] * int(executions[0])
    )
    gaps = counted.of(calls["intra_graph_gap_ns"])
    columns["intra_graph_gap_ns"] = _gap_sums(group, gaps, count)
    return columns


def _renamed(prefix: str, statistics: dict[str, Array]) -> dict[str, ColumnData]:
    """Return statistics under the names of a distribution: ``queue_ns.mean``, ``queue_ns.p95``."""
    found: dict[str, ColumnData] = {}
    for name in results.STATISTICS:
        quantile = f"quantiles_ns.{name}"
        found[f"{prefix}.{name}"] = statistics[quantile if quantile in statistics else f"{name}_ns"]
    return found


def _gap_sums(groups: Array, gaps: Array, count: int) -> Int64s:
    """Return the sum of the gaps of each group; missing where no call has any to state."""
    total = np.full(count, MISSING)
    if gaps.strides == (0,) and not (gaps[:1] != MISSING).any():
        return total
    known = gaps != MISSING
    if known.any():
        sums = sums_by(groups[known], gaps[known], count)
        total[groups[known]] = sums[groups[known]]
    return total


def _launches(name: str) -> bool:
    return name.startswith(LAUNCH_NAMES) and not name.startswith(NOT_LAUNCHES)


def _without_execution(trace: Trace, window: Window, calls: LaunchColumns) -> Int64s:
    """Count the calls, by name, that should have launched something, and of which nothing is known.

    A call around another with the same correlation id launched nothing itself, and is none.
    """
    names = trace.api_calls.categories("name")
    own = calls_without_wrappers(trace.api_calls)
    candidate = own.holds("name", _launches) & starts_inside(own, window)
    known = np.zeros(len(trace.api_calls), dtype=np.bool_)
    known[calls["row"]] = True
    rows = rows_without_wrappers(trace.api_calls)
    candidate &= ~(known if rows is None else known[rows])
    left = np.flatnonzero(candidate)
    if len(left):
        innermost = launch_rows(own.take(left), own)
        left = left[(innermost == left) | (innermost < 0)]
    return sizes(own["name"][left], len(names))
