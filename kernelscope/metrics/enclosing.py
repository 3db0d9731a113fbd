"""Which ranges was each launching call made in? Push/pop ranges as stacks, others as intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.containment import Intervals, Slices, containment
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.launching import Launching, launching
from kernelscope.metrics.nesting import Nesting, nesting, style_is
from kernelscope.trace import Table, Trace, distinct, is_missing

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Held = tuple[Int32s, Slices]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enclosed:
    """The ranges around each of the m calls that launched work, of its own thread.

    Attributes
    ----------
    trace : Trace
        What was looked at.
    strict, process_ranges : bool
        The rules; see :func:`kernelscope.metrics.attribution.attribute`.
    nesting : Nesting
        The place of every range.
    calls : Launching
        The calls.
    innermost : mapping of str to ndarray of int32, shape (m,)
        For each domain with push/pop ranges: row in ``trace.ranges`` of the innermost range of
        the calling thread that holds each call; −1 for none.
    overlapping : ndarray of int32, shape (r,)
        Rows of the ranges without a place in a stack: start/end ranges, and crossing ones.
    held : tuple of (ndarray of int32, Slices)
        Rows of `overlapping` ranges, and which calls each holds; a call may lie in many.
    ranged : ndarray of bool, shape (m,)
        Whether any range at all holds the call.
    """

    trace: Trace
    strict: bool
    process_ranges: bool
    nesting: Nesting
    calls: Launching
    innermost: Mapping[str, Int32s]
    overlapping: Int32s
    held: tuple[Held, ...]
    ranged: Bools


def enclosed(
    trace: Trace,
    *,
    strict: bool = False,
    process_ranges: bool = False,
    launches: LaunchTimes | None = None,
) -> Enclosed:
    """Which ranges was each launching call made in?"""
    nest, calls = nesting(trace.ranges), launching(trace, launches, opaque=not strict)
    innermost = _innermost(nest, trace.ranges, calls, strict)
    overlapping = _overlapping(nest, trace.ranges, strict)
    held = held_calls(
        trace.ranges, overlapping, calls, strict=strict, process_ranges=process_ranges
    )
    ranged = np.zeros(len(calls), dtype=np.bool_)
    for rows in innermost.values():
        ranged |= rows >= 0
    for _, slices in held:
        ranged |= slices.covered(len(calls))
    return Enclosed(
        trace, strict, process_ranges, nest, calls, innermost, overlapping, held, ranged
    )


def held_calls(
    ranges: Table, rows: Int32s, calls: Launching, *, strict: bool, process_ranges: bool
) -> tuple[Held, ...]:
    """Which calls do some ranges hold, each by itself?

    Returns
    -------
    tuple of (ndarray of int32, Slices)
        Rows of ranges, and their calls. A range may stand in several; its calls do not.
    """
    wide = style_is(ranges, "start_end")[rows] & process_ranges
    return tuple(
        (rows[chosen], slices)
        for process_wide, chosen in ((False, ~wide), (True, wide))
        if chosen.any()
        for slices in containment(
            Intervals.of(ranges, rows[chosen]), calls, strict=strict, process_wide=process_wide
        )
    )


def _innermost(nest: Nesting, ranges: Table, calls: Launching, strict: bool) -> dict[str, Int32s]:
    domains = ranges.categories("domain")
    # Ranges of unknown threads hold no call, but their domain is one that calls can be outside of.
    used = distinct(ranges["domain"][style_is(ranges, "push_pop")]).tolist()
    innermost = {domains[code]: np.full(len(calls), -1, dtype=np.int32) for code in used}
    for stack in nest.stacks:
        rows = innermost[domains[stack.domain]]
        mine = calls.threads.get((stack.process_id, stack.thread_id))
        if mine is not None:
            rows[mine] = stack.at(calls.start[mine])
            if strict:
                _climb_out(rows[mine], nest.parent, ranges["end_ns"], calls.end[mine])
    return innermost


def _climb_out(
    rows: Int32s, parent: Int32s, range_end: npt.NDArray[Any], call_end: npt.NDArray[Any]
) -> None:
    """Replace, in place, ranges that end within the call by the first around them that do not."""
    left = np.flatnonzero(rows >= 0)
    while len(left):
        left = left[range_end[rows[left]] < call_end[left]]
        rows[left] = parent[rows[left]]
        left = left[rows[left] >= 0]


def _overlapping(nest: Nesting, ranges: Table, strict: bool) -> Int32s:
    chosen = style_is(ranges, "start_end")
    if strict:
        chosen &= is_missing(ranges["end_thread_id"])
    return np.flatnonzero(chosen | nest.crossing).astype(np.int32)
