"""The device work of ranges: per range, and per group of ranges such as a path or a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.containment import Intervals, containment
from kernelscope.metrics.enclosing import Enclosed, held_calls
from kernelscope.metrics.grouping import group
from kernelscope.metrics.inheritance import CONCURRENT, HOW, INHERITED
from kernelscope.metrics.intervals import sorting, sums_by, union_by_group
from kernelscope.metrics.nesting import least_between, style_is
from kernelscope.metrics.window import Window, clipped_durations, starts_inside
from kernelscope.trace import Table

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
"""The start of what does not exist, and the negative of its end."""

PAIRS_AT_ONCE = 1 << 20
"""Pairs of work and range group that are held in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class CallWork:
    """What each of m launching calls put on the device, inside a window.

    Attributes
    ----------
    kernels, kernel_ns, operations : ndarray of int64, shape (m,)
        Kernels that start in the window, their time inside it, and how many kernels, copies
        and memsets start in it.
    first, last : ndarray of int64, shape (m,)
        Earliest start and latest end of all of these, clipped; `NEVER` and −`NEVER` for none.
    event_start, event_end : ndarray of int64, shape (e,)
        Times of the kernels, copies and memsets that lie in the window, clipped, by call.
    event_bounds : ndarray of int64, shape (m + 1,)
        Call i launched those from ``event_bounds[i]`` to ``event_bounds[i + 1]``.
    """

    kernels: Int64s
    kernel_ns: Int64s
    operations: Int64s
    first: Int64s
    last: Int64s
    event_start: Int64s
    event_end: Int64s
    event_bounds: Int64s


def call_work(attribution: Attribution, window: Window) -> CallWork:
    """What did each launching call put on the device?"""
    trace, count = attribution.enclosed.trace, len(attribution.enclosed.calls)
    kernels, operations = np.zeros((2, count), dtype=np.int64)
    kernel_ns = np.zeros(count, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int64)
    parts: list[tuple[npt.NDArray[Any], Int64s, Int64s]] = [(nothing, nothing, nothing)]
    for work, call in (
        (trace.kernels, attribution.kernels.call),
        (trace.copies, attribution.copies.call),
    ):
        if not len(work):
            continue
        counted = np.bincount(call[(call >= 0) & starts_inside(work, window)], minlength=count)
        operations += counted
        if work is trace.kernels:
            kernels += counted
            known = call >= 0
            kernel_ns += sums_by(call[known], clipped_durations(work, window)[known], count)
        parts.append(_events(work, call, window))
    event_call, start, end = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = sorting(event_call)
    event_call, start, end = event_call[order], start[order], end[order]
    first, last = np.full(count, NEVER), np.full(count, -NEVER)
    np.minimum.at(first, event_call, start)
    np.maximum.at(last, event_call, end)
    bounds = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(event_call, minlength=count), out=bounds[1:])
    return CallWork(kernels, kernel_ns, operations, first, last, start, end, bounds)


def _events(work: Table, call: Int32s, window: Window) -> tuple[npt.NDArray[Any], Int64s, Int64s]:
    start = np.maximum(work["start_ns"].astype(np.int64, copy=False), window.start_ns)
    end = np.minimum(work["end_ns"].astype(np.int64, copy=False), window.end_ns)
    kept = (call >= 0) & ((start < end) | starts_inside(work, window))
    return call[kept], start[kept], end[kept]


@dataclass(frozen=True, slots=True, eq=False)
class RangeWork:
    """The device work of each of n ranges, what it inherited included.

    Attributes
    ----------
    launches, kernels, kernel_ns, operations : ndarray of int64, shape (n,)
        Launching calls, kernels, their Σ time, and all operations.
    first, last : ndarray of int64, shape (n,)
        The projection: earliest start and latest end on the device; `NEVER` and −`NEVER`
        where the range has no work.
    """

    launches: Int64s
    kernels: Int64s
    kernel_ns: Int64s
    operations: Int64s
    first: Int64s
    last: Int64s

    @property
    def projected(self) -> Bools:
        """Which ranges have work on the device."""
        return np.asarray(self.last >= self.first)


def work_of_ranges(attribution: Attribution, work: CallWork) -> RangeWork:
    """What did each range put on the device?"""
    around, count = attribution.enclosed, len(attribution.enclosed.trace.ranges)
    launches, kernels, kernel_ns, operations = np.zeros((4, count), dtype=np.int64)
    first, last = np.full(count, NEVER), np.full(count, -NEVER)
    for rows, slices in _held(around):
        launches[rows] += slices.counts()
        kernels[rows] += slices.sums(work.kernels)
        kernel_ns[rows] += slices.sums(work.kernel_ns)
        operations[rows] += slices.sums(work.operations)
        bounds = slices.first, slices.last
        earliest = least_between(work.first[slices.order], *bounds, NEVER)
        latest = -least_between(-work.last[slices.order], *bounds, NEVER)
        first[rows] = np.minimum(first[rows], earliest)
        last[rows] = np.maximum(last[rows], latest)
    call, row = inherited_pairs(attribution)
    launches += np.bincount(row, minlength=count)
    kernels += sums_by(row, work.kernels[call], count)
    kernel_ns += sums_by(row, work.kernel_ns[call], count)
    operations += sums_by(row, work.operations[call], count)
    np.minimum.at(first, row, work.first[call])
    np.maximum.at(last, row, work.last[call])
    return RangeWork(launches, kernels, kernel_ns, operations, first, last)


def _held(around: Enclosed) -> Iterator[tuple[Int32s, Any]]:
    """Yield every range that can hold calls, with those that it holds."""
    stacked = np.flatnonzero(around.nesting.on_stack).astype(np.int32)
    yield from around.held
    yield from held_calls(
        around.trace.ranges, stacked, around.calls, strict=around.strict, process_ranges=False
    )


def inherited_pairs(attribution: Attribution) -> tuple[npt.NDArray[np.intp], Int32s]:
    """Return every (call, range) in which the call does not lie but which it inherits.

    A call inherits a phase or an iteration and with it what encloses that, except for ranges
    that it lies in anyway: a launch between two steps of an epoch lies in the epoch.
    """
    around, family = attribution.enclosed, attribution.family
    target = attribution.inheritance.inherited
    call = np.flatnonzero(target >= 0)
    if family is None or not len(call):
        return call, target[call]
    own = np.zeros(len(around.calls), dtype=np.bool_)
    if family.thread_id is not None:
        own[around.calls.threads.get((family.process_id, family.thread_id), slice(0, 0))] = True
    end = around.trace.ranges["end_ns"]
    row = target[call]
    calls, rows = [], []
    while len(call):
        outside = ~own[call] | (end[row] <= around.calls.start[call])
        call, row = call[outside], row[outside]
        calls.append(call)
        rows.append(row)
        row = around.nesting.parent[row]
        call, row = call[row >= 0], row[row >= 0]
    return np.concatenate(calls), np.concatenate(rows)


def work_by_code(
    attribution: Attribution, work: CallWork, code: Int32s, count: int
) -> dict[str, Int64s]:
    """What did each group of ranges put on the device, every operation counted once?

    Parameters
    ----------
    attribution : Attribution
        What belongs to what.
    work : CallWork
        What each call launched.
    code : ndarray of int32, shape (n,)
        The group of each range.
    count : int
        How many groups there are.

    Returns
    -------
    dict of str to ndarray of int64, shape (count,)
        ``kernels``, ``kernel_ns``, ``inherited_kernel_ns``, ``busy_ns`` (union of kernels,
        copies and memsets) and ``attribution.…``: kernels by how they belong to the group.
    """
    names = ("kernels", "kernel_ns", "inherited_kernel_ns", "busy_ns")
    figures = {name: np.zeros(count, dtype=np.int64) for name in names}
    figures |= {f"attribution.{how}": np.zeros(count, dtype=np.int64) for how in HOW[1:]}
    for key, how in _pairs(attribution, code, count):
        group_of, call = np.divmod(key, max(len(attribution.enclosed.calls), 1))
        low, size = int(group_of[0]), int(group_of[-1]) - int(group_of[0]) + 1
        place = slice(low, low + size)
        kernels, kernel_ns = work.kernels[call], work.kernel_ns[call]
        group_of -= low
        figures["kernels"][place] += sums_by(group_of, kernels, size)
        figures["kernel_ns"][place] += sums_by(group_of, kernel_ns, size)
        for number, name in enumerate(HOW[1:], start=1):
            if (these := how == number).any():
                figures[f"attribution.{name}"][place] += sums_by(
                    group_of[these], kernels[these], size
                )
        given = (how == INHERITED) | (how == CONCURRENT)
        figures["inherited_kernel_ns"][place] += sums_by(group_of[given], kernel_ns[given], size)
        figures["busy_ns"][place] += _busy(work, group_of, call, size)
    return figures


def _busy(work: CallWork, group_of: Int64s, call: Int64s, count: int) -> Int64s:
    """Return the union of what each group's calls launched."""
    first = work.event_bounds[call]
    length = work.event_bounds[call + 1] - first
    before = np.cumsum(length) - length
    event = np.arange(int(length.sum())) - np.repeat(before - first, length)
    starts, ends, bounds = union_by_group(
        work.event_start[event], work.event_end[event], np.repeat(group_of, length), count
    )
    before = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=before[1:])
    return np.asarray(before[bounds[1:]] - before[bounds[:-1]])


def _pairs(
    attribution: Attribution, code: Int32s, count: int
) -> Iterator[tuple[Int64s, npt.NDArray[np.int8]]]:
    """Yield every (group, call) once, as ``group · m + call`` ascending, and how they belong.

    Whole groups at a time, so that a union can be taken of each.
    """
    calls = attribution.enclosed.calls
    many = max(len(calls), 1)
    call, row = inherited_pairs(attribution)
    inherited = _distinct(code[row].astype(np.int64) * many + call)
    slices = list(_grouped_slices(attribution.enclosed, code))
    load = np.bincount(inherited // many, minlength=count)
    for groups, part in slices:
        load += sums_by(groups, part.counts(), count)
    direct_how = np.where(calls.graph, HOW.index("graph"), HOW.index("direct")).astype(np.int8)
    inherited_how = attribution.inheritance.how
    for low, high in _blocks(load):
        keys = []
        for groups, part in slices:
            chosen = slice(*np.searchsorted(groups, [low, high]))
            which, these = part.only(chosen).pairs()
            keys.append(groups[chosen][which].astype(np.int64) * many + these)
        direct = _distinct(np.concatenate(keys)) if keys else inherited[:0]
        given = inherited[slice(*np.searchsorted(inherited, [low * many, high * many]))]
        if len(given):
            given = given[~np.isin(given, direct, assume_unique=True)]
        if not len(direct) and not len(given):
            continue
        key = np.concatenate((direct, given))
        how = np.concatenate((direct_how[direct % many], inherited_how[given % many]))
        if len(given):
            order = np.argsort(key)
            key, how = key[order], how[order]
        yield key, how


def _distinct(keys: Int64s) -> Int64s:
    """Return the distinct keys, ascending; sorting is several times faster than hashing."""
    keys = np.sort(keys)
    new = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return keys if new.all() else keys[new]


def _blocks(load: Int64s) -> Iterator[tuple[int, int]]:
    """Split groups into runs of about `PAIRS_AT_ONCE` pairs, at least one group each."""
    total = np.cumsum(load)
    low = 0
    while low < len(load):
        done = int(total[low - 1]) if low else 0
        high = max(int(np.searchsorted(total, done + PAIRS_AT_ONCE, side="right")), low + 1)
        yield low, high
        low = high


def _grouped_slices(around: Enclosed, code: Int32s) -> Iterator[tuple[Int64s, Any]]:
    """Yield intervals by group, ascending, and the calls in them.

    A call that lies in several ranges of a group on one thread, nested or overlapping, is to be
    counted once: the union of the ranges is looked at, except where `strict` asks that one of
    them hold the whole call.
    """
    ranges, nest = around.trace.ranges, around.nesting
    held = nest.on_stack.copy()
    held[around.overlapping] = True
    wide = style_is(ranges, "start_end") & around.process_ranges
    for process_wide in (False, True):
        rows = np.flatnonzero(held & (wide == process_wide))
        if not len(rows):
            continue
        groups, intervals = _in_order(ranges, rows, code)
        if not around.strict:
            groups, intervals = _united(groups, intervals, process_wide)
        for slices in containment(
            intervals, around.calls, strict=around.strict, process_wide=process_wide
        ):
            yield groups, slices


def _in_order(ranges: Table, rows: npt.NDArray[Any], code: Int32s) -> tuple[Int64s, Intervals]:
    rows = rows[sorting(code[rows])]
    return code[rows].astype(np.int64), Intervals.of(ranges, rows)


def _united(groups: Int64s, intervals: Intervals, process_wide: bool) -> tuple[Int64s, Intervals]:
    lanes = group(
        *((intervals.process,) if process_wide else (intervals.process, intervals.thread))
    )
    lane = np.zeros(len(groups), dtype=np.int64) if lanes.codes is None else lanes.codes
    keys, both = np.unique(groups * len(lanes.keys) + lane, return_inverse=True)
    starts, ends, bounds = union_by_group(intervals.start, intervals.end, both, len(keys))
    example = np.empty(len(keys), dtype=np.intp)
    example[both] = np.arange(len(both))
    of_piece = np.repeat(example, np.diff(bounds))
    return groups[of_piece], Intervals(
        starts, ends, intervals.process[of_piece], intervals.thread[of_piece]
    )
