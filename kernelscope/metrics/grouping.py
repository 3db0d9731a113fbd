"""Rows that share the values of some integer columns, numbered without sorting the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Array, distinct, missing_value

Key = tuple[int | None, ...]
Rows = npt.NDArray[np.intp] | slice

Int32s = npt.NDArray[np.int32]

_DENSE = 1 << 20
"""A span of values up to here (or four times the rows) is looked up in a table."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ over the golden ratio: spreads consecutive keys over a hash table."""


def begins(column: Array, *more: Array) -> npt.NDArray[np.bool_]:
    """Return which rows differ from the one before: stretches of equal rows begin there."""
    new = np.ones(len(column), dtype=np.bool_)
    np.not_equal(column[1:], column[:-1], out=new[1:])
    for other in more:
        new[1:] |= other[1:] != other[:-1]
    return new


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


def group(*columns: Array) -> Groups:
    """Number the distinct combinations of integer columns, shape (n,) each.

    The numbers follow the values, missing ones first, the first column before the second.
    """
    if not len(columns[0]):
        return Groups(None, ())
    codes, rows = grouped(columns)
    keys = tuple(zip(*(_plain(row) for row in rows), strict=True))
    return Groups(codes if len(keys) > 1 else None, keys)


def _plain(values: Array) -> list[int | None]:
    missing = missing_value(values.dtype)
    return [None if value == missing else value for value in values.tolist()]


def grouped(columns: Sequence[Array]) -> tuple[Int32s, list[Array]]:
    """Number the distinct rows of several integer columns.

    Parameters
    ----------
    columns : sequence of ndarray of int, each of shape (n,)
        At least one.

    Returns
    -------
    groups : ndarray of int32, shape (n,)
        Which distinct row each row is.
    distinct : list of ndarray, each of shape (g,)
        The distinct rows, column by column, in lexicographic order.
    """
    if len(columns) == 1:
        codes, values = _number(columns[0])
        return codes, [values]
    low, span = zip(*map(_extent, columns), strict=True)
    varying = [i for i, width in enumerate(span) if width > 1]
    if len(varying) == 1:
        codes, values = _number(columns[varying[0]])
        parts = [np.broadcast_to(column[:1], values.shape) for column in columns]
        parts[varying[0]] = values
        return codes, parts
    total = 1
    for width in span:
        total *= width
    if total >= 1 << 62:
        groups, rows = grouped(columns[:-1])
        last = _number(columns[-1])
        pair, (head, tail) = grouped([groups, last[0]])
        return pair, [*(column[head] for column in rows), last[1][tail]]
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column, least, width in zip(columns, low, span, strict=True):
        if width > 1:
            key *= width
            key += column
            key -= least
    groups, keys = _number(key)
    return groups, _unpacked(keys, low, span, columns)


def _extent(column: Array) -> tuple[int, int]:
    """Return the least value, and how many integers there are from it to the greatest."""
    if not len(column):
        return 0, 1
    few = column[:1] if column.strides == (0,) else column  # one value, broadcast to all rows
    low = int(few.min())
    return low, int(few.max()) - low + 1


def _unpacked(
    keys: Array, low: Sequence[int], span: Sequence[int], columns: Sequence[Array]
) -> list[Array]:
    parts: list[Array] = []
    rest = keys.astype(np.int64)
    for column, least, width in reversed(list(zip(columns, low, span, strict=True))):
        parts.append((rest % width + least).astype(column.dtype))
        rest = rest // width
    return parts[::-1]


def _number(key: Array) -> tuple[Int32s, Array]:
    """Number the distinct values of one column, in order of value, without sorting its rows."""
    low, span = _extent(key)
    if span == 1:
        return np.broadcast_to(np.int32(0), key.shape), key[:1]
    if span < max(_DENSE, 4 * len(key)):
        place = key.astype(np.int64)
        place -= low
        present = np.zeros(span, dtype=np.bool_)
        present[place] = True
        rank = np.cumsum(present, dtype=np.int32)
        rank -= 1
        return rank[place], (np.flatnonzero(present) + low).astype(key.dtype)
    return _hashed(key, distinct(key))


def _hashed(key: Array, known: Array) -> tuple[Int32s, Array]:
    """Look each key up among the distinct ones through a hash table."""
    bits = max((16 * len(known) - 1).bit_length(), 8)
    shift = np.uint64(64 - bits)
    table = np.full(1 << bits, -1, dtype=np.int32)
    slots = (known.astype(np.int64).view(np.uint64) * _MULTIPLIER) >> shift
    table[slots] = np.arange(len(known), dtype=np.int32)
    groups = table[(key.astype(np.int64).view(np.uint64) * _MULTIPLIER) >> shift]
    wrong = np.flatnonzero(known[groups] != key)  # keys that share a slot with another
    if len(wrong):
        groups[wrong] = np.searchsorted(known, key[wrong])
    return groups, known
