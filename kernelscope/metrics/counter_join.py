"""Counters of another run, laid on the kernels of this trace: TBD's method.

Durations come from a plain trace, counts from a run of the same program under a profiler that
replays kernels. Both name a kernel and its launch shape; how often it ran, and in which order, need
not agree. Only counts are taken over, never times, rates or percentages of the other run.

- *alike*: where the FLOPs of a group's executions differ by 2 % at most, each counts as their mean.
- *order*: where they differ by more, and both runs launched the group as often, the n-th execution
  of a process counts as the n-th that was counted.
- *bounds*: else each counts as their mean, and lies between the least and the most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_quantity import Quantity
from kernelscope.metrics.counted_work import counted_work
from kernelscope.metrics.counter_findings import (
    doubts_of,
    findings_of,
    refuse_another_program,
    refuse_what_says_nothing,
)
from kernelscope.metrics.counter_gpus import capability_of, of_these_gpus
from kernelscope.metrics.counter_match import WITHOUT_SHAPE, Match, Shapes, matches, shapes_of
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.health import Finding
from kernelscope.metrics.launch_times import LaunchTimes, called_at, launch_times
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.metrics.work_tables import (
    ALIKE,
    BOUNDS,
    ORDER,
    SAME,
    Figures,
    Part,
    coverage_table,
    work_tables,
)
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Table, Trace

Int64s = npt.NDArray[np.int64]

MOST_SPREAD = 0.02
"""Executions whose FLOPs differ by this share of their mean, or less, are taken as equal."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CounterJoin:
    """What counters say of the kernels of a trace.

    Attributes
    ----------
    work, work_by_shape : Table
        Under ``work_results.WORK``: a row per kernel and quantity; and per launch shape.
    coverage : Table
        Under ``work_results.COUNTER_COVERAGE``: a row per launch shape, of the trace or counted.
    findings : tuple of Finding
        What there is to doubt.
    """

    work: Table
    work_by_shape: Table
    coverage: Table
    findings: tuple[Finding, ...]


def join_counters(
    trace: Trace,
    window: Window | None,
    counted: CounterSet,
    *,
    launches: LaunchTimes | None = None,
    same_run: bool = False,
) -> CounterJoin:
    """How much work did the kernels of a trace do, by the counters of another run?

    Parameters
    ----------
    trace : Trace
        The plain trace, or what was chosen of it.
    window : Window or None
        Where to look; None for the whole trace.
    counted : CounterSet
        Of one run or several, which may have counted different things.
    launches : LaunchTimes, optional
        Of the same trace: the order of launches is theirs.
    same_run : bool
        Whether the counters are of the executions of this trace.

    Raises
    ------
    NotRecordedError
        If counters of another run hold no FLOPs, bytes or instructions.
    SelectionError
        If none of them is of a kernel of the trace.
    """
    window = window or whole(trace)
    shapes = shapes_of(trace.kernels, window)
    kept, findings = of_these_gpus(trace, counted)
    groups = counted_work(kept, capability_of(trace))
    if not same_run:  # the trace's own are said of the capture
        findings += doubts_of(counted)
    if not same_run and kept is counted:
        refuse_what_says_nothing(counted, groups)
    found = list(matches(shapes, groups))
    if not same_run and groups and shapes.names and not found:
        refuse_another_program(shapes, groups)
    order = _Order(trace, window, shapes, launches, same_run)
    parts, hows = [], {}
    for match in found:
        how, figures = order.of(match)
        found_how = {
            name: _how(how, quantity, match.group.executions)
            for name, quantity in match.group.work.items()
        }
        hows[match.place] = how if how in found_how.values() else BOUNDS
        for name, quantity in match.group.work.items():
            parts.append(Part(match.place, name, quantity, figures(quantity), found_how[name]))
    coverage = coverage_table(shapes, groups, found, hows)
    serialised = trace.capture.serialised is not None
    work, by_shape = work_tables(shapes, parts, serialised=serialised)
    findings += findings_of(coverage, found, shapes, hows, same_run=same_run)
    return CounterJoin(work, by_shape, coverage, tuple(findings))


def _how(how: str, quantity: Quantity, executions: int) -> str:
    """Return how a quantity was counted: in order only where each execution has a value of it."""
    return BOUNDS if how == ORDER and not quantity.counted.is_told(executions) else how


class _Order:
    """Which execution of a group is which that was counted; found out only where it matters."""

    def __init__(
        self,
        trace: Trace,
        window: Window,
        shapes: Shapes,
        launches: LaunchTimes | None,
        same_run: bool,
    ) -> None:
        self._trace, self._window, self._shapes = trace, window, shapes
        self._launches, self._same_run = launches, same_run
        self._sorted: tuple[npt.NDArray[np.intp], list[int]] | None = None
        self._inside = starts_inside(trace.kernels, window)

    def of(self, match: Match) -> tuple[str, Callable[[Quantity], Figures]]:
        """Return how a group's executions were counted, and what of a quantity is the window's."""
        started = int(self._shapes.started[match.place])
        told = match.by != WITHOUT_SHAPE
        alike = match.group.spread <= MOST_SPREAD
        if told and (self._same_run or not alike):
            places = self._places(match)
            if places is not None:
                counted = match.group.executions
                how = SAME if self._same_run else ORDER
                return how, lambda each: each.figures(each.counted.picked(places, counted))
        how = ALIKE if alike and told else BOUNDS
        return how, lambda each: each.figures(each.counted.times(started))

    def _places(self, match: Match) -> Int64s | None:
        """Return the number, in its process, of each execution of a group inside the window.

        None where a process launched the group more or less often than was counted.
        """
        rows = self._rows(match.place)
        process = self._trace.kernels["process_id"][rows]
        if (np.bincount(grouped([process])[0]) != match.group.executions).any():
            return None
        number = np.arange(len(rows)) % match.group.executions
        return number[self._inside[rows]]

    def _rows(self, place: int) -> npt.NDArray[np.intp]:
        """Return the kernels of a group by process, then launch."""
        if self._sorted is None:
            trace, of = self._trace, self._shapes.of_kernel
            if self._same_run:
                at = trace.kernels["correlation_id"]  # as counters are sorted
            else:
                launches = self._launches or launch_times(trace)
                at = called_at(trace.kernels, launches.call_of_kernel, launches)
            start = trace.kernels["start_ns"]
            order = np.lexsort((start, at, trace.kernels["process_id"], of))
            bounds = np.cumsum(np.bincount(of, minlength=len(self._shapes.names))).tolist()
            self._sorted = order, [0, *bounds]
        order, bounds = self._sorted
        return order[bounds[place] : bounds[place + 1]]
