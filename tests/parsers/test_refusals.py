"""Files that are no readable trace: each its own message, and what to do next."""

from __future__ import annotations

import gzip
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.errors import (
    DamagedFileError,
    KernelscopeError,
    NeedsExportError,
    NotATraceError,
    TraceFileError,
)
from tests.corpus import CORPUS, needs_corpus


def database(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def small_export(path: Path) -> Path:
    return database(
        path,
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
        "demangledName INTEGER)",
        "INSERT INTO StringIds VALUES (1, 'kernel')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 10, i * 10 + 5, 0, 1 FROM n",
    )


def written(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


KINETO = b'\n{\n  "schemaVersion": 1,\n  "deviceProperties": [],\n  "traceEvents": []\n}'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"

CASES: dict[str, tuple[Callable[[Path], Path], type[KernelscopeError], str, str]] = {
    "missing": (lambda f: f / "no.sqlite", TraceFileError, "There is no file", "ls "),
    "folder": (lambda f: f, NotATraceError, "is a folder", "path of one file"),
    "empty": (written("e.sqlite", b""), DamagedFileError, "is empty", "nsys export"),
    "zeros": (written("z.sqlite", bytes(8192)), DamagedFileError, "zeros", "nsys export"),
    "git lfs": (written("l.sqlite", LFS), NotATraceError, "Git LFS pointer", "git lfs pull"),
    "qdstrm": (written("r.qdstrm", b"\x01\xff"), NeedsExportError, ".qdstrm", "QdstrmImporter"),
    "text": (written("t.sqlite", "Größe\n".encode()), NotATraceError, "text file", "nsys export"),
    "gzip": (written("g.gz", gzip.compress(b"x")), NotATraceError, "gzip", "gunzip"),
    "kineto": (written("k.json", KINETO), NotATraceError, "PyTorch profiler", "nsys profile"),
    "kineto, compressed": (
        written("k.json.gz", gzip.compress(KINETO)), NotATraceError, "PyTorch profiler", "nsys",
    ),
    "zip": (written("a.zip", b"PK\x03\x04...."), NotATraceError, "zip", "unzip"),
    "ncu report": (written("n.ncu-rep", b"NVR\x00"), NotATraceError, "Compute", "Systems"),
    "encrypted": (
        written("x.sqlite", bytes(range(128, 256)) * 64), NotATraceError, "encrypted", "decrypt",
    ),
    "no tables": (
        lambda f: database(f / "n.sqlite", "CREATE TABLE a (b)", "DROP TABLE a"),
        NotATraceError, "without tables", "nsys export",
    ),
    "foreign": (
        lambda f: database(f / "f.sqlite", "CREATE TABLE test (a)"),
        NotATraceError, "of no profiler", "reads",
    ),
    "nvprof": (
        lambda f: database(
            f / "p.nvprof", "CREATE TABLE StringTable (_id_, value)",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (_id_)",
        ),
        NotATraceError, "holds no events", "nsys profile",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "error", "says", "hint"), CASES.values(), ids=CASES)
def test_each_wrong_file_has_its_own_message(
    tmp_path: Path,
    make: Callable[[Path], Path],
    error: type[KernelscopeError],
    says: str,
    hint: str,
) -> None:
    path = make(tmp_path)
    with pytest.raises(error) as caught:
        ks.read(path)
    assert says in caught.value.message
    assert hint in caught.value.hint
    assert str(path) in caught.value.message


def test_a_mistyped_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    small_export(tmp_path / "trace.sqlite")
    with pytest.raises(TraceFileError, match=r"Did you mean .*trace\.sqlite"):
        ks.read(tmp_path / "trase.sqlite")


@pytest.mark.parametrize("kept", [5000, 20_000, 40_000])
def test_a_truncated_export_is_refused(tmp_path: Path, kept: int) -> None:
    whole = small_export(tmp_path / "whole.sqlite").read_bytes()
    assert len(whole) > kept
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole[:kept])
    with pytest.raises(DamagedFileError, match="truncated"):
        ks.read(cut)


def test_a_damaged_schema_is_refused(tmp_path: Path) -> None:
    content = bytearray(small_export(tmp_path / "whole.sqlite").read_bytes())
    content[100:160] = b"\xff" * 60
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(content)
    with pytest.raises(DamagedFileError, match="damaged"):
        ks.read(bad)


def test_a_file_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_export(tmp_path / "t.sqlite")

    def refuse(*_: object, **__: object) -> None:  # chmod does not stop root, who runs CI
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceFileError, match="permission denied"):
        ks.read(path)


def test_a_trace_is_never_changed(tmp_path: Path) -> None:
    path = small_export(tmp_path / "t.sqlite")
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(os.listdir(tmp_path))
    path.chmod(stat.S_IRUSR)
    assert len(ks.read(path).kernels) == 3000
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(os.listdir(tmp_path))) == before


def test_a_path_with_odd_characters_is_read(tmp_path: Path) -> None:
    path = small_export(tmp_path / "a b?c#d%41é.sqlite")
    assert len(ks.read(str(path)).kernels) == 3000


def test_a_report_without_nsys_is_answered_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    report = tmp_path / "a run.nsys-rep"
    report.write_bytes(b"\x01")
    with pytest.raises(NeedsExportError) as caught:
        ks.read(report)
    assert "nsys export --type sqlite" in caught.value.hint
    assert f"'{tmp_path}/a run.sqlite' '{report}'" in caught.value.hint  # ready to paste


def test_a_report_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    small_export(tmp_path / "named.nsys-rep")
    assert len(ks.read(tmp_path / "named.nsys-rep").kernels) == 3000
    written("pointer.nsys-rep", LFS)(tmp_path)
    with pytest.raises(NotATraceError, match="Git LFS pointer"):
        ks.read(tmp_path / "pointer.nsys-rep")


def test_pipes_dangling_links_and_no_name_are_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sqlite")
    with pytest.raises(NotATraceError, match="a pipe or a device"):
        ks.read(tmp_path / "pipe.sqlite")
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "gone.sqlite")
    with pytest.raises(TraceFileError, match=r"a link to .*gone\.sqlite, which does not exist"):
        ks.read(tmp_path / "link.sqlite")
    for name, other in (("one", "other"), ("other", "one"), ("self", "self")):
        (tmp_path / name).symlink_to(tmp_path / other)
    for name in ("one", "self"):
        with pytest.raises(TraceFileError, match="back to itself: a loop of links"):
            ks.read(tmp_path / name)
    with pytest.raises(TraceFileError, match="the path is empty"):
        ks.read("")


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    small_export(tmp_path / "t.sqlite").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.sqlite"))
    assert len(ks.read(next(tmp_path.iterdir())).kernels) == 3000


def fake_nsys(folder: Path, script: str) -> None:
    program = folder / "nsys"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_a_report_is_exported_where_nsys_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    export = small_export(tmp_path / "export.sqlite")
    fake_nsys(tmp_path, f'[ "$1" = export ] || exit 9\ncp "{export}" "$7"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    report = tmp_path / f"run{suffix}"
    report.write_bytes(b"\x01")
    before = sorted(os.listdir(tmp_path))
    trace = ks.read(report)
    assert len(trace.kernels) == 3000
    assert trace.capture.file == str(report)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_report_that_nsys_refuses_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nsys(tmp_path, "echo 'Importer error: wrong version' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\x01")
    with pytest.raises(DamagedFileError, match="Importer error: wrong version"):
        ks.read(report)


@needs_corpus
def test_the_foreign_database_of_the_corpus_is_refused() -> None:
    assert CORPUS is not None
    with pytest.raises(NotATraceError, match="of no profiler"):
        ks.read(CORPUS / "traces" / "nsys" / "NOTNSYS_pipit_test.sqlite")


@needs_corpus
@pytest.mark.parametrize(
    "name", ["XML_session__profile.nvvp", "LEGACYBIN_hybridmaxflow__prof.nvprof"]
)
def test_older_profilers_files_are_refused(name: str) -> None:
    assert CORPUS is not None
    with pytest.raises(NotATraceError):
        ks.read(CORPUS / "traces" / "nvprof" / name)
