"""What bounds a kernel: a pipe, a memory level, latency; or nothing tells.

The rules of METRICS.md (*Bound*), in their order, for intervals: a class is given only where it
holds whatever the true values are.

1. *communication*: the kernel is on the list.
2. The best pipe's share of its peak c, or the best memory level's m, is 0.60 or more: the larger
   one's name; *balanced* where they are nearer than 0.10.
3. Both are known and below 0.60: *latency*, with a reason.
4. Where one of the two was not counted, the other decides at 0.60 or more, and only then.
5. Else *cannot_tell*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope import units
from kernelscope.metrics.ceilings import CORE_PIPES, MEMORIES, TENSOR, Ceilings
from kernelscope.metrics.shape_work import Floats, ShapeWork
from kernelscope.metrics.shares import Groups, Share

Bools = npt.NDArray[np.bool_]

BOUND_AT = 0.60
"""A pipe or memory that is used to this share of its peak is what bounds a kernel."""

NEAR = 0.10
"""Shares that differ by less are balanced."""

FEW_BLOCKS = "fewer blocks than SMs"
TAIL = "tail: the last wave is far from full"
LOW_OCCUPANCY = "occupancy below 25 %"
SHORT = "shorter than 5 µs"
OTHER = "other: stalls that no counter here explains"
REASONS = (FEW_BLOCKS, TAIL, LOW_OCCUPANCY, SHORT, OTHER)

TAIL_AT = 1.25
OCCUPIED_AT = 0.25
SHORT_NS = 5_000

COMMUNICATION, BALANCED, LATENCY, CANNOT_TELL = (
    "communication", "balanced", "latency", "cannot_tell",
)  # fmt: skip

NO_WORK = "no FLOPs and bytes are known (--counters)"
NO_COMPUTE = "FLOPs of a pipe that it may use are not known"
NO_MEMORY = "bytes of a memory level are not known"
PARTLY = "counters cover only some of its launch shapes (table bounds_by_shape)"
NO_PEAKS = "the GPU's peaks are not known (--gpu NAME)"
BETWEEN = "the bounds of its work allow several classes"
SERIALISED = "the profiler ran kernels one by one: a plain trace has their durations"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The pipe, or memory level, that groups use most; arrays of shape (k,).

    Attributes
    ----------
    value, low, high : ndarray of float64
        Its utilization over all of a group's time; `low` and `high` are 0 and 1 where nothing is
        known.
    name : list of str or None
        Which it is; None where nothing was counted.
    complete : ndarray of bool
        Whether everything of its kind that may matter was counted.
    """

    value: Floats
    low: Floats
    high: Floats
    name: list[str | None]
    complete: Bools


def side(found: Sequence[Share], missing: Sequence[tuple[Bools, Floats]], count: int) -> Side:
    """Return what groups use most of several pipes, or memory levels.

    Parameters
    ----------
    found : sequence of Share
        What was counted.
    missing : sequence of (ndarray of bool, ndarray of float64), each of shape (k,)
        For every other of the kind, the groups that may use it, and how much at most.
    count : int
        How many groups there are.
    """
    value, low, high = np.full(count, np.nan), np.zeros(count), np.zeros(count)
    best = np.full(count, -1)
    complete = np.ones(count, dtype=np.bool_)
    exact = np.ones(count, dtype=np.bool_)
    for number, share in enumerate(found):
        seen = share.known
        rest = 1 - share.coverage
        least = np.where(seen, np.nan_to_num(share.low) * share.coverage, 0.0)
        most = np.where(seen, np.nan_to_num(share.high, nan=1.0) * share.coverage + rest, 1.0)
        whole = np.where(seen & (rest < _ALL), share.value, np.nan)
        larger = (np.nan_to_num(whole) > np.nan_to_num(value)) | (best < 0) | (least > low)
        best = np.where(seen & larger & ~share.none_done, number, best)
        value = np.fmax(value, whole)
        low, high = np.maximum(low, least), np.maximum(high, most)
        exact &= ~np.isnan(whole)
        complete &= seen
    for groups, most in missing:
        complete &= ~groups
        exact &= ~groups
        high = np.where(groups, np.maximum(high, most), high)
    if not found:
        complete[:] = exact[:] = False
        high[:] = 1.0
    names = [None if place < 0 else found[place].names[row] for row, place in enumerate(best)]
    return Side(np.where(exact, value, np.nan), low, np.maximum(high, low), names, complete)


_ALL = 1e-9
"""Of a group's time: that much may be left out by rounding."""


def sides(
    found: Sequence[Share], work: ShapeWork, ceilings: Ceilings, of: Groups, count: int
) -> tuple[Side, Side]:
    """Return the pipe and the memory level that groups of launch shapes use most.

    A pipe that was not counted matters unless the GPU does not have it, or the kernel's name says
    that it uses no tensor cores; it can do no more than the SMs that the grid reaches.
    """
    there = {share.resource for share in found}
    everything = np.bincount(of, weights=work.time_s, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = np.bincount(of, weights=work.time_s * work.reach, minlength=count) / everything
    reach = np.nan_to_num(reach, nan=1.0)
    every = np.ones(count, dtype=np.bool_)
    missing = [
        (every, reach)
        for pipe in CORE_PIPES.values()
        if pipe not in there and not ceilings.lacks(pipe)
    ]
    if TENSOR not in there and not ceilings.lacks(TENSOR):
        unused = np.array([name.tensor_core is False for name in work.decoded], dtype=np.bool_)
        may = np.zeros(count, dtype=np.bool_)
        may[of[~unused[work.shapes["name"]]]] = True
        missing.append((may, reach))
    # Half precision has no pipe of its own where the catalogue has no peak of it.
    levels = [
        (every, np.ones(count))
        for level in MEMORIES.values()
        if level not in there and ceilings.of(level) is not None
    ]
    pipes = [share for share in found if share.resource not in MEMORIES.values()]
    memories = [share for share in found if share.resource in MEMORIES.values()]
    return side(pipes, missing, count), side(memories, levels, count)


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What bounds groups: lists and an array of length k."""

    bound: list[str]
    reason: list[str | None]
    margin: Floats


def verdict(  # noqa: PLR0913 - what decides
    compute: Side,
    memory: Side,
    *,
    communicates: Bools,
    latency_reason: Sequence[str],
    coverage: Floats,
    peaks: bool,
) -> Verdict:
    """Return what bounds each group; see the module for the rules.

    Parameters
    ----------
    compute, memory : Side
        What it uses most.
    communicates : ndarray of bool, shape (k,)
        Whether it is a communication kernel.
    latency_reason : sequence of str, length k
        What would make it wait.
    coverage : ndarray of float64, shape (k,)
        The share of its time of which any work is known.
    peaks : bool
        Whether the peaks of the GPU are known.
    """
    counted = coverage > 0
    ahead_c, ahead_m = compute.low - memory.high, memory.low - compute.high
    alone_c = ~memory.complete & (compute.low - memory.low >= NEAR)
    alone_m = ~compute.complete & (memory.low - compute.low >= NEAR)
    by_pipe = (compute.low >= BOUND_AT) & ((ahead_c >= NEAR) | alone_c)
    by_level = (memory.low >= BOUND_AT) & ((ahead_m >= NEAR) | alone_m)
    apart = np.maximum(compute.high - memory.low, memory.high - compute.low)
    both = compute.complete & memory.complete
    balanced = both & (apart < NEAR) & (np.maximum(compute.low, memory.low) >= BOUND_AT)
    busiest = np.maximum(compute.high, memory.high)
    latency = both & (busiest < BOUND_AT)
    lead_c = np.where(ahead_c >= NEAR, ahead_c - NEAR, np.inf)
    lead_m = np.where(ahead_m >= NEAR, ahead_m - NEAR, np.inf)
    margin = np.select(
        [communicates, by_pipe, by_level, balanced, latency],
        [
            np.full(len(counted), np.nan),
            np.minimum(compute.low - BOUND_AT, lead_c),
            np.minimum(memory.low - BOUND_AT, lead_m),
            NEAR - apart,
            BOUND_AT - busiest,
        ],
        np.nan,
    )
    kinds = np.select(
        [communicates, by_pipe, by_level, balanced, latency, ~counted], range(_LEFT), _LEFT
    ).tolist()
    bounds, reasons = [], []
    for row, kind in enumerate(kinds):
        named = {_PIPE: compute.name[row], _LEVEL: memory.name[row]}
        bounds.append(named.get(kind) or _CLASSES[kind])
        why = {_LATE: latency_reason[row], _NOTHING: NO_WORK}
        if kind == _LEFT:
            partly = coverage[row] < 1 - _ALL
            why[_LEFT] = PARTLY if partly else _what_would_tell(compute, memory, row)
        if not peaks and kind in (_LEFT, _NOTHING):
            why[kind] = NO_PEAKS
        reasons.append(why.get(kind))
    return Verdict(bounds, reasons, margin)


_CLASSES = (
    COMMUNICATION, CANNOT_TELL, CANNOT_TELL, BALANCED, LATENCY, CANNOT_TELL, CANNOT_TELL,
)  # fmt: skip
_PIPE, _LEVEL, _LATE, _NOTHING, _LEFT = 1, 2, 4, 5, 6
"""Places in `_CLASSES`, in the order in which the rules are tried."""


def _what_would_tell(compute: Side, memory: Side, row: int) -> str:
    if not compute.complete[row]:
        return NO_COMPUTE
    return BETWEEN if memory.complete[row] else NO_MEMORY


def latency_reasons(work: ShapeWork, sm_count: int | None) -> npt.NDArray[np.int64]:
    """Return what would make each launch shape wait, as indices into `REASONS`: the first of them.

    Parameters
    ----------
    work : ShapeWork
        The launch shapes.
    sm_count : int or None
        Multiprocessors of the GPU.
    """
    shapes = work.shapes
    waves, occupancy = shapes["waves"], shapes["occupancy"]
    with np.errstate(invalid="ignore", divide="ignore"):
        rounded_up = np.ceil(waves) / waves
        conditions = [
            (work.reach < 1) if sm_count else np.zeros(len(work), dtype=np.bool_),
            rounded_up >= TAIL_AT,
            occupancy < OCCUPIED_AT,
            shapes["mean_ns"] < SHORT_NS,
        ]
    return np.select(conditions, range(len(conditions)), len(conditions))


def evidence(found: Sequence[Share], row: int) -> str:
    """Return the utilization of each pipe and memory level of a group, as people read it."""
    said = []
    for share in found:
        if not share.known[row] or share.none_done[row]:
            continue
        value, low, high = share.value[row], share.low[row], share.high[row]
        if not np.isnan(value) and (np.isnan(high) or high - low < _ALL):
            figure = units.ratio(value)
        elif np.isnan(high):
            figure = f"at least {units.ratio(low)}"
        elif np.isnan(low) or low == 0:
            figure = f"at most {units.ratio(high)}"
        else:
            figure = f"{units.ratio(low)} to {units.ratio(high)}"
        said.append(f"{share.names[row]} {figure}")
    return ", ".join(said)
