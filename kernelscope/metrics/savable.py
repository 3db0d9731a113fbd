"""Which stretches of a device's time could mending something save at most?

Every rule answers with pieces of time per device, so that one mechanism bounds the saving per
iteration: the pieces' time inside the periods of the iterations after warm-up, over their number;
of several devices the one with most counts. A bound says what vanishes if the cause vanishes and
nothing takes its place; time in which the device also does other work is not counted where the
rule says *exposed*.

Host time that a rule would spare (waiting, allocating, fetching data) is turned into idle time
by :func:`spared`: sparing it makes every later launch earlier, so that pauses shrink that end
with the launch, wherever the time was spent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import lane_of
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.grouping import Key, group
from kernelscope.metrics.idle import IdleTime
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import (
    Pieces,
    clip,
    covered_before,
    intersection,
    overlap,
    total,
    union,
    unite,
)
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.start_up import cold, started
from kernelscope.metrics.waiting import Waiting
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace, distinct

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


LAUNCHING = ("in_call", "launch_latency")
"""Causes of idle time, beside the host's own, that end with a launch that came too late."""


def is_late(cause: str) -> bool:
    """Return whether idle time of a cause ends with a launch that came too late."""
    return cause.startswith(HOST) or cause in LAUNCHING


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Basis:
    """What a saving is stated of.

    Attributes
    ----------
    periods : Pieces
        The iterations after warm-up, or the window.
    count : int
        How many there are.
    name : str
        ``iteration`` or ``window``.
    """

    periods: Pieces
    count: int
    name: str

    @property
    def mean_ns(self) -> float:
        """Mean length of an iteration, or the window's."""
        return total(self.periods) / self.count


@dataclass(frozen=True, eq=False)  # no slots: what several rules ask for is kept
class Seen:
    """Everything that the rules look at.

    Attributes
    ----------
    trace : Trace
        The chosen processes and devices.
    launches : LaunchTimes
        Which call launched what in it.
    everything : Trace
        All that was recorded: `trace` itself where nothing was chosen. `explained` and
        `measured` speak of it.
    every_call : Table
        The calls without wrappers of `everything`.
    window : Window
        Where to look.
    measured : DeviceTime
        The accounts of all devices in the window.
    explained : IdleTime
        Why they stood still.
    chosen : tuple of int
        The devices that `trace` uses, in the order of the rows of ``devices``.
    waits : Waiting
        When host threads waited inside CUDA calls.
    tables : mapping of str to Table
        The result tables that have been made.
    summary : IterationSummary
        How the iterations were found.
    basis : Basis
        What savings are stated of.
    """

    trace: Trace
    launches: LaunchTimes
    everything: Trace
    every_call: Table
    window: Window
    measured: DeviceTime
    explained: IdleTime
    chosen: tuple[int, ...]
    waits: Waiting
    tables: Mapping[str, Table]
    summary: IterationSummary
    basis: Basis

    @property
    def devices(self) -> range:
        """The numbers of all devices."""
        return range(len(self.measured.devices))

    @property
    def iterations(self) -> Table:
        """The iterations after warm-up that have a step time."""
        return after_warmup(self.tables["iterations"])

    @property
    def partial(self) -> bool:
        """Whether only some processes or devices were chosen."""
        return self.trace is not self.everything

    @cached_property
    def hosted(self) -> list[dict[int, Pieces]]:
        """For each device, the idle time of the basis in which it waits for a launch.

        By the process that launches, a missing id being one, too. The leading pause is part of
        it; of it and of what else lies before a device has `started`, what comes after the end
        of the launching call is not: nothing that the host does then delays the start.
        """
        rows = _late_rows(self)
        pieces, gaps = self.explained.pieces, self.explained.gaps
        device, call = gaps.device[pieces.gap[rows]], gaps.call[pieces.gap[rows]]
        process = self.every_call["process_id"]
        found: list[dict[int, Pieces]] = [{} for _ in self.devices]
        for each in distinct(process).tolist():
            mine = rows if process.min() == process.max() else rows[process[call] == each]
            of = device if mine is rows else device[process[call] == each]
            for number in self.devices:
                some = mine[of == number]
                if len(some):
                    first = np.searchsorted(pieces.start[some], self.started.get(number, 0))
                    early = self._cold(number, each, some[:first])
                    late = pieces.start[some[first:]], pieces.end[some[first:]]
                    parts = (intersection(part, self.basis.periods) for part in (early, late))
                    start, end = map(np.concatenate, zip(*parts, strict=True))
                    found[number][each] = start, end
        return found

    def _cold(self, device: int, process: int, rows: Rows) -> Pieces:
        """Return the leading pause and some pieces after it, each to the end of its launch call."""
        pieces, gaps = self.explained.pieces, self.explained.gaps
        ends = self.every_call["end_ns"]
        lead = cold(gaps, self.every_call).get((device, process), (0, 0))
        start = np.append(lead[0], pieces.start[rows])
        end = np.append(lead[1], np.minimum(pieces.end[rows], ends[gaps.call[pieces.gap[rows]]]))
        return start[start < end], end[start < end]

    @cached_property
    def started(self) -> dict[int, int]:
        """By device, when it began to compute: what comes before is the start-up."""
        return started(self.everything, self.measured.identity, self.explained.gaps)

    @cached_property
    def late(self) -> bool:
        """Whether the host keeps any chosen device waiting for long enough to be a finding."""
        table = self.tables["idle"]
        counted = table.holds("cause", is_late)
        idle = (
            int(table["total_ns"][counted & (table["device"] == device)].sum())
            for device in self.chosen
        )
        return max(idle) >= LEAST_SHARE * total(self.basis.periods)

    @cached_property
    def own_gaps(self) -> Bools | None:
        """Which pauses an activity of `trace` ends (or stands before); None: all do."""
        if not self.partial:
            return None
        every = (self.everything.kernels, self.everything.copies, self.everything.graphs)
        some = (self.trace.kernels, self.trace.copies, self.trace.graphs)
        masks = [chosen_rows(a, b) for a, b in zip(every, some, strict=True)]
        return np.asarray(np.concatenate(masks)[self.explained.gaps.deciding])


LEAST_SHARE = 0.02
"""A finding saves at least this share of an iteration, or of the window."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found; it is a finding if it can save enough.

    Attributes
    ----------
    code, title, evidence, advice, next : str
        As in the table; ``next`` is the command line behind ``kernelscope``, with ``FILE`` for
        the trace and ``BETWEEN`` for the longest stretch.
    savable : sequence of Pieces, or None
        For each device, the time that could be saved; None where none could.
    stretches : sequence of Pieces
        Where it happens, if not in `savable`.
    """

    code: str
    title: str
    evidence: str
    advice: str
    next: str
    savable: Sequence[Pieces] | None
    stretches: Sequence[Pieces] = ()


def after_warmup(iterations: Table) -> Table:
    """Return the iterations after warm-up that have a step time."""
    counted = [state in ("steady", "outlier") for state in iterations.texts("state")]
    return iterations.take(np.array(counted, dtype=np.bool_))


def basis_of(iterations: Table, window: Window) -> Basis:
    """Return what savings are stated of: the iterations where there are any, else the window."""
    rows = after_warmup(iterations)
    start, end = rows["start_ns"], rows["start_ns"] + rows["period_ns"]
    start, end, _ = clip(start, end, window.start_ns, window.end_ns)
    if len(start) and total((start, end)):
        return Basis((start, end), len(start), "iteration")
    return Basis((np.array([window.start_ns]), np.array([window.end_ns])), 1, "window")


def chosen_rows(everything: Table, chosen: Table) -> Bools:
    """Return which rows of a table of the whole trace belong to what was chosen, shape (n,)."""
    rows = np.ones(len(everything), dtype=np.bool_)
    if chosen is not everything:
        for name in ("process_id", "device_id"):
            rows &= np.isin(everything[name], distinct(chosen[name]))
    return rows


def bound(pieces: Sequence[Pieces], seen: Seen) -> tuple[int, int]:
    """Return the most that pieces cover of an iteration on a chosen device, and on which."""
    covered = {device: overlap(pieces[device], seen.basis.periods) for device in seen.chosen}
    device = max(covered, key=covered.__getitem__)
    return -(-covered[device] // seen.basis.count), device


def within_basis(start: Int64s, end: Int64s, basis: Basis) -> int:
    """Return the sum of what lies of some intervals, which may overlap, in the basis, in ns."""
    if not len(start):
        return 0
    before = covered_before(basis.periods, np.concatenate((start, end)))
    return int(before[len(start) :].sum() - before[: len(start)].sum())


def largest(pieces: Pieces, within: Pieces) -> tuple[int, int] | None:
    """Return start and end of the longest stretch of some pieces within others."""
    start, end = union(*intersection(pieces, within))
    if not len(start):
        return None
    longest = int(np.argmax(end - start))
    return int(start[longest]), int(end[longest])


def idle_where(seen: Seen, wanted: Callable[[str, str], bool]) -> list[Pieces]:
    """Return, for each device, the idle time whose (cause, detail) is wanted.

    Where processes or devices were chosen, only pauses that their activities end.
    """
    explained = seen.explained
    chosen = np.array([wanted(*label) for label in explained.labels], dtype=np.bool_)
    return _by_device(seen, chosen[explained.pieces.label])


def idle_of(seen: Seen, causes: Collection[str]) -> list[Pieces]:
    """Return, for each device, the idle time of some causes."""
    return idle_where(seen, lambda cause, _detail: cause in causes)


def idle_before(seen: Seen, kernels: Bools, causes: Collection[str]) -> list[Pieces]:
    """Return the idle time of some causes in pauses that chosen kernels end.

    Parameters
    ----------
    seen : Seen
        Everything.
    kernels : ndarray of bool, shape (kernels,)
        Which of ``seen.everything.kernels``.
    causes : collection of str
        Causes of idle time.
    """
    explained = seen.explained
    ending = explained.gaps.activity
    ends = (ending >= 0) & (ending < len(kernels))
    ends[ends] = kernels[ending[ends]]
    of_cause = np.array([cause in causes for cause, _ in explained.labels], dtype=np.bool_)
    pieces = explained.pieces
    return _by_device(seen, of_cause[pieces.label] & ends[pieces.gap])


def _by_device(seen: Seen, rows: Bools) -> list[Pieces]:
    pieces, gaps = seen.explained.pieces, seen.explained.gaps
    chosen = np.flatnonzero(rows)
    if seen.own_gaps is not None:
        chosen = chosen[seen.own_gaps[pieces.gap[chosen]]]
    device = gaps.device[pieces.gap[chosen]]
    found = []
    for number in seen.devices:
        mine = chosen[device == number]
        found.append((pieces.start[mine], pieces.end[mine]))
    return found


def _late_rows(seen: Seen) -> Rows:
    """Return which idle pieces wait for a launch of what was chosen, and have a known call."""
    explained = seen.explained
    late = np.array([is_late(cause) for cause, _ in explained.labels], dtype=np.bool_)
    rows = np.flatnonzero(late[explained.pieces.label])
    if seen.own_gaps is not None:
        rows = rows[seen.own_gaps[explained.pieces.gap[rows]]]
    return rows


def late_threads(seen: Seen) -> tuple[Key, ...]:
    """Return every (process, thread) for whose launches a device had to wait."""
    gaps, calls = seen.explained.gaps, seen.every_call
    call = distinct(gaps.call[seen.explained.pieces.gap[_late_rows(seen)]])
    return group(calls["process_id"][call], calls["thread_id"][call]).keys if len(call) else ()


def spared(seen: Seen, start: Int64s, end: Int64s, process: Int64s) -> list[Pieces]:
    """Return, for each device, the idle time that would go if the host did not spend some time.

    Every later launch of the process would come earlier by all that was spared before it, as far
    as there are pauses left that wait for a launch: of the time sₙ spared up to the end of a
    pause of length gₙ, sₙ = min(sₙ₋₁ + gₙ, spent before its end). Time spent while the device
    works counts, too: the host is then ahead when the work ends. What is spent before the basis
    does not count in it, and nothing is taken off for a host so far ahead that the queue is full.

    The pauses of a device's start-up, up to its first kernel, take their part of sₙ and are then
    left out: without what was spent before it, that kernel would come earlier, and with it all
    that follows, so that the pauses between them stay what they are.

    Parameters
    ----------
    seen : Seen
        Everything.
    start, end, process : ndarray of int64, shape (n,)
        When any thread of which process spent time that it could spare, in any order; overlaps
        of a process count once.

    Returns
    -------
    list of Pieces
        Parts of ``seen.hosted``, beginning where the pauses do.
    """
    found = []
    spent: dict[int, Pieces] = {}
    for device, late in enumerate(seen.hosted):
        parts = []
        for each, (begin, until) in late.items():
            if each not in spent:
                mine = process == each
                spent[each] = intersection(union(start[mine], end[mine]), seen.basis.periods)
            if len(begin) and len(spent[each][0]):
                waited = np.cumsum(until - begin)
                reach = np.minimum.accumulate(covered_before(spent[each], until) - waited)
                saved = np.diff(waited + np.minimum(reach, 0), prepend=0)
                kept = (saved > 0) & (begin >= seen.started.get(device, 0))
                parts.append((begin[kept], (begin + saved)[kept]))
        found.append(unite(*parts))
    return found


def ran(seen: Seen, table: Table, rows: Bools) -> list[Pieces]:
    """Return, for each device, when chosen rows of kernels or copies ran inside the window."""
    chosen = np.flatnonzero(rows)
    process, device, start, end = (
        table[name][chosen] for name in ("process_id", "device_id", "start_ns", "end_ns")
    )
    parts: list[list[Pieces]] = [[] for _ in seen.devices]
    groups = group(process, device)
    for key, mine in zip(groups.keys, groups.rows(), strict=True):
        number = seen.measured.identity.device_of(lane_of(key))
        if number is not None:
            window = seen.window.start_ns, seen.window.end_ns
            parts[number].append(union(*clip(start[mine], end[mine], *window)[:2]))
    return [unite(*part) for part in parts]
