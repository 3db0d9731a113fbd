"""The page of ``kernelscope iterations``: the summary, and a row for each iteration."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import plain
from kernelscope.report.text import header
from kernelscope.report.text_lists import more
from kernelscope.report.text_steps import opaque, summary_lines
from kernelscope.report.words import CAUSES
from kernelscope.trace import Table


def page_of(analysis: Analysis, rows: Table, page: Page) -> list[Text]:
    """Return the lines of the page; where there are no iterations, why.

    Parameters
    ----------
    analysis : Analysis
        Of the trace.
    rows : Table
        Its iterations, under ``iteration_causes.ITERATION_CAUSES``.
    page : Page
        Width, and how many rows.
    """
    summary = analysis.iteration_summary
    lines = header(analysis.capture, analysis.window, page)
    if summary.family is None:
        lines += heading(page, "Training iterations")
        return lines + [
            line for note in ("None were found.", *summary.notes) for line in paragraph(page, note)
        ]
    lines += summary_lines(summary, rows, page)
    check = summary.kernel_sequence
    if check is not None:
        verdict = "agrees with" if check.agrees else "does not agree with"
        lines += paragraph(
            page,
            f"The kernel sequence {verdict} the ranges: {check.name}, {units.count(check.count)} "
            f"times, median {units.duration(check.median_ns)}, confidence "
            f"{check.confidence:.2f}.",
        )
    shown = rows.take(np.arange(page.shown(len(rows))))
    return [
        *lines,
        *heading(page, "One by one", "attributed: what it launched; the rest: in its period"),
        *grid(page, _figures(shown), "iteration", _labels(shown)),
        *more(page, len(shown), len(rows), "iteration", "--top 0 shows all"),
        *_hint(analysis, page),
    ]


def _hint(analysis: Analysis, page: Page) -> list[Text]:
    """Say where it stands what to mend, if anything is."""
    found = len(analysis.tables["findings"])
    if not found:
        return []
    said = f"{units.quantity(found, 'finding')} in kernelscope analyze FILE: what to mend first."
    return [Text(), *paragraph(page, said, style="dim")]


def _figures(rows: Table) -> list[Figures]:
    period, busy = plain(rows, "period_ns"), plain(rows, "busy_in_window_ns")
    shares = [part / whole if whole else None for part, whole in zip(busy, period, strict=True)]
    return [
        Figures("#", units.texts(plain(rows, "index"), "count")),
        Figures("period", units.durations(period), style="bold"),
        Figures("range", units.durations(plain(rows, "range_ns")), 2),
        Figures("outside", units.durations(plain(rows, "outside_ns")), 1),
        Figures("busy", units.texts(shares, "ratio")),
        Figures("kernel time", units.durations(plain(rows, "kernel_in_window_ns")), 5),
        *_idle(rows),
        Figures("attributed", units.durations(plain(rows, "attributed_ns")), 3),
        *opaque(plain(rows, "opaque_ns"), 3),
        Figures("spill", units.durations(plain(rows, "spill_ns")), 6),
        Figures("kernels", units.texts(plain(rows, "kernels"), "count"), 4),
        Figures("launches", units.texts(plain(rows, "launches"), "count"), 7),
        Figures("state", [state or "" for state in rows.texts("state")]),
    ]


def _idle(rows: Table) -> list[Figures]:
    """Return the cause that most of the idle time has; nothing where none is known."""
    causes = rows.texts("main_idle_cause")
    if not any(causes):
        return []
    words = [CAUSES.get(cause, cause) if cause else units.MISSING for cause in causes]
    times = units.durations(plain(rows, "main_idle_ns"))
    said = [f"{word}  {time}" for word, time in zip(words, times, strict=True)]
    return [Figures("idle mostly", said, 5)]


def _labels(rows: Table) -> list[str]:
    starts = [units.moment(start) for start in plain(rows, "start_ns")]
    return [
        f"{label} at {start}" if label else f"at {start}"
        for label, start in zip(rows.texts("label"), starts, strict=True)
    ]
