"""Which launching calls lie in which ranges, as slices of calls in order of time.

A range of one thread contains calls that follow one another, so that two numbers per range say
which: no list of pairs is made until somebody needs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Key, group
from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import expanded
from kernelscope.trace import Table

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slices:
    """Calls ``order[first[i]:last[i]]`` lie in the i-th interval.

    Attributes
    ----------
    order : ndarray of int, shape (c,), or None
        Numbers of launching calls, by lane (thread or process) and start; None where that is
        how they are numbered anyway.
    first, last : ndarray of int64, shape (r,)
        Bounds in `order`, ``last >= first``.
    """

    order: npt.NDArray[Any] | None
    first: Int64s
    last: Int64s

    def pairs(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[Any]]:
        """Return every (interval, call), one by one."""
        which, place = expanded(self.first, self.last)
        return which, place if self.order is None else self.order[place]

    def runs(self) -> tuple[npt.NDArray[np.intp], Int64s, Int64s]:
        """Return (interval, first call, behind the last call): calls numbered in a row.

        `order` runs through all calls one by one, but for calls inside each other and where the
        threads of a process are mixed: there a slice falls into several runs.
        """
        which = np.flatnonzero(self.last > self.first)
        first, last = self.first[which], self.last[which]
        if self.order is None:
            return which, first, last
        jump = np.flatnonzero(self.order[1:] != self.order[:-1] + 1) + 1
        if len(which) and not len(jump):
            return which, first + self.order[0], last + self.order[0]
        low = np.searchsorted(jump, first, side="right")
        high = np.searchsorted(jump, last - 1, side="right") + 1
        part, stretch = expanded(low, high)
        first = np.maximum(first[part], np.append(0, jump)[stretch])
        last = np.minimum(last[part], np.append(jump, len(self.order))[stretch])
        return which[part], self.order[first], self.order[last - 1] + 1

    def covered(self, calls: int) -> npt.NDArray[np.bool_]:
        """Return which of all `calls` lie in any interval."""
        change = np.zeros((calls if self.order is None else len(self.order)) + 1, dtype=np.int32)
        np.add.at(change, self.first, np.int32(1))
        np.add.at(change, self.last, np.int32(-1))
        covered = np.cumsum(change[:-1], dtype=np.int32) > 0
        if self.order is None:
            return covered
        inside = np.zeros(calls, dtype=np.bool_)
        inside[self.order[covered]] = True
        return inside


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals:
    """Intervals of host time on threads: ranges, or unions of ranges.

    Attributes
    ----------
    start, end : ndarray of int64, shape (r,)
        In ns.
    process, thread : ndarray of int, shape (r,)
        Whose they are, as the columns of ``trace.ranges`` hold them.
    """

    start: Int64s
    end: Int64s
    process: npt.NDArray[Any]
    thread: npt.NDArray[Any]

    @classmethod
    def of(cls, ranges: Table, rows: npt.NDArray[Any]) -> Intervals:
        """Return the intervals of some ranges."""
        return cls(
            *(ranges[name][rows] for name in ("start_ns", "end_ns", "process_id", "thread_id"))
        )


def containment(
    intervals: Intervals, calls: Launching, *, strict: bool = False, process_wide: bool = False
) -> tuple[Slices, ...]:
    """Which launching calls lie in each interval?

    Parameters
    ----------
    intervals : Intervals
        On any threads.
    calls : Launching
        The calls.
    strict : bool
        The interval contains the whole call, as ``nsys stats`` demands; otherwise its start.
    process_wide : bool
        Calls of any thread of the interval's process; otherwise of its own thread.

    Returns
    -------
    tuple of Slices, each of r intervals
        Their calls are disjoint. One, except where launching calls of one thread lie inside
        each other and `strict` asks for whole calls. An interval of no length contains nothing.
    """
    lanes = _lanes(calls, process_wide)
    mixed = process_wide and len(lanes) < len(calls.threads)
    order = _by_lane(calls, lanes) if mixed else None
    if not strict:
        return (_slices(intervals, calls, lanes, order, process_wide=process_wide),)
    chains = _chains(calls, lanes, np.arange(len(calls)) if order is None else order)
    return tuple(
        _slices(intervals, calls, lanes, chain, strict=True, process_wide=process_wide)
        for chain in chains
    )


def _lanes(calls: Launching, process_wide: bool) -> dict[Key, slice]:
    """Return where the calls of each process, or of each thread, stand."""
    if not process_wide:
        return dict(calls.threads)
    lanes: dict[Key, slice] = {}
    for (process, _), part in calls.threads.items():  # threads of a process follow one another
        lanes[process,] = slice(lanes.get((process,), part).start, part.stop)
    return lanes


def _lane_numbers(lanes: dict[Key, slice]) -> npt.NDArray[np.intp]:
    """Return the lane of each call; they ascend."""
    return np.repeat(np.arange(len(lanes)), [part.stop - part.start for part in lanes.values()])


def _by_lane(calls: Launching, lanes: dict[Key, slice]) -> npt.NDArray[np.intp]:
    return np.lexsort((calls.start, _lane_numbers(lanes)))


def _chains(
    calls: Launching, lanes: dict[Key, slice], order: npt.NDArray[Any]
) -> Iterator[npt.NDArray[Any]]:
    """Split calls into chains in which starts and ends ascend together in every lane."""
    low = int(calls.end.min(initial=0))
    span = int(calls.end.max(initial=0)) - low + 1
    lane = _lane_numbers(lanes)
    while True:
        reached = (calls.end[order] - low) + lane[order] * span
        latest = reached == np.maximum.accumulate(reached) if len(order) else reached == 0
        yield order[latest]
        order = order[~latest]
        if not len(order):
            return


def _slices(  # noqa: PLR0913 - the rules
    intervals: Intervals,
    calls: Launching,
    lanes: dict[Key, slice],
    order: npt.NDArray[Any] | None,
    *,
    strict: bool = False,
    process_wide: bool,
) -> Slices:
    first = np.zeros(len(intervals.start), dtype=np.int64)
    last = np.zeros(len(intervals.start), dtype=np.int64)
    keys = (intervals.process,) if process_wide else (intervals.process, intervals.thread)
    whose = group(*keys)
    start, part = calls.start, lanes
    if order is not None:
        start, lane = calls.start[order], _lane_numbers(lanes)[order]
        bounds = np.searchsorted(lane, np.arange(len(lanes) + 1)).tolist()
        part = {key: slice(*pair) for key, pair in zip(lanes, pairwise(bounds), strict=True)}
    for key, rows in zip(whose.keys, whose.rows(), strict=True):
        if key[-1] is None and not process_wide:
            continue  # nobody knows whose calls these would be
        mine = part.get(key, slice(0, 0))
        opened, closed = intervals.start[rows], intervals.end[rows]
        low = np.searchsorted(start[mine], opened, side="left")
        high = np.searchsorted(start[mine], closed, side="left")
        if strict and order is not None:
            ends = calls.end[order[mine]]
            high = np.minimum(high, np.searchsorted(ends, closed, side="right"))
        high = np.where(closed > opened, np.maximum(high, low), low)
        first[rows], last[rows] = mine.start + low, mine.start + high
    return Slices(order, first, last)
