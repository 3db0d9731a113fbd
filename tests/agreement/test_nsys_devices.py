"""Device time of real traces, read by our own parser: checks hold, and nsys's gaps are ours."""

from __future__ import annotations

from pathlib import Path

import kernelscope as ks
from kernelscope.metrics.results import PARTITION_CLASSES
from tests.corpus import each, nsys_traces, nsys_traces_with, oracle


@each(nsys_traces())
def test_the_partition_sums_to_the_window(trace_file: Path) -> None:
    analysis = ks.analyze(ks.read(trace_file))
    assert analysis.ok, analysis.checks.records()
    for row in analysis.devices.records() + analysis.device_processes.records():
        parts = sum(row[f"partition.{name}_ns"] for name in PARTITION_CLASSES)
        assert parts == row["window_ns"] == analysis.window.duration_ns


@each([path for path in nsys_traces_with("rule_gpu_gaps") if oracle(path.stem, "rule_gpu_gaps")])
def test_the_gap_list(trace_file: Path) -> None:
    """`rule_gpu_gaps`: gaps of kernels, memcpy and memset per process and device."""
    columns = ("Duration (ns)", "Start (ns)", "PID", "Device ID")
    printed = [
        tuple(int(row[column]) for column in columns)
        for row in oracle(trace_file.stem, "rule_gpu_gaps")
    ]
    ours = [
        (row["duration_ns"], row["start_ns"], row["process_id"], row["device_id"])
        for row in ks.metrics.gaps(ks.read(trace_file), per="process").records()
    ]
    assert sorted(ours) == sorted(printed)
