"""Means of sampled metrics over stretches of time: which samples count, and with which weight.

Stretches have owners: a window, an iteration, a range path. Those of one owner are disjoint.
Either every sample counts with the time that it shares with its owner's stretches; or only one
that lies there almost whole does. Between its two ends a stretch holds whole samples only, which
running totals add up; the samples at its ends are looked at one by one. That takes
O((n + k) log n) for n samples and k stretches, however many samples a stretch holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import begins
from kernelscope.metrics.intervals import Pieces, sorting, sums_by
from kernelscope.metrics.runs import running_total
from kernelscope.metrics.sample_series import Series
from kernelscope.trace import Array

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

WHOLE = (19, 20)
"""A sample counts for a kernel or range only if at least this share of it lies there: 95 %."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shares:
    """Which samples count for each of some owners.

    Attributes
    ----------
    owners : int
        How many owners there are.
    owner, first, last : ndarray of int, shape (r,)
        Runs of samples that count whole.
    of, sample, weight : ndarray of int, shape (s,)
        Samples that count with a part of their time, in ns; each once for an owner.
    """

    owners: int
    owner: Array
    first: Array
    last: Array
    of: Array
    sample: Array
    weight: Int64s


def shares(series: Series, pieces: Pieces, owner: Array, owners: int, *, whole: bool) -> Shares:
    """Which samples count for whom?

    Parameters
    ----------
    series : Series
        The samples.
    pieces : Pieces
        Stretches of time; those of one owner disjoint.
    owner : ndarray of int, shape (k,)
        Whose each is.
    owners : int
        How many owners there are.
    whole : bool
        Whether only samples count that lie in their owner's stretches by :data:`WHOLE`.
    """
    long = np.flatnonzero(pieces[1] > pieces[0])
    begin, end, owner = pieces[0][long], pieces[1][long], owner[long]
    low = np.searchsorted(series.end, begin, side="right")
    high = np.searchsorted(series.start, end, side="left")
    some = np.flatnonzero(high > low)
    begin, end, owner, low, high = (each[some] for each in (begin, end, owner, low, high))
    first = low + (series.start[low] < begin)
    last = high - (series.end[high - 1] > end)
    run = np.flatnonzero(last > first)
    left = np.flatnonzero(first > low)
    # A stretch inside one sample has one end only.
    right = np.flatnonzero((last < high) & ((high - 1 > low) | (first == low)))
    piece = np.concatenate((left, right))
    sample = np.concatenate((low[left], high[right] - 1))
    weight = np.minimum(series.end[sample], end[piece])
    weight -= np.maximum(series.start[sample], begin[piece])
    of, sample, weight = _added(owner[piece], sample, weight, len(series.start))
    if whole:
        length = series.end[sample] - series.start[sample]
        kept = WHOLE[1] * weight >= WHOLE[0] * length
        of, sample, weight = of[kept], sample[kept], weight[kept]
    return Shares(owners, owner[run], first[run], last[run], of, sample, weight)


def single_shares(of: Array, sample: Array, weight: Int64s, owners: int) -> Shares:
    """Return the shares of samples that are known one by one."""
    none = np.zeros(0, dtype=np.intp)
    return Shares(owners, none, none, none, of, sample, weight)


def _added(of: Array, sample: Array, weight: Int64s, samples: int) -> tuple[Array, Array, Int64s]:
    """Add up the weights of one sample for one owner: two stretches may end in it."""
    if not len(of):
        return of, sample, weight
    key = of.astype(np.int64) * samples + sample
    order = sorting(key)
    key = key[order]
    new = np.flatnonzero(begins(key))
    of, sample = np.divmod(key[new], samples)
    return of, sample, np.add.reduceat(weight[order], new)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Means:
    """What one metric comes to for each of k owners.

    Attributes
    ----------
    samples, covered_ns : ndarray of int64, shape (k,)
        How many samples count, and the time that counts.
    mean : ndarray of float64, shape (k,)
        Of levels weighted by that time; of counts per ns. NaN where nothing counts.
    """

    samples: Int64s
    covered_ns: Int64s
    mean: Floats


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Totals:
    """Running totals of one metric over all samples, made once for all scopes."""

    count: Int64s | None
    time: Int64s
    sum: Floats
    value: Floats
    valid: Bools | None


def totals(series: Series, metric: int) -> Totals:
    """Return what :func:`means` needs of a metric, whatever it is asked of."""
    valid, length = series.valid(metric), series.end - series.start
    value = series.values[:, metric].astype(np.float64)
    if valid is not None:
        value[~valid] = 0.0
        length = np.where(valid, length, 0)
    whole = value if series.meanings[metric].counted else value * length
    total = np.zeros(len(value) + 1)
    np.cumsum(whole, out=total[1:])
    count = None if valid is None else running_total(valid)
    return Totals(count, running_total(length), total, value, valid)


def means(series: Series, metric: int, found: Totals, given: Shares) -> Means:
    """What does a metric come to for each owner?

    Parameters
    ----------
    series : Series
        The samples.
    metric : int
        Which of its metrics.
    found : Totals
        What :func:`totals` returned of it.
    given : Shares
        Which samples count for whom.

    Notes
    -----
    A level holds throughout the time of its sample: mean = Σ value · weight / Σ weight. A count
    is spread evenly over it: rate = Σ value · (weight / length) / Σ weight.
    """
    first, last, sample, weight = given.first, given.last, given.sample, given.weight
    of = given.of
    if found.valid is not None:
        kept = found.valid[sample]
        of, sample, weight = of[kept], sample[kept], weight[kept]
    runs = last - first if found.count is None else found.count[last] - found.count[first]
    samples = sums_by(given.owner, runs, given.owners)
    samples += np.bincount(of, minlength=given.owners)
    covered = sums_by(given.owner, found.time[last] - found.time[first], given.owners)
    covered += sums_by(of, weight, given.owners)
    part = found.value[sample] * weight
    if series.meanings[metric].counted:
        part /= series.end[sample] - series.start[sample]
    amount = np.zeros(given.owners)  # bincount counts in integers where there is nothing
    amount += np.bincount(given.owner, found.sum[last] - found.sum[first], given.owners)
    amount += np.bincount(of, part, given.owners)
    mean = np.full(given.owners, np.nan)
    np.divide(amount, covered, out=mean, where=covered > 0)
    return Means(samples, covered, mean)
