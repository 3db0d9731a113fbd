"""The device work of ranges: per range, and per group of ranges such as a path or a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.busy_time import BusyTime, busy_by_group, busy_time
from kernelscope.metrics.call_stretches import Stretches, stretches
from kernelscope.metrics.call_work import NEVER, CallWork, call_work, device_events
from kernelscope.metrics.inheritance import CONCURRENT
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.nesting import least_between
from kernelscope.metrics.range_calls import RangeCalls, calls_of_ranges
from kernelscope.metrics.runs import Runs, calls_of_groups, running_total
from kernelscope.metrics.window import Window

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

PAIRS_AT_ONCE = 1 << 20
"""Pairs of an execution and a range group that are held in memory at once."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MeasuredRanges:
    """What every table of ranges needs: the calls of each range, and what calls put on the device.

    Attributes
    ----------
    stretches : Stretches
        Of the launching calls, such that no range holds a part of one.
    calls : RangeCalls
        Which stretches belong to each range.
    work : CallWork
        What each of them launched, inside the window.
    busy : BusyTime
        When that kept the device busy.
    projection : Projection
        From when to when each range had work there.
    """

    stretches: Stretches
    calls: RangeCalls
    work: CallWork
    busy: BusyTime
    projection: Projection


def measure_ranges(attribution: Attribution, window: Window) -> MeasuredRanges:
    """What did the ranges put on the device inside a window?"""
    of_ranges = calls_of_ranges(attribution)
    parts = _stretches(attribution, of_ranges)
    calls = RangeCalls(
        parts.of_runs(of_ranges.direct), tuple(map(parts.of_runs, of_ranges.inherited))
    )
    events = device_events(attribution, window)
    work = call_work(attribution, window, events, parts)
    busy = busy_time(attribution.enclosed.calls, events, parts)
    ranges = len(attribution.enclosed.trace.ranges)
    projected = projection(calls, work.first, work.last, ranges)
    return MeasuredRanges(parts, calls, work, busy, projected)


def _stretches(attribution: Attribution, of_ranges: RangeCalls) -> Stretches:
    """Cut calls so that a stretch lies in the same ranges and belongs to them in the same way."""
    calls = attribution.enclosed.calls
    told_apart = [calls.graph, _served(attribution), _bare(attribution)]
    runs = (of_ranges.direct, *of_ranges.inherited)
    return stretches(calls, runs, [each for each in told_apart if each is not None])


def _served(attribution: Attribution) -> Bools:
    """Return which calls serve a data pipeline."""
    return np.asarray(attribution.inheritance.how == CONCURRENT)


def _bare(attribution: Attribution) -> Bools | None:
    """Return which calls lie in no stack of the iterations' domain; None without iterations."""
    family = attribution.family
    innermost = None if family is None else attribution.enclosed.innermost.get(family.domain)
    return None if innermost is None else innermost < 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Projection:
    """When each of n ranges had work on the device, what it inherited included.

    Attributes
    ----------
    first, last : ndarray of int64, shape (n,)
        Earliest start and latest end on the device; `NEVER` and −`NEVER` where the range has
        no work.
    """

    first: Int64s
    last: Int64s

    @property
    def exists(self) -> Bools:
        """Which ranges have work on the device."""
        return np.asarray(self.last >= self.first)


def projection(calls: RangeCalls, first_of: Int64s, last_of: Int64s, ranges: int) -> Projection:
    """When did each range have work on the device?

    Parameters
    ----------
    calls : RangeCalls
        Which calls, or stretches of calls, belong to each range.
    first_of, last_of : ndarray of int64, shape (m,)
        From when to when the work of each was there; `NEVER` and −`NEVER` for none.
    ranges : int
        How many ranges there are.
    """
    first, last = np.full(ranges, NEVER), np.full(ranges, -NEVER)
    for runs in (calls.direct, *calls.inherited):
        bounds = runs.first, runs.last
        np.minimum.at(first, runs.owner, least_between(first_of, *bounds, NEVER))
        np.maximum.at(last, runs.owner, -least_between(-last_of, *bounds, NEVER))
    return Projection(first, last)


def sums_of_ranges(calls: RangeCalls, values: npt.NDArray[Any], ranges: int) -> Int64s:
    """Return the sum of a figure of stretches over those that belong to each range."""
    before = running_total(values)
    total = np.zeros(ranges, dtype=np.int64)
    for runs in (calls.direct, *calls.inherited):
        total += runs.sums(before, ranges)
    return total


def work_by_code(
    attribution: Attribution, measured: MeasuredRanges, code: Int32s, count: int
) -> dict[str, Int64s]:
    """What did each group of ranges put on the device, every operation counted once?

    Parameters
    ----------
    attribution : Attribution
        What belongs to what.
    measured : MeasuredRanges
        What the ranges put on the device.
    code : ndarray of int32, shape (n,)
        The group of each range; ranges of two processes share none.
    count : int
        How many groups there are.

    Returns
    -------
    dict of str to ndarray of int64, shape (count,)
        ``kernels``, ``kernel_ns``, ``opaque_ns``, ``inherited_kernel_ns``, ``busy_ns`` (union
        of all operations) and ``attribution.…``: kernels by how they belong to the group.
    """
    work, parts = measured.work, measured.stretches
    groups = calls_of_groups(measured.calls.direct, measured.calls.inherited, code, len(parts))
    kernels = running_total(work.kernels)
    direct, given = (runs.sums(kernels, count) for runs in (groups.direct, groups.inherited))
    kernel_ns = running_total(work.kernel_ns)
    given_ns = groups.inherited.sums(kernel_ns, count)
    graph = parts.at(attribution.enclosed.calls.graph)
    by_graph = _sums_where(groups.direct, work.kernels, graph, count)
    served = parts.at(_served(attribution))
    concurrent = _sums_where(groups.inherited, work.kernels, served, count)
    return {
        "kernels": direct + given,
        "kernel_ns": groups.direct.sums(kernel_ns, count) + given_ns,
        "opaque_ns": _opaque_ns(groups.all, work, count),
        "inherited_kernel_ns": given_ns,
        "busy_ns": busy_by_group(measured.busy, groups.all, count, PAIRS_AT_ONCE),
        "attribution.direct": direct - by_graph,
        "attribution.inherited": given - concurrent,
        "attribution.graph": by_graph,
        "attribution.concurrent": concurrent,
    }


def _opaque_ns(runs: Runs, work: CallWork, count: int) -> Int64s:
    if work.opaque_ns is None:
        return np.zeros(count, dtype=np.int64)
    return runs.sums(running_total(work.opaque_ns), count)


def _sums_where(runs: Runs, values: npt.NDArray[Any], chosen: Bools, count: int) -> Int64s:
    """Return the sums over the chosen calls only: most traces have none of the kind."""
    if not len(runs) or not chosen.any():
        return np.zeros(count, dtype=np.int64)
    return runs.sums(running_total(values * chosen), count)


def self_kernel_ns(
    attribution: Attribution, measured: MeasuredRanges, path: Int32s, count: int
) -> Int64s:
    """Return the kernel time of each path that is in no range inside it.

    That is what lies in its ranges less what lies in the ranges directly inside them, and what
    they inherit that lies in no range of their domain.
    """
    parent, kernel_ns = attribution.enclosed.nesting.parent, measured.work.kernel_ns
    inside = measured.calls.direct.sums(running_total(kernel_ns), len(parent))
    nested = np.flatnonzero(parent >= 0)
    total = sums_by(path, inside, count)
    total -= sums_by(path[parent[nested]], inside[nested], count)
    bare = _bare(attribution)
    if bare is not None and measured.calls.inherited:
        heirs = measured.calls.inherited[0]
        total += Runs(path[heirs.owner], heirs.first, heirs.last).sums(
            running_total(kernel_ns * measured.stretches.at(bare)), count
        )
    return total
