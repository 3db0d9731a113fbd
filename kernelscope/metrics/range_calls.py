"""Which launching calls belong to each range: those that lie in it, and those that inherit it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.enclosing import held_calls
from kernelscope.metrics.grouping import begins
from kernelscope.metrics.runs import NO_RUNS, Runs

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RangeCalls:
    """The calls of each range; owners of runs are rows of ``trace.ranges``.

    Attributes
    ----------
    direct : Runs
        Calls that lie in a range. The runs of one range are disjoint.
    inherited : tuple of Runs
        Calls that inherit a phase or an iteration in which they do not lie; then those that
        inherit what encloses that, level by level.
    """

    direct: Runs
    inherited: tuple[Runs, ...]


def calls_of_ranges(attribution: Attribution) -> RangeCalls:
    """Which calls belong to each range?"""
    around = attribution.enclosed
    stacked = np.flatnonzero(around.nesting.on_stack).astype(np.int32)
    held = (
        *around.held,
        *held_calls(
            around.trace.ranges, stacked, around.calls, strict=around.strict, process_ranges=False
        ),
    )
    parts = [(rows[which], first, last) for rows, s in held for which, first, last in (s.runs(),)]
    if not parts:
        return RangeCalls(NO_RUNS, _inherited(attribution))
    direct = Runs(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    return RangeCalls(direct, _inherited(attribution))


def _inherited(attribution: Attribution) -> tuple[Runs, ...]:
    """Return the calls that inherit each range.

    A call inherits a phase or an iteration and with it what encloses that, except for ranges
    that it lies in anyway: a launch between two steps of an epoch lies in the epoch. On the
    annotating thread these are the calls before a range's end.
    """
    around, family = attribution.enclosed, attribution.family
    if family is None:
        return ()
    runs = _targets(attribution)
    own = around.calls.threads.get((family.process_id, family.thread_id), slice(0, 0))
    if family.thread_id is None:
        own = slice(0, 0)
    start, end = around.calls.start[own], around.trace.ranges["end_ns"]
    levels = []
    while len(runs):
        mine = (runs.first >= own.start) & (runs.first < own.stop)
        behind = own.start + np.searchsorted(start, end[runs.owner[mine]])
        first = runs.first.copy()
        first[mine] = np.maximum(first[mine], behind)
        runs = _kept(Runs(runs.owner, first, runs.last), first < runs.last)
        levels.append(runs)
        outer = Runs(around.nesting.parent[runs.owner], runs.first, runs.last)
        runs = _kept(outer, outer.owner >= 0)
    return tuple(levels)


def _targets(attribution: Attribution) -> Runs:
    """Return the runs of calls, each of one thread, that inherit one phase or iteration."""
    target = attribution.inheritance.inherited
    new = begins(target)
    new[[part.start for part in attribution.enclosed.calls.threads.values()]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(target)) if len(first) else first
    return _kept(Runs(target[first], first, last), target[first] >= 0)


def _kept(runs: Runs, kept: Bools) -> Runs:
    if kept.all():
        return runs
    return Runs(runs.owner[kept], runs.first[kept], runs.last[kept])
