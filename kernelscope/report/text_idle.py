"""The section of the terminal report on idle time: its causes, and how long the pauses are."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.device_names import labels
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.text_lists import more
from kernelscope.report.words import cause_in_words
from kernelscope.trace import Table, is_missing

_MOST_GAPS = 100  # in text, even where every row is asked for: there may be a million
_LONGEST = 3  # gaps named in a report of the usual length
_LEAST_ROWS = 3  # of each GPU, where several share a page
_MOST_DETAILED = 4  # GPUs whose pauses are described one by one
_LEAST_SHARE = 0.001  # a cause below it is shown only where every row is asked for


def idle(analysis: Analysis, page: Page) -> list[Text]:
    """Why does each GPU stand still?"""
    rows = analysis.devices.records()
    if not rows or not analysis.window.duration_ns or analysis.capture.serialised is not None:
        return []
    several = len(rows) > 1
    title = "Why the GPUs stand still" if several else "Why the GPU stands still"
    lines = heading(page, title, "shares of a GPU's idle time" if several else "shares of idle")
    for row, label in zip(rows, labels(analysis), strict=True):
        lines += [Text()] if row["index"] else []
        lines += paragraph(page, _sentence(label, row))
        lines += _causes(analysis, row["index"], page, len(rows))
        if len(rows) <= _MOST_DETAILED:
            lines += _spectrum(analysis, row, page)
            lines += _longest(analysis.gaps, row["index"], page)
    if len(rows) > _MOST_DETAILED:
        said = "How long the pauses are: --format csv --table gap_spectrum, or --table gaps."
        lines += paragraph(page, said, style="dim")
    return lines


def _sentence(label: str, row: dict[str, Any]) -> str:
    inside = row["idle_ns"] - row["leading_ns"] - row["trailing_ns"]
    edges = (
        f"idle {units.duration(row['leading_ns'])} before its first activity and "
        f"{units.duration(row['trailing_ns'])} after its last"
    )
    if not row["gap_count"]:
        return f"{label}: no gaps; {edges}."
    share = units.ratio(inside / row["window_ns"])
    return (
        f"{label}: {units.quantity(row['gap_count'], 'gap')}, {units.duration(inside)} in all "
        f"({share} of the window), the largest {units.duration(row['largest_gap_ns'])}; {edges}."
    )


def _causes(analysis: Analysis, device: int, page: Page, devices: int) -> list[Text]:
    table = analysis.tables["idle"]
    table = table.take(table["device"] == device)
    if not len(table):
        return []
    shown = len(table)
    if page.top:
        shown = min(shown, max(page.top // devices, min(page.top, _LEAST_ROWS)))
        shown = max(1, min(shown, int((table["share"] >= _LEAST_SHARE).sum())))
    rows = table.take(np.arange(shown)).records()
    figures = [
        Figures("share", [units.ratio(row["share"]) for row in rows]),
        Figures("total", units.durations([row["total_ns"] for row in rows]), style="bold"),
        Figures("pauses", [units.count(row["gaps"]) for row in rows], 2),
        Figures("largest", units.durations([row["largest_ns"] for row in rows]), 1),
    ]
    names = [cause_in_words(row["cause"] or "", row["detail"] or "") for row in rows]
    note = f"{units.ratio(max(0.0, 1 - sum(row['share'] for row in rows)))} of idle time"
    return [*grid(page, figures, "why", names), *more(page, shown, len(table), "cause", note)]


def _spectrum(analysis: Analysis, row: dict[str, Any], page: Page) -> list[Text]:
    """Say how long the pauses are, by powers of ten."""
    table = analysis.tables["gap_spectrum"]
    rows = table.take(table["device"] == row["index"]).records()
    decades: dict[str, list[int]] = {}
    for each in rows:
        if each["gaps"]:
            decade = decades.setdefault(_decade(each["up_to_ns"]), [0, 0])
            decade[0] += each["gaps"]
            decade[1] += each["total_ns"]
    if not decades or not row["idle_ns"]:
        return []
    parts = [
        f"{name}: {units.count(gaps)} ({units.ratio(total / row['idle_ns'])})"
        for name, (gaps, total) in decades.items()
    ]
    said = f"Pauses (and their share of idle time) up to {', '.join(parts)}."
    return paragraph(page, said, style="dim")


def _decade(up_to_ns: int | None) -> str:
    if up_to_ns is None:
        return "longer"
    bound = 1
    while bound < up_to_ns:
        bound *= 10
    scale, unit = next(pair for pair in _UNITS if bound >= pair[0])
    return f"{bound // scale:,} {unit}"


_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))


def _longest(gaps: Table, device: int, page: Page) -> list[Text]:
    """Name the longest gaps of a GPU, and the moment at which each begins."""
    own = np.flatnonzero(is_missing(gaps["process_id"]) & (gaps["device"] == device))
    if not len(own):
        return []
    wanted = min(page.top, _LONGEST) if page.top else _MOST_GAPS
    shown = min(wanted, len(own))
    longest = own[np.argsort(-gaps["duration_ns"][own], kind="stable")[:shown]]
    rows = gaps.take(longest)
    parts = [
        f"{length} from {units.moment(start)}"
        for length, start in zip(
            map(units.duration, rows.values("duration_ns")), rows.values("start_ns"), strict=True
        )
    ]
    rest = len(own) - shown
    left = f"; {units.quantity(rest, 'more gap')} (--format csv --table gaps)" if rest else ""
    return paragraph(page, f"Longest gaps: {', '.join(parts)}{left}.", style="dim")
