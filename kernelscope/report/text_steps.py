"""Sections of the terminal report about the program: training iterations and NVTX ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.range_paths import SEPARATOR, written
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.rows import plain
from kernelscope.report.sparkline import sparkline
from kernelscope.report.text_lists import more
from kernelscope.trace import Table

_SOURCES = {
    "nvtx": "found among the NVTX ranges",
    "user": "named by you",
    "kernel_sequence": "found in the kernel sequence",
}

REASONS = {
    "no_launch_row": "no launch call recorded",
    "unknown_thread": "the launching thread is not recorded",
    "no_range_on_thread": "launched by a thread without ranges",
    "between_ranges": "launched between ranges",
    "outside_iterations": "launched outside every iteration",
    "another_process": "launched by a process without iterations",
    "several_annotating_threads": "several threads carry the iterations",
}
"""Reason of ``unattributed`` → what people read; others are shown as they are."""


def iterations(analysis: Analysis, page: Page) -> list[Text]:
    """How long does each training iteration take?"""
    summary = analysis.iteration_summary
    if summary.family is None:
        if "ranges" not in analysis.capture.recorded:
            return []  # health says that, and how to record them
        said = " ".join(("None were found.", *summary.notes))
        return [*heading(page, "Training iterations"), *paragraph(page, said)]
    return [*summary_lines(summary, analysis.tables["iterations"], page)]


def summary_lines(summary: IterationSummary, rows: Table, page: Page) -> list[Text]:
    """Return the section that sums up iterations, with their step times as a line of blocks."""
    family = f"{summary.family!r}" if summary.source != "kernel_sequence" else f"{summary.family}"
    source = _SOURCES.get(summary.source or "", "")
    lines = heading(
        page, "Training iterations", f"{units.count(summary.count)} × {family}, {source}"
    )
    periods = [
        None if state == "last" else period
        for state, period in zip(rows.texts("state"), rows.values("period_ns"), strict=True)
    ]
    if any(periods):
        label = "step times "
        line = sparkline(periods, page.width - len(label))
        lines.append(Text.assemble((label, "dim"), line))
    lines += paragraph(page, _steady(summary))
    for text in (_whose(summary), _labelled(summary), _device_share(rows)):
        lines += paragraph(page, text) if text else []
    lines += paragraph(page, _choice(summary), style="dim") if summary.score is not None else []
    for note in summary.notes:
        lines += paragraph(page, note, style="dim")
    return lines


def _steady(summary: IterationSummary) -> str:
    steady = summary.steady
    if steady.median_ns is None or steady.mean_ns is None:
        return "No iteration has a following one: there is no step time."
    text = (
        f"Step time: median {units.duration(steady.median_ns)}, "
        f"mean {units.duration(steady.mean_ns)}, 5 % to 95 %: {units.duration(steady.p5_ns)} to "
        f"{units.duration(steady.p95_ns)}, of {units.quantity(steady.count, 'steady iteration')}."
    )
    if steady.is_steady is False:
        times = steady.mean_ns / steady.median_ns
        text += f" Step time is not steady: the mean is {times:.2f} × the median."
    if summary.throughput_per_s is not None:
        text += f" Throughput after warm-up: {summary.throughput_per_s:,.1f} samples/s."
    return text


def _whose(summary: IterationSummary) -> str:
    """Say whose the iterations are, where other processes open the same ranges."""
    others = sorted({process for process, _ in summary.also_in if process is not None})
    others = [process for process in others if process != summary.process_id]
    if summary.process_id is None or not others:
        return ""
    who = f"process {others[0]} has" if len(others) == 1 else f"processes {_listed(others)} have"
    return (
        f"These are the iterations of process {summary.process_id}; {who} the same ranges "
        "(choose with --process)."
    )


def _listed(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _labelled(summary: IterationSummary) -> str:
    parts = [
        f"{what}: {'iteration' if len(numbers) == 1 else 'iterations'} {_numbers(numbers)}"
        for what, numbers in (("Warm-up", summary.warmup), ("Outliers", summary.outliers))
        if numbers
    ]
    return f"{'. '.join(parts)}." if parts else ""


def _numbers(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown}, … ({len(numbers)} in all)" if len(numbers) > 10 else shown


def _device_share(rows: Table) -> str:
    """Say what the device does in the steady periods, and what lies outside the ranges."""
    states = rows.texts("state")
    steady = np.array([state == "steady" for state in states], dtype=np.bool_)
    if not steady.any():
        return ""
    period = int(rows["period_ns"][steady].sum())
    busy = int(rows["busy_in_window_ns"][steady].sum())
    text = f"In steady iterations the GPU is busy {units.ratio(busy / period)} of the step time"
    outside = [value for value in _picked(rows, "outside_ns", steady) if value is not None]
    if outside and period:
        text += f"; {units.ratio(sum(outside) / period)} of the step time lies outside the range"
    return f"{text}."


def _picked(rows: Table, column: str, chosen: Any) -> list[Any]:
    return rows.take(chosen).values(column)


def _choice(summary: IterationSummary) -> str:
    text = f"Score {summary.score:.2f}"
    runner_up = summary.runner_up
    if runner_up is not None:
        text += f"; runner-up {runner_up.name!r} with {runner_up.score:.2f}"
    return f"{text}. --iteration NAME names others."


def ranges(analysis: Analysis, page: Page) -> list[Text]:
    """Which parts of the program take the device's time?"""
    table = analysis.tables["ranges"]
    if not len(table):
        return []
    kernel_ns = int(analysis.kernels["total_ns"].sum())
    rows = folded(table)
    top = rows[: page.shown(len(rows))]
    note = f"shares of kernel time, {units.duration(kernel_ns)}" if kernel_ns else ""
    return [
        *heading(page, "NVTX ranges", note),
        *grid(page, figures(top, kernel_ns), "range", _labels(top)),
        *more(page, len(top), len(rows), "path", "kernelscope ranges FILE --tree shows them all"),
        *outside(analysis.tables["unattributed"], kernel_ns, page),
    ]


def folded(table: Table) -> list[dict[str, Any]]:
    """Return ranges with digits in their names folded: sums of the rows that become one.

    Only push/pop ranges are: a kernel lies in one of each depth. Others may overlap, so that
    their sum would count a kernel twice; they keep their names.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    raw = {text: tuple(text.split(SEPARATOR)) for text in table.categories("path")}
    parts = {text: tuple(map(fold, names)) for text, names in raw.items()}
    summed = ("instances", "host_ns", "kernel_ns", "self_kernel_ns", "opaque_ns")
    columns = zip(
        table.texts("path"),
        *(table.texts(name) for name in ("domain", "style")),
        *(plain(table, name) for name in ("process_id", *summed)),
        strict=True,
    )
    for path, domain, style, process, *values in columns:
        names = (parts if style == "push_pop" else raw)[path or ""]
        key = (names, domain, style, process)
        where = {"path": names, "domain": domain, "process_id": process, "style": style}
        row = rows.setdefault(key, {**where, **dict.fromkeys(summed, 0)})
        for name, value in zip(summed, values, strict=True):
            row[name] = None if value is None or row[name] is None else row[name] + value
    return sorted(rows.values(), key=_longest_first)


def _longest_first(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what sorts ranges as :func:`kernelscope.metrics.ranges.ranges` does."""
    process = row["process_id"]
    return (
        -row["kernel_ns"] - row["opaque_ns"],
        -row["host_ns"],
        row["path"],
        row["domain"],
        row["style"],
        -1 if process is None else process,
    )


_TELL_APART = ("domain", "process_id", "style")
_STYLES = {"start_end": "start/end", "crossing": "crossing"}


def _labels(rows: list[dict[str, Any]]) -> list[str]:
    names = [written(row["path"]) for row in rows]
    return labels(names, *([row[key] for row in rows] for key in _TELL_APART))


def labels(
    names: Sequence[str | None],
    domains: Sequence[str | None],
    processes: Sequence[int | None],
    styles: Sequence[str | None] = (),
) -> list[str]:
    """Return names with their domain, their process where there are several, and their style.

    Most ranges are push/pop, which goes without saying.
    """
    several = len(set(processes)) > 1
    return [
        (name or "(no name)")
        + (f"  [{domain}]" if domain else "")
        + (f"  [process {process}]" if several and process is not None else "")
        + (f"  [{_STYLES[style]}]" if style in _STYLES else "")
        for name, domain, process, style in zip(
            names, domains, processes, styles or [None] * len(names), strict=True
        )
    ]


def figures(rows: list[dict[str, Any]], kernel_ns: int) -> list[Figures]:
    """Return the columns of a list of ranges."""
    shares = [row["kernel_ns"] / kernel_ns if kernel_ns else None for row in rows]
    return [
        Figures("share", units.texts(shares, "ratio")),
        Figures("kernels", units.durations([row["kernel_ns"] for row in rows]), style="bold"),
        Figures("self", units.durations([row["self_kernel_ns"] for row in rows]), 1),
        *opaque([row["opaque_ns"] for row in rows], 1),
        Figures("instances", units.texts([row["instances"] for row in rows], "count"), 3),
        Figures("host", units.durations([row["host_ns"] for row in rows]), 2),
    ]


def opaque(times: Sequence[int | None], optional: int) -> list[Figures]:
    """Return the column of time in CUDA graphs traced as one unit; none where there is none."""
    if not any(times):
        return []
    return [Figures("opaque", units.durations(times), optional)]


def outside(unattributed: Table, kernel_ns: int, page: Page) -> list[Text]:
    """Return what belongs to no range at all, and why; nothing where all does."""
    lines: list[Text] = []
    for row in unattributed.records():
        said = []
        if kernel_ns and (row["kernels"] or row["total_ns"]):
            said.append(f"{units.ratio(row['total_ns'] / kernel_ns)} of kernel time")
            said.append(units.quantity(row["kernels"], "kernel"))
        if row["opaque_ns"]:
            said.append(f"{units.duration(row['opaque_ns'])} in opaque CUDA graphs")
        if said and row["domain"] is None:
            why = REASONS.get(row["reason"], row["reason"].replace("_", " "))
            lines += paragraph(page, f"in no range: {', '.join(said)}, {why}", mark="- ")
    return lines
