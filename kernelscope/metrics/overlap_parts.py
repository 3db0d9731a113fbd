"""Whether CPU and GPU work at the same time in each iteration, and inside NVTX ranges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import overlap_results as results
from kernelscope.metrics.device_identity import integers
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.intervals import (
    Pieces,
    covered_before,
    sums_by,
    union_by_group,
)
from kernelscope.metrics.iterations import Iterations
from kernelscope.metrics.nesting import Nesting, nesting
from kernelscope.metrics.overlap import HostAndDevices, Lane, four, host_and_devices
from kernelscope.metrics.overlap_results import BOUNDS, STATES
from kernelscope.metrics.range_paths import STYLES, range_names, range_paths, range_styles
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.schema import TableSchema
from kernelscope.trace import Categorical, ColumnData, Table, Trace, is_missing, stacked

Int64s = npt.NDArray[np.int64]


def overlap_by_iteration(
    trace: Trace, iterations: Iterations, *, found: HostAndDevices | None = None
) -> Table:
    """Do CPU and GPU work at the same time in each iteration?

    Parameters
    ----------
    trace : Trace
        The trace.
    iterations : Iterations
        What :func:`kernelscope.metrics.iterations.iterations` found in it.
    found : HostAndDevices, optional
        What :func:`kernelscope.metrics.overlap.host_and_devices` found: periods are clipped to
        its window. By default, of the time from the first start to the last end, so that none
        is.

    Returns
    -------
    Table
        Under ``overlap_results.OVERLAP_BY_ITERATION``: a row per iteration and device that its
        process used. Threads are *driving* if they are so in the whole of the window.
    """
    rows = iterations.rows
    if not len(rows):
        return Table.empty(results.OVERLAP_BY_ITERATION)
    start = rows["start_ns"]
    end = start + rows["period_ns"]
    if found is None:
        window = Window(int(start.min()), int(end.max()), "first to last iteration")
        found = host_and_devices(trace, window)
    start, end = _inside(start, end, found.window)
    process = iterations.summary.process_id
    lanes = [lane for lane in found.lanes if lane.process_id == process]
    table = results.OVERLAP_BY_ITERATION
    parts = [
        Table.make(
            table,
            {"index": rows["index"], "period_ns": end - start}
            | _whose(lane, len(rows))
            | _states(lane, start, end),
        )
        for lane in lanes
    ]
    return _below_each_other(table, parts)


def overlap_by_range(  # noqa: PLR0913 - all but one have defaults
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["path", "name"] = "path",
    folded: bool = False,
    found: HostAndDevices | None = None,
    nest: Nesting | None = None,
) -> Table:
    """Do CPU and GPU work at the same time while a range of each path, or name, is open?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        The whole trace by default; ranges are clipped to it.
    by : {"path", "name"}
        What makes a row.
    folded : bool
        Whether digits in names are folded: ``step 1`` and ``step 2`` are one row ``step #``.
    found : HostAndDevices, optional
        What :func:`kernelscope.metrics.overlap.host_and_devices` found of this window.
    nest : Nesting, optional
        Of the trace's ranges: ``attribution.enclosed.nesting``.

    Returns
    -------
    Table
        Under ``overlap_results.OVERLAP_BY_PATH`` or ``…_BY_NAME``: a row per path, process,
        domain and style, and device that the process used; longest first. The time is the union
        of the ranges, on the host's clock, of whatever thread: what the *process* and the
        device did meanwhile.
    """
    table = results.OVERLAP_BY_PATH if by == "path" else results.OVERLAP_BY_NAME
    if not len(trace.ranges):
        return Table.empty(table)
    found = found or host_and_devices(trace, window or whole(trace))
    code, common = _ranges_by(trace, by, nest or nesting(trace.ranges), folded=folded)
    return _of_groups(trace, table, found, code, common)


Group = dict[str, Any]
"""Columns that a group of ranges has, whatever the device."""


def _ranges_by(
    trace: Trace, by: str, nest: Nesting, *, folded: bool
) -> tuple[npt.NDArray[np.int32], Group]:
    """Return the group of each range, and what the groups are."""
    events = trace.ranges
    if by == "path":
        paths = range_paths(events, nest, folded=folded)
        code, process, domain, style = paths.of_range, paths.process, paths.domain, paths.style
        named = {
            "path": paths.column(),
            "name": Categorical(paths.name, paths.names),
        }
    else:
        names, texts = range_names(events, folded=folded)
        key = events["process_id"], events["domain"], range_styles(events, nest), names
        code, (process, domain, style, name) = grouped(key)
        named = {"name": Categorical(name, texts)}
    return code, named | {
        "domain": Categorical(domain, events.categories("domain")),
        "style": Categorical(style.astype(np.int32), STYLES),
        "process_id": process,
    }


def _of_groups(
    trace: Trace,
    table: TableSchema,
    found: HostAndDevices,
    code: npt.NDArray[np.int32],
    common: Group,
) -> Table:
    """Return the overlap of groups of ranges, for each device of their process."""
    process = common["process_id"]
    count = len(process)
    started = code[starts_inside(trace.ranges, found.window)]
    instances = np.bincount(started, minlength=count).astype(np.int64)
    start, end = _inside(trace.ranges["start_ns"], trace.ranges["end_ns"], found.window)
    start, end, bounds = union_by_group(start, end, code, count)
    owner = np.repeat(np.arange(count), np.diff(bounds))
    open_ns = sums_by(owner, end - start, count)
    seen = (open_ns > 0) | (instances > 0)
    parts = []
    for lane in found.lanes:
        mine = is_missing(process) if lane.process_id is None else process == lane.process_id
        rows, which = np.flatnonzero(mine & seen), mine[owner]
        times = _states(lane, start[which], end[which])
        summed = {name: sums_by(owner[which], ns, count)[rows] for name, ns in times.items()}
        columns = {name: _taken(column, rows) for name, column in common.items()}
        columns |= {"instances": instances[rows], "open_ns": open_ns[rows]}
        parts.append(Table.make(table, columns | _whose(lane, len(rows)) | summed))
    done = _below_each_other(table, parts)
    return done.take(np.argsort(-done["open_ns"], kind="stable"))


def _inside(start: Int64s, end: Int64s, window: Window) -> Pieces:
    """Cut intervals to the window; one that lies outside keeps its place, without length."""
    bounds = window.start_ns, window.end_ns
    return np.clip(start, *bounds), np.clip(end, *bounds)


def _states(lane: Lane, start: Int64s, end: Int64s) -> dict[str, Int64s]:
    """Return the time of each state inside each interval; without those not known."""
    if lane.host is None:
        return {}
    found: dict[str, Int64s] = {}
    gpu = _within(lane.gpu, start, end)
    for names, pieces, both in (
        (STATES, lane.host.busy, lane.both),
        (BOUNDS, lane.host.high, lane.both_high),
    ):
        if pieces is not None and both is not None:
            cpu, together = (_within(each, start, end) for each in (pieces, both))
            lengths = four(gpu, cpu, together, end - start)
            found |= {f"{name}_ns": ns for name, ns in zip(names, lengths, strict=True)}
    return found


def _within(pieces: Pieces, start: Int64s, end: Int64s) -> Int64s:
    """Return how much of `pieces` lies inside each interval."""
    if not len(pieces[0]):
        return np.zeros(len(start), dtype=np.int64)
    before = covered_before(pieces, np.concatenate((start, end)))
    return np.asarray(before[len(start) :] - before[: len(start)])


def _whose(lane: Lane, rows: int) -> dict[str, ColumnData]:
    """Return the columns that say whose rows these are."""
    return {
        "process_id": np.repeat(integers([lane.process_id]), rows),
        "device_id": np.full(rows, lane.device_id, dtype=np.int64),
        "cpu_source": Categorical.constant(lane.host.source if lane.host else None, rows),
    }


def _taken(column: ColumnData, rows: npt.NDArray[np.intp]) -> ColumnData:
    if isinstance(column, Categorical):
        return Categorical(column.codes[rows], column.categories)
    return column[rows]


def _below_each_other(table: TableSchema, parts: Sequence[Table]) -> Table:
    return reduce(stacked, parts) if parts else Table.empty(table)
