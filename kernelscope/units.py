"""The only place that scales and rounds numbers for people.

Every function takes a value in its base unit (ns, bytes, bytes/s, a ratio) and returns text of
four significant digits; None and NaN become :data:`MISSING`. The plural functions take a whole
column and give it one unit, so that its values can be compared by eye, unless they lie too far
apart for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

MISSING = "–"
"""What stands where there is no value. Absent is not zero."""

Number = int | float | None
_Scales = tuple[tuple[float, str], ...]

_TIME: _Scales = ((1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_BYTES: _Scales = ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB"))
_RATES: _Scales = ((1, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s"))
_OPERATIONS: _Scales = ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_FREQUENCIES: _Scales = ((1, "Hz"), (1e3, "kHz"), (1e6, "MHz"), (1e9, "GHz"))

_DIGITS = 4
_MOST_DECIMALS = 3
_MOST_DIGITS = 5  # of the largest value of a column that shares one unit


def duration(ns: Number) -> str:
    """Return a duration in ns as text: ``1234567`` → ``1.235 ms``."""
    return _scaled(ns, _TIME)


def limit(ns: int) -> str:
    """Return a chosen duration in ns, which is exact, as text: ``5000`` → ``5 µs``."""
    number, unit = duration(ns).split()
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def durations(values: Sequence[Number]) -> list[str]:
    """Return a column of durations in ns as text, in one unit where that can be read."""
    return _column(values, _TIME)


def moment(ns: int) -> str:
    """Return a moment of a trace in seconds to the microsecond, which ``--between`` takes."""
    return f"{ns / 1e9:.6f} s"


def quantity(number: int, noun: str) -> str:
    """Return a number of things: ``1 kernel``, ``28,674 kernels``."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(bytes_: Number) -> str:
    """Return a number of bytes as text: ``2**30`` → ``1.000 GiB``."""
    return _scaled(bytes_, _BYTES)


def sizes(values: Sequence[Number]) -> list[str]:
    """Return a column of byte counts as text, in one unit where that can be read."""
    return _column(values, _BYTES)


def rate(bytes_per_s: Number) -> str:
    """Return bytes per second as text, in powers of ten as links and memories are sold."""
    return _scaled(bytes_per_s, _RATES)


def rates(values: Sequence[Number]) -> list[str]:
    """Return a column of bytes per second as text, in one unit where that can be read."""
    return _column(values, _RATES)


def frequency(hz: Number) -> str:
    """Return a frequency in Hz as text: ``1410e6`` → ``1.410 GHz``."""
    return _scaled(hz, _FREQUENCIES)


def operations(per_s: Number, unit: str = "FLOP/s") -> str:
    """Return operations per second as text: ``19.49e12`` → ``19.49 TFLOP/s``."""
    text = _scaled(per_s, _OPERATIONS)
    return text if text == MISSING else f"{text}{unit}"


def count(value: Number) -> str:
    """Return a count with its thousands apart: ``28674`` → ``28,674``."""
    return MISSING if _absent(value) else f"{value:,.0f}"


def ratio(value: Number) -> str:
    """Return a ratio as a percentage: ``0.1687`` → ``16.9 %``.

    What is not 0 is not shown as 0 %, and what is not all is not shown as 100 %.
    """
    if value is None or math.isnan(value):
        return MISSING
    if value in (0, 1):
        return f"{value * 100:.0f} %"
    if 0 < value < 0.0005:
        return "<0.1 %"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    return f"{value * 100:,.1f} %"


def _absent(value: Number) -> bool:
    return value is None or not math.isfinite(value)


def _scaled(value: Number, scales: _Scales) -> str:
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return f"0 {scales[0][1]}"
    index = max((i for i, (factor, _) in enumerate(scales) if abs(value) >= factor), default=0)
    if index + 1 < len(scales):
        factor, unit = scales[index]
        step = scales[index + 1][0] / factor
        shown = abs(value) / factor
        # 999,960 ns would round to "1000.0 µs": it is 1.000 ms.
        if round(shown, _decimals(shown)) >= step:
            index += 1
    factor, unit = scales[index]
    decimals = 0 if index == 0 and float(value).is_integer() else _decimals(abs(value) / factor)
    return f"{value / factor:,.{decimals}f} {unit}"


def _decimals(shown: float) -> int:
    """Return how many decimals give `shown` four significant digits, at most three."""
    before = max(1, math.floor(math.log10(shown)) + 1) if shown >= 1 else 1
    return min(_MOST_DECIMALS, max(0, _DIGITS - before))


def _column(values: Sequence[Number], scales: _Scales) -> list[str]:
    present = [abs(v) for v in values if v is not None and math.isfinite(v) and v != 0]
    common = _common(present, scales)
    if common is None:
        return [_scaled(value, scales) for value in values]
    factor, unit, decimals = common
    return [
        MISSING
        if value is None or not math.isfinite(value)
        else f"{value / factor:,.{decimals}f} {unit}"
        for value in values
    ]


def _common(present: Sequence[float], scales: _Scales) -> tuple[float, str, int] | None:
    """Return the unit that suits every value, with its decimals; None if there is none.

    A unit suits if the smallest value keeps two significant digits while the largest needs no
    more than five. One that keeps three digits of the smallest is better, then the largest.
    """
    if not present:
        return None
    low, high = min(present), max(present)
    best, most = None, 0
    for factor, unit in scales:
        if high < factor:
            break
        room = min(_MOST_DECIMALS, _MOST_DIGITS - len(f"{high / factor:.0f}"))
        magnitude = math.floor(math.log10(low / factor))
        decimals = max(_decimals(high / factor), min(room, 2 - magnitude), 0)
        if factor == 1 and all(float(value).is_integer() for value in present):
            decimals, magnitude = 0, 2  # whole: nothing is lost
        kept = min(3, decimals + magnitude + 1)
        if decimals <= room and kept >= max(2, most):
            best, most = (factor, unit, decimals), kept
    return best


def texts(values: Sequence[Any], unit: str) -> list[str]:
    """Return a column as text by the `unit` that its schema declares.

    Parameters
    ----------
    values : sequence
        Plain values, None where missing.
    unit : str
        ``ns``, ``bytes``, ``bytes/s``, ``ratio``, ``count``, ``Hz``; others are not scaled.
    """
    formatter = _COLUMNS.get(unit)
    if formatter is not None:
        return formatter(values)
    return [MISSING if value is None else str(value) for value in values]


_COLUMNS: dict[str, Callable[[Sequence[Number]], list[str]]] = {
    "ns": durations,
    "bytes": sizes,
    "bytes/s": rates,
    "Hz": lambda values: _column(values, _FREQUENCIES),
    "ratio": lambda values: [ratio(value) for value in values],
    "count": lambda values: [count(value) for value in values],
}
