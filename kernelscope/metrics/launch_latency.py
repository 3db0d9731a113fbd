"""What launches cost the host, and how long they wait for the device: by call and by kernel.

The definitions of overhead, latency, queue time and overlap stand in
:mod:`kernelscope.metrics.launch_calls`. A launch counts, with its queue time and latency
unclipped, where its *call* starts; its own duration is summed clipped to the window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.aggregate import by_total, durations_by_group, statistics_by_group
from kernelscope.metrics.api_calls import calls_without_wrappers, rows_without_wrappers
from kernelscope.metrics.intervals import Int64s, sums_by
from kernelscope.metrics.launch_calls import MISSING, launch_calls, starts_with
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, is_missing, widened

Bools = npt.NDArray[np.bool_]

LAUNCH_NAMES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch")
NOT_LAUNCHES = ("cudaLaunchHostFunc", "cuLaunchHostFunc")
"""What calls that launch kernels or graphs are called, and calls so named that do not."""


def launches(trace: Trace, window: Window | None = None, *, calls: Table | None = None) -> Table:
    """What do launches cost the host, and how long do they wait for the device?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default all of it. A launch counts, with its queue time and latency
        unclipped, where its *call* starts; ``total_ns`` is clipped.
    calls : Table, optional
        What :func:`launch_calls` returned of the whole of `trace`, without a window.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCHES``: a row per call name, longest total first.
    """
    window = window or whole(trace)
    calls = launch_calls(trace) if calls is None else calls
    names = trace.api_calls.categories("name")
    columns = _figures(calls, window, calls["name"], names)
    columns["without_execution"] = _without_execution(trace, window, calls)
    return by_total(results.LAUNCHES, columns, "calls", "without_execution")


def launches_by_kernel(
    trace: Trace, window: Window | None = None, *, calls: Table | None = None
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
    calls = launch_calls(trace) if calls is None else calls
    columns = _figures(calls, window, calls["kernel"], calls.categories("kernel"))
    return by_total(results.LAUNCHES_BY_KERNEL, columns, "calls")


def launch_totals(
    trace: Trace, window: Window | None = None, *, calls: Table | None = None
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
    calls = launch_calls(trace) if calls is None else calls
    if not len(calls):
        return Table.empty(results.LAUNCH_TOTALS)
    one = np.broadcast_to(np.int32(0), (len(calls),))
    return Table.make(results.LAUNCH_TOTALS, _figures(calls, window, one, ("all",)))


def _figures(
    calls: Table, window: Window, groups: Array, names: Sequence[str]
) -> dict[str, ColumnData]:
    """Return the figures of launch calls by group, and the groups' names."""
    count = len(names)
    overhead = durations_by_group(calls, window, groups, count, "calls")
    columns: dict[str, ColumnData] = {
        "name": Categorical(np.arange(count, dtype=np.int32), tuple(names)),
        "calls": overhead["calls"],
        "total_ns": overhead["total_ns"],
        **_renamed("overhead_ns", overhead),
    }
    inside = np.flatnonzero(starts_inside(calls, window))
    group = groups[inside]
    present: dict[str, Bools] = {}
    for name in ("queue_ns", "latency_ns", "overlap_ns"):
        values = calls[name][inside]
        known = present[name] = ~is_missing(values)
        if name == "overlap_ns":
            columns[name] = sums_by(group[known], values[known], count)
        else:
            columns |= _renamed(name, statistics_by_group(values[known], group[known], count))
    counted = {
        "queued": present["queue_ns"],
        "overlapping": present["overlap_ns"],
        "unknown": ~present["latency_ns"],
    }
    columns |= {name: _counts(group[which], count) for name, which in counted.items()}
    columns["executions"] = sums_by(group, widened(calls["executions"][inside]), count)
    columns["intra_graph_gap_ns"] = _gap_sums(group, calls["intra_graph_gap_ns"][inside], count)
    return columns


def _renamed(prefix: str, statistics: dict[str, Array]) -> dict[str, ColumnData]:
    """Return statistics under the names of a distribution: ``queue_ns.mean``, ``queue_ns.p95``."""
    found: dict[str, ColumnData] = {}
    for name in results.STATISTICS:
        quantile = f"quantiles_ns.{name}"
        found[f"{prefix}.{name}"] = statistics[quantile if quantile in statistics else f"{name}_ns"]
    return found


def _counts(groups: Array, count: int) -> Int64s:
    return np.bincount(groups, minlength=count).astype(np.int64)


def _gap_sums(groups: Array, gaps: Int64s, count: int) -> Int64s:
    """Return the sum of the gaps of each group; missing where no call has any to state."""
    total = np.full(count, MISSING)
    known = gaps != MISSING
    if known.any():
        sums = sums_by(groups[known], gaps[known], count)
        total[groups[known]] = sums[groups[known]]
    return total


def _without_execution(trace: Trace, window: Window, calls: Table) -> Int64s:
    """Count the calls, by name, that should have launched something, and of which nothing is known.

    A call around another with the same correlation id launched nothing itself, and is none.
    """
    names = trace.api_calls.categories("name")
    own = calls_without_wrappers(trace.api_calls)
    candidate = starts_with(own, LAUNCH_NAMES) & ~starts_with(own, NOT_LAUNCHES)
    candidate &= starts_inside(own, window)
    known = np.zeros(len(trace.api_calls), dtype=np.bool_)
    known[calls["row"]] = True
    rows = rows_without_wrappers(trace.api_calls)
    candidate &= ~(known if rows is None else known[rows])
    left = np.flatnonzero(candidate)
    if len(left):
        innermost = launch_rows(own.take(left), own)
        left = left[(innermost == left) | (innermost < 0)]
    return _counts(own["name"][left], len(names))
