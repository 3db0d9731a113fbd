"""Since when has each device worked for the program, and what made it wait until then?"""

from __future__ import annotations

import numpy as np

from kernelscope.metrics.device_identity import Identity, lane_of, lanes_of
from kernelscope.metrics.idle_gaps import LEADING, IdleGaps
from kernelscope.trace import Table, Trace


def started(trace: Trace, identity: Identity, gaps: IdleGaps) -> dict[int, int]:
    """When did each device begin to compute?

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    identity : Identity
        Of the same trace.
    gaps : IdleGaps
        Its pauses.

    Returns
    -------
    dict of int to int
        By device the start of its first kernel or graph, in ns; of one that runs none the end of
        its leading pause. Without entry where there is neither.
    """
    leading = np.flatnonzero(gaps.place == LEADING)
    found = dict(zip(gaps.device[leading].tolist(), gaps.end[leading].tolist(), strict=True))
    first: dict[int, int] = {}
    for table in (trace.kernels, trace.graphs):
        groups = lanes_of(table)
        for key, rows in zip(groups.keys, groups.rows(), strict=True):
            device = identity.device_of(lane_of(key))
            if device is not None:
                start = int(table["start_ns"][rows].min())
                first[device] = min(start, first.get(device, start))
    return found | first


def cold(gaps: IdleGaps, calls: Table) -> dict[tuple[int, int], tuple[int, int]]:
    """For how long did each device wait for its first activity to be launched?

    Parameters
    ----------
    gaps : IdleGaps
        The pauses of a trace.
    calls : Table
        Its calls without wrappers.

    Returns
    -------
    dict of (int, int) to (int, int)
        By device and the process that launched its first activity, from the start of the leading
        pause to the end of that call, or of the pause, where that is earlier. Without entry where
        the call is not known.
    """
    rows = np.flatnonzero((gaps.place == LEADING) & (gaps.call >= 0))
    call = gaps.call[rows]
    until = np.minimum(gaps.end[rows], calls["end_ns"][call])
    process = calls["process_id"][call]
    return {
        (device, process): (start, end)
        for device, process, start, end in zip(
            *(each.tolist() for each in (gaps.device[rows], process, gaps.start[rows], until)),
            strict=True,
        )
        if start < end
    }
