"""``kernelscope explain``: lists, explanations with numbers, checks, and typos."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelscope import parsers
from kernelscope.metrics import analysis as analyses
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.explanations import topics
from kernelscope.report import explain, sql_tables
from kernelscope.report.explain import InTrace
from kernelscope.report.explained import numbers
from kernelscope.report.layout import Page
from kernelscope.report.sql_tables import source_of
from kernelscope.report.text import printed
from kernelscope.trace import Table
from tests.cli.conftest import Run, five_rows
from tests.cli.test_main import HEAVY

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "resnet_training.sqlite"


def test_every_number_is_listed(run: Run) -> None:
    out = run("explain").out
    made = json.loads(run("explain", "--format", "json").out)

    for key in ("gpu_utilization", "devices.kernel_ns", "iterations.steady.median_ns"):
        assert f"\n{key}" in out
    assert {row["metric"] for row in made["metrics"]} == topics().keys()


def test_the_numbers_of_a_table_are_listed(run: Run) -> None:
    out = run("explain", "devices").out

    assert "devices.partition.idle_ns" in out
    assert "kernels.share" not in out


def test_the_numbers_of_a_group_are_listed(run: Run) -> None:
    made = json.loads(run("explain", "devices.partition", "--format", "json").out)["metrics"]

    assert [each["metric"] for each in made][-1] == "devices.partition.idle_ns"
    assert len(made) == 8


def test_facts_are_listed_with_what_they_hold(run: Run) -> None:
    assert "why kernels ran one after the other" in run("explain", "capture").out


def test_a_number_is_explained(run: Run) -> None:
    out = run("explain", "kernels.share").out

    for word in ("formula", "over", "inputs", "recorded by", "source", "beware", "To check it"):
        assert word in out
    assert "nsys profile --trace=cuda" in out
    assert "In this trace" not in out


def test_counted_work_is_recorded_by_another_tool(run: Run) -> None:
    shown = " ".join(run("explain", "work.value").out.split())
    assert "ncu or nvprof --metrics" in shown
    assert "kernelscope analyze TRACE --counters FILE" in shown


def test_the_numbers_of_a_trace_are_put_in(run: Run, trace_file: Path) -> None:
    out = run("explain", "gpu_utilization", trace_file).out
    assert "3,000 / 6,000 = 0.5 (50.0 %)" in out

    share = run("explain", "kernels.share", trace_file, "--top", "1").out
    assert "2,000 / 3,000 = 0.6666666667 (66.7 %)" in share
    assert "… 1 more row (--top 0 shows all)" in share


def test_a_row_goes_by_what_names_it(run: Run) -> None:
    out = run("explain", "findings.saving_bound_ns", SAMPLE).out.splitlines()
    assert "data_loading" in out
    out = run("explain", "communication.calls", SAMPLE).out.splitlines()
    assert "process 20400, device 0, NCCL, RCCL, all_reduce" in out


def test_the_numbers_are_those_of_the_report(run: Run) -> None:
    whole = json.loads(run("analyze", SAMPLE, "--format", "json").out)
    made = json.loads(
        run("explain", "devices.idle_ns", SAMPLE, "--format", "json", "--top", "0").out
    )

    assert [row["value"] for row in made["rows"]] == [row["idle_ns"] for row in whole["devices"]]
    assert made["formula"]
    assert made["unit"] == "ns"


def test_the_window_can_be_chosen(run: Run) -> None:
    out = run("explain", "gpu_utilization", SAMPLE, "--between", "500ms,600ms").out

    assert "/ 100,000,000 = " in out
    assert "window 100.0 ms: --between" in out


def test_the_query_that_is_printed_is_the_check(run: Run, trace_file: Path) -> None:
    lines = run("explain", "devices.idle_ns", trace_file).out.splitlines()
    begin, end = lines.index("kernelscope sql FILE - <<'SQL'"), lines.index("SQL")
    query = "\n".join(lines[begin + 1 : end])

    found = json.loads(run("sql", trace_file, query, "--format", "json").out)
    assert found["rows"] == [{"index": 0, "value": 2_500}]


def test_a_number_is_checked(run: Run, trace_file: Path) -> None:
    outcome = run("explain", "kernels.median_ns", trace_file, "--check")

    assert outcome.code == 0
    assert "✓ SQL finds the same, in 2 rows." in outcome.out
    without = run("explain", "devices.sm_fill", trace_file, "--check")
    assert (without.code, without.err) == (
        0,
        "--check: there is no query for devices.sm_fill.\n",
    )
    part = run("explain", "window.duration_ns", trace_file, "--check", "--between", "1us,3us")
    assert "is of the whole trace, not of a part" in part.err


def test_what_a_serialised_capture_withholds_is_neither_worked_out_nor_denied(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = five_rows()
    serial = replace(trace, capture=replace(trace.capture, serialised="one by one, for counters"))
    monkeypatch.setattr(parsers, "read", lambda _file: serial)

    for metric in ("devices.busy_ns", "gaps.duration_ns", "kernels.share_of_window"):
        outcome = run("explain", metric, trace_file, "--check")
        assert outcome.code == 0
        assert outcome.err == f"--check: {metric} is withheld: one by one, for counters.\n"
    share = run("explain", "kernels.share_of_window", trace_file).out
    assert "  – (no value)\nWithheld: one by one, for counters." in share
    assert "– (no value)" in run("explain", "gpu_utilization", trace_file).out
    kernel_ns = run("explain", "devices.kernel_ns", trace_file, "--check").out
    assert "3,000 ns (3.000 µs)" in kernel_ns
    assert "✓ SQL finds the same" in kernel_ns


def test_a_wrong_number_fails_the_check(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*args: Any, **options: Any) -> Analysis:
        true = analyses.analyze(*args, **options)
        table = true.tables["devices"]
        columns = {**table.columns, "kernel_ns": table["kernel_ns"] + 1}
        false = Table.make(table.schema, columns)
        return replace(true, tables={**true.tables, "devices": false})

    monkeypatch.setattr(sql_tables, "analyze", wrong)

    outcome = run("explain", "devices.kernel_ns", trace_file, "--check")
    assert outcome.code == 1
    assert "✗ SQL finds something else, of 1 row:" in outcome.out
    assert "0: SQL finds 3,000, the analysis 3,001" in outcome.out
    made = run("explain", "devices.kernel_ns", trace_file, "--check", "--format", "json")
    assert json.loads(made.out)["sql_agrees"] is False


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("gpu_utilisation",), "Did you mean 'gpu_utilization'?"),
        (("sm_fil",), "Did you mean 'sm_fill'?"),
        (("kernel_ns",), "Which one: devices.kernel_ns, ranges.kernel_ns."),
        (("devices", str(SAMPLE)), "holds several metrics"),
        (("devices.kernel_ns", "--check"), "needs a FILE"),
        (("devices.kernel_ns", "nothing.sqlite"), "nothing.sqlite"),
    ],
)
def test_mistakes_are_answered(run: Run, args: tuple[str, ...], says: str) -> None:
    outcome = run("explain", *args)

    assert outcome.code == 2
    assert says in outcome.err


@pytest.mark.parametrize("width", [60, 120])
def test_every_explanation_fits_the_page(width: int) -> None:
    source = source_of(five_rows())
    page = Page(width, 5)
    for topic in topics().values():
        rows, count = numbers(topic, source.analysis(), 5)
        found = InTrace(rows, count, "window 6.000 µs: first to last CUDA activity")
        # Without a console that crops: the lines themselves fit.
        lines = explain.lines(topic, page, found)
        assert max(line.cell_len for line in lines) <= width, topic.key
        json.dumps(explain.document(topic, found), allow_nan=False)
    text = printed(explain.listing(page), width, color=False, unicode=True)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("name", ["sql", "explain"])
def test_help_imports_click_alone(name: str) -> None:
    code = (
        "import sys\nfrom kernelscope.cli import main\n"
        f"code = main([{name!r}, '--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"
