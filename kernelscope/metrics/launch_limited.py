"""Which executions did their GPU wait for longer than they took?

A kernel is *launch-limited* where the pause before it, idle for the host or in launch latency, is
longer than the kernel itself: making it faster would make the GPU wait longer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.device_identity import Lane, lane_of, lanes_of
from kernelscope.metrics.idle import IdleTime
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.shape_work import rows_of_kernels
from kernelscope.metrics.window import Window, starts_inside
from kernelscope.trace import Table, Trace

LATENCY = "launch_latency"


def launch_limited(
    trace: Trace, explained: IdleTime, shapes: Table, window: Window, chosen: frozenset[Lane] | None
) -> npt.NDArray[np.int64]:
    """Return how many executions of each launch shape were waited for longer than they took.

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    explained : IdleTime
        Why its devices stood still.
    shapes : Table
        Under ``results.LAUNCH_SHAPES``, g rows.
    window : Window
        Executions that start in it count.
    chosen : frozenset of Lane, optional
        The pairs of process and device that count; all where None.

    Returns
    -------
    ndarray of int64, shape (g,)
    """
    gaps, pieces = explained.gaps, explained.pieces
    counts = np.zeros(len(shapes), dtype=np.int64)
    kernels = trace.kernels
    if not len(gaps) or not len(kernels):
        return counts
    hosts = [cause.startswith(HOST) or cause == LATENCY for cause, _ in explained.labels]
    mine = np.array(hosts, dtype=np.bool_)[pieces.label]
    waited = sums_by(pieces.gap[mine], (pieces.end - pieces.start)[mine], len(gaps))
    ended = (gaps.activity >= 0) & (gaps.activity < len(kernels))
    row = gaps.activity[ended]
    took = kernels["end_ns"][row].astype(np.int64) - kernels["start_ns"][row]
    limited = kernels.take(row[waited[ended] > took])
    limited = limited.take(starts_inside(limited, window))
    if chosen is not None:
        groups = lanes_of(limited)
        keep = np.zeros(len(limited), dtype=np.bool_)
        for key, rows in zip(groups.keys, groups.rows(), strict=True):
            keep[rows] = lane_of(key) in chosen
        limited = limited.take(keep)
    places = rows_of_kernels(limited, shapes)
    return np.bincount(places[places >= 0], minlength=len(shapes)).astype(np.int64)
