"""Launch-bound stretches: where a device waits for the host's launches longer than it works.

What waiting for a launch is, :mod:`kernelscope.metrics.launch_waits` says. A piece of activity
is *launch-limited* if the device waited for its launch longer than the piece lasts. A gap of
more than 1 ms is left out here: a host that is away for so long does not launch, it computes,
loads data or sleeps, and the causes of idle time say which.

A *stretch* is a run of launch-limited pieces that follow one another, from the gap before the
first to the end of the last. Two runs become one stretch where the pause between them is at most
100 µs, and shorter than the surplus (time waited less time worked) of either. In every stretch
the device thus waits longer than it works. Stretches with fewer than 10 launch-limited pieces,
or shorter than 100 µs, are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import launch_results as results
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.idle_gaps import IdleGaps
from kernelscope.metrics.intervals import NO_PIECES, Int64s, covered_before
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.launch_waits import Waits, launch_waits
from kernelscope.metrics.runs import running_total
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Table, Trace

LONGEST_WAIT_NS = 1_000_000
"""A gap longer than this is no matter of launching."""

LONGEST_PAUSE_NS = 100_000
"""Runs this far apart, or farther, are two stretches."""

FEWEST_PIECES = 10
SHORTEST_NS = 100_000
"""What is smaller is no stretch."""


def launch_stretches(
    trace: Trace,
    window: Window | None = None,
    *,
    launches: LaunchTimes | None = None,
    measured: DeviceTime | None = None,
    pauses: IdleGaps | None = None,
) -> Table:
    """When did a device wait for the host's launches longer than it worked?

    Stretches are those of the whole trace, clipped to the window. A serialised capture has none.

    Parameters
    ----------
    trace : Trace
        All processes: what another one does on a device is not idle time.
    window : Window, optional
        Where to look; by default all of it.
    launches, measured, pauses
        As :func:`kernelscope.metrics.launch_waits.launch_waits` takes them.

    Returns
    -------
    Table
        Under ``launch_results.LAUNCH_STRETCHES``, longest waiting first, then by start and
        device. Executions count where they start.
    """
    if trace.capture.serialised is not None:
        return Table.empty(results.LAUNCH_STRETCHES)
    window = window or whole(trace)
    waits = launch_waits(trace, launches=launches, measured=measured, pauses=pauses)
    tables = [_rows(device, each, window) for device, each in enumerate(waits)]
    columns = {
        column.name: np.concatenate([table[column.name] for table in tables])
        for column in results.LAUNCH_STRETCHES.columns
        if tables
    }
    table = Table.make(results.LAUNCH_STRETCHES, columns)
    return table.take(np.lexsort((table["start_ns"], -table["waiting_ns"])))


def stretches(waits: Waits) -> tuple[Int64s, Int64s]:
    """Return the first and the last piece of each stretch, shape (s,) both."""
    start, end = waits.pieces
    limited = _limited(waits)
    if np.count_nonzero(limited) < FEWEST_PIECES:
        return NO_PIECES
    first, last = _runs(limited)
    surplus = running_total(np.where(limited, waits.wait - (end - start), 0))
    surplus = surplus[last + 1] - surplus[first]
    pause = end[first[1:] - 1] - end[last[:-1]]
    joined = (pause <= LONGEST_PAUSE_NS) & (pause < np.minimum(surplus[1:], surplus[:-1]))
    first, last = first[np.append(True, ~joined)], last[np.append(~joined, True)]
    pieces = running_total(limited)
    enough = pieces[last + 1] - pieces[first] >= FEWEST_PIECES
    enough &= end[last] - end[first - 1] >= SHORTEST_NS
    return first[enough], last[enough]


def _limited(waits: Waits) -> npt.NDArray[np.bool_]:
    """Return which pieces the device waited for longer than they last, though not too long."""
    start, end = waits.pieces
    limited = waits.wait > end - start
    limited[1:] &= start[1:] - end[:-1] <= LONGEST_WAIT_NS
    return limited


def _runs(flags: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return where stretches of true begin, and where they end, the last one included."""
    change = np.diff(flags, prepend=False, append=False)
    at = np.flatnonzero(change)
    return at[::2], at[1::2] - 1


def _rows(device: int, waits: Waits, window: Window) -> dict[str, Int64s]:
    first, last = stretches(waits)
    if not len(first):
        return {column.name: first for column in results.LAUNCH_STRETCHES.columns}
    start = np.maximum(waits.pieces[1][first - 1], window.start_ns)
    end = np.minimum(waits.pieces[1][last], window.end_ns)
    seen = start < end
    start, end = start[seen], end[seen]
    busy = covered_before(waits.pieces, end) - covered_before(waits.pieces, start)
    all_begun = waits.begun()
    begun = [np.searchsorted(all_begun, times) for times in (start, end)]
    limited = waits.pieces[0][_limited(waits)]
    waited = [np.searchsorted(limited, times) for times in (start, end)]
    return {
        "device": np.full(len(start), device),
        "start_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
        "waits": waited[1] - waited[0],
        "executions": begun[1] - begun[0],
        "busy_ns": busy,
        "idle_ns": end - start - busy,
        "waiting_ns": covered_before(waits.waiting, end) - covered_before(waits.waiting, start),
    }
