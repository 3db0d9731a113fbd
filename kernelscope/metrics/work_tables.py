"""The tables of work that was counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.metrics.counted_quantity import Quantity
from kernelscope.metrics.counted_recipes import UNITS
from kernelscope.metrics.counted_work import Group
from kernelscope.metrics.counter_match import MISSING, Match, Shapes
from kernelscope.metrics.work_results import COUNTER_COVERAGE, WORK, WORK_BY_SHAPE
from kernelscope.parsers.counter_set import SHAPE
from kernelscope.schema import TableSchema
from kernelscope.trace import Categorical, Table

MATCHED, ONLY_HERE, ONLY_THERE = "matched", "only_in_trace", "only_in_counters"

ALIKE, ORDER, BOUNDS, SAME = "alike", "order", "bounds", "same execution"
"""How executions were counted: see ``work_results.WORK``."""

LEVELS = ("l1_bytes", "l2_bytes", "dram_bytes")
"""Quantities that an arithmetic intensity is per."""

Figures = tuple[float, float, float]
"""Value, lower and upper bound; NaN where there is none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part:
    """What was counted of a quantity in a launch shape, and what of that is the window's."""

    place: int
    name: str
    quantity: Quantity
    figures: Figures
    how: str


def work_tables(shapes: Shapes, parts: Sequence[Part], *, serialised: bool) -> tuple[Table, Table]:
    """Return how much work each kernel did, and each of its launch shapes; longest kernel first.

    Parameters
    ----------
    shapes : Shapes
        The trace's kernels by launch shape.
    parts : sequence of Part
        What was counted of them.
    serialised : bool
        Whether the profiler ran kernels one by one: then nothing tells a rate.
    """
    whole: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(shapes.names):
        whole[name].append(place)
    by_name: dict[str, list[Part]] = defaultdict(list)
    by_place: dict[int, list[Part]] = defaultdict(list)
    for part in parts:
        by_name[shapes.names[part.place]].append(part)
        by_place[part.place].append(part)
    work, by_shape = _Rows(shapes, serialised), _Rows(shapes, serialised)
    for name, mine in by_name.items():
        work.add(mine, whole[name])
    for mine in by_place.values():
        by_shape.add(mine, [mine[0].place])
    return work.table(WORK), by_shape.table(WORK_BY_SHAPE)


class _Rows:
    """Rows of either table: the quantities of some launch shapes together."""

    def __init__(self, shapes: Shapes, serialised: bool) -> None:
        self._shapes, self._serialised = shapes, serialised
        self._found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, parts: Sequence[Part], places: Sequence[int]) -> None:
        """Add what was counted of the launch shapes `places`, one row a quantity."""
        executions, time = self._of(places)
        if not executions:
            return
        by_quantity: dict[str, list[Part]] = defaultdict(list)
        for part in parts:
            by_quantity[part.name].append(part)
        name, shape = self._shapes.names[places[0]], self._shapes.shapes[places[0]]
        for number, quantity in enumerate(UNITS):
            mine = by_quantity.get(quantity)
            if mine is None:
                continue
            started, counted_ns = self._of([part.place for part in mine])
            value, low, high = total_of([part.figures for part in mine])
            row = {
                "name": name,
                "quantity": quantity,
                "unit": UNITS[quantity],
                "value": value,
                "low": low,
                "high": high,
                "rate_per_s": np.nan if self._serialised else _over(value * 1e9, counted_ns),
                **_intensity(mine, by_quantity),
                "executions": executions,
                "counted_executions": started,
                "coverage": _over(counted_ns, time),
                "how": _one([part.how for part in mine]),
                "source": "counters",
                "counters": _one([part.quantity.counters for part in mine]),
                "caveat": _one([part.quantity.caveat for part in mine if part.quantity.caveat]),
                **shape_columns(shape),
            }
            self._found.append(((-time, name, places[0], number), row))

    def _of(self, places: Sequence[int]) -> tuple[int, int]:
        """Return how many executions of some launch shapes start in the window, and their time."""
        started, total = self._shapes.started[list(places)], self._shapes.total_ns[list(places)]
        return int(started.sum()), int(total.sum())

    def table(self, schema: TableSchema) -> Table:
        """Return the rows, the longest first."""
        records: dict[str, list[Any]] = defaultdict(list)
        for _, row in sorted(self._found, key=lambda each: each[0]):
            for column in schema.names:
                records[column].append(row[column])
        return _table(schema, records)


def total_of(parts: Sequence[Figures]) -> Figures:
    """Return the sum of several figures: a bound that one of them lacks is 0 below, none above."""
    values, lows, highs = (np.array(each) for each in zip(*parts, strict=True))
    low = np.nan if np.isnan(lows).all() else float(np.nansum(lows))
    return float(values.sum()), low, float(highs.sum())


def _over(above: float, below: float) -> float:
    return above / below if below > 0 else np.nan


def _intensity(mine: Sequence[Part], by_quantity: Mapping[str, Sequence[Part]]) -> dict[str, Any]:
    """Return FLOPs per byte of a memory level, over the launch shapes that both were counted in."""
    nothing = {"intensity": np.nan, "intensity_low": np.nan, "intensity_high": np.nan}
    flops = {name: parts for name, parts in by_quantity.items() if name.endswith("_flops")}
    if mine[0].name not in LEVELS or not flops:
        return {**nothing, "intensity_of": None}
    counted = [{part.place for part in parts} for parts in (mine, *flops.values())]
    both = set.intersection(*counted)
    if not both:
        return {**nothing, "intensity_of": None}
    moved = total_of([part.figures for part in mine if part.place in both])
    done = total_of(
        [part.figures for parts in flops.values() for part in parts if part.place in both]
    )
    return {
        "intensity": _over(done[0], moved[0]),
        "intensity_low": _over(np.nan_to_num(done[1], nan=0.0), moved[2]),
        "intensity_high": _over(done[2], moved[1]),
        "intensity_of": " + ".join(name for name in UNITS if name in flops),
    }


def shape_columns(shape: tuple[int, ...] | None) -> dict[str, int | None]:
    """Return the columns of a grid and block: missing where there are none."""
    columns = {}
    for number, name in enumerate(SHAPE):
        part, _, axis = name.partition("_")
        columns[f"{part}.{'xyz'.index(axis)}"] = None if shape is None else shape[number]
    return columns


def _one(texts: Sequence[str]) -> str | None:
    """Return texts that may differ as one."""
    return "; ".join(dict.fromkeys(texts)) or None


def _table(schema: TableSchema, records: Mapping[str, list[Any]]) -> Table:
    columns: dict[str, Any] = {}
    for column in schema.columns:
        values = records.get(column.name, [])
        if column.dtype == "category":
            columns[column.name] = Categorical.of(values)
        elif column.dtype == "int64":
            whole_numbers = [MISSING if value is None else value for value in values]
            columns[column.name] = np.array(whole_numbers, dtype=np.int64)
        else:
            columns[column.name] = np.array(values, dtype=np.float64)
    return Table.make(schema, columns)


def covered(coverage: Sequence[Mapping[str, Any]]) -> float:
    """Return the share of the kernels' time whose launch shapes were counted.

    Parameters
    ----------
    coverage : sequence of mapping
        Rows under ``work_results.COUNTER_COVERAGE``. Their whole nanoseconds are added up, so that
        all of the time is 1 and no rounded number near it.
    """
    time = sum(row["total_ns"] for row in coverage)
    matched = sum(row["total_ns"] for row in coverage if row["status"] == MATCHED)
    return matched / time if time else 0.0


def coverage_table(
    shapes: Shapes,
    groups: Sequence[Group],
    matches: Sequence[Match],
    hows: Mapping[int, str],
) -> Table:
    """Return every launch shape, of the trace or counted, under ``work_results.COUNTER_COVERAGE``.

    Parameters
    ----------
    shapes : Shapes
        The trace's kernels by launch shape.
    groups : sequence of Group
        What was counted.
    matches : sequence of Match
        Which of them are one.
    hows : mapping of int to str
        How each matched shape of the trace was counted.
    """
    total = int(shapes.total_ns.sum())
    matched = {match.place: match for match in matches}
    used = {id(match.group) for match in matches}
    records: dict[str, list[Any]] = defaultdict(list)

    def add(place: int | None, group: Group | None, by: str | None) -> None:
        here, there = place is not None, group is not None
        shape = shapes.shapes[place] if place is not None else group.shape if group else None
        spent = int(shapes.total_ns[place]) if place is not None else 0
        entries = {
            "name": shapes.names[place] if place is not None else None,
            "counted_name": group.name if group else None,
            "status": MATCHED if here and there else ONLY_HERE if here else ONLY_THERE,
            "matched_by": by,
            "executions": int(shapes.executions[place]) if place is not None else 0,
            "counted_executions": group.executions if group else 0,
            "spread": group.spread if group else np.nan,
            "how": None if place is None else hows.get(place),
            "total_ns": spent,
            "share": spent / total if total else np.nan,
        }
        entries |= shape_columns(shape)
        for column, entry in entries.items():
            records[column].append(entry)

    for place in np.argsort(-shapes.total_ns, kind="stable").tolist():
        match = matched.get(place)
        add(place, match.group if match else None, match.by if match else None)
    for group in groups:
        if id(group) not in used:
            add(None, group, None)
    return _table(COUNTER_COVERAGE, records)
