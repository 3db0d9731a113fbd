"""What each stretch of launching calls put on the device, inside a window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.call_stretches import Stretches
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.window import Window, clipped_durations, starts_inside
from kernelscope.trace import Table

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
"""The start of what does not exist, and the negative of its end."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeviceEvents:
    """The kernels, copies, memsets and opaque graphs of known launch in a window, clipped.

    Attributes
    ----------
    call : ndarray of int32, shape (e,)
        Number of the launching call.
    start, end : ndarray of int64, shape (e,)
        In ns.
    """

    call: Int32s
    start: Int64s
    end: Int64s


def device_events(attribution: Attribution, window: Window) -> DeviceEvents:
    """What ran on the device in the window, and which call launched it?"""
    trace = attribution.enclosed.trace
    parts = [
        _events(work, call, window)
        for work, call in (
            (trace.kernels, attribution.kernels.call),
            (trace.copies, attribution.copies.call),
            (trace.graphs, attribution.graphs.call),
        )
        if len(work)
    ]
    if len(parts) == 1:
        return DeviceEvents(*parts[0])
    nothing = np.empty(0, dtype=np.int64)
    parts = parts or [(nothing.astype(np.int32), nothing, nothing)]
    return DeviceEvents(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _events(work: Table, call: Int32s, window: Window) -> tuple[Int32s, Int64s, Int64s]:
    start = work["start_ns"].astype(np.int64, copy=False)
    end = work["end_ns"].astype(np.int64, copy=False)
    kept = call >= 0
    if not _inside(work, window):
        start, end = np.maximum(start, window.start_ns), np.minimum(end, window.end_ns)
        kept &= (start < end) | starts_inside(work, window)
    return (call, start, end) if kept.all() else (call[kept], start[kept], end[kept])


def _inside(work: Table, window: Window) -> bool:
    """Return whether no event sticks out of the window."""
    low, high = int(work["start_ns"].min()), int(work["end_ns"].max())
    return low >= window.start_ns and high <= window.end_ns


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallWork:
    """What each of k stretches of launching calls put on the device, inside a window.

    Attributes
    ----------
    kernels, operations : ndarray of int32, shape (k,)
        Kernels that start in the window, and how many kernels, copies, memsets and opaque
        graphs do.
    kernel_ns : ndarray of int64, shape (k,)
        The kernels' time inside the window.
    opaque_ns : ndarray of int64, shape (k,), or None
        Time inside the window of graphs that were traced as one unit; None for none.
    first, last : ndarray of int64, shape (k,)
        Earliest start and latest end of all of these, clipped; `NEVER` and −`NEVER` for none.
    """

    kernels: Int32s
    kernel_ns: Int64s
    operations: Int32s
    opaque_ns: Int64s | None
    first: Int64s
    last: Int64s


def call_work(
    attribution: Attribution, window: Window, events: DeviceEvents, parts: Stretches
) -> CallWork:
    """What did each stretch of launching calls put on the device?

    Parameters
    ----------
    attribution : Attribution
        What belongs to what.
    window : Window
        Where to look.
    events : DeviceEvents
        What :func:`device_events` found there.
    parts : Stretches
        Of the launching calls.
    """
    trace, count = attribution.enclosed.trace, len(parts)
    by_kernel = parts.of_calls(attribution.kernels.call)
    kernels = _started(trace.kernels, by_kernel, window, count)
    kernel_ns = _time(trace.kernels, by_kernel, window, count)
    del by_kernel  # as large as the trace
    others = _started(trace.copies, parts.of_calls(attribution.copies.call), window, count)
    opaque = None
    if len(trace.graphs):
        by_graph = parts.of_calls(attribution.graphs.call)
        others += _started(trace.graphs, by_graph, window, count)
        opaque = _time(trace.graphs, by_graph, window, count)
    first, last = np.full(count, NEVER), np.full(count, -NEVER)
    by_event = parts.number[events.call]
    np.minimum.at(first, by_event, events.start)
    np.maximum.at(last, by_event, events.end)
    return CallWork(kernels, kernel_ns, kernels + others, opaque, first, last)


def _time(work: Table, stretch: Int32s, window: Window, count: int) -> Int64s:
    """Return how long the events that each stretch launched last inside the window."""
    known, time = stretch >= 0, clipped_durations(work, window)
    if not known.all():
        stretch, time = stretch[known], time[known]
    return sums_by(stretch, time, count)


def _started(work: Table, stretch: Int32s, window: Window, count: int) -> Int32s:
    """Return how many events that start in the window each stretch launched."""
    started = np.zeros(count, dtype=np.int32)
    if not len(work):
        return started
    counted = stretch >= 0
    if not _inside(work, window):
        counted &= starts_inside(work, window)
    np.add.at(started, stretch if counted.all() else stretch[counted], np.int32(1))
    return started
