"""During which samples did one kernel run, and nothing else on that GPU?

A sample counts for a kernel name only if at least 95 % of it is covered by executions of that
name, and nothing else runs at any moment of it (METRICS, *Work*): no other kernel, copy, memset
or opaque graph, of any process, nor a copy that a peer issued.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import Identity, Lane, lane_of, lanes_of, on_device
from kernelscope.metrics.grouping import group
from kernelscope.metrics.intervals import (
    Int64s,
    Pieces,
    clip,
    covered_before,
    merge_ordered,
    ordered_with,
    sums_by,
)
from kernelscope.metrics.runs import running_total
from kernelscope.metrics.sample_series import Series
from kernelscope.metrics.sample_shares import WHOLE, Shares, single_shares
from kernelscope.metrics.window import Window
from kernelscope.trace import Array, Table, Trace

Int32s = npt.NDArray[np.int32]

NOT_HERE = -1


def devices_of(table: Table, identity: Identity) -> Int32s:
    """Return the physical device of each row of kernels, copies or graphs, shape (n,)."""
    groups = lanes_of(table)
    numbers = [
        NOT_HERE if (device := identity.device_of(lane_of(key))) is None else device
        for key in groups.keys
    ]
    if groups.codes is None:
        number = numbers[0] if numbers else NOT_HERE
        return np.broadcast_to(np.int32(number), (len(table),))
    return np.asarray(np.array(numbers, dtype=np.int32)[groups.codes])


def kernel_shares(  # noqa: PLR0913 - what is at hand already
    series: Series,
    trace: Trace,
    identity: Identity,
    device: int,
    window: Window,
    *,
    lanes: Collection[Lane] | None = None,
) -> tuple[Shares, Int64s]:
    """Which samples count for which kernel name on a device?

    Parameters
    ----------
    series : Series
        The samples of the device.
    trace : Trace
        Everything that was recorded.
    identity : Identity
        Of the trace.
    device : int
        The device.
    window : Window
        Samples count as far as they lie in it.
    lanes : collection of (process, ordinal), optional
        Whose kernels to look at; those of others are something else that runs.

    Returns
    -------
    Shares
        Owners are the kernels' names, as coded in the trace.
    ndarray of int64, shape (names,)
        How long the kernels of each name took on the device inside the window, in ns.

    Notes
    -----
    Number the names. Let N, S and Q be the count, sum and sum of squares of the numbers of
    everything that runs in a sample; all are equal to c if and only if S = N·c and Q = c·S, since
    Σ (number − c)² = Q − 2·c·S + N·c². What has begun before a sample ends, less what has ended
    before it begins, runs in it, so that running totals give N, S and Q of every sample.
    """
    names = len(trace.kernels.categories("name"))
    start, end, label = _activity(trace, identity, device, lanes)
    started, beginner = ordered_with(start, label, names + 1)
    ended, ender = ordered_with(end, label, names + 1)
    begun = np.searchsorted(started, series.end, side="left")
    over = np.searchsorted(ended, series.start, side="right")

    def running(power: int) -> Int64s:
        return np.asarray(running_total(beginner**power)[begun] - running_total(ender**power)[over])

    number, total = begun - over, running(1)
    name = total // np.maximum(number, 1)
    alone = (number > 0) & (total == number * name) & (running(2) == name * total)
    alone &= name < names
    covered = _covered(series, merge_ordered(started, ended), window)
    alone &= WHOLE[1] * covered >= WHOLE[0] * (series.end - series.start)
    sample = np.flatnonzero(alone)
    time = np.maximum(np.minimum(end, window.end_ns) - np.maximum(start, window.start_ns), 0)
    mine = label < names
    taken = sums_by(label[mine], time[mine], names)
    return single_shares(name[sample], sample, covered[sample], names), taken


def _covered(series: Series, busy: Pieces, window: Window) -> Int64s:
    """Return how much of each sample something covers, inside the window."""
    start, end, _ = clip(*busy, window.start_ns, window.end_ns)
    if not len(series.start):
        return np.zeros(0, dtype=np.int64)
    return covered_before((start, end), series.end) - covered_before((start, end), series.start)


def _activity(
    trace: Trace, identity: Identity, device: int, lanes: Collection[Lane] | None
) -> tuple[Int64s, Int64s, Int64s]:
    """Return start, end and number of all that lasts on a device: a name's code, or their count."""
    kernels, names = trace.kernels, len(trace.kernels.categories("name"))
    label = kernels["name"]
    if lanes is not None:
        label = np.where(_of_lanes(kernels, lanes), label, names)
    parts = [
        _part(kernels, devices_of(kernels, identity) == device, label),
        _part(trace.graphs, devices_of(trace.graphs, identity) == device, names),
        _part(trace.copies, _copied(trace.copies, identity, device), names),
    ]
    start, end, label = (np.concatenate(each) for each in zip(*parts, strict=True))
    return start, end, label.astype(np.int64)


def _of_lanes(table: Table, lanes: Collection[Lane]) -> npt.NDArray[np.bool_]:
    groups = lanes_of(table)
    chosen = np.array([lane_of(key) in lanes for key in groups.keys], dtype=np.bool_)
    if groups.codes is None:
        return np.broadcast_to(chosen.any(), (len(table),))
    return np.asarray(chosen[groups.codes])


def _part(
    table: Table, here: npt.NDArray[np.bool_], label: Array | int
) -> tuple[Int64s, Int64s, Array]:
    start, end = table["start_ns"], table["end_ns"]
    rows = here & (end > start)
    picked = slice(None) if rows.all() else np.flatnonzero(rows)
    start, end = start[picked], end[picked]
    number = np.full(len(start), label, np.int32) if isinstance(label, int) else label[picked]
    return start.astype(np.int64, copy=False), end.astype(np.int64, copy=False), number


def _copied(copies: Table, identity: Identity, device: int) -> npt.NDArray[np.bool_]:
    """Return which copies occupy a device: its own, and those of peers from it or to it."""
    here = devices_of(copies, identity) == device
    for column in ("src_device_id", "dst_device_id"):
        named = group(copies["process_id"], copies[column])
        touched = [
            ordinal is not None and identity.device_of((process, ordinal)) == device
            for process, ordinal in named.keys
        ]
        if any(touched):
            here |= np.array(touched)[0 if named.codes is None else named.codes]
    occupying = on_device(copies)
    return np.asarray(here if occupying is None else here & occupying)
