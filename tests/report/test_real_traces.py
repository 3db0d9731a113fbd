"""Reports of real traces: they fit, they are whole, and they say what the analysis says."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope.report import about, text, to_json, to_sqlite
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from tests.corpus import each, nsys_traces, nvprof_traces

read = lru_cache(maxsize=1)(ks.read)

EMPTY = "nearlyempty__profile"


def all_traces() -> list[Path]:
    """Nsight Systems exports and nvprof databases, but the one that holds nothing."""
    return nsys_traces() + [path for path in nvprof_traces() if path.stem != EMPTY]


@each(all_traces())
@pytest.mark.parametrize("width", [40, 60, 120])
def test_text_fits_and_no_two_kernels_look_alike(trace_file: Path, width: int) -> None:
    out = text.render(ks.analyze(read(trace_file)), Page(width, 0))

    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    kernels = out.partition("\nTop kernels")[2].partition("\nCopies and memsets")[0]
    ranks = re.findall(r"^ *(\d+) .*%", kernels, re.MULTILINE)
    assert len(ranks) == len(set(ranks))


@each(all_traces())
def test_json_and_sqlite_hold_every_kernel(trace_file: Path, tmp_path: Path) -> None:
    analysis = ks.analyze(read(trace_file))
    made = json.loads(to_json.render(document(analysis)))

    assert len(made["kernels"]) == len(analysis.kernels)
    assert sum(row["executions"] for row in made["kernels"]) == sum(
        device["executions"] for row in made["kernels"] for device in row["by_device"]
    )
    assert all(row["device_ids"] for row in made["devices"])
    causes_add_up(made)

    to_sqlite.write(analysis, tmp_path / "out.db")
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        (count,) = database.execute("SELECT count(*) FROM gaps").fetchone()
    assert count == len(analysis.gaps)


def causes_add_up(made: dict[str, Any]) -> None:
    """Whoever reads the JSON alone can add up what it says of lost time."""
    for index, device in enumerate(made["devices"]):
        for name in ("idle", "gap_spectrum"):
            parts = [row["total_ns"] for row in made[name] if row["device"] == index]
            if device["idle_ns"] is not None:
                assert sum(parts) == device["idle_ns"], name
    places = range(len(made["devices"]))
    for name in ("idle", "gap_spectrum", "idle_by_iteration", "findings"):
        assert all(row["device"] in places for row in made[name])
    for row in made["overlap"]:
        states = [row[f"{state}_ns"] for state in ("both", "gpu_only", "cpu_only", "neither")]
        if None in states:
            assert row["reason"]
        else:
            assert sum(states) == made["window"]["duration_ns"]
    bounds = [row["saving_bound_ns"] or 0 for row in made["findings"]]
    assert bounds == sorted(bounds, reverse=True)
    launches = made["launches"]
    assert (launches["calls"] is None) == (launches["reason"] is not None)
    assert sum(row["calls"] for row in launches["api"]) == (launches["calls"] or 0)
    assert made["cpu"]["utilization"] is not None or made["cpu"]["reason"]


@each(all_traces())
def test_info_fits(trace_file: Path) -> None:
    trace = read(trace_file)

    assert max(map(len, about.render(trace, Page(60)).splitlines())) <= 60
    json.loads(to_json.render(about.about(trace)))
