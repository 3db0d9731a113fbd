"""The section of the terminal report on sampled GPU metrics."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.device_names import labels
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.text_lists import kernel_names, more

Row = dict[str, Any]

_SHOWN = {
    "sm_issue": "SM issue",
    "tensor_active": "tensor",
    "tensor_or_fp16_active": "tensor, FP16",
    "dram_read": "DRAM read",
    "dram_write": "DRAM write",
}
"""Role → the column of the list of kernels, the most telling first."""


def gpu_metrics(analysis: Analysis, page: Page) -> list[Text]:
    """What did the GPUs' own counters show?"""
    rows = [row for row in analysis.tables["gpu_metrics"].records() if row["role"]]
    if not rows:
        return []
    top = rows[: page.shown(len(rows))]
    figures = [
        Figures("mean", [_mean(row) for row in top], style="bold"),
        Figures("rate", [_rate(row) for row in top], 1),
        Figures("samples", units.texts([row["samples"] for row in top], "count"), 2),
        Figures("coverage", units.texts([row["coverage_ratio"] for row in top], "ratio")),
    ]
    if all(row["bytes_per_s"] is None for row in top):
        del figures[1]
    return [
        *heading(page, "Sampled GPU metrics", "coverage: of the window"),
        *grid(page, figures, "metric", [_name(analysis, row, rows) for row in top]),
        *more(page, len(top), len(rows), "metric"),
        *_kernels(analysis, page),
        *paragraph(
            page,
            "SMs Active is residency: a warp was there, working or waiting. What computes is told "
            "by SM issue, tensor and the pipes.",
            style="dim",
        ),
    ]


def _mean(row: Row) -> str:
    if row["value"] is None:
        return units.MISSING
    if row["unit"] == "ratio":
        return units.ratio(row["value"])
    return units.frequency(row["value"]) if row["unit"] == "Hz" else units.count(row["value"])


def _rate(row: Row) -> str:
    return units.MISSING if row["bytes_per_s"] is None else units.rate(row["bytes_per_s"])


def _name(analysis: Analysis, row: Row, rows: list[Row]) -> str:
    name = str(row["metric"]).partition(" [")[0]
    if len({(each["device"], each["gpu_id"]) for each in rows}) == 1:
        return name
    known = labels(analysis)
    if row["device"] is not None and row["device"] < len(known):
        return f"{name}  on {known[row['device']]}"
    return f"{name}  on another GPU (number {row['gpu_id']} of the profiler)"


def _kernels(analysis: Analysis, page: Page) -> list[Text]:
    """Return a row per kernel that was alone in enough samples; those of several GPUs apart."""
    found: dict[tuple[Any, Any], Row] = {}
    for row in analysis.tables["gpu_metrics_by_kernel"].records():
        key = row["name"], row["device"]
        found.setdefault(key, {"samples": 0, "covered_ns": 0})[row["role"]] = row["value"]
        for name in ("samples", "covered_ns"):
            found[key][name] = max(found[key][name], row[name])
    told = {key: row for key, row in found.items() if any(row.get(role) is not None
            for role in _SHOWN)}  # fmt: skip
    if not told:
        said = "No kernel ran alone through 5 samples or more: none has figures of its own."
        return paragraph(page, said, style="dim")
    order = sorted(told, key=lambda key: (-told[key]["covered_ns"], key[0], key[1]))
    top = order[: page.shown(len(order))]
    roles = [role for role in _SHOWN if any(told[key].get(role) is not None for key in top)]
    figures = [
        Figures("seen alone", units.durations([told[key]["covered_ns"] for key in top])),
        *(
            Figures(_SHOWN[role], units.texts([told[key].get(role) for key in top], "ratio"), place)
            for place, role in enumerate(roles)
        ),
        Figures("samples", units.texts([told[key]["samples"] for key in top], "count"), 6),
    ]
    several = len({device for _, device in told}) > 1
    names = labels(analysis)
    short = zip(kernel_names(name for name, _ in top), top, strict=True)
    return [
        Text(),
        *grid(
            page,
            figures,
            "kernel, while it ran alone",
            [f"{name}  on {names[gpu]}" if several else name for name, (_, gpu) in short],
        ),
        *more(page, len(top), len(order), "kernel"),
    ]
