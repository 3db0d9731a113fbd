"""Lines of a terminal page: headings, grids, bars, shortened names, plain-ASCII fallback."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

_GAP = 2
_LEAST_NAME = 40
"""A name column narrower than this goes to a line of its own under each row."""

_NO_BREAK = "\u00a0"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|%|[KMGT]?i?B(?:/s)?)(?:\W|$))")

_ASCII = str.maketrans("█▓▒▚▞░▪·─–—…µ×→≥≤✓✗", "#%&@=+o.---~ux>><vx")


@dataclass(frozen=True, slots=True)
class Page:
    """How a report is laid out.

    Attributes
    ----------
    width : int
        Columns.
    top : int
        Rows of each list; 0 shows all.
    """

    width: int = 100
    top: int = 10

    def shown(self, rows: int) -> int:
        """Return how many of `rows` rows to show."""
        return min(rows, self.top) if self.top else rows


@dataclass(frozen=True, slots=True)
class Figures:
    """A column of right-aligned figures in a grid.

    Attributes
    ----------
    header : str
        What the column holds.
    texts : sequence of str
        A text per row.
    optional : int
        Columns of the highest number make room first on a narrow page; 0 always stays.
    style : str
        How rich shows the texts.
    """

    header: str
    texts: Sequence[str]
    optional: int = 0
    style: str = ""

    @property
    def width(self) -> int:
        """The columns that it takes."""
        return max(len(self.header), *map(len, self.texts), 0)


def heading(page: Page, title: str, note: str = "") -> list[Text]:
    """Return the title of a section over a rule, with a note (the denominator) on the right."""
    first = Text(title, style="bold")
    rule = Text("─" * page.width, style="dim")
    if not note:
        return [Text(), first, rule]
    space = page.width - len(title) - len(note)
    if space >= 3:
        return [Text(), first.append(" " * space).append(note, style="not bold dim"), rule]
    return [Text(), first, *paragraph(page, note, style="dim"), rule]


def paragraph(page: Page, text: str, *, mark: str = "", style: str = "") -> list[Text]:
    """Return `text` wrapped to the page, with a hanging `mark` before it."""
    lines = textwrap.wrap(text, page.width, initial_indent=mark, subsequent_indent=" " * len(mark))
    return [Text(line, style=style) for line in lines]


def grid(page: Page, figures: Sequence[Figures], header: str, names: Sequence[str]) -> list[Text]:
    """Return rows of figures, each followed by its name, fitted to the page.

    Where the figures leave the names too little room, optional columns go first and then each
    name goes to a line of its own. Names are shortened in the middle.

    Parameters
    ----------
    page : Page
        Width of the page.
    figures : sequence of Figures
        Columns of equal length.
    header : str
        The header of the names.
    names : sequence of str
        A name per row.
    """
    wanted = min(_LEAST_NAME, max(map(len, [header, *names])))
    kept = _fitting(page.width - wanted, figures)
    taken = _total_width(kept)
    own_line = taken + wanted > page.width
    room = page.width - (_GAP if own_line else taken)
    short = shorten_all(names, room)
    lines = [_row([column.header for column in kept], kept, "dim", header, own_line)]
    for index, name in enumerate(short):
        cells = [column.texts[index] for column in kept]
        lines.append(_row(cells, kept, "", "" if own_line else name, own_line))
        if own_line:
            lines.append(Text(" " * _GAP + name))
    return lines


def _fitting(width: int, figures: Sequence[Figures]) -> list[Figures]:
    kept = list(figures)
    while _total_width(kept) > width and any(column.optional for column in kept):
        kept.remove(max(kept, key=lambda column: column.optional))
    return kept


def _total_width(figures: Sequence[Figures]) -> int:
    return sum(column.width + _GAP for column in figures)


def _row(
    cells: Sequence[str], figures: Sequence[Figures], style: str, name: str, own_line: bool
) -> Text:
    line = Text()
    for cell, column in zip(cells, figures, strict=True):
        line.append(cell.rjust(column.width), style=style or column.style).append(" " * _GAP)
    if not own_line:
        line.append(name, style=style)
    line.rstrip()
    return line


def shorten(name: str, width: int) -> str:
    """Return `name` in at most `width` columns, cut in the middle: both ends tell kernels apart."""
    if len(name) <= width:
        return name
    tail = (width - 1) // 3
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def shorten_all(names: Sequence[str], width: int) -> list[str]:
    """Shorten `names` so that, as far as the width allows, no two different ones look alike.

    Names that the plain cut makes equal differ in the part cut out: those are cut just before
    the place where they first differ.
    """
    short = {name: shorten(name, width) for name in names}
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for same in alike.values():
        if len(same) > 1:
            short.update(zip(same, _told_apart(same, width), strict=True))
    return [short[name] for name in names]


def _told_apart(names: Sequence[str], width: int) -> list[str]:
    place = _first_difference(names)
    head = min(width // 3, place)
    rest = max(head, place - 4)
    return [f"{name[:head]}…{shorten(name[rest:], width - head - 1)}" for name in names]


def _first_difference(names: Sequence[str]) -> int:
    """Return how many characters all of `names` have in common at their start."""
    first, last = min(names), max(names)
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return place
    return min(len(first), len(last))


def bar(width: int, shares: Sequence[float]) -> list[int]:
    """Return how many of `width` cells each share gets, by largest remainder.

    Parameters
    ----------
    width : int
        Cells of the whole bar.
    shares : sequence of float
        Parts that sum to 1, or to 0 for an empty bar.

    Returns
    -------
    list of int
        Cells per share; they sum to `width`, and each is within one cell of its share.
    """
    exact = [share * width for share in shares]
    cells = [int(each) for each in exact]
    spare = round(sum(exact)) - sum(cells)
    by_remainder = sorted(range(len(exact)), key=lambda i: cells[i] - exact[i])
    for index in by_remainder[:spare]:
        cells[index] += 1
    return cells


def ascii_only(text: str) -> str:
    """Return `text` in ASCII, each character in the place of one."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
