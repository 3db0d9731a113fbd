"""CSV that Nsight Compute prints: one row per value, per execution (raw), or a summary.

==========================  =====================================================================
``--page details``,         a row per execution and metric: section, name, unit, value; rows of
``--metrics``               rules beside them
``--page raw``              a row per execution and a column per metric, units in the second line
``--print-summary``         a row per kernel, shape and metric: least, most and mean
==========================  =====================================================================

Units stand in every row, and are scaled to it; numbers are printed in the locale of whoever ran
it. Before the header stands whatever the program printed. Older versions print neither grid nor
block. What a rule says is no counter, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelscope import units
from kernelscope.errors import DamagedFileError, NotATraceError
from kernelscope.parsers import counter_units
from kernelscope.parsers.counter_file import CounterFile
from kernelscope.parsers.counter_numbers import NO_VALUE, Style, style_of
from kernelscope.parsers.counter_set import SHAPE, Collected, CounterSet, Value, joined, numbered
from kernelscope.parsers.counter_text import TextTable, tables

NAME = "ncu CSV"
DESCRIPTION = "CSV that ncu prints (ncu --csv, with --page details or raw, or --print-summary)"

AGAIN = (
    "Print it again to a file of its own: ncu --import REPORT.ncu-rep --csv --page raw > FILE.csv"
)
_COMMANDED = "Command line profiler metrics"  # the section of what --metrics asks for
_STATISTICS = {"Minimum": "min", "Maximum": "max", "Average": "mean"}
_ABOUT = frozenset((
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
    "Stream", "Block Size", "Grid Size", "Device", "CC", "Invocations", "NVTX", "Thread ID",
))  # fmt: skip
_RANGES = re.compile(r"Push/Pop|Start/End|Domain:|^Id:")
_COLUMN = re.compile(r'"?(?:ID|Process ID)"?,"?Process (?:ID|Name)"?,')
_INSTANCES = re.compile(r"(?P<value>[^(;]*[0-9%][^(;]*?)\s*\([^()]*\)")


def recognises(file: CounterFile) -> bool:
    """Return whether a text holds a table of ncu; never raises."""
    text = _text(file)
    return text is not None and _COLUMN.search(text) is not None


def _text(file: CounterFile) -> str | None:
    try:
        return file.text
    except (OSError, DamagedFileError):
        return None


def parse(file: CounterFile) -> CounterSet:
    """Read every table of ncu in a text.

    Raises
    ------
    NotATraceError
        If no table has a row.
    DamagedFileError
        If the text ends within a row.
    """
    found = [table for table in tables(file.text or "") if _is_ours(table.header)]
    for table in found:
        _check_whole(file, table)
    if not any(table.rows for table in found):
        raise NotATraceError(
            f"{file.path} holds the header of a table that ncu prints, and no row: no kernel was "
            "profiled.",
            "Look at what ncu printed above it: a filter that no kernel matched, or no permission "
            "to count (ERR_NVGPUCTRPERM).",
        )
    style = style_of(cell for table in found for cell in _number_cells(table))
    reader = _Reader(str(file.path), style)
    parts = [reader.collected(table) for table in found if table.rows]
    whole = joined(list(numbered(parts)))
    return CounterSet(
        whole.counters, whole.executions, whole.sources, tuple(reader.doubts(file, found))
    )


def _is_ours(header: Sequence[str]) -> bool:
    return "Process ID" in header[:2]


def _is_wide(header: Sequence[str]) -> bool:
    return "Metric Name" not in header


def _least_cells(header: Sequence[str]) -> int:
    """Return how many cells a row has at least: those of rules may be left away."""
    if _is_wide(header):
        return len(header)
    last = "Metric Value" if "Metric Value" in header else header[-1]
    return header.index(last) + 1


def _check_whole(file: CounterFile, table: TextTable) -> None:
    cut = table.cut
    if "Kernel Name" not in table.header and "Metric Name" not in table.header:
        raise DamagedFileError(f"{file.path} ends in the header of a table of ncu.", AGAIN)
    if cut is None and table.rows:
        line, cells = table.rows[-1]
        cut = line if cells[0].isdigit() and len(cells) < _least_cells(table.header) else None
    if cut is not None:
        raise DamagedFileError(
            f"{file.path} ends in the middle of a row, in line {cut:,}: the text was cut off.",
            AGAIN,
        )


def _number_cells(table: TextTable) -> Iterable[str]:
    header = table.header
    if _is_wide(header):
        first = _first_metric(header)
        for _, cells in table.rows:
            yield from cells[first:]
        return
    wanted = [i for i, name in enumerate(header) if name in ("Metric Value", *_STATISTICS)]
    for _, cells in table.rows:
        yield from (cells[i] for i in wanted if i < len(cells))


def _first_metric(header: Sequence[str]) -> int:
    """Return where the columns of metrics begin."""
    places = [place for place, name in enumerate(header) if name in _ABOUT or _RANGES.search(name)]
    return max(places) + 1


class _Reader:
    """Turns tables into values; numbers are written in one style."""

    def __init__(self, file: str, style: Style) -> None:
        self.file, self.style = file, style
        self.unreadable = 0
        self.known: dict[str, tuple[Value, str | None]] = {}

    def collected(self, table: TextTable) -> Collected:
        if _is_wide(table.header):
            return self._wide(table)
        return self._long(table)

    def _long(self, table: TextTable) -> Collected:
        header = table.header
        place = {name: i for i, name in enumerate(header)}
        summary = "Metric Value" not in place
        kind = "ncu CSV, summary" if summary else "ncu CSV, a row per metric"
        part = Collected("ncu", self.file, kind, counter_units.of_ncu, summarised=summary)
        columns = {"Metric Value": "value"} if not summary else _STATISTICS
        values = [(place[column], name) for column, name in columns.items() if column in place]
        about = max(place[name] for name in header if name in _ABOUT) + 1
        metric, least = place["Metric Name"], _least_cells(header)
        section, unit = place.get("Section Name"), place.get("Metric Unit")
        executions: dict[tuple[str, ...], int] = {}
        for _, cells in table.rows:
            if len(cells) < least or not cells[metric]:
                continue  # a rule
            key = tuple(cells[:about])
            row = executions.get(key)
            if row is None:
                row = executions[key] = len(part.executions)
                part.executions.append(_execution(dict(zip(header, cells, strict=False)), summary))
            heading = cells[section] if section is not None else ""
            if heading == _COMMANDED:
                heading = ""
            for column, statistic in values:
                value, problem = self._value(cells[column])
                part.add(
                    row,
                    cells[metric],
                    value,
                    cells[unit] if unit is not None else None,
                    section=heading or None,
                    statistic=statistic,
                    problem=problem,
                )
        _name_process(part, table)
        return part

    def _wide(self, table: TextTable) -> Collected:
        header, first = table.header, _first_metric(table.header)
        part = Collected("ncu", self.file, "ncu CSV, page raw", counter_units.of_ncu)
        printed: Sequence[str] = [""] * len(header)
        for _, cells in table.rows:
            if not cells[0]:  # the line of units
                printed = cells
                continue
            if len(cells) < len(header):
                continue
            part.executions.append(_execution(dict(zip(header, cells, strict=True)), False))
            found = [self._value(cell) for cell in cells[first:]]
            part.add_row(
                header[first:],
                [value for value, _ in found],
                printed[first:],
                [problem for _, problem in found],
            )
        _name_process(part, table)
        return part

    def _value(self, cell: str) -> tuple[Value, str | None]:
        found = self.known.get(cell)
        if found is None:
            found = self.known[cell] = self._read(cell)
        self.unreadable += found[1] == "unreadable"
        return found

    def _read(self, cell: str) -> tuple[Value, str | None]:
        number = self.style.number(cell)
        if number is not None:
            return number, None
        if cell.strip().lower() in NO_VALUE:
            return None, "no_value"
        instances = _INSTANCES.fullmatch(cell)  # --print-metric-instances: the whole, then parts
        if instances is not None and (number := self.style.number(instances["value"])) is not None:
            return number, None
        if re.fullmatch(r"[\s0-9.,'’+\-]+", cell):
            return None, "unreadable"
        return cell, None

    def doubts(self, file: CounterFile, found: Sequence[TextTable]) -> Iterable[str]:
        """Iterate over what there is to doubt about the text."""
        if self.style.guessed and self.style.decimal == ",":
            yield (
                f"{file.path}: no number tells the decimal mark; points before three digits were "
                "taken for thousands."
            )
        if self.unreadable:
            yield (
                f"{file.path}: {units.quantity(self.unreadable, 'cell')} with digits and without a "
                "number in the style of the others; there is no value."
            )
        odd = sum(table.odd for table in found)
        if odd:
            yield f"{file.path}: {units.quantity(odd, 'line')} left out that fit no row of ncu."


def _execution(cells: Mapping[str, str], summary: bool) -> dict[str, Any]:
    """Return what a row says about the execution, or the executions, that it is of."""
    shape = [*_three(cells.get("Grid Size")), *_three(cells.get("Block Size"))]
    major, _, minor = cells.get("CC", "").partition(".")
    return {
        "execution": None if summary else _whole(cells.get("ID")),
        "process_id": _whole(cells.get("Process ID")),
        "device_id": _whole(cells.get("Device")),
        "context_id": _whole(cells.get("Context")),
        "stream_id": _whole(cells.get("Stream")),
        "kernel_name": cells.get("Kernel Name") or None,
        **dict(zip(SHAPE, shape, strict=True)),
        "executions": (_whole(cells.get("Invocations")) or 1) if summary else 1,
        "compute_major": _whole(major),
        "compute_minor": _whole(minor),
        "started_at": cells.get("Kernel Time") or None,
    }


def _three(text: str | None) -> list[int | None]:
    """Return the sizes of ``(1024, 1, 1)``; None where there are not three."""
    found = [int(digits) for digits in re.findall(r"[0-9]{1,10}", text or "")]
    return [*found] if len(found) == 3 else [None, None, None]


def _whole(text: str | None) -> int | None:
    """Return a whole number, thousands apart or not; None where there is none."""
    digits = re.sub(r"[,.'’\u00a0\u202f ]", "", text or "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _name_process(part: Collected, table: TextTable) -> None:
    if "Process Name" in table.header:
        place = table.header.index("Process Name")
        names = [cells[place] for _, cells in table.rows if len(cells) > place and cells[place]]
        part.source["process_name"] = names[0] if names else None
