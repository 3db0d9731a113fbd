"""From the leaf pages of a table to where each wanted column of each row lies.

To be read beside https://www.sqlite.org/fileformat2.html: "B-tree Pages" (1.6), "Record Format"
(2.1). A row is a cell of a leaf page; the page's pointers say where its cells are::

    cell    payload size (varint) | rowid (varint) | record
    record  header size (varint) | serial type of column 0, 1, … (varints) | values

    serial type  0     1…6               7      8  9  12, 14, …  13, 15, …
    value        NULL  1 2 3 4 6 8 bytes float  0  1  blob       text

A varint has seven bits a byte, the high bit set on all bytes but the last; the ninth byte, if
there is one, gives all its eight.

Rows are taken in chunks of pages that fit in the processor's caches: a chunk is read into a
buffer, the same one every time, and every step is then one NumPy operation over all its rows.
The step that costs is to fetch bytes at an odd place of each row; :func:`fetch` does it. Where a
value begins depends on the serial types before it, so the header is walked column by column and
the sizes added up. Most header bytes are the same in all rows of a chunk, and such a column costs
nothing.

Rows whose serial types are varints of different lengths (long text) keep their columns at
different header bytes. They are parted by that *shape* first, the header's length and the places
of its continuation bits, compared in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.btree_pages import (
    LEAF_HEADER_BYTES,
    SMALLEST_CELL,
    Bytes,
    Pages,
    Positions,
    Unsupported,
    big_endian,
    row_counts,
)

Serial = int | npt.NDArray[Any]
"""Serial types of a column: one for all rows of a chunk, or an array of one per row."""

CHUNK_BYTES = 1 << 22  # pages and what is computed of them; larger leaves the processor's caches
_BYTES_PER_ROW = 64  # what the computing takes for each row, roughly
_VARINTS, _WIDEST = 18, 120  # payload size and rowid; bytes of a row that are fetched with them
_ROOM = 256  # behind a chunk's last page, so that fetching the longest header stays inside
_LONGEST_HEADER = 127
_MOST_SHAPES = 64
_IMPOSSIBLE = 1 << 40  # larger than any payload, so that the sum of sizes cannot come out right

# Bytes that a value takes, by its serial type where that is one byte; 10 and 11 are reserved.
_SIZE = np.array(
    [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, _IMPOSSIBLE, _IMPOSSIBLE]
    + [(serial - 12) // 2 for serial in range(12, 256)],
    np.intp,
)


def fetch(data: Bytes, at: Positions, width: int) -> Bytes:
    """Return `width` bytes of `data` from each position on, shape (len(at), width).

    The bytes are seen as overlapping items one byte apart, so that NumPy copies whole items.
    """
    shape = (len(data) - width + 1,)
    items: npt.NDArray[Any] = np.ndarray(shape, f"V{width}", buffer=data.data, strides=(1,))
    return items[at].view(np.uint8).reshape(len(at), width)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells:
    """The rows of a chunk of leaf pages.

    Attributes
    ----------
    data : ndarray of uint8
        The pages, one after the other, with room behind. Holds until the next chunk is taken.
    record : ndarray of intp, shape (rows,)
        Where in `data` each row's record begins.
    head : ndarray of uint8, shape (rows, some)
        The bytes from there on; behind a shorter record, those of another.
    payload : ndarray of int64, shape (rows,)
        Bytes of the record.
    stop : ndarray of intp, shape (rows,)
        Where the part of the record that lies on the page ends.
    overflows : bool
        Whether any record goes on elsewhere.
    rowid : ndarray of int64, shape (rows,)
        The rows' ids; empty where not asked for.
    leaves : int
        How many pages the rows come from.
    """

    data: Bytes
    record: Positions
    head: Bytes
    payload: npt.NDArray[np.int64]
    stop: Positions
    overflows: bool
    rowid: npt.NDArray[np.int64]
    leaves: int

    def __len__(self) -> int:
        return len(self.record)


def chunks(pages: Pages, numbers: Positions, *, rowids: bool) -> Iterator[Cells]:
    """Yield the rows of the leaves, some hundred pages at a time.

    Parameters
    ----------
    pages : Pages
        The open file.
    numbers : ndarray of intp
        The leaves, as :func:`btree_pages.leaves` returns them.
    rowids : bool
        Whether the rows' ids are wanted.
    """
    size, alone = pages.size, len(numbers) == 1
    most = min(max(CHUNK_BYTES // size, 1), len(numbers))
    # glibc's malloc keeps freed memory up to the size of the largest block freed so far; without
    # this one, it would hand back each temporary array, and fault its pages in again, by turns.
    np.empty(CHUNK_BYTES, np.uint8)
    data = np.zeros(most * size + _ROOM, np.uint8)
    rows_per_page = pages.usable // (SMALLEST_CELL + 2)  # until it is known: not too many
    done = 0
    while done < len(numbers):
        fitting = CHUNK_BYTES // (size + rows_per_page * _BYTES_PER_ROW)
        part = numbers[done : done + min(max(fitting, 1), most)]
        block = data[: len(part) * size].reshape(-1, size)
        pages.read(part, block)
        counts = row_counts(pages, block, alone=alone)
        rows = int(counts.sum())
        if rows:
            yield _cells(pages, data, block, counts, rowids)
        rows_per_page = rows // len(part) + 1
        done += len(part)


def _cells(pages: Pages, data: Bytes, block: Bytes, counts: Positions, rowids: bool) -> Cells:
    cell, page_end = _pointers(block, counts, pages.usable)
    row = fetch(data, cell, _width(block, counts))
    payload, taken = _varint(row)
    # Records are mostly of a size: then rowids and records begin at the same places in all rows.
    rest = row[:, taken:] if isinstance(taken, int) else fetch(data, cell + taken, 9)
    rowid, length = _varint(rest, value=rowids)
    record = cell + taken + length
    begins = taken + length
    head = row[:, begins:] if isinstance(begins, int) else fetch(data, record, row.shape[1])
    local, overflows = _local_bytes(payload, pages.usable)
    stop = record + local
    if (stop > page_end).any():
        raise Unsupported("a row that goes past the end of its page")
    return Cells(data, record, head, payload, stop, overflows, rowid, len(block))


def _width(block: Bytes, counts: Positions) -> int:
    """Return how many bytes hold most rows of a chunk."""
    usual = block.size // int(counts.sum())
    return min(max(usual, _VARINTS), _WIDEST) // 8 * 8 + 16


def _pointers(block: Bytes, counts: Positions, usable: int) -> tuple[Positions, Positions]:
    """Return where each cell begins and where its page's data end, within the chunk."""
    rows = np.arange(len(block))
    most = int(counts.max())
    spelled = block[:, LEAF_HEADER_BYTES : LEAF_HEADER_BYTES + 2 * most]
    pointers = big_endian(spelled, 2)
    base = rows * block.shape[1]
    if (counts == most).all():
        pointers, of_row = pointers.ravel(), np.repeat(rows, most)
    else:
        pointers = pointers[np.arange(most) < counts[:, None]]
        of_row = np.repeat(rows, counts)
    first_cell = LEAF_HEADER_BYTES + 2 * counts
    if (pointers < first_cell[of_row]).any() or (pointers > usable - SMALLEST_CELL).any():
        raise Unsupported("a damaged page")
    base = base[of_row]
    return pointers + base, base + usable


def _varint(spelled: Bytes, *, value: bool = True) -> tuple[npt.NDArray[np.int64], Serial]:
    """Decode one varint a row.

    Parameters
    ----------
    spelled : ndarray of uint8, shape (rows, 9 or more)
        The bytes from the varint's first on.
    value : bool
        Whether the value is wanted, not the length alone.

    Returns
    -------
    value : ndarray of int64, shape (rows,)
    length : int, or ndarray of int64, shape (rows,)
        Bytes that the varint takes: one number if all rows have the same.
    """
    total: npt.NDArray[np.uint64] = np.zeros(len(spelled) if value else 0, np.uint64)
    length: Serial = 0
    going: npt.NDArray[np.bool_] | None = None  # rows that have a byte here; None: all of them
    for place in range(9):
        byte = spelled[:, place]
        if value:
            digits = byte.astype(np.uint64)
            bits = np.uint64(8 if place == 8 else 7)
            longer = (total << bits) | (digits & np.uint64((1 << int(bits)) - 1))
            total = longer if going is None else np.where(going, longer, total)
        length = length + (1 if going is None else going.astype(np.int64))
        if going is None and byte.min() >= 0x80:
            continue
        goes_on = byte >= 0x80
        going = goes_on if going is None else going & goes_on
        if not going.any():
            break
    return total.view(np.int64), length


def _local_bytes(payload: npt.NDArray[np.int64], usable: int) -> tuple[npt.NDArray[np.int64], bool]:
    """Return how many bytes of each payload lie on the leaf page, and whether any do not.

    The rule is that of "Cell Payload Overflow Pages" (1.6.2) in the file format.
    """
    most = usable - 35
    if payload.min() < 0:
        raise Unsupported("a damaged page")
    if payload.max() <= most:
        return payload, False
    least = (usable - 12) * 32 // 255 - 23
    part = least + (payload - least) % (usable - 4)
    return np.where(payload <= most, payload, np.where(part <= most, part, least)), True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field:
    """A column of a chunk: what each row has, and where.

    Attributes
    ----------
    serial : int, or ndarray of int, shape (rows,)
        Serial types; one number if all rows have the same.
    before : ndarray of intp, shape (rows,)
        A place in the chunk's data before each value; fields may share the array itself.
    offset : int
        How many bytes behind it the values begin.
    lowest, highest : int
        The least and the greatest serial type.
    """

    serial: Serial
    before: Positions
    offset: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, serial: Serial, before: Positions, offset: int = 0) -> Field:
        """Return the field of these serial types."""
        if isinstance(serial, int):
            return cls(serial, before, offset, serial, serial)
        return cls(serial, before, offset, int(serial.min()), int(serial.max()))

    @property
    def at(self) -> Positions:
        """Where in the chunk's data the values begin, shape (rows,)."""
        return self.before + self.offset


def fields(cells: Cells, wanted: Collection[int]) -> dict[int, Field]:
    """Find the wanted columns in every row of a chunk.

    Parameters
    ----------
    cells : Cells
        The chunk.
    wanted : collection of int
        Places of the columns in the table, counted from 0.

    Returns
    -------
    dict of int to Field
        By place. A record that ends before a column counts as NULL there, with serial type −1,
        so that the caller can tell it from a NULL that was written.

    Raises
    ------
    Unsupported
        If a header's sizes do not add up to the payload, or anything else is odd.
    """
    sizes = cells.head[:, 0]
    longest = int(sizes.max())
    if longest > _LONGEST_HEADER:
        raise Unsupported("a record header of more than 127 bytes")
    if sizes.min() < 2 or (cells.record + sizes > cells.stop).any():
        raise Unsupported("a damaged record header")
    width = (longest + 7) // 8 * 8
    if width <= cells.head.shape[1]:
        headers = np.ascontiguousarray(cells.head[:, :width])
    else:
        headers = fetch(cells.data, cells.record, width)
    varying, high = _variation(headers)
    if sizes.min() == longest and not (high[1:longest] >= 0x80).any():
        found = _walk(cells.record, cells.payload, headers, varying, wanted)
    else:
        found = _by_shape(cells, headers, sizes, wanted)
    if cells.overflows:
        _refuse_overflow(cells, found)
    return found


def _variation(headers: Bytes) -> tuple[Bytes, Bytes]:
    """Return, for each header byte, the bits that differ between rows and those set in any."""
    words = headers.view(np.uint64)
    each = range(words.shape[1])
    ones = np.array([np.bitwise_or.reduce(words[:, word]) for word in each], np.uint64)
    common = np.array([np.bitwise_and.reduce(words[:, word]) for word in each], np.uint64)
    return (ones & ~common).view(np.uint8), ones.view(np.uint8)


def _by_shape(
    cells: Cells, headers: Bytes, sizes: Bytes, wanted: Collection[int]
) -> dict[int, Field]:
    """Walk the headers of each shape, and bring what was found together again."""
    rows = len(cells)
    whole = {place: (np.empty(rows, np.int64), np.empty(rows, np.intp)) for place in wanted}
    for same in _shapes(headers, sizes):
        part = headers[same]
        for place, field in _walk(
            cells.record[same], cells.payload[same], part, _variation(part)[0], wanted
        ).items():
            serial, at = whole[place]
            serial[same], at[same] = field.serial, field.at
    return {place: Field.of(*each) for place, each in whole.items()}


def _shapes(headers: Bytes, sizes: Bytes) -> Iterator[Positions]:
    """Yield the rows of each shape: header size and places of the continuation bits."""
    inside = np.arange(headers.shape[1]) < sizes[:, None]
    bits = np.zeros((len(headers), 16), np.uint8)
    packed = np.packbits((headers >= 0x80) & inside, axis=1)
    bits[:, : packed.shape[1]] = packed
    words = bits.view(np.uint64)
    left = np.arange(len(headers))
    for _ in range(_MOST_SHAPES):
        size, first, second = sizes[left], words[left, 0], words[left, 1]
        same = (size == size[0]) & (first == first[0]) & (second == second[0])
        yield left[same]
        left = left[~same]
        if not len(left):
            return
    raise Unsupported("record headers of too many shapes")


def _walk(
    record: Positions,
    payload: npt.NDArray[np.int64],
    headers: Bytes,
    varying: Bytes,
    wanted: Collection[int],
) -> dict[int, Field]:
    """Walk headers of one shape, column by column.

    `before` + `fixed` is where the next value begins: what differs between rows, and what does
    not.
    """
    size = int(headers[0, 0])
    before, fixed = record, size
    found: dict[int, Field] = {}
    place, at = 0, 1
    while at < size:
        serial, length = _serial(headers, varying, at, size)
        if place in wanted:
            found[place] = Field.of(serial, before, fixed)
        if isinstance(serial, int):
            fixed += int(_SIZE[serial])
        elif serial.dtype == np.uint8:
            before = before + _SIZE.take(serial)
        else:
            before = before + ((serial - 12) >> 1)
        place, at = place + 1, at + length
    if (before + fixed - record != payload).any():
        raise Unsupported("a record whose sizes do not add up")
    for missing in wanted:
        if missing >= place:
            found[missing] = Field.of(-1, record)
    return found


def _serial(headers: Bytes, varying: Bytes, at: int, size: int) -> tuple[Serial, int]:
    """Read one column's serial type of all rows, and how many header bytes it takes."""
    length = 1
    while headers[0, at + length - 1] >= 0x80:
        length += 1
        if at + length > size or length > 4:
            raise Unsupported("a damaged record header")
    if length == 1:
        return (headers[:, at].copy() if varying[at] else int(headers[0, at])), 1
    serial = np.zeros(len(headers), np.int64)
    for byte in range(at, at + length):
        serial = (serial << 7) | (headers[:, byte] & 0x7F)
    if serial.min() < 12:  # a short number, spelled long
        raise Unsupported("a damaged record header")
    return serial, length


def _refuse_overflow(cells: Cells, found: dict[int, Field]) -> None:
    """Refuse wanted values that lie, even in part, on overflow pages."""
    for field in found.values():
        serial = np.asarray(field.serial, np.int64)
        size = np.where(serial < 12, _SIZE[np.clip(serial, 0, 11)], (serial - 12) >> 1)
        if (field.at + size > cells.stop).any():
            raise Unsupported("a wanted value on an overflow page")
