"""The benchmark of annotations runs, writes its data and prints them again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.annotation_child import CASES
from benchmarks.annotations import verdicts

ROOT = Path(__file__).resolve().parent.parent


def _run(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/annotations.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_writes_what_it_measured(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    printed = _run("--loops", "200", "--repeats", "2", "--output", str(output))
    data = json.loads(output.read_text(encoding="utf-8"))

    assert data["schema_version"] == 1
    assert data["machine"]["cpu"]
    assert data["versions"]["nvtx"]
    assert data["series"]["without"]["tool_listens"] is False
    for series in data["series"].values():
        if "absent" in series:
            continue
        assert [set(each) for each in series["rounds"]] == [set(CASES)] * 2
        assert all(value > 0 for each in series["rounds"] for value in each.values())
    if "rounds" in data["series"]["with"]:
        assert data["series"]["with"]["tool_listens"] is True
    assert data["targets"] == verdicts(data["series"])
    assert _run("--show", str(output)) == printed


def test_targets_are_ratios_within_a_round() -> None:
    rounds = [
        {"reused_phase": 3.0, "nullcontext": 1.0, "iterations": 2000.0},
        {"reused_phase": 2.0, "nullcontext": 2.0, "iterations": 10.0},
        {"reused_phase": 1.0, "nullcontext": 1.0, "iterations": 20.0},
    ]
    for each in rounds:
        each["iterations_with_profile"] = 1001.0
    series = {"without": {"rounds": rounds, "growth_bytes": 5}, "with": {"absent": "no gcc"}}
    found = {each["title"]: (each["value"], each["met"]) for each in verdicts(series)}

    assert found == {
        "a reused range / nullcontext, no tool": (pytest.approx(1.0), True),
        "iterations, no tool": (20.0, True),
        "iterations_with_profile, no tool": (1001.0, False),
        "memory over the iterations, without a tool": (5.0, True),
    }
