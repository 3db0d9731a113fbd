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
        [_escaped(text) for text in units.texts(plain(shown, column.name), column.unit)]
        for column in columns
    ]
    lines = [
        f"### {table.schema.meaning}",
        "",
        _line([column.name for column in columns]),
        _line(["---" if column.dtype == "category" else "---:" for column in columns]),
        *(_line(row) for row in zip(*cells, strict=True)),
    ]
    if len(shown) < len(rows):
        lines += ["", f"{units.count(len(rows) - len(shown))} more rows are not shown."]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Keep what a kernel's template arguments would otherwise do to the page.

    A bracket could begin an image, which a browser fetches from wherever it says.
    """
    text = printable(text)
    for character in "\\|<*_`[":
        text = text.replace(character, f"\\{character}")
    return text
