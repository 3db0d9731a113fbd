"""Iterations of real traces: what an expert sees in each, and where markers and kernels agree."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.metrics.iterations import Iterations, iterations
from kernelscope.metrics.window import whole
from tests.corpus import each, nsys_traces

EXPECTED: dict[str, tuple[str, str, int]] = {
    "2022.4.2_A100_training_baseline": ("nvtx", "step #", 59),
    "2022.4.2_A100x4_training_ddp": ("nvtx", "step #", 59),
    "2022.4.2_A100x4_training_ddp_bucketcap": ("nvtx", "step #", 59),
    "2023.4.4_A100_training_dali": ("nvtx", "step #", 31),
    "2023.4.4_A100_training_amp_bf16_fused": ("nvtx", "step #", 31),
    # a fusion benchmark: each `test` runs one fused kernel; the first compiles it
    "2023.4.4_training_nvtx": ("nvtx", "test", 1000),
    "2025.3.1_T4_cupy_power_iteration_nvtx": ("nvtx", "Step # to #", 44),
    # the solver's outer loop; `Inner Level #` repeats 1,221 times in it
    "2023.3.1_T4_trisolve_18streams_nvtx": ("nvtx", "Coarse Level #", 18),
    "2022.2.1_A100_saxpy_mpi_callchains": ("nvtx", "saxpy", 5),
    # part of one step of a transformer: the blocks, which are no steps, and are not called so
    "2026.2.1_2gpu_nccl_mfu_before": ("kernel_sequence", "repeating unit of 119 kernels", 17),
    "2023.1.2_RTX3060_gtls_23419k": ("kernel_sequence", "repeating unit of 909 kernels", 26),
    # two hydro cycles: sweeps alternate their order
    "2024.5.1_A100x4_cloverleaf_perlmutter": (
        "kernel_sequence",
        "repeating unit of 250 kernels",
        5,
    ),
    "2026.1.1_H100_healthy_1pct_trimmed": ("kernel_sequence", "repeating unit of 2 kernels", 200),
    "2023.1.2_A100x8_mixq_bench2": ("kernel_sequence", "repeating unit of 3 kernels", 10),
}
"""Source, family and number of iterations; in no other trace are there any."""

STORIES = {
    "2022.4.2_A100_training_baseline": (246e6, 765e6),
    "2022.4.2_A100x4_training_ddp": (30.6e6, 30.6e6),
    "2022.4.2_A100x4_training_ddp_bucketcap": (29.7e6, 29.8e6),
    "2023.4.4_A100_training_dali": (1195e6, 1195e6),
    "2023.4.4_A100_training_amp_bf16_fused": (365e6, 365e6),
}
"""Median and mean of the steady periods, in ns."""

AGREE = {
    "2022.4.2_A100_training_baseline",
    "2022.4.2_A100x4_training_ddp",
    "2022.4.2_A100x4_training_ddp_bucketcap",
    "2023.4.4_A100_training_dali",
    "2023.4.4_A100_training_amp_bf16_fused",
    "2023.4.4_training_nvtx",
    "2025.3.1_T4_cupy_power_iteration_nvtx",
}
"""Where the kernel sequence repeats as the markers do. Elsewhere it says nothing: 18 streams
share the solver's kernels, and five kernels are too few."""


@lru_cache(maxsize=2)
def of(trace_file: Path) -> Iterations:
    trace = ks.read(trace_file)
    return iterations(trace, whole(trace), cross_check=True)


@each(nsys_traces())
def test_what_is_found(trace_file: Path) -> None:
    summary = of(trace_file).summary
    expected = EXPECTED.get(trace_file.stem)
    if expected is None:
        assert summary.family is None
        assert summary.notes
    else:
        assert (summary.source, summary.family, summary.count) == expected


@each([path for path in nsys_traces() if path.stem in STORIES])
def test_step_times(trace_file: Path) -> None:
    steady = of(trace_file).summary.steady
    median, mean = STORIES[trace_file.stem]
    assert steady.median_ns == pytest.approx(median, rel=0.005)
    assert steady.mean_ns == pytest.approx(mean, rel=0.005)
    assert steady.is_steady is (trace_file.stem != "2022.4.2_A100_training_baseline")


@each([path for path in nsys_traces() if path.stem.endswith("training_baseline")])
def test_the_baselines_stalls_are_the_story(trace_file: Path) -> None:
    """Periods alternate, so none of them is warm-up or an outlier; the range says 72 ms."""
    found = of(trace_file)
    assert found.summary.warmup == found.summary.outliers == ()
    assert sorted(found.rows["range_ns"].tolist())[29] == pytest.approx(72.5e6, rel=0.01)
    slow = found.rows["period_ns"] > 1_000_000_000
    assert slow[3:57:2].all()
    assert not slow[4:57:2].any()


@each([path for path in nsys_traces() if EXPECTED.get(path.stem, ("",))[0] == "nvtx"])
def test_markers_and_kernel_sequence(trace_file: Path) -> None:
    check = of(trace_file).summary.kernel_sequence
    assert (check is not None) is (trace_file.stem in AGREE)
    assert check is None or check.agrees


@each([path for path in nsys_traces() if path.stem in EXPECTED])
def test_sums(trace_file: Path) -> None:
    """Time in the window is a partition: it never exceeds the periods; nor kernels, busy time."""
    rows = of(trace_file).rows
    assert (rows["busy_in_window_ns"] <= rows["period_ns"]).all()
    assert (rows["kernel_in_window_ns"] <= rows["busy_in_window_ns"]).all()
    assert (rows["spill_ns"] <= rows["attributed_ns"]).all()
    assert (
        rows["period_ns"][:-1].tolist() == (rows["start_ns"][1:] - rows["start_ns"][:-1]).tolist()
    )
