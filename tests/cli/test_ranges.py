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
    ours = {(tuple(r["path"]), r["domain"]): r for r in rows(run, "--nsys-rule")}
    assert ours.keys() == planned.keys()
    for key, row in ours.items():
        expected = planned[key]
        assert row["instances"] == expected["instances"], key
        assert row["host_ns"] == expected["host_ns"], key
        for column in ("kernels", "kernel_ns", "busy_ns", "projected_ns", "self_kernel_ns"):
            assert row[column] == expected["direct"][column], (key, column)


def test_inherited_work_belongs_to_the_iteration_and_the_phase(run: Run) -> None:
    folded = {" > ".join(row["path"]): row for row in rows(run, "--fold")}
    assert folded["iteration #"]["attribution"]["inherited"] > 0
    assert folded["iteration # > backward"]["kernels"] == 12 * 86


def test_a_path_holds_what_lies_inside_it(run: Run) -> None:
    found = rows(run, "--fold", "--path", "iteration # > forw*")
    names = {" > ".join(row["path"]) for row in found}
    assert "iteration # > forward" in names
    assert "iteration # > forward > layer#.#" in names
    assert all(name.startswith("iteration # > forward") for name in names)


def test_a_name_is_found_by_a_regular_expression(run: Run) -> None:
    assert {row["name"] for row in rows(run, "--match", "^(conv|fc)")} == {"conv1", "fc"}
    found = rows(run, "--by", "name", "--match", "layer", "--fold")
    assert {row["name"] for row in found} == {"layer#.#"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--match", "forwrad"), "Did you mean 'forward'?"),
        (("--match", "("), "no regular expression"),
        (("--path", "iteration # > forwrad"), "Did you mean 'forward'?"),
        (("--by", "name", "--tree"), "go with --by path"),
        (("--range", "forwrad"), "Did you mean 'forward'?"),
        (("--process", "1"), "no process 1"),
        (("--nsys-rule", "--process-ranges"), "leaves no choice"),
        (("--overlap", "--tree"), "a list of its own"),
        (("--overlap", "--match", "forwrad"), "Did you mean 'forward'?"),
    ],
)
def test_mistakes_are_answered(run: Run, options: tuple[str, ...], says: str) -> None:
    outcome = run("ranges", SAMPLE, *options)
    assert outcome.code == 2
    assert says in outcome.err


@pytest.mark.parametrize(
    ("wanted", "label"),
    [("iteration *[3]", "iteration 3"), ("iteration #[10]", "iteration 10")],
)
def test_an_instance_is_counted_and_is_no_class_of_characters(
    run: Run, wanted: str, label: str
) -> None:
    made = json.loads(run("ranges", SAMPLE, "--range", wanted, "--format", "json", "--raw").out)
    inside = [r["name"] for r in made["ranges"] if r["instances"] and len(r["path"]) == 1]
    assert [name for name in inside if name.startswith("iteration")] == [label]
    assert "numbered from 0" in run("ranges", SAMPLE, "--range", "iteration *[99]").err


def test_the_tree_shows_what_lies_in_what(run: Run) -> None:
    out = run("ranges", SAMPLE, "--tree").out
    assert "├─ forward" in out
    assert "│  ├─ layer#.#" in out
    assert out.index("├─ forward") < out.index("layer#.#") < out.index("├─ optimizer")


def test_the_rule_of_nsys_inherits_nothing(run: Run) -> None:
    strict = {" > ".join(row["path"]): row for row in rows(run, "--nsys-rule", "--fold")}
    assert strict["iteration #"]["attribution"]["inherited"] == 0
    assert strict["iteration #"]["kernels"] == 12 * 74


def test_digits_are_folded_for_people_unless_they_are_asked_for(run: Run) -> None:
    assert "iteration #" in run("ranges", SAMPLE).out
    assert "iteration #" in run("ranges", SAMPLE, "--format", "markdown").out
    assert "iteration 7" in run("ranges", SAMPLE, "--raw").out
    assert "layer1.0" in run("ranges", SAMPLE, "--match", r"layer\d").out
    one = run("ranges", SAMPLE, "--path", "iteration 7").out
    assert "iteration 7 > forward" in one
    assert "iteration 1" not in one

    assert ["iteration 7"] in [row["path"] for row in rows(run)]
    assert ["iteration #"] in [row["path"] for row in rows(run, "--fold")]


def test_json_holds_what_analyze_holds(run: Run) -> None:
    whole = json.loads(run("analyze", SAMPLE, "--format", "json").out)
    assert whole["ranges"] == rows(run)
    assert whole["ranges_by_name"] == rows(run, "--by", "name")


def test_a_path_is_written_as_reports_print_it_or_as_range_takes_it(run: Run) -> None:
    found = rows(run, "--path", "iteration 7/forward")
    assert found == rows(run, "--path", "iteration 7 > forward")
    assert all(row["path"][:2] == ["iteration 7", "forward"] for row in found)


def test_a_part_of_the_tree_keeps_what_stands_around_it(run: Run) -> None:
    lines = run("ranges", SAMPLE, "--tree", "--match", "^loss$").out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("range "))
    assert [line[:12].rstrip() for line in lines[start + 1 :]] == [
        "iteration #",
        "└─ forward",
        "   └─ loss",
    ]

    lines = run("ranges", SAMPLE, "--tree", "--path", "iteration #/forward").out.splitlines()
    assert any(line.startswith("iteration # > forward ") for line in lines)
    assert any(line.startswith("├─ layer#.# ") for line in lines)


def test_every_range_of_a_tree_shows_its_largest(run: Run) -> None:
    lines = run("ranges", SAMPLE, "--tree", "--top", "2").out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("range "))
    assert [line.split("  ")[0] for line in lines[start + 1 :] if line[0] in "├└i…"] == [
        "iteration #",
        "├─ backward",
        "├─ forward",
        "└─ … 2 more",
        "… 1 more",
    ]


def test_lint_tells_of_ranges_without_kernels(run: Run) -> None:
    out = run("ranges", SAMPLE, "--lint").out
    assert "nvtx_no_work (1, 4.8 % of the ranges)" in out
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


def test_what_cpu_and_gpu_did_while_ranges_were_open(run: Run) -> None:
    found = json.loads(run("ranges", SAMPLE, "--overlap", "--fold", "--format", "json").out)
    by_path = {" > ".join(row["path"]): row for row in found["overlap_by_path"]}
    states = ("both_ns", "gpu_only_ns", "cpu_only_ns", "neither_ns")
    for path, row in by_path.items():
        assert sum(row[name] for name in states) == row["open_ns"], path
    loading = by_path["data loading"]
    assert loading["instances"] == 12
    assert loading["gpu_only_ns"] + loading["both_ns"] < 0.1 * loading["open_ns"]

    named = json.loads(
        run("ranges", SAMPLE, "--overlap", "--by", "name", "--format", "json", "--fold").out
    )
    by_name = {row["name"]: row for row in named["overlap_by_name"]}
    assert by_name["data loading"]["open_ns"] == loading["open_ns"]


def test_overlap_of_ranges_as_a_page_and_as_csv(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for width in (40, 60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        out = run("ranges", SAMPLE, "--overlap").out
        assert max(map(len, out.splitlines())) <= width
        assert "CPU and GPU while ranges are open" in out
    assert "iteration # > forward" in out
    assert "GPU only" in out
    run("ranges", SAMPLE, "--overlap", "--format", "csv", "--output", tmp_path / "o.csv")
    head = (tmp_path / "o.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert {"path", "open_ns", "both_ns", "neither_low_ns"} <= set(head.strip().split(","))


@each(nsys_traces())
def test_overlap_of_chosen_devices_is_theirs(run: Run, trace_file: Path) -> None:
    outcome = run("ranges", trace_file, "--overlap", "--device", "0", "--format", "json")
    if outcome.code == 0:
        found = json.loads(outcome.out)["overlap_by_path"]
        assert {row["device_id"] for row in found} <= {0}
