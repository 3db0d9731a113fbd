"""Pipe activity as TBD measured it, and the defects of its tools that ours does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.errors import NotRecordedError
from kernelscope.metrics import results
from kernelscope.metrics.kernels import kernels
from kernelscope.metrics.tbd import CYCLES, FP32_LEVEL, PIPES, core_utilization, pipe_activity
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Table
from tests import build
from tests.corpus import CORPUS, needs_corpus
from tests.parsers.counter_texts import nvprof_summary, raw, written


def plain(**durations: int) -> Table:
    """The kernel table of a trace in which each kernel ran once."""
    rows, at = [], 0
    for name, ns in durations.items():
        rows.append((at, at + ns, name))
        at += ns
    return kernels(build.trace(kernels=build.kernels(*rows)))


def levels(tmp_path: Path, **cells: str) -> CounterSet:
    text = nvprof_summary([(name, 1, FP32_LEVEL, cell, cell, cell) for name, cell in cells.items()])
    return ks.read_counters(written(tmp_path, text))


def test_the_mean_is_weighted_by_the_durations_of_the_plain_trace(tmp_path: Path) -> None:
    found = pipe_activity(plain(a=300, b=100), levels(tmp_path, a="Low (2)", b="Max (10)"))
    assert found.activity == pytest.approx((300 * 0.2 + 100 * 1.0) / 400)
    assert found.coverage == 1
    assert found.kernels.schema.name == "pipe_activity"


def test_max_is_ten_and_not_nought(tmp_path: Path) -> None:
    assert pipe_activity(plain(a=10), levels(tmp_path, a="Max (10)")).activity == 1


def test_an_empty_cell_leaves_both_sums(tmp_path: Path) -> None:
    found = pipe_activity(plain(a=300, b=100), levels(tmp_path, a="", b="Mid (5)"))
    assert found.activity == 0.5
    assert found.coverage == 0.25
    rows = {row["name"]: row for row in found.kernels.records()}
    assert (rows["a"]["activity"], rows["a"]["listed"]) == (None, None)


def test_a_kernel_at_the_mean_is_in_a_table(tmp_path: Path) -> None:
    counted = levels(tmp_path, a="Mid (5)", b="Low (3)", c="High (7)")
    rows = pipe_activity(plain(a=100, b=50, c=50), counted).kernels.records()
    assert [(row["name"], row["listed"]) for row in rows] == [
        ("a", "low"), ("b", "low"), ("c", "high"),
    ]  # fmt: skip


def test_the_five_longest_of_either_side_ties_by_name(tmp_path: Path) -> None:
    low = {f"low{i}": 100 for i in reversed(range(7))}
    high = {f"high{i}": 10 + i for i in range(7)}
    counted = levels(tmp_path, **dict.fromkeys(low, "Low (1)"), **dict.fromkeys(high, "High (9)"))
    rows = pipe_activity(plain(**low, **high), counted).kernels.records()
    assert [r["name"] for r in rows if r["listed"] == "low"] == [f"low{i}" for i in range(5)]
    assert [r["name"] for r in rows if r["listed"] == "high"] == [
        f"high{i}" for i in (6, 5, 4, 3, 2)
    ]


def test_the_last_kernel_of_an_ncu_run_counts(tmp_path: Path) -> None:
    text = raw([(CYCLES, "cycle"), (PIPES[0], "%")], [(100, 10), (300, 50)])
    found = core_utilization(ks.read_counters(written(tmp_path, text)))
    assert found == {PIPES[0]: pytest.approx((100 * 0.1 + 300 * 0.5) / 400)}


def test_what_was_not_counted_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NotRecordedError, match="No kernel of the trace") as caught:
        pipe_activity(plain(other=10), levels(tmp_path, a="Mid (5)"))
    assert f"nvprof --metrics {FP32_LEVEL}" in caught.value.hint
    text = raw([(PIPES[0], "%")], [(10,)])
    with pytest.raises(NotRecordedError, match="was not counted"):
        core_utilization(ks.read_counters(written(tmp_path, text)))


@needs_corpus
def test_a_real_timeline_and_its_metric_run() -> None:
    """One kernel of the TITAN V's timeline was counted in the other run: `fu` level 2 of 10."""
    assert CORPUS is not None
    folder = CORPUS / "traces" / "nvprof"
    trace = ks.read(str(folder / "TITANV_mxnet_ece408__timeline.nvprof"))
    counted = ks.read_counters(str(folder / "TITANV_mxnet_ece408__forward1_analysis.nvprof"))
    table = kernels(trace)
    found = pipe_activity(table, counted)
    [row] = [row for row in found.kernels.records() if row["activity"] is not None]
    values = [each["value"] for each in counted.counters.records() if each["metric"] == FP32_LEVEL]
    assert table.schema is results.KERNELS
    assert found.activity == row["activity"] == pytest.approx(sum(values) / len(values) / 10)
    assert found.coverage == pytest.approx(row["share"])
    assert 0 < found.coverage < 1
