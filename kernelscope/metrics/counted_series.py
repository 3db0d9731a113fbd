"""The values of each counter in each group of executions: found with whole columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_values import Counted, one_by_one, spread_of, summarised
from kernelscope.metrics.grouping import begins, grouped
from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.trace import Table, is_missing, missing_value, widened

Shape = tuple[int, ...] | None
"""Grid and block; None where the source does not say."""

Key = tuple[str | None, Shape]
"""Kernel and launch shape: what a group of executions has in common."""

Series = dict[str, dict[int, Counted]]
"""Counter → run → what was counted."""

_MISSING = int(missing_value(np.dtype(np.int64)))


def series_of(counted: CounterSet, wanted: npt.NDArray[np.bool_]) -> list[tuple[Key, Series]]:
    """Return what was counted of each group, in the order in which groups were counted first.

    Parameters
    ----------
    counted : CounterSet
        What was read.
    wanted : ndarray of bool, shape (categories + 1,)
        Of each category of `counters.metric` whether it is wanted; the last is of no metric.
    """
    table = counted.counters
    usable = wanted[table["metric"]] & is_missing(table["instance"])
    table = table if usable.all() else table.take(usable)
    if not len(table):
        return []
    group, keys = grouped([table["kernel_name"], *(table[name] for name in SHAPE)])
    series, (group_of, metric_of, run_of) = grouped([group, table["metric"], table["run"]])
    order = _order(table, series)
    found = _counted(table, series[order], order, _expected(counted, keys, group_of, run_of, table))
    groups: list[Series] = [defaultdict(dict) for _ in keys[0]]
    metrics = table.categories("metric")
    places = zip(group_of.tolist(), metric_of.tolist(), run_of.tolist(), found, strict=True)
    for place, metric, run, value in places:
        if value is not None:
            groups[place][metrics[metric]][run] = value
    names = table.categories("kernel_name")
    code, *shape = (widened(key).tolist() for key in keys)
    shapes = [None if row[0] == _MISSING else row for row in zip(*shape, strict=True)]
    first = np.full(len(groups), len(table), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(table)))
    return [
        ((names[code[place]] if code[place] >= 0 else None, shapes[place]), groups[place])
        for place in np.argsort(first, kind="stable").tolist()
    ]


def _order(table: Table, series: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Return the rows series by series, each in the order of launches, and each execution once.

    One counter may be printed under two headings.
    """
    execution, correlation, run = table["execution"], table["correlation_id"], table["run"]
    later = (execution[1:] > execution[:-1]) | (
        (execution[1:] == execution[:-1]) & (correlation[1:] >= correlation[:-1])
    )
    if (later | (run[1:] != run[:-1])).all():
        short = series.astype(np.uint16) if series.max() < 1 << 16 else series
        order = np.argsort(short, kind="stable")  # 16 bits are sorted in linear time
    else:
        order = np.lexsort((correlation, execution, series))
    execution, correlation = execution[order], correlation[order]
    once = begins(series[order], execution, correlation)
    once |= is_missing(execution) & is_missing(correlation)
    return order if once.all() else order[once]


def _expected(
    counted: CounterSet,
    keys: list[npt.NDArray[np.generic]],
    group_of: npt.NDArray[np.generic],
    run_of: npt.NDArray[np.generic],
    table: Table,
) -> list[int]:
    """Return of how many executions each series should have a value: its group's in its run."""
    executions = counted.executions
    if not len(executions):
        return [0] * len(group_of)
    columns = [executions["kernel_name"], *(executions[name] for name in SHAPE), executions["run"]]
    of, (code, *rest) = grouped(columns)
    number = np.bincount(of, weights=executions["executions"], minlength=len(code))
    names = executions.categories("kernel_name")
    there = {
        (names[c] if c >= 0 else None, *key): int(n)
        for c, n, *key in zip(
            code.tolist(), number.tolist(), *(widened(each).tolist() for each in rest), strict=True
        )
    }
    names = table.categories("kernel_name")
    code, *shape = (widened(key).tolist() for key in keys)
    groups = [(names[c] if c >= 0 else None, *row) for c, *row in zip(code, *shape, strict=True)]
    pairs = zip(group_of.tolist(), run_of.tolist(), strict=True)
    return [there.get((*groups[group], run), 0) for group, run in pairs]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Sums:
    """Figures of the series that have a value per execution."""

    mean: list[float]
    low: list[float]
    high: list[float]
    rounding: list[float]
    known: list[int]


def _counted(
    table: Table,
    series: npt.NDArray[np.int32],
    order: npt.NDArray[np.intp],
    expected: list[int],
) -> list[Counted | None]:
    """Return what was counted in each series; None where it has no value."""
    value, rounding = table["value"][order], np.nan_to_num(table["rounding"][order], nan=0.0)
    starts = np.flatnonzero(begins(series))
    ends = [*starts[1:].tolist(), len(series)]
    single = _is(table, "value")[order]
    sums = _sums(value, rounding, starts)
    plain = np.logical_and.reduceat(single, starts).tolist()
    found: list[Counted | None] = []
    for place, (begin, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        if not plain[place]:
            found.append(_printed(table, order[begin:end], expected[place]))
            continue
        number = max(expected[place], end - begin)
        if not sums.known[place]:
            found.append(None)
        elif sums.known[place] < number:
            found.append(Counted(number, sums.mean[place], 0.0, np.nan, np.inf))
        else:
            mean, low, high = sums.mean[place], sums.low[place], sums.high[place]
            slack, spread = sums.rounding[place], spread_of(mean, low, high)
            each = value[begin:end]
            low, high = max(low - slack, 0.0), high + slack
            found.append(Counted(number, mean, low, high, spread, each, slack))
    return found


def _sums(
    value: npt.NDArray[np.float64], rounding: npt.NDArray[np.float64], starts: npt.NDArray[np.intp]
) -> _Sums:
    is_known = ~np.isnan(value)
    known = np.add.reduceat(is_known, starts, dtype=np.int64)
    total = np.add.reduceat(np.where(is_known, value, 0.0), starts)
    return _Sums(
        mean=(total / np.maximum(known, 1)).tolist(),
        low=np.fmin.reduceat(value, starts).tolist(),
        high=np.fmax.reduceat(value, starts).tolist(),
        rounding=np.maximum.reduceat(rounding, starts).tolist(),
        known=known.tolist(),
    )


def _is(table: Table, statistic: str) -> npt.NDArray[np.bool_]:
    of = [each == statistic for each in table.categories("statistic")]
    return np.array([*of, False], dtype=np.bool_)[table["statistic"]]


def _printed(table: Table, rows: npt.NDArray[np.intp], executions: int) -> Counted | None:
    """Return what a tool printed of several executions together; None where it has no value."""
    part = table.take(rows)
    value, slack = part["value"], np.nan_to_num(part["rounding"], nan=0.0)
    single, means, sums, low, high = (
        _is(part, name) for name in ("value", "mean", "sum", "min", "max")
    )
    if single.any():
        return one_by_one(value[single], slack[single], max(executions, int(single.sum())))
    if not (means.any() or sums.any()):
        return None
    weights = widened(part["executions"]).astype(np.float64)
    used = means if means.any() else sums
    number = int(weights[used].sum())
    total = float((value * weights if means.any() else value)[used].sum())
    return summarised(
        number,
        total / number if number else np.nan,
        float((value - slack)[low].min()) if low.any() else np.nan,
        float((value + slack)[high].max()) if high.any() else np.nan,
    )
