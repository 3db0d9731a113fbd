"""Which iteration, and which part of it, does each launch belong to?

The definition is that of *NVTX attribution* in the documentation. What it leaves open is
decided so:

- A launch on the annotating thread itself, after its iteration's range has closed and before
  the next one opens, inherits the iteration by its period, however many threads annotate: whose
  period it is cannot be in doubt.
- Each process that carries the iterations has them for itself: its launches inherit from its
  own thread, by its own periods (`IterationFamily.twins`). A process that does not inherits none.
- *Another thread* of the process *is a candidate* if, outside the libraries' domains, it opened at
  least `FEWEST_INSTANCES` ranges of the same folded name that do not overlap.
- A launch is `concurrent` instead of `inherited` if it lies under a data-pipeline domain, or if
  most launches of its thread do. It belongs to the iteration that is open at its call, since
  it takes the device's time there, and to no phase.
- The last period ends with its range. Launches after it, and before the first, belong to none.
- A phase is a range of the iterations' thread and domain directly inside an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.enclosing import Enclosed
from kernelscope.metrics.intervals import latest
from kernelscope.metrics.iteration_family import IterationFamily, fold
from kernelscope.metrics.launching import Launching, calls_open_at
from kernelscope.metrics.library_domains import is_data_pipeline, is_library
from kernelscope.trace import Table, distinct

Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

HOW = ("none", "direct", "inherited", "graph", "concurrent")
"""How work belongs to an iteration or range: index 0 where it does not.

``direct``: the range was open on the calling thread; ``graph``: likewise, and the call launched
a CUDA graph; ``inherited``: the iteration was open elsewhere; ``concurrent``: likewise, and the
launch served a data pipeline, which works for a later batch.
"""

FEWEST_INSTANCES = 5
"""As many ranges make a name a candidate for iterations."""

NONE, DIRECT, INHERITED, GRAPH, CONCURRENT = range(5)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inheritance:
    """The iteration of each of m launching calls.

    Attributes
    ----------
    how : ndarray of int8, shape (m,)
        Index into `HOW`.
    iteration : ndarray of int32, shape (m,)
        Index in the family; −1 for none, and for an iteration of another process.
    phase : ndarray of int32, shape (m,)
        Row of the phase's range; −1 for none.
    inherited : ndarray of int32, shape (m,)
        Row of the range (phase or iteration) that an inherited or concurrent launch belongs to
        without lying in it; −1 for the others.
    reason : ndarray of int8, shape (m,)
        Index into ``attribution.REASONS`` where the family itself says why there is none.
    """

    how: Int8s
    iteration: Int32s
    phase: Int32s
    inherited: Int32s
    reason: Int8s


def no_inheritance(around: Enclosed) -> Inheritance:
    """Return the result without a family: a launch belongs to the ranges that hold it."""
    calls = around.calls
    none = np.full(len(calls), -1, dtype=np.int32)
    how = np.where(around.ranged, np.where(calls.graph, GRAPH, DIRECT), NONE).astype(np.int8)
    return Inheritance(how, none, none, none, np.zeros(len(calls), dtype=np.int8))


OUTSIDE, ANOTHER_PROCESS, SEVERAL = 5, 6, 7
"""Places of these reasons in ``attribution.REASONS``."""


def inheritance(around: Enclosed, family: IterationFamily, *, phases: bool) -> Inheritance:
    """Which iteration does each launch belong to, and how?

    Parameters
    ----------
    around : Enclosed
        The launches, and the ranges around each.
    family : IterationFamily
        The iterations; launches of the processes of its `twins` belong to those.
    phases : bool
        Whether launches of other threads inherit the phase, too.
    """
    calls, families = around.calls, family.of_processes
    callers = _callers(around, families)
    own = callers.own
    firsts = np.cumsum([0, *(len(each.starts) for each in families)]).tolist()
    rows = np.concatenate([each.rows for each in families])
    range_ends = np.concatenate([each.range_ends for each in families])
    place = _open_period(calls, callers, families, firsts)
    inside = (place >= 0) & own & (calls.start < range_ends[place])
    place = np.where(own | ~callers.several, place, np.int32(-1))
    how = np.full(len(calls), NONE, dtype=np.int8)
    how[place >= 0] = INHERITED
    how[(place >= 0) & _serves_pipeline(around, own)] = CONCURRENT
    how[inside] = np.where(calls.graph[inside], GRAPH, DIRECT)
    holds = (how == DIRECT) | (how == GRAPH)
    if phases:
        holds |= _annotator_is_idle(around, callers, families, (how == INHERITED) & ~own)
    phase = _phases(around, callers, families, holds)
    inherits = (how == INHERITED) | (how == CONCURRENT)
    inherited = np.where(inherits, np.where(phase >= 0, phase, rows[place]), -1)
    reason = np.where(callers.carried, np.int8(OUTSIDE), np.int8(ANOTHER_PROCESS))
    reason[callers.several & ~own] = SEVERAL
    reason[how != NONE] = 0
    if family.twins:
        place = np.where(place < len(family.starts), place, np.int32(-1))
    return Inheritance(how, place, phase, inherited.astype(np.int32), reason)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Callers:
    """Whose each of m launching calls is.

    Attributes
    ----------
    parts : tuple of (int, slice)
        The calls of each thread of a process that carries the iterations, and the number of
        its family.
    own : ndarray of bool, shape (m,)
        Made by the thread that annotates.
    carried : ndarray of bool, shape (m,)
        Made by a process that carries the iterations.
    several : ndarray of bool, shape (m,)
        Likewise, by one in which another thread annotates, too.
    """

    parts: tuple[tuple[int, slice], ...]
    own: Bools
    carried: Bools
    several: Bools


def _callers(around: Enclosed, families: Sequence[IterationFamily]) -> _Callers:
    calls = around.calls
    contested = processes_of_several(around.trace.ranges, families)
    number = {family.process_id: place for place, family in enumerate(families)}
    own, carried, several = np.zeros((3, len(calls)), dtype=np.bool_)
    parts = []
    for (process, thread), part in calls.threads.items():
        if process not in number:
            continue
        parts.append((number[process], part))
        carried[part] = True
        several[part] = process in contested
        own[part] = thread is not None and thread == families[number[process]].thread_id
    return _Callers(tuple(parts), own, carried, several)


def _open_period(
    calls: Launching, callers: _Callers, families: Sequence[IterationFamily], firsts: list[int]
) -> Int32s:
    """Return the iteration of its process whose period is open at each call; −1 for none.

    Iterations are numbered through all families; `firsts` are the numbers of their first.
    """
    found = np.full(len(calls), -1, dtype=np.int32)
    for number, part in callers.parts:
        family, start = families[number], calls.start[part]
        place = latest(family.starts, start)
        place[start >= family.ends[place]] = -1
        if firsts[number]:
            place[place >= 0] += firsts[number]
        found[part] = place
    return found


def _serves_pipeline(around: Enclosed, own: Bools) -> Bools:
    """Return which calls serve a data pipeline: by their range, or by most of their thread's."""
    calls = around.calls
    under = np.zeros(len(calls), dtype=np.bool_)
    for domain, rows in around.innermost.items():
        if is_data_pipeline(domain):
            under |= rows >= 0
    serves = under.copy()
    for part in calls.threads.values():
        if 2 * int(under[part].sum()) > part.stop - part.start and not own[part].any():
            serves[part] = True
    return serves


def _annotator_is_idle(
    around: Enclosed, callers: _Callers, families: Sequence[IterationFamily], wanted: Bools
) -> Bools:
    """Return at which of the `wanted` calls the annotating thread is in no CUDA call of its own."""
    idle = np.zeros(len(wanted), dtype=np.bool_)
    for number, family in enumerate(families):
        rows = [
            part.start + np.flatnonzero(wanted[part])
            for whose, part in callers.parts
            if whose == number
        ]
        others = np.concatenate([np.empty(0, dtype=np.intp), *rows])
        if len(others):
            thread = family.process_id, family.thread_id
            times = around.calls.start[others]
            idle[others] = ~calls_open_at(around.trace.api_calls, *thread, times)
    return idle


def _phases(
    around: Enclosed, callers: _Callers, families: Sequence[IterationFamily], wanted: Bools
) -> Int32s:
    """Return the row of the phase that is open at each of the `wanted` calls; −1 for none."""
    ranges, nest, calls = around.trace.ranges, around.nesting, around.calls
    phase = np.full(len(calls), -1, dtype=np.int32)
    family_of = np.full(len(ranges) + 1, -1, dtype=np.int32)
    for number, family in enumerate(families):
        family_of[family.rows] = number
    whose = family_of[nest.parent]
    rows = np.flatnonzero(nest.on_stack & (whose >= 0))
    rows = rows[np.argsort(ranges["start_ns"][rows], kind="stable")]
    whose = whose[rows]
    for number in range(len(families)):
        mine = (rows if len(families) == 1 else rows[whose == number]).astype(np.int32)
        if not len(mine):
            continue
        opened, closed = ranges["start_ns"][mine], ranges["end_ns"][mine]
        for part in (part for owner, part in callers.parts if owner == number):
            start = calls.start[part]
            last = latest(opened, start)
            is_open = wanted[part] & (last >= 0) & (start < closed[last])
            phase[part] = np.where(is_open, mine[last], np.int32(-1))
    return phase


def processes_of_several(ranges: Table, families: Sequence[IterationFamily]) -> set[int | None]:
    """Return the processes in which another thread is a candidate under the same folded name.

    Parameters
    ----------
    ranges : Table
        Of the trace.
    families : sequence of IterationFamily
        The iterations of one folded name, one family per process.
    """
    name = families[0].folded_name
    prefix = name.split("#", maxsplit=1)[0]
    names = np.array(
        [text.startswith(prefix) and fold(text) == name for text in ranges.categories("name")]
    )
    program = np.array([not is_library(text) for text in ranges.categories("domain")])
    if not len(ranges) or not names.any():
        return set()
    alike = names[ranges["name"]] & program[ranges["domain"]]
    return {
        family.process_id
        for family in families
        if family.process_id is not None and _another_annotates(ranges, family, alike)
    }


def _another_annotates(ranges: Table, family: IterationFamily, alike: Bools) -> bool:
    rows = np.flatnonzero(
        alike
        & (ranges["process_id"] == family.process_id)
        & (ranges["thread_id"] != family.thread_id)
    )
    threads = ranges["thread_id"][rows]
    several = (rows[threads == thread] for thread in distinct(threads).tolist())
    return any(len(each) >= FEWEST_INSTANCES and _apart(ranges, each) for each in several)


def _apart(ranges: Table, rows: npt.NDArray[Any]) -> bool:
    start, end = np.sort(ranges["start_ns"][rows]), np.sort(ranges["end_ns"][rows])
    return bool((start[1:] >= end[:-1]).all())
