"""Copies, memsets and migrations: whom they keep waiting, and what they hide behind.

*Blocking* is told from what happened, not from the call's name or the kind of memory: an
"asynchronous" copy to pageable memory blocks, and a synchronous one from pageable memory returns
as soon as its bytes are staged. A copy is blocking if its call returned when the copy had ended,
or not before 50 µs had passed. What a call lasts beyond its first 50 µs is time that the host was
blocked. A copy that is a node of a graph blocks nobody: its call launched the graph.

*Hidden* is the time of a copy in which a kernel or graph, of whatever process, ran on the GPU that
carried the copy out; the rest is *exposed*. A row's times are those of the union of its copies,
so two copies at once count once; copies of two rows may overlap. A peer copy is a row of the
device that issued it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import transfer_results as results
from kernelscope.metrics.aggregate import by_total, totals_by_group
from kernelscope.metrics.copies import rates
from kernelscope.metrics.device_identity import integers, lane_of, lanes_of, on_device
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.intervals import (
    Int64s,
    clip,
    covered_before,
    overlap,
    sorting,
    sums_by,
    total,
    union_by_group,
)
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.launching import GRAPH_LAUNCHES
from kernelscope.metrics.runs import running_total
from kernelscope.metrics.waiting import WORK_NS
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    Trace,
    is_missing,
    missing_value,
)

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]

MISSING = missing_value(np.dtype(np.int64))


MIGRATION = "unified "
"""What the kinds of unified-memory migrations begin with; no call issues them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CopyCalls:
    """The call that issued each of n copies, and whether the host waited in it.

    Attributes
    ----------
    row : ndarray of int32, shape (n,)
        Row in the calls without wrappers; −1 where none was recorded.
    name : ndarray of int32, shape (n,)
        Code of its name among ``api_calls.categories("name")``; −1 likewise.
    blocking : ndarray of int32, shape (n,)
        1 where it blocked, 0 where not, −1 where no call was recorded.
    blocked_from, blocked_until : ndarray of int64, shape (n,)
        When it kept the host waiting. Of several copies of one call the first one has it; the
        others, and those that kept nobody waiting, have an interval of no length.
    """

    row: Int32s
    name: Int32s
    blocking: Int32s
    blocked_from: Int64s
    blocked_until: Int64s


def transfers(
    trace: Trace,
    window: Window | None = None,
    *,
    measured: DeviceTime | None = None,
    calls: CopyCalls | None = None,
) -> Table:
    """Which copies make the host wait, which hide behind kernels, and how fast are they?

    Parameters
    ----------
    trace : Trace
        Its copies, calls, kernels and devices are read.
    window : Window, optional
        Where to look; by default all of it. A copy counts, with its bytes and rate, where it
        starts; times are clipped.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found in that window, in this trace
        or in one that it is a part of.
    calls : CopyCalls, optional
        What :func:`copy_calls` returned of `trace`.

    Returns
    -------
    Table
        Under ``transfer_results.TRANSFERS``, longest total first: a row per kind, source and
        destination memory, call, blocking or not, process and devices.
    """
    if not len(trace.copies):
        return Table.empty(results.TRANSFERS)
    window = window or whole(trace)
    calls = calls or copy_calls(trace)
    copies = trace.copies
    names = ("kind", "src_memory", "dst_memory")
    ids = ("process_id", "device_id", "src_device_id", "dst_device_id")
    groups, keys = grouped([*(copies[name] for name in (*names, *ids)), calls.name, calls.blocking])
    columns: dict[str, ColumnData] = dict(zip((*names, *ids), keys, strict=False))
    columns |= {name: _text(copies, name, key) for name, key in zip(names, keys, strict=False)}
    count = len(keys[0])
    start, end, kept = clip(calls.blocked_from, calls.blocked_until, window.start_ns, window.end_ns)
    blocked = sums_by(groups if kept is None else groups[kept], end - start, count)
    blocked[keys[-1] < 0] = MISSING
    columns |= {
        "call": Categorical(keys[-2].astype(np.int32), trace.api_calls.categories("name")),
        "blocking": Categorical(keys[-1].astype(np.int32), results.BLOCKING),
        "link_bytes_per_s": np.full(count, np.nan),
        "blocked_ns": blocked,
        **_totals(copies, window, groups, count),
        **_exposure(copies, groups, count, measured or measure(trace, window)),
    }
    return by_total(results.TRANSFERS, columns, "operations", "blocked_ns")


def migrations(
    trace: Trace, window: Window | None = None, *, measured: DeviceTime | None = None
) -> Table:
    """Why does unified memory migrate, and what does that take?

    Parameters
    ----------
    trace, window, measured
        As :func:`transfers` takes them.

    Returns
    -------
    Table
        Under ``transfer_results.MIGRATIONS``, longest total first: a row per kind, cause, process
        and device. The same migrations are rows of :func:`transfers`, without their causes.
    """
    moved = np.flatnonzero(_migrate(trace.copies))
    if not len(moved):
        return Table.empty(results.MIGRATIONS)
    window = window or whole(trace)
    copies = trace.copies.take(moved)
    names = ("kind", "migration_cause", "process_id", "device_id")
    groups, (kind, cause, process, device) = grouped([copies[name] for name in names])
    columns: dict[str, ColumnData] = {
        "kind": _text(copies, "kind", kind),
        "cause": _text(copies, "migration_cause", cause),
        "process_id": process,
        "device_id": device,
        **_totals(copies, window, groups, len(kind)),
        **_exposure(copies, groups, len(kind), measured or measure(trace, window)),
    }
    return by_total(results.MIGRATIONS, columns, "operations")


def copy_exposure(measured: DeviceTime) -> Table:
    """How much of each GPU's copying hides behind kernels?

    Parameters
    ----------
    measured : DeviceTime
        What :func:`kernelscope.metrics.device_time.measure` found.

    Returns
    -------
    Table
        Under ``transfer_results.COPY_EXPOSURE``: a row for each row of ``devices``.
    """
    copying = [total(each.copies) for each in measured.devices]
    hidden = [overlap(each.copies, each.kernels) for each in measured.devices]
    exposed = [a - b for a, b in zip(copying, hidden, strict=True)]
    unknown = [None] * len(copying)
    return Table.make(
        results.COPY_EXPOSURE,
        {
            "device": np.arange(len(copying), dtype=np.int64),
            "copy_ns": integers(copying),
            "hidden_ns": integers(unknown if measured.serialised else hidden),
            "exposed_ns": integers(unknown if measured.serialised else exposed),
        },
    )


def copy_calls(trace: Trace, launches: LaunchTimes | None = None) -> CopyCalls:
    """Which call issued each copy, and did the host wait in it?

    Parameters
    ----------
    trace : Trace
        Its copies and calls are read. Nobody calls for migrations: whatever correlation id they
        carry names no call.
    launches : LaunchTimes, optional
        What :func:`kernelscope.metrics.launch_times.launch_times` says of it.
    """
    copies = trace.copies
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    row = np.where(_migrate(copies), -1, launches.call_of_copy)
    start, end, name, graph = (
        np.append(column, column.dtype.type(0))[row]  # −1 reads the entry behind the last
        for column in (calls["start_ns"], calls["end_ns"], calls["name"], _graphs(calls))
    )
    graph |= ~is_missing(copies["graph_node_id"])
    known = row >= 0
    long = end - start > WORK_NS
    blocking = ((copies["end_ns"] <= end) | long) & ~graph
    first = np.full(len(calls) + 1, -1, dtype=np.int32)
    latest_first = sorting(copies["start_ns"])[::-1]
    first[row[latest_first]] = latest_first  # of several, the last one written stays
    waits = known & long & ~graph & (first[row] == np.arange(len(row)))
    return CopyCalls(
        row=row,
        name=np.where(known, name, -1).astype(np.int32),
        blocking=np.where(known, blocking, -1).astype(np.int32),
        blocked_from=np.where(waits, start + WORK_NS, end),
        blocked_until=end,
    )


def _migrate(copies: Table) -> Bools:
    """Return which copies are migrations of unified memory."""
    return copies.holds("kind", lambda kind: kind.startswith(MIGRATION))


def _graphs(calls: Table) -> Bools:
    """Return which calls launch a graph."""
    return calls.holds("name", lambda name: name.startswith(GRAPH_LAUNCHES))


def _text(table: Table, name: str, codes: Array) -> Categorical:
    return Categorical(codes.astype(np.int32), table.categories(name))


def _totals(copies: Table, window: Window, groups: Array, count: int) -> dict[str, ColumnData]:
    """Return operations, time, bytes and rates by group."""
    inside = starts_inside(copies, window)
    duration = copies["end_ns"] - copies["start_ns"]
    inside &= ~is_missing(copies["bytes"]) & (duration > 0)
    rate = copies["bytes"][inside] / duration[inside] * 1e9
    return {
        **totals_by_group(copies, window, groups, count, "operations"),
        **rates(copies, window, groups, count),
        "median_bytes_per_s": _medians(rate, groups[inside], count),
    }


def _medians(values: Array, groups: Array, count: int) -> npt.NDArray[np.float64]:
    """Return the median of each group, of an even number the mean of the middle two."""
    order = np.lexsort((values, groups))
    size = np.bincount(groups, minlength=count)
    some = size > 0
    first = (np.cumsum(size) - size)[some]
    low, high = (values[order[first + half]] for half in ((size[some] - 1) // 2, size[some] // 2))
    median = np.full(count, np.nan)
    median[some] = (low + high) / 2
    return median


def _exposure(copies: Table, groups: Array, count: int, time: DeviceTime) -> dict[str, ColumnData]:
    """Return busy, hidden and exposed time of each group; a group is of one process and device."""
    busy, hidden = np.full(count, MISSING), np.full(count, MISSING)
    for device, rows in _by_device(copies, time):
        start, end, kept = clip(
            copies["start_ns"][rows],
            copies["end_ns"][rows],
            time.window.start_ns,
            time.window.end_ns,
        )
        mine = groups[rows]
        present = np.bincount(mine, minlength=count) > 0
        starts, ends, bounds = union_by_group(
            start, end, mine if kept is None else mine[kept], count
        )
        kernels = time.devices[device].kernels
        beside = covered_before(kernels, ends) - covered_before(kernels, starts)
        for figure, values in ((busy, ends - starts), (hidden, beside)):
            before = running_total(values)
            figure[present] = (before[bounds[1:]] - before[bounds[:-1]])[present]
    if time.serialised:
        hidden = np.full(count, MISSING)
    exposed = np.where((busy == MISSING) | (hidden == MISSING), MISSING, busy - hidden)
    return {"busy_ns": busy, "hidden_ns": hidden, "exposed_ns": exposed}


def _by_device(copies: Table, time: DeviceTime) -> Sequence[tuple[int, npt.NDArray[np.intp]]]:
    """Return the rows that occupy each physical device."""
    found: dict[int, list[npt.NDArray[np.intp]]] = {}
    occupying = on_device(copies)
    groups = lanes_of(copies)
    for key, part in zip(groups.keys, groups.rows(), strict=True):
        rows = np.arange(len(copies))[part]
        if occupying is not None:
            rows = rows[occupying[rows]]
        device = time.identity.device_of(lane_of(key))
        if len(rows) and device is not None:
            found.setdefault(device, []).append(rows)
    return [(device, np.concatenate(parts)) for device, parts in found.items()]
