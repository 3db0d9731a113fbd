"""What the tests of the SQLite reader share: answers to compare, and databases to read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.parsers.sqlite import (
    Numbers,
    RawColumn,
    Read,
    SqliteFile,
    connect,
    read_with_sqlite3,
)
from kernelscope.trace import Categorical


def as_list(column: RawColumn) -> list[Any]:
    """One Python value a row, None where missing."""
    if isinstance(column, Categorical):
        return [None if code < 0 else column.categories[code] for code in column.codes]
    values: list[Any] = column.values.tolist()
    if column.null is None:
        return values
    return [None if null else v for v, null in zip(values, column.null, strict=True)]


def expected(values: list[Any]) -> list[Any]:
    """What a column must read as, by its values in Python: the reader's rules, told anew."""
    kinds = {type(v) for v in values}
    if kinds & {str, bytes}:
        spelled = (
            v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else v for v in values
        )
        return [None if v is None else str(v) for v in spelled]
    if float in kinds:
        return [None if v is None else float(v) for v in values]
    return values


def plain_rows(path: Path, table: str, columns: tuple[str, ...]) -> list[list[Any]]:
    """The table's columns, by nothing but sqlite3, in the order of the table."""
    names = ", ".join('t."' + name.replace('"', '""') + '"' for name in columns)
    with closing(connect(path)) as connection:
        is_view = connection.execute(
            "SELECT type = 'view' FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()[0]
        hint = "" if is_view else "NOT INDEXED"
        quoted = table.replace('"', '""')
        rows = connection.execute(f'SELECT {names} FROM "{quoted}" AS t {hint}').fetchall()
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]


def assert_same(one: RawColumn, other: RawColumn, where: str) -> None:
    """Both columns are of one kind and type, and equal."""
    if isinstance(one, Categorical) or isinstance(other, Categorical):
        assert isinstance(one, Categorical), where
        assert isinstance(other, Categorical), where
        assert one.categories == other.categories, where
        np.testing.assert_array_equal(one.codes, other.codes, err_msg=where)
        return
    assert one.values.dtype == other.values.dtype, where
    np.testing.assert_array_equal(one.values, other.values, err_msg=where)
    assert (one.null is None) == (other.null is None), where
    if one.null is not None and other.null is not None:
        np.testing.assert_array_equal(one.null, other.null, err_msg=where)


def check_table(file: SqliteFile, table: str, *, plainly: bool = True) -> Read:
    """Both paths give equal arrays, and the values that plain sqlite3 gives."""
    columns = file.tables[table]
    read = file.read(table, columns)
    if not columns:
        return read
    slow = read_with_sqlite3(file.path, table, columns)
    assert list(read.columns) == list(slow) == list(columns)
    for name in columns:
        assert_same(read.columns[name], slow[name], f"{file.path.name}: {table}.{name}")
    if plainly:
        for name, values in zip(columns, plain_rows(file.path, table, columns), strict=True):
            assert as_list(read.columns[name]) == expected(values), f"{table}.{name}"
            column = read.columns[name]
            if isinstance(column, Numbers) and column.null is not None:
                assert not column.values[column.null].any()
    return read


def check_file(path: Path, *, plainly: bool = True) -> dict[str, str]:
    """Check every table of a file; return how each was read."""
    file = SqliteFile.open(path)
    return {table: check_table(file, table, plainly=plainly).how for table in file.tables}


def make(path: Path, *statements: str | tuple[str, list[Any]]) -> Path:
    """Write a database from statements, or pairs of a statement and many rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            if isinstance(statement, str):
                db.execute(statement)
            else:
                db.execute("BEGIN")
                db.executemany(*statement)
                db.execute("COMMIT")
    return path


def make_trace(path: Path, rows: int = 3000, *, page_size: int = 1024, seed: int = 0) -> Path:
    """Write what looks like a profiler's export: kernels, strings and ranges."""
    rng = np.random.default_rng(seed)
    start = np.cumsum(rng.integers(100, 40_000, rows)) + 2**34
    kernels = [
        (int(s), int(s + d), i % 2, 7, i * 3, 2**48 + i % 2, i % 37, None if i % 5 else i, i % 700)
        for i, (s, d) in enumerate(zip(start, rng.integers(900, 9_000, rows), strict=True))
    ]
    ranges = [
        (
            int(s),
            None if i % 7 == 0 else int(s) + 50,
            59,
            f"step {i % 90}" + "·" * (i % 40),
            0.5 * i,
        )
        for i, s in enumerate(start[: rows // 3])
    ]
    return make(
        path,
        f"PRAGMA page_size = {page_size}",
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
        " graphNodeId INTEGER, gridX INTEGER)",
        "CREATE TABLE NVTX (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, value REAL)",
        (
            "INSERT INTO StringIds VALUES (?, ?)",
            [(i, f"void kernel_{i}<float, (int){i % 7}>(T1 *)" * (1 + i % 3)) for i in range(200)],
        ),
        ("INSERT INTO KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", kernels),
        ("INSERT INTO NVTX VALUES (?, ?, ?, ?, ?)", ranges),
    )
