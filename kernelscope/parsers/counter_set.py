"""What counter files hold, as one value; and the rows that a parser collects for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope import schema
from kernelscope.parsers.counter_numbers import Number
from kernelscope.parsers.counter_units import Unit
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    is_missing,
    missing_value,
    stacked,
)

_ABSENT = missing_value(np.dtype(np.int64))
_MOST_INT = 2**63 - 1

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_OF_EXECUTION = (
    "process_id", "device_id", "context_id", "stream_id", "correlation_id", "execution", *SHAPE,
)  # fmt: skip

DURATIONS = (
    "gpu__time_duration.sum", "gpu__time_duration.avg", "Duration", "Time",
    "gpu__time_active.avg",
)  # fmt: skip
"""Metrics that say how long an execution took, the best first."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CounterSet:
    """Counters of kernel executions, from one file or several.

    Attributes
    ----------
    counters : Table
        A row per value (:data:`kernelscope.schema.COUNTERS`).
    executions : Table
        The executions that they are of (:data:`kernelscope.schema.COUNTED_EXECUTIONS`).
    sources : Table
        The runs that were counted, which are never mixed
        (:data:`kernelscope.schema.COUNTER_SOURCES`).
    warnings : tuple of str
        What there is to doubt, one sentence each.
    """

    counters: Table = Table.empty(schema.COUNTERS)
    executions: Table = Table.empty(schema.COUNTED_EXECUTIONS)
    sources: Table = Table.empty(schema.COUNTER_SOURCES)
    warnings: tuple[str, ...] = ()

    def by_kernel(self, *, shapes: bool = False) -> Table:
        """How much did each kernel count, over all its executions?

        Runs of one program that counted different metrics come together here; of runs that
        counted the same metric, the mean.

        Parameters
        ----------
        shapes : bool
            Whether executions of one kernel with another grid or block stand apart.

        Returns
        -------
        Table
            :data:`kernelscope.parsers.counter_merge.COUNTERS_BY_KERNEL`.
        """
        from kernelscope.parsers.counter_merge import merged  # noqa: PLC0415 - it imports us

        return merged(self, shapes=shapes)

    def where(self, *, kernel: Callable[[str], bool], metric: Callable[[str], bool]) -> CounterSet:
        """Return the part whose kernels' and metrics' names two functions accept."""
        wanted = {
            name: np.array([*map(accepts, self.counters.categories(name)), accepts("")], np.bool_)
            for name, accepts in (("kernel_name", kernel), ("metric", metric))
        }
        rows = np.logical_and.reduce(
            [accepted[self.counters[name]] for name, accepted in wanted.items()]
        )
        unnamed = kernel("")
        kernels = [*map(kernel, self.executions.categories("kernel_name")), unnamed]
        executions = np.array(kernels, dtype=np.bool_)[self.executions["kernel_name"]]
        return replace(
            self, counters=self.counters.take(rows), executions=self.executions.take(executions)
        )


def joined(parts: Sequence[CounterSet]) -> CounterSet:
    """Return several sets as one: the runs are numbered anew, and stay apart."""
    moved, first = [], 0
    for part in parts:
        moved.append(_renumbered(part, first))
        first += len(part.sources)
    return CounterSet(
        _all([part.counters for part in moved], schema.COUNTERS),
        _all([part.executions for part in moved], schema.COUNTED_EXECUTIONS),
        _all([part.sources for part in moved], schema.COUNTER_SOURCES),
        tuple(warning for part in moved for warning in part.warnings),
    )


def _renumbered(part: CounterSet, first: int) -> CounterSet:
    def moved(table: Table) -> Table:
        return Table.make(table.schema, {**table.columns, "run": table["run"] + first})

    if not first:
        return part
    return CounterSet(
        moved(part.counters), moved(part.executions), moved(part.sources), part.warnings
    )


def _all(tables: Sequence[Table], table_schema: schema.TableSchema) -> Table:
    """Return the rows of all tables below each other, each copied a few times at the most."""
    kept = [table for table in tables if len(table)]
    if not kept:
        return Table.empty(table_schema)
    while len(kept) > 1:
        pairs = zip(kept[::2], kept[1::2], strict=False)
        kept = [stacked(one, other) for one, other in pairs] + kept[len(kept) & ~1 :]
    return kept[0]


Value = Number | int | float | str | None


@dataclass(slots=True)
class Collected:
    """What a parser has found of one run: executions, and rows of values.

    Attributes
    ----------
    tool, file, format_name : str
        Who counted, where it was read, and what that is.
    executions : list of dict
        Columns of :data:`kernelscope.schema.COUNTED_EXECUTIONS` without `run`.
    source : dict
        More columns of :data:`kernelscope.schema.COUNTER_SOURCES`.
    """

    tool: str
    file: str
    format_name: str
    unit_of: Callable[[str], Unit]
    executions: list[dict[str, Any]] = field(default_factory=list)
    source: dict[str, Any] = field(default_factory=dict)
    part: int = 0
    summarised: bool = False
    place: list[int] = field(default_factory=list)
    metric: list[str] = field(default_factory=list)
    value: list[Value] = field(default_factory=list)
    unit: list[str | None] = field(default_factory=list)
    section: list[str | None] = field(default_factory=list)
    statistic: list[str] = field(default_factory=list)
    instance: list[int | None] = field(default_factory=list)
    problem: list[str | None] = field(default_factory=list)

    def add(  # noqa: PLR0913 - the columns of a value
        self,
        execution: int,
        metric: str,
        value: Value,
        unit: str | None,
        *,
        section: str | None = None,
        statistic: str = "value",
        instance: int | None = None,
        problem: str | None = None,
    ) -> None:
        """Add a value.

        Parameters
        ----------
        execution : int
            The execution that it is of, by its place in `executions`.
        metric : str
            The counter's name.
        value : Number, int, float, str or None
            As printed (`Number`) or as stored, in `unit`; a text that is no number; None where
            there is none.
        unit : str or None
            As the source spells it.
        section, statistic, instance, problem
            As in :data:`kernelscope.schema.COUNTERS`.
        """
        # A text has no unit, whatever stands beside it: ncu-report itself names one that depends
        # on which report was opened before.
        self.place.append(execution)
        self.metric.append(metric)
        self.value.append(value)
        self.unit.append(None if isinstance(value, str) else unit or None)
        self.section.append(section)
        self.statistic.append(statistic)
        self.instance.append(instance)
        self.problem.append(problem)

    def add_row(
        self,
        metrics: Sequence[str],
        values: Sequence[Value],
        units: Sequence[str],
        problems: Sequence[str | None],
    ) -> None:
        """Add the values of the last execution, one of each metric."""
        number = len(metrics)
        self.place += [len(self.executions) - 1] * number
        self.metric += metrics
        self.value += values
        self.unit += [
            None if isinstance(value, str) else unit or None
            for value, unit in zip(values, units, strict=True)
        ]
        self.section += [None] * number
        self.statistic += ["value"] * number
        self.instance += [None] * number
        self.problem += problems

    def finished(self) -> CounterSet:
        """Return what was collected."""
        if not self.place:
            return CounterSet(executions=self._executions(None), sources=self._source())
        rows = np.array(self.place, dtype=np.intp)
        executions = self._executions(None)
        unit_recorded = Categorical.of(self.unit)
        columns: dict[str, ColumnData] = {
            "metric": Categorical.of(self.metric),
            "section": Categorical.of(self.section),
            "unit_recorded": unit_recorded,
            "statistic": Categorical.of(self.statistic),
            "instance": _integers(self.instance),
            "problem": Categorical.of(self.problem),
            **_values(self.value, unit_recorded, self.unit_of),
            **{name: executions[name][rows] for name in (*_OF_EXECUTION, "executions")},
            "kernel_name": Categorical(
                executions["kernel_name"][rows], executions.categories("kernel_name")
            ),
            "source": Categorical.constant(self.tool, len(rows)),
            "file": Categorical.constant(self.file, len(rows)),
            "run": np.zeros(len(rows), dtype=np.int32),
        }
        counters = Table.make(schema.COUNTERS, columns)
        timed = _durations(counters, rows, len(self.executions))
        return CounterSet(counters, self._executions(timed), self._source(len(set(self.metric))))

    def _executions(self, durations: Array | None) -> Table:
        if not self.executions:
            return Table.empty(schema.COUNTED_EXECUTIONS)
        rows = [{"executions": 1, **row, "run": 0} for row in self.executions]
        table = Table.of_records(schema.COUNTED_EXECUTIONS, rows)
        if durations is None:
            return table
        recorded = table["duration_ns"]
        filled = np.where(is_missing(recorded), durations, recorded)
        return Table.make(table.schema, {**table.columns, "duration_ns": filled})

    def _source(self, metrics: int = 0) -> Table:
        known: dict[str, Any] = {
            "run": 0,
            "file": self.file,
            "part": self.part,
            "tool": self.tool,
            "format": self.format_name,
            "summarised": self.summarised,
            "executions": sum(row.get("executions", 1) for row in self.executions),
            "metrics": metrics,
            **self.source,
        }
        return one_row(schema.COUNTER_SOURCES, known)


def one_row(table_schema: schema.TableSchema, values: Mapping[str, Any]) -> Table:
    """Return a table of one row; None and what is not named is missing."""
    return Table.of_records(table_schema, [values])


def _integers(values: Sequence[int | None]) -> npt.NDArray[np.int64]:
    return np.array([_ABSENT if value is None else value for value in values], dtype=np.int64)


def _values(
    values: Sequence[Value], recorded: Categorical, unit_of: Callable[[str], Unit]
) -> dict[str, ColumnData]:
    """Return the columns that hold the values in canonical units."""
    units = [*map(unit_of, recorded.categories), unit_of("")]
    name = Categorical.of([unit.name for unit in units])
    times = np.array([unit.times for unit in units], dtype=np.float64)[recorded.codes]
    over = np.array([unit.over for unit in units], dtype=np.float64)[recorded.codes]
    numbers = [_number(value) for value in values]
    whole = [number.whole for number in numbers]
    plain = np.array([number.value for number in numbers], dtype=np.float64)
    half = np.array([number.half for number in numbers], dtype=np.float64)
    scaled = plain * times / over
    for row in np.flatnonzero((times != 1) | (over != 1)).tolist():
        printed = whole[row]
        if printed is not None:
            unit = units[recorded.codes[row]]
            exact, rest = divmod(printed * unit.times, unit.over)
            whole[row] = None if rest or abs(exact) > _MOST_INT else exact
    return {
        "value": scaled,
        "value_int": _integers(whole),
        "rounding": half * times / over,
        "value_text": Categorical.of([each if isinstance(each, str) else None for each in values]),
        "unit": Categorical(name.codes[recorded.codes], name.categories),
    }


_NONE = Number(math.nan, None, math.nan)


def _number(value: Value) -> Number:
    """Return a stored value as a number that is exact, and what is none as NaN."""
    if isinstance(value, Number):
        return value
    if value is None or isinstance(value, str):
        return _NONE
    return Number(float(value), value if isinstance(value, int) else None)


def _durations(counters: Table, place: Array, executions: int) -> npt.NDArray[np.float64]:
    """Return how long each execution took, NaN where no metric says so."""
    found = np.full(executions, np.nan)
    names = counters.categories("metric")
    usable = counters.holds("statistic", ("value", "mean").__contains__)
    usable &= counters.holds("unit", "ns".__eq__) & ~is_missing(counters["value"])
    for name in reversed(DURATIONS):
        if name in names:
            rows = np.flatnonzero(usable & (counters["metric"] == names.index(name)))
            found[place[rows]] = counters["value"][rows]
    return found


def numbered(parts: Sequence[Collected]) -> Iterator[CounterSet]:
    """Iterate over what several tables of one file hold; each remembers its place."""
    for number, part in enumerate(parts):
        part.part = number
        yield part.finished()
