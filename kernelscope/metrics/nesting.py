"""NVTX push/pop ranges as stacks: what encloses what, and which range is innermost when.

A *stack* is the push/pop ranges of one (process, thread, domain). Ranges of a stack nest; what
breaks the nesting is taken out of it:

- A range that outlasts another range of its stack that was open when it began is **crossing**:
  of two ranges that cross, the later one. Which of the two the program meant cannot be told, so
  that a crossing range is treated like a start/end range, as an interval without a place in
  the stack.
- A range of no length is on no stack and encloses nothing; its own parent is what is open at
  its start.
- Ranges whose thread was not recorded are on no stack.

Of ranges that begin together the longer is the outer one, and of equal ones the first row. At
one instant ranges end before others start: intervals are half-open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Key, group
from kernelscope.metrics.intervals import ascending, latest, sorting
from kernelscope.trace import Table, is_missing

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stack:
    """The nested ranges of one (process, thread, domain), as steps in time.

    Attributes
    ----------
    process_id, thread_id : int or None
        Whose ranges they are.
    domain : int
        Code of the domain in ``ranges.categories("domain")``.
    times : ndarray of int64, shape (2m,)
        Starts and ends of the m ranges, in order; ends before starts of the same time.
    innermost : ndarray of int32, shape (2m,)
        Row of the innermost range that is open from ``times[i]`` until the next time; −1 none.
    """

    process_id: int | None
    thread_id: int | None
    domain: int
    times: Int64s
    innermost: Int32s

    def at(self, times: npt.NDArray[Any]) -> Int32s:
        """Return the row of the innermost range open at each time, −1 where there is none."""
        if not len(self.times):
            return np.full(len(times), -1, dtype=np.int32)
        place = (
            latest(self.times, times)
            if ascending(times)
            else np.searchsorted(self.times, times, side="right") - 1
        )
        return np.where(place < 0, np.int32(-1), self.innermost[place])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nesting:
    """The place of every range.

    Attributes
    ----------
    parent : ndarray of int32, shape (n,)
        Row of the enclosing range of the same stack; −1 where there is none.
    depth : ndarray of int32, shape (n,)
        How many ranges enclose it.
    on_stack : ndarray of bool, shape (n,)
        Whether the range has a place in a stack.
    crossing : ndarray of bool, shape (n,)
        Push/pop ranges that were taken out because they cross another.
    stacks : tuple of Stack
        One per (process, thread, domain) that has any push/pop range.
    """

    parent: Int32s
    depth: Int32s
    on_stack: Bools
    crossing: Bools
    stacks: tuple[Stack, ...]


def nesting(ranges: Table) -> Nesting:
    """Which range encloses which?

    Parameters
    ----------
    ranges : Table
        Under ``schema.RANGES``.
    """
    count = len(ranges)
    parent = np.full(count, -1, dtype=np.int32)
    depth = np.zeros(count, dtype=np.int32)
    on_stack, crossing = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    stacks: list[Stack] = []
    start, end = ranges["start_ns"], ranges["end_ns"]
    pushed = np.flatnonzero(style_is(ranges, "push_pop") & ~is_missing(ranges["thread_id"]))
    if not len(pushed):
        return Nesting(parent, depth, on_stack, crossing, ())
    whose = group(*(ranges[name][pushed] for name in ("process_id", "thread_id", "domain")))
    for key, places in zip(whose.keys, whose.rows(), strict=True):
        rows = pushed[places]
        lasting = rows[end[rows] > start[rows]]
        nested = _stacked(lasting, start[lasting], end[lasting])
        stack = _stack(key, nested)
        stacks.append(stack)
        on_stack[nested.rows] = True
        crossing[lasting] = ~on_stack[lasting]
        depth[nested.rows] = nested.level
        parent[nested.rows] = nested.parent
        instant = rows[end[rows] == start[rows]]
        parent[instant] = stack.at(start[instant])
        enclosed = instant[parent[instant] >= 0]
        depth[enclosed] = depth[parent[enclosed]] + 1
    return Nesting(parent, depth, on_stack, crossing, tuple(stacks))


def style_is(ranges: Table, style: str) -> Bools:
    """Return which ranges are of a style: ``push_pop`` or ``start_end``."""
    styles = ranges.categories("style")
    if style not in styles:
        return np.zeros(len(ranges), dtype=np.bool_)
    return np.asarray(ranges["style"] == styles.index(style))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NestedIntervals:
    """Intervals that nest, shape (m,), outer before inner, and the innermost as steps in time.

    Attributes
    ----------
    rows : ndarray of int32, shape (m,)
        Which they are.
    level : ndarray of int32, shape (m,)
        How many enclose each.
    parent : ndarray of int32, shape (m,)
        Row of the enclosing one; −1 for none.
    times : ndarray of int64, shape (2m,)
        Starts and ends in order; ends before starts of the same time.
    innermost : ndarray of int32, shape (2m,)
        Row of the innermost one from ``times[i]`` until the next time; −1 for none.
    """

    rows: Int32s
    level: Int32s
    parent: Int32s
    times: Int64s
    innermost: Int32s


def _stack(key: Key, nested: NestedIntervals) -> Stack:
    process, thread, domain = key
    return Stack(process, thread, -1 if domain is None else domain, nested.times, nested.innermost)


def _stacked(rows: npt.NDArray[Any], start: Int64s, end: Int64s) -> NestedIntervals:
    """Nest the ranges of one stack, leaving the crossing ones out."""
    order = _outer_first(start, end)
    rows, start, end = rows[order].astype(np.int32), start[order], end[order]
    nested = nested_intervals(rows, start, end)
    if nested is None:
        kept = ~crossing_ranges(start, end)
        nested = nested_intervals(rows[kept], start[kept], end[kept])
        assert nested is not None, "of two ranges that cross, the later one was taken out"
    return nested


def _outer_first(start: Int64s, end: Int64s) -> npt.NDArray[np.intp] | slice:
    """Return the order of opening: by start, then longest first, then by row."""
    if (start[1:] > start[:-1]).all():
        return slice(None)
    order = sorting(start)
    first, last = start[order], end[order]
    if ((first[1:] > first[:-1]) | (last[1:] <= last[:-1])).all():
        return order
    return np.lexsort((-end, start))


def nested_intervals(rows: Int32s, start: Int64s, end: Int64s) -> NestedIntervals | None:
    """Nest intervals that are in order of opening; None if they cross.

    Parameters
    ----------
    rows : ndarray of int32, shape (m,)
        What to call them.
    start, end : ndarray of int64, shape (m,)
        In order of opening (`start` ascending, of equal ones the longest first); none is of no
        length.

    Notes
    -----
    As many ranges are open when range i starts as have started less those that have ended. Walk
    over starts and ends in order: at each level the starts and ends alternate, so that sorting
    the events by level alone puts each start beside its end, and the range's enclosing one is
    the last that started one level below.
    """
    count = len(rows)
    ends = np.sort(end)
    ended = np.searchsorted(ends, start, side="right")  # before each start
    number = np.arange(count)
    level = (number - ended).astype(np.int32)
    started_at = number + ended  # place among all events
    is_end = np.ones(2 * count, dtype=np.bool_)
    is_end[started_at] = False
    ended_at = np.flatnonzero(is_end)
    times = np.empty(2 * count, dtype=np.int64)
    times[started_at], times[ended_at] = start, ends
    levels = np.empty(2 * count, dtype=np.int32)
    levels[started_at] = level
    levels[ended_at] = ended_at - 2 * number - 1  # still open: started less ended
    paired = _by_level(levels).reshape(-1, 2)
    opened, closed = paired[:, 0], paired[:, 1]
    by_level = (np.cumsum(~is_end) - 1)[opened]
    if not np.array_equal(times[closed], end[by_level]):
        return None
    parent = _parents(level, by_level)
    parent_row = np.where(parent < 0, np.int32(-1), rows[parent])
    innermost = np.empty(2 * count, dtype=np.int32)
    innermost[started_at] = rows
    innermost[closed] = parent_row[by_level]
    return NestedIntervals(rows, level, parent_row, times, innermost)


def _by_level(levels: Int32s) -> npt.NDArray[np.intp]:
    narrow = levels.astype(np.uint16) if levels.max(initial=0) < 1 << 16 else levels
    return np.argsort(narrow, kind="stable")  # 16 bits are sorted in linear time


def _parents(level: Int32s, by_level: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return, for each range in order of opening, the last before it one level below."""
    bits = len(level).bit_length()
    keys = (level[by_level].astype(np.int64) << bits) | by_level
    parent = np.full(len(level), -1, dtype=np.intp)
    outer = int(np.searchsorted(keys, np.int64(1) << bits))
    inner = by_level[outer:]
    below = np.searchsorted(keys, keys[outer:] - (np.int64(1) << bits)) - 1
    parent[inner] = by_level[below]
    return parent


def crossing_ranges(start: Int64s, end: Int64s) -> Bools:
    """Return which ranges outlast one that was open when they began.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)
        In order of opening (`start` ascending, of equal ones the longest first).

    Notes
    -----
    Range i crosses an earlier one if some range that ends inside it was opened before it.
    """
    by_end = sorting(end)
    ends = end[by_end]
    first = np.searchsorted(ends, start, side="right")
    last = np.searchsorted(ends, end, side="left")
    return np.asarray(least_between(by_end, first, last, len(start)) < np.arange(len(start)))


def least_between(
    values: npt.NDArray[Any], first: npt.NDArray[Any], last: npt.NDArray[Any], default: int
) -> Int64s:
    """Return the least of ``values[first:last]`` for many slices at once.

    Parameters
    ----------
    values : ndarray of int, shape (n,)
        What to look at.
    first, last : ndarray of int, shape (m,)
        The slices; those with ``last <= first`` are empty.
    default : int
        The least of an empty slice.

    Notes
    -----
    A slice of w values is covered by two windows of the largest power of two that is at most w;
    the least of all windows of one width follows from those of half of it: O((n + m) log n).
    Where the few slices that are left, wide ones, hold not much more than the values together,
    each is looked through instead.
    """
    found = np.full(len(first), default, dtype=np.int64)
    length = last - first
    left = np.flatnonzero(length > 0)
    window, width = values, 1
    while len(left):
        if int(length[left].sum()) + _PER_SLICE * len(left) <= _LOOKED_THROUGH * len(values):
            found[left] = _least_of_each(values, first[left], last[left])
            break
        fits = length[left] < 2 * width
        these, left = left[fits], left[~fits]
        found[these] = np.minimum(window[first[these]], window[last[these] - width])
        window = np.minimum(window[:-width], window[width:])
        width *= 2
    return found


_LOOKED_THROUGH = 4
"""Passes over all windows cost about as much as looking through the values so often."""

_PER_SLICE = 32
"""Beginning with a slice costs as much as looking through so many values."""


def _least_of_each(
    values: npt.NDArray[Any], first: npt.NDArray[Any], last: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Return the least of each slice, of which none is empty, by looking through them."""
    bounds = np.column_stack((first, last)).ravel()
    ended = np.append(values, values[-1:])  # a slice may end where the values do
    return np.asarray(np.minimum.reduceat(ended, bounds)[::2])
