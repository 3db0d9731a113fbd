"""Whole columns of an SQLite table, straight from the file's pages.

SQLite hands out one Python tuple a row; a trace of ten million kernels is then read in minutes.
Here a table is read a column at a time: the table's b-tree is walked to its leaves
(`btree_pages`), these are read some hundred at a time, each row's record header says where its
values lie (`btree_records`), and the values of a whole chunk of rows are fetched with one NumPy
operation each (here, `btree_values` and `btree_text`).

Only what is common is read this way. Anything else raises :class:`Unsupported`, and the caller
asks the ``sqlite3`` module instead: tables WITHOUT ROWID, views, virtual tables and generated
columns; values on overflow pages; text that is not UTF-8; columns of mixed kinds, and blobs;
rows older than a column with a default; logs beside the file that hold changes; a damaged or
changing file. When in doubt it refuses: a wrong number is worse than a slow one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.btree_pages import (
    Pages,
    Stamp,
    Unsupported,
    leaves,
    pending_write,
)
from kernelscope.parsers.btree_records import Cells, Field, chunks, fields
from kernelscope.parsers.btree_text import encode
from kernelscope.parsers.btree_values import Values
from kernelscope.parsers.columns import ColumnBuilder, MixedKindsError, RawColumn, affinity

__all__ = ["Layout", "Stamp", "Unsupported", "check_still", "read_columns"]

_FLOAT = 7
_FIRST_TEXT = 12
# By serial type; the last one, of no use otherwise, also stands for −1: a value that is not there.
_WIDTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.uint8)
# Bits behind the value when 4 or 8 bytes are fetched from where it begins.
_SHIFT = {
    item: np.array(
        [min(8 * max(item - width, 0), 8 * item - 1) for width in _WIDTH.tolist()], f"i{item}"
    )
    for item in (4, 8)
}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as the schema declares it.

    Attributes
    ----------
    place : int
        Which value of the record it is, counted from 0.
    declared : str
        Its `affinity`.
    not_null : bool
        Whether the schema forbids NULL; if there is one, the file is damaged.
    default : bool
        Whether rows that end before it have another value than NULL.
    is_rowid : bool
        Whether it is another name for the rowid (``INTEGER PRIMARY KEY``), which the record
        holds as NULL.
    """

    place: int
    declared: str
    not_null: bool
    default: bool
    is_rowid: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a table begins and what its records hold.

    Attributes
    ----------
    root : int
        Its root page.
    columns : dict of str to StoredColumn
        By name.
    refusal : str
        Why it cannot be read from its pages; '' where it can.
    """

    root: int
    columns: dict[str, StoredColumn]
    refusal: str = ""

    @classmethod
    def of(cls, connection: sqlite3.Connection, table: str, kind: str, root: int) -> Layout:
        """Ask SQLite for a table's layout.

        Parameters
        ----------
        connection : sqlite3.Connection
            The database.
        table, kind, root : str, str, int
            `name`, `type` and `rootpage` in the schema table.
        """
        rows = connection.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
            (table,),
        ).fetchall()
        keys = [name for name, _, _, _, pk, _ in rows if pk]
        # A primary key that SQLite had to build an index for is a column of its own.
        rowid = (
            len(keys) == 1
            and not connection.execute(
                "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", (table,)
            ).fetchall()
        )
        columns = {
            name: StoredColumn(
                place,
                affinity(declared or ""),
                bool(not_null),
                default is not None and default.upper() != "NULL",
                rowid and name == keys[0] and (declared or "").upper() == "INTEGER",
            )
            for place, (name, declared, not_null, default, _, _) in enumerate(rows)
        }
        refusal = ""
        if kind == "view":
            refusal = "a view"
        elif not root:
            refusal = "a virtual table"
        elif any(hidden for *_, hidden in rows):
            refusal = "generated columns"
        return cls(root or 0, columns, refusal)


def read_columns(
    path: Path, layout: Layout, stamp: Stamp, wanted: Sequence[str]
) -> dict[str, RawColumn]:
    """Read columns of a table from the file's pages, in rowid order.

    Parameters
    ----------
    path : Path
        The SQLite file.
    layout : Layout
        The table's.
    stamp : Stamp
        The file's when the layout was read.
    wanted : sequence of str
        Columns that the table has.

    Raises
    ------
    Unsupported
        If the table or the file is in any way unusual; nothing has been returned then.
    """
    if layout.refusal:
        raise Unsupported(layout.refusal)
    check_still(path, stamp)
    columns = {name: layout.columns[name] for name in wanted}
    builders: dict[str, ColumnBuilder] = {}
    rowids = any(column.is_rowid for column in columns.values())
    with Pages.open(path, stamp) as pages:
        numbers = leaves(pages, layout.root)
        for cells in chunks(pages, numbers, rowids=rowids):
            builders = builders or _builders(columns, _room(cells, len(numbers)))
            _take(cells, columns, builders, pages.utf8)
    check_still(path, stamp)
    builders = builders or _builders(columns, 0)
    return {name: builder.done() for name, builder in builders.items()}


def _builders(columns: dict[str, StoredColumn], room: int) -> dict[str, ColumnBuilder]:
    return {name: ColumnBuilder(room, column.declared) for name, column in columns.items()}


def _room(first: Cells, leaves: int) -> int:
    """Return how many rows to make room for, by the first of them.

    Numbers grow along a table, so that later pages hold fewer rows; and room that is not used
    takes no memory, as long as nobody writes there.
    """
    if first.leaves == leaves:
        return len(first)
    return len(first) * leaves // first.leaves * 21 // 20


def check_still(path: Path, stamp: Stamp) -> None:
    """Check that nobody writes the file, nor has since its layout was read.

    Raises
    ------
    Unsupported
        If somebody does.
    """
    if not stamp.holds(path):
        raise Unsupported("the file changed while it was read")
    pending = pending_write(path)
    if pending:
        raise Unsupported(f"{pending} beside the file")


def _take(
    cells: Cells, columns: dict[str, StoredColumn], builders: dict[str, ColumnBuilder], utf8: bool
) -> None:
    """Add the rows of one chunk to every column."""
    found = fields(cells, {each.place for each in columns.values() if not each.is_rowid})
    values = Values(cells, found.values())
    for name, column in columns.items():
        builder = builders[name]
        if column.is_rowid:
            builder.numbers().add(cells.rowid)
            continue
        field = found[column.place]
        if field.lowest < 0 and column.default:
            raise Unsupported("rows older than a column with a default")
        if field.lowest <= 0 and column.not_null:
            raise Unsupported("NULL where the schema forbids it")
        if field.highest <= 0:
            builder.nulls(len(cells))
            continue
        try:
            if field.highest >= _FIRST_TEXT:
                if not utf8:
                    raise Unsupported("text that is not in UTF-8")
                _take_text(cells, field, builder)
            else:
                _take_numbers(values, field, builder, column.declared == "REAL")
        except MixedKindsError:
            raise Unsupported("a column of both text and numbers") from None


def _take_text(cells: Cells, field: Field, builder: ColumnBuilder) -> None:
    serial, at = np.broadcast_to(field.serial, len(cells)), field.at
    null = serial <= 0
    if (null | ((serial > _FIRST_TEXT) & (serial & 1 == 1))).all():
        text = builder.text()
    else:
        raise Unsupported("blobs, or a column of both text and numbers")
    length = (serial.astype(np.int64) - 13) >> 1
    if not null.any():
        text.add(encode(cells.data, at, length, text.texts), len(cells))
        return
    codes = np.full(len(cells), -1, np.int32)
    has = np.flatnonzero(~null)
    codes[has] = encode(cells.data, at[has], length[has], text.texts)
    text.add(codes, len(cells))


def _take_numbers(values: Values, field: Field, builder: ColumnBuilder, real: bool) -> None:
    numbers = builder.numbers()
    serial, lowest, highest = field.serial, field.lowest, field.highest
    if lowest == highest and lowest in (8, 9) and not real:
        numbers.repeat(lowest - 8, len(field.before))
        return
    null = serial <= 0 if isinstance(serial, np.ndarray) and lowest <= 0 else None
    is_float = serial == _FLOAT
    floats = highest >= _FLOAT and bool(np.any(is_float))
    if floats and not real and not np.all(is_float if null is None else is_float | null):
        raise Unsupported("a column of both integers and floats")
    if not real and numbers.dtype is not None and (numbers.dtype.kind == "f") != floats:
        raise Unsupported("a column of both integers and floats")
    read: npt.NDArray[Any]
    if not floats:
        read = _integers(values, field)
    elif isinstance(serial, int):
        read = _floats(values, field)
    else:
        read = np.where(is_float, _floats(values, field), _integers(values, field))
        read[serial <= 0] = 0
    if floats and np.isnan(read).any():
        raise Unsupported("a float that is not a number")  # SQLite reads it as NULL
    numbers.add(read.astype(np.float64, copy=False) if real else read, null)


def _floats(values: Values, field: Field) -> npt.NDArray[np.float64]:
    return values.numbers(field, 8, kind="f").astype(np.float64)


def _integers(values: Values, field: Field) -> npt.NDArray[np.signedinteger[Any]]:
    """Fetch integers of 0 to 8 bytes, in as narrow a type as holds the widest.

    As many bytes as that are fetched from the value on, and shifted right by what is too much.
    What has no bytes gives 0, or 1 where the serial type says so.
    """
    serial = field.serial
    if isinstance(serial, int) and serial >= 8:
        return np.full(len(field.before), serial - 8, np.int8)
    widest = int(_WIDTH[field.highest] if field.highest < 8 else np.max(_WIDTH.take(serial)))
    item = 1 if widest <= 1 else 4 if widest <= 4 else 8
    read: npt.NDArray[np.signedinteger[Any]] = values.numbers(field, item).astype(f"i{item}")
    if item > 1:
        read >>= _SHIFT[item].take(serial)
    if field.lowest <= 0 or field.highest >= 8:
        np.putmask(read, _WIDTH.take(serial) == 0, 0)
        read += np.equal(serial, 9)
    return read
