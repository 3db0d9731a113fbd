"""Sections of the terminal report that are lists: kernels and CUDA calls."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.short_names import short_names
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import ordered, plain
from kernelscope.trace import Table


def kernels(analysis: Analysis, page: Page) -> list[Text]:
    """Which kernels take the device's time?"""
    table, top = top_of(analysis.kernels, page)
    if not len(table):
        return empty(analysis, page, "Top kernels", "kernels")
    total = sum(table.values("total_ns"))
    figures = [
        Figures("#", [str(rank) for rank in range(1, len(top) + 1)]),
        Figures("share", units.texts(plain(top, "share"), "ratio")),
        Figures("total", units.durations(plain(top, "total_ns")), style="bold"),
        Figures("executions", units.texts(plain(top, "executions"), "count")),
        *statistics(top),
    ]
    rest = ""
    if len(top) < len(table) and total:
        rest = f"{units.ratio(1 - sum(top.values('total_ns')) / total)} of kernel time"
    return [
        *heading(page, "Top kernels", f"shares of kernel time, {units.duration(total)}"),
        *grid(page, figures, "kernel", kernel_names(top.texts("name"))),
        *more(page, len(top), len(table), "kernel", rest),
    ]


def launch_shapes(analysis: Analysis, page: Page) -> list[Text]:
    """How full can each launch shape make the GPU? Shown where that is known of any."""
    table, top = top_of(analysis.launch_shapes, page)
    occupancy = plain(top, "occupancy")
    if not any(value is not None for value in occupancy):
        return []
    waves = plain(top, "waves")
    figures = [
        Figures("share", units.texts(plain(top, "share"), "ratio")),
        Figures("occupancy", units.texts(occupancy, "ratio"), style="bold"),
        Figures("limited by", [_limiter(name) for name in top.texts("limiter")], 1),
        Figures("waves", [units.MISSING if value is None else _waves(value) for value in waves], 2),
        Figures("last wave", units.texts(plain(top, "tail_efficiency"), "ratio"), 5),
        Figures("grid", _sizes(top, "grid")),  # what tells most shapes of a kernel apart
        Figures("block", _sizes(top, "block"), 3),
    ]
    note = "theoretical occupancy; shares of kernel time"
    return [
        *heading(page, "Launch shapes", note),
        *grid(page, figures, "kernel", kernel_names(top.texts("name"))),
        *more(page, len(top), len(table), "launch shape", "--format csv --table launch_shapes"),
    ]


def _limiter(name: str | None) -> str:
    return (name or units.MISSING).replace("_", " ").replace("+", ", ")


def _waves(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _sizes(table: Table, what: str) -> list[str]:
    rows = zip(*(plain(table, f"{what}.{axis}") for axis in range(3)), strict=True)
    return [_size(row) for row in rows]


def _size(sizes: tuple[int | None, ...]) -> str:
    """Return ``128×4``: sizes of 1 at the end say nothing."""
    if None in sizes:
        return units.MISSING
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(map(str, kept))


def api_calls(analysis: Analysis, page: Page) -> list[Text]:
    """Where do the host's CUDA calls take time?"""
    table, top = top_of(analysis.api_calls, page)
    if not len(table):
        return empty(analysis, page, "CUDA calls of the host", "api_calls")
    figures = [
        Figures("total", units.durations(plain(top, "total_ns")), style="bold"),
        Figures("calls", units.texts(plain(top, "calls"), "count")),
        *statistics(top),
    ]
    return [
        *heading(page, "CUDA calls of the host", "summed over threads"),
        *grid(page, figures, "call", [name or units.MISSING for name in top.texts("name")]),
        *more(page, len(top), len(table), "call"),
    ]


def more(page: Page, shown: int, rows: int, what: str, note: str = "") -> list[Text]:
    """Return the line that says what a list leaves out; none where it is whole."""
    if shown >= rows:
        return []
    extra = f" ({note})" if note else ""
    return paragraph(page, f"… {units.quantity(rows - shown, f'more {what}')}{extra}", style="dim")


def absence(analysis: Analysis, table: str) -> str:
    """Return why a canonical table has no rows here: not recorded, or there was nothing to."""
    for each in analysis.capture.not_recorded:
        if each.table == table and not each.how_to_record:
            return "None occurred."
        if each.table == table:
            return f"Not recorded ({each.how_to_record})."
    return "Recorded, but none in the window."


def top_of(table: Table, page: Page) -> tuple[Table, Table]:
    """Return `table` in the order of a report, and as many of its first rows as the page shows."""
    rows = ordered(table)
    return rows, rows.take(np.arange(page.shown(len(rows))))


def empty(analysis: Analysis, page: Page, title: str, table: str) -> list[Text]:
    """Return a section without rows, which says why."""
    return [*heading(page, title), *paragraph(page, absence(analysis, table))]


def statistics(table: Table, *, first: int = 2) -> list[Figures]:
    """Return the columns of mean, median and longest; the median stays longest, from `first` on."""
    return [
        Figures("mean", units.durations(plain(table, "mean_ns")), first + 1),
        Figures("median", units.durations(plain(table, "median_ns")), first),
        Figures("longest", units.durations(plain(table, "max_ns")), first + 2),
    ]


def kernel_names(names: Iterable[str | None]) -> list[str]:
    """Return how a list calls its kernels: what stands in several rows, alike in all of them."""
    whole = [name or units.MISSING for name in names]
    distinct = list(dict.fromkeys(whole))
    short = dict(zip(distinct, short_names(distinct), strict=True))
    return [short[name] for name in whole]
