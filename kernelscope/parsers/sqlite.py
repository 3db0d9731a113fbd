"""A profiler's SQLite file as NumPy columns: table name + wanted columns → arrays.

Parsers see a profiler's database only through :class:`SqliteFile`: which tables there are,
which columns a table has, and the columns that the parser wants, in rowid order. Columns that
the table does not have are left out of the answer, so that a parser asks for what any version
may hold and looks at what came back.

Columns are read straight from the file's pages (:mod:`kernelscope.parsers.btree`) or, where
anything is unusual, through the ``sqlite3`` module, which is slow and always right.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np

from kernelscope.errors import DamagedFileError, TraceFileError
from kernelscope.parsers.blobs import Blobs, of_values, read_blobs
from kernelscope.parsers.btree import Layout, Stamp, Unsupported, read_columns
from kernelscope.parsers.btree_pages import SMALLEST_CELL, pending_write
from kernelscope.parsers.columns import (
    ColumnBuilder,
    MixedKindsError,
    Numbers,
    RawColumn,
    affinity,
)
from kernelscope.parsers.sniff import EXPORT_AGAIN
from kernelscope.trace import Categorical

__all__ = [
    "COLUMNAR",
    "Blobs",
    "Numbers",
    "RawColumn",
    "Read",
    "SqliteFile",
    "blobs_with_sqlite3",
    "connect",
    "read_with_sqlite3",
]

_ROWS_AT_ONCE = 8192

COLUMNAR = "columnar"
"""How most tables are read: `Read.how` of those whose columns came straight from the pages."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read:
    """What came of reading one table.

    Attributes
    ----------
    columns : dict of str to Numbers or Categorical
        The wanted columns that the table has, each of shape (rows,).
    rows : int
        How many rows the table has; 0 where there is no such table.
    how : str
        Which path read it: ``columnar``, or ``sqlite3`` with the reason after a colon.
    """

    columns: dict[str, RawColumn]
    rows: int
    how: str


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """An SQLite file, opened read-only and never changed.

    Attributes
    ----------
    path : Path
        The file.
    tables : mapping of str to tuple of str
        Tables and views by name, with their columns in order.
    layouts : mapping of str to Layout
        How each is stored.
    stamp : Stamp or None
        The file's state when the layouts were read.
    pending : str or None
        The log beside the file then, as :func:`pending_write` names it. One that another program
        writes later is not looked into: SQLite would leave an index of it behind.
    """

    path: Path
    tables: Mapping[str, tuple[str, ...]]
    layouts: Mapping[str, Layout] = field(default_factory=dict, repr=False)
    stamp: Stamp | None = field(default=None, repr=False)
    pending: str | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: Path) -> SqliteFile:
        """Read the names of the tables and columns.

        Raises
        ------
        sqlite3.DatabaseError
            If the file is no SQLite database, or its schema cannot be read.
        DamagedFileError
            If a log beside the file shows that its writing was broken off.
        """
        stamp, pending = Stamp.of(path), pending_write(path)
        try:
            with closing(connect(path, pending)) as connection:
                layouts = _layouts(connection)
        except sqlite3.DatabaseError as error:
            if pending:
                raise _explained(path, "sqlite_master", error) from error
            raise
        except UnicodeDecodeError as error:  # SQLite's message quotes what it cannot read
            raise sqlite3.DatabaseError(f"malformed database schema ({error})") from error
        tables = {name: tuple(layout.columns) for name, layout in layouts.items()}
        return cls(path, tables, layouts, stamp, pending)

    def read(self, table: str, wanted: Sequence[str]) -> Read:
        """Read those of the `wanted` columns that `table` has, in rowid order.

        An absent table, or one with none of the wanted columns, gives an empty answer.

        Raises
        ------
        DamagedFileError
            If SQLite finds the file damaged.
        """
        have = [name for name in wanted if name in self.tables.get(table, ())]
        if not have:
            return Read({}, 0, "absent")
        try:
            if self.stamp is None:
                raise Unsupported("its layout is not known")
            columns = read_columns(self.path, self.layouts[table], self.stamp, have)
            how = COLUMNAR
        except Unsupported as refusal:
            columns = read_with_sqlite3(self.path, table, have, self.pending)
            how = f"sqlite3: {refusal.reason}"
        return Read(columns, _rows(columns), how)

    def read_bytes(self, table: str, column: str, width: int) -> Blobs | None:
        """Read a column of short byte strings, the first `width` bytes of each, in rowid order.

        Returns
        -------
        Blobs or None
            None where there is no such table or column.

        Raises
        ------
        DamagedFileError
            If SQLite finds the file damaged.
        """
        if column not in self.tables.get(table, ()):
            return None
        try:
            if self.stamp is None:
                raise Unsupported("its layout is not known")
            return read_blobs(self.path, self.layouts[table], self.stamp, column, width)
        except Unsupported:
            return blobs_with_sqlite3(self.path, table, column, width, self.pending)

    def value_of(self, table: str, keys: str, key: str, values: str) -> str | None:
        """Return the text in column `values` where column `keys` holds `key`; None if nowhere.

        SQLite looks the one row up, so that a table of which the rest is nobody's business is
        not read. An unreadable table has no answer.
        """
        if not {keys, values} <= set(self.tables.get(table, ())):
            return None
        query = f"SELECT {_quoted(values)} FROM {_quoted(table)} WHERE {_quoted(keys)} = ?"
        try:
            with closing(connect(self.path, self.pending)) as connection:
                row = connection.execute(query, (key,)).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None or row[0] is None else str(row[0])

    def has_rows(self, table: str) -> bool:
        """Return whether `table` holds any row, without reading it; an unreadable one has none."""
        if table not in self.tables:
            return False
        try:
            with closing(connect(self.path, self.pending)) as connection:
                query = f"SELECT 1 FROM {_quoted(table)} LIMIT 1"
                return connection.execute(query).fetchone() is not None
        except sqlite3.Error:
            return False

    def read_blobs(self, table: str, column: str) -> tuple[list[int], list[bytes]]:
        """Read the blobs of one column, and the place of each in the table's order of rows.

        Values of other types are left out, and so is a column that the table does not have.

        Raises
        ------
        DamagedFileError
            If SQLite finds the file damaged.
        """
        places: list[int] = []
        found: list[bytes] = []
        if column not in self.tables.get(table, ()):
            return places, found
        try:
            with closing(connect(self.path, self.pending)) as connection:
                first = 0
                for block in _blocks(connection, self.path, table, [column]):
                    some = [(i, value) for i, (value,) in enumerate(block, first) if value]
                    places += [i for i, value in some if isinstance(value, bytes)]
                    found += [value for _, value in some if isinstance(value, bytes)]
                    first += len(block)
        except sqlite3.Error as error:
            raise _explained(self.path, table, error) from error
        return places, found


def _layouts(connection: sqlite3.Connection) -> dict[str, Layout]:
    layouts = {}
    for name, kind, root in connection.execute(
        "SELECT name, type, CAST(rootpage AS INTEGER) FROM sqlite_master"
        " WHERE type IN ('table', 'view') AND typeof(name) = 'text'"
    ).fetchall():
        try:
            layouts[name] = Layout.of(connection, name, kind, root)
        except sqlite3.OperationalError as error:  # a view of what is not there, say
            layouts[name] = Layout(0, {}, str(error))
    return layouts


def _rows(columns: Mapping[str, RawColumn]) -> int:
    first = next(iter(columns.values()))
    return len(first.codes if isinstance(first, Categorical) else first.values)


def connect(path: Path, pending: str | None = None) -> sqlite3.Connection:
    r"""Open `path` read-only; text that is not UTF-8 keeps its bytes as ``\xNN`` escapes.

    SQLite may have been built to map files into memory, where a file that another program cuts
    short kills the process; here it reads. And it follows a row past the end of a damaged page
    into whatever lies behind it in memory, so that the answer is another each time, unless told
    to look whether rows lie inside their pages.
    """
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    if not (pending_write(path) if pending is None else pending):
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True)
    try:
        connection.execute("PRAGMA mmap_size = 0").close()
        connection.execute("PRAGMA cell_size_check = ON").close()
    except sqlite3.Error:
        connection.close()
        raise
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    return connection


def read_with_sqlite3(
    path: Path, table: str, columns: Sequence[str], pending: str | None = None
) -> dict[str, RawColumn]:
    """Read `columns` of `table` through the standard library; slow, and always right.

    Raises
    ------
    DamagedFileError
        If SQLite finds the file damaged, if another program was stopped while writing it, or if
        the file changes meanwhile.
    TraceFileError
        If SQLite cannot read the table for another reason.
    """
    return _guarded(
        path, table, pending, lambda connection: _rescan(connection, path, table, columns)
    )


def blobs_with_sqlite3(
    path: Path, table: str, column: str, width: int, pending: str | None = None
) -> Blobs:
    """Read a column of byte strings through the standard library; errors as above."""

    def scan(connection: sqlite3.Connection) -> Blobs:
        blocks = _blocks(connection, path, table, [column])
        return of_values([value for block in blocks for (value,) in block], width)

    return _guarded(path, table, pending, scan)


def _guarded(
    path: Path, table: str, pending: str | None, scan: Callable[[sqlite3.Connection], T]
) -> T:
    """Scan a table, texts as bytes; say what is wrong where SQLite finds something."""
    pending, stamp = pending_write(path) if pending is None else pending, Stamp.of(path)
    try:
        with closing(connect(path, pending)) as connection:
            connection.text_factory = bytes
            read = scan(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _explained(path, table, error) from error
    if pending_write(path) != pending or not (pending or stamp.holds(path)):
        raise DamagedFileError(
            f"{path.name}: table {table!r} changed while it was read",
            "Wait until the file is written, and try again.",
        )
    return read


def _rescan(
    connection: sqlite3.Connection, path: Path, table: str, columns: Sequence[str]
) -> dict[str, RawColumn]:
    as_text: frozenset[str] = frozenset()
    while True:
        try:
            return _scan(connection, path, table, columns, as_text)
        except _Mixed as mixed:
            # Numbers were taken before the first text came. Their own spelling is wanted, so
            # the table is read once more.
            as_text |= {mixed.column}


class _Mixed(Exception):
    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _scan(
    connection: sqlite3.Connection,
    path: Path,
    table: str,
    columns: Sequence[str],
    as_text: frozenset[str],
) -> dict[str, RawColumn]:
    """Read a table once, some thousand rows at a time."""
    declared = {
        name.decode("utf-8", "backslashreplace"): affinity(kind.decode("utf-8", "replace"))
        for name, kind in connection.execute(
            "SELECT name, type FROM pragma_table_xinfo(?)", (table,)
        )
    }
    builders = {name: ColumnBuilder(_ROWS_AT_ONCE, declared.get(name, "")) for name in columns}
    for block in _blocks(connection, path, table, list(builders)):
        for (name, builder), values in zip(builders.items(), zip(*block, strict=True), strict=True):
            try:
                _add(builder, values, name in as_text)
            except MixedKindsError:
                raise _Mixed(name) from None
    return {name: builder.done() for name, builder in builders.items()}


def _blocks(
    connection: sqlite3.Connection, path: Path, table: str, columns: Sequence[str]
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows in the order of the table itself.

    A damaged tree can lead SQLite through the same pages for ever; there it is stopped.
    """
    stored = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0", (table,)
    ).fetchall()
    # Were an index to hold all the columns, SQLite would answer in its order. And with the
    # table's name before it, a column that is not there is an error, not a string.
    chosen = ", ".join(f"t.{_quoted(name)}" for name in columns)
    source = f"{_quoted(table)} AS t{' NOT INDEXED' if stored else ''}"
    cursor = connection.execute(f"SELECT {chosen} FROM {source}")
    room = _most_rows(path)
    while block := cursor.fetchmany(_ROWS_AT_ONCE):
        room -= len(block)
        if stored and room < 0:
            raise sqlite3.DatabaseError("more rows than the file has room for")
        yield block


def _most_rows(path: Path) -> int:
    """Return how many rows fit in a file: each takes a cell, and a pointer of two bytes."""
    path = path.resolve()
    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return size // (SMALLEST_CELL + 2)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _add(builder: ColumnBuilder, values: Sequence[Any], as_text: bool) -> None:
    """Add one column of a block; texts and blobs come as bytes."""
    kinds = set(map(type, values))
    rows = len(values)
    if kinds == {type(None)}:
        builder.nulls(rows)
    elif bytes in kinds or as_text:
        text = builder.text()
        if kinds & {int, float}:
            values = [str(v).encode() if isinstance(v, int | float) else v for v in values]
        codes = np.fromiter(map(text.texts.__getitem__, values), np.int32, rows)
        text.add(codes, rows)
    else:
        null = None
        if type(None) in kinds:
            null = np.fromiter((v is None for v in values), np.bool_, rows)
            values = [0 if v is None else v for v in values]
        dtype = np.float64 if float in kinds else np.int64
        builder.numbers().add(np.fromiter(values, dtype, rows), null)


_DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_TOOBIG,
)


def _explained(path: Path, table: str, error: Exception) -> TraceFileError:
    """Say which file and table, what SQLite found, and what to do next."""
    where = f"{path.name}: table {table!r} cannot be read"
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _DAMAGED:
        return DamagedFileError(f"{where}, the file is damaged ({error})", EXPORT_AGAIN)
    pending = pending_write(path)
    if pending:
        return DamagedFileError(
            f"{where}: {pending} beside the file says that it is still being written, or that "
            f"the writing was broken off ({error})",
            f"Wait until it is written. {EXPORT_AGAIN}",
        )
    return TraceFileError(f"{where} ({error})", EXPORT_AGAIN)
