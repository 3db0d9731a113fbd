"""Copies, memsets and migrations by kind and memory, with bytes and achieved rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, durations_by_group
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.schema import TableSchema
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    Trace,
    is_missing,
    missing_value,
)


def copies(trace: Trace, window: Window | None = None) -> Table:
    """What is copied and set, between which memories, and how fast?

    Returns
    -------
    Table
        Under ``results.COPIES``: one row per kind, source and destination memory. Unified-memory
        migrations are kinds of their own. ``bytes_per_s`` is Σ bytes / Σ duration over the
        operations that start in the window.
    """
    return _summary(trace, window, results.COPIES, ("kind", "src_memory", "dst_memory"))


def copies_by_kind(trace: Trace, window: Window | None = None) -> Table:
    """How much does each kind of copy move?

    Returns
    -------
    Table
        Under ``results.COPIES_BY_KIND``.
    """
    return _summary(trace, window, results.COPIES_BY_KIND, ("kind",))


def _summary(
    trace: Trace, window: Window | None, table_schema: TableSchema, keys: Sequence[str]
) -> Table:
    window = window or whole(trace)
    events = trace.copies
    if not len(events):
        return Table.empty(table_schema)
    groups, distinct = grouped([events[key] for key in keys])
    columns: dict[str, ColumnData] = {
        key: Categorical(codes.astype(np.int32), events.categories(key))
        for key, codes in zip(keys, distinct, strict=True)
    }
    columns |= durations_by_group(events, window, groups, len(distinct[0]), "operations")
    columns |= rates(events, window, groups, len(distinct[0]))
    return by_total(table_schema, columns, "operations")


def rates(events: Table, window: Window, groups: Array, group_count: int) -> dict[str, Array]:
    """Return bytes and bytes/s of the operations that start in the window.

    A group in which any size was not recorded has no sum: absent is not zero.
    """
    inside = starts_inside(events, window)
    groups, size = groups[inside], events["bytes"][inside]
    duration = (events["end_ns"] - events["start_ns"])[inside]
    unknown = is_missing(size)
    total = np.zeros(group_count, dtype=np.int64)
    np.add.at(total, groups, np.where(unknown, 0, size).astype(np.int64))
    time = np.bincount(groups, weights=duration, minlength=group_count)
    lacking = np.bincount(groups, weights=unknown, minlength=group_count) > 0
    rate = np.full(group_count, np.nan)
    known = ~lacking & (time > 0)
    rate[known] = total[known] / time[known] * 1e9
    total[lacking] = missing_value(total.dtype)
    return {"bytes": total, "bytes_per_s": rate}
