"""The repeating unit of the kernel sequence: iterations of a trace without markers.

On the busiest stream each kernel is a symbol (name + grid + block). A place in the sequence is
known by its *context*, the next few symbols; a context that occurs once per unit is an anchor,
and the units lie between its occurrences. A training step has many such anchors, so one that a
differing kernel spoils is replaced by another. A layer and a step cannot be told apart from the
sequence alone; the unit is therefore called *repeating unit of N kernels*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.grouping import begins, group
from kernelscope.metrics.intervals import sorting, sums_by
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.launch_times import UNKNOWN, LaunchTimes, called_at, ids
from kernelscope.metrics.range_families import device_span
from kernelscope.trace import Table, Trace, median

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

MIN_UNITS = 5
"""A unit repeats at least this often."""
MIN_CONFIDENCE = 0.3
"""Below this there is no repeating unit: as for a family of ranges."""
MIN_EXPLAINED = 0.6
"""At least this share of kernels stands at the same place of the unit before."""
CONTEXT = 4
"""How many symbols in a row make a context."""
MAX_LENGTHS = 12
"""How many lengths of the unit are compared: those with the most anchors."""
ANCHORS_TRIED = 3
"""How many anchors are tried for each length."""
MAX_COMPARED = 200_000
"""About how many places are compared to tell how well units repeat."""
STRETCHES = 8
"""In how many stretches of a longer sequence these lie."""
SAMPLED_UNITS = 64
"""About how many units are compared to tell where a unit begins."""
MIN_COMMON = 0.9
"""A kernel before the anchor belongs to the unit if this share of units has it."""
UNEXPLAINED = 0.005
"""The shortest unit wins that leaves at most this share of kernels unexplained, or at most
`UNEXPLAINED_FACTOR` times as much as the best: not ten steps where one step repeats."""
UNEXPLAINED_FACTOR = 2.0
AGREES_WITHIN = 0.05
"""Markers and kernel sequence agree if neither number nor median period differ by more."""

_COLUMNS = ("name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RepeatingUnit:
    """What repeats on the busiest stream.

    Attributes
    ----------
    family : IterationFamily
        One instance per unit, from the launch of its first kernel; no rows in `ranges`.
    kernels : int
        Kernels per unit, at the median.
    confidence : float
        Share of the kernels that stand at the same place of the unit before, beyond what chance
        explains × the smaller of two coverages: the stream's kernels that lie in a unit, and
        the device's active span from the first unit to the last.
    """

    family: IterationFamily
    kernels: int
    confidence: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Unit:
    """Places at which units begin, and how well they repeat."""

    anchors: Int64s
    length: int
    explained: float
    coverage: float


def repeating_unit(trace: Trace, launches: LaunchTimes) -> RepeatingUnit | None:
    """What repeats in the sequence of kernels on the busiest stream?

    Parameters
    ----------
    trace : Trace
        The whole trace.
    launches : LaunchTimes
        Of the same trace.

    Returns
    -------
    RepeatingUnit or None
        None where nothing repeats at least `MIN_UNITS` times with `MIN_CONFIDENCE`.
    """
    rows = busiest_stream(trace.kernels)
    if len(rows) < MIN_UNITS + CONTEXT:
        return None
    symbols = _symbols(trace.kernels, rows)
    found = _best(_units(symbols), len(symbols))
    if found is None:
        return None
    anchors = _from_the_beginning(symbols, found.anchors)
    covered = _covered(anchors, found.length, len(symbols))
    found = replace(found, anchors=anchors, coverage=covered)
    confidence = found.explained * min(found.coverage, _time_covered(trace, rows, found))
    if confidence < MIN_CONFIDENCE:
        return None
    return RepeatingUnit(_family(trace, launches, rows, found), found.length, confidence)


def agrees(markers: IterationFamily, unit: IterationFamily) -> bool:
    """Return whether the repeating unit is what the markers mark, by number and median period."""
    marked, repeated = len(markers.starts), len(unit.starts)
    if abs(marked - repeated) > max(1, AGREES_WITHIN * marked) or min(marked, repeated) < 2:
        return False
    period = median(np.diff(markers.starts))
    return abs(median(np.diff(unit.starts)) - period) <= AGREES_WITHIN * period


def busiest_stream(kernels: Table) -> npt.NDArray[np.intp]:
    """Return the rows of the stream with the most compute time, in order of start.

    Communication kernels spin while they wait, so their time says nothing of a stream.
    """
    if not len(kernels):
        return np.empty(0, dtype=np.intp)
    groups = group(*(kernels[f"{what}_id"] for what in ("process", "device", "context", "stream")))
    rows = np.arange(len(kernels))
    if groups.codes is not None:
        time = kernels["end_ns"] - kernels["start_ns"]
        waits = is_communication(kernels.categories("name"))
        if waits.any():
            time *= np.append(~waits, True)[kernels["name"]]
        busy = sums_by(groups.codes, time, len(groups.keys))
        rows = np.flatnonzero(groups.codes == int(np.argmax(busy)))
    start = kernels["start_ns"][rows]
    return rows if bool((start[1:] >= start[:-1]).all()) else rows[sorting(start)]


def _symbols(kernels: Table, rows: npt.NDArray[np.intp]) -> UInt64s:
    """Return a hash of name, grid and block of each kernel."""
    symbol = np.zeros(len(rows), dtype=np.uint64)
    for name in _COLUMNS:
        if kernels[name].strides == (0,):  # one value, broadcast to all rows
            continue
        symbol += kernels[name][rows].astype(np.int64).view(np.uint64)
        symbol *= _MULTIPLIER
        symbol ^= symbol >> np.uint64(29)
    return symbol


def _contexts(symbols: UInt64s) -> UInt64s:
    count = len(symbols) - CONTEXT + 1
    context = np.zeros(count, dtype=np.uint64)
    for ahead in range(CONTEXT):
        context += symbols[ahead : ahead + count]
        context *= _MULTIPLIER
        context ^= context >> np.uint64(31)
    return context


def _units(symbols: UInt64s) -> list[_Unit]:
    """Return the ways to cut the sequence into units, one for each number of units tried."""
    contexts = _contexts(symbols)
    order = _alike_together(contexts)
    first = np.flatnonzero(begins(contexts[order]))
    times = np.diff(np.append(first, len(order)))
    occurs = np.empty(len(order), dtype=np.int32)
    occurs[order] = np.repeat(times, times)  # how often the context of each place occurs
    weight = np.bincount(times)
    weight[:MIN_UNITS] = 0
    classes = np.argsort(-weight, kind="stable")[:MAX_LENGTHS]
    units: dict[int, _Unit] = {}
    by_chance = _by_chance(symbols)
    for count in classes[weight[classes] > 0].tolist():
        places = np.flatnonzero(occurs == count)
        unit = _unit_of(symbols, contexts, places, by_chance)
        if unit is not None and _better(unit, units.get(unit.length)):
            units[unit.length] = unit
    return list(units.values())


def _alike_together(contexts: UInt64s) -> npt.NDArray[np.intp]:
    """Return an order in which equal contexts stand together.

    The place is written over the last bits of the hash, so that numbers are sorted, not places
    by numbers, which takes five times as long.
    """
    bits = np.uint64(len(contexts).bit_length())
    key = contexts >> bits
    key <<= bits
    key |= np.arange(len(contexts), dtype=np.uint64)
    key.sort()
    places = (np.uint64(1) << bits) - np.uint64(1)
    order = (key & places).view(np.int64)
    if np.count_nonzero(begins(key >> bits)) == np.count_nonzero(begins(contexts[order])):
        return order
    return np.argsort(contexts)  # two contexts differ in their last bits alone


def _unit_of(symbols: UInt64s, contexts: UInt64s, places: Int64s, by_chance: float) -> _Unit | None:
    """Cut the sequence at a context that is among `places`; the earliest that cuts it well."""
    best: _Unit | None = None
    for attempt in range(ANCHORS_TRIED):
        place = int(places[attempt * len(places) // (ANCHORS_TRIED * 4)])
        anchors = _to_the_end(symbols, np.flatnonzero(contexts == contexts[place]))
        gaps = np.diff(anchors)
        length = int(median(gaps))
        if median(np.abs(gaps - length)) > 0.1 * length:
            continue
        covered = _covered(anchors, length, len(symbols))
        unit = _Unit(anchors, length, 1.0, covered)
        if _better(unit, best):  # or no share of explained kernels makes it so
            unit = replace(unit, explained=_explained(symbols, anchors, length, by_chance))
            best = unit if _better(unit, best) else best
    return best


def _covered(anchors: Int64s, length: int, count: int) -> float:
    """Return the share of a sequence of `count` kernels that lies in the units."""
    return (min(int(anchors[-1]) + length, count) - int(anchors[0])) / count


def _to_the_end(symbols: UInt64s, anchors: Int64s) -> Int64s:
    """Add the units that begin in the last few places, which have no whole context."""
    length = max(int(median(np.diff(anchors))), 1)
    more = np.arange(int(anchors[-1]) + length, len(symbols), length)
    more = more[more > len(symbols) - CONTEXT]
    if not len(more) or more[0] != anchors[-1] + length:
        return anchors
    alike = symbols[more] == symbols[anchors[0]]
    return np.concatenate((anchors, more[np.logical_and.accumulate(alike)]))


def _from_the_beginning(symbols: UInt64s, anchors: Int64s) -> Int64s:
    """Begin the units as early as the first one allows: an anchor may lie inside the unit."""
    room = min(int(anchors[0]), int(np.diff(anchors).min()) - 1)
    if room <= 0:
        return anchors
    back = np.arange(1, room + 1)
    some = anchors[:: max(len(anchors) // SAMPLED_UNITS, 1)]
    alike = symbols[some[:, None] - back] == symbols[anchors[0] - back]
    common = np.mean(alike, axis=0) >= MIN_COMMON
    return anchors - int(np.logical_and.accumulate(common).sum())


def _time_covered(trace: Trace, rows: npt.NDArray[np.intp], unit: _Unit) -> float:
    """Return the share of the device's active span from the first unit to the end of the last."""
    span = device_span(trace)
    if span is None:
        return 0.0
    last = rows[min(int(unit.anchors[-1]) + unit.length, len(rows)) - 1]
    first = rows[int(unit.anchors[0])]
    kernels = trace.kernels
    covered = int(kernels["end_ns"][last]) - int(kernels["start_ns"][first])
    return covered / (span[1] - span[0])


def _better(one: _Unit, other: _Unit | None) -> bool:
    if other is None:
        return True
    return one.explained * one.coverage > other.explained * other.coverage + 0.001


def _explained(symbols: UInt64s, anchors: Int64s, length: int, by_chance: float) -> float:
    """Return the share of kernels that stand at the same place of the unit before.

    Beyond what chance explains where one kernel prevails (Cohen's kappa).
    """
    size = np.diff(anchors)
    if len(size) < 2:
        return 0.0
    pairs = _sampled(size)
    usual = (size[pairs] == length) & (size[pairs + 1] == length)
    unit = np.lib.stride_tricks.sliding_window_view(symbols, length)
    here = anchors[pairs[usual] + 1]
    alike = int(np.count_nonzero(unit[here] == unit[here - length]))
    alike += _alike(symbols, anchors, pairs[~usual])
    share = alike / int(size[pairs + 1].sum())
    return share if by_chance == 1 else (share - by_chance) / (1 - by_chance)


def _alike(symbols: UInt64s, anchors: Int64s, pairs: Int64s) -> int:
    """Return how many kernels stand at the same place of the unit before, of some units.

    Counted from the beginning of both units or from their ends, so that a kernel more or less
    in between spoils only itself.
    """
    before, here = np.diff(anchors)[pairs], np.diff(anchors)[pairs + 1]
    begin = np.cumsum(here) - here

    def of_each(values: Int64s) -> npt.NDArray[np.int32]:
        return np.repeat(values.astype(np.int32), here)

    place = np.arange(int(here.sum()), dtype=np.int32)
    inside = place - of_each(begin)
    place += of_each(anchors[pairs + 1] - begin)
    mine = symbols[place]
    alike = (symbols[place - of_each(before)] == mine) & (inside < of_each(before))
    place -= of_each(here)  # from behind the sequence where it is negative; not counted there
    alike |= (symbols[place] == mine) & (inside >= of_each(here - before))
    return int(np.count_nonzero(alike))


def _sampled(size: Int64s) -> Int64s:
    """Return the units to compare with the next: all, or a few stretches of a long sequence.

    Stretches, not every so many-th unit: that would always meet the same layer of a step.
    """
    last = len(size) - 1
    begins = np.cumsum(size) - size
    total = int(size.sum())
    if total <= MAX_COMPARED:
        return np.arange(last)
    length = MAX_COMPARED // STRETCHES
    chosen = np.zeros(last, dtype=np.bool_)
    for begin in np.linspace(0, total - length, STRETCHES).tolist():
        low, high = np.searchsorted(begins, (begin, begin + length))
        chosen[min(int(low), last - 1) : int(high) + 1] = True
    return np.flatnonzero(chosen)


def _by_chance(symbols: UInt64s) -> float:
    """Return how likely two kernels drawn at random are the same."""
    some = np.sort(symbols[:: max(len(symbols) // MAX_COMPARED, 1)])
    edges = np.flatnonzero(np.concatenate(([True], some[1:] != some[:-1], [True])))
    return float(np.sum((np.diff(edges) / len(some)) ** 2))


def _best(units: list[_Unit], count: int) -> _Unit | None:
    """Return the shortest of the units that explain the sequence about as well as any."""
    units = [
        unit
        for unit in units
        if unit.coverage >= MIN_CONFIDENCE
        and unit.explained >= MIN_EXPLAINED
        and count >= unit.length
    ]
    if not units:
        return None
    left = min(1 - unit.explained for unit in units)
    allowed = max(UNEXPLAINED_FACTOR * left, UNEXPLAINED)
    return min(
        (unit for unit in units if 1 - unit.explained <= allowed), key=lambda unit: unit.length
    )


def _family(
    trace: Trace, launches: LaunchTimes, rows: npt.NDArray[np.intp], unit: _Unit
) -> IterationFamily:
    """Return the units as periods: from the launch of the first kernel to that of the next."""
    at = called_at(trace.kernels, launches.call_of_kernel, launches)[rows]
    if bool((np.diff(at[unit.anchors]) <= 0).any()):  # one call launched several units
        at = trace.kernels["start_ns"][rows].astype(np.int64)
    behind = np.append(unit.anchors[1:], min(int(unit.anchors[-1]) + unit.length, len(rows)))
    starts, last = at[unit.anchors], at[behind - 1]
    end = at[behind[-1]] if behind[-1] < len(rows) else last[-1] + 1
    ends = np.append(starts[1:], max(int(end), int(last[-1]) + 1))
    process = int(ids(trace.kernels["process_id"][rows[:1]])[0])
    return IterationFamily(
        None if process == UNKNOWN else process,
        None,
        "",
        f"repeating unit of {unit.length} kernel{'s' if unit.length > 1 else ''}",
        np.empty(0, dtype=np.int64),
        starts,
        np.minimum(last + 1, ends),
        ends,
    )
