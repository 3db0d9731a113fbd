"""Columns of bytes read alike straight from the pages and through sqlite3."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelscope.errors import DamagedFileError
from kernelscope.parsers.blobs import Blobs, of_values, read_blobs
from kernelscope.parsers.btree import Unsupported
from kernelscope.parsers.sqlite import SqliteFile, blobs_with_sqlite3
from tests.corpus import nvprof_traces

VALUES = st.one_of(
    st.none(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(max_size=9),
    st.binary(max_size=9), st.binary(min_size=7, max_size=9), st.binary(min_size=300, max_size=310),
)  # fmt: skip


def database(path: Path, values: list[Any], declared: str = "BLOB", setting: str = "") -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        if setting:
            connection.execute(setting)
        connection.execute(f"CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, v {declared}, c INT)")
        rows = [("x" * (n % 4), value) for n, value in enumerate(values)]
        connection.executemany("INSERT INTO t(b, v, c) VALUES (?, ?, 5)", rows)
    return path


def same(one: Blobs, other: Blobs) -> bool:
    return np.array_equal(one.data, other.data) and np.array_equal(one.length, other.length)


def told(values: list[Any], width: int) -> list[tuple[int, bytes]]:
    raw = [v.encode() if isinstance(v, str) else v for v in values]
    return [
        (len(v), v[:width].ljust(width, b"\0")) if isinstance(v, bytes) else (-1, bytes(width))
        for v in raw
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=40), width=st.sampled_from([1, 8, 16, 64]))
def test_both_ways_read_what_was_written(tmp_path: Path, values: list[Any], width: int) -> None:
    path = database(tmp_path / "b.sqlite", values)
    file = SqliteFile.open(path)
    slow = blobs_with_sqlite3(path, "t", "v", width)
    found = file.read_bytes("t", "v", width)

    assert found is not None
    assert same(found, slow)
    rows = zip(found.length.tolist(), found.data, strict=True)
    assert [(n, each.tobytes()) for n, each in rows] == told(values, width)
    assert file.stamp is not None
    try:
        assert same(read_blobs(path, file.layouts["t"], file.stamp, "v", width), slow)
    except Unsupported:
        assert any(isinstance(v, bytes) and len(v) > 200 for v in values)


def test_many_rows_are_read_by_columns(tmp_path: Path) -> None:
    values = [struct.pack("<d", n / 3) for n in range(100_000)]
    file = SqliteFile.open(database(tmp_path / "m.sqlite", values, "BLOB NOT NULL"))
    assert file.stamp is not None
    found = read_blobs(file.path, file.layouts["t"], file.stamp, "v", 8)

    assert found.numbers("<f8").tolist() == [n / 3 for n in range(100_000)]
    assert found.hold(8).all()
    assert not found.hold(9).any()


def test_an_overflowing_value_and_other_encodings_take_the_slow_way(tmp_path: Path) -> None:
    for path in (
        database(tmp_path / "o.sqlite", [bytes(9000), b"ab"]),
        database(tmp_path / "u.sqlite", ["täxt", b"ab"], setting="PRAGMA encoding = 'UTF-16'"),
    ):
        file = SqliteFile.open(path)
        assert file.stamp is not None
        with pytest.raises(Unsupported):
            read_blobs(path, file.layouts["t"], file.stamp, "v", 8)
        found = file.read_bytes("t", "v", 8)
        assert found is not None
        assert found.data[1].tobytes() == b"ab" + bytes(6)


def test_rows_older_than_a_column_have_its_default(tmp_path: Path) -> None:
    path = database(tmp_path / "d.sqlite", [b"1"])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE t ADD COLUMN w BLOB NOT NULL DEFAULT x'0102'")
    found = SqliteFile.open(path).read_bytes("t", "w", 4)
    assert found is not None
    assert found.length.tolist() == [2]


def test_absent_and_empty(tmp_path: Path) -> None:
    file = SqliteFile.open(database(tmp_path / "e.sqlite", []))
    assert file.read_bytes("t", "nothing", 8) is None
    assert file.read_bytes("nothing", "v", 8) is None
    found = file.read_bytes("t", "v", 8)
    assert found is not None
    assert found.numbers("<u8").tolist() == []


def test_a_damaged_page_is_said(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite", [b"12345678"] * 3000)
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="damaged"):
        SqliteFile.open(path).read_bytes("t", "v", 8)


def test_of_values_is_plain() -> None:
    found = of_values([b"abc", None, 5, b""], 2)
    assert found.data.tolist() == [[97, 98], [0, 0], [0, 0], [0, 0]]
    assert found.length.tolist() == [3, -1, -1, 0]


@pytest.mark.parametrize("path", nvprof_traces(), ids=lambda path: path.stem)
def test_blobs_of_real_databases_read_alike(path: Path) -> None:
    file = SqliteFile.open(path)
    for table, layout in file.layouts.items():
        for column in ("value", "objectId", "uuid", "payload", "cacheConfig", "attr", "cubin"):
            if column in layout.columns:
                found = file.read_bytes(table, column, 16)
                assert found is not None
                assert same(found, blobs_with_sqlite3(path, table, column, 16)), (table, column)
