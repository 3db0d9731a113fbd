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

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_work import Counted, counted_work
from kernelscope.metrics.counter_join_tables import Part, findings_of, join_table, work_table
from kernelscope.metrics.counter_match import WITHOUT_SHAPE, Match, Shapes, matches, shapes_of
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.health import Finding
from kernelscope.metrics.launch_times import LaunchTimes, called_at, launch_times
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Table, Trace

Int64s = npt.NDArray[np.int64]

ALIKE = 0.02
"""Executions whose FLOPs differ by this share of their mean, or less, are taken as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class CounterJoin:
    """What counters say of the kernels of a trace.

    Attributes
    ----------
    work : Table
        Under ``work_results.WORK``: a row per kernel and quantity.
    join : Table
        Under ``work_results.COUNTER_JOIN``: a row per launch shape, of the trace or counted.
    findings : tuple of Finding
        What there is to doubt.
    """

    work: Table
    join: Table
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
    """
    window = window or whole(trace)
    shapes = shapes_of(trace.kernels, window)
    kept, elsewhere = _of_this_gpu(trace, counted)
    groups = counted_work(kept, _capability(trace))
    found = list(matches(shapes, groups))
    order = _Order(trace, window, shapes, launches, same_run)
    rows: dict[tuple[str, str], list[Part]] = defaultdict(list)
    hows = {}
    for match in found:
        how, each = order.of(match)
        hows[match.place] = how
        for name, quantity in match.group.work.items():
            figures = each(quantity.counted)
            rows[shapes.names[match.place], name].append((match, quantity, figures, how))
    join = join_table(shapes, groups, found, hows)
    doubts = findings_of(join, found, shapes, elsewhere, same_run=same_run)
    return CounterJoin(work_table(trace, shapes, rows), join, tuple(doubts))


def _capability(trace: Trace) -> tuple[int, int] | None:
    """Return the compute capability of the trace's GPUs, where they have one in common."""
    table = trace.devices
    pairs = set(zip(table.values("compute_major"), table.values("compute_minor"), strict=True))
    known = {(major, minor) for major, minor in pairs if major is not None and minor is not None}
    return known.pop() if len(known) == 1 else None


def _of_this_gpu(trace: Trace, counted: CounterSet) -> tuple[CounterSet, list[str]]:
    """Return the counters of GPUs of the trace's compute capability, and what others there were.

    For another one kernels are compiled, and chosen, anew.
    """
    here = _capability(trace)
    table = counted.executions
    pairs = list(zip(table.values("compute_major"), table.values("compute_minor"), strict=True))
    foreign = np.array(
        [
            here is not None and major is not None and (major, minor) != here
            for major, minor in pairs
        ],
        dtype=np.bool_,
    )
    if not foreign.any():
        return counted, []
    runs = np.unique(table["run"][foreign])
    names = sorted(
        {f"{a}.{b}" for (a, b), is_foreign in zip(pairs, foreign, strict=True) if is_foreign}
    )
    there = ~np.isin(counted.counters["run"], runs)
    stay = ~np.isin(table["run"], runs)
    left = CounterSet(
        counted.counters.take(there), table.take(stay), counted.sources, counted.warnings
    )
    return left, names


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

    def of(self, match: Match) -> tuple[str, Callable[[Counted], Counted]]:
        """Return how a group's executions were counted, and what of a quantity is the window's."""
        started = int(self._shapes.started[match.place])
        told = match.by != WITHOUT_SHAPE
        if told and (self._same_run or match.group.spread > ALIKE):
            places = self._places(match)
            if places is not None:
                how = "same execution" if self._same_run else "order"
                return how, lambda counted: _picked(counted, places, started)
        if match.group.spread > ALIKE or not told:
            return "bounds", lambda counted: _times(counted, started)
        return "alike", lambda counted: _times(counted, started)

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
                at: Int64s = np.arange(len(of), dtype=np.int64)
            else:
                launches = self._launches or launch_times(trace)
                at = called_at(trace.kernels, launches.call_of_kernel, launches)
            start = trace.kernels["start_ns"]
            order = np.lexsort((start, at, trace.kernels["process_id"], of))
            bounds = np.cumsum(np.bincount(of, minlength=len(self._shapes.names))).tolist()
            self._sorted = order, [0, *bounds]
        order, bounds = self._sorted
        return order[bounds[place] : bounds[place + 1]]


def _times(counted: Counted, executions: int) -> Counted:
    """Return the figures of so many executions."""
    return Counted(
        executions, executions * counted.mean, executions * counted.low, executions * counted.high
    )


def _picked(counted: Counted, places: Int64s, executions: int) -> Counted:
    """Return the sum over some executions; of what is not known one by one, between bounds."""
    if counted.each is None or (len(places) and int(places.max()) >= len(counted.each)):
        return _times(counted, executions)
    total = float(counted.each[places].sum())
    return Counted(executions, total, np.nan if np.isnan(counted.low) else total, total)
