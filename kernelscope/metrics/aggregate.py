"""Durations by group: counts, totals, extremes, deviations and quantiles in a few passes.

One sort of ``(group << bits) | duration`` puts every group's durations in order; minima, maxima
and quantiles are then single elements, sums are ``reduceat``. No Python loop sees an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.results import QUANTILES
from kernelscope.metrics.window import Times, Window, clipped_durations, starts_inside
from kernelscope.schema import TableSchema
from kernelscope.trace import Array, Categorical, ColumnData, Table, missing_value

Int64s = npt.NDArray[np.int64]

_MISSING = np.int64(missing_value(np.dtype(np.int64)))
_NARROW = 31
"""Bits of an integer that an int32 holds, if it is not negative."""


def durations_by_group(
    events: Times, window: Window, groups: Array, group_count: int, counter: str
) -> dict[str, Array]:
    """Summarise durations by group, as the duration columns of the result tables.

    Parameters
    ----------
    events : Table or LaunchCalls
        Events with ``start_ns`` and ``end_ns``.
    window : Window
        Totals are clipped to it; everything else is over the events that start in it.
    groups : ndarray of int, shape (n,)
        Group of each event, 0 … `group_count` − 1.
    group_count : int
        How many groups there are.
    counter : str
        What the column of counts is called: ``executions``, ``calls``, ``operations``.

    Returns
    -------
    dict of str to ndarray, each of shape (group_count,)
        `counter`, ``total_ns``, ``mean_ns``, ``median_ns``, ``min_ns``, ``max_ns``, ``std_ns``
        (sample deviation; 0 for one event) and ``quantiles_ns.p…`` (linear interpolation at
        (n − 1)·q). A group with no event that starts in the window has missing statistics.
    """
    duration = (events["end_ns"] - events["start_ns"]).astype(np.int64, copy=False)
    if _holds_all(events, window):
        ordered, first, counts = _sorted_by_group(groups, duration, group_count)
        totals = _sums(ordered, first, counts)
    else:
        totals = sums_by(groups, clipped_durations(events, window), group_count)
        inside = starts_inside(events, window)
        ordered, first, counts = _sorted_by_group(groups[inside], duration[inside], group_count)
    return {counter: counts, "total_ns": totals} | _statistics(ordered, first, counts)


def totals_by_group(
    events: Table, window: Window, groups: Array, group_count: int, counter: str
) -> dict[str, Array]:
    """Return `counter` and ``total_ns`` of :func:`durations_by_group`, without sorting."""
    if _holds_all(events, window):
        durations = (events["end_ns"] - events["start_ns"]).astype(np.int64, copy=False)
        counted = groups
    else:
        durations = clipped_durations(events, window)
        counted = groups[starts_inside(events, window)]
    return {
        counter: np.bincount(counted, minlength=group_count).astype(np.int64),
        "total_ns": sums_by(groups, durations, group_count),
    }


def statistics_by_group(values: Int64s, groups: Array, group_count: int) -> dict[str, Array]:
    """Summarise integers by group, as the statistics of :func:`durations_by_group`.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        Differences of times; a difference of two clocks may be negative.
    groups : ndarray of int, shape (n,)
        Group of each value, 0 … `group_count` − 1.
    group_count : int
        How many groups there are.
    """
    low = min(int(values.min()), 0) if len(values) else 0
    raised = values - low if low else values
    ordered, first, counts = _sorted_by_group(groups, raised, group_count)
    if low:
        ordered = ordered.astype(np.int64)
        ordered += low
    return _statistics(ordered, first, counts)


def _holds_all(events: Times, window: Window) -> bool:
    return bool(
        len(events["start_ns"])
        and events["start_ns"].min() >= window.start_ns
        and events["end_ns"].max() <= window.end_ns
    )


def _sorted_by_group(
    groups: Array, durations: Int64s, group_count: int
) -> tuple[Array, Int64s, Int64s]:
    """Return durations in order of (group, duration), each group's first place, and its size.

    They are sorted as int32 where they fit, with the group before them: half the memory, and
    half the time.
    """
    if not len(durations) or groups.min() == groups.max():
        counts = np.zeros(group_count, dtype=np.int64)
        counts[groups[:1]] = len(groups)
        narrow = len(durations) and int(durations.max()).bit_length() <= _NARROW
        ordered = np.sort(durations.astype(np.int32) if narrow else durations)
        return ordered, np.cumsum(counts) - counts, counts
    bits = int(durations.max()).bit_length()
    width = bits + int(group_count).bit_length()
    if width > 63:
        counts = sizes(groups, group_count)
        return durations[np.lexsort((durations, groups))], np.cumsum(counts) - counts, counts
    dtype = np.int32 if width <= _NARROW else np.int64
    keys: npt.NDArray[Any] = np.left_shift(groups, bits, dtype=dtype)
    np.bitwise_or(keys, durations, out=keys, casting="unsafe")
    keys.sort()
    edges = np.searchsorted(keys, np.arange(group_count + 1, dtype=np.int64) << bits)
    np.bitwise_and(keys, (1 << bits) - 1, out=keys)
    return keys, edges[:-1], np.diff(edges)


def sizes(groups: Array, group_count: int) -> Int64s:
    """Return how many rows each group has, shape (group_count,)."""
    if groups.strides == (0,) and len(groups):  # one group, broadcast to all rows
        counts = np.zeros(group_count, dtype=np.int64)
        counts[groups[0]] = len(groups)
        return counts
    return np.bincount(groups, minlength=group_count).astype(np.int64, copy=False)


def _sums(ordered: Array, first: Int64s, counts: Int64s) -> Int64s:
    """Return the sum of each group's run in `ordered`; empty groups sum to 0."""
    sums = np.zeros(len(counts), dtype=np.int64)
    full = counts > 0
    if full.any():
        sums[full] = np.add.reduceat(ordered, first[full], dtype=np.int64)
    return sums


def _statistics(ordered: Array, first: Int64s, counts: Int64s) -> dict[str, Array]:
    full = counts > 0
    mean = np.full(len(counts), np.nan)
    mean[full] = _sums(ordered, first, counts)[full] / counts[full]
    last = first + counts - 1
    extremes = {}
    for name, place in (("min_ns", first), ("max_ns", last)):
        extremes[name] = np.full(len(counts), _MISSING)
        extremes[name][full] = ordered[place[full]]
    return {
        "mean_ns": mean,
        "median_ns": _quantile(ordered, first, counts, 0.5),
        **extremes,
        "std_ns": _deviation(ordered, first, counts, mean),
        **{f"quantiles_ns.p{q}": _quantile(ordered, first, counts, q / 100) for q in QUANTILES},
    }


def _quantile(ordered: Array, first: Int64s, counts: Int64s, q: float) -> npt.NDArray[np.float64]:
    """Return each group's quantile by linear interpolation at (n − 1)·q."""
    values = np.full(len(counts), np.nan)
    full = counts > 0
    place = (counts[full] - 1) * q
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, counts[full] - 1)
    low = ordered[first[full] + below]
    values[full] = low + (ordered[first[full] + above] - low) * (place - below)
    return values


def _deviation(
    ordered: Array, first: Int64s, counts: Int64s, mean: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return sample deviations in two passes: squares of large durations would cancel."""
    deviation = np.full(len(counts), np.nan)
    full = counts > 0
    deviation[full] = 0.0
    if full.any():
        centre = mean[full]
        if len(centre) > 1:
            centre = np.repeat(centre, counts[full])
        apart = np.subtract(ordered, centre, out=centre if len(centre) == len(ordered) else None)
        np.square(apart, out=apart)
        squares = np.add.reduceat(apart, first[full])
        degrees = np.maximum(counts[full] - 1, 1)
        deviation[full] = np.sqrt(squares / degrees)
    return deviation


def by_total(table_schema: TableSchema, columns: Mapping[str, ColumnData], *counters: str) -> Table:
    """Return a result table sorted by total time, then name; rows that never ran are left out.

    Parameters
    ----------
    table_schema : TableSchema
        Its first column is the name.
    columns : mapping
        Its columns, each of shape (g,).
    *counters : str
        Columns of counts; a row with neither count nor time inside the window is dropped.
    """
    table = Table.make(table_schema, columns)
    seen = table["total_ns"] > 0
    for counter in counters:
        seen = seen | (table[counter] > 0)
    kept = np.flatnonzero(seen)
    name = table_schema.columns[0].name
    texts = table.categories(name)
    alphabetical = np.zeros(len(texts) + 1, dtype=np.int64)
    alphabetical[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    order = np.lexsort((alphabetical[table[name][kept]], -table["total_ns"][kept]))
    return table.take(kept[order])


def ratio(part: Array, whole: int) -> npt.NDArray[np.float64]:
    """Return `part` over `whole`; missing where the whole is 0."""
    if whole == 0:
        return np.full(len(part), np.nan)
    share: Any = part / whole
    return np.asarray(share, dtype=np.float64)


def picked(column: Categorical, codes: Array) -> Categorical:
    """Return a text column of other rows over the same texts."""
    return Categorical(codes.astype(np.int32), column.categories)
