"""How much work does an execution of each kernel do? FLOPs, bytes and instructions from counters.

Executions of one kernel in one launch shape are a *group*. Of each counter a group has a value per
execution, in the order of launches, or their mean, least and most; and a quantity is what
:mod:`kernelscope.metrics.counted_recipes` makes of them. Different runs may have counted different
counters: their n-th executions belong together where the runs are as long as each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import counted_recipes as recipes
from kernelscope.metrics.counted_recipes import RECIPES, UNITS
from kernelscope.metrics.grouping import begins
from kernelscope.metrics.work_results import COUNTED_WORK
from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.trace import Categorical, Table, is_missing, missing_value, widened

Floats = npt.NDArray[np.float64]
Shape = tuple[int, ...] | None
Capability = tuple[int, int] | None

COLD_CACHE, PARTIAL, UNKNOWN_SHAPE = "cold_cache", "partial", "shape"


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Values of one counter, or of one quantity, over the executions of a group.

    Attributes
    ----------
    executions : int
        How many.
    mean, low, high : float
        Per execution; NaN where it is not known.
    each : ndarray of float64, shape (executions,), or None
        One by one, in the order of launches, where they are known so.
    """

    executions: int
    mean: float
    low: float
    high: float
    each: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A quantity of a group, and where it comes from.

    Attributes
    ----------
    counted : Counted
        The figures.
    counters : str
        The formula.
    caveat : str or None
        See ``work_results.COUNTED_WORK``.
    """

    counted: Counted
    counters: str
    caveat: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
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
        flops = [each.counted for name, each in self.work.items() if name.endswith("_flops")]
        seen = flops or [each.counted for each in self.work.values()]
        lows = [float(c.each.min()) if c.each is not None else c.low for c in seen]
        spreads = [(c.high - low) / c.mean for c, low in zip(seen, lows, strict=True) if c.mean > 0]
        return max(spreads, default=0.0 if seen else np.nan)


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
        In the order in which they were counted first.
    """
    cold = _cold(counted)
    capabilities = _capabilities(counted)
    found = []
    for (name, shape), counters in _by_group(counted):
        is_cold = any(cold[run] for runs in counters.values() for run in runs)
        merged = {metric: _over_runs(list(runs.values())) for metric, runs in counters.items()}
        known = capabilities.get(name or "") or capability
        work = dict(_quantities(merged, name or "", known, cold=is_cold))
        executions = max(each.executions for each in merged.values())
        found.append(Group(name, shape, executions, work))
    return found


def as_table(groups: Sequence[Group]) -> Table:
    """Return groups as rows, one a quantity, under ``work_results.COUNTED_WORK``."""
    rows = [(group, name, each) for group in groups for name, each in group.work.items()]
    missing = missing_value(np.dtype(np.int64))
    columns: dict[str, Any] = {
        "kernel_name": Categorical.of([group.name for group, _, _ in rows]),
        "quantity": Categorical.of([name for _, name, _ in rows]),
        "unit": Categorical.of([UNITS[name] for _, name, _ in rows]),
        "executions": np.array([each.counted.executions for *_, each in rows], dtype=np.int64),
        "counters": Categorical.of([each.counters for *_, each in rows]),
        "caveat": Categorical.of([each.caveat for *_, each in rows]),
    }
    for figure in ("mean", "low", "high"):
        values = [getattr(each.counted, figure) for *_, each in rows]
        columns[figure] = np.array(values, dtype=np.float64)
    for place, name in enumerate(SHAPE):
        values = [missing if group.shape is None else group.shape[place] for group, _, _ in rows]
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
    names = table.texts("kernel_name")
    pairs = zip(table.values("compute_major"), table.values("compute_minor"), strict=True)
    known = zip(names, pairs, strict=True)
    return {name or "": (major, minor) for name, (major, minor) in known if major is not None}


def _wanted(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    exact = {counter for recipe in RECIPES for _, counter in recipe.terms}
    patterns = [re.compile(each) for each in (recipes.TENSOR_OPS, recipes.TENSOR_INSTRUCTIONS)]
    wanted = [name in exact or any(p.fullmatch(name) for p in patterns) for name in names]
    return np.array([*wanted, False], dtype=np.bool_)


Runs = dict[int, Counted]


def _by_group(
    counted: CounterSet,
) -> Iterator[tuple[tuple[str | None, Shape], dict[str, Runs]]]:
    """Yield name and shape of each group, and its counters: by name, then by run."""
    table = counted.counters
    usable = _wanted(table.categories("metric"))[table["metric"]]
    usable &= ~np.isnan(table["value"])
    usable &= is_missing(table["instance"])
    table = table.take(usable)
    if not len(table):
        return
    key = [widened(table[name]) for name in ("kernel_name", *SHAPE, "metric", "run")]
    order = np.lexsort((widened(table["execution"]), widened(table["correlation_id"]), *key[::-1]))
    key = [column[order] for column in key]
    new_group = np.flatnonzero(begins(*key[:-2]))
    bounds = [*new_group.tolist(), len(order)]
    segments = [*np.flatnonzero(begins(*key)).tolist(), len(order)]
    found: list[tuple[int, tuple[str | None, Shape], dict[str, Runs]]] = []
    names, metrics = table.categories("kernel_name"), table.categories("metric")
    at = 0
    for first, last in pairwise(bounds):
        counters: dict[str, Runs] = {}
        while segments[at] < last:
            rows = order[segments[at] : segments[at + 1]]
            metric = metrics[int(table["metric"][rows[0]])]
            counters.setdefault(metric, {})[int(table["run"][rows[0]])] = _counted(table, rows)
            at += 1
        code = int(key[0][first])
        shape = tuple(int(column[first]) for column in key[1:7])
        told = shape[0] != missing_value(np.dtype(np.int64))
        name = None if code < 0 else names[code]
        found.append((int(order[first:last].min()), (name, shape if told else None), counters))
    for _, group, counters in sorted(found, key=lambda each: each[0]):
        yield group, counters


def _counted(table: Table, rows: npt.NDArray[np.intp]) -> Counted:
    """Return what a run says of one counter of a group."""
    value, statistics = table["value"][rows], table.categories("statistic")
    by_statistic = {
        name: value[table["statistic"][rows] == code] for code, name in enumerate(statistics)
    }
    each = by_statistic.get("value", value[:0])
    if len(each):
        return Counted(len(each), float(each.mean()), float(each.min()), float(each.max()), each)
    weights = widened(table["executions"])[rows]
    executions = int(weights.max())
    mean, total = by_statistic.get("mean", value[:0]), by_statistic.get("sum", value[:0])
    middle = (
        float(mean.mean())
        if len(mean)
        else float(total.mean() / executions if len(total) else np.nan)
    )
    low, high = (by_statistic.get(name, value[:0]) for name in ("min", "max"))
    return Counted(
        executions,
        middle,
        float(low.min()) if len(low) else np.nan,
        float(high.max()) if len(high) else np.nan,
    )


def _over_runs(runs: Sequence[Counted]) -> Counted:
    """Return what several runs say of one counter: their mean, and the extremes of all."""
    if len(runs) == 1:
        return runs[0]
    each = [
        run.each for run in runs if run.each is not None and len(run.each) == runs[0].executions
    ]
    together = np.mean(each, axis=0) if len(each) == len(runs) else None
    return Counted(
        max(run.executions for run in runs),
        float(np.mean([run.mean for run in runs])),
        min(run.low for run in runs),
        max(run.high for run in runs),
        together,
    )


def _quantities(
    counters: Mapping[str, Counted], name: str, capability: Capability, *, cold: bool
) -> Iterator[tuple[str, Quantity]]:
    found: dict[str, Quantity] = {}
    for recipe in RECIPES:
        if recipe.quantity in found or not all(counter in counters for _, counter in recipe.terms):
            continue
        total = _sum([(factor, counters[counter]) for factor, counter in recipe.terms])
        formula = " + ".join(f"{factor:g} {counter}" for factor, counter in recipe.terms)
        caveat = PARTIAL if recipe.partial else None
        if recipe.partial:
            total = Counted(total.executions, np.nan, total.low, np.nan)
        elif cold and recipe.quantity.startswith("dram"):
            total, caveat = _at_most(total), COLD_CACHE
        found[recipe.quantity] = Quantity(total, formula, caveat)
    found |= _tensor(counters, name, capability)
    for quantity in UNITS:
        if quantity in found:
            yield quantity, found[quantity]


def _at_most(counted: Counted) -> Counted:
    """Return the figures of what was counted with empty caches: nothing says what it would be."""
    return Counted(counted.executions, counted.mean, np.nan, counted.high, counted.each)


def _sum(terms: Sequence[tuple[float, Counted]]) -> Counted:
    """Return Σ factor · counter; its extremes lie within the sums of theirs."""
    each = [factor * counted.each for factor, counted in terms if counted.each is not None]
    aligned = len(each) == len(terms) and len({len(values) for values in each}) == 1
    if aligned:
        total = np.sum(each, axis=0)
        return Counted(
            len(total), float(total.mean()), float(total.min()), float(total.max()), total
        )
    mean, low, high = (
        float(sum(factor * getattr(counted, figure) for factor, counted in terms))
        for figure in ("mean", "low", "high")
    )
    return Counted(max(counted.executions for _, counted in terms), mean, low, high)


def _tensor(
    counters: Mapping[str, Counted], name: str, capability: Capability
) -> dict[str, Quantity]:
    """Return the operations of tensor cores: as they were counted, else from instructions."""
    return _tensor_by_path(counters) or _tensor_by_instruction(counters, name, capability)


def _tensor_by_path(counters: Mapping[str, Counted]) -> dict[str, Quantity]:
    terms: dict[str, list[str]] = {}
    for counter in counters:
        path = re.fullmatch(recipes.TENSOR_OPS, counter)
        if path is None:
            continue
        # What is counted with and without sparsity apart is counted together as well.
        if path["sparse"] and counter.replace(path["sparse"], "") in counters:
            continue
        whole = path["source"].startswith(("int", "uint", "u8", "s8", "bin", "b1"))
        terms.setdefault("tensor_int_ops" if whole else "tensor_flops", []).append(counter)
    return {
        quantity: Quantity(
            _sum([(1.0, counters[each]) for each in names]),
            " + ".join(f"1 {each}" for each in names),
        )
        for quantity, names in terms.items()
    }


def _tensor_by_instruction(
    counters: Mapping[str, Counted], name: str, capability: Capability
) -> dict[str, Quantity]:
    """Return operations as instructions times 2·m·n·k of their shape, or between bounds."""
    by_kind: dict[str, list[str]] = {}
    for counter in counters:
        kind = re.fullmatch(recipes.TENSOR_INSTRUCTIONS, counter)
        if kind is not None:
            whole = kind["kind"] in recipes.TENSOR_KINDS["int"]
            by_kind.setdefault("tensor_int_ops" if whole else "tensor_flops", []).append(counter)
    every = [f"{unit}__inst_executed_pipe_tensor.sum" for unit in ("sm", "smsp")]
    if not by_kind:
        by_kind = {"tensor_flops": [each for each in every if each in counters][:1]}
    found = {}
    for quantity, names in by_kind.items():
        used = [each for each in names if counters[each].high > 0] or names[:1]
        if used:
            total = _sum([(1.0, counters[each]) for each in used])
            # One kind has the shape that the name tells; those of warp groups are longer.
            shaped = len(used) == 1 and "gmma" not in used[0]
            shaped &= used[0] not in every or capability is None or capability < (9, 0)
            found[quantity] = _operations(total, used, name if shaped else "", capability)
    return found


def _operations(
    instructions: Counted, counters: Sequence[str], name: str, capability: Capability
) -> Quantity:
    counted = " + ".join(counters)
    if instructions.high == 0:
        return Quantity(instructions, f"0 {counted}")
    least, most = recipes.TENSOR_BOUNDS.get(capability or (0, 0), (0, np.nan))
    if least < most or np.isnan(most):
        for pattern, operations in recipes.TENSOR_SHAPES:
            if re.search(pattern, name):
                least = most = operations
                break
    if least == most:
        return Quantity(_sum([(least, instructions)]), f"{least} {counted}")
    bounds = Counted(
        instructions.executions, np.nan, least * instructions.low, most * instructions.high
    )
    return Quantity(bounds, f"{least} to {most:g} {counted}", UNKNOWN_SHAPE)
