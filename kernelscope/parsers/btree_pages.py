"""The pages of an SQLite file, memory-mapped, and the walk from a table's root to its leaves.

To be read beside https://www.sqlite.org/fileformat2.html: "The Database Header" (1.3) and
"B-tree Pages" (1.6). All integers in the file are big-endian.

A table is a b-tree of pages. Interior pages (type 5) hold page numbers of children in rowid
order, leaves (type 13) hold the rows. Pages are numbered from 1::

    interior  05 ff ff nn nn cc cc 00 rr rr rr rr | n pointers to cells | … | cells
              type     count          last child    2 bytes each              child (4), key
    leaf      0d ff ff nn nn cc cc 00             | n pointers to cells | … | cells
              type     count                        2 bytes each              see btree_records

Nothing here trusts the file: every number is checked before it is used as a position, and
whatever is odd raises :class:`Unsupported`, upon which SQLite itself is asked.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.intp]

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
LEAF_HEADER_BYTES = 8
INTERIOR_HEADER_BYTES = 12
SMALLEST_CELL = 4

_TABLE_INTERIOR, _TABLE_LEAF = 5, 13
_INDEX_PAGES = (2, 10)
_PAGES_AT_ONCE = 1 << 16
_DEEPEST = 20  # SQLite's own limit (BTCURSOR_MAX_DEPTH)


class Unsupported(Exception):
    """The columnar reader leaves this table to the sqlite3 module.

    Parameters
    ----------
    reason : str
        What it does not read, in a few words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells whether a file changed: size, time, and the first 100 bytes.

    Those hold the change counter (offset 24), which every SQLite transaction moves.
    """

    size: int
    mtime_ns: int
    header: bytes

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Take the stamp of a file."""
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            return cls(status.st_size, status.st_mtime_ns, file.read(HEADER_BYTES))


def pending_write(path: Path) -> str:
    """Return which log beside the file holds changes that are not in it yet; '' if none.

    A journal may be a stale one that SQLite would ignore; only SQLite can tell.
    """
    path = path.resolve()  # SQLite keeps its logs beside the file itself, not beside a link to it
    for suffix, name in (("-wal", "a write-ahead log"), ("-journal", "a rollback journal")):
        try:
            if path.with_name(path.name + suffix).stat().st_size:
                return name
        except OSError:
            continue
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """The mapped file.

    Attributes
    ----------
    view : ndarray of uint8, shape (pages, page size)
        Page number n is row n − 1. Reading a row reads the file.
    usable : int
        Bytes of a page that hold data; the rest is reserved for extensions.
    utf8 : bool
        Whether text is encoded in UTF-8.
    """

    view: Bytes
    usable: int
    utf8: bool
    _map: mmap.mmap

    @classmethod
    def map(cls, path: Path, stamp: Stamp) -> Pages:
        """Map the file read-only.

        The map is released when the last array that looks into it is gone.

        Raises
        ------
        Unsupported
            If the header says anything unusual.
        """
        page_size, usable, count = _geometry(stamp)
        with path.open("rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(view) != stamp.size:
            raise Unsupported("the file changed while it was read")
        data = np.frombuffer(view, np.uint8).reshape(-1, page_size)[:count]
        encoding = int.from_bytes(stamp.header[56:60], "big")
        return cls(data, usable, encoding == 1, view)

    def give_back(self, first: int = 1, last: int | None = None) -> None:
        """Tell the system that pages `first` to `last` need not stay in this process."""
        if hasattr(mmap, "MADV_DONTNEED"):
            size = self.view.shape[1]
            start = (first - 1) * size // mmap.PAGESIZE * mmap.PAGESIZE
            stop = len(self._map) if last is None else last * size
            self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _geometry(stamp: Stamp) -> tuple[int, int, int]:
    """Return page size, usable bytes and number of pages, from the database header."""
    header = stamp.header
    if len(header) < HEADER_BYTES or header[:16] != MAGIC:
        raise Unsupported("no SQLite header")
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1):
        raise Unsupported(f"a page size of {page_size}")
    usable = page_size - header[20]
    if usable < 480 or header[21:24] != bytes((64, 32, 32)) or header[19] > 2:
        raise Unsupported("an unknown file format version")
    in_file, rest = divmod(stamp.size, page_size)
    if rest:
        raise Unsupported("the file does not end where a page ends")
    count = int.from_bytes(header[28:32], "big")
    # Old SQLite versions did not keep the count; it holds if the two counters agree.
    if count == 0 or header[24:28] != header[92:96]:
        count = in_file
    if count > in_file:
        raise Unsupported("the file is shorter than its header says")
    return page_size, usable, count


def big_endian(data: npt.NDArray[Any], width: int) -> Positions:
    """Return the unsigned integers that the last axis of `data` spells, `width` bytes each."""
    return np.ascontiguousarray(data).view(f">u{width}").astype(np.intp)


def leaves(pages: Pages, root: int) -> tuple[Positions, Positions]:
    """Walk a table's b-tree level by level.

    Parameters
    ----------
    pages : Pages
        The mapped file.
    root : int
        The table's root page.

    Returns
    -------
    numbers, counts : ndarray of intp, shape (leaves,)
        Page number and number of rows of each leaf, in rowid order.

    Raises
    ------
    Unsupported
        If a page is out of bounds, of another type, or reached twice.
    """
    seen = np.zeros(len(pages.view) + 1, np.bool_)
    level = np.array([root], np.intp)
    for depth in range(_DEEPEST):
        _visit(level, seen)
        heads = _heads(pages, level)
        kinds, counts = heads[:, 0], big_endian(heads[:, 3:5], 2)[:, 0]
        if (kinds == _TABLE_LEAF).all():
            if depth and not counts.all():
                raise Unsupported("an empty page within the tree")
            if (LEAF_HEADER_BYTES + 2 * counts > pages.usable).any():
                raise Unsupported("a damaged page")
            return level, counts
        if not (kinds == _TABLE_INTERIOR).all():
            index = depth == 0 and kinds[0] in _INDEX_PAGES
            raise Unsupported("a WITHOUT ROWID table" if index else "a page of another type")
        if not counts.all():
            raise Unsupported("an empty page within the tree")
        last = big_endian(heads[:, 8:12], 4)[:, 0]
        level = np.concatenate(
            [_children(pages, *each) for each in zip(level, counts, last, strict=True)]
        )
    raise Unsupported("a tree that is too deep")


def _heads(pages: Pages, numbers: Positions) -> Bytes:
    """Return the first bytes of each page, shape (pages, 12)."""
    parts = []
    for start in range(0, len(numbers), _PAGES_AT_ONCE):
        if start:
            pages.give_back()  # or a large file would be in memory as a whole for a moment
        part = numbers[start : start + _PAGES_AT_ONCE]
        parts.append(pages.view[part - 1, :INTERIOR_HEADER_BYTES])
    return np.concatenate(parts)


def _visit(numbers: Positions, seen: npt.NDArray[np.bool_]) -> None:
    """Mark pages as seen; refuse those out of bounds (page 1 is the schema's) or seen before."""
    if (numbers < 2).any() or (numbers >= len(seen)).any():
        raise Unsupported("a page number out of bounds")
    before = np.count_nonzero(seen)
    seen[numbers] = True
    if np.count_nonzero(seen) != before + len(numbers):
        raise Unsupported("a page that is reached twice")


def _children(pages: Pages, number: int, count: int, last: int) -> Positions:
    """Return the page numbers below one interior page, in rowid order."""
    page = pages.view[number - 1]
    start = INTERIOR_HEADER_BYTES + 2 * count
    if start > pages.usable:
        raise Unsupported("a damaged page")
    cells = big_endian(page[INTERIOR_HEADER_BYTES:start], 2)
    if cells.min() < start or cells.max() > pages.usable - SMALLEST_CELL - 1:
        raise Unsupported("a damaged page")
    children = big_endian(page[cells[:, None] + np.arange(4)], 4)[:, 0]
    return np.append(children, last)
