"""Functions that a check of a number needs and SQLite lacks: median, quantile, deviation."""

from __future__ import annotations

import math
import sqlite3
from functools import cache
from typing import Any

from kernelscope.metrics.call_classes import class_of
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.launching import GRAPH_LAUNCHES

FUNCTIONS: dict[str, str] = {
    "median(x)": "the middle value; of an even number the mean of the middle two",
    "quantile(x, q)": "linear interpolation at (n − 1)·q, with q between 0 and 1",
    "stddev(x)": "sample standard deviation (n − 1); 0 for a single value",
    "is_communication(name)": "1 for a kernel that moves data between GPUs (NCCL, …), else 0",
    "call_class(name)": "what a CUDA call does: synchronization, launch, copy, memset, allocation, "
    "free, module or other",
    "is_graph_launch(name)": "1 for a CUDA call that launches a graph, else 0",
}
"""What :func:`add_functions` adds, and its meaning. Aggregates leave missing values out."""

Value = float | int | None


class _Values:
    """The values of a group, missing ones left out."""

    def __init__(self) -> None:
        self.values: list[float | int] = []

    def step(self, value: Value) -> None:
        if value is not None:
            self.values.append(value)


class _Median(_Values):
    def finalize(self) -> float | None:
        return interpolated(self.values, 0.5)


class _Quantile(_Values):
    q: float = 0.0

    def step(self, value: Value, q: float = 0.5) -> None:
        super().step(value)
        self.q = q

    def finalize(self) -> float | None:
        return interpolated(self.values, self.q)


class _Deviation(_Values):
    def finalize(self) -> float | None:
        return deviation(self.values)


def add_functions(connection: sqlite3.Connection) -> None:
    """Teach `connection` the functions of :data:`FUNCTIONS`."""
    made: tuple[tuple[str, int, Any], ...] = (
        ("median", 1, _Median),
        ("quantile", 2, _Quantile),
        ("stddev", 1, _Deviation),
    )
    for name, arguments, aggregate in made:
        connection.create_aggregate(name, arguments, aggregate)
    connection.create_function("is_communication", 1, _is_communication, deterministic=True)
    connection.create_function("call_class", 1, _call_class, deterministic=True)
    connection.create_function("is_graph_launch", 1, _is_graph_launch, deterministic=True)


@cache
def _is_communication(name: str | None) -> int:
    return int(name is not None and bool(is_communication((name,))[0]))


@cache
def _call_class(name: str | None) -> str | None:
    return None if name is None else class_of(name)


def _is_graph_launch(name: str | None) -> int:
    return int(name is not None and name.startswith(GRAPH_LAUNCHES))


def interpolated(values: list[float | int], q: float) -> float | None:
    """Return the quantile `q` by linear interpolation at (n − 1)·q; None of nothing."""
    if not values or not 0 <= q <= 1:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def deviation(values: list[float | int]) -> float | None:
    """Return the sample standard deviation; 0 for a single value, None of nothing."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / max(len(values) - 1, 1))
