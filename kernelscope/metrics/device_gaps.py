"""When a device stood still between two activities."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import results
from kernelscope.metrics.device_identity import integers
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.intervals import Int64s, Pieces, sorting
from kernelscope.metrics.intervals import gaps as pauses
from kernelscope.metrics.window import Window
from kernelscope.trace import ColumnData, Table, Trace, absent


def gaps(
    trace: Trace,
    window: Window | None = None,
    per: Literal["device", "process"] = "device",
    *,
    measured: DeviceTime | None = None,
) -> Table:
    """When was a device idle between two activities?

    Longest first, then by start. The time before a device's first activity in the window and
    after its last is not a gap; it stands in ``devices`` as leading and trailing. Per process
    the list is that of Nsight Systems' ``gpu_gaps`` rule (threshold 0), host-to-host copies
    apart: those do not occupy a device. A serialised capture has no gaps of the program's.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and devices are read.
    window : Window, optional
        The whole trace by default.
    per : {"device", "process"}
        Whether all processes of a physical device count as its activity, or each by itself.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found, where it is at hand.
    """
    if per not in ("device", "process"):
        raise ValueError(f"per must be 'device' or 'process', not {per!r}")
    time = measured or measure(trace, window)
    if time.serialised:
        return Table.empty(results.GAPS)
    accounts = time.devices if per == "device" else time.lanes
    found = [pauses(account.busy) for account in accounts]
    start, end = _joined(found)
    several = len(found) > 1
    order = _longest_first(start, end, several=several)
    if several:
        owner = np.repeat(np.arange(len(found)), [len(each[0]) for each in found])[order]
    else:
        owner = np.broadcast_to(np.int64(0), start.shape)
    columns: dict[str, ColumnData] = {"start_ns": start[order], "end_ns": end[order]}
    columns["duration_ns"] = np.asarray(columns["end_ns"]) - np.asarray(columns["start_ns"])
    if per == "process":
        lanes = time.identity.lanes
        columns["process_id"] = integers(lane[0] for lane in lanes)[owner]
        columns["device_id"] = integers(lane[1] for lane in lanes)[owner]
        columns["device"] = integers(time.identity.index)[owner]
    else:
        columns["device"] = owner.astype(np.int64, copy=False)
        for name in ("process_id", "device_id"):
            columns[name] = absent(results.GAPS.column(name), len(owner))
    return Table.make(results.GAPS, columns)


def _joined(found: list[Pieces]) -> Pieces:
    if len(found) == 1:
        return found[0]
    none = np.empty(0, dtype=np.int64)
    return (
        np.concatenate([none, *(each[0] for each in found)]),
        np.concatenate([none, *(each[1] for each in found)]),
    )


def _longest_first(start: Int64s, end: Int64s, *, several: bool) -> npt.NDArray[np.intp]:
    """Return the order by duration, ties by start, then by device."""
    if not several:  # by start already, and the sort is stable
        return sorting(end - start, descending=True)
    order = sorting(start)
    return order[sorting((end - start)[order], descending=True)]
