"""GPU samples as series: the stretches of time that samples speak of, and a value per metric.

A sample covers the time from the previous sample of its source to its own (METRICS, *Work*), as a
half-open interval like all others here. The first one covers nothing, and neither does one that
follows a gap: an interval of more than :data:`LONGEST_PERIODS` periods of its source, since the
samples between were lost. The samples of a source are taken at one moment for all its metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import begins
from kernelscope.metrics.intervals import ascending, sorting
from kernelscope.metrics.sample_names import Meaning, meaning
from kernelscope.trace import Array, Table, is_missing, median, missing_value

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LONGEST_PERIODS = 2
"""A sample speaks of at most so many periods: after that, samples were lost."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Series:
    """The samples of one source, n intervals of m metrics.

    Attributes
    ----------
    source : str
        The profiler's id of it.
    gpu_id : int or None
        The profiler's number of the GPU.
    start, end : ndarray of int64, shape (n,)
        The intervals, ascending and disjoint.
    metrics : tuple of str
        Their names.
    meanings : tuple of Meaning
        What they are.
    values : ndarray of int32 or int64, shape (n, m)
        As recorded; the type's least value where there is none.
    whole : bool
        Whether every value is there.
    period_ns : float or None
        Median time between samples.
    gaps, lost_ns : int
        Stretches between samples that are too long to speak of, and their time.
    repeated : int
        Values of which there are several for one moment: none of them is used.
    """

    source: str
    gpu_id: int | None
    start: Int64s
    end: Int64s
    metrics: tuple[str, ...]
    meanings: tuple[Meaning, ...]
    values: Array
    whole: bool
    period_ns: float | None
    gaps: int
    lost_ns: int
    repeated: int

    def valid(self, metric: int) -> Bools | None:
        """Return which values of a metric are there; None where all are."""
        if self.whole:
            return None
        found = ~is_missing(self.values[:, metric])
        return None if found.all() else found


def series_of(samples: Table) -> tuple[Series, ...]:
    """Return the series of every source, by GPU and source.

    Parameters
    ----------
    samples : Table
        Under ``schema.GPU_SAMPLES``; in any order.
    """
    if not len(samples):
        return ()
    found = []
    for code, name in enumerate(samples.categories("source")):
        rows = _rows(samples, code)
        if rows is None or len(rows):
            found.append(_series(samples, rows, name))
    return tuple(sorted(found, key=lambda each: (each.gpu_id is None, each.gpu_id, each.source)))


def _rows(samples: Table, source: int) -> npt.NDArray[np.intp] | None:
    """Return the rows of a source; None where they are all rows."""
    if len(samples.categories("source")) == 1:
        return None
    return np.flatnonzero(samples["source"] == source)


def _series(samples: Table, rows: npt.NDArray[np.intp] | None, source: str) -> Series:
    time, metric, value, problem, gpu = (
        samples[name] if rows is None else samples[name][rows]
        for name in ("time_ns", "metric", "value", "problem", "gpu_id")
    )
    gpu_id = None if is_missing(gpu[:1])[0] else int(gpu[0])
    bad = problem >= 0 if problem.max() >= 0 else None
    if bad is not None:
        timeless = _timeless(samples)[problem]
        value = np.where(bad, value.dtype.type(missing_value(value.dtype)), value)
        time, metric, value = (each[~timeless] for each in (time, metric, value))
    if not ascending(time):
        order = sorting(time)
        time, metric, value = time[order], metric[order], value[order]
    return _of_ordered(samples, (source, gpu_id), time, metric, value)


def _timeless(samples: Table) -> Bools:
    """Return which problems mean that a sample has no place in time; the last place: none."""
    return np.array(
        [*(each in ("no_time", "time_outside") for each in samples.categories("problem")), False]
    )


def _of_ordered(
    samples: Table, whose: tuple[str, int | None], time: Int64s, metric: Array, value: Array
) -> Series:
    """Return the series of rows in order of time."""
    new = begins(time) if len(time) else np.zeros(0, dtype=np.bool_)
    first = np.flatnonzero(new)
    used, column = _columns(metric, len(samples.categories("metric")))
    values, repeated = _matrix(new, column, value, (len(first), len(used)))
    moments = time[first]
    start, end = moments[:-1], moments[1:]
    length = end - start
    period = median(length) if len(length) else None
    kept = length <= LONGEST_PERIODS * period if period is not None else np.ones(0, np.bool_)
    values = values[1:]
    if not kept.all():
        start, end, values = start[kept], end[kept], values[kept]
    names = tuple(samples.categories("metric")[code] for code in used)
    return Series(
        source=whose[0],
        gpu_id=whose[1],
        start=start,
        end=end,
        metrics=names,
        meanings=tuple(map(meaning, names)),
        values=values,
        whole=not len(values) or int(values.min()) != missing_value(values.dtype),
        period_ns=period,
        gaps=int(np.count_nonzero(~kept)),
        lost_ns=int(length[~kept].sum()),
        repeated=repeated,
    )


def _columns(metric: Array, metrics: int) -> tuple[list[int], Array]:
    """Return the metrics that occur, and the place of each row's among them."""
    seen = np.bincount(metric, minlength=metrics) > 0 if len(metric) else np.zeros(metrics, bool)
    used = np.flatnonzero(seen)
    if len(used) == metrics:
        return used.tolist(), metric
    place = np.zeros(metrics, dtype=np.int32)
    place[used] = np.arange(len(used))
    return used.tolist(), place[metric]


def _matrix(new: Bools, column: Array, value: Array, shape: tuple[int, int]) -> tuple[Array, int]:
    """Return values by moment and metric, and how many were given several times.

    Most exports write every metric of every moment in one order: the column is the matrix then.
    """
    moments, metrics = shape
    if moments and len(value) == moments * metrics and new[::metrics].all():
        grid = column.reshape(shape)
        if bool((grid == grid[0]).all()) and len(set(grid[0].tolist())) == metrics:
            values = value.reshape(shape)
            place = np.argsort(grid[0])
            return (values if ascending(grid[0]) else values[:, place]), 0
    cell = np.cumsum(new, dtype=np.int64)
    cell -= 1
    cell *= metrics
    cell += column
    missing = value.dtype.type(missing_value(value.dtype))
    flat = np.full(moments * metrics, missing)
    flat[cell] = value
    times = np.bincount(cell, minlength=len(flat)) if len(cell) else np.zeros(0, np.int64)
    several = times > 1
    flat[several] = missing
    return flat.reshape(shape), int(times[several].sum())
