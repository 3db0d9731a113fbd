"""A table that was traced and stayed empty needs no remedy: nothing occurred."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kernelscope.report import about, text, to_sqlite
from kernelscope.report.document import capture
from kernelscope.report.layout import Page
from kernelscope.trace import NotRecorded
from tests import build
from tests.report.analyses import CAPTURE, analysis, device, kernel

NONE_OCCURRED = replace(
    CAPTURE,
    not_recorded=(
        NotRecorded("copies", ""),
        NotRecorded("syncs", ""),
        NotRecorded("ranges", "nsys profile --trace=cuda,nvtx"),
    ),
)


def test_the_report_says_that_none_occurred() -> None:
    what = analysis(NONE_OCCURRED, kernels=[kernel("k")], devices=[device()])
    lines = text.render(what, Page(100)).splitlines()

    assert lines[lines.index("Copies and memsets") + 2] == "None occurred."
    assert "- traced, but none occurred: copies and memsets, synchronisations" in lines
    assert "- not recorded: NVTX ranges (nsys profile --trace=cuda,nvtx)" in lines


def test_no_kernels_reads_well() -> None:
    what = analysis(replace(CAPTURE, not_recorded=(NotRecorded("kernels", ""),)))

    assert "No activity on any GPU. None occurred.\n" in text.render(what, Page(100))


def test_info_says_so_too() -> None:
    trace = replace(build.trace(), capture=NONE_OCCURRED)

    out = about.render(trace, Page(100))
    assert "- traced, but none occurred: copies and memsets, synchronisations\n" in out
    assert "()" not in out


def test_data_holds_no_remedy(tmp_path: Path) -> None:
    expected = {"copies": None, "syncs": None, "ranges": "nsys profile --trace=cuda,nvtx"}

    listed = capture(NONE_OCCURRED)["not_recorded"]
    assert {each["table"]: each["how_to_record"] for each in listed} == expected

    to_sqlite.write(analysis(NONE_OCCURRED), tmp_path / "out.db")
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        assert dict(database.execute("SELECT * FROM not_recorded")) == expected


@pytest.mark.parametrize("file", ["o\udcff.sqlite", "汉字.sqlite"])
def test_a_database_of_a_file_with_any_name(tmp_path: Path, file: str) -> None:
    to_sqlite.write(analysis(replace(CAPTURE, file=file)), tmp_path / "out.db")

    to_sqlite.datasette_metadata(file, file).encode()
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        (stored,) = database.execute("SELECT file FROM capture").fetchone()
    assert stored == file.replace("\udcff", r"\xff")
