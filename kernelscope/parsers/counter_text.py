"""Tables inside the text that a profiled program and its profiler print together.

``nvprof --csv`` and ``ncu --csv`` write to the terminal that the program writes to: a table has
lines before it, after it and, where somebody buffers, between its rows.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = re.compile(
    r'^"?ID"?,"?Process ID"?,|"ID","Process ID",'  # ncu
    r'|^"?Process ID"?,"?Process Name"?,|"Process ID","Process Name",'  # ncu --print-summary
    r'|^"?Device"?,"?Kernel"?,"?Invocations"?,|"Device","Kernel","Invocations",'  # nvprof
    r'|^"?Device"?,"?Context"?,"?Stream"?,"?Kernel"?,|"Device","Context","Stream","Kernel",'
    r'|^"?Type"?,"?Time\(%\)"?,|"Type","Time\(%\)",'
    r'|^"?Start"?,"?Duration"?,|"Start","Duration",',
    re.MULTILINE,
)
"""How the header line of a table begins; after a quote, also behind an unfinished line."""

_NEXT_PART = re.compile(r"result:|SUMMARY")
"""In a line of nvprof: what follows is another table, perhaps one of no known kind."""

_NUMBER = re.compile(r'"?[0-9]+"?(?:,|$)')
_MOST_JOINED = 200  # lines of one quoted cell


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table as it stands in a text.

    Attributes
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of (int, sequence of str)
        The line of the file that each row begins at, from 1, and its cells.
    odd : int
        How many lines look like rows, and have more cells than the header, or only one.
    cut : int or None
        The line of a row that ends within a cell, at the end of the text; None where all is whole.
    """

    header: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]
    odd: int = 0
    cut: int | None = None


def tables(text: str) -> list[TextTable]:
    """Return every table whose header line is known, in order."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [(number, start) for number, line in enumerate(lines) if (start := _header(line)) >= 0]
    ends = [*(number for number, _ in starts[1:]), len(lines)][: len(starts)]
    return [
        _table(lines, number, start, end) for (number, start), end in zip(starts, ends, strict=True)
    ]


_IN_HEADERS = ("Process ID", "Invocations", "Stream", "Time(%)", "Duration")
"""Every header holds one of these, and few other lines do."""


def _header(line: str) -> int:
    if not any(word in line for word in _IN_HEADERS):
        return -1
    found = HEADER.search(line)
    return -1 if found is None else found.start()


def _table(lines: Sequence[str], number: int, start: int, end: int) -> TextTable:
    quoted = lines[number].startswith('"', start)
    header = _cells([lines[number][start:]])[0]
    records: list[tuple[int, str]] = []
    cut, odd = None, 0
    for line, record in _records(lines, number + 1, end, quoted):
        if record is None:
            if end == len(lines) and _may_be_row(header, lines[line - 1]):
                cut = line
            continue
        records.append((line, record))
    rows: list[tuple[int, Sequence[str]]] = []
    for (line, _), cells in zip(records, _cells([text for _, text in records]), strict=True):
        if 1 < len(cells) <= len(header):
            rows.append((line, cells))
        else:
            odd += 1
    return TextTable(header, rows, odd, cut)


def _cells(records: Sequence[str]) -> list[list[str]]:
    """Return the cells of each record, none where a cell is longer than any name or number."""
    try:
        return list(csv.reader(records))  # a record is one item, with the line ends in its quotes
    except csv.Error:
        pass
    found = []
    for record in records:
        try:
            found.append(next(csv.reader([record])))
        except csv.Error:
            found.append([])
    return found


def _may_be_row(header: Sequence[str], line: str) -> bool:
    """Return whether a line begins as a row does: with a number, where the first column holds one.

    What the program prints may begin with a quote, too.
    """
    return header[0] not in ("ID", "Process ID") or _NUMBER.match(line) is not None


def _records(
    lines: Sequence[str], number: int, end: int, quoted: bool
) -> Iterator[tuple[int, str | None]]:
    """Iterate over the lines that can be rows; None for one that ends within a cell."""
    while number < end:
        line = lines[number]
        if line.startswith("=="):  # the profiler itself
            if _NEXT_PART.search(line):
                return
            number += 1
            continue
        if line.startswith(('"', ",")) or (not quoted and "," in line):
            last = _closing(lines, number, end)
            joined = None if last is None else "\n".join(lines[number : last + 1])
            yield number + 1, joined
            number = number if last is None else last
        number += 1


def _closing(lines: Sequence[str], number: int, end: int) -> int | None:
    """Return the line in which the last quote of line `number` is closed; None if it is not."""
    quotes = 0
    for last in range(number, min(end, number + _MOST_JOINED)):
        quotes += lines[last].count('"')
        if quotes % 2 == 0:
            return last
    return None
