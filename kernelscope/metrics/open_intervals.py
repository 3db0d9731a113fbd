"""Which of many intervals that may cross is open at a time, and began last?

Ranges of one NVTX domain nest, but those of several domains, start/end ranges and calls of the
operating system need not nest with each other. What a thread was doing at a time is told by the
one that began last, whatever began before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import sorting
from kernelscope.metrics.nesting import NestedIntervals, nested_intervals

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

NEVER = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OpenIntervals:
    """Intervals in order of beginning, ready to be asked.

    Attributes
    ----------
    starts : ndarray of int64, shape (n,)
        Ascending; of equal ones the one that counts as the later stands behind.
    rows : ndarray of int, shape (n,)
        Which of the given intervals each is.
    nested : NestedIntervals or None
        The innermost one as steps in time, where they nest.
    latest_end : ndarray of int64, shape (n,)
        The latest end of any up to each; empty where they nest.
    heights : tuple of ndarray of int64
        The latest end of each block of 1, 2, 4, … intervals; none where they nest.
    """

    starts: Int64s
    rows: Rows
    nested: NestedIntervals | None
    latest_end: Int64s
    heights: tuple[Int64s, ...]

    @classmethod
    def of(cls, starts: Int64s, ends: Int64s) -> OpenIntervals:
        """Prepare intervals in any order; those of no length are never open.

        Of intervals that begin together the shorter counts as the later, and of equal ones the
        one that stands behind.
        """
        rows = np.flatnonzero(ends > starts)
        start = starts[rows]
        if not (start[1:] > start[:-1]).all():
            order = sorting(start)
            start, rows = start[order], rows[order]
            end = ends[rows]
            if ((start[1:] == start[:-1]) & (end[1:] > end[:-1])).any():
                order = np.lexsort((-end, start))  # stable
                start, rows = start[order], rows[order]
        end = ends[rows].astype(np.int64, copy=False)
        nested = nested_intervals(rows.astype(np.int32), start, end) if len(rows) else None
        if nested is not None or not len(rows):
            return cls(start, rows, nested, end[:0], ())
        return cls(start, rows, None, np.maximum.accumulate(end), _heights(end))

    def latest_at(self, times: npt.NDArray[Any]) -> Rows:
        """Return which interval open at each time began last; −1 where none is open.

        An interval is open from its start until before its end.
        """
        found = np.full(len(times), -1, dtype=np.intp)
        if not len(self.starts):
            return found
        if self.nested is not None:
            place = np.searchsorted(self.nested.times, times, side="right") - 1
            return np.where(place < 0, -1, self.nested.innermost[place])
        last = np.searchsorted(self.starts, times, side="right") - 1
        some = np.flatnonzero((last >= 0) & (self.latest_end[last] > times))
        at = self._last_beyond(last[some], times[some])
        found[some] = self.rows[at]
        return found

    def _last_beyond(self, last: Rows, times: Int64s) -> Rows:
        """Return the last interval up to `last` that ends after each time; there is one.

        From the interval itself leftwards in blocks that double, then down into the block that
        holds it: O(log n) steps for all times together.
        """
        place = last.copy()
        left = np.flatnonzero(self.heights[0][last] <= times)  # most are open themselves
        behind = last[left]  # the blocks to the left end before this one, at their own height
        level = 0
        down: list[tuple[int, Rows]] = []
        while len(left):
            block = behind - 1
            hit = (behind & 1 == 1) & (self.heights[level][block] > times[left])
            place[left[hit]] = block[hit]
            down.append((level, left[hit]))
            left, behind = left[~hit], behind[~hit] >> 1
            level += 1
        inside = np.empty(0, dtype=np.intp)
        for height, here in reversed(down):
            inside = np.concatenate((inside, here))
            if not height:
                break
            right = 2 * place[inside] + 1
            place[inside] = right - (self.heights[height - 1][right] <= times[inside])
        return place


def _heights(ends: Int64s) -> tuple[Int64s, ...]:
    """Return the maxima of blocks of 1, 2, 4, … ends; each level filled up to an even length."""
    levels = []
    level = ends
    while True:
        if len(level) % 2:
            level = np.append(level, np.int64(NEVER))
        levels.append(level)
        if len(level) <= 2:
            return tuple(levels)
        level = np.maximum(level[::2], level[1::2])
