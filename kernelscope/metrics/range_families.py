"""Ranges grouped into families that may be iterations, and how well each one fits.

A family is the instances of one folded name on one thread in one domain. Everything here works
on whole columns; only the few families that are worth a second look become objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import group
from kernelscope.metrics.intervals import sorting
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.launch_times import UNKNOWN, LaunchTimes, calls_by_process, ids
from kernelscope.metrics.range_names import FoldedNames
from kernelscope.trace import Table, Trace, median

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

MAX_CANDIDATES = 64
"""Families that are compared with each other: the best by score."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Candidate:
    """A family with its score.

    Attributes
    ----------
    family : IterationFamily
        The ranges.
    score : float
        ``coverage × regularity``.
    coverage : float
        Share of the time from the first to the last device activity that its periods cover.
    regularity : float
        1 − MAD / median of the launches of its process per period; 0 where nothing is launched.
    typical_span : float
        Instances × median period, in ns: what it would span without its longest periods.
    launches_itself : bool
        Whether its thread launched any kernel.
    """

    family: IterationFamily
    score: float
    coverage: float
    regularity: float
    typical_span: float
    launches_itself: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Grouped:
    """Ranges in order of (family, start); families are runs of rows."""

    rows: Int64s
    start: Int64s
    range_end: Int64s
    first: Int64s
    count: Int64s
    key: tuple[tuple[int, int, int, int], ...]

    @property
    def last(self) -> Int64s:
        return np.asarray(self.first + self.count - 1)


def device_span(trace: Trace) -> tuple[int, int] | None:
    """Return when device activity began and ended; None where there is none."""
    tables = [table for table in (trace.kernels, trace.copies, trace.graphs) if len(table)]
    if not tables:
        return None
    start = min(int(table["start_ns"].min()) for table in tables)
    end = max(int(table["end_ns"].max()) for table in tables)
    return (start, end) if end > start else None


def candidates(
    trace: Trace,
    launches: LaunchTimes,
    names: FoldedNames,
    *,
    least: int,
    least_score: float,
) -> list[Candidate]:
    """Return the families among the chosen ranges that do not overlap, the best scores first.

    Parameters
    ----------
    trace : Trace
        The whole trace.
    launches : LaunchTimes
        Of the same trace.
    names : FoldedNames
        The ranges to look at, and what they are called.
    least : int
        Fewest instances.
    least_score : float
        Families that score less are left out.
    """
    rows = names.rows
    if not len(rows):
        return []
    span = device_span(trace)
    grouped = _kept(_group(trace.ranges, rows, names.codes[rows]), least, span, least_score)
    grouped, period_end = _periods(grouped)
    if not len(grouped.first):
        return []
    coverage = _coverage(grouped, period_end, span)
    regularity = _regularity(grouped, period_end, calls_by_process(trace, launches))
    score = coverage * regularity
    best = np.flatnonzero(score >= least_score)
    best = best[np.argsort(-score[best], kind="stable")][:MAX_CANDIDATES]
    found = []
    for index in best.tolist():
        family = _family(trace.ranges, grouped, period_end, index, names.folded)
        periods = family.ends - family.starts
        typical = median(periods) * len(periods)
        itself = grouped.key[index][:2] in launches.threads
        values = float(score[index]), float(coverage[index]), float(regularity[index])
        found.append(Candidate(family, *values, typical, itself))
    return found


def _family(
    ranges: Table, grouped: _Grouped, period_end: Int64s, index: int, names: tuple[str, ...]
) -> IterationFamily:
    process, thread, domain, name = grouped.key[index]
    of = slice(int(grouped.first[index]), int(grouped.first[index] + grouped.count[index]))
    return IterationFamily(
        None if process == UNKNOWN else process,
        None if thread == UNKNOWN else thread,
        ranges.categories("domain")[domain] if domain >= 0 else "",
        names[name],
        grouped.rows[of],
        grouped.start[of],
        grouped.range_end[of],
        period_end[of],
    )


def _group(
    ranges: Table, chosen: npt.NDArray[np.intp], name_codes: npt.NDArray[np.int32]
) -> _Grouped:
    start = ranges["start_ns"][chosen].astype(np.int64)
    if not bool((start[1:] >= start[:-1]).all()):
        order = sorting(start)
        chosen, name_codes, start = chosen[order], name_codes[order], start[order]
    groups = group(
        ids(ranges["process_id"][chosen]),
        ids(ranges["thread_id"][chosen]),
        ranges["domain"][chosen],
        name_codes,
    )
    keys = tuple(
        (
            UNKNOWN if process is None else process,
            UNKNOWN if thread is None else thread,
            -1 if domain is None else domain,
            -1 if name is None else name,
        )
        for process, thread, domain, name in groups.keys
    )
    codes = groups.codes
    if codes is None:
        order, count = np.arange(len(chosen)), np.array([len(chosen)])
    else:
        narrow = codes.astype(np.uint16) if len(keys) <= 1 << 16 else codes
        order, count = np.argsort(narrow, kind="stable"), np.bincount(codes, minlength=len(keys))
    rows, start = chosen[order].astype(np.int64), start[order]
    count = count.astype(np.int64)
    first = np.cumsum(count) - count
    end = ranges["end_ns"][rows].astype(np.int64)
    # A range that the program never closed ends with the trace; here it ends with the next one.
    end = np.where(ranges["closed"][rows], end, np.minimum(end, _following(start, end, first)))
    return _Grouped(rows, start, end, first, count, keys)


def _following(start: Int64s, end: Int64s, first: Int64s) -> Int64s:
    """Return when the next range of the family starts; behind the last, when that one ends."""
    following = np.append(start[1:], end[-1:])
    last = first[1:] - 1
    following[last] = end[last]
    return following


def _kept(
    grouped: _Grouped, least: int, span: tuple[int, int] | None, least_score: float
) -> _Grouped:
    """Leave out families of few instances, and those too short to reach the least score."""
    good = grouped.count >= least
    if span is not None and least_score > 0:
        low = np.maximum(grouped.start[grouped.first], span[0])
        high = np.minimum(grouped.start[grouped.last], span[1])
        # Only the last range's own length can reach beyond its start.
        high = np.maximum(high, np.minimum(grouped.range_end[grouped.last], span[1]))
        good &= (high - low) >= least_score * (span[1] - span[0])
    return _picked(grouped, good)


def _picked(grouped: _Grouped, good: npt.NDArray[np.bool_]) -> _Grouped:
    if bool(good.all()):
        return grouped
    rows = np.repeat(good, grouped.count)
    count = grouped.count[good]
    keys = tuple(key for key, keep in zip(grouped.key, good.tolist(), strict=True) if keep)
    return _Grouped(
        grouped.rows[rows],
        grouped.start[rows],
        grouped.range_end[rows],
        np.cumsum(count) - count,
        count,
        keys,
    )


def _periods(grouped: _Grouped) -> tuple[_Grouped, Int64s]:
    """Return the families that do not overlap, and where each period ends."""
    if not len(grouped.first):
        return grouped, grouped.range_end
    following = _following(grouped.start, grouped.range_end, grouped.first)
    overlapping = np.logical_or.reduceat(grouped.range_end > following, grouped.first)
    rows = np.repeat(~overlapping, grouped.count)
    return _picked(grouped, ~overlapping), following[rows]


def _coverage(grouped: _Grouped, period_end: Int64s, span: tuple[int, int] | None) -> Float64s:
    """Return the share of the device's active span that lies in the periods."""
    if span is None:
        return np.zeros(len(grouped.first))
    low = np.maximum(grouped.start[grouped.first], span[0])
    high = np.minimum(period_end[grouped.last], span[1])
    return np.asarray(np.maximum(high - low, 0) / (span[1] - span[0]))


def _regularity(grouped: _Grouped, period_end: Int64s, launched: dict[int, Int64s]) -> Float64s:
    """Return 1 − MAD / median of launches per period, the last period left out."""
    result = np.zeros(len(grouped.first))
    for process, calls in launched.items():
        of = np.array([key[0] == process for key in grouped.key], dtype=np.bool_)
        if not bool(of.any()):
            continue
        mine = _picked(grouped, of)
        ends = period_end if bool(of.all()) else period_end[np.repeat(of, grouped.count)]
        before = np.searchsorted(calls, mine.start)
        after = np.append(before[1:], 0)
        after[mine.last] = np.searchsorted(calls, ends[mine.last])
        result[of] = _steadiness(after - before, mine.first, mine.count)
    return result


def _steadiness(values: npt.NDArray[Any], first: Int64s, count: Int64s) -> Float64s:
    """Return 1 − MAD / median of each run of values without its last; of one value, that."""
    inner = np.maximum(count - 1, 1)
    keep = np.ones(len(values), dtype=np.bool_)
    keep[(first + count - 1)[count > 1]] = False
    kept = values[keep].astype(np.int64)
    begin = np.cumsum(inner) - inner
    code = np.repeat(np.arange(len(inner)), inner)
    twice = _twice_medians(kept, code, begin, inner)
    apart = np.abs(2 * kept - twice[code])
    spread = _twice_medians(apart, code, begin, inner) / 2  # of doubled values
    share = np.divide(spread, twice, out=np.ones(len(twice)), where=twice > 0)
    return np.asarray(np.maximum(1.0 - share, 0.0))


def _twice_medians(values: Int64s, code: Int64s, begin: Int64s, count: Int64s) -> Int64s:
    """Return twice the median of each run of values ≥ 0: an integer, so nothing is rounded."""
    bits = int(values.max(initial=0)).bit_length()
    if bool((count == 1).all()):
        return 2 * values
    key = (code << bits) | values
    key.sort()
    ordered = key & ((1 << bits) - 1)
    low = ordered[begin + (count - 1) // 2]
    return np.asarray(low + ordered[begin + count // 2])
