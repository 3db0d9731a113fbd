"""Result tables as plain rows: in the order of a report, missing values as None."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelscope.metrics.range_paths import SEPARATOR, written
from kernelscope.trace import Array, Table

SORTED_BY: dict[str, str] = {
    "kernels": "total_ns",
    "kernels_by_device": "total_ns",
    "launch_shapes": "total_ns",
    "api_calls": "total_ns",
    "copies": "total_ns",
    "copies_by_kind": "total_ns",
    "capture_cost": "total_ns",
    "streams": "busy_ns",
    "graph_kernels": "total_ns",
    "launches": "total_ns",
    "launches_by_kernel": "total_ns",
    "transfers": "total_ns",
    "migrations": "total_ns",
    "communication": "total_ns",
}
"""Table → the column that orders its rows, largest first, names deciding between equals.

Other tables keep the order of their metric: other rows refer to it (devices), or it is time,
or the metric orders them within a device (causes of idle time) or by what they save (findings).
"""


def ordered(table: Table) -> Table:
    """Return `table` with its rows in the order of a report."""
    by = SORTED_BY.get(table.schema.name)
    if by is None or len(table) < 2:
        return table
    texts = [column.name for column in table.schema.columns if column.dtype == "category"]
    keys = [*(_alphabetical(table, name) for name in reversed(texts)), -table[by].astype(np.int64)]
    return table.take(np.lexsort(keys))


def _alphabetical(table: Table, name: str) -> Array:
    """Return for each row the place of its text among all texts; missing comes first."""
    categories = table.categories(name)
    places = np.empty(len(categories) + 1, dtype=np.int64)
    places[-1] = -1
    places[sorted(range(len(categories)), key=categories.__getitem__)] = np.arange(len(categories))
    return np.asarray(places[table[name]])


def plain(table: Table, name: str) -> list[Any]:
    """Return a column as plain values; what is missing, or no finite number, is None.

    A path is its names with ``" > "`` between them, as :func:`range_paths.written` writes them.
    """
    values = table.values(name)
    column = table.schema.column(name)
    if column.unit == "path":
        texts = {text: written(text.split(SEPARATOR)) for text in set(values) - {None}}
        return [texts.get(value) for value in values]
    if column.dtype != "float64":
        return values
    return [value if value is not None and math.isfinite(value) else None for value in values]


def tuples(table: Table) -> Iterator[tuple[Any, ...]]:
    """Iterate over the rows of `table` as tuples in the order of its columns."""
    return zip(*(plain(table, name) for name in table.schema.names), strict=True)
