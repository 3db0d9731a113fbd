"""Which iteration, and which part of it, does each launch belong to?

The definition is that of *NVTX attribution* in the documentation. What it leaves open is
decided so:

- A launch on the annotating thread itself, after its iteration's range has closed and before
  the next one opens, inherits the iteration by its period, however many threads annotate: whose
  period it is cannot be in doubt.
- *Another thread is a candidate* if, outside the libraries' domains, it opened at least
  `FEWEST_INSTANCES` ranges of the same folded name that do not overlap.
- A launch is `concurrent` instead of `inherited` if it lies under a data-pipeline domain, or if
  most launches of its thread do. It belongs to the iteration that is open at its call, since
  it takes the device's time there, and to no phase.
- The last period ends with its range. Launches after it, and before the first, belong to none.
- A phase is a range of the iterations' thread and domain directly inside an iteration.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True, eq=False)
class Inheritance:
    """The iteration of each of m launching calls.

    Attributes
    ----------
    how : ndarray of int8, shape (m,)
        Index into `HOW`.
    iteration : ndarray of int32, shape (m,)
        Index in the family; −1 for none.
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
    """Which iteration does each launch belong to, and how?"""
    calls = around.calls
    own, same_process = _places(calls, family)
    iteration = _open_period(calls, family)
    inside = (iteration >= 0) & (calls.start < family.range_ends[iteration]) & own
    several = another_thread_annotates(around.trace.ranges, family)
    allowed = own if several else same_process
    iteration = np.where(allowed, iteration, np.int32(-1))
    how = np.full(len(calls), NONE, dtype=np.int8)
    how[iteration >= 0] = INHERITED
    how[(iteration >= 0) & _serves_pipeline(around, own)] = CONCURRENT
    how[inside] = np.where(calls.graph[inside], GRAPH, DIRECT)
    holds = (how == DIRECT) | (how == GRAPH)
    if phases:
        others = np.flatnonzero((how == INHERITED) & ~own)
        holds[others] = ~_annotator_is_busy(around, family, calls.start[others])
    phase = _phases(around, family, holds)
    row = np.where(phase >= 0, phase, family.rows[iteration])
    inherits = (how == INHERITED) | (how == CONCURRENT)
    reason = np.full(len(calls), OUTSIDE, dtype=np.int8)
    if several:
        reason[same_process & ~own] = SEVERAL
    reason[~same_process] = ANOTHER_PROCESS
    reason[how != NONE] = 0
    return Inheritance(how, iteration, phase, np.where(inherits, row, -1).astype(np.int32), reason)


def _places(calls: Launching, family: IterationFamily) -> tuple[Bools, Bools]:
    """Return which calls the annotating thread made, and which its process."""
    own, same_process = np.zeros((2, len(calls)), dtype=np.bool_)
    for (process, thread), part in calls.threads.items():
        same_process[part] = process == family.process_id
        own[part] = thread is not None and (process, thread) == (
            family.process_id,
            family.thread_id,
        )
    return own, same_process


def _open_period(calls: Launching, family: IterationFamily) -> Int32s:
    """Return the iteration whose period is open at each call; −1 for none."""
    index = _latest_of_threads(calls, family.starts)
    if len(family.ends):
        index[calls.start >= family.ends[index]] = -1
    return index


def _latest_of_threads(calls: Launching, marks: Int64s) -> Int32s:
    """Return the place of the last of `marks`, in order, at or before each call; −1 for none."""
    place = np.full(len(calls), -1, dtype=np.int32)
    for part in calls.threads.values():
        place[part] = latest(marks, calls.start[part])
    return place


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


def _annotator_is_busy(around: Enclosed, family: IterationFamily, times: Int64s) -> Bools:
    """Return, for each time, whether the annotating thread is then in a CUDA call of its own."""
    return calls_open_at(around.trace.api_calls, family.process_id, family.thread_id, times)


def _phases(around: Enclosed, family: IterationFamily, wanted: Bools) -> Int32s:
    """Return the row of the phase that is open at each of the `wanted` calls; −1 for none."""
    ranges, nest, calls = around.trace.ranges, around.nesting, around.calls
    is_iteration = np.zeros(len(ranges) + 1, dtype=np.bool_)
    is_iteration[family.rows] = True
    rows = np.flatnonzero(nest.on_stack & is_iteration[nest.parent])
    if not len(rows):
        return np.full(len(calls), -1, dtype=np.int32)
    rows = rows[np.argsort(ranges["start_ns"][rows], kind="stable")]
    opened, closed = ranges["start_ns"][rows], ranges["end_ns"][rows]
    last = _latest_of_threads(calls, opened)
    is_open = wanted & (last >= 0) & (calls.start < closed[last])
    return np.where(is_open, rows[last].astype(np.int32), np.int32(-1))


def another_thread_annotates(ranges: Table, family: IterationFamily) -> bool:
    """Return whether another thread of the process is a candidate under the same folded name."""
    prefix = family.folded_name.split("#", maxsplit=1)[0]
    names = np.array(
        [
            text.startswith(prefix) and fold(text) == family.folded_name
            for text in ranges.categories("name")
        ]
    )
    program = np.array([not is_library(text) for text in ranges.categories("domain")])
    if not len(ranges) or family.process_id is None or not names.any():
        return False
    rows = np.flatnonzero(
        names[ranges["name"]]
        & program[ranges["domain"]]
        & (ranges["process_id"] == family.process_id)
        & (ranges["thread_id"] != family.thread_id)
    )
    threads = ranges["thread_id"][rows]
    several = (rows[threads == thread] for thread in distinct(threads).tolist())
    return any(len(each) >= FEWEST_INSTANCES and _apart(ranges, each) for each in several)


def _apart(ranges: Table, rows: npt.NDArray[Any]) -> bool:
    start, end = np.sort(ranges["start_ns"][rows]), np.sort(ranges["end_ns"][rows])
    return bool((start[1:] >= end[:-1]).all())
