"""A profiler's SQLite file as NumPy columns: table name + wanted columns → arrays.

Parsers see a profiler's database only through :class:`SqliteFile`: which tables there are,
which columns a table has, and the columns that the parser wants, in rowid order. Columns that
the table does not have are left out of the answer, so that a parser asks for what any version
may hold and looks at what came back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Categorical


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric column as recorded.

    Attributes
    ----------
    values : ndarray of int32, int64 or float64, shape (n,)
        int32 where every value fits, float64 where any value is REAL. 0 where NULL.
    null : ndarray of bool, shape (n,), or None
        Where the column is NULL; None where it never is.
    """

    values: npt.NDArray[Any]
    null: npt.NDArray[np.bool_] | None = None


RawColumn = Numbers | Categorical
"""What one column reads as: a column of numbers, or of text (NULL has code −1)."""


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
    """

    path: Path
    tables: Mapping[str, tuple[str, ...]]

    @classmethod
    def open(cls, path: Path) -> SqliteFile:
        """Read the names of the tables and columns.

        Raises
        ------
        sqlite3.DatabaseError
            If the file is no SQLite database, or its schema cannot be read.
        """
        connection = connect(path)
        try:
            names = [
                row[0]
                for row in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
                )
            ]
            tables = {
                name: tuple(
                    row[0]
                    for row in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))
                )
                for name in names
            }
        finally:
            connection.close()
        return cls(path, tables)

    def read(self, table: str, wanted: Sequence[str]) -> Read:
        """Read those of the `wanted` columns that `table` has, in rowid order.

        An absent table, or one with none of the wanted columns, gives an empty answer.
        """
        have = [name for name in wanted if name in self.tables.get(table, ())]
        if not have:
            return Read({}, 0, "absent")
        columns = read_with_sqlite3(self.path, table, have)
        return Read(columns, _rows(columns), "sqlite3")


def _rows(columns: Mapping[str, RawColumn]) -> int:
    first = next(iter(columns.values()))
    return len(first.codes if isinstance(first, Categorical) else first.values)


def connect(path: Path) -> sqlite3.Connection:
    r"""Open `path` read-only; text that is not UTF-8 keeps its bytes as ``\xNN`` escapes."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    if not path.with_name(path.name + "-wal").exists():
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    return connection


def read_with_sqlite3(path: Path, table: str, columns: Sequence[str]) -> dict[str, RawColumn]:
    """Read `columns` of `table` through the standard library; slow, and always right."""
    chosen = ", ".join(_quoted(name) for name in columns)
    connection = connect(path)
    try:
        rows = connection.execute(f"SELECT {chosen} FROM {_quoted(table)}").fetchall()
    finally:
        connection.close()
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return {name: _column(values) for name, values in zip(columns, by_column, strict=True)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(values: Sequence[Any]) -> RawColumn:
    """Turn one column of Python values into an array: text if any value is text."""
    kinds = {type(value) for value in values}
    if kinds & {str, bytes}:
        return Categorical.of([None if v is None else _text(v) for v in values])
    null = np.array([v is None for v in values], dtype=np.bool_) if type(None) in kinds else None
    filled = [0 if v is None else v for v in values] if null is not None else values
    array = np.array(filled, dtype=np.float64 if float in kinds else np.int64)
    return Numbers(narrow(array), null)


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Store integers as int32 where all fit and none is the value that stands for *missing*."""
    if values.dtype != np.int64 or not len(values):
        return values.astype(np.int32) if values.dtype == np.int64 else values
    limits = np.iinfo(np.int32)
    fits = values.min() > limits.min and values.max() <= limits.max
    return values.astype(np.int32) if fits else values
