"""What in this capture should make a reader careful, and what profiling itself cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, totals_by_group
from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.device_identity import identify
from kernelscope.metrics.intervals import NO_PIECES, Pieces, overlap, union, unite
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace

CLOCK_TOLERANCE_NS = 1_000
"""A kernel that starts at most this long before its launch is put down to clock conversion."""

Finding = tuple[str, str, int, str]
"""code, severity, count, message."""


def health(trace: Trace) -> Table:
    """Can this capture be trusted?

    Parameters
    ----------
    trace : Trace
        The trace.

    Returns
    -------
    Table
        Under ``results.HEALTH``: quarantined events, kernels without a launch, kernels that
        start before their launch, GPUs that cannot be told apart, devices shared by processes,
        tables that were not recorded, and the parser's doubts. Errors first.
    """
    found = [finding for examine in EXAMINATIONS for finding in examine(trace)]
    order = {"error": 0, "warning": 1, "info": 2}
    found.sort(key=lambda finding: order[finding[1]])
    codes, severities, counts, messages = zip(*found, strict=True) if found else ((),) * 4
    columns: dict[str, ColumnData] = {
        "code": Categorical.of(codes),
        "severity": Categorical.of(severities),
        "count": np.array(counts, dtype=np.int64),
        "message": Categorical.of(messages),
    }
    return Table.make(results.HEALTH, columns)


def capture_cost(trace: Trace, window: Window | None = None) -> Table:
    """What did profiling itself cost inside the window?

    Returns
    -------
    Table
        Under ``results.CAPTURE_COST``, longest total first. Besides what stands here, tracing
        makes every host call longer than it is without a profiler.
    """
    window = window or whole(trace)
    events = trace.overheads
    names = events.categories("name")
    columns: dict[str, ColumnData] = {
        "name": Categorical(np.arange(len(names), dtype=np.int32), names),
        **totals_by_group(events, window, events["name"], len(names), "events"),
    }
    return by_total(results.CAPTURE_COST, columns, "events")


def _quarantined(trace: Trace) -> list[Finding]:
    left_out = trace.quarantine
    reasons = left_out.categories("reason")
    return [
        (
            "quarantined_events",
            "warning",
            int((left_out["reason"] == code).sum()),
            f"Events left out of every figure: {reason}. `trace.quarantine` lists them.",
        )
        for code, reason in enumerate(reasons)
        if (left_out["reason"] == code).any()
    ]


def _launches(trace: Trace) -> list[Finding]:
    """Kernels without a launch, and kernels that start before it."""
    if not len(trace.kernels) or not trace.recorded("api_calls"):
        return []
    calls = calls_without_wrappers(trace.api_calls)
    rows = launch_rows(trace.kernels, calls)
    found: list[Finding] = []
    orphans = int((rows < 0).sum())
    if orphans:
        found.append(
            (
                "kernels_without_launch",
                "warning",
                orphans,
                f"{orphans:,} of {len(rows):,} kernels have no CUDA call with their process and "
                "correlation id (launched before the capture began, or trimmed away): they count "
                "in every sum, but have no launch, queue time or range.",
            )
        )
    start = trace.kernels["start_ns"]
    if orphans:
        launched = rows >= 0
        rows, start = rows[launched], start[launched]
    early = calls["start_ns"][rows] - start
    doubtful = early > CLOCK_TOLERANCE_NS
    if doubtful.any():
        found.append(
            (
                "kernels_before_launch",
                "warning",
                int(doubtful.sum()),
                f"Kernels start up to {int(early.max()):,} ns before the call that launched them: "
                "the host's and the device's clock disagree. Their durations hold; times that "
                "compare host and device carry this error.",
            )
        )
    return found


def _identity(trace: Trace) -> list[Finding]:
    """Processes whose GPUs nothing tells apart."""
    unknown = [number for number in identify(trace).physical_ids if number is None]
    if not unknown:
        return []
    return [
        (
            "device_identity_unknown",
            "warning",
            len(unknown),
            "Several processes use the same CUDA ordinal, and the capture does not say whether "
            "that is one GPU: each process has a row of its own. Nsight Systems 2025.1 or newer "
            "records it.",
        )
    ]


def _shared_devices(trace: Trace) -> list[Finding]:
    """Executions of two processes at once on one GPU."""
    identity = identify(trace)
    if len(set(identity.index)) == len(identity.index):
        return []
    process, ordinal = trace.kernels["process_id"], trace.kernels["device_id"]
    seen: dict[int, Pieces] = {}
    overlapping = 0
    for (pid, device), gpu in zip(identity.lanes, identity.index, strict=True):
        mine = (process == pid) & (ordinal == device)
        pieces = union(trace.kernels["start_ns"][mine], trace.kernels["end_ns"][mine])
        overlapping += overlap(pieces, seen.get(gpu, NO_PIECES)) > 0
        seen[gpu] = unite(pieces, seen.get(gpu, NO_PIECES))
    if not overlapping:
        return []
    return [
        (
            "shared_device",
            "warning",
            overlapping,
            "Kernels of several processes ran on one GPU at the same time: durations may include "
            "time slicing, and are upper bounds.",
        )
    ]


def _opaque_graphs(trace: Trace) -> list[Finding]:
    count = len(trace.graphs)
    if not count:
        return []
    return [
        (
            "opaque_graphs",
            "warning",
            count,
            f"{count:,} CUDA graph launches were traced as one unit each: their time is busy, but "
            "the kernels inside are unknown and in no kernel figure. Record with "
            "nsys profile --cuda-graph-trace=node to see them.",
        )
    ]


def _not_recorded(trace: Trace) -> list[Finding]:
    return [
        (
            f"not_recorded_{each.table}",
            "info",
            1,
            f"The capture holds no {each.table.replace('_', ' ')}: {each.how_to_record}.",
        )
        for each in trace.capture.not_recorded
    ]


def _doubts(trace: Trace) -> list[Finding]:
    return [("capture_doubt", "warning", 1, message) for message in trace.capture.warnings]


EXAMINATIONS: tuple[Callable[[Trace], list[Finding]], ...] = (
    _quarantined, _launches, _identity, _shared_devices, _opaque_graphs, _doubts,
    _not_recorded,
)  # fmt: skip
"""Every examination of a trace; a new one is a function and a line here."""
