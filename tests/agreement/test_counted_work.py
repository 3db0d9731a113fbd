"""Work made of counters is what studies and vendors' own sums say."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.metrics.counted_work import counted_work
from tests.agreement.test_counters import STUDIES, configurations, expected_table
from tests.corpus import each, needs_corpus, opened, oracle_folder

V100 = (7, 0)


@each(configurations())
def test_flops_and_bytes_of_the_study(trace_file: Path) -> None:
    """`golden_totals.json`, made of twelve replays with a counter each."""
    golden = json.loads((STUDIES / "golden_totals.json").read_text())
    expected = golden[expected_table(trace_file).stem]
    replays = ks.read_counters(*sorted(trace_file.glob("*.csv.gz")))
    total: dict[str, float] = defaultdict(float)
    for group in counted_work(replays, V100):
        for name, quantity in group.work.items():
            total[name] += quantity.counted.mean * quantity.counted.executions

    assert total["fp16_flops"] + total["fp32_flops"] == pytest.approx(
        expected["flops_cuda_core"], rel=1e-12
    )
    assert total["tensor_flops"] == pytest.approx(expected["flops_tensor"], rel=1e-12)
    assert total["dram_bytes"] == pytest.approx(expected["dram_bytes"], rel=1e-12)
    assert total["l2_bytes"] == pytest.approx(expected["l2_bytes"], rel=1e-12)
    assert total["l1_bytes"] == pytest.approx(expected["l1_bytes"], rel=1e-12)


@each(configurations())
def test_work_by_kernel_of_the_study(trace_file: Path) -> None:
    """Their tables by kernel hold GFLOP/s that divide by 1024³; the FLOPs behind them are ours."""
    replays = ks.read_counters(*sorted(trace_file.glob("*.csv.gz")))
    total: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group in counted_work(replays, V100):
        for name, quantity in group.work.items():
            total[group.name or ""][name] += quantity.counted.mean * quantity.counted.executions
    table = list(csv.DictReader(io.StringIO(opened(expected_table(trace_file)))))

    assert len(table) == len(total)
    for row in table:
        ours = total[row["Kernel Name"]]
        flops = ours["fp16_flops"] + ours["fp32_flops"] + ours["tensor_flops"]
        for level, counter in (
            ("dram", "dram__bytes"),
            ("l2", "lts__t_bytes"),
            ("l1", "l1tex__t_bytes"),
        ):
            assert ours[f"{level}_bytes"] == pytest.approx(float(row[f"{counter}.sum"]), rel=1e-12)
        cores = ours["fp16_flops"] + ours["fp32_flops"]
        assert cores == pytest.approx(float(row["CC FLOPs"]), rel=1e-12)
        assert ours["tensor_flops"] == pytest.approx(float(row["TC FLOPs"]), rel=1e-12)
        rate = flops / float(row["Time"]) if flops else 0.0
        assert rate / 1024**3 == pytest.approx(float(row["GFLOP/s"]), rel=1e-9)  # ours: 10⁹


@needs_corpus
def test_bytes_of_the_instruction_roofline() -> None:
    """A transpose on a V100S: transactions of 32 bytes at three levels."""
    folder = oracle_folder("instruction-roofline") / "hierarchical"
    counted = ks.read_counters(*sorted(folder.glob("*_transpose.csv")))
    (group,) = counted_work(counted)
    figures = {name: each.figures() for name, each in group.work.items()}

    assert figures["l1_bytes"][1] == 32 * (131_072 + 524_288)
    assert math.isnan(figures["l1_bytes"][0])
    assert group.work["l1_bytes"].caveat == "partial"
    assert figures["l2_bytes"][0] == 32 * (131_172 + 545_629)
    assert figures["dram_bytes"][0] == 32 * (136_549 + 135_811)
    assert figures["dram_bytes"][2] == 32 * (144_058 + 176_292)
