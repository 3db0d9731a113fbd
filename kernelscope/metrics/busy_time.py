"""How long is the device busy with what some calls launched? A union, quick for many groups.

Executions overlap, so their times cannot simply be added up. But the executions of a process
fall into *clusters*: those that overlap, directly or through others, and nothing in between. The
clusters are disjoint in time, so the union over a group of calls is the sum over clusters. Calls
come in *stretches* that a group holds as a whole or not at all
(:mod:`kernelscope.metrics.call_stretches`), and most clusters are of one stretch: what each
execution adds to its cluster is then added to that stretch, and a running total serves all
groups at once. Of the *mixed* clusters, of several stretches, a group usually holds all or
nothing, too: then its whole length counts or nothing does. Only where a run of stretches holds a
part of one are that part's executions looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.call_stretches import Stretches
from kernelscope.metrics.call_work import DeviceEvents
from kernelscope.metrics.containment import Slices
from kernelscope.metrics.intervals import covered_by_group, sorting, sums_by
from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import Runs, expanded, running_total, united
from kernelscope.trace import distinct

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


_AT_ONCE = 1 << 16
"""Executions looked at together: fresh memory for all of them costs more than the work."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Renumbering:
    """Some of all m calls, n of them, in an order of their own.

    Attributes
    ----------
    before : ndarray of int64, shape (k + 1,)
        How many of them stand before the first call of each stretch.
    place : ndarray of int64, shape (n,)
        Their places in that order.
    """

    before: Int64s
    place: Int64s


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clusters:
    """Disjoint times, and those whose executions fill them: k stretches, or calls.

    Attributes
    ----------
    numbers : Renumbering or None
        How calls are numbered here; None where stretches are counted as everywhere.
    whole : ndarray of int64, shape (k,)
        How long the clusters last that are of this stretch alone, or whose first it is.
    before : ndarray of int64, shape (k + 1,)
        How many executions of the columns below earlier stretches launched: in order of
        stretch, those in mixed clusters.
    start, end : ndarray of int64, shape (e,)
        In ns.
    low, high : ndarray of int32, shape (e,)
        First and last stretch of the cluster.
    length : ndarray of int64, shape (e,)
        How long the cluster lasts, at one execution of its first stretch; else 0.
    reach : ndarray of int32, shape (k + 1,)
        Last stretch of any cluster whose first is earlier than this; −1 if there is none.
    since : ndarray of int32, shape (k + 1,)
        First stretch of any cluster whose last is this one or later; k if there is none.
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
"""Clusters of one thread's stretches; and those of several threads, where calls are numbered by
time: most programs launch from one thread at a time, so that what is a run on a thread is one in
time."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Mixed:
    """The executions of mixed clusters, by cluster.

    Attributes
    ----------
    call : ndarray of int32, shape (e,)
        Number of the launching call.
    start, end : ndarray of int64, shape (e,)
        In ns.
    first : ndarray of int64, shape (c,)
        Where the executions of each cluster begin.
    """

    call: Int32s
    start: Int64s
    end: Int64s
    first: Int64s

    def of(self, clusters: Bools) -> _Mixed:
        """Return some of the clusters."""
        length = np.diff(self.first, append=len(self.call))
        rows = np.repeat(clusters, length)
        first = np.cumsum(length[clusters]) - length[clusters]
        return _Mixed(self.call[rows], self.start[rows], self.end[rows], first)


def busy_time(calls: Launching, events: DeviceEvents, parts: Stretches) -> BusyTime:
    """Which executions overlap each other, and who launched them?

    Parameters
    ----------
    calls : Launching
        The calls.
    events : DeviceEvents
        What they launched.
    parts : Stretches
        Of the calls.
    """
    call, start, end, bounds = _in_order(calls, events)
    alone, mixed = np.zeros(len(parts), dtype=np.int64), []
    for first, last in pairwise(bounds):
        part = slice(first, last)
        mixed.append(_walk(call[part], start[part], end[part], parts.number, alone))
    found = _joined(mixed)
    across = _across_threads(calls, *_span(found.call, found.first))
    several = found.of(~across) if across.any() else found
    number = parts.number[several.call]
    clusters = _clusters(number, several, alone)
    if not across.any():
        return (clusters,)
    wide = found.of(across)
    numbers, number = _by_time(calls, wide.call, parts)
    nothing = np.zeros(len(numbers.place), dtype=np.int64)
    return clusters, _clusters(number, wide, nothing, numbers)


def _in_order(calls: Launching, events: DeviceEvents) -> tuple[Int32s, Int64s, Int64s, list[int]]:
    """Return events by process and start, and where those of each process begin and end."""
    call, start, end = events.call, events.start, events.end
    lasting = end > start
    if not lasting.all():
        call, start, end = call[lasting], start[lasting], end[lasting]
    if not (start[1:] >= start[:-1]).all():
        order = sorting(start)
        call, start, end = call[order], start[order], end[order]
    process = _process_of(calls)
    if process is None:
        return call, start, end, [0, len(call)]
    of_event = process[call]
    order = np.argsort(of_event, kind="stable")
    bounds = [0, *np.cumsum(np.bincount(of_event, minlength=1)).tolist()]
    return call[order], start[order], end[order], bounds


def _walk(call: Int32s, start: Int64s, end: Int64s, number: Int32s, alone: Int64s) -> _Mixed:
    """Add to `alone` what the executions of one process add to clusters of one stretch.

    Returns
    -------
    _Mixed
        Those of mixed clusters.

    Notes
    -----
    In order of start, an execution adds what of it lies behind the latest end before it, and
    begins a cluster where all of it does. Whether a cluster is mixed shows only where two
    executions of it that follow each other differ; it is then taken out again.
    """
    begins = np.empty(len(call), dtype=np.bool_)
    differs = []
    reached = np.empty(min(len(end), _AT_ONCE) + 1, dtype=np.int64)
    reached[0] = np.iinfo(np.int64).min
    before = np.int32(-1)
    for first in range(0, len(end), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        starts, ends, of = start[part], end[part], number[call[part]]
        so_far = reached[: len(ends) + 1]
        so_far[1:] = ends
        np.maximum.accumulate(so_far, out=so_far)
        np.greater_equal(starts, so_far[:-1], out=begins[part])
        added = so_far[1:] - np.maximum(starts, so_far[:-1])
        np.add.at(alone, of, added)
        other = np.not_equal(of, np.concatenate(([before], of[:-1])))
        differs.append(np.flatnonzero(other & ~begins[part]) + first)
        reached[0], before = so_far[-1], of[-1]
    places = np.concatenate([np.empty(0, dtype=np.intp), *differs])
    mixed = _mixed(call, start, end, begins, places)
    np.subtract.at(alone, number[mixed.call], _added(mixed.start, mixed.end))
    return mixed


def _mixed(
    call: Int32s, start: Int64s, end: Int64s, begins: Bools, places: npt.NDArray[np.intp]
) -> _Mixed:
    """Return the clusters that the executions at some places belong to."""
    if not len(places):
        return _Mixed(call[:0], start[:0], end[:0], places)
    first = np.flatnonzero(begins)
    which = distinct(np.searchsorted(first, places, side="right") - 1)
    last = np.append(first[1:], len(call))[which]
    rows = expanded(first[which], last)[1]
    length = last - first[which]
    return _Mixed(call[rows], start[rows], end[rows], np.cumsum(length) - length)


def _added(start: Int64s, end: Int64s) -> Int64s:
    """Return what each execution adds to the union of those before it, in order of start."""
    reached = np.maximum.accumulate(end)
    added = reached.copy()
    added[1:] -= np.maximum(start[1:], reached[:-1])
    added[:1] -= start[:1]
    return added


def _joined(parts: list[_Mixed]) -> _Mixed:
    """Return the clusters of several processes, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.call) for part in parts)])[:-1].tolist()
    return _Mixed(
        np.concatenate([part.call for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.first + base for part, base in zip(parts, before, strict=True)]),
    )


def _span(number: Int32s, first: Int64s) -> tuple[Int32s, Int32s]:
    """Return the least and the greatest number of each cluster."""
    if not len(first):
        return number[:0], number[:0]
    return np.minimum.reduceat(number, first), np.maximum.reduceat(number, first)


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


def _by_time(calls: Launching, some: Int32s, parts: Stretches) -> tuple[Renumbering, Int32s]:
    """Number some calls, which may repeat, by process and start; and return their numbers."""
    present = np.zeros(len(calls), dtype=np.bool_)
    present[some] = True
    number = np.flatnonzero(present)
    order = sorting(calls.start[number])
    process = _process_of(calls)
    if process is not None:
        order = order[np.argsort(process[number[order]], kind="stable")]
    place = np.empty(len(number), dtype=np.int64)
    place[order] = np.arange(len(number))
    before = running_total(present)
    return Renumbering(before[parts.first], place), place[before[some]].astype(np.int32)


def _clusters(
    number: Int32s,
    mixed: _Mixed,
    alone: Int64s,
    numbers: Renumbering | None = None,
) -> Clusters:
    """Gather executions by stretch, and clusters by first stretch, last stretch and length."""
    count, first = len(alone), mixed.first
    low, high = _span(number, first)
    length = mixed.start[first]
    if len(first):
        length = np.maximum.reduceat(mixed.end, first) - length
    order = sorting(number)
    sizes = np.diff(first, append=len(number))
    cluster = np.repeat(np.arange(len(first), dtype=np.int32), sizes)[order]
    reach = np.full(count + 1, -1, dtype=np.int32)
    since = np.full(count + 1, count, dtype=np.int32)
    np.maximum.at(reach, low + 1, high)
    np.minimum.at(since, high, low)
    return Clusters(
        numbers=numbers,
        whole=alone + sums_by(low, length, count),
        before=running_total(np.bincount(number, minlength=count)),
        start=mixed.start[order],
        end=mixed.end[order],
        low=low[cluster],
        high=high[cluster],
        length=_at_first(cluster, length),
        reach=np.maximum.accumulate(reach),
        since=np.minimum.accumulate(since[::-1])[::-1],
    )


def _at_first(cluster: npt.NDArray[Any], length: Int64s) -> Int64s:
    """Return the length of each cluster at its first execution, 0 at the others."""
    first = np.empty(len(length), dtype=np.intp)
    first[cluster[::-1]] = np.arange(len(cluster))[::-1]  # of several, the last one stays
    at = np.zeros(len(cluster), dtype=np.int64)
    at[first] = length
    return at


def busy_by_group(busy: BusyTime, runs: Runs, count: int, at_once: int) -> Int64s:
    """How long is the device busy with what each group launched?

    Parameters
    ----------
    busy : BusyTime
        When it is.
    runs : Runs
        The stretches of groups, in order of group, each once in a group.
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
