"""``kernelscope ranges``: lists, trees, filters, lint, and the rule of nsys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.corpus import each, nsys_traces

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "resnet_training.sqlite"


def rows(run: Run, *options: str) -> list[dict[str, Any]]:
    made = json.loads(run("ranges", SAMPLE, "--format", "json", *options).out)
    found: list[dict[str, Any]] = made.get("ranges", made.get("ranges_by_name"))
    return found


def test_direct_work_is_that_of_the_plan(run: Run) -> None:
    """What the plan launched inside each range, without inheritance, path by path."""
    answers = json.loads(SAMPLE.with_suffix(".answers.json").read_text(encoding="utf-8"))
    planned = {(tuple(r["path"]), r["domain"]): r for r in answers["ranges"]}
    ours = {(tuple(r["path"]), r["domain"]): r for r in rows(run, "--raw", "--nsys-rule")}
    assert ours.keys() == planned.keys()
    for key, row in ours.items():
        expected = planned[key]
        assert row["instances"] == expected["instances"], key
        assert row["host_ns"] == expected["host_ns"], key
        for column in ("kernels", "kernel_ns", "busy_ns", "projected_ns", "self_kernel_ns"):
            assert row[column] == expected["direct"][column], (key, column)


def test_inherited_work_belongs_to_the_iteration_and_the_phase(run: Run) -> None:
    folded = {" > ".join(row["path"]): row for row in rows(run)}
    assert folded["iteration #"]["attribution"]["inherited"] > 0
    assert folded["iteration # > backward"]["kernels"] == 12 * 86


def test_a_path_holds_what_lies_inside_it(run: Run) -> None:
    names = {" > ".join(row["path"]) for row in rows(run, "--path", "iteration # > forw*")}
    assert "iteration # > forward" in names
    assert "iteration # > forward > layer#.#" in names
    assert all(name.startswith("iteration # > forward") for name in names)


def test_a_name_is_found_by_a_regular_expression(run: Run) -> None:
    assert {row["name"] for row in rows(run, "--match", "^(conv|fc)")} == {"conv#", "fc"}
    assert {row["name"] for row in rows(run, "--by", "name", "--match", "layer")} == {"layer#.#"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--match", "forwrad"), "Did you mean 'forward'?"),
        (("--match", "("), "no regular expression"),
        (("--path", "iteration # > forwrad"), "Did you mean 'forward'?"),
        (("--by", "name", "--tree"), "go with --by path"),
        (("--range", "forwrad"), "Did you mean 'forward'?"),
        (("--process", "1"), "no process 1"),
    ],
)
def test_mistakes_are_answered(run: Run, options: tuple[str, ...], says: str) -> None:
    outcome = run("ranges", SAMPLE, *options)
    assert outcome.code == 2
    assert says in outcome.err


def test_the_tree_shows_what_lies_in_what(run: Run) -> None:
    out = run("ranges", SAMPLE, "--tree").out
    assert "├─ forward" in out
    assert "│  ├─ layer#.#" in out
    assert out.index("├─ forward") < out.index("layer#.#") < out.index("├─ optimizer")


def test_the_rule_of_nsys_inherits_nothing(run: Run) -> None:
    strict = {" > ".join(row["path"]): row for row in rows(run, "--nsys-rule")}
    assert strict["iteration #"]["attribution"]["inherited"] == 0
    assert strict["iteration #"]["kernels"] == 12 * 74


def test_lint_tells_of_ranges_without_kernels(run: Run) -> None:
    out = run("ranges", SAMPLE, "--lint").out
    assert "nvtx_no_work" in out
    assert "nvtx_unattributed" not in out  # every kernel belongs to an iteration


def test_a_trace_without_ranges_says_how_to_record_them(run: Run) -> None:
    outcome = run("ranges", ROOT / "traces" / "two_processes_2020.sqlite")
    assert outcome.code == 2
    assert "--trace=cuda,nvtx" in outcome.err


@pytest.mark.parametrize("format_name", ["csv", "markdown"])
def test_tables_hold_every_path(run: Run, format_name: str) -> None:
    out = run("ranges", SAMPLE, "--format", format_name, "--top", "0").out
    assert "forward" in out
    assert "\x1f" not in out


@each(nsys_traces())
@pytest.mark.parametrize("width", [60, 120])
def test_every_trace_fits_the_page(
    run: Run, monkeypatch: pytest.MonkeyPatch, trace_file: Path, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for options in ((), ("--tree",), ("--lint",)):
        outcome = run("ranges", trace_file, *options)
        if outcome.code:
            assert "no NVTX ranges" in outcome.err
            continue
        assert max(map(len, outcome.out.splitlines())) <= width
