"""The pages of an SQLite file, and the walk from a table's root to its leaves.

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

Pages are *read*, into memory of our own, and each of them once. A map of the file would be no
faster (a leaf has to be copied next to its neighbours anyway, and a map takes a fault for every
few pages) and is not safe: where another program cuts the file short, touching the map kills
the process, and where it overwrites the file, what was checked is not what is used. Here the
first is an error like any other, and the second cannot be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
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
_INTERIOR_BYTES_AT_ONCE = 1 << 22
_LONGEST_INTERIOR_CELL = 4 + 9  # the child's number, and a row's of nine bytes
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

    def holds(self, path: Path) -> bool:
        """Return whether the file is still as it was; one that is gone is not."""
        try:
            return Stamp.of(path) == self
        except OSError:
            return False


WAL = "a write-ahead log"
"""What :func:`pending_write` calls one."""


def pending_write(path: Path) -> str:
    """Return which log beside the file holds changes that are not in it yet; '' if none.

    A journal may be a stale one that SQLite would ignore; only SQLite can tell.
    """
    path = path.resolve()  # SQLite keeps its logs beside the file itself, not beside a link to it
    for suffix, name in (("-wal", WAL), ("-journal", "a rollback journal")):
        try:
            if path.with_name(path.name + suffix).stat().st_size:
                return name
        except OSError:
            continue
    return ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pages:
    """The pages of an open file.

    Attributes
    ----------
    count, size : int
        How many pages there are, numbered from 1, and the bytes of each.
    usable : int
        Bytes of a page that hold data; the rest is reserved for extensions.
    utf8 : bool
        Whether text is encoded in UTF-8.
    """

    count: int
    size: int
    usable: int
    utf8: bool
    _file: FileIO

    @classmethod
    @contextmanager
    def open(cls, path: Path, stamp: Stamp) -> Iterator[Pages]:
        """Open the file to read pages of it.

        Raises
        ------
        Unsupported
            If the header says anything unusual, or the file cannot be read.
        """
        size, usable, count = _geometry(stamp)
        encoding = int.from_bytes(stamp.header[56:60], "big")
        try:
            with FileIO(path) as file:
                yield cls(count, size, usable, encoding == 1, file)
        except OSError as error:
            raise Unsupported(f"the file cannot be read ({error.strerror})") from error

    def read(self, numbers: Positions, out: Bytes) -> None:
        """Read pages, one system call for each run of neighbours.

        Parameters
        ----------
        numbers : ndarray of intp, shape (n,)
            Page numbers.
        out : ndarray of uint8, shape (n, page size)
            Filled with the pages; must be contiguous.

        Raises
        ------
        Unsupported
            If the file ends before they do: another program has cut it short.
        """
        room = out.reshape(-1).data
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        for first, last in pairwise([0, *breaks.tolist(), len(numbers)]):
            self._file.seek((int(numbers[first]) - 1) * self.size)
            left = room[first * self.size : last * self.size]
            while len(left):
                taken = self._file.readinto(left)
                if not taken:
                    raise Unsupported("the file was cut short while it was read")
                left = left[taken:]


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


def leaves(pages: Pages, root: int) -> Positions:
    """Walk a table's b-tree level by level.

    Only interior pages are read as a whole, which are few. The pages below them are all leaves
    if the first one is; whoever reads the others makes sure, with :func:`row_counts`.

    Parameters
    ----------
    pages : Pages
        The open file.
    root : int
        The table's root page.

    Returns
    -------
    ndarray of intp, shape (leaves,)
        Page number of each leaf, in rowid order; a single one is the root itself.

    Raises
    ------
    Unsupported
        If a page is out of bounds, of another type, or reached twice.
    """
    seen = np.zeros(pages.count + 1, np.bool_)
    level = np.array([root], np.intp)
    for depth in range(_DEEPEST):
        _visit(level, seen)
        first = np.empty((1, pages.size), np.uint8)
        pages.read(level[:1], first)
        if first[0, 0] == _TABLE_LEAF:
            return level
        if depth == 0 and first[0, 0] in _INDEX_PAGES:
            raise Unsupported("a WITHOUT ROWID table")
        level = _below(pages, level)
    raise Unsupported("a tree that is too deep")


def row_counts(pages: Pages, block: Bytes, *, alone: bool) -> Positions:
    """Return the number of rows of each leaf.

    Parameters
    ----------
    pages : Pages
        The open file.
    block : ndarray of uint8, shape (leaves, page size)
        What was read of it.
    alone : bool
        Whether the table has no other page: only then may it be empty.

    Raises
    ------
    Unsupported
        If a page is no leaf, or its rows cannot be as many as it says.
    """
    counts = big_endian(block[:, 3:5], 2)[:, 0]
    if (block[:, 0] != _TABLE_LEAF).any():
        raise Unsupported("a page of another type")
    if not alone and not counts.all():
        raise Unsupported("an empty page within the tree")
    if (LEAF_HEADER_BYTES + 2 * counts > pages.usable).any():
        raise Unsupported("a damaged page")
    return counts


def _below(pages: Pages, level: Positions) -> Positions:
    """Return the page numbers below a level of interior pages, in rowid order."""
    at_once = max(_INTERIOR_BYTES_AT_ONCE // pages.size, 1)
    block = np.empty((min(at_once, len(level)), pages.size), np.uint8)
    found = []
    for start in range(0, len(level), at_once):
        part = level[start : start + at_once]
        read = block[: len(part)]
        pages.read(part, read)
        if (read[:, 0] != _TABLE_INTERIOR).any():
            raise Unsupported("a page of another type")
        counts = big_endian(read[:, 3:5], 2)[:, 0]
        if not counts.all():
            raise Unsupported("an empty page within the tree")
        last = big_endian(read[:, 8:12], 4)[:, 0]
        found += [_children(pages, *each) for each in zip(read, counts, last, strict=True)]
    return np.concatenate(found)


def _visit(numbers: Positions, seen: npt.NDArray[np.bool_]) -> None:
    """Mark pages as seen; refuse those out of bounds (page 1 is the schema's) or seen before."""
    if (numbers < 2).any() or (numbers >= len(seen)).any():
        raise Unsupported("a page number out of bounds")
    before = np.count_nonzero(seen)
    seen[numbers] = True
    if np.count_nonzero(seen) != before + len(numbers):
        raise Unsupported("a page that is reached twice")


def _children(pages: Pages, page: Bytes, count: int, last: int) -> Positions:
    """Return the page numbers below one interior page, in rowid order."""
    start = INTERIOR_HEADER_BYTES + 2 * count
    if start > pages.usable:
        raise Unsupported("a damaged page")
    cells = big_endian(page[INTERIOR_HEADER_BYTES:start], 2)
    if cells.min() < start or cells.max() > pages.usable - SMALLEST_CELL - 1:
        raise Unsupported("a damaged page")
    for cell in cells[cells > pages.usable - _LONGEST_INTERIOR_CELL].tolist():
        # The row number behind the child's is not needed, but it must end inside the page.
        if (page[cell + 4 : pages.usable] >= 0x80).all():
            raise Unsupported("a damaged page")
    children = big_endian(page[cells[:, None] + np.arange(4)], 4)[:, 0]
    return np.append(children, last)
