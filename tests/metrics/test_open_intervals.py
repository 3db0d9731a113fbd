"""The interval that is open and began last, against looking at each."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kernelscope.metrics.intervals import touches, union
from kernelscope.metrics.open_intervals import OpenIntervals

TIMES = st.integers(-5, 40)
INTERVALS = st.lists(st.tuples(TIMES, st.integers(0, 25)), max_size=40)


def slow(intervals: list[tuple[int, int]], time: int) -> int:
    """Of those open, the one that began last; then the shortest; then the last of the list."""
    opened = [
        (start, -length, row)
        for row, (start, length) in enumerate(intervals)
        if start <= time < start + length
    ]
    return max(opened)[2] if opened else -1


@given(INTERVALS)
def test_the_latest_open_interval(intervals: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in intervals], dtype=np.int64)
    ends = starts + np.array([length for _, length in intervals], dtype=np.int64)
    times = np.arange(-7, 70)
    found = OpenIntervals.of(starts, ends).latest_at(times)
    assert found.tolist() == [slow(intervals, time) for time in times.tolist()]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=30))
def test_the_latest_open_interval_of_some_that_nest(blocks: list[tuple[int, int]]) -> None:
    """Blocks of 1, 2, 4, … units at multiples of their length never cross."""
    starts = np.array([place % 4 << size for place, size in blocks], dtype=np.int64)
    ends = starts + np.array([1 << size for _, size in blocks], dtype=np.int64)
    times = np.arange(-1, 260)
    intervals = OpenIntervals.of(starts, ends)
    assert intervals.nested is not None or not blocks
    pairs = list(zip(starts.tolist(), (ends - starts).tolist(), strict=True))
    assert intervals.latest_at(times).tolist() == [slow(pairs, time) for time in times.tolist()]


def test_far_back_and_deep() -> None:
    """One interval around thousands, and thousands inside each other."""
    count = 5000
    starts = np.concatenate(([0], np.arange(1, count) * 10))
    ends = np.concatenate(([10 * count], np.arange(1, count) * 10 + 5))
    assert OpenIntervals.of(starts, ends).latest_at(np.array([10 * count - 1, 7, 15])).tolist() == [
        0,
        0,
        0,
    ]
    nested = OpenIntervals.of(np.arange(count), 2 * count - np.arange(count))
    assert nested.latest_at(np.array([count - 1, 2 * count - 10, 2 * count])).tolist() == [
        count - 1, 9, -1,
    ]  # fmt: skip


@given(INTERVALS, INTERVALS)
@example([(3, 5)], [(5, 0)])
def test_touching_is_sharing_time(
    intervals: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    starts, lengths = (np.array([each[i] for each in intervals], dtype=np.int64) for i in (0, 1))
    pieces = union(*(np.array([s + n * k for s, n in others], dtype=np.int64) for k in (0, 1)))
    solid = [(s, e) for s, e in zip(*(side.tolist() for side in pieces), strict=True) if e > s]
    long = lengths > 0
    found = touches(starts[long], (starts + lengths)[long], pieces)
    expected = [
        any(max(start, s) < min(start + length, e) for s, e in solid)
        for start, length in intervals
        if length
    ]
    assert found.tolist() == expected
