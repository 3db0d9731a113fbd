"""How long is the device busy with what some calls launched? A union, quick for many groups.

Executions overlap, so their times cannot simply be added up. But the executions of a process
fall into *clusters*: those that overlap, directly or through others, and nothing in between. The
clusters are disjoint in time, so the union over a group of calls is the sum over clusters. A
group usually holds all calls of a cluster or none: then its whole length counts or nothing does,
and a running total serves all groups at once. Only where a run of calls holds a part of a
cluster are that part's executions looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.call_work import DeviceEvents
from kernelscope.metrics.intervals import covered_by_group, sorting, sums_by
from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import Runs, expanded, running_total

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The e executions in clusters that several calls launched, in order of call.

    Attributes
    ----------
    before : ndarray of int64, shape (m + 1,)
        How many of them earlier calls launched.
    start, end : ndarray of int64, shape (e,)
        In ns.
    low, high : ndarray of int32, shape (e,)
        First and last call of the cluster; −1 and m if calls of several threads share it, which
        no run holds for certain.
    length : ndarray of int64, shape (e,)
        What the cluster adds to ``BusyTime.whole``, at one execution of its first call; else 0.
    reach : ndarray of int32, shape (m + 1,)
        Last call of any cluster whose first call is earlier than this call; −1 if there is none.
    since : ndarray of int32, shape (m + 1,)
        First call of any cluster whose last call is this one or later; m if there is none.
    """

    before: Int64s
    start: Int64s
    end: Int64s
    low: Int32s
    high: Int32s
    length: Int64s
    reach: Int32s
    since: Int32s


@dataclass(frozen=True, slots=True, eq=False)
class BusyTime:
    """When the device was busy with what each of m calls launched.

    Attributes
    ----------
    whole : ndarray of int64, shape (m,)
        Time that clusters of one thread cover, at their first call.
    shared : tuple of Shared
        The clusters of several calls, those of one thread apart from the others.
    """

    whole: Int64s
    shared: tuple[Shared, ...]


def busy_time(calls: Launching, events: DeviceEvents) -> BusyTime:
    """Which executions overlap each other, and who launched them?"""
    count = len(calls)
    call, start, end, new = _clusters(calls, events)
    begin = np.flatnonzero(new)
    if not len(begin):
        return BusyTime(np.zeros(count, dtype=np.int64), ())
    low, high = np.minimum.reduceat(call, begin), np.maximum.reduceat(call, begin)
    length = np.maximum.reduceat(end, begin) - start[begin]
    across = _across_threads(calls, low, high)
    low[across], high[across], length[across] = -1, count, 0
    size = np.diff(np.append(begin, len(call)))
    shared = []
    for chosen in ((low < high) & ~across, across):
        if chosen.any():
            rows = np.flatnonzero(np.repeat(chosen, size))
            order = sorting(call[rows])
            rows = rows[order]
            cluster = np.repeat(np.flatnonzero(chosen), size[chosen])[order]
            before = running_total(np.bincount(call[rows], minlength=count))
            reach, since = _reaching(low[chosen], high[chosen], count)
            shared.append(
                Shared(
                    before,
                    start[rows],
                    end[rows],
                    low[cluster],
                    high[cluster],
                    _at_first(cluster, length),
                    reach,
                    since,
                )
            )
    return BusyTime(sums_by(np.maximum(low, 0), length, count), tuple(shared))


def _clusters(calls: Launching, events: DeviceEvents) -> tuple[Int32s, Int64s, Int64s, Bools]:
    """Return events by process and start, and which of them begin a cluster."""
    call, start, end = events.call, events.start, events.end
    lasting = end > start
    if not lasting.all():
        call, start, end = call[lasting], start[lasting], end[lasting]
    if not (start[1:] >= start[:-1]).all():
        order = sorting(start)
        call, start, end = call[order], start[order], end[order]
    process = _process_of(calls)
    bounds = [0, len(call)]
    if process is not None:
        of_event = process[call]
        order = np.argsort(of_event, kind="stable")
        call, start, end = call[order], start[order], end[order]
        bounds = [0, *np.cumsum(np.bincount(of_event)).tolist()]
    new = np.ones(len(call), dtype=np.bool_)
    for first, last in pairwise(bounds):
        reached = np.maximum.accumulate(end[first:last])
        np.greater_equal(start[first + 1 : last], reached[:-1], out=new[first + 1 : last])
    return call, start, end, new


def _process_of(calls: Launching) -> npt.NDArray[Any] | None:
    """Return a number for the process of each call; None where there is only one."""
    process = [key[0] for key in calls.threads]
    number = {each: i for i, each in enumerate(dict.fromkeys(process))}
    if len(number) <= 1:
        return None
    numbers = np.array([number[each] for each in process])
    length = [part.stop - part.start for part in calls.threads.values()]
    # 16 bits are sorted in linear time.
    return np.repeat(numbers.astype(np.uint16 if len(number) <= 1 << 16 else np.int64), length)


def _across_threads(calls: Launching, low: Int32s, high: Int32s) -> Bools:
    """Return which clusters have calls of several threads."""
    begins = np.array([part.start for part in calls.threads.values()])
    across = low < high
    several = np.flatnonzero(across)
    thread = [np.searchsorted(begins, side[several], side="right") for side in (low, high)]
    across[several] = thread[0] != thread[1]
    return across


def _at_first(cluster: npt.NDArray[np.intp], length: Int64s) -> Int64s:
    """Return the length of each cluster at its first event, 0 at the others."""
    first = np.full(len(length), -1)
    first[cluster[::-1]] = np.arange(len(cluster))[::-1]  # of several, the last one stays
    first = first[first >= 0]
    at = np.zeros(len(cluster), dtype=np.int64)
    at[first] = length[cluster[first]]
    return at


def _reaching(low: Int32s, high: Int32s, count: int) -> tuple[Int32s, Int32s]:
    """Return `Shared.reach` and `Shared.since` of clusters with the given first and last calls."""
    reach = np.full(count + 1, -1, dtype=np.int32)
    since = np.full(count + 1, count, dtype=np.int32)
    np.maximum.at(reach, low + 1, high)
    np.minimum.at(since, high, low)
    return np.maximum.accumulate(reach), np.minimum.accumulate(since[::-1])[::-1]


def busy_by_group(busy: BusyTime, runs: Runs, count: int, at_once: int) -> Int64s:
    """How long is the device busy with the calls of each group?

    Parameters
    ----------
    busy : BusyTime
        When it is.
    runs : Runs
        The calls of groups, in order of group, each call once in a group.
    count : int
        How many groups there are.
    at_once : int
        About how many executions are looked at together: a bound to the memory used.

    Returns
    -------
    ndarray of int64, shape (count,)
        In ns.
    """
    total = runs.sums(running_total(busy.whole), count)
    for shared in busy.shared:
        for run, first, last in _windows(shared, runs, at_once):
            which, event = expanded(first, last)
            which = run[which]
            # Between a run's edge and the farthest cluster that reaches over it lie others, too.
            cut = shared.low[event] < runs.first[which]
            cut |= shared.high[event] >= runs.last[which]
            event, code = event[cut], runs.owner[which[cut]]
            if len(code):
                total += covered_by_group(shared.start[event], shared.end[event], code, count)
                total -= sums_by(code, shared.length[event], count)
    return total


def _windows(
    shared: Shared, runs: Runs, at_once: int
) -> Iterator[tuple[npt.NDArray[np.intp], Int64s, Int64s]]:
    """Yield (run, first, last): executions in a run whose cluster may lie partly outside it.

    They stand between the run's beginning and the last call of any cluster that began before
    it, and likewise at its end.
    """
    first, last = shared.before[runs.first], shared.before[runs.last]
    reach = np.clip(shared.reach[runs.first] + 1, runs.first, runs.last)
    since = np.clip(shared.since[runs.last], runs.first, runs.last)
    left = shared.before[reach]
    right = np.maximum(shared.before[since], left)
    load = left - first + last - right
    some = np.flatnonzero(load)
    for part in _blocks(runs.owner[some], load[some], at_once):
        run = some[part]
        yield (
            np.concatenate((run, run)),
            np.concatenate((first[run], right[run])),
            np.concatenate((left[run], last[run])),
        )


def _blocks(owner: npt.NDArray[Any], load: Int64s, at_once: int) -> Iterator[slice]:
    """Split runs in order of owner into parts of about `at_once`, at least one owner each."""
    total = np.cumsum(load)
    low = 0
    while low < len(owner):
        done = int(total[low - 1]) if low else 0
        high = max(int(np.searchsorted(total, done + at_once, side="right")), low + 1)
        if high < len(owner):
            begin = int(np.searchsorted(owner, owner[high]))
            end = int(np.searchsorted(owner, owner[high], side="right"))
            high = begin if begin > low else end
        yield slice(low, high)
        low = high
