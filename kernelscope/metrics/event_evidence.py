"""Was an activity released by an event that another stream recorded?

A stream that was told to wait for an event (``cudaStreamWaitEvent``) goes on when what had been
launched before the event's last record (``cudaEventRecord``) has ended. Neither call says when
the event happened, so the end of that work is looked at instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.idle_gaps import IdleGaps, calls_of, column_of
from kernelscope.metrics.launch_times import LaunchTimes, ids
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.runs import expanded
from kernelscope.trace import Table, Trace

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NEAR_NS = 10_000
"""What ends at most this long before an activity may have released it."""

WAIT = "stream_wait_event"
_STREAM = ("process_id", "context_id", "stream_id")
_NONE = int(np.iinfo(np.int64).min)


def after_event(
    trace: Trace, calls: Table, launches: LaunchTimes, gaps: IdleGaps, asked: Int32s
) -> Bools:
    """Which pauses ended when work ended for which the next activity's stream had to wait?

    Parameters
    ----------
    trace, calls, launches
        The trace, its calls without wrappers, and what they launched.
    gaps : IdleGaps
        All pauses.
    asked : ndarray of int32, shape (n,)
        Those in question: of a known launch call.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether, between the launch before it into its stream and its own, the stream was told to
        wait for an event whose last record before that, in another stream, stands behind work of
        which the last launched ended at most `NEAR_NS` before the activity started.
    """
    found = np.zeros(len(asked), dtype=np.bool_)
    kinds = trace.syncs.categories("kind")
    if WAIT not in kinds or not len(trace.event_records):
        return found
    told = trace.syncs.take(np.flatnonzero(trace.syncs["kind"] == kinds.index(WAIT)))
    by = launch_rows(trace.event_records, calls)
    records = trace.event_records.take(by >= 0)
    if not len(told) or not len(records):
        return found
    recorded_at = calls["start_ns"][by[by >= 0]].astype(np.int64, copy=False)
    activity = np.arange(len(trace.kernels) + len(trace.copies) + len(trace.graphs), dtype=np.int32)
    call = calls_of(launches, activity)
    activity, call = activity[call >= 0], call[call >= 0]
    work, waiting, recording = _streams(trace, activity, told, records)
    launched_at = calls["start_ns"][call].astype(np.int64, copy=False)

    released = _released(told, waiting, records, recording, recorded_at)
    behind = _Ordered.of(work, launched_at, column_of(trace, "end_ns", activity))
    last = behind.last(recording, recorded_at - 1)
    ended = np.where(last < 0, _NONE, behind.tie[last])
    freed = np.where(released < 0, _NONE, ended[released])  # when each wait was over

    number = np.full(int(activity.max(initial=0)) + 1, -1, dtype=np.int64)
    number[activity] = np.arange(len(activity))
    mine = number[gaps.activity[asked]]
    stream, own = work[mine], launched_at[mine]
    before = behind.last(stream, own - 1)
    since = np.where(before < 0, _NONE, behind.time[before])
    waits = _Ordered.of(waiting, told["start_ns"], np.arange(len(told)))
    which, place = expanded(waits.count(stream, since), waits.count(stream, own))
    free = freed[waits.tie[place]]
    lag = gaps.end[asked[which]] - free
    found[which[(free != _NONE) & (lag >= 0) & (lag <= NEAR_NS)]] = True
    return found


def _streams(
    trace: Trace, activity: Int32s, told: Table, records: Table
) -> tuple[Int32s, Int32s, Int32s]:
    """Number the streams of activities, of waits and of records alike."""
    columns = [
        np.concatenate((column_of(trace, name, activity), ids(told[name]), ids(records[name])))
        for name in _STREAM
    ]
    codes, _ = grouped(columns)
    first, second = len(activity), len(activity) + len(told)
    return codes[:first], codes[first:second], codes[second:]


def _released(
    told: Table, waiting: Int32s, records: Table, recording: Int32s, recorded_at: Int64s
) -> Int64s:
    """Return the record that each wait waited for: −1 for none, and for one in its own stream."""
    names = ("process_id", "event_id")
    columns = [np.concatenate((ids(told[name]), ids(records[name]))) for name in names]
    events, _ = grouped(columns)
    every = _Ordered.of(events[len(told) :], recorded_at, np.arange(len(records)))
    last = every.last(events[: len(told)], told["start_ns"])
    record = np.where(last < 0, -1, every.tie[last])
    elsewhere = (record >= 0) & (recording[record] != waiting)
    return np.where(elsewhere, record, -1)


class _Ordered:
    """Events in order of a code, then time, then a tie-breaker: the last one up to a time."""

    def __init__(self, code: Int32s, time: Int64s, tie: Int64s) -> None:
        self.code, self.time, self.tie = code, time, tie

    @classmethod
    def of(cls, code: Int32s, time: Int64s, tie: Int64s) -> _Ordered:
        order = np.lexsort((tie, time, code))
        return cls(code[order], time[order], tie[order])

    def count(self, code: Int32s, time: Int64s) -> Int64s:
        """Return how many events stand at or before each (code, time)."""
        asked = np.repeat([False, True], (len(self.code), len(code)))
        codes, times = (np.concatenate(both) for both in ((self.code, code), (self.time, time)))
        order = np.lexsort((asked, times, codes))
        before = np.cumsum(~asked[order])
        count = np.empty(len(order), dtype=np.int64)
        count[order] = before
        return count[len(self.code) :]

    def last(self, code: Int32s, time: Int64s) -> Int64s:
        """Return the place of the last event of each code up to a time, −1 for none."""
        place = self.count(code, time) - 1
        return np.where((place >= 0) & (self.code[place] == code), place, -1)
