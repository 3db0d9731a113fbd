"""The section of the terminal report on copies: how fast, whom they hold up, what hides them."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import ordered, plain
from kernelscope.report.text_lists import empty, more, statistics, top_of
from kernelscope.trace import Table

Route = tuple[str | None, str | None, str | None]


def copies(analysis: Analysis, page: Page) -> list[Text]:
    """What is copied and set, between which memories, how fast, and who waits for it?"""
    table, top = top_of(analysis.copies, page)
    if not len(table):
        return empty(analysis, page, "Copies and memsets", "copies")
    rows = top.records()
    figures = [
        Figures("total", units.durations(plain(top, "total_ns")), style="bold"),
        Figures("operations", units.texts(plain(top, "operations"), "count"), 2),
        Figures("size", units.sizes(plain(top, "bytes"))),
        Figures("rate", units.rates(plain(top, "bytes_per_s")), 1),
        *_of_transfers(analysis, rows),
        *statistics(top, first=3),
    ]
    return [
        *heading(page, "Copies and memsets", _note(figures)),
        *grid(page, figures, "kind and memories", [_route(row) for row in rows]),
        *more(page, len(top), len(table), "kind"),
        *_migrations(analysis, page),
    ]


def _note(figures: list[Figures]) -> str:
    shown = {each.header for each in figures}
    return "exposed: beside no kernel on that GPU" if "exposed" in shown else ""


def _of_transfers(analysis: Analysis, rows: list[dict[str, Any]]) -> list[Figures]:
    """Return the columns of what holds the host, and of what no kernel hides; where known."""
    held, exposed = (
        _summed(analysis.tables["transfers"], name, rows) for name in ("blocked_ns", "exposed_ns")
    )
    figures = []
    if any(held):
        figures.append(Figures("host waits", units.durations(held)))
    if any(ns is not None for ns in exposed):
        figures.append(Figures("exposed", units.durations(exposed), 2))
    return figures


def _summed(table: Table, name: str, rows: list[dict[str, Any]]) -> list[int | None]:
    """Return a column of `transfers` summed over calls and devices; missing where all are."""
    sums: dict[Route, int] = {}
    routes = zip(*(table.texts(each) for each in _ROUTE), strict=True)
    for route, value in zip(routes, plain(table, name), strict=True):
        if value is not None:
            sums[route] = sums.get(route, 0) + value
    return [sums.get((row["kind"], row["src_memory"], row["dst_memory"])) for row in rows]


_ROUTE = ("kind", "src_memory", "dst_memory")


def _migrations(analysis: Analysis, page: Page) -> list[Text]:
    """Return why unified memory migrates, where it does and the capture says why."""
    table = ordered(analysis.tables["migrations"])
    rows = [row for row in table.records() if row["cause"] is not None]
    top = rows[: page.shown(len(rows))]
    if not top:
        return []
    figures = [
        Figures("total", units.durations([row["total_ns"] for row in top]), style="bold"),
        Figures("operations", units.texts([row["operations"] for row in top], "count"), 2),
        Figures("size", units.sizes([row["bytes"] for row in top])),
        Figures("rate", units.rates([row["bytes_per_s"] for row in top])),
        Figures("exposed", units.durations([row["exposed_ns"] for row in top]), 1),
    ]
    names = [f"{row['kind']}: {row['cause']}" for row in top]
    return [
        *paragraph(page, "Migrations of unified memory, by cause:", style="dim"),
        *grid(page, figures, "kind and cause", names),
        *more(page, len(top), len(rows), "cause"),
    ]


def _route(row: dict[str, Any]) -> str:
    source, target = row["src_memory"], row["dst_memory"]
    if source and target:
        return f"{row['kind']}  {source} → {target}"
    return f"{row['kind']}  {source or target or ''}".rstrip()
