"""Which CUDA call launched which work: the join on (process, correlation id)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import sorting
from kernelscope.trace import Array, Table, distinct, is_missing, missing_value

DENSE_FACTOR = 8
"""A table over correlation ids is used up to this many times as many entries as rows."""


def launch_rows(work: Table, api_calls: Table) -> npt.NDArray[np.int32]:
    """Return the row of the call that launched each event.

    Parameters
    ----------
    work : Table
        Kernels or copies, with ``process_id`` and ``correlation_id``.
    api_calls : Table
        Host calls, without call-chain wrappers.

    Returns
    -------
    ndarray of int32, shape (len(work),)
        Row in `api_calls`, −1 where there is none. Correlation ids repeat across processes, so
        the process is part of the key; of several calls with one id it is the innermost, the
        one that starts last.
    """
    rows = np.full(len(work), -1, dtype=np.int32)
    if not len(work) or not len(api_calls):
        return rows
    for process in distinct(work["process_id"]).tolist():
        mine = _of_process(work, process)
        theirs = _of_process(api_calls, process)
        found = _joined(work["correlation_id"], mine, api_calls, theirs)
        if mine is None:
            return found
        rows[mine] = found
    return rows


def _of_process(table: Table, process: int) -> npt.NDArray[np.int64] | None:
    """Return the rows of one process; None for all of them."""
    ids = table["process_id"]
    if len(ids) and ids.min() == ids.max() == process:
        return None
    return np.flatnonzero(ids == process)


def _joined(
    correlation: Array,
    mine: npt.NDArray[np.int64] | None,
    api_calls: Table,
    theirs: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.int32]:
    wanted = correlation if mine is None else correlation[mine]
    there = api_calls["correlation_id"] if theirs is None else api_calls["correlation_id"][theirs]
    order = np.arange(len(there), dtype=np.int32) if theirs is None else theirs.astype(np.int32)
    if len(there) and there.min() == missing_value(there.dtype):
        named = ~is_missing(there)
        order, there = order[named], there[named]
    if not len(there):
        return np.full(len(wanted), -1, dtype=np.int32)
    order, there = _innermost_last(order, there, api_calls)
    if there.min() >= 0 and there.max() < DENSE_FACTOR * max(len(there), 1 << 16):
        table = np.full(int(there.max()) + 1, -1, dtype=np.int32)
        table[there] = order
        if wanted.min() >= 0 and wanted.max() < len(table):
            return table[wanted]
        inside = (wanted >= 0) & (wanted < len(table))  # a missing id is negative
        return np.where(inside, table[np.where(inside, wanted, 0)], -1).astype(np.int32)
    return np.where(is_missing(wanted), np.int32(-1), _searched(wanted, there, order))


def _innermost_last(
    order: npt.NDArray[np.int32], there: Array, api_calls: Table
) -> tuple[npt.NDArray[np.int32], Array]:
    """Put calls that share an id in order of start, so that the innermost is the last of them."""
    every = len(order) == len(api_calls)  # then they are in order
    start = api_calls["start_ns"] if every else api_calls["start_ns"][order]
    if not (start[1:] < start[:-1]).any():
        return order, there
    by_start = sorting(start)
    return order[by_start], there[by_start]


def _searched(wanted: Array, there: Array, order: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    by_id = np.argsort(there, kind="stable")
    ids = there[by_id]
    place = np.searchsorted(ids, wanted, side="right") - 1
    hit = (place >= 0) & (ids[np.maximum(place, 0)] == wanted)
    return np.where(hit, order[by_id][np.maximum(place, 0)], -1).astype(np.int32)
