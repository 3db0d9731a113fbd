"""How close is equal: an oracle prints decimals, and prints them rounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRINTED_NS = 0.05
RELATIVE = 1e-9

STATISTICS = {"mean_ns": "Avg (ns)", "median_ns": "Med (ns)", "std_ns": "StdDev (ns)"}


def assert_close(ours: float, printed: str, what: str) -> None:
    """Assert that a float is what an oracle printed with one decimal."""
    value = float(printed)
    allowed = PRINTED_NS + RELATIVE * abs(value)
    assert abs(ours - value) <= allowed, f"{what}: ours {ours!r}, printed {printed}"


def assert_statistics(ours: Mapping[str, Any], printed: Mapping[str, str], what: object) -> None:
    """Assert that total, minimum, maximum are equal, and mean, median, deviation close."""
    assert ours["total_ns"] == int(printed["Total Time (ns)"]), what
    assert ours["min_ns"] == int(printed["Min (ns)"]), what
    assert ours["max_ns"] == int(printed["Max (ns)"]), what
    for name, column in STATISTICS.items():
        assert_close(ours[name], printed[column], f"{what} {name}")
