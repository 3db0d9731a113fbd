"""Findings of real traces: the stories that they tell, and what holds of every one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kernelscope
from kernelscope.metrics.analysis import Analysis, analyze
from kernelscope.metrics.finding_rules import LAYOUT_KERNELS
from kernelscope.metrics.savable import LEAST_SHARE, after_warmup
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces, nvprof_traces

MS = 1_000_000
EMPTY = ("nearlyempty__profile",)
TIMELINES = [path for path in (*nsys_traces(), *nvprof_traces()) if path.stem not in EMPTY]


@cache
def analysed(path: Path) -> Analysis:
    return analyze(kernelscope.read(path))


def of(name: str) -> Mapping[str, dict[str, Any]]:
    assert CORPUS is not None
    found = analysed(CORPUS / "traces" / "nsys" / f"{name}.sqlite").findings
    return {row["code"]: row for row in found.records()}


@each(TIMELINES, "path")
def test_every_finding_has_its_numbers_a_bound_and_a_place(path: Path) -> None:
    result = analysed(path)
    rows = result.findings.records()
    steps = after_warmup(result.iterations)
    bounds = [row["saving_bound_ns"] or 0 for row in rows]
    assert bounds == sorted(bounds, reverse=True)
    assert len({row["code"] for row in rows}) == len(rows)
    for row in rows:
        per = "iteration" if len(steps) else "window"
        mean = steps["period_ns"].mean() if len(steps) else result.window.duration_ns
        assert row["per"] == per
        assert re.search(r"\d", row["evidence"])
        assert "the longest stretch" in row["where"]
        assert not any(float(share) > 100 for share in re.findall(r"([\d.]+) %", row["evidence"]))
        assert 0 <= row["device"] < len(result.devices)
        if row["saving_bound_ns"] is not None:
            assert LEAST_SHARE * mean <= row["saving_bound_ns"] <= mean + 1
            assert row["saving_share"] == pytest.approx(row["saving_bound_ns"] / mean, rel=1e-3)


@needs_corpus
def test_ten_seconds_of_start_up_are_nothing_to_be_saved_behind_it() -> None:
    """The first kernel of this test of NCCL starts at 10.755 s, of a window of 10.963."""
    assert CORPUS is not None
    path = CORPUS / "traces" / "nvprof" / "nccl_8xV100_output.nvvp"
    assert not len(analysed(path).findings)


@needs_corpus
def test_the_baseline_starves_outside_its_range() -> None:
    """Its periods alternate between 140 and 1,400 ms; the model works for 130 ms of each."""
    rows = of("2022.4.2_A100_training_baseline")
    first = next(iter(rows.values()))
    assert first["code"] == "outside_range"
    assert first["saving_bound_ns"] / MS == pytest.approx(633, abs=1)
    assert first["saving_share"] == pytest.approx(0.83, abs=0.005)
    assert rows["slow_iterations"]["evidence"].startswith("28 of 58 iterations after warm-up")
    assert "16.7 % of the window's kernel time" in rows["layout_conversions"]["evidence"]


@needs_corpus
def test_the_profiler_spoils_the_picture_of_the_ddp_run() -> None:
    row = of("2022.4.2_A100x4_training_ddp")["profiler_overhead"]
    assert "(18.7 % of it)" in row["evidence"]
    assert row["saving_bound_ns"] is None


@needs_corpus
def test_the_larger_bucket_leaves_more_communication_exposed() -> None:
    """Of the ddp run less than 2 % of a step is: no finding."""
    assert "exposed_communication" not in of("2022.4.2_A100x4_training_ddp")
    row = of("2022.4.2_A100x4_training_ddp_bucketcap")["exposed_communication"]
    assert row["saving_bound_ns"] / MS == pytest.approx(0.858, abs=0.001)


@needs_corpus
@pytest.mark.parametrize(
    "name", ["2023.4.4_A100_training_dali", "2023.4.4_A100_training_amp_bf16_fused"]
)
def test_runs_that_the_gpu_bounds_have_none(name: str) -> None:
    """Blocking copies hold up the host of `dali` for 35.8 s, and the GPU never runs dry."""
    assert not of(name)


@needs_corpus
def test_allocations_and_files_read_show_in_a_c_program() -> None:
    rows = of("2023.4.4_llmc_gpt2")
    assert list(rows) == ["allocations", "data_loading"]


@needs_corpus
def test_a_loop_of_tiny_kernels_is_bound_by_launches() -> None:
    rows = of("2023.4.4_training_nvtx")
    assert list(rows) == ["launch_bound", "tiny_kernels"]
    assert rows["launch_bound"]["saving_share"] > 0.95


@needs_corpus
def test_iterations_of_the_kernel_sequence_have_no_outside() -> None:
    rows = of("2023.1.2_RTX3060_gtls_23419k")
    assert rows["tiny_kernels"]["per"] == "iteration"
    assert "outside_range" not in rows


LAYOUTS = re.compile(r"nchwToNhwcKernel|nhwcToNchwKernel|nhwcAddPaddingKernel")


@each(TIMELINES, "path")
def test_layout_kernels_of_real_traces_are_those_that_were_read_by_eye(path: Path) -> None:
    for name in kernelscope.read(path).kernels.categories("name"):
        assert bool(LAYOUT_KERNELS.search(name)) == bool(LAYOUTS.search(name)), name
