"""Which iterations are warm-up, which are outliers, and what the steady ones take.

Pure functions on the periods of a run, in time order, without the last iteration (which has no
following start). Multiplying every period by one factor changes no label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.trace import median, quantiles

Bools = npt.NDArray[np.bool_]

MIN_PERIODS = 4
"""Of fewer periods nothing is called unusual."""
MAX_WARMUP_SHARE = 0.5
"""Warm-up is a prefix of at most this share of the periods."""
MAX_OUTLIER_SHARE = 0.05
"""Unusual periods after warm-up are outliers only if they are fewer than this share."""
DEVIATIONS = 5.0
"""A period is unusual beyond this many robust standard deviations from the median."""
MAD_TO_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its MAD: 1 / Φ⁻¹(3/4)."""
LEAST_DEVIATION = 0.02
"""The robust standard deviation is taken as at least this share of the median, so that nothing
within 10 % of it is unusual: of a few periods the MAD may be anything."""
HEADROOM = 1.25
"""Where slow periods are common, one that is this much slower than them is still one of them."""
UNSTEADY_RATIO = 1.1
"""Step time is not steady where mean / median of the steady periods is above this."""


@dataclass(frozen=True, slots=True)
class SteadyFigures:
    """What a steady iteration takes.

    Attributes
    ----------
    count : int
        Steady iterations: neither warm-up nor outlier, nor the last.
    median_ns, p5_ns, p95_ns, mean_ns : float or None
        Of their periods; quantiles by linear interpolation at (n − 1)·q. None of none.
    """

    count: int
    median_ns: float | None
    p5_ns: float | None
    p95_ns: float | None
    mean_ns: float | None

    @property
    def is_steady(self) -> bool | None:
        """Whether mean / median is at most `UNSTEADY_RATIO`; None where there is no period."""
        if not self.median_ns or self.mean_ns is None:
            return None
        return self.mean_ns / self.median_ns <= UNSTEADY_RATIO


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """How many periods are warm-up, and which of the others are outliers.

    Attributes
    ----------
    warmup : int
        Length of the prefix.
    outlier : ndarray of bool, shape (n,)
        Never inside the prefix.
    """

    warmup: int
    outlier: Bools

    @property
    def steady(self) -> Bools:
        """Which periods are neither, shape (n,)."""
        steady = ~self.outlier
        steady[: self.warmup] = False
        return steady


def label(periods: npt.NDArray[Any]) -> Labels:
    """Tell warm-up and outliers from the steady run.

    Parameters
    ----------
    periods : ndarray of int or float, shape (n,)
        Step times in time order, ≥ 0.

    Notes
    -----
    The second half of the run says what is usual: median ± `DEVIATIONS` robust deviations,
    widened to what occurs there too often to be an outlier. Warm-up ends at the change point:
    where unusual periods have outweighed usual ones the most, counted from the beginning.
    Behind it, unusual periods are outliers if none of them has an unusual neighbour on its own
    side (slow beside slow), and if they are fewer than `MAX_OUTLIER_SHARE`: a stall at every
    second step, or a bad stretch, is the story, not noise.
    """
    count = len(periods)
    none = np.zeros(count, dtype=np.bool_)
    if count < MIN_PERIODS:
        return Labels(0, none)
    values = periods.astype(np.float64)
    # One odd period in the second half does not make a slow beginning usual.
    spare = max(_strictly_below(MAX_OUTLIER_SHARE * count), 1)
    side = _side(values, _band(values[count // 2 :], spare))
    limit = int(MAX_WARMUP_SHARE * count)
    warmup = change_point(side != 0, limit)
    rest = values[warmup:]
    side = _side(rest, _band(rest, _strictly_below(MAX_OUTLIER_SHARE * len(rest))))
    outlier = none.copy()
    outlier[warmup:] = _isolated(side)
    if outlier[warmup] and warmup < limit:  # an outlier at the very beginning is warm-up
        outlier[warmup] = False
        warmup += 1
    return Labels(warmup, outlier)


def change_point(unusual: Bools, limit: int) -> int:
    """Return the length of the prefix in which unusual periods outweigh usual ones the most.

    Parameters
    ----------
    unusual : ndarray of bool, shape (n,)
        Which periods are.
    limit : int
        The longest prefix; of several that are as good, the shortest is taken.
    """
    head = np.where(unusual[:limit], 1, -1)
    weight = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(head)))
    return int(np.argmax(weight))


def figures(periods: npt.NDArray[Any]) -> SteadyFigures:
    """Return count, median, p5, p95 and mean of periods, shape (n,)."""
    if not len(periods):
        return SteadyFigures(0, None, None, None, None)
    middle, low, high = quantiles(periods, (0.5, 0.05, 0.95))
    return SteadyFigures(len(periods), middle, low, high, float(np.mean(periods)))


def _strictly_below(limit: float) -> int:
    """Return the largest count that is fewer than `limit`."""
    return max(int(np.ceil(limit)) - 1, 0)


def _band(values: npt.NDArray[np.float64], spare: int) -> tuple[float, float]:
    """Return what is usual among `values`, if `spare` of them on either side may be outliers."""
    middle = median(values)
    spread = MAD_TO_DEVIATION * median(np.abs(values - middle))
    reach = DEVIATIONS * max(spread, LEAST_DEVIATION * middle)
    low, high = middle - reach, middle + reach
    ordered = np.sort(values)
    spare = min(spare, (len(values) - 1) // 2)
    top, bottom = float(ordered[len(ordered) - 1 - spare]), float(ordered[spare])
    if top > high:
        high = HEADROOM * top
    if bottom < low:
        low = bottom / HEADROOM
    return low, high


def _side(values: npt.NDArray[np.float64], band: tuple[float, float]) -> npt.NDArray[np.int64]:
    """Return −1 for periods below the band, 1 above it, 0 inside."""
    return np.asarray((values > band[1]).astype(np.int64) - (values < band[0]))


def _isolated(side: npt.NDArray[np.int64]) -> Bools:
    """Return which periods are outliers: unusual ones without a like neighbour, if all are rare."""
    unusual = side != 0
    if int(unusual.sum()) > _strictly_below(MAX_OUTLIER_SHARE * len(side)):
        return np.zeros(len(side), dtype=np.bool_)
    like = (side[1:] == side[:-1]) & unusual[1:]
    crowded = np.zeros(len(side), dtype=np.bool_)
    crowded[1:] |= like
    crowded[:-1] |= like
    return np.asarray(unusual & ~crowded)
