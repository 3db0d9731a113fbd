"""Whether CPU and GPU work at the same time: four states that sum to the window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import overlap_results as results
from kernelscope.metrics.device_identity import identify, integers, texts
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.host_time import HostActivity, ProcessTime, host_activity
from kernelscope.metrics.intervals import Pieces, intersection, total
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.overlap_results import BOUNDS, STATES, WAIT_NAMES
from kernelscope.metrics.waiting import Waiting
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import ColumnData, Table, Trace

Time = TypeVar("Time", int, npt.NDArray[np.int64])

_UNKNOWN = "which of its threads drive the GPU is not known"
NO_CALLS = f"no CUDA call of the process was recorded: {_UNKNOWN}"
NO_CALLS_INSIDE = f"no CUDA call of the process lies in the window: {_UNKNOWN}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lane:
    """One process on one device.

    Attributes
    ----------
    process_id : int or None
        The process.
    device_id : int
        Its own ordinal of the device.
    gpu : Pieces
        When the process had anything on the device.
    host : ProcessTime or None
        What its driving threads did; None where that is not known.
    reason : str or None
        Why it is not.
    both, both_high : Pieces or None
        When `gpu` and ``host.busy``, or ``host.high``, overlap; None where the one is not known.
    """

    process_id: int | None
    device_id: int
    gpu: Pieces
    host: ProcessTime | None
    reason: str | None
    both: Pieces | None = None
    both_high: Pieces | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HostAndDevices:
    """What host and devices did in one window: what every table of overlap is made of."""

    window: Window
    host: HostActivity
    lanes: tuple[Lane, ...]


def host_and_devices(
    trace: Trace,
    window: Window | None = None,
    *,
    measured: DeviceTime | None = None,
    launches: LaunchTimes | None = None,
    waits: Waiting | None = None,
) -> HostAndDevices:
    """What did host and devices do?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        The whole trace by default.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found of this window.
    launches, waits : optional
        As :func:`kernelscope.metrics.host_time.host_activity` takes them.
    """
    window = window or whole(trace)
    time = measured or measure(trace, window)
    host = host_activity(trace, window, launches=launches, waits=waits)
    serialised = trace.capture.serialised
    lanes = [
        _lane(process, device, account.busy, host)
        if serialised is None
        else Lane(process, device, account.busy, None, serialised)
        for (process, device), account in zip(time.identity.lanes, time.lanes, strict=True)
    ]
    return HostAndDevices(window, host, tuple(lanes))


def beside(trace: Trace, chosen: Trace, window: Window) -> HostAndDevices:
    """What did the host do, and of the devices the chosen pairs of process and device?

    Parameters
    ----------
    trace, chosen : Trace
        Everything that was recorded, and the chosen processes and devices of it.
    window : Window
        Where to look.
    """
    found = host_and_devices(trace, window)
    if chosen is trace:
        return found
    kept = set(identify(chosen).lanes)
    lanes = tuple(lane for lane in found.lanes if (lane.process_id, lane.device_id) in kept)
    return replace(found, lanes=lanes)


def _lane(process: int | None, device: int, gpu: Pieces, host: HostActivity) -> Lane:
    """Return what a process did on a device, and the host for it."""
    own = host.processes.get(process)
    both, high = (
        None if pieces is None else intersection(gpu, pieces)
        for pieces in ((own.busy, own.high) if own else (None, None))
    )
    return Lane(process, device, gpu, own, _reason(host, process), both, high)


def _reason(host: HostActivity, process: int | None) -> str | None:
    if process in host.processes:
        return None
    return NO_CALLS_INSIDE if process in host.callers else NO_CALLS


def overlap(
    trace: Trace, window: Window | None = None, *, found: HostAndDevices | None = None
) -> Table:
    """Do CPU and GPU work at the same time, or does one wait for the other?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        The whole trace by default.
    found : HostAndDevices, optional
        What :func:`host_and_devices` found of this window, where several tables are made of it.

    Returns
    -------
    Table
        Under ``overlap_results.OVERLAP``: one row per process and device that it used. ``both``,
        ``gpu_only``, ``cpu_only`` and ``neither`` sum to the window. The CPU is busy while any
        *driving* thread of the process (one inside a CUDA call in the window) works: on its core
        and not waiting, or, where scheduling was not recorded, inside a CUDA call and not
        waiting. Then what the host did between calls is not known: ``both`` and ``cpu_only``
        are lower bounds, ``gpu_only`` and ``neither`` upper ones.
    """
    found = found or host_and_devices(trace, window)
    lanes = found.lanes
    columns: dict[str, ColumnData] = {
        "process_id": integers(lane.process_id for lane in lanes),
        "device_id": integers(lane.device_id for lane in lanes),
        "cpu_source": texts(lane.host and lane.host.source for lane in lanes),
        "reason": texts(lane.reason for lane in lanes),
        "unscheduled_ns": integers(lane.host and total(lane.host.unscheduled) for lane in lanes),
        "driving_threads": integers(lane.host.threads if lane.host else 0 for lane in lanes),
        "other_threads_on_core_ns": integers(
            found.host.others_on_core_ns(lane.process_id) for lane in lanes
        ),
    }
    times = [_times(lane, found.window.duration_ns) for lane in lanes]
    for name in (*STATES, *BOUNDS):
        columns[f"{name}_ns"] = integers(time.get(name) for time in times)
    for kind, name in enumerate(WAIT_NAMES):
        columns[f"waiting.{name}_ns"] = integers(
            lane.host and total(lane.host.waits[kind]) for lane in lanes
        )
    return Table.make(results.OVERLAP, columns)


def _times(lane: Lane, window_ns: int) -> dict[str, int]:
    """Return the length of each state, and of its other bound; without those not known."""
    if lane.host is None:
        return {}
    found: dict[str, int] = {}
    for names, cpu, both in (
        (STATES, lane.host.busy, lane.both),
        (BOUNDS, lane.host.high, lane.both_high),
    ):
        if cpu is not None and both is not None:
            lengths = four(total(lane.gpu), total(cpu), total(both), window_ns)
            found |= dict(zip(names, lengths, strict=True))
    return found


def four(gpu: Time, cpu: Time, both: Time, length: Time) -> tuple[Time, Time, Time, Time]:
    """Return the time of both, GPU only, CPU only and neither, of the time of each and of both."""
    return both, gpu - both, cpu - both, length - gpu - cpu + both
