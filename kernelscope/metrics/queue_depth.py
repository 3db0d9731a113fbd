"""How far the host runs ahead of the device: launches begun whose execution has not started.

A launch is in the queue from the start of its call to the start of its first execution, whether
the call has returned or not. A queue that is empty while the device is idle means that the
device waits for the host; one that is about a thousand deep, that the host waits for the device:
the driver then blocks launch calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.device_identity import Lane, integers, lane_of
from kernelscope.metrics.grouping import Rows, group, grouped
from kernelscope.metrics.intervals import Int64s, Pieces, clip, ordered, time_at_least
from kernelscope.metrics.launch_calls import (
    NEVER,
    LaunchColumns,
    executions_by_call,
    find_launch_calls,
    first_starts,
    unclear,
)
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.trace import Array, ColumnData, Table, Trace

Queued = Mapping[str, Array]
"""`_COLUMNS` by name: a row per launch call and device."""

_COLUMNS = ("process_id", "device_id", "start_ns", "end_ns", "first_start_ns")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Steps:
    """A step function: ``depth[i]`` from ``times[i]`` to ``times[i + 1]``.

    Attributes
    ----------
    times : ndarray of int64, shape (n + 1,)
        Strictly ascending, from the start of the window to its end.
    depth : ndarray of int64, shape (n,)
        Two neighbours differ.
    """

    times: Int64s
    depth: Int64s


def queue_depth(
    trace: Trace, window: Window | None = None, *, calls: LaunchColumns | None = None
) -> Table:
    """How many launches does the host keep ahead of the device?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default all of it. Launches that were in the queue when it began are
        in it.
    calls : LaunchCalls or Table, optional
        What :func:`kernelscope.metrics.launch_calls.find_launch_calls` or ``launch_calls``
        returned of the whole trace.

    Returns
    -------
    Table
        Under ``launch_results.QUEUE_DEPTH``: a row for each process and device of its own that
        it launched anything on, by process and device. A call that launches on several devices
        is in the queue of each, until its first execution there.
    """
    window = window or whole(trace)
    queued = _queued(trace, find_launch_calls(trace) if calls is None else calls)
    counted = starts_inside(queued, window)
    lanes, rows = _lanes(queued)
    ordered_times = [_in_queue(queued, part, window) for part in rows]
    spent = np.array([_time_by_class(*each, window) for each in ordered_times], dtype=np.int64).T
    unknown = unclear(queued["first_start_ns"], queued["start_ns"])
    unknown &= counted
    length = window.duration_ns
    columns: dict[str, ColumnData] = {
        "process_id": integers(lane[0] for lane in lanes),
        "device_id": integers(lane[1] for lane in lanes),
        "launches": integers(int(np.count_nonzero(counted[part])) for part in rows),
        "mean": np.array([_area(*each) / length if length else np.nan for each in ordered_times]),
        "max": integers(_deepest(*each) for each in ordered_times),
        "unknown": integers(int(np.count_nonzero(unknown[part])) for part in rows),
    }
    if lanes:
        names = (f"time_ns.depth_{name}" for name, _ in results.DEPTHS)
        columns |= dict(zip(names, spent, strict=True))
        return Table.make(results.QUEUE_DEPTH, columns)
    return Table.empty(results.QUEUE_DEPTH)


def queue_depth_steps(
    trace: Trace, window: Window | None = None, *, calls: LaunchColumns | None = None
) -> Table:
    """How does the number of launches ahead of the device change over time?

    Parameters
    ----------
    trace, window, calls
        As :func:`queue_depth` takes them.

    Returns
    -------
    Table
        Under ``launch_results.QUEUE_DEPTH_STEPS``: for each process and device the window, cut
        where the depth changes.
    """
    window = window or whole(trace)
    queued = _queued(trace, find_launch_calls(trace) if calls is None else calls)
    lanes, rows = _lanes(queued)
    steps = [steps_of(*_in_queue(queued, part, window), window) for part in rows]
    if not steps:
        return Table.empty(results.QUEUE_DEPTH_STEPS)
    lengths = [len(each.depth) for each in steps]
    return Table.make(
        results.QUEUE_DEPTH_STEPS,
        {
            "process_id": np.repeat(integers(lane[0] for lane in lanes), lengths),
            "device_id": np.repeat(integers(lane[1] for lane in lanes), lengths),
            "start_ns": np.concatenate([each.times[:-1] for each in steps]),
            "end_ns": np.concatenate([each.times[1:] for each in steps]),
            "depth": np.concatenate([each.depth for each in steps]),
        },
    )


def _queued(trace: Trace, calls: LaunchColumns) -> Queued:
    """Return who launched what on which device, and when; a call once for each of its devices."""
    columns = {name: calls[name] for name in _COLUMNS}
    several = calls["executions"] > 1
    if columns["device_id"].strides == (0,) or not several.any():
        return columns
    launches = launch_times(trace)
    work = executions_by_call(trace, launches)
    # The calls are those that launched anything, in the order of all.
    launched = first_starts(work, len(launches.api_calls)) != NEVER
    place = np.append(np.where(launched, np.cumsum(launched) - 1, -1), -1)
    parts = []
    for each in work:
        call = place[each.call]
        some = np.flatnonzero(np.append(several, False)[call])
        parts.append((call[some], each.table["device_id"][some], each.table["start_ns"][some]))
    call, device, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    code, (call, device) = grouped((call, device))
    first = np.full(len(call), NEVER)
    np.minimum.at(first, code, start)
    more = np.flatnonzero(device != columns["device_id"][call])
    added = {name: column[call[more]] for name, column in columns.items()}
    added |= {"device_id": device[more], "first_start_ns": first[more]}
    return {name: np.concatenate((column, added[name])) for name, column in columns.items()}


def _lanes(calls: Queued) -> tuple[list[Lane], list[Rows]]:
    groups = group(calls["process_id"], calls["device_id"])
    return [lane_of(key) for key in groups.keys], groups.rows()


def _in_queue(calls: Queued, rows: Rows, window: Window) -> Pieces:
    """Return when launches of one process and device came into the queue, and left it.

    Both are sorted on their own, and cut to the window.
    """
    start, end = calls["start_ns"][rows], calls["first_start_ns"][rows]
    waiting = end > start  # where the clocks disagree, the end is the earlier of the two
    if not waiting.all():
        start, end = start[waiting], end[waiting]
    start, end, _ = clip(start, end, window.start_ns, window.end_ns)
    return ordered(start), ordered(end)


def steps_of(starts: Int64s, ends: Int64s, window: Window) -> Steps:
    """Return how many intervals are open over the window.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        Each sorted on its own, inside the window.
    window : Window
        Where to look.
    """
    low, high = window.start_ns, window.end_ns
    if high <= low:
        nothing = np.empty(0, dtype=np.int64)
        return Steps(np.array([low], dtype=np.int64), nothing)
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")  # merges two sorted runs in linear time
    times = times[order]
    depth = np.cumsum(np.where(order < len(starts), 1, -1))
    # Of several changes at one time the last one holds; what changes nothing is no step.
    last = np.ones(len(times), dtype=np.bool_)
    np.not_equal(times[1:], times[:-1], out=last[:-1])
    last &= times < high
    times, depth = times[last], depth[last]
    if not len(times) or times[0] > low:
        times, depth = np.insert(times, 0, low), np.insert(depth, 0, 0)
    new = np.ones(len(depth), dtype=np.bool_)
    np.not_equal(depth[1:], depth[:-1], out=new[1:])
    return Steps(np.append(times[new], high), depth[new])


def _time_by_class(starts: Int64s, ends: Int64s, window: Window) -> Int64s:
    """Return the time that each class of ``launch_results.DEPTHS`` holds."""
    at_least = [time_at_least(starts, ends, least) for _, least in results.DEPTHS[1:]]
    return -np.diff([window.duration_ns, *at_least, 0])


def _area(starts: Int64s, ends: Int64s) -> int:
    """Return Σ depth · ns."""
    return int((ends - starts).sum())


def _deepest(starts: Int64s, ends: Int64s) -> int:
    """Return how many are open at once at the most, for any time at all.

    So many are open from the start number i + depth − 1 on, if that lies before the end number
    i: the greatest depth for which there is such an i is found by halving.
    """
    reached, beyond = 0, len(starts) + 1
    step = 1
    while beyond - reached > 1:
        depth = min(reached + step, (reached + beyond) // 2) if step else (reached + beyond) // 2
        if (starts[depth - 1 :] < ends[: len(ends) - depth + 1]).any():
            reached, step = depth, 2 * step
        else:
            beyond, step = depth, 0
    return reached
