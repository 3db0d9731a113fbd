"""What the columnar reader reads, what it refuses, and that it refuses for the right reason."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope.parsers import btree, btree_text
from kernelscope.parsers.btree_pages import Unsupported, leaves
from kernelscope.parsers.columns import Numbers, Texts
from kernelscope.parsers.sqlite import SqliteFile
from kernelscope.trace import Categorical
from tests.parsers.tables import as_list, check_file, check_table, make, make_trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.sqlite"


def numbers(path: Path, table: str, column: str) -> Numbers:
    read = SqliteFile.open(path).read(table, [column])
    assert read.how == "columnar"
    found = read.columns[column]
    assert isinstance(found, Numbers)
    return found


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_what_looks_like_an_export_is_read_by_columns(path: Path, page_size: int) -> None:
    assert set(check_file(make_trace(path, 2000, page_size=page_size)).values()) == {"columnar"}


REFUSED = {
    "a WITHOUT ROWID table": ["CREATE TABLE t (a INTEGER PRIMARY KEY, b) WITHOUT ROWID"],
    "a view": ["CREATE TABLE s (a)", "CREATE VIEW t AS SELECT a FROM s"],
    "generated columns": ["CREATE TABLE t (a, b AS (a + 1))"],
    "text that is not in UTF-8": ["PRAGMA encoding = 'UTF-16'", "CREATE TABLE t (a, b)",
                                  "INSERT INTO t VALUES (1, 'x')"],
    "a wanted value on an overflow page": ["CREATE TABLE t (a, b)",
                                           "INSERT INTO t VALUES (1, printf('%.*c', 9000, 'x'))"],
    "blobs, or a column of both text and numbers": ["CREATE TABLE t (a)",
                                                    "INSERT INTO t VALUES (x'00')"],
    "a column of both text and numbers": ["CREATE TABLE t (a)", "INSERT INTO t VALUES ('x')",
                                          "INSERT INTO t VALUES (1)"],
    "a column of both integers and floats": ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)",
                                             "INSERT INTO t VALUES (1.5)"],
    "rows older than a column with a default": ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)",
                                                "ALTER TABLE t ADD COLUMN b DEFAULT 7"],
    "a record header of more than 127 bytes": [
        f"CREATE TABLE t ({', '.join(f'c{i}' for i in range(200))})",
        "INSERT INTO t (c0) VALUES (1)"],
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_unusual_is_left_to_sqlite3(path: Path, reason: str) -> None:
    how = check_file(make(path, *REFUSED[reason]))["t"]
    if reason.startswith("a column of both text"):
        assert "both text and numbers" in how
    else:
        assert how == f"sqlite3: {reason}"


def test_a_virtual_table_is_left_to_sqlite3(path: Path) -> None:
    try:
        make(path, "CREATE VIRTUAL TABLE t USING rtree(a, b, c)", "INSERT INTO t VALUES (1, 2, 3)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no rtree module")
    assert check_file(path)["t"] == "sqlite3: a virtual table"


def test_only_wanted_columns_can_be_refused(path: Path) -> None:
    make(
        path,
        "CREATE TABLE t (a INTEGER, b BLOB, c REAL, d TEXT)",
        (
            "INSERT INTO t VALUES (?, ?, ?, ?)",
            [(i, b"\0" * i, i / 2, "x" * 9000) for i in range(99)],
        ),
    )
    read = SqliteFile.open(path).read("t", ["a", "c"])
    assert read.how == "columnar"
    assert as_list(read.columns["a"]) == list(range(99))
    assert as_list(read.columns["c"]) == [i / 2 for i in range(99)]


def test_numbers_of_a_utf16_file_are_read_by_columns(path: Path) -> None:
    make(path, *REFUSED["text that is not in UTF-8"])
    assert as_list(numbers(path, "t", "a")) == [1]


def test_rows_older_than_a_column_without_default_have_null(path: Path) -> None:
    make(
        path,
        "CREATE TABLE t (a)",
        "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ADD COLUMN b INTEGER",
        "ALTER TABLE t ADD COLUMN c TEXT DEFAULT NULL",
        "INSERT INTO t VALUES (3, 4, 'x')",
    )
    assert check_file(path)["t"] == "columnar"


def test_rowids_stand_in_for_the_integer_primary_key(path: Path) -> None:
    edges = [-(2**63), -(2**31), -1, 0, 1, 127, 128, 2**14, 2**31, 2**56, 2**63 - 1]
    make(
        path,
        "CREATE TABLE t (a TEXT, id INTEGER PRIMARY KEY, b INTEGER)",
        ("INSERT INTO t (id, a, b) VALUES (?, ?, 5)", [(i, str(i)) for i in edges]),
    )
    assert check_file(path)["t"] == "columnar"
    assert as_list(numbers(path, "t", "id")) == edges


@pytest.mark.parametrize("key", ["INT PRIMARY KEY", "INTEGER PRIMARY KEY DESC"])
def test_other_primary_keys_are_columns_of_their_own(path: Path, key: str) -> None:
    make(path, f"CREATE TABLE t (id {key}, b)", "INSERT INTO t VALUES (9, 1), (7, 2), (8, 3)")
    assert check_file(path)["t"] == "columnar"
    assert as_list(numbers(path, "t", "id")) == [9, 7, 8]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2**31 - 1], np.int32),
        ([1, 2**31], np.int64),
        ([0, -(2**31) + 1], np.int32),
        ([0, -(2**31)], np.int64),
        ([2**40, 2**40], np.int64),
        ([1] * 50_000 + [2**40], np.int64),
        ([None, 2**40], np.int64),
        ([5, None], np.int32),
        ([1.5, None], np.float64),
    ],
    ids=str,
)
def test_columns_are_as_narrow_as_their_values_allow(
    path: Path, values: list[Any], dtype: type
) -> None:
    make(path, "CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", [(v,) for v in values]))
    check_file(path)
    assert numbers(path, "t", "a").values.dtype == dtype


@pytest.mark.parametrize(("declared", "value"), [("INTEGER", None), ("REAL", None), ("INT", 4)])
def test_a_column_of_one_value_takes_no_memory(path: Path, declared: str, value: Any) -> None:
    make(path, f"CREATE TABLE t (a {declared})", ("INSERT INTO t VALUES (?)", [(value,)] * 9999))
    column = numbers(path, "t", "a")
    assert column.values.strides == (0,)
    assert as_list(column) == [value] * 9999
    check_file(path)


def test_without_any_value_the_declared_type_decides(path: Path) -> None:
    make(path, "CREATE TABLE t (a TEXT, b REAL, c)", "INSERT INTO t VALUES (NULL, NULL, NULL)",
         "CREATE TABLE empty (a TEXT, b REAL, c)")  # fmt: skip
    check_file(path)
    for table in ("t", "empty"):
        found = SqliteFile.open(path).read(table, ["a", "b", "c"]).columns
        assert isinstance(found["a"], Categorical)
        assert [found[c].values.dtype for c in "bc"] == [np.float64, np.int32]  # type: ignore[union-attr]


def test_real_columns_hold_whole_numbers_as_integers(path: Path) -> None:
    values = [0.0, 1.0, -0.0, 300.0, -7e9, 2.0**52, 0.1, float("inf"), None]
    make(path, "CREATE TABLE t (a REAL)", ("INSERT INTO t VALUES (?)", [(v,) for v in values]))
    assert check_file(path)["t"] == "columnar"


@pytest.mark.parametrize("value", [0.0, 1.0, 5.0, -3e9, 2.0**50, 0.5])
def test_real_columns_of_one_value(path: Path, value: float) -> None:
    make(path, "CREATE TABLE t (a REAL, b INT)", ("INSERT INTO t VALUES (?, 1)", [(value,)] * 99))
    assert check_file(path)["t"] == "columnar"


def test_a_float_that_is_not_a_number_is_null(path: Path) -> None:
    make(path, "CREATE TABLE t (a REAL)", "INSERT INTO t VALUES (1.2345), (2.5)")
    nan = path.read_bytes().replace(struct.pack(">d", 1.2345), struct.pack(">d", float("nan")))
    path.write_bytes(nan)
    assert check_file(path)["t"] == "sqlite3: a float that is not a number"


def test_bytes_reserved_on_every_page(path: Path) -> None:
    make(path, "PRAGMA page_size = 512", "VACUUM")
    empty = bytearray(path.read_bytes())
    empty[20] = 32
    empty[105:107] = (512 - 32).to_bytes(2, "big")  # where the schema page's cells begin
    path.write_bytes(empty)
    make_trace(path, 900, page_size=512)
    assert path.read_bytes()[20] == 32
    assert set(check_file(path).values()) == {"columnar"}


def test_texts_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(btree_text, "_ODD", np.uint64(0))
    texts = [b"kernel %d" % (i % 40) for i in range(500)]
    data = np.frombuffer(b"".join(texts) + bytes(64), np.uint8)
    length = np.array([len(text) for text in texts])
    at = np.cumsum(length) - length
    seen = Texts()
    codes = btree_text.encode(data, at, length, seen)
    assert [seen.categories[code].encode() for code in codes] == texts
    many = [b"%04d" % i for i in range(500)]
    data = np.frombuffer(b"".join(many) + bytes(64), np.uint8)
    with pytest.raises(Unsupported, match="hash alike"):
        btree_text.encode(data, np.arange(500) * 4, np.full(500, 4), Texts())


def test_texts_are_numbered_as_they_first_appear(path: Path) -> None:
    words = ["b", "", "a" * 300, "b", "c\0d", "a" * 300, "a" * 301, "c\0e"]
    make(path, "CREATE TABLE t (a TEXT)", ("INSERT INTO t VALUES (?)", [(w,) for w in words]))
    assert check_file(path)["t"] == "columnar"
    found = SqliteFile.open(path).read("t", ["a"]).columns["a"]
    assert isinstance(found, Categorical)
    assert found.categories == tuple(dict.fromkeys(words))


def test_a_file_that_changes_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)")
    file = SqliteFile.open(path)
    whole = leaves

    def meanwhile(*args: Any) -> Any:
        found = whole(*args)
        make(path, "UPDATE t SET a = a + 10")
        return found

    monkeypatch.setattr(btree, "leaves", meanwhile)
    read = file.read("t", ["a"])
    assert read.how == "sqlite3: the file changed while it was read"
    assert as_list(read.columns["a"]) == [11, 12]


def test_a_file_that_changed_since_it_was_opened(path: Path) -> None:
    make(path, "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 2)")
    file = SqliteFile.open(path)
    make(path, "DROP TABLE t", "CREATE TABLE t (b, a)", "INSERT INTO t VALUES (3, 4)")
    read = file.read("t", ["a", "b"])
    assert read.how.startswith("sqlite3: the file changed")
    assert [as_list(read.columns[c]) for c in "ab"] == [[4], [3]]


def test_changes_in_a_write_ahead_log_are_seen(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1), (2)")
        read = check_table(SqliteFile.open(path), "t")
        assert read.how == "sqlite3: a write-ahead log beside the file"
        assert read.rows == 2
    assert check_file(path)["t"] == "columnar"  # closing it brought the log into the file


def test_a_log_is_looked_for_beside_the_file_that_a_link_leads_to(path: Path) -> None:
    (path.parent / "links").mkdir()
    link = path.parent / "links" / "b.sqlite"
    try:
        link.symlink_to(path)
    except OSError:
        pytest.skip("this system makes no symbolic links")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1), (2)")
        assert check_table(SqliteFile.open(link), "t").how.startswith("sqlite3: a write-ahead log")


def test_absent_tables_and_columns_are_left_out(path: Path) -> None:
    file = SqliteFile.open(make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"))
    assert file.read("nothing", ["a"]).how == "absent"
    assert file.read("t", ["b"]).rows == 0
    assert list(file.read("t", ["b", "a"]).columns) == ["a"]
