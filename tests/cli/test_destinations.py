"""No file that is dear is overwritten unless somebody says ``--force``; the trace never is."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kernelscope.cli import demo
from tests.cli.conftest import Run

DATABASE = b"SQLite format 3\0 and the rest of another trace"
NOT_UTF8 = pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname == "Darwin",
    reason="file names of this system are Unicode",
)


def named(trace_file: Path, name: str) -> Path:
    """The trace under another name."""
    return trace_file.rename(trace_file.with_name(name))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kernels.csv", "--format csv --output {folder}"),
        ("gaps.csv", "--format csv --table gaps --output {folder}/"),
        ("m.metadata.json", "--format sqlite --output {folder}/m.db"),
        ("x.db", "--format json --output {folder}/x.db"),
        ("x.db", "--format json --output {folder}/x.db --force"),
        ("x.db", "--format sqlite --output {folder}/x.db --force"),
        ("m.metadata.json", "--format sqlite --output {folder}/m.db --force"),
    ],
)
def test_the_trace_is_never_overwritten(
    run: Run, trace_file: Path, tmp_path: Path, name: str, options: str
) -> None:
    trace = named(trace_file, name)
    outcome = run("analyze", trace, *(each.format(folder=tmp_path) for each in options.split()))

    assert outcome.code == 2
    assert "is the trace itself" in outcome.err
    assert trace.read_bytes() == b"a trace"
    assert list(tmp_path.iterdir()) == [trace]


def test_a_link_to_the_trace_is_the_trace(run: Run, trace_file: Path, tmp_path: Path) -> None:
    (tmp_path / "kernels.csv").hardlink_to(trace_file)

    assert run("analyze", trace_file, "--format", "csv", "--output", tmp_path).code == 2
    assert trace_file.read_bytes() == b"a trace"


def test_what_is_beside_a_database_is_nobody_elses(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    """The database was once written to ``x.db.partial`` first, whatever that was."""
    trace = named(trace_file, "x.db.partial")

    assert run("analyze", trace, "--format", "sqlite", "--output", tmp_path / "x.db").code == 0
    assert trace.read_bytes() == b"a trace"
    assert {path.name for path in tmp_path.iterdir()} == {
        "x.db",
        "x.db.partial",
        "x.metadata.json",
    }


def test_metadata_of_a_users_own_is_replaced_only_by_force(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    own = tmp_path / "keep.metadata.json"
    own.write_text("dear")
    asked = ("analyze", trace_file, "--format", "sqlite", "--output", tmp_path / "keep.db")

    refused = run(*asked)
    assert (refused.code, own.read_text()) == (2, "dear")
    assert "keep.metadata.json exists" in refused.err
    assert not (tmp_path / "keep.db").exists()

    assert run(*asked, "--force").code == 0
    assert "keep" in json.loads(own.read_text())["databases"]


@pytest.mark.parametrize("format_name", ["text", "json", "csv", "markdown", "sqlite"])
def test_another_trace_is_replaced_only_by_force(
    run: Run, trace_file: Path, tmp_path: Path, format_name: str
) -> None:
    other = tmp_path / "other.sqlite"
    other.write_bytes(DATABASE)
    asked = ("analyze", trace_file, "--format", format_name, "--output", other)

    refused = run(*asked)
    assert (refused.code, other.read_bytes()) == (2, DATABASE)
    assert "--force" in refused.err

    assert run(*asked, "--force").code == 0
    assert other.read_bytes() != DATABASE


def test_a_database_called_like_a_table_is_not_overwritten(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "api_calls.csv").write_bytes(DATABASE)

    assert run("analyze", trace_file, "--format", "csv", "--output", tmp_path).code == 2
    assert not (tmp_path / "kernels.csv").exists()


@pytest.mark.parametrize("format_name", ["text", "json", "csv", "markdown"])
def test_an_ordinary_file_is_replaced_as_a_shell_does(
    run: Run, trace_file: Path, tmp_path: Path, format_name: str
) -> None:
    target = tmp_path / "old.txt"
    target.write_text("old")

    assert run("analyze", trace_file, "--format", format_name, "--output", target).code == 0
    assert target.read_text() != "old"


@pytest.mark.parametrize("format_name", ["text", "json", "csv", "markdown", "sqlite"])
def test_an_empty_name_is_refused(
    run: Run, trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("analyze", trace_file, "--format", format_name, "--output", "")

    assert outcome.code == 2
    assert "names no file" in outcome.err
    assert list(tmp_path.iterdir()) == [trace_file]


@pytest.mark.parametrize("format_name", ["text", "csv", "sqlite"])
def test_a_file_is_no_folder(run: Run, trace_file: Path, tmp_path: Path, format_name: str) -> None:
    (tmp_path / "a.txt").write_text("dear")
    outcome = run("analyze", trace_file, "--format", format_name, "--output", f"{tmp_path}/a.txt/")

    assert outcome.code == 2
    assert (tmp_path / "a.txt").read_text() == "dear"


def test_a_slash_makes_a_folder(run: Run, trace_file: Path, tmp_path: Path) -> None:
    assert run("analyze", trace_file, "--output", f"{tmp_path}/new/").code == 2

    assert run("analyze", trace_file, "--format", "csv", "--output", f"{tmp_path}/v1.2/").code == 0
    assert (tmp_path / "v1.2" / "kernels.csv").is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFO in the file system")
def test_what_is_no_file_is_not_replaced_by_a_database(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    """``--output /dev/null`` would replace the device."""
    os.mkfifo(tmp_path / "pipe")
    asked = ("analyze", trace_file, "--format", "sqlite", "--output", tmp_path / "pipe")

    assert run(*asked, "--force").code == 2
    assert (tmp_path / "pipe").is_fifo()


def test_a_database_has_the_permissions_of_a_new_file(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    run("analyze", trace_file, "--format", "sqlite", "--output", tmp_path / "x.db")
    run("analyze", trace_file, "--format", "json", "--output", tmp_path / "x.json")

    assert (tmp_path / "x.db").stat().st_mode == (tmp_path / "x.json").stat().st_mode


def test_the_demo_does_not_mistake_an_empty_name_for_none(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("", "-"):
        assert run("demo", "--output", name).code == 2
    (tmp_path / "trace.db").write_bytes(DATABASE)
    assert run("demo", "--output", "trace.db").code == 2

    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]
    assert not (tmp_path / demo.DEFAULT).exists()


@NOT_UTF8
@pytest.mark.parametrize("format_name", ["text", "json", "csv", "markdown", "sqlite"])
def test_file_names_need_not_be_utf8(
    run: Run, trace_file: Path, tmp_path: Path, format_name: str
) -> None:
    trace = named(trace_file, "t\udcff.sqlite")
    target = tmp_path / "o\udcff.db"
    outcome = run("analyze", trace, "--format", format_name, "--output", target)

    assert outcome.code == 0
    assert target.stat().st_size
    if format_name == "sqlite":
        assert "datasette" in outcome.err
        assert r"o\xff.db" in outcome.err
        with closing(sqlite3.connect(target)) as database:
            (file,) = database.execute("SELECT file FROM capture").fetchone()
        assert file.endswith(r"t\xff.sqlite")


@NOT_UTF8
@pytest.mark.parametrize("command", ["analyze", "info"])
def test_names_that_are_not_utf8_are_spelled_out(run: Run, trace_file: Path, command: str) -> None:
    trace = named(trace_file, "t\udcff.sqlite")

    assert r"t\xff.sqlite" in run(command, trace).out
    made = json.loads(run(command, trace, "--format", "json").out)
    assert made["capture"]["file"] == str(trace)


@NOT_UTF8
def test_errors_spell_names_out(run: Run, trace_file: Path, tmp_path: Path) -> None:
    trace = named(trace_file, "t\x1b[31m\udcff.sqlite")
    outcome = run("analyze", trace, "--output", trace)

    assert outcome.code == 2
    assert r"t\x1b[31m\xff.sqlite is the trace itself" in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, which is always full")
def test_a_full_disk_behind_standard_output_is_said() -> None:
    command = [sys.executable, "-m", "kernelscope", "decode", "volta_sgemm_128x64_nn"]
    with open("/dev/full", "wb") as full:
        outcome = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert outcome.returncode == 2
    assert "took only a part of the result" in outcome.stderr
    assert "--output" in outcome.stderr
