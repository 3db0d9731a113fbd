"""An explanation with the numbers of a trace put in, and checked against SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.explanations import Topic, Worked, names_in, worked
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.report.document import launches
from kernelscope.report.rows import ordered, plain
from kernelscope.report.sql import execute
from kernelscope.report.sql_tables import Source, column_name
from kernelscope.schema import Column
from kernelscope.trace import Table

_COUNTS = ("executions", "calls", "operations", "events")
_NO_LABEL = frozenset(
    ("physical_id", "kind_source", "bytes_source", "bytes_missing_because", "ranks_source",
     "limiter", "occupancy_note", "instruction", "input_type", "accumulate_type", "unit",
     "clock_basis", "confidence", "gpu", "matched_by", "family", "operation", "pipe")
)  # fmt: skip
"""Columns of text that say something of a row, and do not name it."""

_CLOSE = 1e-9
"""Floats of two ways to reckon agree to this share of them."""

WHOLE = "first to last CUDA activity"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What SQL finds beside what the analysis reports.

    Attributes
    ----------
    rows : int
        How many rows were compared.
    differences : tuple of str
        Those that differ, one sentence each.
    """

    rows: int
    differences: tuple[str, ...]


def numbers(topic: Topic, analysis: Analysis, top: int = 0) -> tuple[list[Worked], int]:
    """Return the formula of `topic` with the numbers of a trace put in, and how many rows it has.

    Parameters
    ----------
    topic : Topic
        What is explained.
    analysis : Analysis
        Of the trace.
    top : int
        How many rows are wanted, in the order of the report; 0 for all.
    """
    formula = topic.explanation.numbers
    if callable(formula):
        found = formula(analysis)
        return found, len(found)
    if topic.table is None:
        return [Worked("", "", _fact(topic.key, analysis))], 1
    table = ordered(analysis.tables[topic.table.name])
    shown = table.take(np.arange(min(top, len(table)))) if top else table
    labels = _labels(shown, topic.column)
    if (
        formula is None
        or (topic.explanation.whole and analysis.window.chosen_by != WHOLE)
        or (analysis.capture.serialised is not None and (topic.column or "window_ns" in formula))
    ):  # of a serialised capture, what would be put in is withheld, or says nothing
        values = plain(shown, topic.column.name) if topic.column else [None] * len(shown)
        return [
            Worked(*each) for each in zip(labels, [""] * len(labels), values, strict=True)
        ], len(table)
    return list(_worked(shown, table, formula, labels, analysis.window.duration_ns)), len(table)


def reported(topic: Topic, analysis: Analysis) -> list[Any] | None:
    """Return what the analysis itself says, row by row; None where it is made of columns only."""
    if topic.table is None or topic.column is None:
        return None
    return plain(ordered(analysis.tables[topic.table.name]), topic.column.name)


def compare(topic: Topic, source: Source) -> Comparison | None:
    """Say whether SQL over the canonical tables finds what the analysis reports.

    Parameters
    ----------
    topic : Topic
        What is checked.
    source : Source
        The trace and its analysis.

    Returns
    -------
    Comparison or None
        None where nothing can be compared: see :func:`unchecked`.
    """
    query = topic.explanation.sql.get(topic.key)
    if query is None or _of_another_part(topic, source):
        return None
    answer = execute(source, query)
    ours = _keyed(topic, source.analysis(), answer.columns[:-1])
    theirs = {row[:-1]: row[-1] for row in answer.rows}
    pairs = [
        (key, ours.get(key), theirs.get(key))
        for key in sorted(ours.keys() | theirs.keys(), key=str)
    ]
    if source.trace.capture.serialised is not None:  # what is withheld is not denied
        pairs = [each for each in pairs if each[1] is not None]
        if not pairs:
            return None
    wrong = [
        f"{_spelled(key)}: SQL finds {_shown(found)}, the analysis {_shown(said)}"
        for key, said, found in pairs
        if not _agree(said, found)
    ]
    return Comparison(len(pairs), tuple(wrong))


def unchecked(topic: Topic, source: Source) -> str:
    """Return why :func:`compare` compares nothing."""
    if topic.key not in topic.explanation.sql:
        return f"there is no query for {topic.key}"
    if _of_another_part(topic, source):
        return f"the query for {topic.key} is of the whole trace, not of a part"
    return f"{topic.key} is withheld: {source.trace.capture.serialised}"


def _of_another_part(topic: Topic, source: Source) -> bool:
    return topic.explanation.sql_whole and source.analysis().window.chosen_by != WHOLE


def _keyed(topic: Topic, analysis: Analysis, columns: Sequence[str]) -> dict[tuple[Any, ...], Any]:
    """Return the reported values by what identifies their rows in an answer of SQL."""
    values = [each.value for each in numbers(topic, analysis)[0]]
    if topic.column is not None:
        values = reported(topic, analysis) or []
    if not columns or topic.table is None:
        return {(): values[0] if values else None}
    table = ordered(analysis.tables[topic.table.name])
    names = {column_name(name): name for name in table.schema.names}
    keys = zip(*(plain(table, names[column]) for column in columns), strict=True)
    return dict(zip(keys, values, strict=True))


def _agree(one: Any, other: Any) -> bool:
    """Return whether two values are the same; what SQL has no row for is none or nothing."""
    if one is None or other is None:
        return (one or 0) == (other or 0)
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return math.isclose(one, other, rel_tol=_CLOSE)


def _worked(
    shown: Table, table: Table, formula: str, labels: list[str], window_ns: int
) -> Iterator[Worked]:
    names, summed = names_in(formula)
    sums = {name: _sum(plain(table, name)) for name in summed}
    columns = {
        name: [window_ns] * len(labels)
        if name == "window_ns" and name not in shown.schema.names
        else _column(shown, name)
        for name in names
    }
    for place, label in enumerate(labels):
        row = {name: values[place] for name, values in columns.items()}
        yield worked(label, formula, row, sums)


def _fact(key: str, analysis: Analysis) -> Any:
    """Return what stands beside the tables, by its place in the JSON; None where nothing does."""
    if key == "launches.reason":
        return launches(analysis)["reason"]
    value: Any = {
        "capture": analysis.capture,
        "window": analysis.window,
        "iterations": analysis.iteration_summary,
    }.get(key.partition(".")[0])
    for name in key.split(".")[1:]:
        value = getattr(value, name, None)
    return _simple(value)


def _simple(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_simple(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _simple(each) for name, each in asdict(value).items()}
    return value


def _column(table: Table, name: str) -> list[Any]:
    """Return a column; ``n`` is the one that counts the events, whatever they are."""
    if name == "n":
        name = next(each for each in _COUNTS if each in table.schema.names)
    return plain(table, name)


def _sum(values: list[Any]) -> int | float | None:
    return None if None in values else sum(values)


def _labels(table: Table, of: Column | None) -> list[str]:
    """Return what tells the rows apart: names, ids, and when they began."""
    parts: list[list[str]] = [[] for _ in range(len(table))]
    has_path = "path" in table.schema.names
    for column in table.schema.columns:
        if "code" in table.schema.names and column.name != "code":
            continue  # the code says which; other texts are sentences
        text = column.dtype == "category" and column.name not in _NO_LABEL
        told = text or column.unit == "id" or column.name == "start_ns"
        if not told or column == of or (has_path and column.name == "name"):
            continue
        for part, value in zip(parts, table.values(column.name), strict=True):
            if value is not None and value != "":
                part.append(_part(column, value))
    return [", ".join(part) for part in parts]


def _part(column: Column, value: Any) -> str:
    if column.unit == "path":
        return str(value).replace(SEPARATOR, " > ")
    if column.name == "start_ns":
        return f"at {units.moment(value)}"
    if column.dtype == "category":
        return str(value)
    return f"{column.name.removesuffix('_id')} {value}"


def _spelled(key: tuple[Any, ...]) -> str:
    return ", ".join(map(str, key)) or "value"


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:,}"
