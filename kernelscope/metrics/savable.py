"""Which stretches of a device's time could mending something save at most?

Every rule answers with pieces of time per device, so that one mechanism bounds the saving per
iteration: the pieces' time inside the periods of the iterations after warm-up, over their number;
of several devices the one with most counts. A bound says what vanishes if the cause vanishes and
nothing takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import lane_of, lanes_of
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.idle import IdleTime
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import (
    NO_PIECES,
    Pieces,
    clip,
    intersection,
    overlap,
    total,
    union,
)
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.waiting import Waiting
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Everything that the rules look at.

    Attributes
    ----------
    trace : Trace
        The chosen processes and devices.
    launches : LaunchTimes
        Which call launched what in it.
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


def bound(pieces: Sequence[Pieces], seen: Seen) -> tuple[int, int]:
    """Return the most that pieces cover of an iteration on a chosen device, and on which."""
    covered = {device: overlap(pieces[device], seen.basis.periods) for device in seen.chosen}
    device = max(covered, key=covered.__getitem__)
    return -(-covered[device] // seen.basis.count), device


def largest(pieces: Pieces, within: Pieces) -> tuple[int, int] | None:
    """Return start and end of the longest stretch of some pieces within others."""
    start, end = intersection(pieces, within)
    if not len(start):
        return None
    longest = int(np.argmax(end - start))
    return int(start[longest]), int(end[longest])


def idle_where(seen: Seen, wanted: Callable[[str, str], bool]) -> list[Pieces]:
    """Return, for each device, the idle time whose (cause, detail) is wanted."""
    explained = seen.explained
    chosen = np.array([wanted(*label) for label in explained.labels], dtype=np.bool_)
    return _by_device(seen, chosen[explained.pieces.label])


def idle_of(seen: Seen, causes: Collection[str]) -> list[Pieces]:
    """Return, for each device, the idle time of some causes."""
    return idle_where(seen, lambda cause, _detail: cause in causes)


def idle_before(seen: Seen, kernels: Bools, causes: Collection[str]) -> list[Pieces]:
    """Return the idle time of some causes in pauses that chosen kernels end, shape (kernels,)."""
    explained = seen.explained
    ending = explained.gaps.activity
    ends = (ending >= 0) & (ending < len(kernels))
    ends[ends] = kernels[ending[ends]]
    of_cause = np.array([cause in causes for cause, _ in explained.labels], dtype=np.bool_)
    pieces = explained.pieces
    return _by_device(seen, of_cause[pieces.label] & ends[pieces.gap])


def _by_device(seen: Seen, rows: Bools) -> list[Pieces]:
    pieces = seen.explained.pieces
    chosen = np.flatnonzero(rows)
    device = seen.explained.gaps.device[pieces.gap[chosen]]
    found = []
    for number in seen.devices:
        mine = chosen[device == number]
        found.append((pieces.start[mine], pieces.end[mine]))
    return found


def idle_after_waits(seen: Seen, waits: Bools) -> list[Pieces]:
    """Return the idle time that the host could have avoided by not waiting.

    A device runs dry while the host waits, and stands still until the host has launched again.
    Had the host not waited, it would have been ahead by as much as it had waited before the pause
    began: so much of the host's share of the pause can be saved, and no more.

    Parameters
    ----------
    seen : Seen
        Everything.
    waits : ndarray of bool, shape (w,)
        Which of ``seen.waits`` could be avoided.
    """
    began, ended = union(seen.waits.start[waits], seen.waits.end[waits])
    gaps, pieces = seen.explained.gaps, seen.explained.pieces
    if not len(began) or not len(gaps):
        return [NO_PIECES for _ in seen.devices]
    before = np.searchsorted(began, gaps.start, side="left") - 1
    dry = (before >= 0) & (ended[before] >= gaps.start)
    host = np.array([cause.startswith(HOST) for cause, _ in seen.explained.labels], dtype=np.bool_)
    until = gaps.start.copy()
    mine = host[pieces.label]
    np.maximum.at(until, pieces.gap[mine], pieces.end[mine])
    until = np.minimum(until, gaps.start + (gaps.start - began[before]))
    dry &= until > gaps.start
    found = []
    for number in seen.devices:
        rows = np.flatnonzero(dry & (gaps.device == number))
        found.append((gaps.start[rows], until[rows]))
    return found


def ran(seen: Seen, table: Table, rows: Bools) -> list[Pieces]:
    """Return, for each device, when chosen rows of kernels or copies ran."""
    chosen = table.take(rows)
    parts: list[list[npt.NDArray[np.intp]]] = [[] for _ in seen.devices]
    groups = lanes_of(chosen)
    every = np.arange(len(chosen))
    for key, mine in zip(groups.keys, groups.rows(), strict=True):
        device = seen.measured.identity.device_of(lane_of(key))
        if device is not None:
            parts[device].append(every[mine])
    return [_union_of(chosen, part, seen.window) for part in parts]


def _union_of(table: Table, parts: list[npt.NDArray[np.intp]], window: Window) -> Pieces:
    rows = np.concatenate([np.empty(0, dtype=np.intp), *parts])
    start, end, _ = clip(
        table["start_ns"][rows], table["end_ns"][rows], window.start_ns, window.end_ns
    )
    return union(start, end)
