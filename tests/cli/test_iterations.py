"""``kernelscope iterations``: against the answers of the sample, and as a user mistypes it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.corpus import CORPUS, needs_corpus

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "resnet_training.sqlite"
COPIES_ONLY = ROOT / "traces" / "two_processes_2020.sqlite"


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    text = SAMPLE.with_suffix(".answers.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_rows_are_those_of_the_plan(run: Run, answers: dict[str, Any]) -> None:
    out = json.loads(run("iterations", SAMPLE, "--format", "json").out)
    ours, expected = out["iterations"], answers["iterations"]
    assert ours["family"] == expected["family"]
    assert ours["count"] == expected["count"] == len(ours["rows"])
    for mine, planned in zip(ours["rows"], expected["rows"], strict=True):
        for column in ("index", "label", "start_ns", "range_ns"):
            assert mine[column] == planned[column]
        if planned["period_ns"] is not None:  # the last ends with its range
            assert mine["period_ns"] == planned["period_ns"]
            assert mine["outside_ns"] == planned["outside_ns"]
        assert mine["kernels"] == planned["launched"]["kernels"]
        assert mine["attributed_ns"] == planned["launched"]["kernel_ns"]
    assert ours["warmup"] == [0]
    assert ours["rows"][-1]["state"] == "last"


def test_csv_holds_a_row_an_iteration(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "steps.csv"
    run("iterations", SAMPLE, "--format", "csv", "--output", target)
    rows = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"))))
    assert [row["label"] for row in rows] == [f"iteration {i}" for i in range(12)]
    slow = rows[7]
    assert slow["main_idle_cause"] == "host: data_loading"
    assert int(slow["main_idle_ns"]) > 70_000_000
    for row in rows:
        assert int(row["main_idle_ns"]) <= int(row["idle_ns"]) <= int(row["period_ns"])
        states = ("both_ns", "gpu_only_ns", "cpu_only_ns", "neither_ns")
        assert sum(int(row[name]) for name in states) <= int(row["period_ns"])


def test_json_says_what_host_and_gpu_did_in_each(run: Run) -> None:
    out = json.loads(run("iterations", SAMPLE, "--format", "json").out)
    assert [row["index"] for row in out["overlap_by_iteration"]] == list(range(12))
    whole = json.loads(run("analyze", SAMPLE, "--format", "json").out)
    for name in ("overlap_by_iteration", "idle_by_iteration"):
        assert out[name] == whole[name]


def test_the_page_says_where_findings_stand_and_why_the_gpu_stood_still(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    out = run("iterations", SAMPLE).out
    assert "idle mostly" in out
    assert "host loads data" in out
    assert "findings in kernelscope analyze FILE" in out


@pytest.mark.parametrize("width", [60, 100, 120])
def test_the_page_fits(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = run("iterations", SAMPLE, "--cross-check").out
    assert max(map(len, out.splitlines())) <= width
    for words in (
        "step times",
        "median 32.91 ms",
        "Warm-up: iteration 0.",
        "not steady",
        "agrees with",
    ):
        assert words in out.replace("\n", " ")


def test_throughput_needs_a_batch_size(run: Run) -> None:
    assert "samples/s" not in run("iterations", SAMPLE).out
    made = json.loads(
        run("iterations", SAMPLE, "--batch-size", "32", "--ranks", "4", "--format", "json").out
    )
    rows = [row for row in made["iterations"]["rows"] if row["state"] in ("steady", "outlier")]
    seconds = sum(row["period_ns"] for row in rows) / 1e9
    expected = 32 * 4 * len(rows) / seconds
    assert made["iterations"]["throughput_per_s"] == pytest.approx(expected)


@pytest.mark.parametrize("command", ["analyze", "iterations"])
def test_ranks_alone_are_refused(run: Run, command: str) -> None:
    outcome = run(command, SAMPLE, "--ranks", "4")
    assert outcome.code == 2
    assert "needs --batch-size" in outcome.err


def test_a_family_can_be_named(run: Run) -> None:
    made = json.loads(run("iterations", SAMPLE, "--iteration", "forward", "--format", "json").out)
    assert (made["iterations"]["family"], made["iterations"]["source"]) == ("forward", "user")
    outcome = run("iterations", SAMPLE, "--iteration", "iteratoin *")
    assert outcome.code == 2
    assert "iteration #" in outcome.err


@pytest.mark.parametrize(
    ("only", "says"), [("steady", "steady iterations 1 to 10"), ("3", "iteration 3 of 12")]
)
def test_a_window_of_iterations_says_so(run: Run, only: str, says: str) -> None:
    made = json.loads(run("analyze", SAMPLE, "--only", only, "--format", "json").out)
    assert says in made["window"]["chosen_by"]
    assert all(check["ok"] for check in made["checks"])


def test_a_window_that_is_not_there_is_refused(run: Run) -> None:
    assert "numbered from 0 to 11" in run("analyze", SAMPLE, "--only", "99").err
    assert "Several windows" in run("analyze", SAMPLE, "--only", "3", "--range", "forward").err
    missing = run("analyze", COPIES_ONLY, "--only", "steady")
    assert missing.code == 2 or "kernel" in missing.out


def test_a_trace_without_iterations_says_why(run: Run) -> None:
    out = run("iterations", ROOT / "traces" / "reversed_devices_2022.sqlite").out
    assert "None were found" in out or "repeating unit" in out


@needs_corpus
def test_the_story_of_the_baseline(run: Run) -> None:
    assert CORPUS is not None
    trace = CORPUS / "traces" / "nsys" / "2022.4.2_A100_training_baseline.sqlite"
    out = run("iterations", trace, "--cross-check").out.replace("\n", " ")
    for words in ("59 × 'step #'", "median 245.6 ms", "mean 764.9 ms", "not steady", "agrees with"):
        assert words in out


@pytest.mark.parametrize("command", ["analyze", "iterations"])
def test_ranks_alone_give_no_throughput(run: Run, command: str) -> None:
    assert "needs --batch-size" in run(command, SAMPLE, "--ranks", "2").err
    assert run(command, SAMPLE, "--ranks", "2", "--batch-size", "8").code == 0


def test_the_blocks_of_step_times_have_an_ascii_form(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.cli.lists.in_unicode", lambda: False)
    (line,) = [each for each in run("iterations", SAMPLE).out.splitlines() if "step times" in each]
    assert "?" not in line
    assert "#" in line
