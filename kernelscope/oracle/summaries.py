"""Summaries of durations, by the book and in exact arithmetic where that is possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

QUANTILES: tuple[int, ...] = (5, 25, 75, 95, 99)


def quantile(ordered: Sequence[int], percent: int) -> float:
    """Return a quantile of sorted values by linear interpolation at (n − 1)·q."""
    position = Fraction((len(ordered) - 1) * percent, 100)
    below = math.floor(position)
    above = math.ceil(position)
    return float(ordered[below] + (position - below) * (ordered[above] - ordered[below]))


def deviation(values: Sequence[int]) -> float:
    """Return the sample standard deviation (n − 1); 0 for a single value."""
    if len(values) < 2:
        return 0.0
    mean = Fraction(sum(values), len(values))
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance)


def summary(durations: Sequence[int]) -> dict[str, Any]:
    """Return mean, median, extremes, deviation and quantiles; null where there is no value."""
    ordered = sorted(durations)
    if not ordered:
        nothing: dict[str, Any] = dict.fromkeys(
            ("mean_ns", "median_ns", "min_ns", "max_ns", "std_ns")
        )
        return nothing | {"quantiles_ns": {f"p{percent}": None for percent in QUANTILES}}
    return {
        "mean_ns": sum(ordered) / len(ordered),
        "median_ns": quantile(ordered, 50),
        "min_ns": ordered[0],
        "max_ns": ordered[-1],
        "std_ns": deviation(ordered),
        "quantiles_ns": {f"p{percent}": quantile(ordered, percent) for percent in QUANTILES},
    }
