"""The section of the terminal report on utilization: FP32, what bounds kernels, precision."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.text_lists import kernel_names, more

_KNOWN = ("compute_low", "memory_low")


def bounds(analysis: Analysis, page: Page) -> list[Text]:
    """How much of what the GPU can do is used, and what bounds its kernels?"""
    devices = analysis.tables["device_utilization"].records()
    rows = analysis.tables["bounds"].records()
    if not devices or not rows:
        return []
    lines = heading(page, "Utilization and bounds", "against dense peaks (table peaks)")
    for row in devices:
        lines += paragraph(page, _device(row))
    counted = [row for row in rows if row["bound_evidence"]]
    if counted:
        top = counted[: page.shown(len(counted))]
        figures = [
            Figures("share", [units.ratio(row["share"]) for row in top], style="bold"),
            Figures("pipe", [_share(row, "compute") for row in top], 2),
            Figures("memory", [_share(row, "memory") for row in top], 3),
            Figures("bound", [row["bound"].replace("_", " ") for row in top]),
        ]
        lines += grid(page, figures, "kernel", kernel_names(row["name"] for row in top))
        lines += more(page, len(top), len(counted), "kernel", "--format csv --table bounds")
    limited = _limited(rows)
    if limited:
        lines += paragraph(page, limited)
    spoken = _precision(analysis.tables["precision"].records())
    if spoken:
        lines += paragraph(page, spoken)
    return lines


def _device(row: dict[str, Any]) -> str:
    name = f"GPU {row['device']}: "
    compute = f"compute utilization {units.ratio(row['gpu'])} of the window"
    if row["fp32_low"] is None:
        return f"{name}{compute}. No FP32 peak of it is known (--gpu NAME)."
    if row["fp32"] is not None:
        wall = units.ratio(row["fp32_of_wall"])
        return (
            f"{name}{compute}; FP32 utilization {units.ratio(row['fp32'])} while active, {wall} of "
            f"wall time; FLOPs of {units.ratio(row['coverage'])} of the active time are known."
        )
    between = f"{units.ratio(row['fp32_low'])} and {units.ratio(row['fp32_high'])}"
    if not row["coverage"]:
        return (
            f"{name}{compute}; FP32 utilization between {between}: FLOPs of no kernel are known "
            "(--counters FILE; kernelscope profile --counters)."
        )
    return (
        f"{name}{compute}; FP32 utilization between {between} while active: FLOPs of "
        f"{units.ratio(row['coverage'])} of the active time are known."
    )


def _share(row: dict[str, Any], side: str) -> str:
    value, low, high = (row[f"{side}{end}"] for end in ("", "_low", "_high"))
    if value is not None:
        return units.ratio(value) if value <= 1.005 else "> peak"
    if low is None or (low == 0 and high == 1):
        return units.MISSING
    if low == 0:
        return f"≤ {units.ratio(high)}"
    return f"≥ {units.ratio(low)}"


def _limited(rows: list[dict[str, Any]]) -> str:
    """Say which share of the executions the GPU waited for longer than they took."""
    known = [row for row in rows if row["launch_limited"] is not None]
    executions = sum(row["executions"] for row in known)
    waited = sum(row["launch_limited"] * row["executions"] for row in known)
    if not executions or not waited:
        return ""
    return (
        f"Launch-limited: {units.ratio(waited / executions)} of the kernel executions; the GPU was "
        "idle before them, for the host or in launch latency, longer than they took."
    )


def _precision(rows: list[dict[str, Any]]) -> str:
    """Say on which pipes matrix kernels spend their time."""
    if not rows:
        return ""
    by_pipe: dict[str, float] = {}
    for row in rows:
        label = row["pipe"] or "pipe not told by the name"
        by_pipe[label] = by_pipe.get(label, 0.0) + (row["share"] or 0.0)
    said = ", ".join(
        f"{pipe} {units.ratio(share)}"
        for pipe, share in sorted(by_pipe.items(), key=lambda each: -each[1])
    )
    text = f"Matrix kernels (GEMM, convolution, attention), in shares of kernel time: {said}."
    saving = sum(row["saving_bound_ns"] or 0 for row in rows)
    if saving:
        text += (
            f" On tensor cores those of CUDA cores could save {units.duration(saving)} at most "
            "(table precision)."
        )
    return text
