"""Numbers of any locale and units of any scale become one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.parsers.counter_numbers import NO_VALUE, Style, style_of
from kernelscope.parsers.counter_units import Unit, of_ncu, of_nvprof

POINT, COMMA = Style("."), Style(",")


@pytest.mark.parametrize(
    ("text", "value", "whole", "half"),
    [
        ("0", 0, 0, 0), ("12,319,469", 12_319_469, 12_319_469, 0), ("-5", -5, -5, 0),
        ("4,963,609,951.19", 4_963_609_951.19, None, 0.005), ("0.18", 0.18, None, 0.005),
        ("402,316.00", 402_316, None, 0.005), ("1e3", 1000, None, 500), (".5", 0.5, None, 0.05),
        ("1.5E-3", 0.0015, None, 0.00005), ("49,63,609", 4_963_609, 4_963_609, 0),
        ("4 963 609", 4_963_609, 4_963_609, 0), ("4’963’609.5", 4_963_609.5, None, 0.05),
        ("18446744073709551615", 2.0**64, None, 0), ("−3", -3, -3, 0),
    ],
)  # fmt: skip
def test_numbers_with_a_point(text: str, value: float, whole: int | None, half: float) -> None:
    number = POINT.number(text)
    assert number is not None
    assert (number.value, number.whole) == (value, whole)
    assert number.half == pytest.approx(half)


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.963.609.951,19", 4_963_609_951.19), ("0,5", 0.5), ("1.234", 1234), ("1 234,5", 1234.5)],
)
def test_numbers_with_a_comma(text: str, value: float) -> None:
    number = COMMA.number(text)
    assert number is not None
    assert number.value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,2",
        "1,23,4",
        "1.2.3",
        "x",
        "12 s",
        "1,2345",
        ",",
        ".",
        "-",
        "0x10",
        "nan",
        "1e",
        "--1",
    ],
)
def test_what_is_no_number_with_a_point(text: str) -> None:
    assert POINT.number(text) is None


@pytest.mark.parametrize(
    ("cells", "decimal", "guessed"),
    [
        (["1,234.5", "1,234"], ".", False), (["1.234,5", "1.234"], ",", False),
        (["0,5"], ",", False), (["0.125"], ".", False), (["12"], ".", False),
        (["1,234"], ".", True), (["1.234", "56"], ",", True), ([], ".", False),
        (["0.123", "1.234"], ".", False), (["0,123", "1,234"], ",", False),
        (["1.234", "0.123456"], ".", False), (["1,234,567", "2"], ".", False),
    ],
)  # fmt: skip
def test_the_style_of_a_text(cells: list[str], decimal: str, guessed: bool) -> None:
    assert style_of(cells) == Style(decimal, guessed)


APART = {",": ".", ".": ",", " ": ".", "\u202f": ",", "’": ".", "": "."}


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=30),
    st.sampled_from(sorted(APART)),
    st.integers(1, 6),
)
def test_any_locale_reads_back(numbers: list[int], apart: str, decimals: int) -> None:
    mark = APART[apart]
    scale = 10**decimals

    def shown(number: int) -> str:
        return f"{number // scale:,}".replace(",", apart) + f"{mark}{number % scale:0{decimals}d}"

    texts = [shown(number) for number in numbers] + [f"0{mark}25"]
    style = style_of(texts)
    read = [style.number(text) for text in texts[:-1]]
    assert style.decimal == mark
    assert [number and round(number.value * scale) for number in read] == pytest.approx(numbers)
    assert {number and number.half for number in read} == {0.5 * 10.0**-decimals}


def test_no_value_is_never_a_number() -> None:
    assert not any(style.number(text) for text in NO_VALUE for style in (POINT, COMMA))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", Unit(None)), ("%", Unit("ratio", 1, 100)), ("usecond", Unit("ns", 1000)),
        ("us", Unit("ns", 1000)), ("msecond", Unit("ns", 10**6)), ("second", Unit("ns", 10**9)),
        ("byte", Unit("bytes")), ("Kbyte", Unit("bytes", 1000)), ("Gbyte", Unit("bytes", 10**9)),
        ("byte/second", Unit("bytes/s")), ("Tbyte/second", Unit("bytes/s", 10**12)),
        ("Gbyte/s", Unit("bytes/s", 10**9)), ("cycle/nsecond", Unit("Hz", 10**9)),
        ("cycle/usecond", Unit("Hz", 10**6)), ("cycle/second", Unit("Hz")), ("hz", Unit("Hz")),
        ("Ghz", Unit("Hz", 10**9)), ("inst", Unit("count")), ("sector", Unit("count")),
        ("inst/cycle", Unit("1/cycle")), ("sector/nsecond", Unit("1/s", 10**9)),
        ("register/thread", Unit("1/thread")), ("Kbyte/block", Unit("bytes/block", 1000)),
        ("%/", Unit("ratio", 1, 100)), ("SM", Unit("count")), ("W", Unit("W")),
        ("nsecond/byte", Unit("ns/byte")), ("usecond/second", Unit("1", 1000, 10**9)),
    ],
)  # fmt: skip
def test_units_of_ncu(text: str, unit: Unit) -> None:
    assert of_ncu(text) == unit


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", Unit(None)), ("%", Unit("ratio", 1, 100)), ("us", Unit("ns", 1000)),
        ("GB/s", Unit("bytes/s", 2**30)), ("KB", Unit("bytes", 2**10)), ("B/s", Unit("bytes/s")),
        ("furlong", Unit("furlong")),
    ],
)  # fmt: skip
def test_units_of_nvprof(text: str, unit: Unit) -> None:
    assert of_nvprof(text) == unit
