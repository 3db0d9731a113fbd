"""Counters of another run, laid on the kernels of this trace: TBD's method.

Durations come from a plain trace, counts from a run of the same program under a profiler that
replays kernels. Both name a kernel and its launch shape; how often it ran, and in which order, need
not agree. Only counts are taken over, never times, rates or percentages of the other run.

- *alike*: where the FLOPs of a group's executions differ by 2 % at most, each counts as their mean.
- *order*: where they differ by more, and both runs launched the group as often, the n-th execution
  of a process counts as the n-th that was counted.
- *bounds*: else each counts as their mean, and lies between the least and the most of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_recipes import UNITS
from kernelscope.metrics.counted_work import Counted, Group, Quantity, Shape, counted_work
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.health import Finding
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.kernel_spelling import SPELLINGS
from kernelscope.metrics.launch_times import LaunchTimes, called_at, launch_times
from kernelscope.metrics.window import Window, clipped_durations, starts_inside, whole
from kernelscope.metrics.work_results import COUNTER_JOIN, WORK
from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.trace import Categorical, Table, Trace, missing_value, widened

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ALIKE = 0.02
"""Executions whose FLOPs differ by this share of their mean, or less, are taken as equal."""

MATCHED, ONLY_HERE, ONLY_THERE = "matched", "only_in_trace", "only_in_counters"
WITHOUT_SHAPE = "without shape"
_MISSING = int(missing_value(np.dtype(np.int64)))


@dataclass(frozen=True, slots=True, eq=False)
class CounterJoin:
    """What counters say of the kernels of a trace.

    Attributes
    ----------
    work : Table
        Under ``work_results.WORK``: a row per kernel and quantity.
    join : Table
        Under ``work_results.COUNTER_JOIN``: a row per launch shape, of the trace or counted.
    findings : tuple of Finding
        What there is to doubt.
    """

    work: Table
    join: Table
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Shapes:
    """The kernels of a trace by name and launch shape, g of them.

    Attributes
    ----------
    of_kernel : ndarray of int32, shape (n,)
        The group of each kernel.
    names : list of str
        Of each group.
    shapes : list of tuple
        Grid and block of each; None where neither was recorded.
    executions : ndarray of int64, shape (g,)
        In the whole trace.
    started, total_ns : ndarray of int64, shape (g,)
        Executions that start in the window, and the time of all inside it.
    """

    of_kernel: npt.NDArray[np.int32]
    names: list[str]
    shapes: list[Shape]
    executions: Int64s
    started: Int64s
    total_ns: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Match:
    """A group of the trace, what was counted of it, and how the names agree."""

    place: int
    group: Group
    by: str


def join_counters(
    trace: Trace,
    window: Window | None,
    counted: CounterSet,
    *,
    launches: LaunchTimes | None = None,
    same_run: bool = False,
) -> CounterJoin:
    """How much work did the kernels of a trace do, by the counters of another run?

    Parameters
    ----------
    trace : Trace
        The plain trace, or what was chosen of it.
    window : Window or None
        Where to look; None for the whole trace.
    counted : CounterSet
        Of one run or several, which may have counted different things.
    launches : LaunchTimes, optional
        Of the same trace: the order of launches is theirs.
    same_run : bool
        Whether the counters are of the executions of this trace.
    """
    window = window or whole(trace)
    shapes = _shapes(trace.kernels, window)
    kept, elsewhere = _of_this_gpu(trace, counted)
    groups = counted_work(kept, _capability(trace))
    matches = list(_matches(shapes, groups))
    order = _Order(trace, window, shapes, launches, same_run)
    rows: dict[tuple[str, str], list[tuple[_Match, Quantity, Counted, str]]] = defaultdict(list)
    hows = {}
    for match in matches:
        how, each = order.of(match)
        hows[match.place] = how
        for name, quantity in match.group.work.items():
            figures = each(quantity.counted)
            rows[shapes.names[match.place], name].append((match, quantity, figures, how))
    work = _work(trace, shapes, rows)
    join = _join(shapes, groups, matches, hows)
    return CounterJoin(work, join, tuple(_findings(join, matches, shapes, elsewhere, same_run)))


def _shapes(kernels: Table, window: Window) -> _Shapes:
    if not len(kernels):
        nothing = np.empty(0, dtype=np.int64)
        return _Shapes(nothing.astype(np.int32), [], [], nothing, nothing, nothing)
    of_kernel, (code, *shape) = grouped([kernels["name"], *(kernels[part] for part in SHAPE)])
    count = len(code)
    names = kernels.categories("name")
    columns = [widened(column).tolist() for column in shape]
    shapes: list[Shape] = [
        None if row[0] == _MISSING else row for row in zip(*columns, strict=True)
    ]
    inside = starts_inside(kernels, window)
    return _Shapes(
        of_kernel,
        [names[each] if each >= 0 else "" for each in code.tolist()],
        shapes,
        np.bincount(of_kernel, minlength=count).astype(np.int64),
        np.bincount(of_kernel[inside], minlength=count).astype(np.int64),
        sums_by(of_kernel, clipped_durations(kernels, window), count),
    )


def _capability(trace: Trace) -> tuple[int, int] | None:
    """Return the compute capability of the trace's GPUs, where they have one in common."""
    table = trace.devices
    pairs = set(zip(table.values("compute_major"), table.values("compute_minor"), strict=True))
    known = {(major, minor) for major, minor in pairs if major is not None and minor is not None}
    return known.pop() if len(known) == 1 else None


def _of_this_gpu(trace: Trace, counted: CounterSet) -> tuple[CounterSet, list[str]]:
    """Return the counters of GPUs of the trace's compute capability, and what others there were.

    For another one kernels are compiled, and chosen, anew.
    """
    here = _capability(trace)
    table = counted.executions
    pairs = list(zip(table.values("compute_major"), table.values("compute_minor"), strict=True))
    foreign = np.array(
        [
            here is not None and major is not None and (major, minor) != here
            for major, minor in pairs
        ],
        dtype=np.bool_,
    )
    if not foreign.any():
        return counted, []
    runs = np.unique(table["run"][foreign])
    names = sorted(
        {f"{a}.{b}" for (a, b), is_foreign in zip(pairs, foreign, strict=True) if is_foreign}
    )
    there = ~np.isin(counted.counters["run"], runs)
    stay = ~np.isin(table["run"], runs)
    left = CounterSet(
        counted.counters.take(there), table.take(stay), counted.sources, counted.warnings
    )
    return left, names


def _matches(shapes: _Shapes, groups: Sequence[Group]) -> Iterator[_Match]:
    """Yield which group of the trace was counted as which group, the strictest spelling first.

    A looser spelling counts only where one group of either side is left that it fits.
    """
    here, there = set(range(len(shapes.names))), set(range(len(groups)))
    spell = _Spelled()
    for by, spelling in SPELLINGS:
        mine = _only(
            {i: (spell(spelling, shapes.names[i]), shapes.shapes[i]) for i in sorted(here)}
        )
        theirs = _only(
            {i: (spell(spelling, groups[i].name), groups[i].shape) for i in sorted(there)}
        )
        for key, number in theirs.items():
            if key in mine and key[1] is not None:
                yield _Match(mine[key], groups[number], by)
                here.remove(mine[key])
                there.remove(number)
    shapeless = [number for number in sorted(there) if groups[number].shape is None]
    for _, spelling in SPELLINGS:
        names: dict[str, set[str]] = defaultdict(set)
        for place in here:
            names[spell(spelling, shapes.names[place])].add(shapes.names[place])
        theirs = _only({number: spell(spelling, groups[number].name) for number in shapeless})
        for key, number in theirs.items():
            if len(names.get(key, ())) == 1:
                [name] = names[key]
                for place in [each for each in sorted(here) if shapes.names[each] == name]:
                    yield _Match(place, groups[number], WITHOUT_SHAPE)
                    here.remove(place)
                shapeless.remove(number)


class _Spelled(dict[tuple[Callable[[str], str], str], str]):
    """Names by spelling: a name that ran in many shapes is spelled once."""

    def __call__(self, spelling: Callable[[str], str], name: str | None) -> str:
        return self[spelling, name or ""]

    def __missing__(self, key: tuple[Callable[[str], str], str]) -> str:
        spelling, name = key
        self[key] = spelling(name)
        return self[key]


def _only(keys: Mapping[int, Any]) -> dict[Any, int]:
    """Return the numbers whose key no other has, by key."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in keys.items():
        found[key].append(number)
    return {each: same[0] for each, same in found.items() if len(same) == 1}


class _Order:
    """Which execution of a group is which that was counted; found out only where it matters."""

    def __init__(
        self,
        trace: Trace,
        window: Window,
        shapes: _Shapes,
        launches: LaunchTimes | None,
        same_run: bool,
    ) -> None:
        self._trace, self._window, self._shapes = trace, window, shapes
        self._launches, self._same_run = launches, same_run
        self._sorted: tuple[npt.NDArray[np.intp], list[int]] | None = None
        self._inside = starts_inside(trace.kernels, window)

    def of(self, match: _Match) -> tuple[str, Callable[[Counted], Counted]]:
        """Return how a group's executions were counted, and what of a quantity is the window's."""
        started = int(self._shapes.started[match.place])
        told = match.by != WITHOUT_SHAPE
        if told and (self._same_run or match.group.spread > ALIKE):
            places = self._places(match)
            if places is not None:
                how = "same execution" if self._same_run else "order"
                return how, lambda counted: _picked(counted, places, started)
        if match.group.spread > ALIKE or not told:
            return "bounds", lambda counted: _times(counted, started)
        return "alike", lambda counted: _times(counted, started)

    def _places(self, match: _Match) -> Int64s | None:
        """Return the number, in its process, of each execution of a group inside the window.

        None where a process launched the group more or less often than was counted.
        """
        rows = self._rows(match.place)
        process = self._trace.kernels["process_id"][rows]
        if (np.bincount(grouped([process])[0]) != match.group.executions).any():
            return None
        number = np.arange(len(rows)) % match.group.executions
        return number[self._inside[rows]]

    def _rows(self, place: int) -> npt.NDArray[np.intp]:
        """Return the kernels of a group by process, then launch."""
        if self._sorted is None:
            trace, of = self._trace, self._shapes.of_kernel
            if self._same_run:
                at: Int64s = np.arange(len(of), dtype=np.int64)
            else:
                launches = self._launches or launch_times(trace)
                at = called_at(trace.kernels, launches.call_of_kernel, launches)
            start = trace.kernels["start_ns"]
            order = np.lexsort((start, at, trace.kernels["process_id"], of))
            bounds = np.cumsum(np.bincount(of, minlength=len(self._shapes.names))).tolist()
            self._sorted = order, [0, *bounds]
        order, bounds = self._sorted
        return order[bounds[place] : bounds[place + 1]]


def _times(counted: Counted, executions: int) -> Counted:
    """Return the figures of so many executions."""
    return Counted(
        executions, executions * counted.mean, executions * counted.low, executions * counted.high
    )


def _picked(counted: Counted, places: Int64s, executions: int) -> Counted:
    """Return the sum over some executions; of what is not known one by one, between bounds."""
    if counted.each is None or (len(places) and int(places.max()) >= len(counted.each)):
        return _times(counted, executions)
    total = float(counted.each[places].sum())
    return Counted(executions, total, np.nan if np.isnan(counted.low) else total, total)


def _work(
    trace: Trace,
    shapes: _Shapes,
    rows: Mapping[tuple[str, str], Sequence[tuple[_Match, Quantity, Counted, str]]],
) -> Table:
    executions: dict[str, int] = defaultdict(int)
    time: dict[str, int] = defaultdict(int)
    for name, started, total in zip(
        shapes.names, shapes.started.tolist(), shapes.total_ns.tolist(), strict=True
    ):
        executions[name] += started
        time[name] += total
    serialised = trace.capture.serialised is not None
    places = {name: number for number, name in enumerate(UNITS)}
    keys = sorted(
        (key for key in rows if executions[key[0]]),
        key=lambda key: (-time[key[0]], key[0], places[key[1]]),
    )
    records: dict[str, list[Any]] = defaultdict(list)
    for name, quantity in keys:
        parts = rows[name, quantity]
        counted_ns = sum(int(shapes.total_ns[match.place]) for match, *_ in parts)
        value, low, high = (
            sum(getattr(figures, each) for _, _, figures, _ in parts)
            for each in ("mean", "low", "high")
        )
        for column, entry in {
            "name": name,
            "quantity": quantity,
            "unit": UNITS[quantity],
            "value": value,
            "low": low,
            "high": high,
            "rate_per_s": np.nan if serialised or not counted_ns else value / counted_ns * 1e9,
            "executions": executions[name],
            "counted_executions": sum(figures.executions for _, _, figures, _ in parts),
            "coverage": counted_ns / time[name] if time[name] else np.nan,
            "how": _one([how for *_, how in parts]),
            "source": "counters",
            "counters": _one([each.counters for _, each, _, _ in parts]),
            "caveat": _one([each.caveat for _, each, _, _ in parts if each.caveat]),
        }.items():
            records[column].append(entry)
    return _table(WORK, records)


def _one(texts: Sequence[str]) -> str | None:
    """Return texts that may differ as one."""
    return "; ".join(dict.fromkeys(texts)) or None


def _table(schema: Any, records: Mapping[str, list[Any]]) -> Table:
    columns: dict[str, Any] = {}
    for column in schema.columns:
        values = records.get(column.name, [])
        if column.dtype == "category":
            columns[column.name] = Categorical.of(values)
        elif column.dtype == "int64":
            whole_numbers = [_MISSING if value is None else value for value in values]
            columns[column.name] = np.array(whole_numbers, dtype=np.int64)
        else:
            columns[column.name] = np.array(values, dtype=np.float64)
    return Table.make(schema, columns)


def _join(
    shapes: _Shapes,
    groups: Sequence[Group],
    matches: Sequence[_Match],
    hows: Mapping[int, str],
) -> Table:
    total = int(shapes.total_ns.sum())
    matched = {match.place: match for match in matches}
    used = {id(match.group) for match in matches}
    records: dict[str, list[Any]] = defaultdict(list)

    def add(place: int | None, group: Group | None, by: str | None) -> None:
        here, there = place is not None, group is not None
        shape = shapes.shapes[place] if place is not None else group.shape if group else None
        spent = int(shapes.total_ns[place]) if place is not None else 0
        entries = {
            "name": shapes.names[place] if place is not None else None,
            "counted_name": group.name if group else None,
            "status": MATCHED if here and there else ONLY_HERE if here else ONLY_THERE,
            "matched_by": by,
            "executions": int(shapes.executions[place]) if place is not None else 0,
            "counted_executions": group.executions if group else 0,
            "spread": group.spread if group else np.nan,
            "how": None if place is None else hows.get(place),
            "total_ns": spent,
            "share": spent / total if total else np.nan,
        }
        for number, name in enumerate(SHAPE):
            part, _, axis = name.partition("_")
            entries[f"{part}.{'xyz'.index(axis)}"] = None if shape is None else shape[number]
        for column, entry in entries.items():
            records[column].append(entry)

    for place in np.argsort(-shapes.total_ns, kind="stable").tolist():
        match = matched.get(place)
        add(place, match.group if match else None, match.by if match else None)
    for group in groups:
        if id(group) not in used:
            add(None, group, None)
    return _table(COUNTER_JOIN, records)


def _findings(
    join: Table,
    matches: Sequence[_Match],
    shapes: _Shapes,
    elsewhere: Sequence[str],
    same_run: bool,
) -> Iterator[Finding]:
    if elsewhere:
        yield Finding(
            "counters_of_another_gpu",
            "warning",
            len(elsewhere),
            f"Counters were left out that are of compute capability {', '.join(elsewhere)}: for "
            "another GPU kernels are compiled, and chosen, anew.",
        )
    status = join.texts("status")
    share = sum(
        part for part, each in zip(join.values("share"), status, strict=True)
        if each == MATCHED and part is not None
    )  # fmt: skip
    if ONLY_HERE in status:
        yield Finding(
            "kernels_not_counted",
            "info" if share >= _MOST else "warning",
            status.count(ONLY_HERE),
            f"Counters cover {share:.0%} of the kernels' time: {status.count(ONLY_HERE)} launch "
            "shapes of the trace were not counted (table counter_join).",
        )
    if ONLY_THERE in status:
        yield Finding(
            "counted_elsewhere",
            "info",
            status.count(ONLY_THERE),
            f"{status.count(ONLY_THERE)} launch shapes were counted that this trace does not hold: "
            "the run that counted did something else, too.",
        )
    differing = [
        match for match in matches
        if match.by != WITHOUT_SHAPE and shapes.executions[match.place] != match.group.executions
    ]  # fmt: skip
    if differing and not same_run:
        yield Finding(
            "counted_another_number",
            "info",
            len(differing),
            f"{len(differing)} launch shapes ran another number of times than were counted: their "
            "executions count as the mean of those, between the least and the most.",
        )
    cold = [match for match in matches if any(q.caveat for q in match.group.work.values())]
    if any(q.caveat == "cold_cache" for match in cold for q in match.group.work.values()):
        yield Finding(
            "cold_cache",
            "info",
            len(cold),
            "Nsight Compute emptied the caches before every pass: bytes of DRAM are upper bounds "
            "(ncu --cache-control none leaves them alone).",
        )


_MOST = 0.9
"""Counters that cover this share of the kernels' time speak for all of them."""
