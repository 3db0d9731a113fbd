"""A result table in Markdown, with units, to paste into an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kernelscope import units
from kernelscope.report.printable import printable
from kernelscope.report.rows import ordered, plain
from kernelscope.trace import Table


def render(table: Table, top: int = 0) -> str:
    """Return `table` as a Markdown table under its question.

    Parameters
    ----------
    table : Table
        A result table.
    top : int
        How many rows to show; 0 shows all.
    """
    columns = table.schema.columns
    rows = ordered(table)
    shown = rows.take(np.arange(min(top, len(rows)))) if top else rows
    cells = [
        [escaped(text) for text in units.texts(plain(shown, column.name), column.unit)]
        for column in columns
    ]
    headers = [(column.name, column.dtype != "category") for column in columns]
    lines = [f"### {table.schema.meaning}", "", *grid(headers, zip(*cells, strict=True))]
    if len(shown) < len(rows):
        lines += ["", f"{units.count(len(rows) - len(shown))} more rows are not shown."]
    return "\n".join(lines) + "\n"


def grid(headers: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table.

    Parameters
    ----------
    headers : iterable of (str, bool)
        Names of the columns, and whether each is aligned right.
    rows : iterable of iterable of str
        Cells, escaped already.
    """
    headers = list(headers)
    return [
        _line([name for name, _ in headers]),
        _line(["---:" if right else "---" for _, right in headers]),
        *map(_line, rows),
    ]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Keep what a kernel's template arguments would otherwise do to the page.

    A bracket could begin an image, which a browser fetches from wherever it says.
    """
    text = printable(text)
    for character in "\\|<*_`[":
        text = text.replace(character, f"\\{character}")
    return text
