"""Columns of bytes: values that a profiler stored as it had them in memory.

nvprof keeps metric values (a double or an integer, nothing in the row says which), thread ids
and UUIDs as BLOBs of a fixed size. They come as a matrix of bytes, so that a parser takes whole
columns apart with ``view``: ``blobs.numbers("<f8")``. As with numbers and text there are two
ways, straight from the file's pages or through the ``sqlite3`` module, and equal answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.btree import Layout, Stamp, Unsupported, check_still
from kernelscope.parsers.btree_pages import Pages, leaves
from kernelscope.parsers.btree_records import Cells, Field, chunks, fetch, fields
from kernelscope.trace import Array

Bytes = npt.NDArray[np.uint8]

_FIRST_BLOB = 12  # serial type of an empty one; text has the odd numbers above
WIDEST = 64
"""Longest part of a value that can be asked for; chunks of pages have that much room behind."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Blobs:
    """A column of byte strings, each cut or padded with zeros to one width.

    Attributes
    ----------
    data : ndarray of uint8, shape (n, width)
        The bytes.
    length : ndarray of int64, shape (n,)
        How many bytes each value has in the file, also where those are more than `width`;
        −1 where it has none (NULL, or a number).
    """

    data: Bytes
    length: npt.NDArray[np.int64]

    def numbers(self, dtype: str, at: int = 0) -> Array:
        """Return the number that each value holds at byte `at`, e.g. of type ``<f8``.

        A value that is too short for it reads as if zeros followed; `length` tells.
        """
        size = np.dtype(dtype).itemsize
        part = np.ascontiguousarray(self.data[:, at : at + size])
        return part.view(dtype)[:, 0] if len(part) else np.empty(0, dtype)

    def hold(self, size: int) -> npt.NDArray[np.bool_]:
        """Return which values have at least `size` bytes."""
        return self.length >= size


def read_blobs(path: Path, layout: Layout, stamp: Stamp, column: str, width: int) -> Blobs:
    """Read a column of bytes from the file's pages, in rowid order.

    Raises
    ------
    Unsupported
        As :func:`kernelscope.parsers.btree.read_columns` does.
    """
    if layout.refusal:
        raise Unsupported(layout.refusal)
    check_still(path, stamp)
    stored = layout.columns[column]
    data, lengths = [np.empty((0, width), np.uint8)], [np.empty(0, np.int64)]
    with Pages.open(path, stamp) as pages:
        for cells in chunks(pages, leaves(pages, layout.root), rowids=False):
            field = fields(cells, {stored.place})[stored.place]
            if field.lowest < 0 and stored.default:
                raise Unsupported("rows older than a column with a default")
            if field.lowest <= 0 and stored.not_null:
                raise Unsupported("NULL where the schema forbids it")
            part, length = _take(cells, field, width, pages.utf8)
            data.append(part)
            lengths.append(length)
    check_still(path, stamp)
    return Blobs(np.concatenate(data), np.concatenate(lengths))


def _take(
    cells: Cells, field: Field, width: int, utf8: bool
) -> tuple[Bytes, npt.NDArray[np.int64]]:
    serial = np.broadcast_to(np.asarray(field.serial, np.int64), len(cells))
    if not utf8 and ((serial > _FIRST_BLOB) & (serial & 1 == 1)).any():
        raise Unsupported("text that is not in UTF-8")
    length = np.where(serial >= _FIRST_BLOB, (serial - _FIRST_BLOB) >> 1, -1)
    part = fetch(cells.data, field.at, width).copy()  # `data` is the next chunk's, too
    if length.min() < width:
        part[np.arange(width) >= length[:, None]] = 0
    return part, length


def of_values(values: Sequence[Any], width: int) -> Blobs:
    """Return a column of Python values as bytes; what is no byte string has length −1.

    The slow and plain counterpart of :func:`read_blobs`.
    """
    data = np.zeros((len(values), width), np.uint8)
    length = np.full(len(values), -1, np.int64)
    for row, value in enumerate(values):
        if isinstance(value, bytes):
            length[row] = len(value)
            data[row, : len(value)] = np.frombuffer(value[:width], np.uint8)
    return Blobs(data, length)
