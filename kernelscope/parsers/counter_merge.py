"""Counters of many executions, and of many runs, brought together by kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.schema import TableSchema, integer, real, text
from kernelscope.trace import Array, Categorical, ColumnData, Table, distinct, is_missing, widened

_SHAPE_COLUMNS = tuple(
    integer(f"{part}_{axis}", "count", f"{what} along {axis}; missing where several", optional=True)
    for part, what in (("grid", "blocks"), ("block", "threads per block"))
    for axis in "xyz"
)

COUNTERS_BY_KERNEL = TableSchema(
    "counters_by_kernel",
    "How much did each kernel count, over all its executions?",
    (
        text("kernel_name", "the kernel's name, as its source spells it", optional=True),
        *_SHAPE_COLUMNS,
        text("metric", "the counter's name"),
        text("section", "the heading that a label stands under", optional=True),
        text("unit", "the unit of the values", optional=True),
        integer("runs", "count", "how many runs have a value of it"),
        integer("executions", "count", "how many executions have a value, over all runs"),
        integer("without_value", "count", "how many rows have none: they enter no figure"),
        real("mean", "see unit", "Σ value / executions"),
        real("min", "see unit", "the least"),
        real("max", "see unit", "the most"),
        real(
            "total",
            "see unit",
            "sum over the executions of a run, of several runs their mean; missing where an "
            "execution has no value, or a sum no meaning: rates, ratios, levels",
        ),
    ),
)

_SUMMABLE = ("count", "bytes", "ns")


def merged(counted: CounterSet, *, shapes: bool = False) -> Table:
    """How much did each kernel count, over all its executions?

    A value of one execution weighs 1, a mean as many as it is of; least and most come from values
    and from printed extremes. Of a metric that several units of the hardware counted apart, the
    mean is over the units, too. A row without a value enters nothing; texts are not shown.

    Parameters
    ----------
    counted : CounterSet
        What was read.
    shapes : bool
        Whether another grid or block makes another row.
    """
    counters = counted.counters.take(counted.counters["value_text"] < 0)
    if not len(counters):
        return Table.empty(COUNTERS_BY_KERNEL)
    keys = ("kernel_name", *(SHAPE if shapes else ()), "metric", "section", "unit")
    group, first = grouped([widened(counters[name]) for name in keys])
    figures = _figures(counters, group, len(first))
    order = np.argsort(first, kind="stable")
    columns: dict[str, ColumnData] = {
        name: Categorical(counters[name][first], counters.categories(name))
        for name in ("kernel_name", "metric", "section", "unit")
    }
    if shapes:
        columns |= {name: counters[name][first] for name in SHAPE}
    return Table.make(COUNTERS_BY_KERNEL, columns | figures).take(order)


def grouped(columns: list[Array]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the group of each row, and the first row of each group.

    Parameters
    ----------
    columns : list of ndarray of int, shape (n,)
        At least one, with n > 0; rows that agree in all of them are a group.
    """
    group = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = distinct(column)
        key = group * len(values) + np.searchsorted(values, column)
        seen = distinct(key)
        group = np.searchsorted(seen, key)
    first = np.full(int(group.max()) + 1, len(group), dtype=np.intp)
    np.minimum.at(first, group, np.arange(len(group)))
    return group, first


def _figures(counters: Table, group: npt.NDArray[np.intp], groups: int) -> dict[str, ColumnData]:
    value = counters["value"]
    has = ~is_missing(value)
    weight = widened(counters["executions"]).astype(np.float64)
    single, least, most = (
        has & _is(counters, "statistic", *texts)
        for texts in (("value", "mean"), ("value", "min"), ("value", "max"))
    )

    def summed(rows: Array, values: Array) -> npt.NDArray[np.float64]:
        return np.bincount(group[rows], values[rows], groups).astype(np.float64)

    instances, runs = (
        _different(widened(counters[name])[has], group[has], groups) for name in ("instance", "run")
    )
    weights = summed(single, weight)
    sums = summed(single, value * np.where(has, weight, 0))
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group[least], value[least])
    np.maximum.at(high, group[most], value[most])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(weights > 0, sums / weights, np.nan)
    total = _totals(counters, group, groups) / np.maximum(runs, 1)
    summable = np.zeros(groups, dtype=np.bool_)
    summable[group] = _summable(counters)
    return {
        "runs": runs,
        "executions": np.rint(weights / np.maximum(instances, 1)).astype(np.int64),
        "without_value": np.bincount(group[~has], minlength=groups).astype(np.int64),
        "mean": mean,
        "min": np.where(np.isfinite(low), low, np.nan),
        "max": np.where(np.isfinite(high), high, np.nan),
        "total": np.where(summable & (runs > 0), total, np.nan),
    }


def _totals(counters: Table, group: npt.NDArray[np.intp], groups: int) -> npt.NDArray[np.float64]:
    """Return the sum over all executions of each group's runs; NaN where one has no value.

    A run that printed a total is taken at its word; of the others values and means are summed.
    """
    value, weight = counters["value"], widened(counters["executions"])
    pair, first = grouped([group, widened(counters["run"])])
    counted = _is(counters, "statistic", "value", "mean")
    printed = _is(counters, "statistic", "sum")
    summed = np.bincount(pair[counted], (value * weight)[counted], len(first))
    stated = np.bincount(pair[printed], value[printed], len(first))
    states = np.bincount(pair[printed], minlength=len(first)) > 0
    return np.bincount(group[first], np.where(states, stated, summed), groups).astype(np.float64)


def _is(counters: Table, column: str, *texts: str) -> npt.NDArray[np.bool_]:
    return counters.holds(column, texts.__contains__)


def _summable(counters: Table) -> npt.NDArray[np.bool_]:
    """Return where a sum over executions means something: counts, bytes and times."""
    of_unit = _is(counters, "unit", *_SUMMABLE)
    named = counters.holds("metric", lambda name: name.endswith(".sum"))
    return of_unit | (named & (counters["unit"] < 0))


def _different(
    values: npt.NDArray[np.int64], group: npt.NDArray[np.intp], groups: int
) -> npt.NDArray[np.int64]:
    """Return how many different values each group has."""
    if not len(values):
        return np.zeros(groups, dtype=np.int64)
    seen = distinct(values)
    pairs = distinct(group * len(seen) + np.searchsorted(seen, values))
    return np.bincount(pairs // len(seen), minlength=groups).astype(np.int64)
