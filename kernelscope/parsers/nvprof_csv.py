"""CSV that nvprof prints: metrics and events of each execution, or summaries over a kernel's.

====================================  ===========================================================
``--metrics … --csv``                 a row per kernel and metric: number of invocations, least,
``--events … --csv``                  most, mean and, of events, total; the unit stands in the cell
``--print-gpu-trace --metrics … ``    a row per execution and a column per metric, units in the
                                      second line
``--csv``                             a row per kernel: how long its executions took, in total,
                                      on average, at least and at most
====================================  ===========================================================

What nvprof itself says begins with ``==``. A level such as ``Low (2)`` is the number in brackets,
``Max (10)`` is 10, and an empty cell is none. Means of counts are printed without decimals, cut off
rather than rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from kernelscope import units
from kernelscope.errors import DamagedFileError, NotATraceError
from kernelscope.parsers import counter_units
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.counter_file import CounterFile
from kernelscope.parsers.counter_numbers import NO_VALUE, Number, Style, style_of
from kernelscope.parsers.counter_set import Collected, CounterSet, Value, joined, numbered
from kernelscope.parsers.counter_text import TextTable, tables
from kernelscope.parsers.nvprof_tables import kind_of_metric

NAME = "nvprof CSV"
DESCRIPTION = "CSV that nvprof prints (nvprof --csv --metrics …, also with --print-gpu-trace)"

AGAIN = "Print it again: nvprof --csv --log-file FILE.csv --metrics METRICS PROGRAM"

_TIMELINE = ("Start", "Duration")
_PER_EXECUTION = ("Device", "Context", "Stream", "Kernel")
_SUMMARY = ("Device", "Kernel", "Invocations")
_TIMES = ("Type", "Time(%)")
_STATISTICS = {"Min": "min", "Max": "max", "Avg": "mean", "Total": "sum"}
_TIME_STATISTICS = {"Min": "min", "Max": "max", "Avg": "mean", "Time": "sum"}
_HEADER = re.compile(
    r'"?Device"?,"?(?:Kernel"?,"?Invocations|Context"?,"?Stream"?,"?Kernel)"?,'
    r'|"?Type"?,"?Time\(%\)"?,|"?Start"?,"?Duration"?,'
)

_DEVICE = re.compile(r"(?P<name>.*) \((?P<id>\d+)\)")
_INSTANCE = re.compile(r"(?P<metric>.+) \((?P<id>\d+)\)")
_INSTANCES = re.compile(r"(?P<metric>.+) \(\d+ instances\)")
_LEVEL_TEXT = re.compile(r"(?:Idle|Low|Mid|High|Max)\s*\((?P<level>\d{1,2})\)", re.IGNORECASE)
_WORDS = {"idle": 0, "max": 10}
_CELL = re.compile(r"(?P<number>.*?[0-9.,])\s*(?P<unit>%|[KMGT]?B(?:/s)?|ns|us|ms|s)?")
_MOST_LEVEL = 10
_LEVEL = "level"
_CUT_OFF, _ROUNDED = 1.0, 0.5  # how far a mean without decimals may lie from the true one
_NAMES = ("Metric Name", "Event Name")


def recognises(file: CounterFile) -> bool:
    """Return whether a text holds a table of nvprof; never raises."""
    try:
        text = file.text
    except (OSError, DamagedFileError):
        return False
    return text is not None and _HEADER.search(text) is not None


def parse(file: CounterFile) -> CounterSet:
    """Read every table of nvprof in a text.

    Raises
    ------
    NotATraceError
        If it holds no counters: it is a timeline, or no kernel ran.
    DamagedFileError
        If the text ends within a row.
    """
    found = [table for table in tables(file.text or "") if _kind(table.header) is not None]
    for table in found:
        _check_whole(file, table)
    counted = [table for table in found if _kind(table.header) != _TIMELINE and table.rows]
    style = style_of(cell for table in counted for cell in _number_cells(table))
    parts = [part for table in counted if (part := _collected(str(file.path), table, style))]
    if not parts:
        raise _without_counters(file, any(_kind(table.header) == _TIMELINE for table in found))
    whole = joined(list(numbered(parts)))
    return CounterSet(
        whole.counters, whole.executions, whole.sources, tuple(_doubts(file, found, style))
    )


def _kind(header: Sequence[str]) -> tuple[str, ...] | None:
    for kind in (_PER_EXECUTION, _SUMMARY, _TIMES, _TIMELINE):
        if tuple(header[: len(kind)]) == kind:
            return kind
    return None


def _check_whole(file: CounterFile, table: TextTable) -> None:
    cut = table.cut
    if cut is None and table.rows:
        line, cells = table.rows[-1]
        cut = line if len(cells) < len(table.header) else None
    if cut is not None:
        raise DamagedFileError(
            f"{file.path} ends in the middle of a row, in line {cut:,}: the text was cut off.",
            AGAIN,
        )


def _without_counters(file: CounterFile, timeline: bool) -> NotATraceError:
    if timeline:
        return NotATraceError(
            f"{file.path} is a timeline that nvprof printed, without counters.",
            "Give its database to kernelscope analyze (nvprof --export-profile FILE.nvprof); for "
            "counters run nvprof --csv --metrics METRICS PROGRAM.",
        )
    return NotATraceError(
        f"{file.path} holds tables of nvprof, and no kernel in them.",
        "Look at what nvprof printed above them: no kernel ran, or counting is not permitted "
        "(ERR_NVGPUCTRPERM).",
    )


def _number_cells(table: TextTable) -> Iterable[str]:
    first = len(_kind(table.header) or ())
    for _, cells in table.rows:
        for cell in cells[first:]:
            match = _CELL.fullmatch(cell)
            if match is not None:
                yield match["number"]


def _collected(file: str, table: TextTable, style: Style) -> Collected | None:
    kind = _kind(table.header)
    rows = [cells for _, cells in table.rows if len(cells) == len(table.header)]
    summarised = kind != _PER_EXECUTION
    what, read = {
        _SUMMARY: ("summary of metrics", _summary),
        _PER_EXECUTION: ("a row per execution", _per_execution),
        _TIMES: ("summary of times", _times),
    }[kind or ()]
    part = Collected(
        "nvprof", file, f"nvprof CSV, {what}", counter_units.of_nvprof, summarised=summarised
    )
    read(_Cells(part, style), table.header, rows)
    return part if part.executions else None


@dataclass(frozen=True, slots=True)
class _Cells:
    """Adds printed cells to what was collected, all in one style of numbers."""

    part: Collected
    style: Style

    def execution(self, **columns: str | int | None) -> int:
        """Add an execution and return its place."""
        self.part.executions.append(columns)
        return len(self.part.executions) - 1

    def add(  # noqa: PLR0913 - the columns of a value
        self,
        execution: int,
        metric: str,
        cell: str,
        unit: str = "",
        *,
        statistic: str = "value",
        instance: int | None = None,
    ) -> None:
        """Add the value that a cell holds, or that it holds none."""
        value, written, problem = _value(cell, unit, self.style)
        if isinstance(value, Number):
            written = written or _stored_unit(metric)
            if statistic == "mean" and value.whole is not None:
                half = _CUT_OFF if written != _LEVEL else _ROUNDED
                value = Number(value.value, None, half)
        self.part.add(
            execution,
            metric,
            value,
            written,
            statistic=statistic,
            instance=instance,
            problem=problem,
        )

    def add_instances(self, execution: int, metric: str, cell: str, statistic: str) -> None:
        """Add what one cell says of every SM, ``30.5%,0.0%,…``; nvprof leaves some empty."""
        between = "%," if "%," in cell else ","
        for instance, each in enumerate(cell.split(between) if cell else ()):
            text = f"{each.rstrip('%')}%" if "%" in cell else each
            self.add(execution, metric, text, statistic=statistic, instance=instance)


def _summary(to: _Cells, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    name = next((i for i, each in enumerate(header) if each in _NAMES), None)
    if name is None:
        return
    columns = [(i, _STATISTICS[each]) for i, each in enumerate(header) if each in _STATISTICS]
    places: dict[tuple[str, ...], int] = {}
    for cells in rows:
        count = cells[2].replace(",", "")
        if not count.isdigit():
            continue
        key = tuple(cells[:3])
        if key not in places:
            places[key] = to.execution(
                kernel_name=cells[1], executions=int(count), **_device(cells[0])
            )
        several = _INSTANCES.fullmatch(cells[name])
        for i, statistic in columns:
            if several is not None:
                to.add_instances(places[key], several["metric"], cells[i], statistic)
            else:
                to.add(places[key], cells[name], cells[i], statistic=statistic)


def _per_execution(to: _Cells, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    by_id = len(header) > 4 and header[4] == "Correlation_ID"
    first = 5 if by_id else 4
    printed: Sequence[str] = [""] * len(header)
    for cells in rows:
        if not any(cells[:4]):  # the line of units
            printed = cells
            continue
        row = to.execution(
            context_id=_whole(cells[1]),
            stream_id=_whole(cells[2]),
            kernel_name=cells[3],
            correlation_id=_whole(cells[4]) if by_id else None,
            execution=len(to.part.executions),
            **_device(cells[0]),
        )
        for i in range(first, len(header)):
            one = _INSTANCE.fullmatch(header[i])
            metric = header[i] if one is None else one["metric"]
            instance = None if one is None else int(one["id"])
            to.add(row, metric, cells[i], printed[i], instance=instance)


def _times(to: _Cells, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Add how long kernels took; copies, memsets and calls are none."""
    place = {name: i for i, name in enumerate(header)}
    printed: Sequence[str] = [""] * len(header)
    for cells in rows:
        if not any((cells[0], cells[place["Name"]])):
            printed = cells
            continue
        name, calls = cells[place["Name"]], cells[place["Calls"]].replace(",", "")
        if cells[0] != "GPU activities" or name.startswith("[CUDA ") or not calls.isdigit():
            continue
        row = to.execution(kernel_name=name, executions=int(calls))
        for column, statistic in _TIME_STATISTICS.items():
            to.add(row, "Time", cells[place[column]], printed[place[column]], statistic=statistic)


def _value(cell: str, unit: str, style: Style) -> tuple[Value, str, str | None]:
    """Return what a cell holds, its unit, and why it holds no value."""
    text = cell.strip()
    level = _LEVEL_TEXT.fullmatch(text)
    if level is not None and int(level["level"]) <= _MOST_LEVEL:
        return Number(float(level["level"]), int(level["level"])), _LEVEL, None
    small = text.lower()
    if small in _WORDS:
        return Number(float(_WORDS[small]), _WORDS[small]), _LEVEL, None
    if small in NO_VALUE:
        return None, unit, "no_value"
    for word in ("overflow", "invalid"):
        if word in small:
            return None, unit, word
    match = _CELL.fullmatch(text)
    number = None if match is None else style.number(match["number"])
    if match is None or number is None:
        return text, unit, None if small.isalpha() else "unreadable"
    return number, match["unit"] or unit, None


@cache
def _stored_unit(metric: str) -> str:
    """Return the unit of a number that is printed without one, where the metric is known."""
    kind = kind_of_metric(metric)
    return "" if kind is None else names.UNITS[kind]


def _device(cell: str) -> dict[str, str | int | None]:
    match = _DEVICE.fullmatch(cell)
    if match is None:
        return {"device_name": cell or None}
    return {"device_name": match["name"], "device_id": int(match["id"])}


def _whole(cell: str) -> int | None:
    return int(cell) if cell.isdigit() and len(cell) < 19 else None


def _doubts(file: CounterFile, found: Sequence[TextTable], style: Style) -> Iterable[str]:
    if style.guessed and style.decimal == ",":
        yield (
            f"{file.path}: no number tells the decimal mark; points before three digits were "
            "taken for thousands."
        )
    odd = sum(table.odd for table in found)
    if odd:
        yield f"{file.path}: {units.quantity(odd, 'line')} left out that fit no row of nvprof."
    if not (file.text or "").endswith(("\n", "\r")):
        yield (f"{file.path} does not end with the end of a line: the last number may be cut off.")
