"""The page of ``kernelscope ranges``: a list or a tree, or what is wrong with the ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.overlap_results import OVERLAP_BY_NAME, OVERLAP_BY_PATH
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.range_view import RangeView
from kernelscope.report.layout import Figures, Page, grid, heading, outline, paragraph
from kernelscope.report.rows import plain
from kernelscope.report.text import header
from kernelscope.report.text_host import STATES, state_share, told
from kernelscope.report.text_lists import more
from kernelscope.report.text_steps import labels, opaque, outside
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
    if rows.schema.name in _OVERLAPS:
        return lines + _overlap(rows, page)
    note = f"shares of kernel time, {units.duration(view.kernel_ns)}" if view.kernel_ns else ""
    return [
        *lines,
        *heading(page, "NVTX ranges", note),
        *(_tree if tree else _list)(rows, view.kernel_ns, page),
        *outside(view.unattributed, view.kernel_ns, page),
    ]


_OVERLAPS = (OVERLAP_BY_PATH.name, OVERLAP_BY_NAME.name)


def _overlap(rows: Table, page: Page) -> list[Text]:
    """Return what CPU and GPU did while the ranges were open."""
    shown = rows.take(np.arange(page.shown(len(rows))))
    each = shown.records()
    several = len(set(rows.values("device_id"))) > 1
    names = [
        f"{name}  on GPU {row['device_id']}" if several else name
        for name, row in zip(_names(shown), each, strict=True)
    ]
    figures = [
        Figures("open", units.durations([row["open_ns"] for row in each]), style="bold"),
        *(Figures(header, [_state(row, state) for row in each]) for state, header in STATES),
        Figures("instances", units.texts([row["instances"] for row in each], "count"), 1),
    ]
    known = [row for row in each if row["cpu_source"] is not None]
    lines = [
        *heading(page, "CPU and GPU while ranges are open", "shares of the time they are open"),
        *grid(page, figures, "range", names),
        *more(page, len(each), len(rows), "range", "--top 0 shows all"),
    ]
    for source in dict.fromkeys(row["cpu_source"] for row in known):
        lines += paragraph(page, told(source, known), style="dim")
    return lines


def _state(row: dict[str, Any], state: str) -> str:
    if row[f"{state}_ns"] is None or not row["open_ns"]:
        return units.MISSING
    return state_share(row, state, row["open_ns"])


def _findings(view: RangeView, page: Page) -> list[Text]:
    lines = heading(page, "Findings about the ranges")
    if not len(view.findings):
        return [*lines, *paragraph(page, "None: the ranges are sound, and hold all kernels.")]
    for row in view.findings.records():
        example = f" For example {row['example']!r}." if row["example"] else ""
        mark = _MARKS.get(row["severity"], "- ")
        of = "kernel time" if row["code"] == "nvtx_unattributed" else "the ranges"
        share = "" if row["share"] is None else f", {units.ratio(row['share'])} of {of}"
        found = f"{row['code']} ({units.count(row['count'])}{share})"
        lines += paragraph(page, f"{found}: {row['message']}{example}", mark=mark)
    return lines


def _list(rows: Table, kernel_ns: int, page: Page) -> list[Text]:
    shown = rows.take(np.arange(page.shown(len(rows))))
    return [
        *grid(page, _figures(shown, kernel_ns), "range", _names(shown)),
        *more(page, len(shown), len(rows), "range", "--top 0 shows all"),
    ]


def _tree(rows: Table, kernel_ns: int, page: Page) -> list[Text]:
    """Return the rows under the lines of a tree; of each range, as many as the page shows."""
    entries = tree_rows(rows, page)
    shown = rows.take(np.array([row for _, row in entries if row >= 0], dtype=np.intp))
    whole, own = iter(_names(shown)), iter(shown.texts("name"))
    named: list[tuple[str, str]] = []
    branches = stems([level for level, _ in entries])
    for branch, (level, row) in zip(branches, entries, strict=True):
        if row < 0:
            named.append((branch, f"… {units.count(-row)} more"))
        else:  # what stands at the top says where it is, and whose
            names = next(whole), next(own) or "(no name)"
            named.append((branch, names[1] if level else names[0]))
    figures = [_spread(each, entries) for each in _figures(shown, kernel_ns)]
    return outline(page, figures, "range", named)


def tree_rows(rows: Table, page: Page) -> list[tuple[int, int]]:
    """Return the lines of a tree: how far each is indented, and its row.

    Parameters
    ----------
    rows : Table
        In the order of a tree; rows without their parent stand at the top.
    page : Page
        Of each range, as many ranges inside it are shown as the page has rows; a line whose row
        is below 0 stands for that many others.
    """
    children: dict[int, list[int]] = {}
    above: list[tuple[int, str]] = []
    kinds = [rows.texts("domain"), rows.texts("style"), plain(rows, "process_id")]
    for row, (text, *kind) in enumerate(zip(rows.texts("path"), *kinds, strict=True)):
        place = f"{kind!r}{text}"
        while above and not place.startswith(above[-1][1] + SEPARATOR):
            above.pop()
        children.setdefault(above[-1][0] if above else -1, []).append(row)
        above.append((row, place))
    entries: list[tuple[int, int]] = []
    left = [(0, row) for row in _cut(children.get(-1, []), page)][::-1]
    while left:
        level, row = left.pop()
        entries.append((level, row))
        if row >= 0:
            left += [(level + 1, each) for each in _cut(children.get(row, []), page)][::-1]
    return entries


def _cut(rows: list[int], page: Page) -> list[int]:
    shown = page.shown(len(rows))
    return rows if shown == len(rows) else [*rows[:shown], shown - len(rows)]


def _spread(column: Figures, entries: Sequence[tuple[int, int]]) -> Figures:
    """Return the column with a blank where a line stands for what is left out."""
    texts = iter(column.texts)
    return replace(column, texts=[next(texts) if row >= 0 else "" for _, row in entries])


def _figures(rows: Table, kernel_ns: int) -> list[Figures]:
    kernels = plain(rows, "kernel_ns")
    shares = [value / kernel_ns if kernel_ns else None for value in kernels]
    own: list[Any] = plain(rows, "self_kernel_ns") if "path" in rows.schema.names else []
    figures = [
        Figures("share", units.texts(shares, "ratio")),
        Figures("kernels", units.durations(kernels), style="bold"),
        Figures("self", units.durations(own), 1),
        *opaque(plain(rows, "opaque_ns"), 1),
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
    kinds = rows.texts("domain"), plain(rows, "process_id"), rows.texts("style")
    return labels(plain(rows, column), *kinds)


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
