"""Rows that share the values of some integer columns, numbered without sorting the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.trace import is_missing

Key = tuple[int | None, ...]
Rows = npt.NDArray[np.intp] | slice

_DENSE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Which group each row belongs to, and what the groups have in common.

    Attributes
    ----------
    codes : ndarray of int, shape (n,), or None
        The group of each row, from 0 to ``len(keys) − 1``; None where there is at most one
        group, so that the usual trace of one process and one device pays nothing.
    keys : tuple of tuple
        The values of each group, None where missing.
    """

    codes: npt.NDArray[Any] | None
    keys: tuple[Key, ...]

    def rows(self) -> list[Rows]:
        """Return the rows of each group, in their order in the table."""
        if self.codes is None:
            return [slice(None)] * len(self.keys)
        count = len(self.keys)
        narrow = self.codes.astype(np.uint16) if count <= 1 << 16 else self.codes
        order = np.argsort(narrow, kind="stable")  # 16 bits are sorted in linear time
        bounds = np.cumsum(np.bincount(self.codes, minlength=count))[:-1]
        return list(np.split(order, bounds))


def group(*columns: npt.NDArray[Any]) -> Groups:
    """Number the distinct combinations of integer columns, shape (n,) each.

    The numbers follow the values, missing ones first, the first column before the second.
    """
    if not len(columns[0]):
        return Groups(None, ())
    codes: npt.NDArray[Any] | None = None
    keys: list[Key] = [()]
    for column in columns:
        part, values = _distinct(column)
        if part is None:
            keys = [(*key, values[0]) for key in keys]
        elif codes is None:
            codes, keys = part, [(*key, value) for key in keys for value in values]
        else:
            # Keep only the combinations that occur, or the product of columns would explode.
            both = codes.astype(np.int64) * len(values) + part
            codes, seen = _numbered(both, 0, len(keys) * len(values) - 1)
            keys = [(*keys[i // len(values)], values[i % len(values)]) for i in seen.tolist()]
    return Groups(codes, tuple(keys))


def _distinct(column: npt.NDArray[Any]) -> tuple[npt.NDArray[Any] | None, list[int | None]]:
    low, high = int(column.min()), int(column.max())
    if low == high:
        return None, [None if bool(is_missing(column[:1])[0]) else low]
    if low != np.iinfo(column.dtype).min:
        codes, seen = _numbered(column, low, high)
        return codes, list(seen.tolist())
    missing = is_missing(column)
    present = column[~missing]
    codes = np.zeros(len(column), dtype=np.int64)
    inner, seen = _numbered(present, int(present.min()), int(present.max()))
    codes[~missing] = inner + 1
    return codes, [None, *seen.tolist()]


def _numbered(
    values: npt.NDArray[Any], low: int, high: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the rank of each value among the distinct ones, and those."""
    if high - low >= max(_DENSE, 4 * len(values)):
        distinct, codes = np.unique(values, return_inverse=True)
        return codes, distinct.astype(np.int64)
    offset = values.astype(np.int64) - low
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[offset] = True
    distinct = np.flatnonzero(present).astype(np.int64)
    rank = np.cumsum(present, dtype=np.int32) - 1
    return rank[offset], distinct + low
