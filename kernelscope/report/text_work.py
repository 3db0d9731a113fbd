"""The section of the terminal report on work that was counted."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.work_tables import covered
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.text_lists import kernel_names, more

_BYTES = ("dram_bytes", "l2_bytes", "l1_bytes")


def work(analysis: Analysis, page: Page) -> list[Text]:
    """How much work do kernels do, by their counters?"""
    join = analysis.tables["counter_coverage"]
    if not len(join):
        return []
    lines = heading(page, "Counted work", "FLOPs and bytes by counters, over this trace's time")
    rows = _by_kernel(analysis.tables["work"].records())
    if rows:
        top = rows[: page.shown(len(rows))]
        level = next((each for each in _BYTES if any(each in row for _, row in rows)), None)
        flops = [_counted(row, _flops(row), "flop") for _, row in top]
        figures = [Figures("FLOP", flops, style="bold")]
        rates = [_rate(row, _flops(row)) for _, row in top]
        if any(each != units.MISSING for each in rates):
            figures.append(Figures("rate", rates, 1))
        if level is not None:
            label = level.removesuffix("_bytes").upper()
            figures.append(Figures(label, [_counted(row, [level], "bytes") for _, row in top], 2))
        lines += grid(page, figures, "kernel", kernel_names(name for name, _ in top))
        lines += more(page, len(top), len(rows), "kernel")
    return [*lines, *paragraph(page, _coverage(join.records()))]


def _by_kernel(records: list[dict[str, Any]]) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records:
        found.setdefault(row["name"], {})[row["quantity"]] = row
    return list(found.items())


def _flops(row: dict[str, dict[str, Any]]) -> list[str]:
    return [each for each in row if each.endswith("_flops")]


def _counted(row: dict[str, dict[str, Any]], names: list[str], unit: str) -> str:
    """Return the sum of some quantities; what only is bounded below, so."""
    parts = [row[name] for name in names if name in row]
    if not parts:
        return units.MISSING
    exact = all(part["value"] is not None for part in parts)
    total = sum((part["value"] if exact else part["low"] or 0) for part in parts)
    shown = units.size(total) if unit == "bytes" else units.operations(total, "FLOP")
    return shown if exact else f"≥ {shown}"


def _rate(row: dict[str, dict[str, Any]], names: list[str]) -> str:
    rates = [row[name]["rate_per_s"] for name in names]
    if not rates or None in rates:
        return units.MISSING
    return units.operations(sum(rates))


def _coverage(rows: list[dict[str, Any]]) -> str:
    matched = [row for row in rows if row["status"] == "matched"]
    hows = {row["how"] for row in matched}
    words = "; ".join(text for how, text in _HOW.items() if how in hows)
    text = f"Counted: {units.ratio(covered(rows))} of the kernels' time."
    return f"{text} {words[:1].upper()}{words[1:]}." if words else text


_HOW = {
    "same execution": "each execution has its own counters",
    "alike": "executions of a launch shape that are alike count as their mean",
    "order": "where executions differ, the n-th launch counts as the n-th counted",
    "bounds": "where nothing tells which is which, they are known between bounds only (table work)",
}
"""How executions were counted → what people read; any of them may stand alone."""
