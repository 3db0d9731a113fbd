"""The window of an analysis: one interval for all devices and processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Array, Trace

Int64s = npt.NDArray[np.int64]


class Times(Protocol):
    """What has columns ``start_ns`` and ``end_ns``: a table, or what is read like one."""

    def __getitem__(self, name: str, /) -> Array: ...


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open interval ``[start_ns, end_ns)`` of trace time, and why it was chosen.

    Attributes
    ----------
    start_ns, end_ns : int
        Nanoseconds on the trace's clock.
    chosen_by : str
        What a report prints beside it: ``first to last CUDA activity``, ``--between``, …
    """

    start_ns: int
    end_ns: int
    chosen_by: str

    @property
    def duration_ns(self) -> int:
        """Length of the window in ns."""
        return self.end_ns - self.start_ns


def whole(trace: Trace) -> Window:
    """Return the window from the first to the last device activity or CUDA call of `trace`.

    A trace without either has an empty window at 0.
    """
    tables = [t for t in (trace.kernels, trace.copies, trace.graphs, trace.api_calls) if len(t)]
    if not tables:
        return Window(0, 0, "no CUDA activity recorded")
    start = min(int(t["start_ns"].min()) for t in tables)
    end = max(int(t["end_ns"].max()) for t in tables)
    return Window(start, end, "first to last CUDA activity")


def covers(window: Window, other: Window) -> bool:
    """Return whether all of `other` lies in `window`."""
    return window.start_ns <= other.start_ns and other.end_ns <= window.end_ns


def starts_inside(events: Times, window: Window) -> npt.NDArray[np.bool_]:
    """Return which events *start* in the window: those are counted there.

    Events at the very end of the window that have no duration count, too, so that the window of
    a whole trace leaves none of its events out.
    """
    start = events["start_ns"]
    inside = start >= window.start_ns
    inside &= start < window.end_ns
    at_end = start == window.end_ns
    if at_end.any():
        inside |= at_end & (events["end_ns"] == window.end_ns)
    return np.asarray(inside)


def clipped_durations(events: Times, window: Window) -> Int64s:
    """Return how long each event lasts *inside* the window, in ns, shape (n,); 0 if outside."""
    start, end = events["start_ns"], events["end_ns"]
    if len(start) and start.min() >= window.start_ns and end.max() <= window.end_ns:
        return np.asarray(end - start)
    start, end = np.maximum(start, window.start_ns), np.minimum(end, window.end_ns)
    inside: Int64s = np.maximum(end - start, 0).astype(np.int64, copy=False)
    return inside
