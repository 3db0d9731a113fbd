"""The columns that every event of a device, or of a thread, shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.nsys_export import Export
from kernelscope.trace import Array, ColumnData, missing_value

EVENT = ("start", "end", "deviceId", "globalPid", *names.EVENT_COLUMNS.values())
"""What :func:`device_event` wants to be read."""


def interval(columns: Mapping[str, Array | None], rows: int) -> dict[str, ColumnData]:
    """Return start and end; an event without one is left to the quarantine."""
    absent = np.broadcast_to(np.int64(missing_value(np.dtype(np.int64))), (rows,))
    start, end = columns.get("start"), columns.get("end")
    return {
        "start_ns": absent if start is None else start,
        "end_ns": absent if end is None else end,
    }


def present(columns: Mapping[str, ColumnData | None]) -> dict[str, ColumnData]:
    """Return the columns that are there."""
    return {name: data for name, data in columns.items() if data is not None}


def device_event(
    export: Export, read: Mapping[str, Array | None], rows: int
) -> dict[str, ColumnData]:
    """Return time, process, device, context, stream, correlation and graph node of each row.

    `read` holds the profiler's columns of :data:`EVENT` as integers.
    """
    device = read.get("deviceId")
    columns = interval(read, rows)
    columns["device_id"] = np.zeros(rows, dtype=np.int32) if device is None else device
    columns |= present(
        {
            "process_id": export.process_of_global_pid(read.get("globalPid"), rows),
            **{ours: read.get(theirs) for ours, theirs in names.EVENT_COLUMNS.items()},
        }
    )
    return columns


def thread_event(
    export: Export, read: Mapping[str, Array | None], rows: int
) -> dict[str, ColumnData]:
    """Return time, process and thread of each row of host events."""
    process, thread = export.process_and_thread(read.get("globalTid"))
    return interval(read, rows) | present({"process_id": process, "thread_id": thread})
