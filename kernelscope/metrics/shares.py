"""How much of a pipe or memory groups of launch shapes use: values and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.ceilings import (
    CORE_PIPES,
    MEMORIES,
    TENSOR,
    TENSOR_FLOPS,
    TENSOR_INT,
    Ceiling,
    Ceilings,
)
from kernelscope.metrics.shape_work import Amount, Floats, ShapeWork

Bools = npt.NDArray[np.bool_]
Groups = npt.NDArray[np.integer]

ROUNDING = 0.005
"""Work may be this much more than a peak allows before something must be wrong: clocks are rounded,
and executions that straddle an edge of the window count whole while their time is clipped."""


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """How much of one pipe or memory each group uses; arrays of shape (k,).

    Attributes
    ----------
    resource : str
        What it is: of tensor cores `TENSOR`.
    quantity : str
        The work that was counted of it.
    names : list of str
        What the peak that counts for each group is called.
    value, low, high : ndarray of float64
        Of the executions whose work is known; NaN where nothing is.
    peak : ndarray of float64
        NaN where several may be meant, or none is known.
    bases : list of str or None
        The clock of each peak.
    time_s, coverage : ndarray of float64
        Time of the executions whose work is known, and its share of the group's time.
    none_done : ndarray of bool
        Whether the work is known to be none at all.
    cold : ndarray of bool
        Whether any of it was counted with emptied caches.
    """

    resource: str
    quantity: str
    names: list[str]
    value: Floats
    low: Floats
    high: Floats
    peak: Floats
    bases: list[str | None]
    time_s: Floats
    coverage: Floats
    none_done: Bools
    cold: Bools

    @property
    def known(self) -> Bools:
        """Which groups it says anything of."""
        return np.asarray(self.time_s > 0) & ~(np.isnan(self.low) & np.isnan(self.high))

    @property
    def above(self) -> Bools:
        """Which groups did more than the peak allows: something is wrong with one of the two."""
        with np.errstate(invalid="ignore"):
            return (self.low > 1 + ROUNDING) | (self.value > 1 + ROUNDING)


def shares(work: ShapeWork, ceilings: Ceilings, of: Groups, count: int) -> Iterator[Share]:
    """Yield how much of each pipe and memory groups of launch shapes use, where it was counted.

    Parameters
    ----------
    work : ShapeWork
        The launch shapes and their work.
    ceilings : Ceilings
        The peaks.
    of : ndarray of int, shape (g,)
        The group of each launch shape.
    count : int
        How many groups there are.

    Notes
    -----
    Σ work / Σ peak · time over the launch shapes that were counted. Where several peaks may be
    meant, the highest of them gives the lower bound, the lowest the upper one.
    """
    for quantity, resource in {**CORE_PIPES, **MEMORIES}.items():
        amount = work.amounts.get(quantity)
        if amount is not None:
            one = ceilings.of(resource)
            yield _share(work, amount, [one] * len(work), of, count, (resource, quantity))
    for quantity in (TENSOR_FLOPS, TENSOR_INT):
        amount = work.amounts.get(quantity)
        if amount is not None:
            each = [
                ceilings.of_tensor(quantity, work.name_of(row), amount.formulas.get(row))
                if amount.counted[row]
                else None
                for row in range(len(work))
            ]
            yield _share(work, amount, each, of, count, (TENSOR, quantity))


def _share(  # noqa: PLR0913, PLR0917 - what its caller knows
    work: ShapeWork,
    amount: Amount,
    ceilings: list[Ceiling | None],
    of: Groups,
    count: int,
    called: tuple[str, str],
) -> Share:
    some = np.flatnonzero(amount.counted)
    group, time = of[some], work.time_s[some]
    least = np.array([np.nan if each is None else each.low for each in ceilings])[some]
    most = np.array([np.nan if each is None else each.high for each in ceilings])[some]
    exact = np.where(least == most, least, np.nan)

    def total(values: Floats) -> Floats:
        return np.bincount(group, weights=values, minlength=count).astype(np.float64)

    seconds = total(time)
    nothing = total(np.nan_to_num(amount.high[some], nan=np.inf)) == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        value = total(amount.value[some]) / total(exact * time)
        low = total(np.nan_to_num(amount.low[some], nan=0.0)) / total(most * time)
        high = total(amount.high[some]) / total(least * time)
        coverage = seconds / np.bincount(of, weights=work.time_s, minlength=count)
        peak = total(exact * time) / seconds
    unseen = np.bincount(group, minlength=count) == 0
    nothing &= ~unseen & (seconds > 0)
    for figures in (value, low, high):
        figures[nothing] = 0.0  # whatever the peak
        figures[unseen] = np.nan
    names = [called[0]] * count
    bases: list[str | None] = [None] * count
    for place, row in zip(group.tolist(), some.tolist(), strict=True):
        ceiling = ceilings[row]
        if ceiling is not None:
            names[place], bases[place] = ceiling.name, ceiling.basis
    cold = np.bincount(group, weights=amount.cold[some], minlength=count) > 0
    return Share(
        called[0], called[1], names, value, low, high, peak, bases, seconds,
        np.where(unseen, 0.0, np.nan_to_num(coverage)), nothing, cold,
    )  # fmt: skip
