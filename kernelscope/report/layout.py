"""Lines of a terminal page: headings, grids, bars, shortened names, plain-ASCII fallback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from kernelscope.report.printable import printable

_GAP = 2
_LEAST_NAME = 40
"""A name column narrower than this goes to a line of its own under each row."""

_NO_BREAK = "\u00a0"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|%|[KMGT]?i?B(?:/s)?)(?:\W|$))")

_ASCII = str.maketrans(
    "█▓▒▚▞░▪·─–—…µ×→≥≤✓✗" + "▁▂▃▄▅▆▇" + "│├└",
    "#%&@=+o.---~ux>><vx" + "_.:-=+*" + "|+`",
)
_LEAST_LEAF = 12
"""A branch of a tree that leaves its name less than this is cut."""


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
        return max(map(cell_len, [self.header, *self.texts]))


def heading(page: Page, title: str, note: str = "") -> list[Text]:
    """Return the title of a section over a rule, with a note (the denominator) on the right."""
    title, note = shorten(title, page.width), printable(note)
    first = Text(title, style="bold")
    rule = Text("─" * page.width, style="dim")
    if not note:
        return [Text(), first, rule]
    space = page.width - cell_len(title) - cell_len(note)
    if space >= 3:
        return [Text(), first.append(" " * space).append(note, style="not bold dim"), rule]
    return [Text(), first, *paragraph(page, note, style="dim"), rule]


def paragraph(page: Page, text: str, *, mark: str = "", style: str = "") -> list[Text]:
    """Return `text` wrapped to the page, with a hanging `mark` before it.

    Lines break at blanks only, so that an option can be copied, and never between a number and
    its unit.
    """
    lines = _wrapped(_BEFORE_UNIT.sub(_NO_BREAK, printable(text)), page.width - cell_len(mark))
    indents = [mark, *[" " * cell_len(mark)] * len(lines)]
    return [
        Text(indent + line.replace(_NO_BREAK, " "), style=style)
        for indent, line in zip(indents, lines, strict=False)
    ]


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in _words(text, width):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line for line in map(str.rstrip, lines) if line]


def _words(text: str, width: int) -> Iterator[str]:
    """Iterate over the words of `text`, cut where one is wider than a line."""
    for word in text.split(" "):
        rest = word
        while cell_len(rest) > width:
            part = _head(rest, width) or rest[0]
            yield part
            rest = rest[len(part) :]
        yield rest


def definitions(page: Page, terms: Sequence[tuple[str, str]]) -> list[Text]:
    """Return terms, each with a text wrapped beside it, or below it where the page is narrow.

    Parameters
    ----------
    page : Page
        Width of the page.
    terms : sequence of (str, str)
        What is explained, and how.
    """
    terms = [(printable(term), text) for term, text in terms]
    widest = max((cell_len(term) for term, _ in terms), default=0)
    below = widest > page.width // 2
    indent = _GAP if below else widest + _GAP
    lines: list[Text] = []
    for term, text in terms:
        wrapped = paragraph(replace(page, width=page.width - indent), text)
        if below or not wrapped:
            lines.append(Text(shorten(term, page.width), style="bold"))
        else:
            first = wrapped.pop(0)
            blanks = " " * (indent - cell_len(term))
            lines.append(Text.assemble((term, "bold"), blanks, first))
        lines += [Text(" " * indent).append(line) for line in wrapped]
    return lines


def grid(page: Page, figures: Sequence[Figures], header: str, names: Sequence[str]) -> list[Text]:
    """Return rows of figures, each followed by its name, fitted to the page.

    Where the figures leave the names too little room, optional columns go first and then each
    name goes to a line of its own. Names are shortened in the middle, and figures never: columns
    that still do not fit are left out, the last ones first.

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
    names = [printable(name) for name in names]
    wanted = min(_LEAST_NAME, max(map(cell_len, [header, *names])))
    kept = _fitting(page.width - wanted, figures)
    while len(kept) > 1 and _total_width(kept) - _GAP > page.width:
        kept = kept[:-1]
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


def outline(
    page: Page, figures: Sequence[Figures], header: str, names: Sequence[tuple[str, str]]
) -> list[Text]:
    """Return rows that begin with a name at its place in a tree, and end in figures.

    A tree stays whole on a narrow page: no name ever goes to a line of its own.

    Parameters
    ----------
    page : Page
        Width of the page; optional figures make room for the names.
    figures : sequence of Figures
        Columns of equal length.
    header : str
        The header of the names.
    names : sequence of (str, str)
        The branch that leads to each name, and the name; only the name is shortened.
    """
    names = [(branch, printable(name)) for branch, name in names]
    longest = max(cell_len(branch + name) for branch, name in [("", header), *names])
    kept = _fitting(page.width - min(_LEAST_NAME, longest), figures)
    while len(kept) > 1 and _total_width(kept) + _LEAST_LEAF > page.width:
        kept = kept[:-1]
    room = min(longest, page.width - _total_width(kept))
    lines = [_outlined([column.header for column in kept], kept, ("", header), room, "dim")]
    for index, name in enumerate(names):
        lines.append(_outlined([column.texts[index] for column in kept], kept, name, room))
    return lines


def _outlined(
    cells: Sequence[str],
    figures: Sequence[Figures],
    name: tuple[str, str],
    room: int,
    style: str = "",
) -> Text:
    branch, text = name
    if len(branch) + min(cell_len(text), _LEAST_LEAF) > room:
        branch = f"…{branch[-3:]}"
    text = shorten(text, room - len(branch))
    line = Text.assemble((branch, "dim"), (text, style))
    line.append(" " * (room - cell_len(branch + text)))
    for cell, column in zip(cells, figures, strict=True):
        blanks = " " * (_GAP + column.width - cell_len(cell))
        line.append(blanks + cell, style=style or column.style)
    line.rstrip()
    return line


def _fitting(width: int, figures: Sequence[Figures]) -> list[Figures]:
    kept = [replace(each, texts=[printable(text) for text in each.texts]) for each in figures]
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
        blanks = " " * (column.width - cell_len(cell))
        line.append(blanks + cell, style=style or column.style).append(" " * _GAP)
    if not own_line:
        line.append(name, style=style)
    line.rstrip()
    return line


def shorten(name: str, width: int) -> str:
    """Return `name` in at most `width` columns, cut in the middle: both ends tell kernels apart.

    Columns are those of a terminal, where a Chinese character takes two; control characters are
    spelled out.
    """
    name = printable(name)
    if cell_len(name) <= width:
        return name
    tail = (width - 1) // 3
    return f"{_head(name, width - 1 - tail)}…{_head(name[::-1], tail)[::-1]}"


def _head(text: str, width: int) -> str:
    """Return as much of the start of `text` as fits `width` columns."""
    end = min(len(text), max(width, 0))
    while end and cell_len(text[:end]) > width:
        end -= 1
    return text[:end]


def shorten_all(names: Sequence[str], width: int) -> list[str]:
    """Shorten `names` so that, as far as the width allows, no two different ones look alike.

    Names that the plain cut makes equal differ in the part cut out: those are cut just before
    the place where they first differ. Those that even then look alike are numbered.
    """
    names = [printable(name) for name in names]
    short = {name: shorten(name, width) for name in names}
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for same in alike.values():
        if len(same) > 1:
            short.update(zip(same, _numbered(_told_apart(same, width), width), strict=True))
    return [short[name] for name in names]


def _numbered(texts: Sequence[str], width: int) -> list[str]:
    """Number the texts that stand more than once, as far as the width allows."""
    if len(set(texts)) == len(texts):
        return list(texts)
    tags = [f" ~{rank}" for rank in range(1, len(texts) + 1)]
    return [
        shorten(text, width - len(tag)) + tag if width > 2 * len(tag) else text
        for text, tag in zip(texts, tags, strict=True)
    ]


def _told_apart(names: Sequence[str], width: int) -> list[str]:
    place = _first_difference(names)
    head = _head(names[0][:place], width // 3)
    rest = max(len(head), place - 4)
    room = width - cell_len(head) - 1
    return [f"{head}…{shorten(name[rest:], room)}" for name in names]


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
