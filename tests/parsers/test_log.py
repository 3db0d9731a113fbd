"""Databases with a write-ahead log: what it holds is read, and nothing is left behind."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.errors import DamagedFileError, TraceFileError

STARTS = [1_000, 2_000, 3_000]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A trace of one kernel in its file, and of two more in a log beside it."""
    folder = tmp_path / "pair"
    folder.mkdir()
    run = oracle.Run()
    for start in STARTS:
        run = run.kernel(start, start + 100, "gemm", call=(start - 60, start - 50))
    whole = oracle.write(run.plan(), tmp_path / "whole.sqlite")
    with closing(sqlite3.connect(whole)) as db:
        rows = db.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start").fetchall()
        with db:
            db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start <> ?", rows[0][:1])
        db.execute("PRAGMA journal_mode = WAL")
        with db:
            marks = ", ".join("?" * len(rows[0]))
            db.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", rows[1:])
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{whole}{suffix}", folder / f"run.sqlite{suffix}")
    return folder / "run.sqlite"


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_log_is_read_and_nothing_is_left_behind(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = content(pair.parent)
    assert sorted(before) == ["run.sqlite", "run.sqlite-wal"]
    trace = ks.read(pair)
    assert trace.kernels["start_ns"].tolist() == STARTS
    assert trace.capture.file == str(pair)
    assert set(trace.capture.read_paths.values()) == {"columnar"}
    assert "write-ahead log" in trace.capture.warnings[-1]
    assert content(pair.parent) == before
    assert not list(temporary.iterdir())


def test_a_link_to_a_file_with_a_log(pair: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    try:
        link.symlink_to(pair)
    except OSError:
        pytest.skip("this system makes no symbolic links")
    assert len(ks.read(link).kernels) == len(STARTS)
    assert sorted(content(pair.parent)) == ["run.sqlite", "run.sqlite-wal"]


def test_without_a_log_nothing_is_left_behind_either(pair: Path, tmp_path: Path) -> None:
    """A file that once had a log still says so in its header."""
    pair.with_name("run.sqlite-wal").write_bytes(b"")
    assert len(ks.read(pair).kernels) == 1
    assert sorted(content(pair.parent)) == ["run.sqlite", "run.sqlite-wal"]
    assert pair.read_bytes()[18:20] == b"\2\2"


def test_a_log_that_is_written_meanwhile(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copyfile

    def meanwhile(source: Path, target: Path) -> None:
        copy(source, target)
        with pair.with_name("run.sqlite-wal").open("ab") as log:
            log.write(b"more")

    monkeypatch.setattr(shutil, "copyfile", meanwhile)
    with pytest.raises(DamagedFileError, match=r"run\.sqlite changed while it was read"):
        ks.read(pair)


def test_no_room_for_a_copy(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(TraceFileError, match="No space left on device") as caught:
        ks.read(pair)
    assert "PRAGMA wal_checkpoint(TRUNCATE)" in caught.value.hint


@pytest.mark.parametrize("log", [b"\0" * 4096, b"nonsense" * 900])
def test_a_log_that_is_none(pair: Path, log: bytes) -> None:
    """SQLite takes nothing from a log whose checksums do not hold."""
    pair.with_name("run.sqlite-wal").write_bytes(log)
    assert len(ks.read(pair).kernels) == 1
    assert content(pair.parent)["run.sqlite-wal"] == log


def test_a_damaged_file_with_a_log_is_called_by_its_own_name(pair: Path) -> None:
    data = bytearray(pair.read_bytes())
    data[100:200] = b"\xff" * 100
    pair.write_bytes(data)
    pair.with_name("run.sqlite-wal").write_bytes(b"nonsense" * 900)
    with pytest.raises(DamagedFileError) as caught:
        ks.read(pair)
    assert str(pair) in caught.value.message
    assert tempfile.gettempdir() + "/kernelscope-" not in caught.value.message


def test_a_schema_that_is_no_text_with_a_log(pair: Path) -> None:
    """SQLite quotes what it cannot parse, and Python cannot decode the quotation."""
    pair.write_bytes(pair.read_bytes().replace(b"CREATE TABLE ", b"CREATE TABLE\xff"))
    pair.with_name("run.sqlite-wal").write_bytes(b"nonsense" * 900)
    with pytest.raises(DamagedFileError, match="malformed database schema"):
        ks.read(pair)
