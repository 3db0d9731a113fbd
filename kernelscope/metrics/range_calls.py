"""Which launching calls belong to each range: those that lie in it, and those that inherit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.enclosing import held_calls
from kernelscope.metrics.grouping import begins
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.runs import NO_RUNS, Runs, united

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeCalls:
    """The calls of each range; owners of runs are rows of ``trace.ranges``.

    Attributes
    ----------
    direct : Runs
        Calls that lie in a range. The runs of one range are disjoint.
    inherited : tuple of Runs
        Calls that inherit a phase or an iteration in which they do not lie; then those that
        inherit what encloses that. Empty where nothing inherits.
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
    direct = [Runs(rows[which], *runs) for rows, s in held for which, *runs in (s.runs(),)]
    return RangeCalls(_joined(direct), _inherited(attribution))


def _inherited(attribution: Attribution) -> tuple[Runs, ...]:
    """Return the calls that inherit each range.

    A call inherits a phase or an iteration and with it what encloses that, except for ranges
    that it lies in anyway: a launch between two steps of an epoch lies in the epoch.

    Notes
    -----
    What encloses the deepest ranges comes first, and runs that meet there become one: where
    steps are never closed, each of n lies in all before it, and n²/2 runs would be n.
    """
    around, family = attribution.enclosed, attribution.family
    if family is None:
        return ()
    heirs = _outside(attribution, family, _targets(attribution))
    if not len(heirs):
        return ()
    nest, calls = around.nesting, len(around.calls)
    depth = nest.depth[heirs.owner]
    by_depth = np.argsort(depth, kind="stable")
    levels = np.arange(int(depth.max()) + 2)
    bounds = np.searchsorted(depth, levels, sorter=by_depth).tolist()
    outer, found = NO_RUNS, []
    for level in range(int(depth.max()), 0, -1):
        inner = _joined([_picked(heirs, by_depth[bounds[level] : bounds[level + 1]]), outer])
        outer = Runs(nest.parent[inner.owner], inner.first, inner.last)
        outer = _outside(attribution, family, united(outer, calls))
        found.append(outer)
    return heirs, _joined(found)


def _outside(attribution: Attribution, family: IterationFamily, runs: Runs) -> Runs:
    """Leave out the calls that lie in their range: on its own thread, those before its end."""
    around = attribution.enclosed
    for each in family.of_processes if len(runs) else ():
        own = around.calls.threads.get((each.process_id, each.thread_id))
        if own is None or each.thread_id is None:
            continue
        runs = _split(runs, own.start)  # where they were united with another thread's
        mine = (runs.first >= own.start) & (runs.first < own.stop)
        end = around.trace.ranges["end_ns"][runs.owner[mine]]
        behind = own.start + np.searchsorted(around.calls.start[own], end)
        first = runs.first.copy()
        first[mine] = np.maximum(first[mine], behind)
        runs = _picked(Runs(runs.owner, first, runs.last), first < runs.last)
    return runs


def _split(runs: Runs, at: int) -> Runs:
    """Cut the runs in two that lie around a call."""
    around = np.flatnonzero((runs.first < at) & (runs.last > at))
    if not len(around):
        return runs
    last = runs.last.copy()
    last[around] = at
    behind = Runs(runs.owner[around], np.full(len(around), at), runs.last[around])
    return _joined([Runs(runs.owner, runs.first, last), behind])


def _targets(attribution: Attribution) -> Runs:
    """Return the runs of calls, each of one thread, that inherit one phase or iteration."""
    target = attribution.inheritance.inherited
    new = begins(target)
    new[[part.start for part in attribution.enclosed.calls.threads.values()]] = True
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(target)) if len(first) else first
    return _picked(Runs(target[first], first, last), target[first] >= 0)


def _picked(runs: Runs, chosen: npt.NDArray[Any]) -> Runs:
    return Runs(runs.owner[chosen], runs.first[chosen], runs.last[chosen])


def _joined(parts: Sequence[Runs]) -> Runs:
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NO_RUNS
    return Runs(
        np.concatenate([part.owner for part in parts]),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
    )
