"""How much of a device's block slots kernels can have used, weighted by their duration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import occupancy
from kernelscope.metrics.grouping import Rows, group
from kernelscope.metrics.intervals import Int64s, sums_by
from kernelscope.metrics.occupancy import Limits
from kernelscope.trace import Table, is_missing

Weighted = tuple[float, int]
"""Σ value · ns, and Σ ns, over the executions that have a value."""

_GRID = ("grid_x", "grid_y", "grid_z")
_BLOCK = ("block_x", "block_y", "block_z")
_SHARED = ("static_shared_bytes", "dynamic_shared_bytes")
_SHAPE = (*_GRID, *_BLOCK, "registers_per_thread", *_SHARED)
_CHUNK = 1 << 18
"""Executions at a time: what is computed of them then stays in the cache, and memory small."""
_BUCKETS_LOG2 = 16
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def weighted_fill(kernels: Table, rows: Rows, duration: Int64s, limits: Limits | None) -> Weighted:
    """Return Σ fill · duration and Σ duration over the executions whose fill is known.

    Parameters
    ----------
    kernels : Table
        Launch shapes are read from it.
    rows : index array or slice
        The executions; a slice means all.
    duration : ndarray of int64, shape (m,)
        Of those executions, inside the window.
    limits : Limits or None
        Of their device.
    """
    value, weight = 0.0, 0
    if limits is not None:
        for begin in range(0, len(duration), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            some = part if isinstance(rows, slice) else rows[part]
            more = _of_some({name: kernels[name][some] for name in _SHAPE}, duration[part], limits)
            value, weight = value + more[0], weight + more[1]
    return value, weight


def _of_some(columns: dict[str, npt.NDArray[Any]], duration: Int64s, limits: Limits) -> Weighted:
    known = np.ones(len(duration), dtype=np.bool_)
    for column in columns.values():
        if int(column.min()) == np.iinfo(column.dtype).min:
            known &= ~is_missing(column)
    if not bool(known.all()):
        columns = {name: column[known] for name, column in columns.items()}
        duration = duration[known]
    if not len(duration):
        return 0.0, 0
    shapes, weights = _by_shape(_shape_columns(columns), duration)
    fill = occupancy.sm_fill(limits, *shapes)
    valid = ~np.isnan(fill)
    return float((fill[valid] * weights[valid]).sum()), int(weights[valid].sum())


def _shape_columns(columns: dict[str, npt.NDArray[Any]]) -> tuple[Int64s, ...]:
    """Return blocks, threads, registers and shared bytes of each execution.

    The largest grid, 2³¹ − 1 by 65 535 by 65 535 blocks, still fits an int64.
    """

    def product(names: tuple[str, ...]) -> Int64s:
        x, y, z = (columns[name] for name in names)
        xy = x.astype(np.int64) if _all_one(y) else np.multiply(x, y, dtype=np.int64)
        return xy if _all_one(z) else xy * z

    shared = np.add(columns[_SHARED[0]], columns[_SHARED[1]], dtype=np.int64)
    registers = columns["registers_per_thread"].astype(np.int64, copy=False)
    return product(_GRID), product(_BLOCK), registers, shared


def _all_one(column: npt.NDArray[Any]) -> bool:
    return bool((column == 1).all())


def _by_shape(columns: tuple[Int64s, ...], weights: Int64s) -> tuple[list[Int64s], Int64s]:
    """Return the distinct shapes, column by column, and the summed weight of each."""
    key = np.zeros(len(weights), dtype=np.int64)
    bits = 0
    for column in columns:
        low, high = int(column.min()), int(column.max())
        if low == high:
            continue
        key |= (column - low) << bits
        bits += (high - low).bit_length()
        if bits > 63:
            groups = group(*columns)
            codes = np.zeros(len(weights), np.int64) if groups.codes is None else groups.codes
            shapes = np.array(groups.keys, dtype=np.int64).reshape(-1, len(columns)).T
            return list(shapes), sums_by(codes, weights, len(groups.keys))
    first, summed = _totals(key, weights)
    return [column[first] for column in columns], summed


def _totals(key: Int64s, weights: Int64s) -> tuple[Int64s, Int64s]:
    """Return a row of each distinct key, and the key's weight, without sorting the rows.

    Keys go to buckets by hash; in each round the last key written into a bucket settles there,
    and only the rows whose bucket holds another key go on.
    """
    rows: Int64s | None = None
    firsts: list[Int64s] = []
    sums: list[Int64s] = []
    for odd in _ODD:
        bucket = ((key.view(np.uint64) * np.uint64(odd)) >> np.uint64(64 - _BUCKETS_LOG2)).view(
            np.int64
        )
        owner = np.full(1 << _BUCKETS_LOG2, -1, dtype=np.int64)
        owner[bucket] = np.arange(len(key))
        settled = key[owner[bucket]] == key
        used = np.flatnonzero(owner >= 0)
        done = bool(settled.all())
        inside = slice(None) if done else settled
        sums.append(sums_by(bucket[inside], weights[inside], 1 << _BUCKETS_LOG2)[used])
        firsts.append(owner[used] if rows is None else rows[owner[used]])
        if done:
            return np.concatenate(firsts), np.concatenate(sums)
        left = np.flatnonzero(~settled)
        rows = left if rows is None else rows[left]
        key, weights = key[left], weights[left]
    _, first, codes = np.unique(key, return_index=True, return_inverse=True)
    rest = first if rows is None else rows[first]
    return np.concatenate((*firsts, rest)), np.concatenate(
        (*sums, sums_by(codes, weights, len(first)))
    )
