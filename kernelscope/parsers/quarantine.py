"""Events whose times cannot be true, taken out of the tables and listed.

Rules (METRICS, *Quarantine*): no start or end; ``end < start``; ``end = 0``; a start of 0
beside rows of another epoch, that is, where every other event is further from 0 than an hour
and than the span of all the others. Beyond METRICS: a time that no clock of this century shows,
or a duration longer than any capture, would spoil every sum it is in; and device work that names
no device cannot be accounted for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernelscope import schema
from kernelscope.trace import Array, Categorical, ColumnData, Table, is_missing, missing_value

HOUR_NS = 3_600_000_000_000

LATEST_NS = 1 << 62
"""A time beyond this, in either direction, is none: Unix time in ns reaches it in 2116."""

LONGEST_NS = 1 << 53
"""104 days: no event lasts longer, and sums of a thousand such still fit."""

DEVICE_TABLES = ("kernels", "copies", "graphs")

EVENT_TABLES = (
    "kernels", "api_calls", "copies", "graphs", "syncs", "ranges", "overheads", "os_calls",
    "on_core",
)  # fmt: skip

REASONS = (
    "no start or end recorded",
    "its end lies before its start",
    "its end is 0",
    "its start is 0 beside events of another epoch",
    "its time is one that no clock shows",
    "it lasts longer than 104 days",
    "it names no device",
)


def quarantined(tables: Mapping[str, Table]) -> tuple[dict[str, Table], Table]:
    """Return the tables without their unbelievable events, and the list of those.

    Parameters
    ----------
    tables : mapping of str to Table
        Canonical tables by name; those without times pass unchanged.

    Returns
    -------
    dict of str to Table
        The tables, all events in them with ``end_ns >= start_ns``.
    Table
        Under ``schema.QUARANTINE``.
    """
    sound: dict[str, Table] = {}
    lists: list[tuple[str, Table, npt.NDArray[np.int8], Array]] = []
    epoch = _other_epoch(tables)
    for name, table in tables.items():
        reason = _reasons(table, epoch) if name in EVENT_TABLES and len(table) else None
        if reason is None or not (bad := reason >= 0).any():
            sound[name] = table
            continue
        sound[name] = table.take(~bad)
        rows = np.flatnonzero(bad)
        lists.append((name, table.take(rows), reason[rows], rows))
    return sound, _listed(lists)


def _other_epoch(tables: Mapping[str, Table]) -> bool:
    """Return whether the events that do not start at 0 are of another epoch than 0."""
    starts = [
        table["start_ns"] for name, table in tables.items() if name in EVENT_TABLES and len(table)
    ]
    lows, highs = [], []
    for start in starts:
        away = start if start.min() > 0 else start[(start != 0) & ~is_missing(start)]
        if len(away):
            lows.append(int(away.min()))
            highs.append(int(away.max()))
    return bool(lows) and min(lows) > max(HOUR_NS, max(highs) - min(lows))


def _reasons(table: Table, other_epoch: bool) -> npt.NDArray[np.int8] | None:
    """Return an index into REASONS per row, −1 for a sound one; None where all are sound."""
    start, end = table["start_ns"], table["end_ns"]
    nowhere = _nowhere(table)
    if nowhere is None and _all_sound(start, end):
        return None
    rules = [
        (6, nowhere),
        (5, end - start > LONGEST_NS),
        (3, start == 0 if other_epoch else None),
        (1, end < start),
        (2, end == 0),  # also where the profiler had no times at all, and wrote 0 and 0
        (4, (abs(start) > LATEST_NS) | (abs(end) > LATEST_NS)),
        (0, is_missing(start) | is_missing(end)),
    ]
    broken = [(number, rows) for number, rows in rules if rows is not None and rows.any()]
    if not broken:
        return None
    reason = np.full(len(table), -1, dtype=np.int8)
    for number, rows in broken:  # the last that holds is the reason
        reason[rows] = number
    return reason


def _all_sound(start: Array, end: Array) -> bool:
    """Return whether no time is suspicious at all: a few passes that write nothing down."""
    if min(start.min(), end.min()) <= 0 or max(start.max(), end.max()) > LATEST_NS:
        return False
    duration = end - start
    return bool(duration.min() >= 0 and duration.max() <= LONGEST_NS)


def _nowhere(table: Table) -> npt.NDArray[np.bool_] | None:
    """Return which rows of device work name no device; None where all do."""
    if table.schema.name not in DEVICE_TABLES:
        return None
    device = table["device_id"]
    return is_missing(device) if device.min() == missing_value(device.dtype) else None


def _listed(lists: list[tuple[str, Table, npt.NDArray[np.int8], Array]]) -> Table:
    if not lists:
        return Table.empty(schema.QUARANTINE)
    columns: dict[str, ColumnData] = {
        "table": Categorical.of([name for name, table, _, _ in lists for _ in range(len(table))]),
        "row": np.concatenate([rows for *_, rows in lists]).astype(np.int64),
        "start_ns": np.concatenate([table["start_ns"] for _, table, _, _ in lists]),
        "end_ns": np.concatenate([table["end_ns"] for _, table, _, _ in lists]),
        "name": Categorical.of([text for _, table, _, _ in lists for text in _names(table)]),
        "reason": Categorical(
            np.concatenate([reason for _, _, reason, _ in lists]).astype(np.int32), REASONS
        ),
    }
    return Table.make(schema.QUARANTINE, columns)


def _names(table: Table) -> list[str | None]:
    for column in ("name", "kind"):
        if column in table.schema.names:
            return table.texts(column)
    return [None] * len(table)
