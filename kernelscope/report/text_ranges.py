"""The page of ``kernelscope ranges``: a list or a tree, or what is wrong with the ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.range_view import RangeView
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import plain
from kernelscope.report.text import header
from kernelscope.report.text_lists import more
from kernelscope.report.text_steps import labels, outside
from kernelscope.trace import Table

_MARKS = {"warning": "! ", "info": "- "}


def page_of(
    view: RangeView, rows: Table, page: Page, *, tree: bool = False, lint: bool = False
) -> list[Text]:
    """Return the lines of the page.

    Parameters
    ----------
    view : RangeView
        What was found.
    rows : Table
        The rows of it to show, in order.
    page : Page
        Width, and how many rows.
    tree : bool
        Whether the rows are in the order of a tree.
    lint : bool
        Whether to show the findings instead.
    """
    lines = header(view.capture, view.window, page)
    if lint:
        return lines + _findings(view, page)
    shown = rows.take(np.arange(page.shown(len(rows))))
    note = f"shares of kernel time, {units.duration(view.kernel_ns)}" if view.kernel_ns else ""
    names = _tree(shown) if tree else _names(shown)
    return [
        *lines,
        *heading(page, "NVTX ranges", note),
        *grid(page, _figures(shown, view.kernel_ns), "range", names),
        *more(page, len(shown), len(rows), "range", "--top 0 shows all"),
        *outside(view.unattributed, view.kernel_ns, page),
    ]


def _findings(view: RangeView, page: Page) -> list[Text]:
    lines = heading(page, "Findings about the ranges")
    if not len(view.findings):
        return [*lines, *paragraph(page, "None: the ranges are sound, and hold all kernels.")]
    for row in view.findings.records():
        example = f" For example {row['example']!r}." if row["example"] else ""
        mark = _MARKS.get(row["severity"], "- ")
        lines += paragraph(page, f"{row['code']}: {row['message']}{example}", mark=mark)
    return lines


def _figures(rows: Table, kernel_ns: int) -> list[Figures]:
    kernels = plain(rows, "kernel_ns")
    shares = [value / kernel_ns if kernel_ns else None for value in kernels]
    own: list[Any] = plain(rows, "self_kernel_ns") if "path" in rows.schema.names else []
    figures = [
        Figures("share", units.texts(shares, "ratio")),
        Figures("kernels", units.durations(kernels), style="bold"),
        Figures("self", units.durations(own), 1),
        Figures("busy", units.durations(plain(rows, "busy_ns")), 4),
        Figures("projected", units.durations(plain(rows, "projected_ns")), 5),
        Figures("instances", units.texts(plain(rows, "instances"), "count"), 3),
        Figures("host", units.durations(plain(rows, "host_ns")), 2),
        Figures("inherited", units.texts(_inherited(rows), "count"), 6),
    ]
    return [each for each in figures if own or each.header != "self"]


def _inherited(rows: Table) -> list[int]:
    both = (plain(rows, f"attribution.{how}") for how in ("inherited", "concurrent"))
    return [one + other for one, other in zip(*both, strict=True)]


def _names(rows: Table) -> list[str]:
    column = "path" if "path" in rows.schema.names else "name"
    return labels(plain(rows, column), rows.texts("domain"), plain(rows, "process_id"))


def _tree(rows: Table) -> list[str]:
    """Return names indented by depth, with the lines of a tree before them."""
    names = labels(rows.texts("name"), rows.texts("domain"), plain(rows, "process_id"))
    return [stem + name for stem, name in zip(stems(plain(rows, "depth")), names, strict=True)]


def stems(depths: Sequence[int]) -> list[str]:
    """Return what stands before each row of a tree, given the rows' depths in order."""
    found: list[str] = []
    goes_on: list[bool] = []  # by level: whether a sibling follows before that level ends
    for depth in reversed(depths):
        goes_on = [*goes_on[: depth + 1], *[False] * (depth + 1 - len(goes_on))]
        parts = ["│  " if goes_on[level] else "   " for level in range(1, depth)]
        if depth:
            parts.append("├─ " if goes_on[depth] else "└─ ")
        found.append("".join(parts))
        goes_on[depth] = True
    return found[::-1]
