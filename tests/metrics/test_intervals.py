"""Intervals against a bitmap with one bit a nanosecond."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelscope.metrics import intervals as iv
from kernelscope.metrics.intervals import Int64s, Pieces

LOW, HIGH = -12, 28
SPANS = st.lists(
    st.tuples(st.integers(LOW, HIGH), st.integers(0, 9)).map(lambda t: (t[0], t[0] + t[1])),
    max_size=14,
)
Spans = list[tuple[int, int]]


def arrays(spans: Spans) -> Pieces:
    both = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def pieces(spans: Spans) -> Pieces:
    return iv.union(*arrays(spans))


def covered(spans: Spans) -> set[int]:
    return {t for start, end in spans for t in range(start, end)}


def covered_by(found: Pieces) -> set[int]:
    return covered(as_list(found))


def as_list(found: Pieces) -> Spans:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def is_canonical(found: Pieces) -> bool:
    starts, ends = found
    return bool((ends >= starts).all() and (starts[1:] > ends[:-1]).all())


def slow_union(spans: Spans) -> Spans:
    merged: Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@given(SPANS)
def test_union_is_the_sweep_over_sorted_intervals(spans: Spans) -> None:
    found = pieces(spans)
    assert as_list(found) == slow_union(spans)
    assert is_canonical(found)
    assert iv.total(found) == len(covered(spans))


@given(SPANS, SPANS, SPANS)
def test_unite_is_the_union_of_all(one: Spans, two: Spans, three: Spans) -> None:
    found = iv.unite(pieces(one), pieces(two), pieces(three))
    assert as_list(found) == slow_union(one + two + three)


FEW = st.tuples(
    st.integers(0, 220),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from((0, 1, 2, 40))), max_size=3),
).map(lambda t: [(t[0] + start, t[0] + start + length) for start, length in t[1]])
"""Close together, so that one of many may reach over several."""

MANY = st.lists(st.integers(0, 3), min_size=30, max_size=60).map(
    lambda lengths: [(4 * i, 4 * i + length) for i, length in enumerate(lengths)]
)


@given(FEW, MANY)
@example([(40, 41), (42, 43)], [(4 * i, 4 * i + 3) for i in range(30)])
def test_a_few_against_many_agree_with_the_bitmap(one: Spans, two: Spans) -> None:
    few, many = pieces(one), pieces(two)
    for left, right, ours, theirs in ((few, many, one, two), (many, few, two, one)):
        both, rest = iv.intersection(left, right), iv.subtract(left, right)
        assert covered_by(both) == covered(ours) & covered(theirs)
        assert covered_by(rest) == covered(ours) - covered(theirs)
        assert is_canonical(both)
        assert iv.total(both) == iv.overlap(left, right) == len(covered(one) & covered(two))
        assert iv.total(rest) == len(covered(ours) - covered(theirs))


@given(st.one_of(SPANS, MANY), st.one_of(SPANS, FEW))
def test_what_touches_is_found_in_order_or_not(spans: Spans, others: Spans) -> None:
    starts, ends = (np.array([span[i] for span in spans], dtype=np.int64) for i in (0, 1))
    found = iv.touching(starts, ends, pieces(others))
    assert found.tolist() == np.flatnonzero(iv.touches(starts, ends, pieces(others))).tolist()


@given(SPANS, SPANS)
def test_set_operations_agree_with_the_bitmap(one: Spans, two: Spans) -> None:
    a, b = pieces(one), pieces(two)
    both, left = iv.intersection(a, b), iv.subtract(a, b)
    assert covered_by(both) == covered(one) & covered(two)
    assert covered_by(left) == covered(one) - covered(two)
    assert is_canonical(both)
    assert is_canonical(left)
    assert iv.overlap(a, b) == iv.overlap(b, a) == len(covered(one) & covered(two))


@given(SPANS)
def test_gaps_lie_between_pieces_only(spans: Spans) -> None:
    found = slow_union(spans)
    expected = [(a[1], b[0]) for a, b in pairwise(found)]
    assert as_list(iv.gaps(pieces(spans))) == expected


@given(SPANS)
def test_concurrency_counts_open_intervals(spans: Spans) -> None:
    starts, ends = arrays(spans)
    level = Counter(t for start, end in spans for t in range(start, end))
    reached = Counter(min(n, 3) for n in level.values())
    expected = (reached[1], reached[2], reached[3])
    assert iv.concurrency(iv.ordered(starts), iv.ordered(ends)) == expected


@given(SPANS, st.randoms(use_true_random=False))
def test_alone_names_the_only_owner(spans: Spans, random: object) -> None:
    owner = [random.randrange(3) for _ in spans]  # type: ignore[attr-defined]
    expected = [0, 0, 0]
    for t in range(LOW, HIGH + 10):
        open_now = [i for i, (start, end) in enumerate(spans) if start <= t < end]
        if len(open_now) == 1:
            expected[owner[open_now[0]]] += 1
    found = iv.alone(*arrays(spans), np.array(owner, dtype=np.int64), 3)
    assert found.tolist() == expected


@given(SPANS, st.integers(LOW, HIGH), st.integers(0, 20))
def test_clip_keeps_the_time_inside(spans: Spans, low: int, length: int) -> None:
    high = low + length
    starts, ends, kept = iv.clip(*arrays(spans), low, high)
    assert covered(list(zip(starts.tolist(), ends.tolist(), strict=True))) == {
        t for t in covered(spans) if low <= t < high
    }
    expected = [
        (max(s, low), min(e, high))
        for s, e in spans
        if (s < high and e > low) or (s == e and low <= s <= high)
    ]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    assert kept is None or int(kept.sum()) == len(expected)


@given(SPANS, st.integers(1, 5), st.sampled_from([1, 2**40, 2**59]), st.data())
def test_union_by_group_is_the_union_of_each(
    spans: Spans, count: int, scale: int, data: st.DataObject
) -> None:
    codes = [data.draw(st.integers(0, count - 1)) for _ in spans]
    starts, ends = arrays(spans)
    scale = min(scale, 2**62 // 64)
    first, last, bounds = iv.union_by_group(
        starts * scale, ends * scale, np.array(codes, dtype=np.int32), count
    )
    assert len(bounds) == count + 1
    for group in range(count):
        members = [span for span, code in zip(spans, codes, strict=True) if code == group]
        here = slice(bounds[group], bounds[group + 1])
        assert as_list((first[here] // scale, last[here] // scale)) == slow_union(members)


@given(SPANS, st.lists(st.integers(LOW - 3, HIGH + 15), max_size=6))
def test_covered_before(spans: Spans, times: list[int]) -> None:
    found = iv.covered_before(pieces(spans), np.array(times, dtype=np.int64))
    assert found.tolist() == [len([t for t in covered(spans) if t < at]) for at in times]


@given(
    st.lists(st.integers(-5, 5) | st.sampled_from([-(2**62), 2**62, 2**62 - 1]), max_size=30),
    st.booleans(),
)
def test_sorting_is_stable(values: list[int], descending: bool) -> None:
    array: Int64s = np.array(values, dtype=np.int64)
    expected = sorted(range(len(values)), key=lambda i: -values[i] if descending else values[i])
    assert iv.sorting(array, descending=descending).tolist() == expected


@given(
    st.lists(
        st.tuples(
            st.integers(-5, 5) | st.sampled_from([-(2**62), 2**62, 2**62 - 1]), st.integers(0, 4)
        ),
        max_size=30,
    )
)
def test_labels_follow_their_times(pairs: list[tuple[int, int]]) -> None:
    times: Int64s = np.array([time for time, _ in pairs], dtype=np.int64)
    labels = np.array([label for _, label in pairs], dtype=np.int32)
    found, followed = iv.ordered_with(times, labels, 5)
    assert found.tolist() == sorted(times.tolist())
    assert sorted(zip(found.tolist(), followed.tolist(), strict=True)) == sorted(pairs)


def test_a_gap_ends_at_an_activity_without_length() -> None:
    found = pieces([(0, 10), (15, 15), (20, 30)])
    assert as_list(iv.gaps(found)) == [(10, 15), (15, 20)]
    assert iv.total(found) == 20


def test_touching_intervals_are_one_piece() -> None:
    assert as_list(pieces([(10, 20), (0, 10), (20, 20)])) == [(0, 20)]


def test_nothing_is_a_set_too() -> None:
    nothing = pieces([])
    some = pieces([(0, 5)])
    assert iv.total(nothing) == 0
    assert as_list(iv.unite()) == as_list(iv.gaps(nothing)) == as_list(iv.gaps(some)) == []
    assert as_list(iv.intersection(nothing, some)) == as_list(iv.subtract(nothing, some)) == []
    assert as_list(iv.subtract(some, nothing)) == as_list(some)
    assert iv.overlap(nothing, some) == 0
    assert iv.concurrency(*nothing) == (0, 0, 0)


def test_narrow_integers_widen() -> None:
    starts, ends = np.array([5, 0], np.int32), np.array([9, 3], np.int32)
    found = iv.union(starts, ends)
    assert found[0].dtype == found[1].dtype == np.int64
    assert as_list(found) == [(0, 3), (5, 9)]


def test_arguments_stay_as_they_are() -> None:
    starts, ends = arrays([(9, 12), (0, 10), (3, 4)])
    starts.flags.writeable = ends.flags.writeable = False
    iv.union(starts, ends)
    iv.alone(starts, ends, np.zeros(3, np.int64), 1)
    iv.union_by_group(starts, ends, np.array([1, 0, 1]), 2)
    assert starts.tolist() == [9, 0, 3]


@pytest.mark.parametrize("values", [[1, 2, 3], [2**52, 2**52 - 1, 7], [2**60, 2**60 + 1, 3]])
def test_sums_are_exact(values: list[int]) -> None:
    codes = np.array([0, 0, 2])
    found = iv.sums_by(codes, np.array(values, dtype=np.int64), 3)
    assert found.tolist() == [values[0] + values[1], 0, values[2]]


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_many_random_intervals(seed: int) -> None:
    random = np.random.default_rng(seed)
    starts = random.integers(-300, 700, 200)
    ends = starts + random.integers(0, 12, 200)
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    assert as_list(iv.union(starts, ends)) == slow_union(spans)


@given(st.lists(st.integers(0, 9), max_size=8), st.lists(st.integers(0, 9), max_size=8))
def test_the_latest_mark_is_found_whichever_are_fewer(marks: list[int], times: list[int]) -> None:
    found = iv.latest(np.array(sorted(marks), dtype=np.int64), np.array(sorted(times), np.int64))

    assert found.dtype == np.int32
    assert found.tolist() == [sum(mark <= time for mark in marks) - 1 for time in sorted(times)]


@given(st.lists(st.tuples(st.integers(LOW, HIGH), st.integers(0, 2)), max_size=9), st.booleans())
def test_labels_go_with_their_times(pairs: list[tuple[int, int]], in_order: bool) -> None:
    both = np.array(sorted(pairs) if in_order else pairs, dtype=np.int64).reshape(-1, 2)
    before = both.copy()

    times, labels = iv.ordered_with(both[:, 0], both[:, 1], 3)
    times, labels = times + 0, labels + 0

    assert sorted(zip(times.tolist(), labels.tolist(), strict=True)) == sorted(pairs)
    assert times.tolist() == sorted(time for time, _ in pairs)
    assert (both == before).all()


def test_nothing_is_covered_before_any_time() -> None:
    assert iv.covered_before(iv.NO_PIECES, np.array([3, 5])).tolist() == [0, 0]
