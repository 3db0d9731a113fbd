"""The join with counters once more, slow and obvious: lists, dictionaries and plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

Shape = tuple[str, int]
Three = tuple[float, float, float]


class Seen(NamedTuple):
    """A counter or a quantity: mean, least, most, one by one, and how many were counted.

    `apart` is how far a run says something else of an execution than the runs' mean.
    """

    mean: float
    least: float
    most: float
    each: list[float] | None
    number: int
    apart: float = 0.0


class Ran(NamedTuple):
    """A kernel of the plain trace."""

    name: str
    grid: int
    process: int
    start: int
    end: int
    called: int


class Execution(NamedTuple):
    """An execution in a run that counted: its counters, None where there is no value."""

    name: str
    grid: int
    values: dict[str, float | None]


RECIPES: dict[str, list[tuple[float, str]]] = {
    "fp32_flops": [
        (1, "flop_count_sp_add"), (1, "flop_count_sp_mul"), (2, "flop_count_sp_fma"),
    ],
    "dram_bytes": [(1, "dram_read_bytes"), (1, "dram_write_bytes")],
    "dram_read_bytes": [(1, "dram_read_bytes")],
    "dram_write_bytes": [(1, "dram_write_bytes")],
}  # fmt: skip


def slow_join(
    kernels: Sequence[Ran], runs: Sequence[Sequence[Execution]], low: int, high: int
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return value, bounds, executions and coverage of each kernel and quantity."""
    found: dict[tuple[str, str], list[tuple[Shape, Three, str]]] = {}
    for shape in dict.fromkeys((kernel.name, kernel.grid) for kernel in kernels):
        work = _quantities(shape, runs)
        if not work:
            continue
        number = max(each.number for each in work.values())
        mine = sorted(
            (k for k in kernels if (k.name, k.grid) == shape),
            key=lambda k: (k.process, k.called, k.start),
        )
        how, picks = _order(mine, work, number, low, high)
        for quantity, seen in work.items():
            if picks is not None and seen.each is not None and len(seen.each) == number:
                total, apart = sum(seen.each[place] for place in picks), len(picks) * seen.apart
                figures, said = (total, max(total - apart, 0.0), total + apart), how
            else:
                started = sum(low <= k.start < high for k in mine)
                figures = (started * seen.mean, started * seen.least, started * seen.most)
                said = "bounds" if how == "order" else how
            found.setdefault((shape[0], quantity), []).append((shape, figures, said))
    return {
        key: _row(key[0], parts, kernels, low, high)
        for key, parts in found.items()
        if any(k.name == key[0] and low <= k.start < high for k in kernels)
    }


def _order(
    mine: Sequence[Ran], work: dict[str, Seen], number: int, low: int, high: int
) -> tuple[str, list[int] | None]:
    if "fp32_flops" in work:
        spread = _spread(work["fp32_flops"])
    else:
        spread = max(_spread(each) for each in work.values())
    if spread <= 0.02:
        return "alike", None
    picks = []
    for process in sorted({k.process for k in mine}):
        of_process = [k for k in mine if k.process == process]
        if len(of_process) != number:
            return "bounds", None
        picks += [place for place, k in enumerate(of_process) if low <= k.start < high]
    return "order", picks


def _spread(seen: Seen) -> float:
    if seen.each is not None:
        return (max(seen.each) - min(seen.each)) / seen.mean if seen.mean > 0 else 0.0
    if math.isnan(seen.most):
        return math.inf
    return (seen.most - seen.least) / seen.mean if seen.mean > 0 else 0.0


def _quantities(shape: Shape, runs: Sequence[Sequence[Execution]]) -> dict[str, Seen]:
    work = {}
    for quantity, terms in RECIPES.items():
        factors = [factor for factor, _ in terms]
        counters = [_counter(shape, metric, runs) for _, metric in terms]
        known = [counter for counter in counters if counter is not None]
        if len(known) < len(terms):
            continue
        number = max(counter.number for counter in known)
        eaches = [counter.each for counter in known if counter.each is not None]
        if len(eaches) == len(terms) and len({len(each) for each in eaches}) == 1:
            sums = [
                sum(f * v for f, v in zip(factors, column, strict=True))
                for column in zip(*eaches, strict=True)
            ]
            mean = sum(sums) / len(sums)
            apart = sum(f * counter.apart for f, counter in zip(factors, known, strict=True))
            least, most = max(min(sums) - apart, 0.0), max(sums) + apart
            work[quantity] = Seen(mean, least, most, sums, number, apart)
            continue
        work[quantity] = Seen(
            sum(f * counter.mean for f, counter in zip(factors, known, strict=True)),
            sum(f * counter.least for f, counter in zip(factors, known, strict=True)),
            sum(f * counter.most for f, counter in zip(factors, known, strict=True)),
            None,
            number,
        )
    return work


def _counter(shape: Shape, metric: str, runs: Sequence[Sequence[Execution]]) -> Seen | None:
    """Return what all runs that have a value say of one counter of a shape."""
    found = []
    for run in runs:
        mine = [each for each in run if (each.name, each.grid) == shape]
        known = [value for each in mine if (value := each.values.get(metric)) is not None]
        if not known:
            continue
        mean = sum(known) / len(known)
        if len(known) == len(mine):
            found.append(Seen(mean, min(known), max(known), known, len(mine)))
        else:  # the others may be anything
            found.append(Seen(mean, 0.0, math.nan, None, len(mine)))
    if not found:
        return None
    eaches = [seen.each for seen in found if seen.each is not None]
    each, apart = None, 0.0
    if len(eaches) == len(found) and len({len(values) for values in eaches}) == 1:
        each = [sum(column) / len(column) for column in zip(*eaches, strict=True)]
        apart = max(
            abs(value - mean) for values in eaches for value, mean in zip(values, each, strict=True)
        )
    unbounded = any(math.isnan(seen.most) for seen in found)
    return Seen(
        sum(seen.mean for seen in found) / len(found),
        min(seen.least for seen in found),
        math.nan if unbounded else max(seen.most for seen in found),
        each,
        max(seen.number for seen in found),
        apart,
    )


def _row(
    name: str,
    parts: list[tuple[Shape, Three, str]],
    kernels: Sequence[Ran],
    low: int,
    high: int,
) -> dict[str, Any]:
    def time(shapes: set[Shape]) -> int:
        return sum(
            max(min(k.end, high) - max(k.start, low), 0)
            for k in kernels
            if (k.name, k.grid) in shapes
        )

    def started(shapes: set[Shape]) -> int:
        return sum((k.name, k.grid) in shapes and low <= k.start < high for k in kernels)

    everything = {(k.name, k.grid) for k in kernels if k.name == name}
    counted = {shape for shape, _, _ in parts}
    value, least, most = (sum(figures[i] for _, figures, _ in parts) for i in range(3))
    return {
        "value": value,
        "low": least,
        "high": None if math.isnan(most) else most,
        "executions": started(everything),
        "counted_executions": started(counted),
        "coverage": time(counted) / time(everything) if time(everything) else None,
        "rate_per_s": value * 1e9 / time(counted) if time(counted) else None,
        "how": {how for _, _, how in parts},
    }
