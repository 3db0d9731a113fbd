"""Warm-up, outliers and the steady run, on periods that a reader can judge by eye."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.steady import MAX_OUTLIER_SHARE, change_point, figures, label


def labels(periods: list[int]) -> tuple[int, list[int]]:
    found = label(np.array(periods))
    return found.warmup, np.flatnonzero(found.outlier).tolist()


@pytest.mark.parametrize(
    ("periods", "warmup", "outliers"),
    [
        ([100] * 30, 0, []),
        ([900] + [100] * 29, 1, []),
        ([900, 500, 300, 150] + [100] * 26, 4, []),
        ([900, 100, 700, 800] + [100] * 26, 4, []),  # one usual step among slow ones
        ([30, 60] + [100] * 28, 2, []),  # the host runs ahead until the queue is full
        ([100] * 20 + [900] + [100] * 9, 0, [20]),
        ([900] + [100] * 20 + [900] + [100] * 9, 1, [21]),
        ([100, 103, 97, 104, 96] * 6, 0, []),
        ([100] * 25 + [900, 900] + [100] * 23, 0, []),  # a bad stretch is the story
        ([100] * 40 + [900, 40] + [100] * 18, 0, [40, 41]),  # late, and made up for
        ([140, 1400] * 15, 0, []),
        ([1400, 140] * 15, 0, []),
        ([1400, 140, 140] * 10, 0, []),
        ([140, 140, 140, 140, 1400] * 6, 0, []),
        ([100] * 9 + [900] + [100] * 5, 0, []),  # one of 15 is more than 5 %
        ([], 0, []),
        ([900], 0, []),
        ([900, 100, 100], 0, []),  # too few to say
        ([900, 100, 100, 100], 1, []),
        ([0] * 10, 0, []),
        ([500] * 10 + [100] * 20, 10, []),
    ],
)
def test_labels(periods: list[int], warmup: int, outliers: list[int]) -> None:
    assert labels(periods) == (warmup, outliers)


def test_change_point_weighs_unusual_against_usual() -> None:
    assert change_point(np.array([1, 1, 0, 1, 0, 0, 0, 0], dtype=bool), 4) == 2
    assert change_point(np.array([0, 1, 1, 1, 0, 0, 0, 0], dtype=bool), 4) == 4
    assert change_point(np.array([0, 1, 0, 0], dtype=bool), 2) == 0


def test_figures() -> None:
    found = figures(np.array([1, 2, 3, 4, 110]))
    assert (found.count, found.median_ns, found.mean_ns) == (5, 3.0, 24.0)
    assert found.p5_ns == pytest.approx(1.2)
    assert found.p95_ns == pytest.approx(88.8)
    assert found.is_steady is False
    assert figures(np.array([10, 11, 10])).is_steady is True
    assert figures(np.array([])).is_steady is None


PERIODS = st.lists(st.integers(1, 10**6), max_size=80)


@given(PERIODS)
def test_labels_partition_the_periods(periods: list[int]) -> None:
    found = label(np.array(periods, dtype=np.int64))
    assert 0 <= found.warmup <= len(periods) // 2
    assert not found.outlier[: found.warmup].any()
    rest = len(periods) - found.warmup
    assert int(found.outlier.sum()) <= MAX_OUTLIER_SHARE * rest
    assert found.warmup + int(found.outlier.sum()) + int(found.steady.sum()) == len(periods)


@given(PERIODS, st.sampled_from([2, 1024, 2**20]))
def test_scaling_time_changes_no_label(periods: list[int], factor: int) -> None:
    values = np.array(periods, dtype=np.int64)
    one, other = label(values), label(values * factor)
    assert one.warmup == other.warmup
    assert (one.outlier == other.outlier).all()


@given(st.integers(20, 200), st.integers(0, 9), st.integers(2, 50))
def test_a_slow_start_is_found(steady: int, slow: int, factor: int) -> None:
    assert labels([100 * factor] * slow + [100] * steady) == (slow, [])
