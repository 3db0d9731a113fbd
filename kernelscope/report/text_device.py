"""Sections of the terminal report about the device: its time, its streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.report.device_names import labels, owners
from kernelscope.report.layout import Figures, Page, bar, grid, heading, paragraph, shorten
from kernelscope.report.rows import ordered
from kernelscope.report.text_lists import absence, more

_LOOKS: dict[str, tuple[str, str]] = {
    "compute_and_communication": ("▓", "cyan"),
    "compute_and_copy": ("▒", "blue"),
    "compute_only": ("█", "green"),
    "opaque_graph": ("▚", "magenta"),
    "communication_only": ("▞", "yellow"),
    "copy_only": ("░", "red"),
    "memset_only": ("▪", "white"),
    "idle": ("·", "dim"),
}
"""Glyph and colour of each class of device time: either alone tells them apart."""

_SHARE_WIDTH = len(">99.9 %")


def device_time(analysis: Analysis, page: Page) -> list[Text]:
    """Where does the time of each GPU go?"""
    window_ns = analysis.window.duration_ns
    rows = analysis.devices.records()
    if not rows or not window_ns:
        return [
            *heading(page, "Where device time goes"),
            *paragraph(page, f"No activity on any GPU. {absence(analysis, 'kernels')}"),
        ]
    if analysis.capture.serialised is not None:
        said = f"Not known: {analysis.capture.serialised}."
        return [*heading(page, "Where device time goes"), *paragraph(page, said)]
    lines = heading(
        page, "Where device time goes", f"shares of the window, {units.duration(window_ns)}"
    )
    names = zip(labels(analysis), owners(analysis), strict=True)
    for index, (row, (label, owner)) in enumerate(zip(rows, names, strict=True)):
        lines += [Text()] if index else []
        lines += _device(page, row, f"{label}  {row['name'] or ''}".rstrip(), owner)
    return lines


def _device(page: Page, row: dict[str, Any], label: str, owner: str) -> list[Text]:
    window_ns = row["window_ns"]
    shares = {name: row[f"partition.{name}_ns"] / window_ns for name in PARTITION_CLASSES}
    busy = f"busy {units.ratio(row['busy_ns'] / window_ns)}"
    label = shorten(label, page.width - len(busy) - 2)
    title = Text(label, style="bold")
    title.append(" " * (page.width - cell_len(label) - len(busy)))
    title.append(busy, style="not bold")
    lines = [title]
    lines += paragraph(page, owner, style="dim") if owner else []
    picture = Text()
    for name, cells in zip(shares, bar(page.width, list(shares.values())), strict=True):
        glyph, style = _LOOKS[name]
        picture.append(glyph * cells, style=style)
    return [*lines, picture, *_legend(page, row, shares), *_fullness(page, row)]


def _legend(page: Page, row: dict[str, Any], shares: dict[str, float]) -> list[Text]:
    """Return the classes that occur, with time and share, in as many columns as fit."""
    present = [name for name in PARTITION_CLASSES if row[f"partition.{name}_ns"]]
    times = units.durations([row[f"partition.{name}_ns"] for name in present])
    figures = [
        f"  {time.rjust(max(map(len, times)))}  {units.ratio(shares[name]).rjust(_SHARE_WIDTH)}"
        for name, time in zip(present, times, strict=True)
    ]
    # On a narrow page the words give way, never the figures.
    room = min(max(map(len, present)), page.width - len(figures[0]) - len("█ "))
    entries = []
    for name, figure in zip(present, figures, strict=True):
        glyph, style = _LOOKS[name]
        words = shorten(name.replace("_", " "), room).ljust(room)
        entries.append(Text.assemble((glyph, style), f" {words}{figure}"))
    across = max(1, (page.width + 4) // (len(entries[0]) + 4))
    return [
        Text("    ").join(entries[start : start + across])
        for start in range(0, len(entries), across)
    ]


def _fullness(page: Page, row: dict[str, Any]) -> list[Text]:
    """Return what *busy* hides: how many kernels ran at once, and how full they made the GPU."""
    window_ns, kernel_ns = row["window_ns"], row["kernel_ns"]
    if not kernel_ns:
        return paragraph(page, "No kernel ran on it in the window.", style="dim")
    several = {
        "two": row["concurrency.two_ns"],
        "three or more": row["concurrency.three_or_more_ns"],
    }
    at_once = ", ".join(
        f"{name} at once {units.ratio(ns / window_ns)}" for name, ns in several.items() if ns
    )
    kernels = f"Kernels run {units.ratio(kernel_ns / window_ns)} of the window"
    said = [f"{kernels} ({at_once or 'one at a time'})"]
    if row["sm_fill"] is None:
        said.append("how full they make the SMs is not known")
    else:
        said.append(f"they fill at most {units.ratio(row['sm_fill'])} of the block slots meanwhile")
    return paragraph(page, f"{'; '.join(said)}.", style="dim")


def streams(analysis: Analysis, page: Page) -> list[Text]:
    """How busy is each CUDA stream? Shown where there are several."""
    table = ordered(analysis.streams)
    window_ns = analysis.window.duration_ns
    if len(table) < 2 or not window_ns or analysis.capture.serialised is not None:
        return []
    shown = page.shown(len(table))
    rows = table.take(np.arange(shown)).records()
    figures = [
        Figures("share", [units.ratio(row["busy_ns"] / window_ns) for row in rows]),
        Figures("busy", units.durations([row["busy_ns"] for row in rows]), style="bold"),
        Figures("alone", units.durations([row["exclusive_ns"] for row in rows]), 1),
        Figures("kernels", [units.count(row["kernels"]) for row in rows]),
        Figures("largest gap", units.durations([row["largest_gap_ns"] for row in rows]), 2),
    ]
    several = [
        key for key in ("device_id", "context_id", "process_id") if len(set(table.values(key))) > 1
    ]
    return [
        *heading(page, "Streams", f"shares of the window, {units.duration(window_ns)}"),
        *grid(page, figures, "stream", [_stream(row, several) for row in rows]),
        *more(page, shown, len(table), "stream"),
    ]


def _stream(row: dict[str, Any], several: list[str]) -> str:
    words = {"device_id": "GPU", "context_id": "context", "process_id": "process"}
    parts = [f"{words[key]} {units.MISSING if row[key] is None else row[key]}" for key in several]
    stream = units.MISSING if row["stream_id"] is None else row["stream_id"]
    return ", ".join([f"{stream}", *parts])
