"""Values of one counter over the executions of a group, and how they are added and multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counted:
    """Values of one counter over the executions of a group.

    Attributes
    ----------
    executions : int
        How many.
    mean, low, high : float
        Of an execution; the extremes are as wide as the printed digits leave open. `high` is NaN
        where an execution has no value: it may have overflowed.
    spread : float
        (most − least) / mean; infinite where it cannot be known.
    each : ndarray of float64, shape (executions,), or None
        One by one, in the order of launches, where every one is known.
    rounding : float
        How far the value of one execution may lie from what was counted: by the printed digits,
        and by how far runs that counted it again lie from their mean.
    disagreement : float
        (most − least) / mean of what several runs say of an execution; 0 of one run.
    """

    executions: int
    mean: float
    low: float
    high: float
    spread: float
    each: Floats | None = None
    rounding: float = 0.0
    disagreement: float = 0.0

    def times(self, executions: int) -> Counted:
        """Return the sum over so many executions, each somewhere between the extremes."""
        return Counted(
            executions,
            executions * self.mean,
            executions * self.low,
            executions * self.high,
            self.spread,
        )

    def is_told(self, executions: int) -> bool:
        """Return whether there is a value of each of so many executions."""
        return self.each is not None and len(self.each) == executions

    def picked(self, places: npt.NDArray[np.int64], counted: int) -> Counted:
        """Return the sum over some executions of `counted`; see :meth:`times` if not one by one."""
        if self.each is None or not self.is_told(counted):
            return self.times(len(places))
        total = float(self.each[places].sum())
        slack = len(places) * self.rounding
        return Counted(len(places), total, max(total - slack, 0.0), total + slack, self.spread)


def one_by_one(values: Floats, rounding: Floats, executions: int) -> Counted | None:
    """Return what a run counted execution by execution; None where there is no value at all.

    Parameters
    ----------
    values, rounding : ndarray of float64, shape (n,)
        In the order of launches; NaN where there is none.
    executions : int
        How many were counted; more than n where some have no row of this counter.
    """
    known = ~np.isnan(values)
    if not known.any():
        return None
    slack = np.nan_to_num(rounding, nan=0.0)
    mean = float(values[known].mean())
    if not known.all() or len(values) != executions:
        return Counted(executions, mean, 0.0, np.nan, np.inf)
    return _together(values, float(slack.max()))


def _together(values: Floats, rounding: float) -> Counted:
    mean, low, high = float(values.mean()), float(values.min()), float(values.max())
    spread = spread_of(mean, low, high)
    return Counted(
        len(values), mean, max(low - rounding, 0.0), high + rounding, spread, values, rounding
    )


def summarised(executions: int, mean: float, low: float, high: float) -> Counted | None:
    """Return what a tool printed of several executions together; None where no mean is known.

    The extremes are NaN where they are not printed.
    """
    if np.isnan(mean):
        return None
    if executions == 1:
        low, high = (mean if np.isnan(each) else each for each in (low, high))
    if np.isnan(low) or np.isnan(high):
        return Counted(executions, mean, 0.0, np.nan, np.inf)
    return Counted(executions, mean, max(low, 0.0), high, spread_of(mean, low, high))


def spread_of(mean: float, low: float, high: float) -> float:
    """Return (most − least) / mean; infinite where an extreme is not known."""
    if np.isnan(low) or np.isnan(high):
        return np.inf
    return (high - low) / mean if mean > 0 else 0.0


def over_runs(runs: Sequence[Counted]) -> Counted:
    """Return what several runs say of one counter: their mean, and the extremes of all."""
    if len(runs) == 1:
        return runs[0]
    means = [run.mean for run in runs]
    mean = float(np.mean(means))
    low, high = min(run.low for run in runs), float(np.max([run.high for run in runs]))
    rounding = max(run.rounding for run in runs)
    executions = max(run.executions for run in runs)
    one_by_one = [run.each for run in runs if run.each is not None]
    each = None
    if len(one_by_one) == len(runs) and len({len(values) for values in one_by_one}) == 1:
        each = np.mean(one_by_one, axis=0)
    spread = spread_of(mean, low, high - 2 * rounding)
    if each is not None:  # what is made of the mean is known no better than the runs agree
        rounding += float(np.max(np.abs(np.array(one_by_one) - each)))
    disagreement = spread_of(mean, min(means), max(means))
    return Counted(executions, mean, low, high, max(spread, 0.0), each, rounding, disagreement)


def added(terms: Sequence[tuple[float, Counted]]) -> Counted:
    """Return Σ factor · counter; its extremes lie within the sums of theirs."""
    rounding = sum(factor * counted.rounding for factor, counted in terms)
    each = [factor * counted.each for factor, counted in terms if counted.each is not None]
    disagreement = _disagreement(terms)
    if len(each) == len(terms) and len({len(values) for values in each}) == 1:
        return replace(_together(np.sum(each, axis=0), rounding), disagreement=disagreement)
    mean, low, high = (
        float(sum(factor * getattr(counted, figure) for factor, counted in terms))
        for figure in ("mean", "low", "high")
    )
    spread = terms[0][1].spread if len(terms) == 1 else spread_of(mean, low, high)
    executions = max(counted.executions for _, counted in terms)
    return Counted(executions, mean, low, high, spread, None, rounding, disagreement)


def _disagreement(terms: Sequence[tuple[float, Counted]]) -> float:
    """Return how far runs differ in a sum at most: each term counts by its part of it."""
    parts = [(factor * counted.mean, counted.disagreement) for factor, counted in terms]
    whole = sum(part for part, _ in parts)
    return sum(part * each for part, each in parts) / whole if whole > 0 else 0.0


def multiplied(rate: Counted, time: Counted, scale: float) -> Counted | None:
    """Return rate · time / scale, execution by execution; None where they are not known so.

    The mean of a product is not the product of the means: what was summed up is left alone.
    """
    if rate.each is None or time.each is None or len(rate.each) != len(time.each):
        return None
    rounding = (rate.each.max() * time.rounding + time.each.max() * rate.rounding) / scale
    return _together(rate.each * time.each / scale, float(rounding))
