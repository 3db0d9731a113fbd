"""Utilization, bounds and precision of an analysis, from the tables that it has already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from kernelscope.metrics import utilization_results as results
from kernelscope.metrics.ceilings import Ceilings
from kernelscope.metrics.device_identity import Lane
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.idle import IdleTime
from kernelscope.metrics.intervals import total
from kernelscope.metrics.launch_limited import launch_limited
from kernelscope.metrics.precision import precision
from kernelscope.metrics.shape_work import ShapeWork, shape_work
from kernelscope.metrics.utilization import utilization_tables
from kernelscope.metrics.utilization_totals import (
    FP32,
    Rates,
    executions_of,
    not_counted,
    rates,
    totals,
)
from kernelscope.metrics.window import Window
from kernelscope.trace import Categorical, ColumnData, Table, Trace, stacked

Tables = Mapping[str, Table]


def utilization(  # noqa: PLR0913 - what was found before
    trace: Trace,
    window: Window,
    tables: Tables,
    *,
    measured: DeviceTime,
    explained: IdleTime,
    devices: Sequence[int],
    chosen: frozenset[Lane] | None = None,
    iterations: Table | None = None,
) -> dict[str, Table]:
    """How much of what the GPUs can do do kernels use, and what bounds them?

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    window : Window
        Where to look.
    tables : mapping of str to Table
        ``launch_shapes``, ``work_by_shape`` and ``peaks`` of the same analysis.
    measured, explained
        Of the same trace and window.
    devices : sequence of int
        The GPUs to look at, by number.
    chosen : frozenset of Lane, optional
        The pairs of process and device that were chosen; None for all.
    iterations : Table, optional
        Under ``iteration_results.ITERATIONS``.

    Returns
    -------
    dict of str to Table
        The tables of :mod:`kernelscope.metrics.utilization_results`.
    """
    identity = measured.identity
    described = [
        each
        for index, each in zip(identity.index, identity.described, strict=True)
        if index in devices
    ]
    sms = [each["sm_count"] for each in described if each.get("sm_count")]
    caches = [each["l2_bytes"] for each in described if each.get("l2_bytes")]
    sm_count = min(sms) if len(sms) == len(described) and sms else None
    l2_bytes = max(caches) if len(caches) == len(described) and caches else None
    work = shape_work(
        tables["launch_shapes"], tables["work_by_shape"], sm_count=sm_count, l2_bytes=l2_bytes
    )
    ceilings = Ceilings(tables["peaks"], devices)
    serialised = trace.capture.serialised is not None
    limited = launch_limited(trace, explained, work.shapes, window, chosen)
    found = utilization_tables(
        work,
        ceilings,
        limited=limited,
        sm_count=sm_count,
        serialised=serialised,
        communication=measured.communication,
    )
    by_device, by_iteration = _totals(
        trace, window, work, ceilings, measured, devices, chosen, iterations
    )
    return found | {
        "device_utilization": by_device,
        "utilization_by_iteration": by_iteration,
        "precision": precision(work, ceilings),
    }


def _totals(  # noqa: PLR0913, PLR0917 - as above
    trace: Trace,
    window: Window,
    work: ShapeWork,
    ceilings: Ceilings,
    measured: DeviceTime,
    devices: Sequence[int],
    chosen: frozenset[Lane] | None,
    iterations: Table | None,
) -> tuple[Table, Table]:
    nothing = Table.empty(results.UTILIZATION_BY_ITERATION)
    if measured.serialised or not devices:
        return Table.empty(results.DEVICE_UTILIZATION), nothing
    basis = ceilings.of("fp32")
    clock = None if basis is None else basis.basis
    active = np.array([measured.devices[d].kernel_ns for d in devices], dtype=np.int64)
    if FP32 not in work.amounts:
        reached = None
        if len(devices) == 1 and chosen is None:
            opaque = total(measured.devices[devices[0]].graphs)
            reached = float((work.time_s * work.reach).sum()) + opaque / 1e9
        peak = np.nan if basis is None else basis.low
        columns = not_counted(active, window, peak, reached)
        return _table(results.DEVICE_UTILIZATION, devices, columns, clock), nothing
    each = rates(work, ceilings)
    lanes = frozenset(measured.identity.lanes) if chosen is None else chosen
    kernels = executions_of(trace, measured.identity, work, each.flops[0], lanes)
    rows = [
        _table(
            results.DEVICE_UTILIZATION,
            [device],
            totals(kernels[device], each, [window], peak=ceilings.on(device, "fp32")),
            clock,
        )
        for device in devices
    ]
    steps = (
        []
        if iterations is None
        else _by_iteration(kernels, each, ceilings, devices, iterations, clock)
    )
    return reduce(stacked, rows), reduce(stacked, steps, nothing)


def _by_iteration(  # noqa: PLR0913, PLR0917 - as above
    kernels: Sequence[Any],
    each: Rates,
    ceilings: Ceilings,
    devices: Sequence[int],
    iterations: Table,
    clock: str | None,
) -> list[Table]:
    start = iterations["start_ns"].astype(np.int64)
    order = np.argsort(start, kind="stable")
    ends = start + iterations["period_ns"]
    periods = [Window(int(start[row]), int(ends[row]), "iteration") for row in order.tolist()]
    if not periods:
        return []
    found = []
    for device in devices:
        columns = totals(kernels[device], each, periods, peak=ceilings.on(device, "fp32"))
        columns["index"] = iterations["index"][order]
        schema = results.UTILIZATION_BY_ITERATION
        found.append(_table(schema, [device] * len(periods), columns, clock))
    return found


def _table(
    schema: Any, devices: Sequence[int], columns: Mapping[str, ColumnData], clock: str | None
) -> Table:
    return Table.make(
        schema,
        {
            "device": np.array(devices, dtype=np.int64),
            **columns,
            "clock_basis": Categorical.constant(clock, len(devices)),
        },
    )
