"""Formats, destinations and refusals of `kernelscope analyze`."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelscope.metrics import analysis as metrics
from kernelscope.metrics.analysis import TABLES
from tests.cli.conftest import Run
from tests.report.analyses import analysis, typical

BROKEN = [{"name": "partition of GPU 0", "expected": 10, "actual": 9, "ok": False}]


def test_text_is_the_default(run: Run, trace_file: Path) -> None:
    outcome = run("analyze", trace_file)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"kernelscope  {trace_file}"[:60])
    assert "Where device time goes" in outcome.out
    assert "sgemm" in outcome.out


def test_json_is_the_document_and_top_does_not_cut_it(run: Run, trace_file: Path) -> None:
    made = json.loads(run("analyze", trace_file, "--format", "json", "--top", "1").out)

    assert made["schema_version"] == 1
    assert [row["name"] for row in made["kernels"]] == ["sgemm", "relu"]
    assert made["kernels"][0]["total_ns"] == 2000


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("120", 120), ("1000", 140), ("", 100)])
def test_the_width_is_the_terminals(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    lines = run("analyze", trace_file).out.splitlines()
    assert max(map(len, lines)) == width


def test_no_color_wins_over_a_forced_one(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in run("analyze", trace_file).out  # the fixture sets NO_COLOR

    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" in run("analyze", trace_file).out


def test_a_pipe_gets_no_colour(run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")

    assert "\x1b" not in run("analyze", trace_file).out


@pytest.mark.parametrize("format_name", ["text", "json", "markdown"])
def test_output_to_a_file_is_what_standard_output_shows(
    run: Run, trace_file: Path, tmp_path: Path, format_name: str
) -> None:
    shown = run("analyze", trace_file, "--format", format_name).out
    target = tmp_path / "out"
    outcome = run("analyze", trace_file, "--format", format_name, "--output", target)

    assert (outcome.code, outcome.out) == (0, "")
    assert target.read_text(encoding="utf-8") == shown


def test_a_dash_is_standard_output(run: Run, trace_file: Path) -> None:
    assert run("analyze", trace_file, "-o", "-").out == run("analyze", trace_file).out


def test_csv_of_one_table(run: Run, trace_file: Path) -> None:
    kernels = run("analyze", trace_file, "--format", "csv").out
    assert kernels.splitlines()[1].startswith("sgemm,1,2000,")

    gaps = run("analyze", trace_file, "--format", "csv", "--table", "gaps").out
    assert gaps.splitlines()[0] == "process_id,device_id,device,start_ns,end_ns,duration_ns"


def test_csv_to_a_folder_writes_every_table(run: Run, trace_file: Path, tmp_path: Path) -> None:
    assert run("analyze", trace_file, "--format", "csv", "--output", tmp_path / "out").code == 0

    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"{each.name}.csv" for each in TABLES}
    with (tmp_path / "out" / "gaps.csv").open() as file:
        assert len(list(csv.reader(file))) > 1


def test_csv_to_a_file_or_one_table_to_a_folder(run: Run, trace_file: Path, tmp_path: Path) -> None:
    run("analyze", trace_file, "--format", "csv", "--output", tmp_path / "k.csv")
    assert (tmp_path / "k.csv").read_text().startswith("name,executions,")

    folder = tmp_path / "folder"
    folder.mkdir()
    run("analyze", trace_file, "--format", "csv", "--table", "checks", "--output", folder)
    assert [path.name for path in folder.iterdir()] == ["checks.csv"]


def test_sqlite(run: Run, trace_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.sqlite"
    outcome = run("analyze", trace_file, "--format", "sqlite", "--output", target)

    assert outcome.code == 0
    assert f"datasette {target}" in outcome.err
    with closing(sqlite3.connect(target)) as database:
        assert database.execute("SELECT count(*) FROM kernels").fetchone() == (2,)
    assert "out" in json.loads((tmp_path / "out.metadata.json").read_text())["databases"]
    assert not list(tmp_path.glob("*.partial"))


def test_a_database_is_replaced_only_by_force(run: Run, trace_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.sqlite"
    target.write_text("dear to somebody")
    asked = ("analyze", trace_file, "--format", "sqlite", "--output", target)

    refused = run(*asked)
    assert refused.code == 2
    assert "--force" in refused.err
    assert target.read_text() == "dear to somebody"

    assert run(*asked, "--force").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "sqlite"], "--output"),
        (["--format", "csv", "--table", "kernel"], "Did you mean 'kernels'?"),
        (["--format", "csv", "--table", "KERNELS"], "Did you mean 'kernels'?"),
        (["--format", "json", "--table", "kernels"], "--table goes with"),
        (["--output", "{folder}/no/such/out.txt"], "there is no folder"),
        (["--output", "{folder}"], "is a folder"),
        (["--output", "{folder}/trace.sqlite"], "is the trace itself"),
        (["--between", "2s,1s"], "does not lie before"),
        (["--top", "-1"], "--top"),
        (["--device", "9"], "9"),
        (["--process", "12345"], "12345"),
    ],
)
def test_refusals(
    run: Run, trace_file: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    outcome = run("analyze", trace_file, *(each.format(folder=tmp_path) for each in options))

    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.out == ""
    assert trace_file.read_bytes() == b"a trace"


def test_what_can_be_refused_is_refused_before_the_work(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        pytest.fail("the work began")

    monkeypatch.setattr(metrics, "analyze", work)

    assert run("analyze", trace_file, "--output", "/no/such/folder/x").code == 2


def test_the_selection_reaches_the_analysis(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = SimpleNamespace()

    def analyze(_: object, **selection: object) -> object:
        seen.selection = selection
        return typical()

    monkeypatch.setattr(metrics, "analyze", analyze)
    chosen = ("--between", "1us,", "--process", "1", "--process", "2")
    run("analyze", trace_file, *chosen, "--communication", "mine", "--communication", "reduce=all")

    assert {name: value for name, value in seen.selection.items() if value is not None} == {
        "between": (1000, None),
        "processes": (1, 2),
        "devices": (),
        "communication": ("mine", "reduce=all"),
    }


@pytest.mark.parametrize("pattern", ["(", "all_redce=mine", ""])
def test_a_pattern_of_communication_that_nothing_can_match(
    run: Run, trace_file: Path, pattern: str
) -> None:
    outcome = run("analyze", trace_file, "--communication", pattern)

    assert outcome.code == 2
    assert "communication" in outcome.err


def test_kernels_that_the_user_knows_to_communicate(run: Run, trace_file: Path) -> None:
    options = ("--communication", "all_reduce=^sgemm$", "--format", "json")
    made = json.loads(run("analyze", trace_file, *options).out)

    (row,) = made["communication"]
    assert (row["library"], row["kind"], row["calls"], row["total_ns"]) == (
        "user", "all_reduce", 1, 2000
    )  # fmt: skip
    assert json.loads(run("analyze", trace_file, "--format", "json").out)["communication"] == []


def test_strict_fails_where_a_check_does(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("analyze", trace_file, "--strict").code == 0

    monkeypatch.setattr(metrics, "analyze", lambda *_, **__: analysis(checks=BROKEN))
    assert run("analyze", trace_file).code == 0
    outcome = run("analyze", trace_file, "--strict")
    assert (outcome.code, outcome.err) == (1, "--strict: 1 of 1 checks failed.\n")
