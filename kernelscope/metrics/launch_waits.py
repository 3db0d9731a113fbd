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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import Identity, lane_of, lanes_of, on_device
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.idle_gaps import LEADING, TRAILING, IdleGaps, column_of
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
from kernelscope.metrics.window import covers, whole
from kernelscope.trace import Array, Table, Trace, distinct, is_missing

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

LATENCY_NS = 10_000
"""A call that returned at least this long before a gap did not cause it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    begun : callable
        Returns when its kernels and whole graphs start, sorted, shape (e,).
    kernel : ndarray of int32, shape (k,)
        The row of the kernel that begins each piece; −1 where something else does.
    """

    pieces: Pieces
    wait: Int64s
    waiting: Pieces
    begun: Callable[[], Int64s]
    kernel: Int32s


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Work:
    """Events of one table, with the call that launched each and the device that each is on."""

    table: Table
    call: Int32s
    device: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Beginners:
    """Of each piece, the event that begins it: process, call (−1 for none), kernel row or −1."""

    process: Int64s
    call: Int32s
    kernel: Int32s


def launch_waits(
    trace: Trace,
    *,
    launches: LaunchTimes | None = None,
    measured: DeviceTime | None = None,
    pauses: IdleGaps | None = None,
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
    pauses : IdleGaps, optional
        What :func:`kernelscope.metrics.idle_gaps.idle_gaps` found in it: the activity that ends
        each is the one that begins the next piece.

    Returns
    -------
    list of Waits
        One for each row of ``devices``, over the whole trace.
    """
    if measured is None or not covers(measured.window, whole(trace)):
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
    if pauses is None or _of_peers(trace.copies):
        begin = [
            _beginners(_of_device(work, device), account.busy[0])
            for device, account in enumerate(measured.devices)
        ]
    else:
        begin = _that_end(trace, pauses, len(measured.devices))
    return [
        Waits(
            account.busy,
            *_waits(trace, calls, first, who, account.busy),
            partial(_begun, trace, work, device),
            who.kernel,
        )
        for device, (who, account) in enumerate(zip(begin, measured.devices, strict=True))
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


def _begun(trace: Trace, work: Sequence[_Work], device: int) -> Int64s:
    """Return when the kernels and whole graphs of a device start, sorted."""
    begun = [
        each.table["start_ns"][rows]
        for each, rows in _of_device(work, device)
        if each.table is not trace.copies
    ]
    return ordered(np.concatenate([no_times(), *begun]))


def _of_peers(copies: Table) -> bool:
    """Return whether any copy occupies a device beside the one that issued it.

    It ends pauses of either, but begins no piece that waits for a launch on the far one.
    """
    return any(
        bool((~is_missing(copies[name]) & (copies[name] != copies["device_id"])).any())
        for name in ("src_device_id", "dst_device_id")
    )


def _that_end(trace: Trace, pauses: IdleGaps, devices: int) -> list[_Beginners]:
    """Return what begins the pieces of each device: what ends the pauses between them.

    Nothing is said of the first piece, which no pause precedes.
    """
    found = []
    bounds = np.searchsorted(pauses.device, np.arange(devices + 1)).tolist()
    for low, high in pairwise(bounds):
        some = slice(
            low + bool(low < high and pauses.place[low] == LEADING),
            high - bool(low < high and pauses.place[high - 1] == TRAILING),
        )
        activity = pauses.deciding[some]
        process = column_of(trace, "process_id", activity) if len(trace.overheads) else no_times()
        kernel = np.where(activity < len(trace.kernels), activity, np.int32(-1))
        call = np.append(np.int32(-1), pauses.call[some])
        found.append(_Beginners(np.append(0, process), call, np.append(np.int32(-1), kernel)))
    return found


def _waits(
    trace: Trace, calls: Table, first: Int64s, who: _Beginners, busy: Pieces
) -> tuple[Int64s, Pieces]:
    """Return how long each piece was waited for, and when."""
    idle = gaps(busy)
    begin, call = idle[1], who.call[1:]
    waits = np.zeros(len(begin), dtype=np.bool_)
    if len(calls):
        waits = idle[0] - calls["end_ns"][call] < LATENCY_NS  # −1 reads any
        waits &= call >= 0
        # NEVER, the latest of times, for a copy that is no graph node
        waits &= first[call] >= begin
        waits &= ~unclear(begin, calls["start_ns"][call])
    waiting = _without_profiler(trace.overheads, idle, waits, who.process[1:])
    wait = np.zeros(len(busy[0]), dtype=np.int64)
    if len(trace.overheads):
        wait[1:] = covered_before(waiting, idle[1]) - covered_before(waiting, idle[0])
    else:
        np.subtract(idle[1], idle[0], out=wait[1:], where=waits)
    return wait, waiting


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
