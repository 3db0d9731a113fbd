"""Figures for people: the value can be read back, to four digits, and nothing becomes zero."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope import units

FACTORS = {
    "ns": 1.0,
    "µs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
NANOSECONDS = st.integers(min_value=0, max_value=10**14)


def read_back(text: str) -> float:
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * FACTORS[unit]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (920.45, "920.5 ns"),
        (1234, "1.234 µs"),
        (999_960, "1.000 ms"),
        (1_234_567, "1.235 ms"),
        (12_345_678, "12.35 ms"),
        (44_500_000_000, "44.50 s"),
        (4_450_000_000_000, "4,450 s"),
        (-1500, "-1.500 µs"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_a_duration_has_four_digits(ns: float | None, text: str) -> None:
    assert units.duration(ns) == text


@given(NANOSECONDS)
def test_a_duration_can_be_read_back(ns: int) -> None:
    assert read_back(units.duration(ns)) == pytest.approx(ns, rel=5.1e-4)


@given(st.integers(min_value=0, max_value=2**50))
def test_a_size_can_be_read_back(size: int) -> None:
    assert read_back(units.size(size)) == pytest.approx(size, rel=5.1e-4)


@given(NANOSECONDS, NANOSECONDS)
def test_longer_never_reads_shorter(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert read_back(units.duration(small)) <= read_back(units.duration(large))


def test_a_column_has_one_unit() -> None:
    assert units.durations([847_400_000, 127_100_000, None, 0]) == [
        "847.4 ms",
        "127.1 ms",
        "–",
        "0.0 ms",
    ]


def test_a_column_too_far_apart_has_a_unit_for_each() -> None:
    assert units.durations([2_379_000_000, 720]) == ["2.379 s", "720 ns"]


@given(st.lists(NANOSECONDS, min_size=1, max_size=20))
def test_a_column_keeps_two_digits_of_every_value(values: list[int]) -> None:
    texts = units.durations(values)
    for value, text in zip(values, texts, strict=True):
        assert read_back(text) == pytest.approx(value, rel=0.051)


@given(st.lists(NANOSECONDS, min_size=1, max_size=20))
def test_a_column_has_no_long_numbers(values: list[int]) -> None:
    assert all(len(re.sub(r"\D", "", text)) <= 6 for text in units.durations(values))


def test_sizes_are_binary_and_rates_decimal() -> None:
    assert units.size(2**30) == "1.000 GiB"
    assert units.rate(26.49e9) == "26.49 GB/s"
    assert units.frequency(1410e6) == "1.410 GHz"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.1687, "16.9 %"),
        (0.000_01, "<0.1 %"),
        (0.9999, ">99.9 %"),
        (2.716, "271.6 %"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_a_ratio_is_a_percentage(value: float | None, text: str) -> None:
    assert units.ratio(value) == text


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_neither_nothing_nor_all(value: float) -> None:
    assert units.ratio(value) not in ("0 %", "0.0 %", "100 %", "100.0 %")


def test_a_column_is_formatted_by_its_unit() -> None:
    assert units.texts([28674, None], "count") == ["28,674", "–"]
    assert units.texts([0.5], "ratio") == ["50.0 %"]
    assert units.texts([28674, None], "id") == ["28674", "–"]


@pytest.mark.parametrize(
    ("per_s", "unit", "text"),
    [
        (19_491_840_000_000.0, "FLOP/s", "19.49 TFLOP/s"),
        (2.25e15, "FLOP/s", "2.250 PFLOP/s"),
        (130.2e12, "OP/s", "130.2 TOP/s"),
        (0, "FLOP/s", "0 FLOP/s"),
        (None, "FLOP/s", "–"),
        (math.nan, "FLOP/s", "–"),
    ],
)
def test_operations_per_second(per_s: float | None, unit: str, text: str) -> None:
    assert units.operations(per_s, unit) == text
