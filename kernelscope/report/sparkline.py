"""A row of values as a row of blocks."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.:-=+*#"


def sparkline(values: Sequence[float | None], width: int, *, ascii_only: bool = False) -> str:
    """Return values in time order as one line of blocks, from 0 to the largest.

    Parameters
    ----------
    values : sequence of float or None
        Values ≥ 0; None is shown as a blank.
    width : int
        Characters at the most. Where there are more values, each character shows the largest of
        its share of them: a stall is never averaged away.
    ascii_only : bool
        For terminals that cannot show blocks.

    Returns
    -------
    str
        Empty where there are no values, or no room.
    """
    if not values or width < 1:
        return ""
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    count = len(values)
    cells = min(width, count)
    shown = [
        _largest(values[cell * count // cells : (cell + 1) * count // cells])
        for cell in range(cells)
    ]
    top = max((value for value in shown if value is not None), default=0.0)
    return "".join(" " if value is None else _block(value, top, blocks) for value in shown)


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _block(value: float, top: float, blocks: str) -> str:
    if top <= 0:
        return blocks[0]
    return blocks[min(int(value / top * len(blocks)), len(blocks) - 1)]
