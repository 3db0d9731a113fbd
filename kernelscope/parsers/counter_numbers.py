"""Numbers as profilers print them: thousands apart, in the locale of whoever ran them.

How a text writes its numbers is decided once for all of it, by the cells that can be read in one
way only: ``1,234.50`` and ``0.5`` have a decimal point, ``1.234,50`` and ``0,5`` a comma. Where no
cell tells, three digits after a mark are thousands, since profilers print two or six decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_MARKS = re.compile("[^0-9]+")
_ENOUGH = 1000
_SPACES = "\u0020\u00a0\u202f\u2009"
_APART = f"{_SPACES}'’_"
_MOST_INT = 2**63 - 1

NO_VALUE = frozenset((
    "", "-", "--", "n/a", "na", "nan", "-nan", "+nan", "(nan)", "no data", "not available", "inf",
    "-inf", "+inf", "infinity", "-infinity", "null", "nan(ind)", "-nan(ind)",
))  # fmt: skip
"""What is printed where there is no value, in small letters. None of these is 0."""


class Number(NamedTuple):
    """A printed number.

    Attributes
    ----------
    value : float
        As printed.
    whole : int or None
        The same where it was printed without decimals.
    half : float
        Half of its last printed decimal; 0 for a whole number.
    """

    value: float
    whole: int | None = None
    half: float = 0.0


@dataclass(frozen=True, slots=True)
class Style:
    """How a text writes numbers: the decimal mark, and whether that was told by weak evidence."""

    decimal: str = "."
    guessed: bool = False

    def number(self, text: str) -> Number | None:
        """Return the number that `text` spells; None if it is none."""
        plain = text.strip()
        head, mark, part = plain.partition(self.decimal)
        apart = "," if self.decimal == "." else "."
        if apart in head:
            first, *groups = head.split(apart)
            if 0 < len(first) < 4 and first[0] != "0" and all(len(group) == 3 for group in groups):
                head = first + "".join(groups)
        if plain.isascii() and head.isdigit():  # most cells, and quickly
            if not mark:
                whole = int(head)
                return Number(float(whole), whole if whole <= _MOST_INT else None)
            if part.isdigit():
                return Number(float(f"{head}.{part}"), None, 0.5 * 10.0 ** -len(part))
        match = _PATTERNS[self.decimal].fullmatch(plain)
        if match is None:
            return None
        digits = _MARKS.sub("", match["whole"])
        decimals, power = match["part"], match["power"]
        sign = "-" if match["sign"] in ("-", "−") else ""
        if decimals is None and power is None:
            whole = int(sign + digits)
            return Number(float(whole), whole if abs(whole) <= _MOST_INT else None)
        spelled = f"{sign}{digits or '0'}.{decimals or '0'}e{power or 0}"
        half = 0.5 * 10.0 ** (int(power or 0) - len(decimals or ""))
        return Number(float(spelled), None, half)


def _pattern(decimal: str) -> re.Pattern[str]:
    other = "," if decimal == "." else "."
    apart = f"[{_APART}{other}]"
    return re.compile(
        r"(?P<sign>[+\-−]?)"
        rf"(?P<whole>[1-9][0-9]{{0,2}}(?P<mark>{apart})[0-9]{{2,3}}(?:(?P=mark)[0-9]{{2,3}})*(?<=[0-9]{{3}})"
        r"|[0-9]+|(?=[.,][0-9]))"
        rf"(?:{re.escape(decimal)}(?P<part>[0-9]*))?"
        r"(?:[eE](?P<power>[+\-]?[0-9]{1,3}))?"
    )


_PATTERNS = {".": _pattern("."), ",": _pattern(",")}
_THREE = re.compile(r"[+\-−]?[1-9][0-9]{0,2}(?P<mark>[.,])[0-9]{3}")
_POINT, _COMMA = Style("."), Style(",")


def style_of(texts: Iterable[str]) -> Style:
    """Return how the cells of a text write numbers.

    Parameters
    ----------
    texts : iterable of str
        Cells, those that are no numbers included.
    """
    point = comma = 0
    weak = {".": 0, ",": 0}
    for text in dict.fromkeys(texts):
        if "," not in text and "." not in text:
            continue
        if point + comma >= _ENOUGH:
            break
        cell = text.strip()
        three = _THREE.fullmatch(cell)
        if three is not None:
            weak[three["mark"]] += 1
            continue
        as_point, as_comma = _POINT.number(cell), _COMMA.number(cell)
        point += as_point is not None and as_comma is None
        comma += as_comma is not None and as_point is None
    if point or comma:
        return _COMMA if comma > point else _POINT
    if weak["."] > weak[","]:
        return Style(",", guessed=True)
    return Style(".", guessed=bool(weak[","]))
