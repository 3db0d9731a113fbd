"""``kernelscope analyze --counters``: another run's counts on a trace, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernelscope import parsers
from kernelscope.metrics.counter_findings import COUNTERS, HOW_TO_COUNT
from tests import build
from tests.cli.conftest import Run
from tests.corpus import CORPUS, needs_corpus
from tests.parsers.counter_texts import about, details, quoted, raw, written

README = Path(__file__).resolve().parents[2] / "README.md"

SHAPE = {"grid_x": 4, "grid_y": 2, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
FLOPS = [
    (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum", "inst")
    for op in ("fadd", "fmul", "ffma")
]
BYTES = [("dram__bytes_read.sum", "Kbyte"), ("dram__bytes_write.sum", "byte")]


@pytest.fixture
def trace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that the (replaced) reader reads as two executions of a GEMM, and another kernel."""
    path = tmp_path / "trace.sqlite"
    path.write_bytes(b"a trace")
    kernels = build.kernels((0, 100, "gemm"), (200, 300, "gemm"), (400, 500, "relu"), **SHAPE)
    made = build.trace(kernels=kernels, devices=build.devices({}))
    monkeypatch.setattr(
        parsers, "read", lambda file: replace(made, capture=replace(made.capture, file=str(file)))
    )
    return path


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_flops_and_bytes_of_another_run(run: Run, trace_file: Path, tmp_path: Path) -> None:
    counted = written(tmp_path, raw([*FLOPS, *BYTES], [(10, 20, 100, 1, 24)]))
    outcome = run("analyze", trace_file, "--counters", counted)

    assert outcome.code == 0
    assert "Counted work" in outcome.out
    assert "460 FLOP" in outcome.out  # 2 · (10 + 20 + 2 · 100)
    assert "2.300 GFLOP/s" in outcome.out  # in 200 ns of this trace
    assert "Counters cover 66.7 % of the kernels' time" in one_line(outcome.out)

    found = json.loads(run("analyze", trace_file, "--counters", counted, "--format", "json").out)
    gemm, relu = found["kernels"]
    assert gemm["work_source"] == "counters"
    assert gemm["flops_executed"] == {"fp32": {"value": 460, "low": 460, "high": 460}}
    assert gemm["bytes"]["dram"]["value"] == 2 * 1024
    assert relu["work_source"] is None
    assert {row["status"] for row in found["counter_coverage"]} == {"matched", "only_in_trace"}


def test_the_report_says_how_executions_were_counted(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    alike = written(tmp_path, raw(FLOPS, [(10, 20, 100), (10, 20, 100)]), "alike.csv")
    outcome = one_line(run("analyze", trace_file, "--counters", alike).out)
    assert "time. Executions of a launch shape that are alike count as their mean." in outcome

    differing = written(tmp_path, raw(FLOPS, [(10, 20, 100), (10, 20, 300)]), "order.csv")
    outcome = one_line(run("analyze", trace_file, "--counters", differing).out)
    assert "time. Where executions differ, the n-th launch counts as the n-th counted." in outcome

    bounded = written(tmp_path, raw(FLOPS, [(1, 2, n) for n in (1, 5, 9)]), "bounds.csv")
    outcome = one_line(run("analyze", trace_file, "--counters", bounded).out)
    assert "time. Where nothing tells which is which, they are known between" in outcome


def test_all_of_the_time_is_no_rounded_number(
    run: Run, trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"gemm{n}" for n in range(10)]
    kernels = build.kernels(*[(n, n + 1, name) for n, name in enumerate(names)], **SHAPE)
    made = build.trace(kernels=kernels, devices=build.devices({}))
    monkeypatch.setattr(parsers, "read", lambda _: made)
    rows = [(n, name, "inst", "1", kernel) for n, kernel in enumerate(names) for name, _ in FLOPS]
    counted = written(tmp_path, details(rows))
    outcome = run("analyze", trace_file, "--counters", counted)
    assert "Counted: 100 % of the kernels' time" in outcome.out  # 10 · 0.1 is 0.9999999999999999


def test_counted_kernels_have_their_short_names(
    run: Run, trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "void at::native::reduce_kernel<512, at::native::MeanOps<float>>(at::native::MeanOps)"
    made = build.trace(kernels=build.kernels((0, 100, name), **SHAPE), devices=build.devices({}))
    monkeypatch.setattr(parsers, "read", lambda _: made)
    rows = [(0, metric, "inst", "1", name) for metric, _ in FLOPS]
    outcome = run("analyze", trace_file, "--counters", written(tmp_path, details(rows)))
    section = outcome.out[outcome.out.index("Counted work") :]
    assert "reduce_kernel<MeanOps<float>>" in section
    assert "at::native" not in section


def test_replays_are_taken_together(run: Run, trace_file: Path, tmp_path: Path) -> None:
    flops = written(tmp_path, raw(FLOPS, [(10, 20, 100)]), "flops.csv")
    dram = written(tmp_path, raw(BYTES, [(1, 24)]), "dram.csv")
    options = ("--counters", flops, "--counters", dram, "--format", "csv", "--table", "work")
    rows = run("analyze", trace_file, *options).out.splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == [
        "fp32_flops", "dram_bytes", "dram_read_bytes", "dram_write_bytes",
    ]  # fmt: skip


def test_where_a_text_names_no_counts(run: Run, trace_file: Path, tmp_path: Path) -> None:
    counted = written(tmp_path, raw([("sm__throughput.avg.pct_of_peak", "%")], [(50,)]))
    outcome = run("analyze", trace_file, "--counters", counted)
    assert outcome.code == 2
    assert "no FLOPs, bytes or instructions follow" in outcome.err
    assert "ncu --csv --page raw --metrics" in outcome.err


def test_counts_of_another_program_are_refused(run: Run, trace_file: Path, tmp_path: Path) -> None:
    header, units_, *rows = raw(FLOPS, [(1, 2, 3)]).splitlines()
    rows = [quoted([*about(0, "conv"), 1, 2, 3])]
    counted = written(tmp_path, "\n".join([header, units_, *rows]) + "\n")
    outcome = run("analyze", trace_file, "--counters", counted)
    assert outcome.code == 2
    assert "None of the kernels that were counted (1) ran in this trace" in outcome.err
    assert "Counted: conv. In the trace: gemm, relu." in outcome.err


def test_counts_of_another_launch_shape_are_refused(
    run: Run, trace_file: Path, tmp_path: Path
) -> None:
    text = raw(FLOPS, [(1, 2, 3)]).replace("(4, 2, 1)", "(8, 2, 1)")
    outcome = run("analyze", trace_file, "--counters", written(tmp_path, text))
    assert outcome.code == 2
    assert "Was the batch size another?" in outcome.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no file"),
        ("", "is empty"),
        ("Hello\n", "a text without a table of ncu or nvprof"),
    ],
)
def test_what_is_no_counters(
    run: Run, trace_file: Path, tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "absent.csv" if content is None else written(tmp_path, content)
    outcome = run("analyze", trace_file, "--counters", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


def test_counters_are_never_written_over(run: Run, trace_file: Path, tmp_path: Path) -> None:
    counted = written(tmp_path, raw(FLOPS, [(10, 20, 100)]))
    before = counted.read_bytes()
    outcome = run("analyze", trace_file, "--counters", counted, "--output", counted, "--force")
    assert outcome.code == 2
    assert "counters.csv is read for this analysis" in outcome.err
    assert counted.read_bytes() == before


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_readme_counts_what_the_hint_does() -> None:
    block = re.search(r"```sh\n(op=\S+)\nncu (.*?)python", README.read_text("utf-8"), re.DOTALL)
    assert block is not None
    script = f"{block[1]}\nprintf %s\\\\n {block[2]}"
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split()[-1].split(",") == list(COUNTERS)
    assert ",".join(COUNTERS) in HOW_TO_COUNT


@needs_corpus
def test_a_timeline_and_its_metric_run(run: Run) -> None:
    """Two real runs of one program on one GPU."""
    assert CORPUS is not None
    folder = CORPUS / "traces" / "nvprof"
    outcome = run(
        "analyze", folder / "TITANV_mxnet_ece408__timeline.nvprof", "--format", "json",
        "--counters", folder / "TITANV_mxnet_ece408__forward1_analysis.nvprof",
    )  # fmt: skip
    found = json.loads(outcome.out)
    matched = [row for row in found["counter_coverage"] if row["status"] == "matched"]
    flops = [row for row in found["work"] if row["quantity"] == "fp32_flops"]
    assert len(matched) == len(flops) == 1
    total_ns = matched[0]["total_ns"]  # of the one launch shape that was counted
    assert flops[0]["rate_per_s"] == pytest.approx(flops[0]["value"] / (total_ns / 1e9))
    [kernel] = [row for row in found["kernels"] if row["name"] == flops[0]["name"]]
    assert total_ns < kernel["total_ns"]
    assert flops[0]["coverage"] == pytest.approx(total_ns / kernel["total_ns"])
    assert kernel["flops_executed"]["fp32"]["value"] == flops[0]["value"]


def test_sql_and_explain_know_counters_too(run: Run, trace_file: Path, tmp_path: Path) -> None:
    counted = written(tmp_path, raw(FLOPS, [(10, 20, 100)]))
    query = "SELECT value FROM result_work WHERE quantity = 'fp32_flops'"
    answer = run("sql", trace_file, query, "--counters", counted, "--format", "csv")
    assert float(answer.out.splitlines()[1]) == 460
    assert run("sql", trace_file, query, "--format", "csv").out.count("\n") == 1
    outcome = run("explain", "work.value", trace_file, "--counters", counted)
    assert outcome.code == 0
    assert "460" in outcome.out
    assert "--clock" in run("explain", "--help").out
