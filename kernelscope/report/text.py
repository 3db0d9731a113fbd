"""The terminal report: an analysis on one page that a person likes to read."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.window import Window
from kernelscope.report import (
    text_bounds,
    text_communication,
    text_copies,
    text_device,
    text_findings,
    text_host,
    text_idle,
    text_lists,
    text_samples,
    text_steps,
    text_trust,
    text_work,
)
from kernelscope.report.layout import Page, ascii_only, paragraph, shorten
from kernelscope.trace import Capture

_SECTIONS = (
    text_device.device_time,
    text_findings.findings,
    text_idle.idle,
    text_host.cpu_and_gpu,
    text_steps.iterations,
    text_steps.ranges,
    text_lists.kernels,
    text_lists.launch_shapes,
    text_samples.gpu_metrics,
    text_copies.copies,
    text_communication.communication,
    text_lists.api_calls,
    text_host.launches,
    text_device.streams,
    text_work.work,
    text_bounds.bounds,
    text_trust.trust,
)

_WITHOUT_ACTIVITY = (text_device.device_time, text_steps.ranges, text_trust.trust)


def render(analysis: Analysis, page: Page, *, color: bool = False, unicode: bool = True) -> str:
    """Return the report of `analysis` as text.

    Parameters
    ----------
    analysis : Analysis
        What to show.
    page : Page
        Width, and rows of each list.
    color : bool
        Whether to use ANSI colours.
    unicode : bool
        Whether the reader's encoding is UTF-8; else the report is plain ASCII.
    """
    lines = header(analysis.capture, analysis.window, page, _gpus(analysis))
    for section in _SECTIONS if _has_activity(analysis) else _WITHOUT_ACTIVITY:
        lines += section(analysis, page)
    lines += _next_steps(analysis, page)
    return printed(lines, page.width, color=color, unicode=unicode)


def printed(lines: Iterable[Text], width: int, *, color: bool, unicode: bool) -> str:
    """Return `lines` as one text, without trailing blanks, cropped to `width` columns."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        for line in lines:
            console.print(line, no_wrap=True, overflow="crop", crop=True)
    text = capture.get()
    return text if unicode else ascii_only(text)


def source(capture: Capture) -> str:
    """Return who recorded the file and when, as far as it says so."""
    version = capture.profiler_version
    parts = [
        f"{capture.format} {version}" if version else f"{capture.format}, version not recorded"
    ]
    if capture.started_at:
        parts.append(f"started {started(capture.started_at)}")
    return ", ".join(parts)


def started(iso: str) -> str:
    """Return an ISO 8601 time without its fraction of a second: ``2025-08-04 16:29:32 UTC``."""
    text = iso.replace("T", " ")
    head, dot, fraction = text.partition(".")
    zone = fraction.lstrip("0123456789") if dot else ""
    text = head + zone
    return f"{text[:-1]} UTC" if text.endswith("Z") else text


def header(capture: Capture, window: Window, page: Page, gpus: Iterable[str] = ()) -> list[Text]:
    """Return the lines above every page: the file, who recorded it, the GPUs, the window."""
    lines = [Text.assemble(("kernelscope", "bold"), "  ", shorten(capture.file, page.width - 13))]
    lines += paragraph(page, source(capture))
    for gpu in gpus:
        lines += paragraph(page, gpu)
    if window.duration_ns:
        start, end = units.moment(window.start_ns), units.moment(window.end_ns)
        lines += paragraph(
            page,
            f"window {units.duration(window.duration_ns)}: {window.chosen_by} "
            f"({start} to {end} of the trace)",
        )
    else:
        lines += paragraph(page, f"window empty: {window.chosen_by}")
    return lines


def _gpus(analysis: Analysis) -> list[str]:
    """Return a line for each kind of GPU: how many there are, and what one does at most."""
    names = [name or "GPU of unrecorded name" for name in analysis.devices.texts("name")]
    kinds = Counter(zip(names, _peaks(analysis), strict=True))
    if not any(peaks for _, peaks in kinds):
        return [", ".join(f"{times} × {name}" for (name, _), times in kinds.items())]
    return [
        f"{times} × {name}{f': at most {peaks}' if peaks else ''}"
        for (name, peaks), times in kinds.items()
    ]


def _peaks(analysis: Analysis) -> list[str]:
    """Return the peaks of each GPU that most people ask for."""
    found: list[list[str]] = [[] for _ in range(len(analysis.devices))]
    for row in analysis.peaks.records():
        words = _HEADLINE_PEAKS.get(row["pipe"])
        if words is not None:
            shown = (
                units.rate(row["per_s"])
                if row["unit"] == "bytes/s"
                else units.operations(row["per_s"], row["unit"])
            )
            found[row["device"]].append(f"{words} {shown}")
    return [", ".join(each) for each in found]


_HEADLINE_PEAKS = {
    "fp32": "FP32",
    "tensor_fp16_fp32": "FP16 tensor",
    "dram": "memory",
}
"""Pipe → what the header calls it."""


def _has_activity(analysis: Analysis) -> bool:
    return any(len(analysis.tables[name]) for name in ("devices", "kernels", "copies", "api_calls"))


def _next_steps(analysis: Analysis, page: Page) -> list[Text]:
    longest = max(len(analysis.tables[name]) for name in ("kernels", "api_calls", "streams"))
    steps = ["--top 0 shows every row"] if page.shown(longest) < longest else []
    if _has_activity(analysis):
        steps.append("--between 1s,2s looks at a part")
    else:
        steps.append("kernelscope info FILE says what the file holds")
    steps += ["--format json is for scripts", "--format sqlite --output FILE is for Datasette"]
    return [Text(), *paragraph(page, f"Next: {'; '.join(steps)}.", style="dim")]
