"""The section of the terminal report on communication between GPUs."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.device_names import labels
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import ordered
from kernelscope.report.text_lists import more

_WHY = {
    "no_nvtx_range": "no NVTX range of NCCL or PyTorch holds their launch",
    "no_size_in_nvtx": "their NVTX ranges carry none (nsys export --type=sqlite "
    "--include-blobs=true writes those of NCCL 2.15 and later)",
    "mixed_group": "they ran in groups with other operations",
    "kind_unknown": "what the kernels do is not known",
    "ranks_unknown": "the number of ranks is not known (--ranks N)",
}
"""Reason of ``bytes_missing_because`` → what people read; others are shown as they are."""


def communication(analysis: Analysis, page: Page) -> list[Text]:
    """How long do GPUs communicate, and how much of that does compute not hide?"""
    table = ordered(analysis.tables["communication"])
    if not len(table):
        return []
    rows = table.records()
    top = rows[: page.shown(len(rows))]
    figures = [
        Figures("total", units.durations([row["total_ns"] for row in top]), style="bold"),
        Figures("exposed", units.durations([row["exposed_ns"] for row in top])),
        Figures("overlapped", units.durations([row["overlapped_ns"] for row in top]), 2),
        Figures("calls", units.texts([row["calls"] for row in top], "count"), 1),
    ]
    if any(row["bytes"] is not None for row in top):
        figures += [
            Figures("size", units.sizes([row["bytes"] for row in top]), 3),
            Figures("bus rate", [_at_least(row) for row in top], 1),
        ]
    return [
        *heading(page, "Communication", "exposed: beside no compute on that GPU"),
        *grid(page, figures, "kind", _names(analysis, top)),
        *more(page, len(top), len(rows), "row"),
        *_unknown(top, page),
    ]


def _at_least(row: dict[str, Any]) -> str:
    rate = row["bus_bytes_per_s"]
    return units.MISSING if rate is None else f"≥ {units.rate(rate)}"


def _names(analysis: Analysis, rows: list[dict[str, Any]]) -> list[str]:
    gpus = _gpus(analysis)
    several = len({(row["process_id"], row["device_id"]) for row in rows}) > 1
    names = []
    for row in rows:
        kind = (row["kind"] or "unknown").replace("_", "-")
        name = f"{kind}  [{row['library']}]" if row["library"] else kind
        gpu = gpus.get((row["process_id"], row["device_id"]), f"GPU {row['device_id']}")
        names.append(f"{name}  on {gpu}" if several else name)
    return names


def _gpus(analysis: Analysis) -> dict[tuple[int | None, int], str]:
    names = labels(analysis)
    return {
        (row["process_id"], row["device_id"]): names[row["index"]]
        for row in analysis.tables["device_ordinals"].records()
        if row["index"] < len(names)
    }


def _unknown(rows: list[dict[str, Any]], page: Page) -> list[Text]:
    """Say why sizes, and rates with them, are missing."""
    reasons = dict.fromkeys(row["bytes_missing_because"] for row in rows if row["bytes"] is None)
    said = "; or ".join(_WHY.get(reason, reason) for reason in reasons if reason)
    lines = paragraph(page, f"Sizes and rates not known: {said}.", style="dim") if said else []
    if any(row["bus_bytes_per_s"] is not None for row in rows):
        said = "Rates are lower bounds: a kernel spins until its peers are ready."
        lines += paragraph(page, said, style="dim")
    return lines
