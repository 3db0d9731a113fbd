"""When a device waits for a launch: the idle gaps that end with work which was launched too late.

The activities of a device fall into *pieces*: executions, copies and memsets that overlap or
touch, with idle gaps between. A gap ends with the activity A that starts first (ties: stream,
then row), launched by call L. The device *waits for the launch* in that gap where L had not
returned 10 µs before the gap began: the host was elsewhere, then in L, then the launch was on its
way (the idle causes host, in call, and launch latency). It does not where

- L had returned 10 µs or more before the gap began: A was queued, and something else held it up;
- A is not the first execution of L: a later node of a graph;
- the capture holds no L (the far side of a peer copy has none either), or A starts more than
  1 µs before L did: the clocks disagree.

Time inside a row of ``overheads`` of A's process is the profiler's, and no waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import Identity, lane_of, lanes_of, on_device
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.intervals import (
    NO_PIECES,
    Int64s,
    Pieces,
    covered_before,
    gaps,
    no_times,
    ordered,
    subtract,
    union,
    unite,
)
from kernelscope.metrics.launch_calls import executions_by_call, first_starts, unclear
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.window import whole
from kernelscope.trace import Array, Table, Trace, distinct, is_missing

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

LATENCY_NS = 10_000
"""A call that returned at least this long before a gap did not cause it."""


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """How long one physical device waited for the launch of each piece of its activity.

    Attributes
    ----------
    pieces : Pieces
        When anything was on the device, over the whole trace: k of them.
    wait : ndarray of int64, shape (k,)
        Time waited in the gap before each piece, in ns; 0 for the first.
    waiting : Pieces
        That time.
    begun : ndarray of int64, shape (e,)
        When its kernels and whole graphs start, sorted.
    kernel : ndarray of int32, shape (k,)
        The row of the kernel that begins each piece; −1 where something else does.
    """

    pieces: Pieces
    wait: Int64s
    waiting: Pieces
    begun: Int64s
    kernel: Int32s


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Events of one table, with the call that launched each and the device that each is on."""

    table: Table
    call: Int32s
    device: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Beginners:
    """Of each piece, the event that begins it: process, call (−1 for none), kernel row or −1."""

    process: Int64s
    call: Int32s
    kernel: Int32s


def launch_waits(
    trace: Trace, *, launches: LaunchTimes | None = None, measured: DeviceTime | None = None
) -> list[Waits]:
    """How long did each device wait for launches?

    Parameters
    ----------
    trace : Trace
        All processes: what another one does on a device is not idle time.
    launches : LaunchTimes, optional
        The calls of its kernels.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found in it; measured again where
        that is of a part of the trace only.

    Returns
    -------
    list of Waits
        One for each row of ``devices``, over the whole trace.
    """
    everything = whole(trace)
    if measured is None or not (
        measured.window.start_ns <= everything.start_ns
        and everything.end_ns <= measured.window.end_ns
    ):
        measured = measure(trace)
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    first = first_starts(executions_by_call(trace, launches), len(calls))
    work = [
        _Work(table, call, _devices(table, measured.identity))
        for table, call in (
            (trace.kernels, launches.call_of_kernel),
            (trace.copies, launches.call_of_copy),
            (trace.graphs, launches.call_of_graph),
        )
    ]
    return [
        _waits(trace, calls, first, _of_device(work, device), account.busy)
        for device, account in enumerate(measured.devices)
    ]


def launch_limited(trace: Trace, waits: Sequence[Waits]) -> Bools:
    """Which kernels did the device wait for longer than they ran?

    Parameters
    ----------
    trace : Trace
        Its kernels are read.
    waits : sequence of Waits
        What :func:`launch_waits` found in it.

    Returns
    -------
    ndarray of bool, shape (kernels,)
        False for kernels that no idle time precedes.
    """
    limited = np.zeros(len(trace.kernels), dtype=np.bool_)
    duration = trace.kernels["end_ns"] - trace.kernels["start_ns"]
    for each in waits:
        begins = each.kernel >= 0
        rows = each.kernel[begins]
        limited[rows] = each.wait[begins] > duration[rows]
    return limited


def _devices(table: Table, identity: Identity) -> Array:
    """Return the physical device that each event is on; −1 where it occupies none."""
    groups = lanes_of(table)
    numbers = [identity.device_of(lane_of(key)) for key in groups.keys]
    known = np.array([-1 if number is None else number for number in numbers], dtype=np.int32)
    if groups.codes is None:
        device = np.repeat(known, len(table) if len(known) else 0)
    else:
        device = known[groups.codes]
    occupying = on_device(table) if "kind" in table.schema.names else None
    return device if occupying is None else np.where(occupying, device, -1)


def _of_device(work: Sequence[_Work], device: int) -> list[tuple[_Work, Rows]]:
    return [(each, np.flatnonzero(each.device == device)) for each in work]


def _waits(
    trace: Trace, calls: Table, first: Int64s, work: list[tuple[_Work, Rows]], busy: Pieces
) -> Waits:
    who = _beginners(work, busy[0])
    waits = np.zeros(len(busy[0]), dtype=np.bool_)
    known = np.flatnonzero(who.call[1:] >= 0) + 1
    call, begin, gap = who.call[known], busy[0][known], busy[1][known - 1]
    waits[known] = (
        (gap - calls["end_ns"][call] < LATENCY_NS)
        & (first[call] >= begin)  # NEVER, the latest of times, for a copy that is no graph node
        & ~unclear(begin, calls["start_ns"][call])
    )
    idle = gaps(busy)
    waiting = _without_profiler(trace.overheads, idle, waits[1:], who.process[1:])
    wait = np.zeros(len(busy[0]), dtype=np.int64)
    wait[1:] = covered_before(waiting, idle[1]) - covered_before(waiting, idle[0])
    begun = [each.table["start_ns"][rows] for each, rows in work if each.table is not trace.copies]
    return Waits(busy, wait, waiting, ordered(np.concatenate([no_times(), *begun])), who.kernel)


def _beginners(work: list[tuple[_Work, Rows]], starts: Int64s) -> _Beginners:
    """Find the event that begins each piece: of several, by stream, then table, then row."""
    none = np.empty(0, dtype=np.int64)
    places, events = [none], [none]
    tables: list[Int64s] = [none]
    for number, (each, rows) in enumerate(work):
        start = each.table["start_ns"][rows]
        place = np.searchsorted(starts, start)
        hit = np.flatnonzero(starts[np.minimum(place, len(starts) - 1)] == start)
        places.append(place[hit])
        events.append(rows[hit])
        tables.append(np.full(len(hit), number))
    place, event, table = (np.concatenate(part) for part in (places, events, tables))
    shared = np.bincount(place, minlength=len(starts))[place] > 1
    if shared.any():
        tied = np.flatnonzero(shared)
        stream = np.zeros(len(place), dtype=np.int64)
        for number, (each, _) in enumerate(work):
            mine = table == number
            stream[mine] = each.table["stream_id"][event[mine]]
        order = tied[np.lexsort((event[tied], table[tied], stream[tied], place[tied]))]
        lead = np.append(True, place[order][1:] != place[order][:-1])
        keep = np.concatenate((np.flatnonzero(~shared), order[lead]))
        place, event, table = place[keep], event[keep], table[keep]
    process, call = np.zeros(len(starts), np.int64), np.full(len(starts), -1, np.int32)
    kernel = call.copy()
    for number, (each, _) in enumerate(work):
        mine = table == number
        at, rows = place[mine], event[mine]
        process[at], call[at] = each.table["process_id"][rows], each.call[rows]
        if number == 0:
            kernel[at] = rows
    return _Beginners(process, call, kernel)


def _without_profiler(overheads: Table, idle: Pieces, waits: Bools, process: Int64s) -> Pieces:
    """Return the gaps that wait, less what the profiler did for the process that ended them."""
    start, end = idle[0][waits], idle[1][waits]
    if not len(overheads) or not len(start):
        return start, end
    process = process[waits]
    mine = overheads["process_id"]
    found = [NO_PIECES]
    for each in distinct(process).tolist():
        here = process == each
        own = (mine == each) | is_missing(mine)
        cost = union(overheads["start_ns"][own], overheads["end_ns"][own])
        found.append(subtract((start[here], end[here]), cost))
    return unite(*found)
