"""Sets of half-open intervals ``[start, end)`` in integer nanoseconds: pure NumPy, exact.

*Ordered* means starts and ends each sorted on its own: ``starts[i]`` and ``ends[i]`` need not be
of one interval. That is enough, and cheaper than keeping them together: at time t as many are
open as starts are ≤ t less ends that are ≤ t. *Pieces* are a union: disjoint, sorted, and no two
of them touch.

An interval of no length covers no time, yet something happened there: it stays in a union as a
piece of no length where nothing else covers it, so that a gap ends and another begins at it, as
in the profiler's own list of gaps. Measures and set operations do not see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Pieces = tuple[Int64s, Int64s]


def no_times() -> Int64s:
    """Return no points in time."""
    return np.empty(0, dtype=np.int64)


_FEW_RUNS = 10
"""Merging beats sorting if one value in 2 to this power, or fewer, is less than the one before."""

_SIMILAR = 8
"""Two sets are merged where one has up to this many times as many pieces as the other."""

_AT_ONCE = 1 << 16
"""How many pieces are merged with others at a time."""

NO_PIECES: Pieces = (no_times(), no_times())
"""The empty set."""


def _few_runs(values: npt.NDArray[Any]) -> bool:
    """Return whether values are a few ascending runs, which a stable sort merges."""
    return int(np.count_nonzero(values[1:] < values[:-1])) <= len(values) >> _FEW_RUNS


def ascending(times: npt.NDArray[Any]) -> bool:
    """Return whether no time is less than the one before it."""
    return bool((times[1:] >= times[:-1]).all())


def ordered(times: npt.NDArray[Any]) -> Int64s:
    """Return `times` sorted, as int64; the argument itself where it is both already."""
    wide = times.astype(np.int64, copy=False)
    return wide if ascending(wide) else np.sort(wide)


def ordered_with(
    times: Int64s, labels: npt.NDArray[Any], count: int
) -> tuple[Int64s, npt.NDArray[np.int64]]:
    """Return `times` sorted, and the label of each, from 0 to `count` − 1.

    Time and label share one integer where they fit, so that numbers are sorted, not indices;
    equal times are in no particular order.
    """
    if ascending(times):
        return times.copy(), labels.astype(np.int64)
    low, bits = int(times.min()), count.bit_length()
    if (int(times.max()) - low).bit_length() + bits > 63:
        order = sorting(times)
        return times[order], labels[order].astype(np.int64)
    key = times - low
    key <<= bits
    key |= labels
    key.sort(kind="stable" if _few_runs(times) else None)
    label = key & ((1 << bits) - 1)
    key >>= bits
    key += low
    return key, label


def merge_ordered(starts: Int64s, ends: Int64s) -> Pieces:
    """Return the union of ordered starts and ends, shape (n,) each, as pieces.

    A piece ends behind the i-th end where the next start lies later: then all that had begun
    has ended.
    """
    cuts = np.flatnonzero(starts[1:] > ends[:-1])
    if len(cuts) + 1 >= len(starts):
        return starts, ends
    begin, end = (np.empty(len(cuts) + 1, dtype=each.dtype) for each in (starts, ends))
    begin[0], end[-1] = starts[0], ends[-1]
    np.take(starts[1:], cuts, out=begin[1:], mode="clip")  # else it takes a copy
    np.take(ends, cuts, out=end[:-1], mode="clip")
    return begin, end


def union(starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> Pieces:
    """Return the time covered by any interval, as pieces.

    Parameters
    ----------
    starts, ends : ndarray of int, shape (n,)
        In any order, ``ends >= starts``.
    """
    start, end = ordered(starts), ends.astype(np.int64, copy=False)
    if start is starts and bool((end[1:] < end[:-1]).any()):
        # Nested intervals in order of start: how far any of them has reached serves as the end.
        return merge_ordered(start, np.maximum.accumulate(end))
    return merge_ordered(start, ordered(end))


def unite(*sets: Pieces) -> Pieces:
    """Return the union of several sets of pieces."""
    filled = [each for each in sets if len(each[0])]
    if len(filled) <= 1:
        return filled[0] if filled else NO_PIECES
    return merge_ordered(_merged(s for s, _ in filled), _merged(e for _, e in filled))


def _merged(runs: Iterable[Int64s]) -> Int64s:
    """Return several sorted runs as one: a stable sort merges them, in linear time."""
    values = np.concatenate(list(runs))
    values.sort(kind="stable")
    return values


def union_by_group(
    starts: Int64s, ends: Int64s, codes: npt.NDArray[Any], count: int
) -> tuple[Int64s, Int64s, npt.NDArray[np.intp]]:
    """Return the union of each group's intervals, all groups at once.

    The groups are laid one behind the other on one time axis, so that one sort serves all.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        In any order.
    codes : ndarray of int, shape (n,)
        The group of each interval, from 0 to `count` − 1.
    count : int
        The number of groups.

    Returns
    -------
    starts, ends : ndarray of int64, shape (m,)
        The pieces, group by group.
    bounds : ndarray of int, shape (count + 1,)
        Group i has the pieces from ``bounds[i]`` to ``bounds[i + 1]``.
    """
    if not len(starts) or count == 1:
        start, end = union(starts, ends)
        return start, end, np.array([0, *[len(start)] * count], dtype=np.intp)
    low, high = int(starts.min()), int(ends.max())
    stride = high - low + 1
    if stride.bit_length() + count.bit_length() > 62:
        # The axis does not fit an int64: lay out the ranks of the times in their place.
        times, ranks = np.unique(np.concatenate((starts, ends)), return_inverse=True)
        first, last, bounds = union_by_group(
            ranks[: len(starts)].astype(np.int64),
            ranks[len(starts) :].astype(np.int64),
            codes,
            count,
        )
        return times[first], times[last], bounds
    offset = codes.astype(np.int64)
    offset *= stride
    offset -= low
    start, end = starts + offset, np.add(ends, offset, out=offset)
    for times in (start, end):
        if not ascending(times):
            times.sort()
    start, end = merge_ordered(start, end)
    bounds = np.searchsorted(start, np.arange(count + 1, dtype=np.int64) * stride)
    back = np.repeat(np.arange(count, dtype=np.int64) * stride - low, np.diff(bounds))
    start -= back  # sums of ours, or what was picked from them
    end -= back
    return start, end, bounds


def covered_by_group(starts: Int64s, ends: Int64s, codes: npt.NDArray[Any], count: int) -> Int64s:
    """Return how much time the union of each group's intervals covers, shape (count,).

    The parameters are those of :func:`union_by_group`.
    """
    if not len(starts):
        return np.zeros(count, dtype=np.int64)
    start, end, bounds = union_by_group(starts, ends, codes, count)
    before = np.zeros(len(start) + 1, dtype=np.int64)
    np.cumsum(end - start, out=before[1:])
    return np.asarray(before[bounds[1:]] - before[bounds[:-1]])


def total(pieces: Pieces) -> int:
    """Return how much time the pieces cover."""
    starts, ends = pieces
    return int((ends - starts).sum())


def gaps(pieces: Pieces) -> Pieces:
    """Return the pauses between pieces, without the time before the first and after the last."""
    starts, ends = pieces
    return ends[:-1], starts[1:]


def extended(pieces: Pieces) -> Pieces:
    """Return the pieces without those of no length."""
    starts, ends = pieces
    long = ends > starts
    return pieces if bool(long.all()) else (starts.compress(long), ends.compress(long))


def intersection(one: Pieces, other: Pieces) -> Pieces:
    """Return the time that lies in both sets: where two pieces are open at once."""
    if not len(one[0]) or not len(other[0]):
        return NO_PIECES
    one, other = extended(one), extended(other)
    one, other = _near(one, other), _near(other, one)
    parts = [_both(*block) for block in _blocks(one, other)]
    if len(parts) == 1:
        return parts[0]
    begins, ends = zip(NO_PIECES, *parts, strict=True)
    return np.concatenate(begins), np.concatenate(ends)


def _blocks(one: Pieces, other: Pieces) -> Iterator[tuple[Pieces, Pieces]]:
    """Yield some of the pieces of `one` at a time, with those of `other` that may touch them.

    What is merged then stays in the cache, and takes little memory.
    """
    for first in range(0, len(one[0]), _AT_ONCE):
        part = one[0][first : first + _AT_ONCE], one[1][first : first + _AT_ONCE]
        low = np.searchsorted(other[1], part[0][0], side="right")
        high = np.searchsorted(other[0], part[1][-1], side="left")
        yield part, (other[0][low:high], other[1][low:high])


def _both(one: Pieces, other: Pieces) -> Pieces:
    """Return the time that lies in both sets, by merging them."""
    starts, ends = _merged((one[0], other[0])), _merged((one[1], other[1]))
    # The second is open from the (i+1)-th start on, and the first to end does so at end i.
    begin, end = starts[1:], ends[:-1]
    found = np.flatnonzero(end > begin)  # a mask picks more slowly than places do
    return begin[found], end[found]


def _near(pieces: Pieces, few: Pieces) -> Pieces:
    """Return those of many `pieces` that overlap any of a `few`; all where these are not few."""
    if len(pieces[0]) < _SIMILAR * len(few[0]):
        return pieces
    first = np.searchsorted(pieces[1], few[0], side="right")
    last = np.searchsorted(pieces[0], few[1], side="left")
    place = _places(first, last)
    return pieces[0][place], pieces[1][place]


def subtract(one: Pieces, other: Pieces) -> Pieces:
    """Return the time of `one` that does not lie in `other`."""
    other = _near(extended(other), one)
    if not len(one[0]) or not len(other[0]):
        return extended(one)
    low = min(one[0][0], other[0][0]) - 1
    high = max(one[1][-1], other[1][-1]) + 1
    outside = np.insert(other[1], 0, low), np.append(other[0], high)
    return intersection(one, outside)


def covered_before(pieces: Pieces, times: Int64s) -> Int64s:
    """Return how much time the pieces cover before each of `times`, shape (m,)."""
    starts, ends = pieces
    if not len(starts):
        return np.zeros(len(times), dtype=np.int64)
    before = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=before[1:])
    begun = np.searchsorted(starts, times, side="right")
    excess = np.where(begun > 0, np.maximum(ends[begun - 1] - times, 0), 0)
    return np.asarray(before[begun] - excess)


def overlap(one: Pieces, other: Pieces) -> int:
    """Return how much time lies in both sets."""
    few, many = sorted((one, other), key=lambda pieces: len(pieces[0]))
    if not len(few[0]):
        return 0
    if len(many[0]) < _SIMILAR * len(few[0]):  # merging beats looking up
        return sum(
            time_at_least(_merged((a[0], b[0])), _merged((a[1], b[1])), 2)
            for a, b in _blocks(one, other)
        )
    before_start, before_end = np.split(covered_before(many, np.concatenate(few)), 2)
    return int((before_end - before_start).sum())


def touches(
    starts: npt.NDArray[Any], ends: npt.NDArray[Any], pieces: Pieces
) -> npt.NDArray[np.bool_]:
    """Return which intervals, in any order, share any time with the pieces."""
    begins_at, ends_at = extended(pieces)
    first = np.searchsorted(ends_at, starts, side="right")  # the first piece that ends later
    begin = np.append(begins_at, np.iinfo(np.int64).max)
    return np.asarray(begin[first] < ends)


def touching(
    starts: npt.NDArray[Any], ends: npt.NDArray[Any], pieces: Pieces
) -> npt.NDArray[np.intp]:
    """Return the places, ascending, of the intervals of :func:`touches`.

    Where starts and ends ascend, those near each of a few pieces are looked up, not all among
    the pieces.
    """
    begins_at, ends_at = extended(pieces)
    few = len(starts) >= _SIMILAR * len(begins_at)
    if not (few and ascending(starts) and ascending(ends)):
        return np.flatnonzero(touches(starts, ends, pieces))
    first = np.searchsorted(ends, begins_at, side="right")
    last = np.searchsorted(starts, ends_at, side="left")
    return _places(first, last)


def _places(first: npt.NDArray[np.intp], last: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the places of the slices ``first[i]:last[i]``, which ascend, each place once."""
    np.maximum(first[1:], last[:-1], out=first[1:])  # one may reach into the next
    length = np.maximum(last - first, 0)
    place = np.arange(int(length.sum()))
    place += np.repeat(first - (np.cumsum(length) - length), length)
    return place


def time_at_least(starts: Int64s, ends: Int64s, level: int) -> int:
    """Return how long at least `level` intervals are open at once.

    Between the ends ``ends[i - 1]`` and ``ends[i]`` exactly i have ended; at least `level` are
    open there from the start number ``i + level - 1`` on.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        Ordered.
    level : int
        From 1 on.
    """
    count = len(starts) - level + 1
    if count <= 0:
        return 0
    begin = starts[level - 1 :]
    length = np.maximum(begin[1:], ends[: count - 1])
    np.subtract(ends[1:count], length, out=length)
    np.maximum(length, 0, out=length)
    return int(length.sum()) + max(0, int(ends[0] - begin[0]))


def concurrency(starts: Int64s, ends: Int64s) -> tuple[int, int, int]:
    """Return how long exactly one, exactly two, and three or more are open at once.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        Ordered.
    """
    one = time_at_least(starts, ends, 1)
    two = time_at_least(starts, ends, 2)
    three = time_at_least(starts, ends, 3) if two else 0
    return one - two, two - three, three


def alone(starts: Int64s, ends: Int64s, owner: npt.NDArray[Any], owners: int) -> Int64s:
    """Return, for each owner, how long one of its intervals is the only one open.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,)
        In any order; row i of both is one interval.
    owner : ndarray of int, shape (n,)
        From 0 to `owners` − 1.

    Notes
    -----
    Where one interval alone is open, i + 1 have begun and i have ended, so its owner is the sum
    of the first i + 1 owners by start less the sum of the first i by end.
    """
    if not len(starts):
        return np.zeros(owners, dtype=np.int64)
    start, beginner = ordered_with(starts, owner, owners)
    end, ender = ordered_with(ends, owner, owners)
    length = end.copy()
    np.minimum(end[:-1], start[1:], out=length[:-1])  # until the second begins, or it ends
    np.maximum(start[1:], end[:-1], out=start[1:])  # from when the one before has ended
    length -= start
    np.maximum(length, 0, out=length)
    single = np.cumsum(beginner, out=beginner)
    single[1:] -= np.cumsum(ender, out=ender)[:-1]
    single *= length > 0  # elsewhere several are open, or none
    return sums_by(single, length, owners)


def latest(marks: Int64s, times: Int64s) -> npt.NDArray[np.int32]:
    """Return the place of the last of `marks` at or before each of `times`; −1 where none is.

    Both must be ordered; the fewer are looked up among the others.
    """
    if len(marks) > len(times):
        return (np.searchsorted(marks, times, side="right") - 1).astype(np.int32)
    begin = np.searchsorted(times, marks)
    stretch = np.diff(begin, prepend=0, append=len(times))
    return np.repeat(np.arange(-1, len(marks), dtype=np.int32), stretch)


def sums_by(codes: npt.NDArray[Any], values: Int64s, count: int) -> Int64s:
    """Return the sum of `values` of each code from 0 to `count` − 1, exactly.

    ``bincount`` would add doubles, and take ten times as long to make them.
    """
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, codes, values)
    return total


def sorting(values: npt.NDArray[Any], *, descending: bool = False) -> npt.NDArray[np.intp]:
    """Return the permutation that sorts `values`, stable.

    Value and index share one integer where they fit: sorting numbers is several times faster
    than sorting indices by numbers. A few runs that ascend already are merged in linear time.
    """
    count = len(values)
    if not count:
        return np.empty(0, dtype=np.intp)
    low, high = int(values.min()), int(values.max())
    bits = count.bit_length()
    if not descending and _few_runs(values):
        return np.argsort(values, kind="stable")
    if (high - low).bit_length() + bits > 63:
        keyed = -values.astype(np.int64) if descending else values
        return np.argsort(keyed, kind="stable")
    wide = values.astype(np.int64, copy=False)
    key = (high - wide) if descending else (wide - low)
    key <<= bits
    key |= np.arange(count)
    key.sort()
    key &= (1 << bits) - 1
    return key.astype(np.intp, copy=False)


def clip(
    starts: npt.NDArray[Any], ends: npt.NDArray[Any], low: int, high: int
) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_] | None]:
    """Cut intervals to ``[low, high)`` and leave out those that lie outside.

    An interval of no length at `high` stays: the last event of a trace is inside its window.

    Returns
    -------
    starts, ends : ndarray of int64, shape (m,)
        What is left, in the same order.
    kept : ndarray of bool, shape (n,), or None
        Which rows these are; None where all are, unchanged.
    """
    start, end = starts.astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
    if not len(start) or (int(start.min()) >= low and int(end.max()) <= high):
        return start, end, None
    kept = (start < high) & (end > low)
    kept |= (start == end) & (start >= low) & (start <= high)
    start, end = start.compress(kept), end.compress(kept)
    return np.maximum(start, low, out=start), np.minimum(end, high, out=end), kept
