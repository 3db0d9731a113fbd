"""How much of its FP32 peak does a GPU use: in the window, and in each iteration.

TBD's figure: FP32 FLOPs over the peak times the time that the GPU is *active* (any kernel, or a
graph traced as one unit). Kernels that were not counted may have done nothing, or as much as the
SMs that their grids reach can do: the figure is an interval, and a value only where 90 % of the
active time is covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.ceilings import CORE_PIPES, TENSOR, TENSOR_FLOPS, TENSOR_INT, Ceilings
from kernelscope.metrics.device_identity import Identity, Lane, lane_of, lanes_of
from kernelscope.metrics.intervals import Int64s, Pieces, covered_before, union, unite
from kernelscope.metrics.shape_work import Amount, Floats, ShapeWork, rows_of_kernels
from kernelscope.metrics.window import Window
from kernelscope.trace import ColumnData, Trace

FP32 = "fp32_flops"

COVERED_AT = 0.90
"""Counters that cover this share of a GPU's active time give a value, not an interval alone."""

_PIPES = {**CORE_PIPES, TENSOR_FLOPS: TENSOR, TENSOR_INT: TENSOR}


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """FP32 FLOPs and time at the peak of each execution of a launch shape; arrays of shape (g,).

    Attributes
    ----------
    flops : tuple of three ndarray of float64
        FP32 FLOPs of an execution: value, least, most; NaN where not counted.
    ideal_s : tuple of three ndarray of float64
        Σ over pipes of FLOPs / peak: the time that its arithmetic takes at the peaks.
    reached_s : ndarray of float64
        Time of an execution times the share of the SMs that its grid reaches.
    """

    flops: tuple[Floats, Floats, Floats]
    ideal_s: tuple[Floats, Floats, Floats]
    reached_s: Floats


def rates(work: ShapeWork, ceilings: Ceilings) -> Rates:
    """Return what an execution of each launch shape does, the mean of those in the window."""
    executions = work.shapes["executions"].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = {
            name: tuple(getattr(amount, figure) / executions for figure in ("value", "low", "high"))
            for name, amount in work.amounts.items()
            if name in _PIPES
        }
        reached = np.nan_to_num(work.reach * work.time_s / executions)
    unknown = np.full(len(work), np.nan)
    value, low, high = each.get(FP32, (unknown,) * 3)
    low = np.where(np.isnan(low), 0.0, low)
    return Rates((value, low, high), _ideal(work, ceilings, each), reached)


def _ideal(
    work: ShapeWork, ceilings: Ceilings, each: dict[str, tuple[Floats, ...]]
) -> tuple[Floats, Floats, Floats]:
    """Return Σ FLOPs / peak of an execution; a value and an upper bound where all pipes are."""
    count = len(work)
    value, low, high = (np.zeros(count) for _ in range(3))
    for name, (mean, least, most) in each.items():
        amount = work.amounts[name]
        below, above = _peaks(work, ceilings, name, amount)
        nothing = most == 0
        with np.errstate(invalid="ignore", divide="ignore"):
            exact = np.where(below == above, mean / above, np.nan)
            value += np.where(nothing, 0.0, exact)
            low += np.where(nothing, 0.0, np.nan_to_num(least / above))
            high += np.where(nothing, 0.0, most / below)
    tensors = TENSOR_FLOPS in each or ceilings.lacks(TENSOR)
    cores = [name in each or ceilings.lacks(pipe) for name, pipe in CORE_PIPES.items()]
    if not (tensors and all(cores)):
        value, high = np.full(count, np.nan), np.full(count, np.nan)
    return value, low, high


def _peaks(work: ShapeWork, ceilings: Ceilings, name: str, amount: Amount) -> tuple[Floats, Floats]:
    if name in CORE_PIPES:
        one = ceilings.of(CORE_PIPES[name])
        figures = (np.nan, np.nan) if one is None else (one.low, one.high)
        return tuple(np.full(len(work), figure) for figure in figures)  # type: ignore[return-value]
    below, above = np.full((2, len(work)), np.nan)
    for row in np.flatnonzero(amount.counted).tolist():
        ceiling = ceilings.of_tensor(name, work.name_of(row), amount.formulas.get(row))
        if ceiling is not None:
            below[row], above[row] = ceiling.low, ceiling.high
    return below, above


@dataclass(frozen=True, slots=True, eq=False)
class Executions:
    """The kernels of one GPU.

    Attributes
    ----------
    start, end : ndarray of int64, shape (n,)
        When they ran.
    shape : ndarray of int64, shape (n,)
        The launch shape of each, −1 for those that were not chosen: nothing is known of them.
    active, uncovered : Pieces
        When anything ran, and when anything did whose FP32 FLOPs are not known.
    """

    start: Int64s
    end: Int64s
    shape: npt.NDArray[np.int64]
    active: Pieces
    uncovered: Pieces


def executions_of(
    trace: Trace,
    identity: Identity,
    work: ShapeWork,
    known: Floats,
    chosen: frozenset[Lane],
) -> list[Executions]:
    """Return the kernels of each GPU, by its number.

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    identity : Identity
        Of the same trace.
    work : ShapeWork
        The launch shapes of what was chosen.
    known : ndarray of float64, shape (g,)
        FP32 FLOPs of an execution of each; NaN where not known.
    chosen : frozenset of Lane
        The pairs of process and device that were chosen.
    """
    kernels, graphs = trace.kernels, trace.graphs
    shape = rows_of_kernels(kernels, work.shapes)
    groups = lanes_of(kernels)
    of_device: list[list[npt.NDArray[np.intp]]] = [[] for _ in identity.physical_ids]
    for key, rows in zip(groups.keys, groups.rows(), strict=True):
        lane = lane_of(key)
        places = np.arange(len(kernels))[rows]
        of_device[identity.index[identity.lanes.index(lane)]].append(places)
        if lane not in chosen:
            shape[rows] = -1
    opaque: list[list[Pieces]] = [[] for _ in identity.physical_ids]
    groups = lanes_of(graphs)
    for key, rows in zip(groups.keys, groups.rows(), strict=True):
        device = identity.index[identity.lanes.index(lane_of(key))]
        opaque[device].append(union(graphs["start_ns"][rows], graphs["end_ns"][rows]))
    told = np.append(~np.isnan(known), False)  # of −1: no
    found = []
    for mine, others in zip(of_device, opaque, strict=True):
        rows = np.sort(np.concatenate([np.empty(0, dtype=np.intp), *mine]))
        start, end = (kernels[name][rows].astype(np.int64) for name in ("start_ns", "end_ns"))
        blind = ~told[shape[rows]]
        found.append(
            Executions(
                start,
                end,
                shape[rows],
                unite(union(start, end), *others),
                unite(union(start[blind], end[blind]), *others),
            )
        )
    return found


def totals(
    kernels: Executions,
    each: Rates,
    periods: Sequence[Window],
    *,
    peak: float,
    overall: tuple[Int64s, Int64s] | None = None,
) -> dict[str, ColumnData]:
    """Return the columns of utilization of one GPU in stretches of time that do not overlap.

    Parameters
    ----------
    kernels : Executions
        Its kernels.
    each : Rates
        What an execution of each launch shape does.
    periods : sequence of Window
        In order of time, m of them.
    peak : float
        FP32 FLOP/s; NaN where not known.
    overall : pair of ndarray of int64, each of shape (m,), optional
        Active and uncovered time of each, where they are known better.

    Notes
    -----
    An execution counts in the period in which it starts; time is clipped.
    """
    count = len(periods)
    starts = np.array([each.start_ns for each in periods], dtype=np.int64)
    ends = np.array([each.end_ns for each in periods], dtype=np.int64)
    active, uncovered = overall or (
        _covered(kernels.active, starts, ends),
        _covered(kernels.uncovered, starts, ends),
    )
    place = np.searchsorted(starts, kernels.start, side="right") - 1
    inside = (place >= 0) & (kernels.start < ends[np.maximum(place, 0)])
    rows = np.flatnonzero(inside)
    place, shape = place[rows], kernels.shape[rows]
    known = shape >= 0
    place, shape, unknown = place[known], shape[known], np.bincount(place[~known], minlength=count)

    def total(values: Floats, missing: float = 0.0) -> Floats:
        weights = np.nan_to_num(values, nan=missing)[shape]
        return np.bincount(place, weights=weights, minlength=count).astype(np.float64)

    seconds, blind = active / 1e9, uncovered / 1e9
    not_counted = np.isnan(each.flops[2])
    reached = total(np.where(not_counted, each.reached_s, 0.0))
    reached = np.where(unknown > 0, np.inf, reached)
    with np.errstate(invalid="ignore", divide="ignore"):
        coverage = 1 - blind / seconds
        covered = coverage >= COVERED_AT
        value = np.where(covered, total(each.flops[0]) / (peak * seconds), np.nan)
        low = total(each.flops[1]) / (peak * seconds)
        most = total(each.flops[2]) / peak + np.minimum(blind, reached)
        high = np.minimum(most / seconds, np.maximum(low, 1.0))
        ideal_high = total(each.ideal_s[2], np.nan)
        every = (unknown == 0) & covered
        ideal = np.where(every, total(each.ideal_s[0], np.nan) / seconds, np.nan)
        wall = (ends - starts) / 1e9
        gpu = seconds / wall
        return {
            "active_ns": active,
            "gpu": gpu,
            "coverage": np.where(seconds > 0, coverage, np.nan),
            "fp32": value,
            "fp32_low": low,
            "fp32_high": high,
            "fp32_of_wall": value * gpu,
            "fp32_of_wall_low": low * gpu,
            "fp32_of_wall_high": high * gpu,
            "ideal_compute_ratio": ideal,
            "ideal_compute_ratio_low": total(each.ideal_s[1]) / seconds,
            "ideal_compute_ratio_high": ideal_high / seconds,
        }


def not_counted(
    active: Int64s, window: Window, peak: float, reached_s: float | None
) -> dict[str, ColumnData]:
    """Return the same columns where FLOPs of no kernel are known: between 0 and what SMs reach.

    Parameters
    ----------
    active : ndarray of int64, shape (d,)
        Time with a kernel or graph on each GPU.
    window : Window
        Where.
    peak : float
        FP32 FLOP/s; NaN where not known.
    reached_s : float or None
        Σ time · share of the SMs that the grid reaches, of the only GPU; None for several.
    """
    count = len(active)
    nothing = np.full(count, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        gpu = active / window.duration_ns
        most = np.ones(count)
        if reached_s is not None:
            most = np.minimum(reached_s * 1e9 / active, 1.0)
    known = (active > 0) & ~np.isnan(peak)
    low = np.where(known, 0.0, np.nan)
    high = np.where(known, most, np.nan)
    return {
        "active_ns": active,
        "gpu": gpu,
        "coverage": np.where(active > 0, 0.0, np.nan),
        "fp32": nothing,
        "fp32_low": low,
        "fp32_high": high,
        "fp32_of_wall": nothing,
        "fp32_of_wall_low": low * gpu,
        "fp32_of_wall_high": high * gpu,
        "ideal_compute_ratio": nothing,
        "ideal_compute_ratio_low": low,
        "ideal_compute_ratio_high": nothing,
    }


def _covered(pieces: Pieces, starts: Int64s, ends: Int64s) -> Int64s:
    return covered_before(pieces, ends) - covered_before(pieces, starts)
