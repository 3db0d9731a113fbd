"""Durations by group against a slow and obvious second implementation."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.aggregate import durations_by_group, totals_by_group
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.kernels import kernels
from kernelscope.metrics.results import QUANTILES
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Table
from tests import build

EVENTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-50, 200), st.integers(0, 1 << 40)),
    min_size=1, max_size=40,
)  # fmt: skip


def slow_quantile(ordered: list[int], q: float) -> float:
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def slow_summary(rows: list[tuple[int, int, int]], window: Window, group: int) -> dict[str, Any]:
    mine = [(start, end) for name, start, end in rows if name == group]
    counted = sorted(
        end - start
        for start, end in mine
        if window.start_ns <= start < window.end_ns or start == end == window.end_ns
    )
    clipped = [max(0, min(end, window.end_ns) - max(start, window.start_ns)) for start, end in mine]
    return {
        "executions": len(counted),
        "total_ns": sum(clipped),
        "mean_ns": statistics.fmean(counted) if counted else None,
        "median_ns": statistics.median(counted) if counted else None,
        "min_ns": min(counted, default=None),
        "max_ns": max(counted, default=None),
        "std_ns": (statistics.stdev(counted) if len(counted) > 1 else 0.0) if counted else None,
        **{
            f"quantiles_ns.p{q}": slow_quantile(counted, q / 100) if counted else None
            for q in QUANTILES
        },
    }


@given(EVENTS, st.one_of(st.none(), st.tuples(st.integers(-60, 300), st.integers(1, 1 << 41))))
def test_summaries_agree_with_plain_loops(
    events: list[tuple[int, int, int]], cut: tuple[int, int] | None
) -> None:
    rows = [(name, start, start + length) for name, start, length in events]
    table = build.kernels(*((start, end, f"k{name}") for name, start, end in rows))
    trace = build.trace(kernels=table)
    window = whole(trace) if cut is None else Window(cut[0], cut[0] + cut[1], "test")
    codes = np.array([name for name, *_ in rows])
    ours = durations_by_group(table, window, codes, 5, "executions")
    for column, values in totals_by_group(table, window, codes, 5, "executions").items():
        assert values.tolist() == ours[column].tolist()
    for group in range(5):
        expected = slow_summary(rows, window, group)
        for column, value in expected.items():
            got = ours[column][group]
            if value is None:
                missing = np.iinfo(np.int64).min
                assert np.isnan(got) if got.dtype.kind == "f" else got == missing, column
            elif isinstance(value, int):
                assert got == value, column
            else:
                assert got == pytest.approx(value, rel=1e-12, abs=1e-6), column


def test_totals_beyond_float_precision_stay_exact() -> None:
    table = build.kernels((0, 2**53 + 1), (0, 2**53 + 1))
    window = Window(-10, 2**60, "test")
    codes = np.zeros(2, dtype=np.int32)
    assert durations_by_group(table, window, codes, 1, "n")["total_ns"].tolist() == [2**54 + 2]
    assert totals_by_group(table, window, codes, 1, "n")["total_ns"].tolist() == [2**54 + 2]
    cut = Window(1, 2**60, "test")
    assert durations_by_group(table, cut, codes, 1, "n")["total_ns"].tolist() == [2**54]


def test_durations_too_long_to_pack_are_sorted_all_the_same() -> None:
    table = build.kernels((0, 2**62), (0, 5), (0, 2**62 - 1))
    got = durations_by_group(table, Window(0, 2**62, "test"), np.array([3, 3, 0]), 4, "executions")
    assert got["max_ns"].tolist()[3] == 2**62
    assert got["min_ns"].tolist()[3] == 5
    assert got["executions"].tolist() == [1, 0, 0, 2]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31 - 1)
        ),
        max_size=50,
    )
)
def test_distinct_rows_are_numbered_in_order(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], dtype=np.int64) for i in range(3)]
    groups, distinct = grouped(columns)
    keys = list(zip(*(column.tolist() for column in distinct), strict=True))
    assert sorted(set(rows)) == sorted(keys)
    assert len(keys) == len(set(keys))
    assert [keys[group] for group in groups.tolist()] == rows


def test_a_window_cuts_totals_but_not_statistics() -> None:
    """10–12, 13–15, 16–18, 19–21 seen from 11 to 20: 6 ns of kernels, three of which start."""
    trace = build.trace(kernels=build.kernels((10, 12), (13, 15), (16, 18), (19, 21)))
    (row,) = kernels(trace, Window(11, 20, "test")).records()
    assert (row["total_ns"], row["executions"]) == (6, 3)
    assert (row["mean_ns"], row["max_ns"]) == (2.0, 2)
    assert row["share_of_window"] == pytest.approx(6 / 9)


def test_a_kernel_that_only_reaches_into_the_window_has_time_and_no_statistics() -> None:
    trace = build.trace(kernels=build.kernels((0, 10, "long"), (5, 6, "short"), (20, 21, "late")))
    rows = {row["name"]: row for row in kernels(trace, Window(5, 9, "test")).records()}
    assert rows.keys() == {"long", "short"}
    assert rows["long"]["total_ns"] == 4
    assert rows["long"]["executions"] == 0
    assert rows["long"]["mean_ns"] is None
    assert rows["long"]["min_ns"] is None


def test_rows_are_sorted_by_total_and_then_name() -> None:
    trace = build.trace(kernels=build.kernels((0, 5, "b"), (5, 10, "a"), (10, 20, "c")))
    assert kernels(trace).texts("name") == ["c", "a", "b"]


def test_no_kernels_give_an_empty_table() -> None:
    assert isinstance(kernels(build.trace()), Table)
    assert len(kernels(build.trace())) == 0
