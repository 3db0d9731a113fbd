"""Reports of real traces: they fit, they are whole, and they say what the analysis says."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.report import about, text, to_json, to_sqlite
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from tests.corpus import each, nsys_traces

read = lru_cache(maxsize=1)(ks.read)


@each(nsys_traces())
@pytest.mark.parametrize("width", [60, 120])
def test_text_fits_and_no_two_kernels_look_alike(trace_file: Path, width: int) -> None:
    out = text.render(ks.analyze(read(trace_file)), Page(width, 0))

    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    kernels = out.partition("\nTop kernels")[2].partition("\nCopies and memsets")[0]
    ranks = re.findall(r"^ *(\d+) .*%", kernels, re.MULTILINE)
    assert len(ranks) == len(set(ranks))


@each(nsys_traces())
def test_json_and_sqlite_hold_every_kernel(trace_file: Path, tmp_path: Path) -> None:
    analysis = ks.analyze(read(trace_file))
    made = json.loads(to_json.render(document(analysis)))

    assert len(made["kernels"]) == len(analysis.kernels)
    assert sum(row["executions"] for row in made["kernels"]) == sum(
        device["executions"] for row in made["kernels"] for device in row["by_device"]
    )
    assert all(row["device_ids"] for row in made["devices"])

    to_sqlite.write(analysis, tmp_path / "out.db")
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        (count,) = database.execute("SELECT count(*) FROM gaps").fetchone()
    assert count == len(analysis.gaps)


@each(nsys_traces())
def test_info_fits(trace_file: Path) -> None:
    trace = read(trace_file)

    assert max(map(len, about.render(trace, Page(60)).splitlines())) <= 60
    json.loads(to_json.render(about.about(trace)))
