"""Pieces of a page: bars that sum, names that stay apart, lines that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.report.layout import (
    Figures,
    Page,
    ascii_only,
    bar,
    grid,
    paragraph,
    shorten,
    shorten_all,
)

PARTS = st.lists(st.integers(min_value=0, max_value=10**12), min_size=1, max_size=8).filter(any)
NAMES = st.text(alphabet="abc<>:, ", min_size=1, max_size=80)


@given(PARTS, st.integers(min_value=1, max_value=140))
def test_a_bar_is_full_and_each_part_true_to_a_cell(parts: list[int], width: int) -> None:
    shares = [part / sum(parts) for part in parts]
    cells = bar(width, shares)

    assert sum(cells) == width
    assert all(abs(got - share * width) < 1.001 for got, share in zip(cells, shares, strict=True))
    assert all(got == 0 for got, share in zip(cells, shares, strict=True) if share == 0)


def test_a_bar_of_nothing_is_empty() -> None:
    assert bar(10, [0.0, 0.0]) == [0, 0]


@given(NAMES, st.integers(min_value=5, max_value=60))
def test_a_shortened_name_fits_and_keeps_both_ends(name: str, width: int) -> None:
    short = shorten(name, width)

    assert len(short) <= width
    assert short == name or (name.startswith(short[:1]) and name.endswith(short[-1:]))


@given(st.lists(NAMES, max_size=8), st.integers(min_value=12, max_value=40))
def test_shortened_names_fit(names: list[str], width: int) -> None:
    short = shorten_all(names, width)

    assert len(short) == len(names)
    assert all(len(each) <= width for each in short)


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    start, end = "at::native::elementwise_kernel<(int)128, ", ">(int, T3) and a long end of it"
    names = [f"{start}{functor}{end}" for functor in ("AddFunctor", "MulFunctor")]

    assert shorten(names[0], 40) == shorten(names[1], 40)
    one, other = shorten_all(names, 40)
    assert "Add" in one
    assert "Mul" in other


def test_equal_names_stay_equal() -> None:
    assert shorten_all(["GPU 0", "GPU 0"], 20) == ["GPU 0", "GPU 0"]


def lines(page: Page, names: list[str]) -> list[str]:
    figures = [
        Figures("#", ["1", "2"]),
        Figures("total", ["10.00 ms", "1.00 ms"]),
        Figures("median", ["1 µs", "200 µs"], 1),
        Figures("longest", ["9 µs", "900 µs"], 2),
    ]
    return [line.plain for line in grid(page, figures, "kernel", names)]


def test_a_wide_grid_shows_everything() -> None:
    assert lines(Page(80), ["first", "second"]) == [
        "#     total  median  longest  kernel",
        "1  10.00 ms    1 µs     9 µs  first",
        "2   1.00 ms  200 µs   900 µs  second",
    ]


def test_a_narrow_grid_drops_columns_first() -> None:
    assert lines(Page(30), ["first", "second"]) == [
        "#     total  median  kernel",
        "1  10.00 ms    1 µs  first",
        "2   1.00 ms  200 µs  second",
    ]


def test_a_long_name_goes_to_its_own_line_where_it_must() -> None:
    assert lines(Page(40), ["a" * 60, "second"]) == [
        "#     total",
        "1  10.00 ms",
        "  " + "a" * 25 + "…" + "a" * 12,
        "2   1.00 ms",
        "  second",
    ]


def test_a_paragraph_hangs_and_keeps_numbers_with_their_units() -> None:
    made = [line.plain for line in paragraph(Page(20), "the largest took 12.5 ms", mark="! ")]

    assert made == ["! the largest took", "  12.5 ms"]


@given(st.text())
def test_the_plain_fallback_is_ascii_of_the_same_length(text: str) -> None:
    assert ascii_only(text).isascii()
    assert len(ascii_only(text)) == len(text)


@pytest.mark.parametrize(("top", "shown"), [(0, 30), (10, 10), (50, 30)])
def test_top_zero_is_all(top: int, shown: int) -> None:
    assert Page(top=top).shown(30) == shown
