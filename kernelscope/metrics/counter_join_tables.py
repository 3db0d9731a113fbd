"""The tables of a join with counters, and what there is to doubt of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope import units
from kernelscope.metrics.counted_recipes import UNITS
from kernelscope.metrics.counted_work import COLD_CACHE, Counted, Group, Quantity
from kernelscope.metrics.counter_match import MISSING, WITHOUT_SHAPE, Match, Shapes
from kernelscope.metrics.health import Finding
from kernelscope.metrics.work_results import COUNTER_JOIN, WORK
from kernelscope.parsers.counter_set import SHAPE
from kernelscope.schema import TableSchema
from kernelscope.trace import Categorical, Table, Trace

MATCHED, ONLY_HERE, ONLY_THERE = "matched", "only_in_trace", "only_in_counters"

Part = tuple[Match, Quantity, Counted, str]
"""A launch shape, what was counted of a quantity, what of that is the window's, and how."""


def work_table(
    trace: Trace,
    shapes: Shapes,
    rows: Mapping[tuple[str, str], Sequence[Part]],
) -> Table:
    """Return how much work each kernel did, under ``work_results.WORK``; longest kernel first.

    Parameters
    ----------
    trace : Trace
        Whose kernels they are.
    shapes : Shapes
        Its kernels by launch shape.
    rows : mapping of (name, quantity) to sequence of Part
        What was counted of the launch shapes of each kernel.
    """
    executions: dict[str, int] = defaultdict(int)
    time: dict[str, int] = defaultdict(int)
    for name, started, total in zip(
        shapes.names, shapes.started.tolist(), shapes.total_ns.tolist(), strict=True
    ):
        executions[name] += started
        time[name] += total
    serialised = trace.capture.serialised is not None
    places = {name: number for number, name in enumerate(UNITS)}
    keys = sorted(
        (key for key in rows if executions[key[0]]),
        key=lambda key: (-time[key[0]], key[0], places[key[1]]),
    )
    records: dict[str, list[Any]] = defaultdict(list)
    for name, quantity in keys:
        parts = rows[name, quantity]
        counted_ns = sum(int(shapes.total_ns[match.place]) for match, *_ in parts)
        value, low, high = (
            sum(getattr(figures, each) for _, _, figures, _ in parts)
            for each in ("mean", "low", "high")
        )
        for column, entry in {
            "name": name,
            "quantity": quantity,
            "unit": UNITS[quantity],
            "value": value,
            "low": low,
            "high": high,
            "rate_per_s": np.nan if serialised or not counted_ns else value / counted_ns * 1e9,
            "executions": executions[name],
            "counted_executions": sum(figures.executions for _, _, figures, _ in parts),
            "coverage": counted_ns / time[name] if time[name] else np.nan,
            "how": _one([how for *_, how in parts]),
            "source": "counters",
            "counters": _one([each.counters for _, each, _, _ in parts]),
            "caveat": _one([each.caveat for _, each, _, _ in parts if each.caveat]),
        }.items():
            records[column].append(entry)
    return _table(WORK, records)


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


def join_table(
    shapes: Shapes,
    groups: Sequence[Group],
    matches: Sequence[Match],
    hows: Mapping[int, str],
) -> Table:
    """Return every launch shape, of the trace or counted, under ``work_results.COUNTER_JOIN``.

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
        for number, name in enumerate(SHAPE):
            part, _, axis = name.partition("_")
            entries[f"{part}.{'xyz'.index(axis)}"] = None if shape is None else shape[number]
        for column, entry in entries.items():
            records[column].append(entry)

    for place in np.argsort(-shapes.total_ns, kind="stable").tolist():
        match = matched.get(place)
        add(place, match.group if match else None, match.by if match else None)
    for group in groups:
        if id(group) not in used:
            add(None, group, None)
    return _table(COUNTER_JOIN, records)


def findings_of(
    join: Table,
    matches: Sequence[Match],
    shapes: Shapes,
    elsewhere: Sequence[str],
    *,
    same_run: bool,
) -> Iterator[Finding]:
    """Yield what there is to doubt of counters and their join.

    Parameters
    ----------
    join : Table
        What :func:`join_table` returned.
    matches, shapes
        What it was made of.
    elsewhere : sequence of str
        Compute capabilities whose counters were left out.
    same_run : bool
        Whether the trace holds the counters itself.
    """
    if elsewhere:
        yield Finding(
            "counters_of_another_gpu",
            "warning",
            len(elsewhere),
            f"Counters were left out that are of compute capability {', '.join(elsewhere)}: for "
            "another GPU kernels are compiled, and chosen, anew.",
        )
    status = join.texts("status")
    share = sum(
        part for part, each in zip(join.values("share"), status, strict=True)
        if each == MATCHED and part is not None
    )  # fmt: skip
    if ONLY_HERE in status:
        yield Finding(
            "kernels_not_counted",
            "info" if share >= _MOST else "warning",
            status.count(ONLY_HERE),
            f"Counters cover {units.ratio(share)} of the kernels' time: "
            f"{units.quantity(status.count(ONLY_HERE), 'launch shape')} of the trace were not "
            "counted (table counter_join).",
        )
    if ONLY_THERE in status:
        yield Finding(
            "counted_elsewhere",
            "info",
            status.count(ONLY_THERE),
            f"{units.quantity(status.count(ONLY_THERE), 'launch shape')} that this trace does not "
            "hold were counted: the other run did something else, too.",
        )
    differing = [
        match for match in matches
        if match.by != WITHOUT_SHAPE and shapes.executions[match.place] != match.group.executions
    ]  # fmt: skip
    if differing and not same_run:
        yield Finding(
            "counted_another_number",
            "info",
            len(differing),
            f"{units.quantity(len(differing), 'launch shape')} ran another number of times than "
            "counted: an execution counts as the mean of those, between the least and the most.",
        )
    cold = [
        match
        for match in matches
        if any(each.caveat == COLD_CACHE for each in match.group.work.values())
    ]
    if cold:
        yield Finding(
            "cold_cache",
            "info",
            len(cold),
            "Nsight Compute emptied the caches before every pass: bytes of DRAM are upper bounds "
            "(ncu --cache-control none leaves them alone).",
        )


_MOST = 0.9
"""Counters that cover this share of the kernels' time speak for all of them."""
