"""When did each device stand still, and which activity ended the pause, launched by which call?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import (
    Identity,
    Lane,
    identify,
    lane_of,
    lanes_of,
    on_device,
)
from kernelscope.metrics.grouping import Key, Rows, group
from kernelscope.metrics.intervals import ascending, sorting
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.runs import expanded
from kernelscope.metrics.window import Window
from kernelscope.trace import Array, Table, Trace, is_missing

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ACTIVITIES: tuple[str, ...] = ("kernels", "copies", "graphs")
"""Tables of what can occupy a device, in the order in which their rows are numbered."""

NOTHING = -1

LEADING, INTERIOR, TRAILING = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IdleGaps:
    """Every pause of every device, in order of device, then time.

    Attributes
    ----------
    device : ndarray of int32, shape (g,)
        Number of the physical device.
    start, end : ndarray of int64, shape (g,)
        ``end > start``.
    place : ndarray of int8, shape (g,)
        `LEADING`, `INTERIOR` or `TRAILING`.
    activity : ndarray of int32, shape (g,)
        What ended the pause: a row of the kernels, then copies, then graphs; −1 behind the
        last.
    deciding : ndarray of int32, shape (g,)
        The activity whose launching thread decides: `activity`; behind the last one, the one
        that ended last.
    call : ndarray of int32, shape (g,)
        The call that launched `deciding`: its row in the calls without wrappers, −1 for none.
    """

    device: Int32s
    start: Int64s
    end: Int64s
    place: npt.NDArray[np.int8]
    activity: Int32s
    deciding: Int32s
    call: Int32s

    def __len__(self) -> int:
        return len(self.start)


def idle_gaps(
    trace: Trace,
    launches: LaunchTimes,
    within: Window,
    identity: Identity | None = None,
) -> IdleGaps:
    """When did each device stand still, and which activity ended the pause?

    Parameters
    ----------
    trace : Trace
        The whole trace.
    launches : LaunchTimes
        Of the same trace.
    within : Window
        At least the whole trace: what lies before the first and after the last activity in it
        is idle, too.
    identity : Identity, optional
        Of the same trace.

    Notes
    -----
    The pause begins with the latest end of any activity so far and ends with the start of the
    next one. An activity of no length ends a pause and begins another. Of activities that start
    together the one counts that stands first by stream, then table and row. A serialised capture
    has no pauses of the program's.
    """
    identity = identity or identify(trace)
    used = [] if trace.capture.serialised is not None else _activities(trace, identity)
    parts = [_of_device(each, trace, within) for each in used]
    start, end = (_joined([getattr(each, n) for each in parts], np.int64) for n in ("start", "end"))
    place = _joined([each.place for each in parts], np.int8)
    deciding = _joined([each.deciding for each in parts], np.int32)
    device = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each.start) for each in parts])
    activity = np.where(place == TRAILING, np.int32(NOTHING), deciding)
    call = calls_of(launches, deciding)
    return IdleGaps(device, start, end, place, activity, deciding, call)


def _joined(parts: list[Array], dtype: type[Any]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=dtype), *parts])


def calls_of(launches: LaunchTimes, activity: Int32s) -> Int32s:
    """Return the call that launched each of some activities, −1 for none."""
    kernels = len(launches.call_of_kernel)
    call = np.full(len(activity), -1, dtype=np.int32)
    if kernels:
        call = launches.call_of_kernel[np.minimum(activity, kernels - 1)]
    others = np.flatnonzero(activity >= kernels)
    if len(others):  # few activities are no kernels
        rows = np.concatenate((launches.call_of_copy, launches.call_of_graph))
        call[others] = rows[activity[others] - kernels]
    return call


def column_of(trace: Trace, name: str, activity: Array) -> Int64s:
    """Return a column that kernels, copies and graphs share, of some activities, as int64."""
    values = np.empty(len(activity), dtype=np.int64)
    first = 0
    for each in ACTIVITIES:
        table: Table = getattr(trace, each)
        mine = (activity >= first) & (activity < first + len(table))
        if mine.any():
            stored = table[name][activity[mine] - first]
            wide = stored.astype(np.int64)
            wide[is_missing(stored)] = np.iinfo(np.int64).min
            values[mine] = wide
        first += len(table)
    return values


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Occupied:
    """The activities of one device, as numbers, with starts and ends; by start, then number."""

    activity: Int32s
    start: Int64s
    end: Int64s


def _activities(trace: Trace, identity: Identity) -> list[_Occupied]:
    """Return what occupied each device."""
    rows: list[list[tuple[int, Table, Rows]]] = [[] for _ in identity.physical_ids]
    first = 0
    for name in ACTIVITIES:
        table: Table = getattr(trace, name)
        chosen = on_device(table) if name == "copies" else None
        kept = None if chosen is None else np.flatnonzero(chosen)
        part = table if kept is None else table.take(kept)
        groups = lanes_of(part)
        for key, places in zip(groups.keys, groups.rows(), strict=True):
            device = identity.index[identity.lanes.index(lane_of(key))]
            rows[device].append((first, table, places if kept is None else kept[places]))
        if name == "copies":
            for device, marked in _marked(part, identity):
                rows[device].append((first, table, marked if kept is None else kept[marked]))
        first += len(table)
    return [_occupied(parts) for parts in rows]


def _marked(copies: Table, identity: Identity) -> list[tuple[int, npt.NDArray[np.intp]]]:
    """Return the copies that other devices issued and that occupy each device as well."""
    found = []
    for column in ("src_device_id", "dst_device_id"):
        named = copies[column]
        away = np.flatnonzero(~is_missing(named) & (named != copies["device_id"]))
        groups = group(*(copies[n][away] for n in ("process_id", "device_id")), named[away])
        for (process, issuer, other), places in zip(groups.keys, groups.rows(), strict=True):
            lanes: list[Lane] = [(process, each) for each in (issuer, other) if each is not None]
            own, device = (identity.device_of(lane) for lane in lanes)
            if device is not None and device != own:
                found.append((device, away[places]))
    return found


def _occupied(parts: list[tuple[int, Table, Rows]]) -> _Occupied:
    pieces = [_part(*part) for part in parts]
    activity = _joined([each.activity for each in pieces], np.int32)
    start = _joined([each.start for each in pieces], np.int64)
    end = _joined([each.end for each in pieces], np.int64)
    del pieces  # as large as the trace
    if not (activity[1:] > activity[:-1]).all():
        order = sorting(activity)
        activity, start, end = activity[order], start[order], end[order]
    if not ascending(start):
        order = sorting(start)
        activity, start, end = activity[order], start[order], end[order]
    return _Occupied(activity, start, end)


def _part(first: int, table: Table, rows: Rows) -> _Occupied:
    number = np.arange(first, first + len(table), dtype=np.int32)
    start, end = (table[name][rows].astype(np.int64, copy=False) for name in ("start_ns", "end_ns"))
    return _Occupied(number[rows], start, end)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Pauses:
    """The pauses of one device."""

    start: Int64s
    end: Int64s
    place: npt.NDArray[np.int8]
    deciding: Int32s


def _of_device(occupied: _Occupied, trace: Trace, within: Window) -> _Pauses:
    activity, start, end = occupied.activity, occupied.start, occupied.end
    reach = np.maximum.accumulate(end)
    after = np.flatnonzero(start[1:] > reach[:-1]) + 1
    pauses = [
        (reach[after - 1], start[after], INTERIOR, _first_of_tied(trace, activity, start, after))
    ]
    first, last = start[:1], reach[-1:]
    if first[0] > within.start_ns:
        begin = np.array([within.start_ns], dtype=np.int64)
        head = _first_of_tied(trace, activity, start, np.zeros(1, dtype=np.intp))
        pauses.insert(0, (begin, first, LEADING, head))
    if last[0] < within.end_ns:
        final = activity[np.argmax(end)][np.newaxis]
        pauses.append((last, np.array([within.end_ns], dtype=np.int64), TRAILING, final))
    begins, ends, places, deciding = zip(*pauses, strict=True)
    place = np.repeat(np.array(places, dtype=np.int8), [len(each) for each in begins])
    return _Pauses(np.concatenate(begins), np.concatenate(ends), place, np.concatenate(deciding))


def _first_of_tied(trace: Trace, activity: Int32s, start: Int64s, places: Array) -> Int32s:
    """Return the activity at each place; of several that start then, the first by stream."""
    chosen = activity[places]
    if not (start[1:] == start[:-1]).any():
        return chosen
    following = np.minimum(places + 1, len(start) - 1)
    tied = np.flatnonzero((following > places) & (start[following] == start[places]))
    if not len(tied):
        return chosen
    low = places[tied]
    which, place = expanded(low, np.searchsorted(start, start[low], side="right"))
    number = activity[place]
    stream = column_of(trace, "stream_id", number)
    order = np.lexsort((number, stream, which))
    first = np.flatnonzero(np.diff(which[order], prepend=-1))
    chosen[tied] = number[order][first]
    return chosen


def by_thread(calls: Table, rows: Array) -> list[tuple[Key, npt.NDArray[np.intp]]]:
    """Return the threads that made some calls, and the places of their calls among them.

    Parameters
    ----------
    calls : Table
        The calls.
    rows : ndarray of int, shape (n,)
        Rows of calls; −1, and calls whose thread was not recorded, are left out.
    """
    places = np.flatnonzero(rows >= 0)
    if not len(places):
        return []
    groups = group(*(calls[name][rows[places]] for name in ("process_id", "thread_id")))
    every = np.arange(len(places))
    return [
        (key, places[every[mine]])
        for key, mine in zip(groups.keys, groups.rows(), strict=True)
        if key[1] is not None
    ]
