"""What a query found, as text for a terminal, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from kernelscope import units
from kernelscope.report import to_markdown
from kernelscope.report.layout import Page, paragraph, shorten, shorten_all
from kernelscope.report.printable import printable
from kernelscope.report.sql import Answer

_GAP = 2
_LEAST_TEXT = 12
"""A column of texts narrower than this is of no use: rows are then shown one below the other."""


def lines(answer: Answer, page: Page) -> list[Text]:
    """Return the rows as a table that fits the page, or as a list of columns where none does.

    Numbers stand to the right and are never cut; texts are shortened in the middle.
    """
    if not answer.rows:
        return paragraph(page, "No rows.", style="dim")
    cells = [[_cell(value) for value in row] for row in answer.rows]
    right = _numeric(answer)
    widths = _widths(page.width, answer.columns, cells, right)
    shown = _list(answer, cells, page) if widths is None else _table(answer, cells, right, widths)
    if answer.more:
        note = f"… more: only the first {units.quantity(len(cells), 'row')} (--top 0 shows all)"
        shown += paragraph(page, note, style="dim")
    return shown


def document(answer: Answer) -> dict[str, Any]:
    """Return the rows as dictionaries, ready for JSON; bytes are hexadecimal text."""
    return {
        "columns": list(answer.columns),
        "rows": [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows],
    }


def as_csv(answer: Answer) -> str:
    """Return the rows as CSV text with a header line; missing values are empty fields."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_plain(value) for value in row] for row in answer.rows)
    return text.getvalue()


def as_markdown(answer: Answer) -> str:
    """Return the rows as a Markdown table."""
    escaped = to_markdown.escaped
    headers = zip(map(escaped, answer.columns), _numeric(answer), strict=True)
    rows = ([escaped(_cell(value)) for value in row] for row in answer.rows)
    made = to_markdown.grid(headers, rows)
    made += (
        ["", f"Only the first {units.quantity(len(answer.rows), 'row')}."] if answer.more else []
    )
    return "\n".join(made) + "\n"


def _plain(value: Any) -> Any:
    """Return a value that JSON knows."""
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    """Return a value as text: integers whole, floats to ten digits."""
    if value is None:
        return units.MISSING
    if isinstance(value, float):
        return f"{value:.10g}"
    return printable(value.hex() if isinstance(value, bytes) else str(value))


def _numeric(answer: Answer) -> list[bool]:
    """Return which columns hold numbers only, and at least one."""
    found = []
    for values in zip(*answer.rows, strict=True):
        kinds = {type(value) for value in values} - {type(None)}
        found.append(bool(kinds) and kinds <= {int, float})
    return found or [False] * len(answer.columns)


def _widths(
    width: int, headers: Sequence[str], cells: list[list[str]], right: list[bool]
) -> list[int] | None:
    """Return the columns' widths, those of texts reduced to fit; None where that is too little."""
    wanted = [
        max(cell_len(printable(header)), *map(cell_len, column))
        for header, column in zip(headers, zip(*cells, strict=True), strict=True)
    ]
    spare = width - _GAP * (len(wanted) - 1) - sum(wanted)
    while spare < 0:
        texts = [place for place, is_right in enumerate(right) if not is_right]
        longest = max(texts, key=wanted.__getitem__, default=None)
        if longest is None or wanted[longest] <= _LEAST_TEXT:
            return None
        second = max((wanted[place] for place in texts if wanted[place] < wanted[longest]),
                     default=_LEAST_TEXT)  # fmt: skip
        cut = min(-spare, wanted[longest] - max(_LEAST_TEXT, second - 1))
        wanted[longest] -= cut
        spare += cut
    return wanted


def _table(
    answer: Answer, cells: list[list[str]], right: list[bool], widths: list[int]
) -> list[Text]:
    columns = [
        list(column) if is_right else shorten_all(column, width)
        for column, is_right, width in zip(zip(*cells, strict=True), right, widths, strict=True)
    ]
    headers = [shorten(name, width) for name, width in zip(answer.columns, widths, strict=True)]
    made = [_row(headers, right, widths, "dim")]
    return made + [_row(row, right, widths) for row in zip(*columns, strict=True)]


def _row(cells: Sequence[str], right: list[bool], widths: list[int], style: str = "") -> Text:
    line = Text(style=style)
    for place, (cell, is_right, width) in enumerate(zip(cells, right, widths, strict=True)):
        blanks = " " * (width - cell_len(cell))
        line.append(" " * _GAP if place else "")
        line.append(blanks + cell if is_right else cell + blanks)
    line.rstrip()
    return line


def _list(answer: Answer, cells: list[list[str]], page: Page) -> list[Text]:
    """Return each row as lines of a column's name and its value."""
    names = shorten_all(answer.columns, page.width // 2)
    room = max(map(cell_len, names))
    made: list[Text] = []
    for number, row in enumerate(cells, start=1):
        made.append(Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            blanks = " " * (room - cell_len(name) + _GAP)
            value = shorten(cell, page.width - room - _GAP)
            made.append(Text.assemble((name + blanks, "dim"), value))
    return made
