"""The section of the terminal report on whether to believe it: health, checks, what lacks."""

from __future__ import annotations

from collections.abc import Collection

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.layout import Page, heading, paragraph
from kernelscope.report.rows import ordered
from kernelscope.report.words import table_in_words
from kernelscope.trace import Capture

_MOST_COSTS = 3
_SEVERITIES = {"error": ("✗ ", "red"), "warning": ("! ", "yellow"), "info": ("- ", "")}


def trust(analysis: Analysis, page: Page) -> list[Text]:
    """Can this capture be trusted, and do the sums add up?"""
    counted = len(analysis.tables["counter_coverage"]) > 0  # by another run, if not by this one
    return [
        *heading(page, "Health"),
        *_checks(analysis, page),
        *_health(analysis, page),
        *_cost(analysis, page),
        *not_recorded(analysis.capture, page, but={"counters"} if counted else ()),
    ]


def not_recorded(capture: Capture, page: Page, but: Collection[str] = ()) -> list[Text]:
    """Return what the capture does not hold, and what would record it, `but` some tables.

    What was traced and never occurred has no remedy, and needs none.
    """
    by_remedy: dict[str, list[str]] = {}
    for each in capture.not_recorded:
        if each.table in but:
            continue
        by_remedy.setdefault(each.how_to_record, []).append(table_in_words(each.table))
    lines: list[Text] = []
    for remedy, tables in by_remedy.items():
        names = ", ".join(tables)
        said = (
            f"not recorded: {names} ({remedy})" if remedy else f"traced, but none occurred: {names}"
        )
        lines += paragraph(page, said, mark="- ")
    return lines


def _checks(analysis: Analysis, page: Page) -> list[Text]:
    rows = analysis.checks.records()
    if not rows:
        return []
    broken = [row for row in rows if not row["ok"]]
    if not broken:
        held = "the 1 check holds" if len(rows) == 1 else f"all {len(rows)} checks hold"
        return paragraph(page, f"{held}: the sums add up", mark="✓ ")
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
    # What was not recorded is listed on its own, by remedy.
    rows = [row for row in analysis.health.records() if not row["code"].startswith("not_recorded")]
    lines: list[Text] = []
    for row in sorted(rows, key=lambda row: order.index(row["severity"])):
        mark, style = _SEVERITIES[row["severity"]]
        lines += paragraph(page, row["message"], mark=mark, style=style)
    return lines


def _cost(analysis: Analysis, page: Page) -> list[Text]:
    table = ordered(analysis.capture_cost)
    if not len(table):
        return []
    total = units.duration(sum(table.values("total_ns")))
    rows = table.records()
    parts = ", ".join(
        f"{row['name']} {units.duration(row['total_ns'])}" for row in rows[:_MOST_COSTS]
    )
    if len(rows) > _MOST_COSTS:
        parts += f", {len(rows) - _MOST_COSTS} more"
    return paragraph(
        page,
        f"profiling itself took {total} of host time inside the window ({parts}), and tracing "
        "lengthens every CUDA call",
        mark="- ",
    )
