"""How much of each pipe and memory do kernels use, and what bounds them?

Work from counters over the time of the same executions in this trace, against the peaks of the
table ``peaks``. FLOPs of CUDA cores are measured against their pipe, those of tensor cores against
the peak of their type, never one on the other. METRICS.md (*Utilization*, *Bound*) defines it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import utilization_results as results
from kernelscope.metrics.bound import (
    REASONS,
    SERIALISED,
    Side,
    evidence,
    latency_reasons,
    sides,
    verdict,
)
from kernelscope.metrics.ceilings import CORE_PIPES, MEMORIES, TENSOR_FLOPS, Ceilings
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.shape_work import SHAPE, Floats, ShapeWork
from kernelscope.metrics.shares import Groups, Share, shares
from kernelscope.schema import TableSchema
from kernelscope.trace import Categorical, ColumnData, Table

Bools = npt.NDArray[np.bool_]

FLOPS = (*CORE_PIPES, TENSOR_FLOPS)
"""Quantities that arithmetic intensity is of."""


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Launch shapes by kernel, or each for itself; k groups.

    Attributes
    ----------
    of : ndarray of int, shape (g,)
        The group of each launch shape.
    first : ndarray of int, shape (k,)
        The launch shape that takes most of each group's time.
    """

    of: Groups
    first: Groups

    @classmethod
    def by_name(cls, work: ShapeWork) -> Grouped:
        """Return the kernels by name, in the order of their longest launch shapes."""
        codes = work.shapes["name"].tolist()
        place = {code: number for number, code in enumerate(dict.fromkeys(codes))}
        of = np.array([place[code] for code in codes], dtype=np.int64)
        first = np.zeros(len(place), dtype=np.int64)
        first[of[::-1]] = np.arange(len(of))[::-1]
        return cls(of, first)

    @classmethod
    def by_shape(cls, work: ShapeWork) -> Grouped:
        """Return each launch shape for itself."""
        every = np.arange(len(work))
        return cls(every, every)

    def __len__(self) -> int:
        return len(self.first)

    def total(self, values: npt.NDArray[Any]) -> Floats:
        """Return the sum over the launch shapes of each group."""
        return np.bincount(self.of, weights=values, minlength=len(self)).astype(np.float64)


def utilization_tables(  # noqa: PLR0913 - what was found before
    work: ShapeWork,
    ceilings: Ceilings,
    *,
    limited: npt.NDArray[np.int64],
    sm_count: int | None,
    serialised: bool = False,
    communication: Sequence[str] = (),
) -> dict[str, Table]:
    """Return utilization and bound of each kernel, and of each launch shape.

    Parameters
    ----------
    work : ShapeWork
        The launch shapes of the trace and what was counted of them.
    ceilings : Ceilings
        The peaks.
    limited : ndarray of int64, shape (g,)
        Executions of each launch shape that the GPU waited for longer than they took.
    sm_count : int or None
        Multiprocessors of the GPU.
    serialised : bool
        Whether the profiler ran kernels one by one: then no duration is the program's.
    communication : sequence of str
        The user's patterns of communication kernels.

    Returns
    -------
    dict of str to Table
        ``pipe_utilization``, ``pipe_utilization_by_shape``, ``bounds`` and ``bounds_by_shape``.
    """
    tables = {}
    talks = is_communication(work.shapes.categories("name"), communication)
    talking = np.array([*talks, False], dtype=np.bool_)[work.shapes["name"]]
    reasons = latency_reasons(work, sm_count)
    for groups, used, bounds in (
        (Grouped.by_name(work), results.PIPE_UTILIZATION, results.BOUNDS),
        (Grouped.by_shape(work), results.PIPE_UTILIZATION_BY_SHAPE, results.BOUNDS_BY_SHAPE),
    ):
        found = [] if serialised else list(shares(work, ceilings, groups.of, len(groups)))
        tables[used.name] = _used(used, work, groups, found)
        why = _longest_reason(work, groups, reasons)
        columns = _identity(work, groups)
        columns |= _bound(work, ceilings, groups, found, talking[groups.first], why, serialised)
        columns |= _intensity(work, ceilings, groups)
        started = groups.total(work.shapes["executions"])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = groups.total(limited) / started
        columns["launch_limited"] = np.full(len(groups), np.nan) if serialised else ratio
        table = Table.make(
            bounds, {name: columns[name] for name in bounds.names if name in columns}
        )
        tables[bounds.name] = table.take(np.argsort(-table["total_ns"], kind="stable"))
    return tables


def _identity(work: ShapeWork, groups: Grouped) -> dict[str, ColumnData]:
    shapes, first = work.shapes, groups.first
    total = groups.total(shapes["total_ns"])
    everything = total.sum()
    return {
        "name": Categorical(shapes["name"][first], shapes.categories("name")),
        **{name: shapes[name][first] for name in SHAPE},
        "executions": groups.total(shapes["executions"]).astype(np.int64),
        "total_ns": total.astype(np.int64),
        "share": total / everything if everything else np.full(len(groups), np.nan),
    }


def _longest_reason(work: ShapeWork, groups: Grouped, reasons: npt.NDArray[np.int64]) -> list[str]:
    """Return the reason that holds for most of each group's time."""
    time = np.zeros((len(groups), len(REASONS)))
    np.add.at(time, (groups.of, reasons), work.time_s)
    return [REASONS[place] for place in time.argmax(axis=1).tolist()]


def _bound(  # noqa: PLR0913, PLR0917 - what its caller found
    work: ShapeWork,
    ceilings: Ceilings,
    groups: Grouped,
    found: Sequence[Share],
    communicates: Bools,
    why: Sequence[str],
    serialised: bool,
) -> dict[str, ColumnData]:
    count = len(groups)
    coverage = np.zeros(count)
    for share in found:
        coverage = np.maximum(coverage, np.where(share.known, share.coverage, 0.0))
    counted = coverage > 0
    compute, memory = sides(found, work, ceilings, groups.of, count)
    said = verdict(
        compute,
        memory,
        communicates=communicates,
        latency_reason=why,
        coverage=coverage,
        peaks=ceilings.of("fp32") is not None,
    )
    reason = said.reason
    if serialised:
        reason = [None if each is None else SERIALISED for each in reason]
    texts = [evidence(found, row) or None if counted[row] else None for row in range(count)]
    return {
        "bound": Categorical.of(said.bound),
        "bound_reason": Categorical.of(reason),
        "bound_evidence": Categorical.of(texts),
        "bound_margin": said.margin,
        **_side("compute", "compute_pipe", compute, counted),
        **_side("memory", "memory_level", memory, counted),
        "roof_share": _roof_share(found, compute, count),
    }


def _side(name: str, what: str, of: Side, counted: Bools) -> dict[str, ColumnData]:
    return {
        name: np.where(counted, of.value, np.nan),
        f"{name}_low": np.where(counted, of.low, np.nan),
        f"{name}_high": np.where(counted, of.high, np.nan),
        what: Categorical.of(of.name),
    }


def _roof_share(found: Sequence[Share], compute: Side, count: int) -> Floats:
    """Return FLOP/s over min(peak, intensity · bandwidth): the larger of the two utilizations.

    F / (T · min(P, F/B · W)) = max(F / (T · P), B / (T · W)).
    """
    dram = [share for share in found if share.resource == "dram"]
    if not dram:
        return np.full(count, np.nan)
    return np.maximum(compute.value, np.where(dram[0].coverage > 0, dram[0].value, np.nan))


def _intensity(work: ShapeWork, ceilings: Ceilings, groups: Grouped) -> dict[str, ColumnData]:
    """Return FLOPs per byte of DRAM, over the launch shapes that both were counted in."""
    count = len(groups)
    nothing = np.full(count, np.nan)
    flops = [work.amounts[name] for name in FLOPS if name in work.amounts]
    moved = work.amounts.get("dram_bytes")
    columns: dict[str, ColumnData] = {
        **dict.fromkeys(("intensity", "intensity_low", "intensity_high", "ridge"), nothing),
        "roofline_side": Categorical.constant(None, count),
    }
    if not flops or moved is None:
        return columns
    both = moved.counted & np.all([each.counted for each in flops], axis=0)

    def total(values: Floats) -> Floats:
        return groups.total(np.where(both, values, 0.0))

    with np.errstate(invalid="ignore", divide="ignore"):
        value = total(np.sum([each.value for each in flops], axis=0)) / total(moved.value)
        low = total(np.sum([np.nan_to_num(each.low) for each in flops], axis=0))
        low = low / total(moved.high)
        high = total(np.sum([each.high for each in flops], axis=0)) / total(
            np.nan_to_num(moved.low)
        )
    high = np.where(np.isfinite(high), high, np.nan)
    ridge = _ridge(work, ceilings, groups)
    with np.errstate(invalid="ignore"):
        side = np.select([high < ridge, low >= ridge], [0, 1], -1).astype(np.int32)
    return columns | {
        "intensity": value,
        "intensity_low": low,
        "intensity_high": high,
        "ridge": ridge,
        "roofline_side": Categorical(side, ("memory", "compute")),
    }


def _ridge(work: ShapeWork, ceilings: Ceilings, groups: Grouped) -> Floats:
    """Return the intensity at which the roof of the pipe that does most meets that of DRAM.

    Missing where the pipe has several peaks, or does not stand out: what it does takes most time
    at its peak.
    """
    dram = ceilings.of("dram")
    if dram is None or not dram.certain:
        return np.full(len(groups), np.nan)
    least, peak = np.full(len(groups), -1.0), np.full(len(groups), np.nan)
    for share in shares(work, ceilings, groups.of, len(groups)):
        if share.resource in MEMORIES.values():
            continue
        doing = np.nan_to_num(share.low)
        better = share.known & ~share.none_done & (doing > least)
        least, peak = np.where(better, doing, least), np.where(better, share.peak, peak)
    return peak / dram.low


def _used(schema: TableSchema, work: ShapeWork, groups: Grouped, found: Sequence[Share]) -> Table:
    """Return a row for each group and pipe or memory level of which anything is known."""
    rows: list[tuple[int, int]] = []
    for number, share in enumerate(found):
        rows += [(row, number) for row in np.flatnonzero(share.known).tolist()]
    rows.sort()
    at = np.array([row for row, _ in rows], dtype=np.int64)
    mine = [found[number] for _, number in rows]
    pairs = list(zip([row for row, _ in rows], mine, strict=True))
    above = np.array([bool(share.above[row]) for row, share in pairs], dtype=np.bool_)
    figures: dict[str, Floats] = {
        name: np.array([getattr(share, name)[row] for row, share in pairs], dtype=np.float64)
        for name in ("value", "low", "high", "peak", "time_s", "coverage")
    }
    names = [share.names[row] for row, share in pairs]
    columns: Mapping[str, ColumnData] = {
        "name": Categorical(work.shapes["name"][groups.first][at], work.shapes.categories("name")),
        **{name: work.shapes[name][groups.first][at] for name in SHAPE},
        "resource": Categorical.of(names),
        "value": np.where(above, np.nan, figures["value"]),
        "low": figures["low"],
        "high": figures["high"],
        "peak_per_s": figures["peak"],
        "clock_basis": Categorical.of([share.bases[row] for row, share in pairs]),
        "source": Categorical.constant("counters", len(pairs)),
        "time_ns": np.rint(figures["time_s"] * 1e9).astype(np.int64),
        "coverage": figures["coverage"],
        "diagnosis": Categorical.of(
            [_diagnosis(share, row) if above[i] else None for i, (row, share) in enumerate(pairs)]
        ),
    }
    return Table.make(schema, {name: columns[name] for name in schema.names})


def _diagnosis(share: Share, row: int) -> str:
    """Say what may be wrong where work is more than the peak allows."""
    clock = f"the GPU ran above the clock of the peak ({share.bases[row]})"
    more = "the run that counted did more work in each launch"
    if share.resource in MEMORIES.values():
        if share.cold[row]:
            return (
                "bytes were counted with emptied caches, and are more than this run moved "
                "(ncu --cache-control none)"
            )
        return f"{more}, or the catalogue's bandwidth is too low"
    if share.quantity == TENSOR_FLOPS:
        return f"the type of the operands has a higher peak, sparsity doubles it, or {clock}"
    return f"{clock}, or {more}"
