"""Pauses between the nodes of one CUDA graph launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import begins
from kernelscope.metrics.intervals import Int64s
from kernelscope.trace import missing_value

MISSING = missing_value(np.dtype(np.int64))


def gaps_before_nodes(launch: npt.NDArray[Any], start: Int64s, end: Int64s) -> Int64s:
    """How long had no earlier node of its launch been running when each node started?

    Parameters
    ----------
    launch : ndarray of int, shape (n,)
        Which launch each node belongs to.
    start, end : ndarray of int64, shape (n,)
        When it ran.

    Returns
    -------
    ndarray of int64, shape (n,)
        In ns, 0 where an earlier one still ran or had just ended; missing for the first node of
        each launch. Over a launch they sum to the time between its first start and its last end
        in which none of its nodes ran.
    """
    gaps = np.full(len(launch), MISSING)
    if not len(launch):
        return gaps
    order = np.lexsort((start, launch))
    new = begins(launch[order])
    reached = _latest_so_far(np.cumsum(new), end[order])
    later = np.flatnonzero(~new)
    gaps[order[later]] = np.maximum(start[order[later]] - reached[later - 1], 0)
    return gaps


def _latest_so_far(number: Int64s, end: Int64s) -> Int64s:
    """Return the latest end so far within each launch; launches ascend."""
    low = int(end.min())
    stride = int(end.max()) - low + 1
    if stride.bit_length() + int(number[-1]).bit_length() > 62:
        # Laid one behind the other they do not fit an int64: the ranks of the ends do.
        times, ranks = np.unique(end, return_inverse=True)
        return np.asarray(times[_latest_so_far(number, ranks.astype(np.int64))])
    offset = number * stride - low
    return np.asarray(np.maximum.accumulate(end + offset) - offset)
