"""Did the activity that ended a pause wait for another one? Only evidence counts.

Three kinds, of which the first that holds is named:

``stream wait``
    Between the launch before it into its stream and its own, a call (``cudaStreamWaitEvent``)
    told the stream to wait for an event; the event had last been recorded, before that call, in
    another stream; and what had last been launched into that stream before the record ended at
    most 10 µs before the activity started.
``peer``
    It is a communication kernel, and another one on another device ended at most 10 µs before
    it started; or it is a peer copy, and another one on the device at its other end did.
``migration``
    A migration of unified memory ended the busy time before the pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.device_identity import Identity
from kernelscope.metrics.event_evidence import NEAR_NS, after_event
from kernelscope.metrics.grouping import group
from kernelscope.metrics.idle_gaps import IdleGaps
from kernelscope.metrics.intervals import ordered
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.trace import Table, Trace, distinct

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

MIGRATION = "unified"
"""How the kinds of copies begin that are migrations of unified memory."""

PEER = "PtoP"

KINDS: tuple[str, ...] = ("stream wait", "peer", "migration")
"""What an activity can be shown to have waited for; its place is its code."""

_ENDS_OF_COPY = ("device_id", "src_device_id", "dst_device_id")
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Looked:
    """Where evidence is looked for: the trace, its devices, its calls and what they launched."""

    trace: Trace
    identity: Identity
    calls: Table
    launches: LaunchTimes
    communication: Sequence[str] = ()


def dependencies(looked: Looked, gaps: IdleGaps, asked: Int32s) -> npt.NDArray[np.int8]:
    """Which of some pauses ended when another activity did?

    Parameters
    ----------
    looked : Looked
        Where to look.
    gaps : IdleGaps
        All pauses.
    asked : ndarray of int32, shape (n,)
        Those in question, none of them trailing.

    Returns
    -------
    ndarray of int8, shape (n,)
        Place in `KINDS`; −1 where there is no evidence.
    """
    found = np.full(len(asked), -1, dtype=np.int8)
    if not len(asked):
        return found
    shown = (
        after_event(looked.trace, looked.calls, looked.launches, gaps, asked),
        _after_peer(looked, gaps, asked) | _after_peer_copy(looked, gaps, asked),
        _after_migration(looked, gaps, asked),
    )
    for kind in reversed(range(len(KINDS))):
        found[shown[kind]] = kind
    return found


def _after_migration(looked: Looked, gaps: IdleGaps, asked: Int32s) -> Bools:
    """Return which pauses began when a migration ended."""
    copies = looked.trace.copies
    rows = np.flatnonzero(copies.holds("kind", lambda kind: kind.startswith(MIGRATION)))
    found = np.zeros(len(asked), dtype=np.bool_)
    if not len(rows):
        return found
    device = _device_of(looked, copies, rows)
    for each in distinct(device).tolist():
        mine = gaps.device[asked] == each
        ends = ordered(copies["end_ns"][rows[device == each]])
        found[mine] = member(ends, gaps.start[asked[mine]])
    return found


def _after_peer(looked: Looked, gaps: IdleGaps, asked: Int32s) -> Bools:
    """Return which pauses a communication kernel ended after another on another device."""
    trace, identity = looked.trace, looked.identity
    found = np.zeros(len(asked), dtype=np.bool_)
    if len(identity.physical_ids) < 2:
        return found
    number, device = gaps.activity[asked], gaps.device[asked]
    talks = is_communication(trace.kernels.categories("name"), looked.communication)
    talker = np.append(talks, False)[trace.kernels["name"]]
    talkers = np.flatnonzero(talker)
    where = _device_of(looked, trace.kernels, talkers)
    talking = number < len(talker)
    talking[talking] = talker[number[talking]]
    for each in distinct(device[talking]).tolist():
        ends = ordered(trace.kernels["end_ns"][talkers[where != each]])
        mine = talking & (device == each)
        found[mine] = just_before(ends, gaps.end[asked[mine]])
    return found


def _after_peer_copy(looked: Looked, gaps: IdleGaps, asked: Int32s) -> Bools:
    copies, found = looked.trace.copies, np.zeros(len(asked), dtype=np.bool_)
    kinds = copies.categories("kind")
    if PEER not in kinds:
        return found
    rows = np.flatnonzero(copies["kind"] == kinds.index(PEER))
    involved = [_device_of(looked, copies, rows, name) for name in _ENDS_OF_COPY]
    lasting = copies["end_ns"][rows] > copies["start_ns"][rows]
    number = gaps.activity[asked].astype(np.int64) - len(looked.trace.kernels)
    mine = np.flatnonzero(member(rows, number))
    place, own = np.searchsorted(rows, number[mine]), gaps.device[asked[mine]]
    for other in involved:
        away = other[place]
        for one, two in group(own, away).keys:
            if one is None or two is None or two in (one, _UNKNOWN):
                continue
            there = np.logical_or.reduce([each == two for each in involved]) & lasting
            chosen = mine[(own == one) & (away == two)]
            ends = ordered(copies["end_ns"][rows[there]])
            found[chosen] |= just_before(ends, gaps.end[asked[chosen]])
    return found


def _device_of(
    looked: Looked, table: Table, rows: npt.NDArray[np.intp], column: str = "device_id"
) -> Int64s:
    """Return the physical device that a column names, `_UNKNOWN` where it is not known."""
    groups = group(table["process_id"][rows], table[column][rows])
    known = [
        None if device is None else looked.identity.device_of((process, device))
        for process, device in groups.keys
    ]
    table_of = np.array([_UNKNOWN if each is None else each for each in known], dtype=np.int64)
    return table_of[groups.codes] if groups.codes is not None else np.repeat(table_of, len(rows))


def member(ascending: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> Bools:
    """Return which values occur among some that ascend."""
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[place] == values)


def just_before(ends: Int64s, times: Int64s) -> Bools:
    """Return which times have one of some ascending ends at most `NEAR_NS` before them."""
    if not len(ends):
        return np.zeros(len(times), dtype=np.bool_)
    place = np.searchsorted(ends, times, side="right") - 1
    return np.asarray((place >= 0) & (times - ends[place] <= NEAR_NS))
