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
from kernelscope.metrics.containment import Slices
from kernelscope.metrics.intervals import Pieces, covered_by_group, sorting, sums_by
from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import Runs, expanded, running_total, united

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


_AT_ONCE = 1 << 16
"""Executions looked at together: fresh memory for all of them costs more than the work."""


@dataclass(frozen=True, slots=True, eq=False)
class Renumbering:
    """Some of all m calls, k of them, in an order of their own.

    Attributes
    ----------
    before : ndarray of int64, shape (m + 1,)
        How many of them stand before each call.
    place : ndarray of int64, shape (k,)
        Their places in that order.
    """

    before: Int64s
    place: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Disjoint stretches of time, and the calls whose executions fill them.

    Attributes
    ----------
    numbers : Renumbering or None
        How calls are numbered here; None if as everywhere, k = m.
    whole : ndarray of int64, shape (k,)
        How long the clusters last whose first call is this one.
    before : ndarray of int64, shape (k + 1,)
        How many executions of the columns below earlier calls launched: in order of call,
        those in clusters of several calls.
    start, end : ndarray of int64, shape (e,)
        In ns.
    low, high : ndarray of int32, shape (e,)
        First and last call of the cluster.
    length : ndarray of int64, shape (e,)
        How long the cluster lasts, at one execution of its first call; else 0.
    reach : ndarray of int32, shape (k + 1,)
        Last call of any cluster whose first call is earlier than this call; −1 if there is none.
    since : ndarray of int32, shape (k + 1,)
        First call of any cluster whose last call is this one or later; k if there is none.
    """

    numbers: Renumbering | None
    whole: Int64s
    before: Int64s
    start: Int64s
    end: Int64s
    low: Int32s
    high: Int32s
    length: Int64s
    reach: Int32s
    since: Int32s


BusyTime = tuple[Clusters, ...]
"""Clusters of one thread's calls; and those of several, where calls are numbered by time: most
programs launch from one thread at a time, so that what is a run on a thread is one in time."""


def busy_time(calls: Launching, events: DeviceEvents) -> BusyTime:
    """Which executions overlap each other, and who launched them?"""
    call, start, end, begins = _in_order(calls, events)
    first = np.flatnonzero(begins)
    if not len(first):
        return ()
    cluster = np.cumsum(begins, dtype=np.int32)
    cluster -= np.int32(1)
    span = np.minimum.reduceat(call, first), np.maximum.reduceat(call, first)
    across = _across_threads(calls, *span)
    length = np.maximum.reduceat(end, first) - start[first]
    if not across.any():
        return (_clusters(call, (start, end), cluster, (*span, length), count=len(calls)),)
    rows = np.flatnonzero(across[cluster])
    numbers = _by_time(calls, call[rows])
    number = numbers.place[numbers.before[call[rows]]].astype(np.int32)
    first = np.flatnonzero(np.diff(cluster[rows], prepend=-1))
    wide = np.minimum.reduceat(number, first), np.maximum.reduceat(number, first)
    those = (
        number,
        (start[rows], end[rows]),
        np.repeat(np.arange(len(first)), np.diff(np.append(first, len(rows)))),
        (*wide, length[across]),
    )
    span[1][across] = span[0][across]  # nothing is left of them among the others
    length[across] = 0
    return (
        _clusters(call, (start, end), cluster, (*span, length), count=len(calls)),
        _clusters(*those, count=len(numbers.place), numbers=numbers),
    )


def _in_order(calls: Launching, events: DeviceEvents) -> tuple[Int32s, Int64s, Int64s, Bools]:
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
        _begins(start[first:last], end[first:last], new[first:last])
    return call, start, end, new


def _begins(start: Int64s, end: Int64s, out: Bools) -> None:
    """Set in `out` which executions begin after all earlier ones have ended; not the first."""
    reached = np.empty(min(len(end), _AT_ONCE), dtype=np.int64)
    latest = end[:1]
    for first in range(1, len(end), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        so_far = reached[: len(end[part])]
        so_far[:1] = latest
        so_far[1:] = end[part][:-1]
        np.maximum.accumulate(so_far, out=so_far)
        np.greater_equal(start[part], so_far, out=out[part])
        latest = np.maximum(so_far[-1:], end[part][-1:])


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


def _by_time(calls: Launching, some: Int32s) -> Renumbering:
    """Return some calls, which may repeat, by process and start."""
    present = np.zeros(len(calls), dtype=np.bool_)
    present[some] = True
    number = np.flatnonzero(present)
    order = sorting(calls.start[number])
    process = _process_of(calls)
    if process is not None:
        order = order[np.argsort(process[number[order]], kind="stable")]
    place = np.empty(len(number), dtype=np.int64)
    place[order] = np.arange(len(number))
    return Renumbering(running_total(present), place)


def _clusters(  # noqa: PLR0913 - what they consist of
    call: Int32s,
    times: Pieces,
    cluster: npt.NDArray[Any],
    of_cluster: tuple[Int32s, Int32s, Int64s],
    *,
    count: int,
    numbers: Renumbering | None = None,
) -> Clusters:
    """Gather executions by cluster, and clusters by first call, last call and length."""
    low, high, length = of_cluster
    several = low < high
    rows = np.flatnonzero(several[cluster])
    rows = rows[sorting(call[rows])]
    cluster = cluster[rows]
    reach = np.full(count + 1, -1, dtype=np.int32)
    since = np.full(count + 1, count, dtype=np.int32)
    np.maximum.at(reach, low[several] + 1, high[several])
    np.minimum.at(since, high[several], low[several])
    return Clusters(
        numbers=numbers,
        whole=sums_by(low, length, count),
        before=running_total(np.bincount(call[rows], minlength=count)),
        start=times[0][rows],
        end=times[1][rows],
        low=low[cluster],
        high=high[cluster],
        length=_at_first(cluster, length),
        reach=np.maximum.accumulate(reach),
        since=np.minimum.accumulate(since[::-1])[::-1],
    )


def _at_first(cluster: npt.NDArray[Any], length: Int64s) -> Int64s:
    """Return the length of each cluster at its first execution, 0 at the others."""
    first = np.full(len(length), -1, dtype=np.int32)
    place = np.arange(len(cluster), dtype=np.int32)
    first[cluster[::-1]] = place[::-1]  # of several, the last one stays
    first = first[first >= 0]
    at = np.zeros(len(cluster), dtype=np.int64)
    at[first] = length[cluster[first]]
    return at


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
    total = np.zeros(count, dtype=np.int64)
    for clusters in busy:
        for mine in _renumbered(clusters, runs, at_once):
            total += mine.sums(running_total(clusters.whole), count)
            for run, first, last in _windows(clusters, mine, at_once):
                which, event = expanded(first, last)
                which = run[which]
                # Beside the cluster that reaches farthest over an edge lie others that do not.
                cut = clusters.low[event] < mine.first[which]
                cut |= clusters.high[event] >= mine.last[which]
                event, code = event[cut], mine.owner[which[cut]]
                part = clusters.start[event], clusters.end[event]
                total += covered_by_group(*part, code, count)
                total -= sums_by(code, clusters.length[event], count)
    return total


def _renumbered(clusters: Clusters, runs: Runs, at_once: int) -> Iterator[Runs]:
    """Yield the runs as the clusters number calls, whole owners at a time."""
    numbers = clusters.numbers
    if numbers is None:
        yield runs
        return
    first, last = numbers.before[runs.first], numbers.before[runs.last]
    some = np.flatnonzero(first < last)
    for part in _blocks(runs.owner[some], (last - first)[some], at_once):
        rows = some[part]
        which, low, high = Slices(numbers.place, first[rows], last[rows]).runs()
        yield united(Runs(runs.owner[rows[which]], low, high), len(numbers.place))


def _windows(
    clusters: Clusters, runs: Runs, at_once: int
) -> Iterator[tuple[npt.NDArray[np.intp], Int64s, Int64s]]:
    """Yield (run, first, last): executions in a run whose cluster may lie partly outside it.

    They stand between the run's beginning and the last call of any cluster that began before
    it, and likewise at its end.
    """
    first, last = clusters.before[runs.first], clusters.before[runs.last]
    reach = np.clip(clusters.reach[runs.first] + 1, runs.first, runs.last)
    since = np.clip(clusters.since[runs.last], runs.first, runs.last)
    left = clusters.before[reach]
    right = np.maximum(clusters.before[since], left)
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
