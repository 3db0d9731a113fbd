"""Values as blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelscope.report.sparkline import ASCII_BLOCKS, BLOCKS, sparkline


def test_from_nothing_to_the_largest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], 20) == "▁▂▃▄▅▆▇██"
    assert sparkline([0, 8], 20, ascii_only=True) == "_#"


def test_a_stall_is_not_averaged_away() -> None:
    values = [1.0] * 1000
    values[700] = 100.0
    line = sparkline(values, 10)
    assert line == "▁▁▁▁▁▁▁█▁▁"


def test_nothing_to_show() -> None:
    assert sparkline([], 10) == ""
    assert sparkline([1.0], 0) == ""
    assert sparkline([0, 0], 10) == "▁▁"
    assert sparkline([None, 1.0], 10) == " █"
    assert sparkline([None, None], 10) == "  "


@given(st.lists(st.none() | st.floats(0, 1e12), max_size=300), st.integers(1, 80))
def test_width_and_alphabet(values: list[float | None], width: int) -> None:
    for ascii_only, blocks in ((False, BLOCKS), (True, ASCII_BLOCKS)):
        line = sparkline(values, width, ascii_only=ascii_only)
        assert len(line) == min(width, len(values))
        assert set(line) <= set(blocks) | {" "}
