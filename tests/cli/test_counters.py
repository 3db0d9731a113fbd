"""``kernelscope counters``: the page at every width, the formats, what is chosen or refused."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from kernelscope.report.counters import shown
from tests.cli.conftest import Run
from tests.corpus import CORPUS, counter_files, each, nvprof_traces
from tests.parsers.counter_texts import CHATTER, details, nvprof_summary, raw, written

LONG_NAME = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    rows = [
        (0, "dram__bytes.sum", "Kbyte", "32.77"), (0, "sm__throughput.pct", "%", "31.28"),
        (1, "dram__bytes.sum", "Mbyte", "2.00"), (1, "sm__throughput.pct", "%", "n/a"),
        (2, "dram__bytes.sum", "byte", "512", LONG_NAME, "(1024, 2, 1)"),
        (2, "device__attribute_clock", "", "1410", LONG_NAME, "(1024, 2, 1)"),
    ]  # fmt: skip
    return written(tmp_path, CHATTER + details(rows))


def test_the_page(run: Run, text: Path) -> None:
    outcome = run("counters", text)
    assert outcome.code == 0
    assert "3 executions of 2 kernels" in outcome.out
    assert re.search(
        r"992\.6 KiB +32\.00 KiB +1\.907 MiB +1\.939 MiB +0 +dram__bytes\.sum", outcome.out
    )
    assert "31.3 %" in outcome.out
    assert "1024×2" in outcome.out
    assert "compute capability 8.0" in outcome.out
    assert "1 value missing: the source holds none" in outcome.out
    assert "1 property of the GPU" in outcome.out
    assert "device__attribute_clock" not in outcome.out
    assert "1,410" in run("counters", text, "--metric", "device__*").out


@pytest.mark.parametrize("by", ["kernel", "shape", "execution"])
@pytest.mark.parametrize("columns", [60, 120])
def test_every_width(
    run: Run, text: Path, monkeypatch: pytest.MonkeyPatch, columns: int, by: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = run("counters", text, "--by", by)
    lines = outcome.out.splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert any("dram__bytes.sum" in line for line in lines)
    assert any("512 B" in line for line in lines)


@each([*counter_files("ncu", ".csv"), *counter_files("nvprof", ".csv"),
       *(p for p in nvprof_traces() if "metrics" in p.name)])  # fmt: skip
def test_every_file_has_a_page(run: Run, monkeypatch: pytest.MonkeyPatch, trace_file: Path) -> None:
    for columns in (60, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        outcome = run("counters", trace_file)
        assert (outcome.code, outcome.err) == (0, "")
        assert max(map(cell_len, outcome.out.splitlines())) <= columns
    assert json.loads(run("counters", trace_file, "--format", "json").out)["counters"]


def test_json_holds_all(run: Run, text: Path) -> None:
    found = json.loads(run("counters", text, "--format", "json", "--top", "1").out)
    assert found["schema_version"] == 1
    assert [row["tool"] for row in found["sources"]] == ["ncu"]
    assert len(found["executions"]) == 3
    rows = {(row["kernel_name"], row["metric"]): row for row in found["counters"]}
    assert rows["gemm", "dram__bytes.sum"]["total"] == 2_032_770
    assert rows["gemm", "sm__throughput.pct"]["without_value"] == 1
    by_execution = json.loads(run("counters", text, "--format", "json", "--by", "execution").out)
    assert [row["problem"] for row in by_execution["counters"]].count("no_value") == 1
    assert len(by_execution["counters"]) == 6


def test_csv_and_markdown_hold_one_table(run: Run, text: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    outcome = run("counters", text, "--format", "csv", "--by", "execution", "--output", target)
    assert (outcome.code, outcome.out) == (0, "")
    rows = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"))))
    assert [row["value"] for row in rows][:2] == ["32770.0", "0.3128"]
    assert rows[3]["value"] == ""
    assert "dram\\_\\_bytes.sum" in run("counters", text, "--format", "markdown").out


def test_globs_choose(run: Run, text: Path) -> None:
    found = json.loads(
        run("counters", text, "--metric", "dram__*", "--kernel", "g*", "--format", "json").out
    )
    assert [row["metric"] for row in found["counters"]] == ["dram__bytes.sum"]
    assert {row["kernel_name"] for row in found["executions"]} == {"gemm"}
    named = json.loads(run("counters", text, "--kernel", LONG_NAME, "--format", "json").out)
    assert {row["kernel_name"] for row in named["counters"]} == {LONG_NAME}


@pytest.mark.parametrize(
    ("option", "glob", "word"),
    [("--metric", "dram_bytes.sum", "dram__bytes.sum"), ("--kernel", "gem", "gemm")],
)
def test_a_glob_of_nothing(run: Run, text: Path, option: str, glob: str, word: str) -> None:
    outcome = run("counters", text, option, glob)
    assert outcome.code == 2
    assert f"{option} {glob!r} names nothing" in outcome.err
    assert f"Did you mean '{word}'?" in outcome.err


def test_several_runs(run: Run, text: Path, tmp_path: Path) -> None:
    other = written(tmp_path, nvprof_summary([("gemm", 2, "inst_executed", 1, 3, 2)]), "b.csv")
    outcome = run("counters", text, other)
    assert "2 files" in outcome.out
    assert "in 2 runs" in outcome.out
    assert "b.csv" in outcome.out
    assert "5 executions of 2 kernels in 2 runs" in outcome.out


def test_rows_are_cut_for_people_only(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, raw([(f"m__{i}.sum", "inst") for i in range(30)], [[1] * 30]))
    assert "… 10 more counters (--top 0 shows all)" in run("counters", path).out
    assert "more counters" not in run("counters", path, "--top", "0").out
    assert run("counters", path, "--format", "csv").out.count("\n") == 31


def test_what_holds_no_counters(run: Run, tmp_path: Path) -> None:
    outcome = run("counters", written(tmp_path, "Hello", "a.txt"))
    assert outcome.code == 2
    assert "without a table of ncu or nvprof" in outcome.err
    assert "kernelscope counters reads" in outcome.err
    assert run("counters").code == 2
    if CORPUS is not None:
        trace = next((CORPUS / "traces" / "nsys").glob("2022.4.2*.sqlite"))
        assert "kernelscope analyze" in run("counters", trace).err


def test_the_file_is_never_overwritten(run: Run, text: Path) -> None:
    before = text.read_bytes()
    assert run("counters", text, "--output", text).code == 2
    assert text.read_bytes() == before


def test_analyze_says_who_reads_counters(run: Run, text: Path) -> None:
    outcome = run("analyze", written(text.parent, details([(0, "a__b", "", 1)]), "n.csv"))
    assert outcome.code == 2
    assert "kernelscope counters" in outcome.err


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ns", "–"), (1500.0, "ns", "1.500 µs"), (2048.0, "bytes", "2.000 KiB"),
        (2e9, "bytes/s", "2.000 GB/s"), (0.5, "ratio", "50 %"), (1.41e9, "Hz", "1.410 GHz"),
        (0.1759, "count", "0.1759"), (402_339.36, "count", "402,339"), (12.0, "level", "12"),
        (2.5, "1/cycle", "2.5 1/cycle"), (1e20, None, "1e+20"), (float("nan"), None, "–"),
        (0.5, "1", "0.5"),
    ],
)  # fmt: skip
def test_values_for_people(value: float | None, unit: str | None, text: str) -> None:
    assert shown(value, unit).replace("50.0 %", "50 %") == text
