"""What is wrong with the ranges themselves, and how much of the device's work they miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import range_results as results
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.inheritance import processes_of_several
from kernelscope.metrics.library_domains import is_library
from kernelscope.metrics.range_calls import calls_of_ranges
from kernelscope.metrics.range_paths import range_names
from kernelscope.metrics.ranges import unattributed, unclipped
from kernelscope.metrics.window import Window, clipped_durations
from kernelscope.trace import Categorical, Table, Trace, is_missing

MUCH_UNATTRIBUTED = 0.1
"""Kernel time outside all ranges is a warning from this share on."""

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class _Finding:
    code: str
    severity: str
    count: int
    share: float
    example: str | None
    message: str


def nvtx_findings(
    trace: Trace, window: Window | None = None, *, attribution: Attribution | None = None
) -> Table:
    """Are the program's ranges sound, and do they cover the device's work?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where kernels are looked at that no range holds; everywhere by default. What is wrong
        with ranges, or launches nothing, is told of the whole trace: a missing pop is at home
        in no window.
    attribution : Attribution, optional
        What :func:`attribute` returned of the same trace.

    Returns
    -------
    Table
        Under ``range_results.NVTX_FINDINGS``, warnings first:

        - ``nvtx_no_ranges``: none were recorded;
        - ``nvtx_unbalanced``: opened, and never closed before the trace ended;
        - ``nvtx_quarantined``: left out, since their times cannot be true;
        - ``nvtx_crossing``: push/pop ranges that outlast one that was open when they began;
        - ``nvtx_unattributed``: kernels that no range holds, with their share of kernel time;
        - ``nvtx_several_threads``: more than one thread carries the iteration family;
        - ``nvtx_no_work``: names (digits folded) none of whose ranges launched anything,
          those of libraries left out;
        - ``nvtx_closed_elsewhere``: start/end ranges that another thread closed;
        - ``nvtx_no_length``: ranges that hold nothing, since they end where they begin;
        - ``nvtx_same_bounds``: ranges of one thread that begin and end together, which the
          ``nvtx_pushpop_trace`` of ``nsys stats`` leaves out together with all inside them;
        - ``nvtx_unknown_thread``: ranges whose thread is not recorded.
    """
    attribution = attribution or attribute(trace)
    if not len(trace.ranges):
        found = _no_ranges(trace)
    else:
        found = [
            *_shape(trace.ranges, attribution),
            *_coverage(trace, window or unclipped(trace), attribution),
        ]
    found += _quarantined(trace)
    found.sort(key=lambda finding: finding.severity != "warning")
    return Table.make(
        results.NVTX_FINDINGS,
        {
            "code": Categorical.of([each.code for each in found]),
            "severity": Categorical.of([each.severity for each in found]),
            "count": np.array([each.count for each in found], dtype=np.int64),
            "share": np.array([each.share for each in found], dtype=np.float64),
            "example": Categorical.of([each.example for each in found]),
            "message": Categorical.of([each.message for each in found]),
        },
    )


def _quarantined(trace: Trace) -> list[_Finding]:
    """Ranges that were left out because their times cannot be true."""
    tables = trace.quarantine.texts("table")
    count = tables.count("ranges")
    if not count:
        return []
    example = trace.quarantine.texts("name")[tables.index("ranges")]
    message = "Ranges left out: their times cannot be true. `trace.quarantine` lists them."
    return [_Finding("nvtx_quarantined", "warning", count, _NAN, example, message)]


def _no_ranges(trace: Trace) -> list[_Finding]:
    if not len(trace.kernels):
        return []
    message = (
        "No NVTX ranges were recorded, so that no kernel can be told apart by what the program "
        "was doing. Record them with --trace=cuda,nvtx; if the program does open ranges, its "
        "NVTX may be newer than the profiler can hear."
    )
    return [_Finding("nvtx_no_ranges", "info", len(trace.kernels), _NAN, None, message)]


def _shape(ranges: Table, attribution: Attribution) -> list[_Finding]:
    """Return what is wrong with the ranges, whatever they launch."""
    checks: tuple[tuple[str, str, npt.NDArray[np.bool_], str], ...] = (
        (
            "nvtx_unbalanced",
            "warning",
            ~ranges["closed"],
            "Never closed before the trace ended: a pop or end is missing, or the capture "
            "stopped inside. They hold everything their thread launched after they began.",
        ),
        (
            "nvtx_crossing",
            "warning",
            attribution.enclosed.nesting.crossing,
            "Push/pop ranges that outlast another that was open when they began: popped out of "
            "order. They are treated like start/end ranges and have no parent or children.",
        ),
        (
            "nvtx_closed_elsewhere",
            "info",
            ~is_missing(ranges["end_thread_id"]),
            "Start/end ranges that another thread closed hold the launches of the thread that "
            "opened them (of its whole process with process_ranges); nsys projects none.",
        ),
        (
            "nvtx_no_length",
            "info",
            ranges["start_ns"] == ranges["end_ns"],
            "They end at the nanosecond at which they begin, and hold nothing.",
        ),
        (
            "nvtx_same_bounds",
            "info",
            _same_bounds(ranges),
            "Ranges of one thread with the same start and end; nvtx_pushpop_trace of nsys stats "
            "leaves them and all inside them out.",
        ),
        (
            "nvtx_unknown_thread",
            "info",
            is_missing(ranges["thread_id"]),
            "The capture does not say which thread opened them, so that they hold nothing.",
        ),
    )
    return [
        _Finding(code, severity, int(rows.sum()), float(rows.mean()), _name(ranges, rows), message)
        for code, severity, rows, message in checks
        if rows.any()
    ]


def _same_bounds(ranges: Table) -> npt.NDArray[np.bool_]:
    columns = [ranges[key] for key in ("start_ns", "end_ns", "thread_id", "process_id")]
    order = np.lexsort(columns[::-1])
    equal = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        equal &= column[order][1:] == column[order][:-1]
    same = np.zeros(len(order), dtype=np.bool_)
    same[order[1:]] |= equal
    same[order[:-1]] |= equal
    return same


def _coverage(trace: Trace, window: Window, attribution: Attribution) -> list[_Finding]:
    """Return how well the ranges cover the device's work."""
    if not len(trace.kernels):
        return []
    found: list[_Finding] = []
    outside = unattributed(trace, window, attribution=attribution).records()
    left = [row for row in outside if row["kernels"] or row["total_ns"]]
    time = sum(row["total_ns"] for row in left if row["domain"] is None)
    whole = int(clipped_durations(trace.kernels, window).sum())
    if time:
        share = time / whole
        reasons = ", ".join(row["reason"] for row in left if row["domain"] is None)
        found.append(
            _Finding(
                "nvtx_unattributed",
                "warning" if share >= MUCH_UNATTRIBUTED else "info",
                sum(row["kernels"] for row in left if row["domain"] is None),
                share,
                None,
                f"Kernels that no range holds ({reasons}): figures by range are without them.",
            )
        )
    idle = _names_without_work(trace, attribution)
    if idle.any():
        message = "Names none of whose ranges launched a kernel, copy, memset or opaque graph."
        names = len(np.unique(range_names(trace.ranges, folded=True)[0][idle]))
        example = _name(trace.ranges, idle)
        share = float(idle.mean())
        found.append(_Finding("nvtx_no_work", "info", names, share, example, message))
    family = attribution.family
    if family is not None and processes_of_several(trace.ranges, family.of_processes):
        message = (
            "More than one thread opens these ranges: launches of threads without ranges could "
            "belong to either, and inherit none."
        )
        found.append(
            _Finding("nvtx_several_threads", "warning", 1, _NAN, family.folded_name, message)
        )
    return found


def _names_without_work(trace: Trace, attribution: Attribution) -> npt.NDArray[np.bool_]:
    """Return the program's ranges that share their name with no range that launched anything."""
    ranges = trace.ranges
    calls = calls_of_ranges(attribution)
    name, names = range_names(ranges, folded=True)
    busy = np.zeros(len(names) + 1, dtype=np.bool_)
    for runs in (calls.direct, *calls.inherited):
        busy[name[runs.owner]] = True
    program = np.array([not is_library(text) for text in ranges.categories("domain")])
    return np.asarray(~busy[name] & program[ranges["domain"]])


def _name(ranges: Table, rows: npt.NDArray[Any]) -> str:
    return ranges.categories("name")[int(ranges["name"][np.argmax(rows)])]
