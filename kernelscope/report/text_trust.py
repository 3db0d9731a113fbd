"""The section of the terminal report on whether to believe it: health, checks, what lacks."""

from __future__ import annotations

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.layout import Page, heading, paragraph
from kernelscope.report.rows import ordered, plain

_SEVERITIES = {"error": ("✗ ", "red"), "warning": ("! ", "yellow"), "info": ("  ", "")}

_WORDS = {
    "kernels": "kernels",
    "api_calls": "CUDA calls",
    "copies": "copies and memsets",
    "syncs": "synchronisations",
    "ranges": "NVTX ranges",
    "devices": "GPU information",
    "processes": "process names",
    "threads": "thread names",
    "overheads": "profiler overhead",
}
"""What people call the canonical tables."""


def trust(analysis: Analysis, page: Page) -> list[Text]:
    """Can this capture be trusted, and do the sums add up?"""
    return [
        *heading(page, "Health"),
        *_checks(analysis, page),
        *_health(analysis, page),
        *_cost(analysis, page),
        *_not_recorded(analysis, page),
    ]


def table_in_words(name: str) -> str:
    """Return what people call the canonical table `name`."""
    return _WORDS.get(name, name)


def _checks(analysis: Analysis, page: Page) -> list[Text]:
    rows = analysis.checks.records()
    if not rows:
        return []
    broken = [row for row in rows if not row["ok"]]
    if not broken:
        return paragraph(page, f"all {len(rows)} checks hold: the sums add up", mark="✓ ")
    lines: list[Text] = []
    for row in broken:
        lines += paragraph(
            page,
            f"check failed: {row['name']}: expected {row['expected']:,}, got {row['actual']:,}. "
            "Please report this: the figures above do not add up.",
            mark="✗ ",
            style="red",
        )
    return lines


def _health(analysis: Analysis, page: Page) -> list[Text]:
    order = list(_SEVERITIES)
    lines: list[Text] = []
    for row in sorted(analysis.health.records(), key=lambda row: order.index(row["severity"])):
        mark, style = _SEVERITIES[row["severity"]]
        lines += paragraph(page, row["message"], mark=mark, style=style)
    return lines


def _cost(analysis: Analysis, page: Page) -> list[Text]:
    table = ordered(analysis.capture_cost)
    if not len(table):
        return []
    total = units.duration(sum(table.values("total_ns")))
    parts = ", ".join(
        f"{name} {time}"
        for name, time in zip(
            table.texts("name"), units.texts(plain(table, "total_ns"), "ns"), strict=True
        )
    )
    return paragraph(
        page,
        f"profiling itself took {total} of host time inside the window ({parts}), and tracing "
        "lengthens every CUDA call",
        mark="  ",
    )


def _not_recorded(analysis: Analysis, page: Page) -> list[Text]:
    lines: list[Text] = []
    for each in analysis.capture.not_recorded:
        text = f"not recorded: {table_in_words(each.table)} ({each.how_to_record})"
        lines += paragraph(page, text, mark="  ")
    return lines
