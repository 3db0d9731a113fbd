"""A result table as comma-separated values, whole and unrounded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from kernelscope.report.rows import ordered, tuples
from kernelscope.trace import Table


def render(table: Table) -> str:
    """Return `table` as CSV text with a header line; missing values are empty fields."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.schema.names)
    rows: Iterable[tuple[Any, ...]] = tuples(ordered(table))
    if any(column.dtype == "bool" for column in table.schema.columns):
        rows = (tuple(_as_in_json(value) for value in row) for row in rows)
    writer.writerows(rows)
    return text.getvalue()


def _as_in_json(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
