"""Reading through the sqlite3 module: order, text, kinds, and what it says when it cannot."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope.errors import DamagedFileError, TraceFileError
from kernelscope.parsers import sqlite
from kernelscope.parsers.columns import Numbers
from kernelscope.parsers.sqlite import SqliteFile, read_with_sqlite3
from kernelscope.trace import Categorical
from tests.parsers.tables import as_list, check_file, make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.sqlite"


def slow(path: Path, *columns: str) -> list[list[Any]]:
    return [as_list(each) for each in read_with_sqlite3(path, "t", columns).values()]


def test_rows_come_in_the_order_of_the_table_whatever_indexes_there_are(path: Path) -> None:
    make(path, "CREATE TABLE t (a INTEGER, b TEXT)", "CREATE INDEX i ON t (a)",
         "INSERT INTO t VALUES (3, 'x'), (1, 'y'), (2, 'z')")  # fmt: skip
    assert slow(path, "a") == [[3, 1, 2]]
    assert check_file(path)["t"] == "columnar"


def test_text_that_is_not_utf8_keeps_its_bytes_as_escapes(path: Path) -> None:
    make(path, "CREATE TABLE t (a TEXT)",
         "INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT)), ('a\\xffb'), ('é')")  # fmt: skip
    assert slow(path, "a") == [["a\\xffb", "a\\xffb", "é"]]
    assert check_file(path)["t"] == "columnar"
    found = SqliteFile.open(path).read("t", ["a"]).columns["a"]
    assert isinstance(found, Categorical)
    assert found.categories == ("a\\xffb", "é")


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        (1, "x", Categorical),
        (1.5, b"\xff", Categorical),
        ("x", 7, Categorical),
        (1, 2.5, Numbers),
        (2.5, 1, Numbers),
        (None, "x", Categorical),
        (None, 2.5, Numbers),
        (7, 2**40, Numbers),
        (7, None, Numbers),
    ],
)
def test_a_kind_that_changes_after_many_rows(
    path: Path, first: Any, later: Any, kind: type
) -> None:
    rows = [(first,)] * 9000 + [(later,), (None,), (first,)]
    make(path, "CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", rows))
    check_file(path)
    assert isinstance(read_with_sqlite3(path, "t", ["a"])["a"], kind)


def test_a_table_is_not_held_as_python_objects(path: Path) -> None:
    """Growing arrays keep at most twice what they need."""
    make(path, "CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", [(i,) for i in range(50_000)]))
    column = read_with_sqlite3(path, "t", ["a"])["a"]
    assert isinstance(column, Numbers)
    base = column.values.base
    assert isinstance(base, np.ndarray)
    assert base.nbytes <= 2 * column.values.nbytes


def test_a_damaged_table_says_what_to_do(path: Path) -> None:
    make(path, "CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", [("x" * 90,)] * 3000))
    data = bytearray(path.read_bytes())
    data[4096 * 9 : 4096 * 10] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match=r"a\.sqlite: table 't' cannot be read") as error:
        SqliteFile.open(path).read("t", ["a"])
    assert "nsys export --type sqlite --force-overwrite true FILE.nsys-rep" in error.value.hint


def test_a_column_that_is_not_there_is_never_taken_for_a_string(path: Path) -> None:
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    with pytest.raises(TraceFileError, match="no such column"):
        read_with_sqlite3(path, "t", ["b"])


def test_a_view_of_what_is_not_there_harms_no_other_table(path: Path) -> None:
    make(path, "CREATE TABLE s (a)", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)",
         "CREATE VIEW v AS SELECT a FROM s", "PRAGMA writable_schema = ON",
         "DELETE FROM sqlite_master WHERE name = 's'")  # fmt: skip
    file = SqliteFile.open(path)
    assert file.tables["v"] == ()
    assert file.read("v", ["a"]).how == "absent"
    assert as_list(file.read("t", ["a"]).columns["a"]) == [1]


def test_a_table_whose_name_is_no_text_is_left_out(path: Path) -> None:
    make(path, "CREATE TABLE s (a)", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)",
         "PRAGMA writable_schema = ON",
         "UPDATE sqlite_master SET name = CAST('s' AS BLOB) WHERE name = 's'")  # fmt: skip
    file = SqliteFile.open(path)
    assert list(file.tables) == ["t"]
    assert as_list(file.read("t", ["a"]).columns["a"]) == [1]


def test_a_write_that_was_broken_off(path: Path, tmp_path: Path) -> None:
    rows = [(i, "x" * 100) for i in range(3000)]
    make(path, "CREATE TABLE t (a, b)", ("INSERT INTO t VALUES (?, ?)", rows))
    broken = tmp_path / "broken.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 5")
        db.execute("BEGIN")
        db.execute("UPDATE t SET a = a + 1000000")  # too much for the cache: some is written
        shutil.copy(path, broken)
        shutil.copy(f"{path}-journal", f"{broken}-journal")
        db.execute("ROLLBACK")
    with pytest.raises(DamagedFileError, match="a rollback journal beside the file"):
        SqliteFile.open(broken)


def test_a_file_that_changes_under_the_slow_reader(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)")
    whole = sqlite._scan

    def meanwhile(*args: Any) -> Any:
        found = whole(*args)
        make(path, "UPDATE t SET a = a + 10")
        return found

    monkeypatch.setattr(sqlite, "_scan", meanwhile)
    with pytest.raises(DamagedFileError, match="changed while it was read"):
        read_with_sqlite3(path, "t", ["a"])


def test_a_stale_journal_is_ignored(path: Path) -> None:
    make(path, "PRAGMA journal_mode = PERSIST", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    assert path.with_name(path.name + "-journal").stat().st_size
    assert check_file(path)["t"] == "sqlite3: a rollback journal beside the file"
