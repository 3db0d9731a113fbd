"""Why does each GPU stand still? Idle time by cause, to the last nanosecond, and its spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import results
from kernelscope.metrics.device_identity import Identity, identify, integers, texts
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.idle_causes import causes, new_labels
from kernelscope.metrics.idle_evidence import Looked
from kernelscope.metrics.idle_gaps import ACTIVITIES, INTERIOR, IdleGaps, idle_gaps
from kernelscope.metrics.idle_results import (
    GAP_SPECTRUM,
    IDLE,
    IDLE_BY_ITERATION,
    IDLE_PIECES,
)
from kernelscope.metrics.idle_segments import Segments
from kernelscope.metrics.intervals import clip, latest, sums_by
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.thread_states import Host
from kernelscope.metrics.waiting import Waiting, waiting
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Array, Categorical, Table, Trace, distinct, missing_value

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_MISSING = missing_value(np.dtype(np.int64))

SPECTRUM_NS: tuple[int, ...] = (
    *(digit * 10**power for power in range(3, 10) for digit in (1, 2, 5)),
    10**10,
)
"""Lengths by which pauses are sorted: 1, 2, 5, 10 µs, … 10 s; longer ones are the last row."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IdleTime:
    """All idle time of all devices, explained once for all tables that show it.

    Attributes
    ----------
    gaps : IdleGaps
        Every pause of the whole trace, leading and trailing ones included.
    pieces : Segments
        The pauses cut into stretches of one cause each, by pause, then time.
    labels : tuple of (cause, detail)
        What the codes ``pieces.label`` mean.
    devices : int
        How many physical devices there are.
    rows : tuple of int
        How many rows each table of ``idle_gaps.ACTIVITIES`` has.
    """

    gaps: IdleGaps
    pieces: Segments
    labels: tuple[tuple[str, str], ...]
    devices: int
    rows: tuple[int, ...]


def explain(  # noqa: PLR0913 - what other metrics found, where it is at hand
    trace: Trace,
    window: Window | None = None,
    *,
    identity: Identity | None = None,
    launches: LaunchTimes | None = None,
    waits: Waiting | None = None,
    communication: Sequence[str] = (),
) -> IdleTime:
    """Why did each device stand still, at each moment of the whole trace?

    Causes and thresholds are those of the whole trace, whatever part of it is shown; the rules
    stand in :mod:`kernelscope.metrics.idle_causes`. Of a serialised capture nothing is explained:
    the profiler made its pauses.

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    window : Window, optional
        What is to be shown: where it reaches beyond the trace, that is explained, too.
    identity, launches, waits
        Results of ``identify``, ``launch_times`` and ``waiting`` of the same trace.
    communication : sequence of str
        Regular expressions of further communication kernels.
    """
    if trace.capture.serialised is not None:
        nothing = {name: Table.empty(trace.tables[name].schema) for name in ACTIVITIES}
        trace, identity, launches, waits = trace.with_tables(**nothing), None, None, None
    everything = whole(trace)
    shown = window or everything
    within = Window(
        min(everything.start_ns, shown.start_ns),
        max(everything.end_ns, shown.end_ns),
        everything.chosen_by,
    )
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    waits = waits or waiting(trace, launches)
    identity = identity or identify(trace)
    gaps = idle_gaps(trace, launches, within, identity)
    labels = new_labels()
    looked = Looked(trace, identity, calls, launches, communication)
    pieces = causes(looked, gaps, Host(trace, calls, waits, labels))
    rows = tuple(len(trace.tables[name]) for name in ACTIVITIES)
    devices = 0 if trace.capture.serialised is not None else len(identity.physical_ids)
    return IdleTime(gaps, pieces, tuple(labels), devices, rows)


def idle(explained: IdleTime, window: Window | None = None) -> Table:
    """Why does each GPU stand still?

    Parameters
    ----------
    explained : IdleTime
        What :func:`explain` found.
    window : Window, optional
        Where to look; by default all of it.

    Returns
    -------
    Table
        Under ``idle_results.IDLE``: a row per device and (cause, detail), longest total first.
        The totals of a device add up to its idle time exactly.
    """
    pieces, length = _inside(explained, window)
    device = explained.gaps.device[pieces.gap]
    count = len(explained.labels)
    code = device * np.int32(count)
    code += pieces.label
    size = count * (int(device.max(initial=-1)) + 1)
    total = sums_by(code, length, size)
    largest = np.zeros(size, dtype=np.int64)
    np.maximum.at(largest, code, length)
    gaps = _distinct_gaps(code, pieces.gap, size)
    rows = np.flatnonzero(total)
    idle_of = sums_by(rows // count, total[rows], explained.devices)
    table = Table.make(
        IDLE,
        {
            "device": rows // count,
            **_named(explained, rows % count),
            "total_ns": total[rows],
            "gaps": gaps[rows],
            "share": total[rows] / idle_of[rows // count],
            "largest_ns": largest[rows],
        },
    )
    return table.take(np.lexsort((-total[rows], rows // count)))


def _inside(explained: IdleTime, window: Window | None) -> tuple[Segments, Int64s]:
    """Return the pieces cut to a window, and their lengths."""
    pieces = explained.pieces
    if window is not None:
        start, end, kept = clip(pieces.start, pieces.end, window.start_ns, window.end_ns)
        if kept is not None:
            pieces = Segments(start, end, pieces.label[kept], pieces.gap[kept])
    return pieces, pieces.end - pieces.start


def _distinct_gaps(code: Int32s, gap: Int32s, size: int) -> Int64s:
    """Return in how many pauses each code occurs; most pauses have but one piece."""
    several = np.zeros(len(gap), dtype=np.bool_)
    np.equal(gap[1:], gap[:-1], out=several[1:])
    several[:-1] |= several[1:]
    rows = np.flatnonzero(several)
    counts = np.bincount(code, minlength=size) - np.bincount(code[rows], minlength=size)
    both = distinct(gap[rows].astype(np.int64) * size + code[rows])
    return np.asarray(counts + np.bincount(both % size, minlength=size)).astype(np.int64)


def _named(explained: IdleTime, label: npt.NDArray[Any]) -> dict[str, Categorical]:
    """Return cause and detail of some labels as columns."""
    columns = {}
    for part, name in enumerate(("cause", "detail")):
        texts = [pair[part] for pair in explained.labels]
        number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        of_label = np.array([number[text] for text in texts], dtype=np.int32)
        columns[name] = Categorical(of_label[label], tuple(number))
    return columns


def gap_spectrum(explained: IdleTime, window: Window | None = None) -> Table:
    """Are a few long pauses to blame, or a million short ones?

    Parameters
    ----------
    explained : IdleTime
        What :func:`explain` found.
    window : Window, optional
        Where to look; by default all of it.

    Returns
    -------
    Table
        Under ``idle_results.GAP_SPECTRUM``: for each device a row per length of
        `SPECTRUM_NS`, and one for all beyond. The time before the first and after the last
        activity counts as a pause of its length, and a pause that the window cuts as one of
        what is left of it, so that a device's rows add up to its idle time.
    """
    gaps = explained.gaps
    start, end, kept = gaps.start, gaps.end, None
    if window is not None:
        start, end, kept = clip(gaps.start, gaps.end, window.start_ns, window.end_ns)
    device, place = (each if kept is None else each[kept] for each in (gaps.device, gaps.place))
    length = end - start
    edges = len(SPECTRUM_NS) + 1
    columns: dict[str, list[Int64s]] = {name: [] for name in ("gaps", "total_ns", "edge_ns")}
    bounds = np.searchsorted(device, np.arange(explained.devices + 1))
    for low, high in pairwise(bounds.tolist()):
        count, total = _by_length(length[low:high])
        outer = length[low:high][place[low:high] != INTERIOR]
        columns["gaps"].append(count)
        columns["total_ns"].append(total)
        columns["edge_ns"].append(_by_length(outer)[1])
    none = np.empty(0, dtype=np.int64)
    table = {name: np.concatenate([none, *parts]) for name, parts in columns.items()}
    table["device"] = np.repeat(np.arange(explained.devices, dtype=np.int64), edges)
    table["up_to_ns"] = np.tile(np.array([*SPECTRUM_NS, _MISSING]), explained.devices)
    parts = [np.cumsum(each) for each in columns["total_ns"]]
    table["cumulative_ns"] = np.concatenate([none, *parts])
    return Table.make(GAP_SPECTRUM, table)


def _by_length(lengths: Int64s) -> tuple[Int64s, Int64s]:
    """Return number and sum of the lengths up to each edge, and beyond the last."""
    ordered = np.sort(lengths)
    before = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum(ordered, out=before[1:])
    last = np.append(np.searchsorted(ordered, SPECTRUM_NS, side="right"), len(ordered))
    return np.diff(last, prepend=0), np.diff(before[last], prepend=0)


def idle_pieces(explained: IdleTime, window: Window | None = None) -> Table:
    """Why did a GPU stand still at each moment?

    Parameters
    ----------
    explained : IdleTime
        What :func:`explain` found.
    window : Window, optional
        Where to look; pieces are cut to it. By default all of it.

    Returns
    -------
    Table
        Under ``idle_results.IDLE_PIECES``: by device, then time; neighbours of one pause differ
        in cause or detail.
    """
    pieces, _ = _inside(explained, window)
    activity = explained.gaps.activity[pieces.gap].astype(np.int64)
    bounds = np.cumsum((0, *explained.rows))
    which = np.where(activity < 0, -1, np.searchsorted(bounds, activity, side="right") - 1)
    return Table.make(
        IDLE_PIECES,
        {
            "device": explained.gaps.device[pieces.gap],
            "start_ns": pieces.start,
            "end_ns": pieces.end,
            **_named(explained, pieces.label),
            "gap": pieces.gap,
            "ending_table": Categorical(which.astype(np.int32), ACTIVITIES),
            "ending_row": np.where(activity < 0, _MISSING, activity - bounds[which]),
        },
    )


def idle_by_iteration(explained: IdleTime, starts: Int64s, ends: Int64s) -> Table:
    """Why did each GPU stand still in each iteration?

    Parameters
    ----------
    explained : IdleTime
        What :func:`explain` found.
    starts, ends : ndarray of int64, shape (m,)
        The iterations' periods: ascending, and none begins before the one before has ended.

    Returns
    -------
    Table
        Under ``idle_results.IDLE_BY_ITERATION``: by iteration and device, longest first. Those
        of one iteration and device add up to the device's idle time within the period.
    """
    gaps = np.searchsorted(explained.gaps.device, np.arange(explained.devices + 1))
    bounds = np.searchsorted(explained.pieces.gap, gaps).tolist()
    none = np.empty(0, dtype=np.int64)
    parts: list[tuple[Array, ...]] = [(none, none, none, none)]
    for one, (low, high) in enumerate(pairwise(bounds)):
        each = _in_periods(explained.pieces, slice(low, high), starts, ends)
        parts.append((np.broadcast_to(np.int32(one), each[0].shape), *each))
    of, number, label, total = (
        np.concatenate(each) for each in zip(*parts[len(parts) > 1 :], strict=True)
    )
    order = np.lexsort((label, -total, of, number))
    order = order[total[order] > 0]
    return Table.make(
        IDLE_BY_ITERATION,
        {
            "iteration": number[order],
            "device": of[order],
            **_named(explained, label[order]),
            "total_ns": total[order],
        },
    )


def _in_periods(
    pieces: Segments, some: slice, starts: Int64s, ends: Int64s
) -> tuple[Int32s, Int32s, Int64s]:
    """Return (period, label, time in it) of one device, whose pieces follow one another.

    A period and label come once, with all time of theirs. Behind the pieces that begin in each
    period stand those that began before it and reach into it, at most one a period.
    """
    start, end, label = pieces.start[some], pieces.end[some], pieces.label[some]
    if not len(starts) or not len(start):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64)
    low = int(np.searchsorted(start, starts[0]))
    place = np.minimum(np.searchsorted(end, starts, side="right"), len(end) - 1)
    into = np.flatnonzero((start[place] < starts) & (end[place] > starts))
    place = place[into]
    period = latest(starts, start[low:])
    length = np.minimum(end[low:], ends[period])
    length -= start[low:]
    np.maximum(length, 0, out=length)  # what begins between two periods
    period = np.concatenate((period, into.astype(np.int32)))
    length = np.concatenate((length, np.minimum(end[place], ends[into]) - starts[into]))
    codes, (number, of) = grouped((period, np.concatenate((label[low:], label[place]))))
    return number, of, sums_by(codes, length, len(number))


def checks(
    explained: IdleTime,
    measured: DeviceTime,
    *,
    causes: Table | None = None,
    spectrum: Table | None = None,
) -> Table:
    """Do the causes, and the lengths of pauses, add up to each device's idle time?

    Parameters
    ----------
    explained : IdleTime
        What :func:`explain` found.
    measured : DeviceTime
        What :func:`kernelscope.metrics.device_time.measure` found of the same trace, in the
        window that is shown.
    causes, spectrum : Table, optional
        What :func:`idle` and :func:`gap_spectrum` made of it for that window.
    """
    if measured.serialised:
        return Table.empty(results.CHECKS)
    found: list[tuple[str, int, int]] = []
    tables = {
        "idle causes": idle(explained, measured.window) if causes is None else causes,
        "gap spectrum": (
            gap_spectrum(explained, measured.window) if spectrum is None else spectrum
        ),
    }
    for number, account in enumerate(measured.devices[: explained.devices]):
        for name, table in tables.items():
            total = int(table["total_ns"][table["device"] == number].sum())
            found.append((f"device {number}: {name} = idle", account.partition[-1], total))
    return Table.make(
        results.CHECKS,
        {
            "name": texts(row[0] for row in found),
            "expected": integers(row[1] for row in found),
            "actual": integers(row[2] for row in found),
            "ok": np.array([row[1] == row[2] for row in found], dtype=np.bool_),
        },
    )
