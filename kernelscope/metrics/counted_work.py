"""How much work does an execution of each kernel do? FLOPs, bytes and instructions from counters.

Executions of one kernel in one launch shape are a *group*. Of each counter a group has a value per
execution, in the order of launches, or their mean, least and most; and a quantity is what
:mod:`kernelscope.metrics.counted_recipes` makes of them. Different runs may have counted different
counters: their n-th executions belong together where the runs are as long as each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_quantity import COLD_CACHE, PACKED, PARTIAL, Capability, Quantity
from kernelscope.metrics.counted_recipes import (
    CYCLES,
    DURATION,
    PER_CYCLE,
    PER_SECOND,
    RECIPES,
    UNITS,
    Recipe,
)
from kernelscope.metrics.counted_series import Series, Shape, series_of
from kernelscope.metrics.counted_tensor import is_tensor_counter, tensor_work
from kernelscope.metrics.counted_values import Counted, added, multiplied, over_runs
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.work_results import COUNTED_WORK
from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.trace import Categorical, Table, missing_value

Plan = list[tuple[Recipe, list[tuple[float, str]]]]

CACHED = ("l2_bytes", "dram_bytes", "dram_read_bytes", "dram_write_bytes")
"""Quantities that depend on what the caches hold, and on how large they are: L1 counts requests."""

_MISSING = int(missing_value(np.dtype(np.int64)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group:
    """The executions of one kernel in one launch shape, as they were counted.

    Attributes
    ----------
    name : str or None
        The kernel's, as its source spells it.
    shape : tuple of six int, or None
        Grid and block; None where the source does not say.
    executions : int
        How many were counted, in the run that counted most of them.
    work : mapping of str to Quantity
        By name of the quantity.
    """

    name: str | None
    shape: Shape
    executions: int
    work: Mapping[str, Quantity]

    @property
    def spread(self) -> float:
        """(most − least) / mean of the FLOPs of an execution, or of what else was counted."""
        flops = [each for name, each in self.work.items() if name.endswith("_flops")]
        seen = [each.counted for each in flops] or [each.counted for each in self.work.values()]
        if not seen:
            return np.nan
        if not flops:
            return max(each.spread for each in seen)
        factors = [each.exact if each.exact == 1 else max(each.least, 1.0) for each in flops]
        return added(list(zip(factors, seen, strict=True))).spread


def counted_work(counted: CounterSet, capability: Capability = None) -> list[Group]:
    """How much work does an execution of each kernel do?

    Parameters
    ----------
    counted : CounterSet
        What was read of one run or several.
    capability : (int, int), optional
        Compute capability of the GPU, where the counters' source does not say.

    Returns
    -------
    list of Group
        In the order in which they were counted first; those of whose work nothing was counted
        are left out.
    """
    cold = _cold(counted)
    capabilities = _capabilities(counted)
    found = []
    plans: dict[frozenset[str], Plan] = {}
    wanted = _wanted(counted.counters.categories("metric"))
    for (name, shape), counters in series_of(counted, wanted):
        _take_back(counters)
        warm = {metric for metric, runs in counters.items() if not any(cold[run] for run in runs)}
        merged = {metric: over_runs(list(runs.values())) for metric, runs in counters.items()}
        known = capabilities.get(name or "") or capability
        work = dict(_quantities(merged, plans, name or "", known, warm))
        if work:
            executions = max(each.counted.executions for each in work.values())
            found.append(Group(name, shape, executions, work))
    return found


def as_table(groups: Sequence[Group]) -> Table:
    """Return groups as rows, one a quantity, under ``work_results.COUNTED_WORK``."""
    rows = [(group, name, each) for group in groups for name, each in group.work.items()]
    columns: dict[str, Any] = {
        "kernel_name": Categorical.of([group.name for group, _, _ in rows]),
        "quantity": Categorical.of([name for _, name, _ in rows]),
        "unit": Categorical.of([UNITS[name] for _, name, _ in rows]),
        "executions": np.array([each.counted.executions for *_, each in rows], dtype=np.int64),
        "counters": Categorical.of([each.counters for *_, each in rows]),
        "caveat": Categorical.of([each.caveat for *_, each in rows]),
    }
    figures = [each.figures() for *_, each in rows]
    for number, figure in enumerate(("value", "low", "high")):
        columns[figure] = np.array([each[number] for each in figures], dtype=np.float64)
    for place, name in enumerate(SHAPE):
        values = [_MISSING if group.shape is None else group.shape[place] for group, _, _ in rows]
        part, _, axis = name.partition("_")
        columns[f"{part}.{'xyz'.index(axis)}"] = np.array(values, dtype=np.int64)
    return Table.make(COUNTED_WORK, columns)


def _cold(counted: CounterSet) -> dict[int, bool]:
    """Return of each run whether caches were emptied before a kernel, as ncu does by default."""
    rows = counted.sources.records()
    return {row["run"]: row["tool"] == "ncu" and row["cache_control"] != "none" for row in rows}


def _capabilities(counted: CounterSet) -> dict[str, tuple[int, int]]:
    """Return the compute capability on which each kernel was counted; absent where not told."""
    table = counted.executions
    known: dict[str, tuple[int, int]] = {}
    if not len(table):
        return known
    columns = [table[name] for name in ("kernel_name", "compute_major", "compute_minor")]
    names = table.categories("kernel_name")
    for code, major, minor in zip(*(each.tolist() for each in grouped(columns)[1]), strict=True):
        if major >= 0:
            known[names[code] if code >= 0 else ""] = (major, max(minor, 0))
    return known


def _wanted(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which counters enter a quantity: itself, or as a rate or the time that it is over."""
    exact = {counter for recipe in RECIPES for _, counter in recipe.terms}
    for counter in [each for each in exact if each.endswith(".sum")]:
        cycles = CYCLES.format(unit=_unit(counter))
        exact |= {counter + PER_SECOND, counter + PER_CYCLE, cycles, cycles + PER_SECOND, DURATION}
    return np.array([*(name in exact or is_tensor_counter(name) for name in names), False])


def _unit(counter: str) -> str:
    return counter.partition("__")[0]


def _take_back(counters: Series) -> None:
    """Add the counts that a run stored as rates only: times the duration of the same execution.

    They stand under the name of the product, ``x.sum.per_second · gpu__time_duration.sum``, and
    stand in for ``x.sum`` where that was not counted.
    """
    for suffix, scale in ((PER_SECOND, 1e9), (PER_CYCLE, 1.0)):
        for rate in [each for each in counters if each.endswith(suffix)]:
            time = DURATION if suffix == PER_SECOND else CYCLES.format(unit=_unit(rate))
            times = counters.get(time) or counters.get(_taken_back(time, PER_SECOND, DURATION), {})
            for run, value in counters[rate].items():
                product = multiplied(value, times[run], scale) if run in times else None
                if product is not None:
                    name = _taken_back(rate.removesuffix(suffix), suffix, time)
                    counters.setdefault(name, {})[run] = product


def _taken_back(count: str, suffix: str, time: str) -> str:
    return f"{count}{suffix} · {time}"


def _found(counter: str, counters: Mapping[str, Counted]) -> str | None:
    """Return the name under which a count stands: its own, or as a rate times a duration."""
    cycles = CYCLES.format(unit=_unit(counter))
    names = (
        counter,
        _taken_back(counter, PER_SECOND, DURATION),
        _taken_back(counter, PER_CYCLE, cycles),
    )
    return next((name for name in names if name in counters), None)


def _plan(counters: Mapping[str, Counted]) -> Plan:
    """Return which recipe makes each quantity, and of what: the first whose counters are there."""
    plan: dict[str, tuple[Recipe, list[tuple[float, str]]]] = {}
    for recipe in RECIPES:
        if recipe.quantity in plan:
            continue
        names = [_found(counter, counters) for _, counter in recipe.terms]
        if None not in names:
            terms = [(f, name) for (f, _), name in zip(recipe.terms, names, strict=True) if name]
            plan[recipe.quantity] = recipe, terms
    return list(plan.values())


def _quantities(
    counters: Mapping[str, Counted],
    plans: dict[frozenset[str], Plan],
    name: str,
    capability: Capability,
    warm: set[str],
) -> Iterator[tuple[str, Quantity]]:
    counted = frozenset(counters)
    plan = plans.get(counted)
    if plan is None:  # of many kernels the same was counted
        plan = plans[counted] = _plan(counters)
    found = {
        recipe.quantity: _made(recipe, terms, counters, capability, warm) for recipe, terms in plan
    }
    found |= tensor_work(counters, name, capability)
    for quantity in UNITS:
        if quantity in found:
            yield quantity, found[quantity]


def _made(
    recipe: Recipe,
    terms: Sequence[tuple[float, str]],
    counters: Mapping[str, Counted],
    capability: Capability,
    warm: set[str],
) -> Quantity:
    """Return what a recipe makes of counters, and how far it is known."""
    total = added([(factor, counters[counter]) for factor, counter in terms])
    formula = " + ".join(f"{factor:g} {counter}" for factor, counter in terms)
    later = recipe.before is not None and capability is not None and capability >= recipe.before
    if recipe.partial or later:
        return Quantity(total, formula, PARTIAL, 1.0, np.nan, np.nan)
    if recipe.packed and total.high != 0:
        return Quantity(total, f"1 to 2 ({formula})", PACKED, 1.0, np.nan, 2.0)
    if recipe.quantity in CACHED and not all(counter in warm for _, counter in terms):
        return Quantity(total, formula, COLD_CACHE, np.nan, 1.0, 1.0)
    return Quantity(total, formula)
