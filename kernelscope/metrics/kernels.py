"""Kernel executions by name, by launch shape and by device."""

from __future__ import annotations

import numpy as np

from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, durations_by_group, ratio, totals_by_group
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.launch_occupancy import SHAPE, shape_occupancy
from kernelscope.metrics.name_columns import name_columns
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace


def kernels(trace: Trace, window: Window | None = None) -> Table:
    """Which kernels take the device's time?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default all of it.

    Returns
    -------
    Table
        Under ``results.KERNELS``: one row per full name, longest total first. Its definitions
        are those of the *Window* section of the documentation: totals are clipped, statistics
        are over the executions that start in the window.
    """
    window = window or whole(trace)
    events = trace.kernels
    names = events.categories("name")
    columns: dict[str, ColumnData] = {"name": _codes(names)}
    columns |= _totals(trace, window, events["name"], len(names))
    columns |= name_columns(names, np.arange(len(names)))
    return by_total(results.KERNELS, columns, "executions")


def launch_shapes(trace: Trace, window: Window | None = None) -> Table:
    """In which launch shapes does each kernel run?

    Returns
    -------
    Table
        Under ``results.LAUNCH_SHAPES``: one row per name + grid + block, longest total first,
        with the theoretical occupancy of the shape.
    """
    window = window or whole(trace)
    events = trace.kernels
    if not len(events):
        return Table.empty(results.LAUNCH_SHAPES)
    groups, (code, *shape) = grouped([events["name"], *(events[part] for part in SHAPE)])
    columns: dict[str, ColumnData] = {
        "name": Categorical(code.astype(np.int32), events.categories("name")),
        **{
            f"{part}.{axis}": shape[3 * block + axis]
            for block, part in enumerate(("grid", "block"))
            for axis in range(3)
        },
    }
    columns |= _totals(trace, window, groups, len(code))
    columns |= shape_occupancy(trace, window, groups, len(code))
    columns |= name_columns(events.categories("name"), code)
    return by_total(results.LAUNCH_SHAPES, columns, "executions")


def kernels_by_device(trace: Trace, window: Window | None = None) -> Table:
    """On which device and for which process does each kernel run?

    Returns
    -------
    Table
        Under ``results.KERNELS_BY_DEVICE``.
    """
    window = window or whole(trace)
    events = trace.kernels
    if not len(events):
        return Table.empty(results.KERNELS_BY_DEVICE)
    groups, (code, process, device) = grouped(
        [events["name"], events["process_id"], events["device_id"]]
    )
    columns: dict[str, ColumnData] = {
        "name": Categorical(code.astype(np.int32), events.categories("name")),
        "process_id": process,
        "device_id": device,
        **totals_by_group(events, window, groups, len(code), "executions"),
    }
    return by_total(results.KERNELS_BY_DEVICE, columns, "executions")


def _codes(names: tuple[str, ...]) -> Categorical:
    return Categorical(np.arange(len(names), dtype=np.int32), names)


def _totals(trace: Trace, window: Window, groups: Array, group_count: int) -> dict[str, Array]:
    figures = durations_by_group(trace.kernels, window, groups, group_count, "executions")
    # A serialised capture's window is the profiler's, not the program's.
    window_ns = window.duration_ns if trace.capture.serialised is None else 0
    total = figures["total_ns"]
    return figures | {
        "share": ratio(total, int(total.sum())),
        "share_of_window": ratio(total, window_ns),
    }
