"""What in this capture should make a reader careful, and what profiling itself cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernelscope import units
from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, totals_by_group
from kernelscope.metrics.device_identity import Identity, Lane, identify, limits_of
from kernelscope.metrics.device_time import devices
from kernelscope.metrics.intervals import NO_PIECES, Pieces, overlap, union, unite
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace, distinct, is_missing

CLOCK_TOLERANCE_NS = 1_000
"""A kernel that starts at most this long before its launch is put down to clock conversion."""

FAR_NS = 3_600_000_000_000
"""An event this far (an hour), and ten times the length of the run, from the others is doubtful."""

_OPAQUE = "partition.opaque_graph_ns"

FAR_SPANS = 10
SAMPLED_ROWS = 1024
"""How many events stand for all when it is asked where most of them lie."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table."""

    code: str
    severity: str
    count: int
    message: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Examined:
    """What is examined: the chosen part of a trace, and the whole that it is a part of.

    Attributes
    ----------
    trace : Trace
        The chosen processes and devices.
    identity : Identity
        The GPUs of the *whole* trace: who else is on them matters to a part, too.
    everything : Trace
        The whole trace.
    lanes : frozenset of (process, ordinal)
        Those of the chosen part.
    launches : LaunchTimes or None
        Those of the chosen part, where they were found before.
    """

    trace: Trace
    identity: Identity
    everything: Trace
    lanes: frozenset[Lane]
    launches: LaunchTimes | None


def health(
    trace: Trace,
    *,
    whole_trace: Trace | None = None,
    found_elsewhere: Sequence[Finding] = (),
    launches: LaunchTimes | None = None,
) -> Table:
    """Can this capture be trusted?

    Parameters
    ----------
    trace : Trace
        The trace, or the chosen part of it.
    whole_trace : Trace, optional
        What `trace` is a part of: other processes on its GPUs are looked for there.
    found_elsewhere : sequence of Finding
        What other metrics have to say of their figures.
    launches : LaunchTimes, optional
        Of `trace`, where the caller has them already.

    Returns
    -------
    Table
        Under ``results.HEALTH``: quarantined events, kernels without a launch, kernels that
        start before their launch, events far from all others, GPUs that cannot be told apart,
        devices shared by processes, figures that are missing and why, tables that were not
        recorded, and the parser's doubts. Errors first.
    """
    everything = whole_trace or trace
    identity = identify(everything)
    lanes = identity.lanes if everything is trace else identify(trace).lanes
    examined = Examined(trace, identity, everything, frozenset(lanes), launches)
    found = [finding for examine in EXAMINATIONS for finding in examine(examined)]
    found += found_elsewhere
    order = {"error": 0, "warning": 1, "info": 2}
    found.sort(key=lambda finding: order[finding.severity])
    columns: dict[str, ColumnData] = {
        "code": Categorical.of([finding.code for finding in found]),
        "severity": Categorical.of([finding.severity for finding in found]),
        "count": np.array([finding.count for finding in found], dtype=np.int64),
        "message": Categorical.of([finding.message for finding in found]),
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


def _quarantined(examined: Examined) -> Iterator[Finding]:
    left_out = examined.trace.quarantine
    for code, reason in enumerate(left_out.categories("reason")):
        count = int((left_out["reason"] == code).sum())
        if count:
            yield Finding(
                "quarantined_events",
                "warning",
                count,
                f"Events left out of every figure: {reason}. `trace.quarantine` lists them.",
            )


def _launches(examined: Examined) -> Iterator[Finding]:
    """Kernels without a launch, and kernels that start before it."""
    trace = examined.trace
    if not len(trace.kernels) or not trace.recorded("api_calls"):
        return
    launches = examined.launches or launch_times(trace)
    rows = launches.call_of_kernel
    start = trace.kernels["start_ns"]
    orphans = int((rows < 0).sum())
    if orphans:
        yield Finding(
            "kernels_without_launch",
            "warning",
            orphans,
            f"{orphans:,} of {len(rows):,} kernels have no CUDA call with their process and "
            "correlation id (launched before the capture began, or trimmed away): they count "
            "in every sum, but have no launch, queue time or range.",
        )
        launched = rows >= 0
        rows, start = rows[launched], start[launched]
    early = launches.api_calls["start_ns"][rows] - start
    doubtful = int((early > CLOCK_TOLERANCE_NS).sum())
    if doubtful:
        yield Finding(
            "kernels_before_launch",
            "warning",
            doubtful,
            f"Kernels start up to {int(early.max()):,} ns before the call that launched them: "
            "the host's and the device's clock disagree. Their durations hold; times that "
            "compare host and device carry this error.",
        )


def _serialised(examined: Examined) -> Iterator[Finding]:
    """Kernels that the profiler ran one by one."""
    reason = examined.trace.capture.serialised
    if reason is not None:
        yield Finding(
            "serialised_capture",
            "warning",
            len(examined.trace.kernels),
            f"{reason[:1].upper()}{reason[1:]}. Partition, overlap, idle and queue times of the "
            "devices, shares of the window and iterations are null; durations and counters of "
            "single kernels hold. Record a timeline in a run of its own for the others.",
        )


def _far_events(examined: Examined) -> Iterator[Finding]:
    """A few events far from all others: they stretch the window, and make all else look idle."""
    trace = examined.trace
    tables = [t for t in (trace.kernels, trace.copies, trace.graphs) if len(t)]
    if not tables:
        return
    sample = np.concatenate([t["start_ns"][:: max(len(t) // SAMPLED_ROWS, 1)] for t in tables])
    sample.sort()
    low, high = int(sample[len(sample) // 20]), int(sample[-1 - len(sample) // 20])
    far = max(FAR_NS, FAR_SPANS * (high - low))
    count = sum(
        int(((t["start_ns"] < low - far) | (t["start_ns"] > high + far)).sum())
        for t in tables
        if t["start_ns"].min() < low - far or t["start_ns"].max() > high + far
    )
    if count:
        yield Finding(
            "events_far_away",
            "warning",
            count,
            f"{count:,} kernels, copies or graphs lie more than an hour from all others: a false "
            "clock, or a capture that slept. The window reaches to them, and shares of it are "
            "small. "
            f"--between {low}ns,{high}ns looks at the others.",
        )


def _identity(examined: Examined) -> Iterator[Finding]:
    """Processes whose GPUs nothing tells apart."""
    identity = examined.identity
    unknown = {
        index
        for lane, index in zip(identity.lanes, identity.index, strict=True)
        if lane in examined.lanes and identity.physical_ids[index] is None
    }
    if unknown:
        yield Finding(
            "device_identity_unknown",
            "warning",
            len(unknown),
            "Several processes use the same CUDA ordinal, and the capture does not say whether "
            "that is one GPU: each process has a row of its own, physical_id is null. Nsight "
            "Systems 2025.1 or newer records it.",
        )


def _shared_devices(examined: Examined) -> Iterator[Finding]:
    """Executions of two processes at once on one GPU."""
    identity, kernels = examined.identity, examined.everything.kernels
    if len(set(identity.index)) == len(identity.index):
        return
    pairs = list(zip(identity.lanes, identity.index, strict=True))
    used = {index for lane, index in pairs if lane in examined.lanes}
    seen: dict[int, Pieces] = {}
    overlapping = 0
    for (process, ordinal), gpu in pairs:
        if gpu not in used or process is None:
            continue
        mine = (kernels["process_id"] == process) & (kernels["device_id"] == ordinal)
        pieces = union(kernels["start_ns"][mine], kernels["end_ns"][mine])
        overlapping += overlap(pieces, seen.get(gpu, NO_PIECES)) > 0
        seen[gpu] = unite(pieces, seen.get(gpu, NO_PIECES))
    if overlapping:
        yield Finding(
            "shared_device",
            "warning",
            overlapping,
            "Kernels of several processes ran on one GPU at the same time: durations may include "
            "time slicing, and are upper bounds.",
        )


def _missing_figures(examined: Examined) -> Iterator[Finding]:
    """Figures that are null, and why."""
    trace, identity = examined.trace, examined.identity
    if len(trace.kernels):
        described = dict(zip(identity.lanes, identity.described, strict=True))
        limits = [limits_of(described[lane]) for lane in examined.lanes]
        shapes = not (
            is_missing(trace.kernels["grid_x"]).all()
            or is_missing(trace.kernels["registers_per_thread"]).all()
        )
        if None in limits or not shapes:
            what = "the limits of the GPU are" if shapes else "launch shapes or registers are"
            yield Finding(
                "sm_fill_unknown", "info", limits.count(None) if shapes else len(limits),
                f"sm_fill and occupancy are null where {what} not recorded.",
            )  # fmt: skip
    sizes = int(is_missing(trace.copies["bytes"]).sum())
    if sizes:
        yield Finding(
            "sizes_missing",
            "warning",
            sizes,
            f"{sizes:,} of {len(trace.copies):,} copies and memsets have no believable size: bytes "
            "and bytes_per_s of their kind are null.",
        )


def _opaque_graphs(examined: Examined) -> Iterator[Finding]:
    count = _graph_launches(examined.trace.graphs)
    if count:
        table = devices(examined.trace)
        busy, opaque = (int(table[name].sum()) for name in ("busy_ns", _OPAQUE))
        share = f"{units.ratio(opaque / busy)} of all busy time" if busy else "no time at all"
        if examined.trace.capture.serialised is not None:
            share = "the share of busy time is not known"
        yield Finding(
            "opaque_graphs",
            "warning",
            count,
            f"{count:,} CUDA graph launch{'es were' if count > 1 else ' was'} traced as one unit"
            f"{' each' if count > 1 else ''}: {share} is opaque, busy with kernels that are "
            "unknown and in no kernel figure. Record with nsys profile --cuda-graph-trace=node to "
            "see them.",
        )


def _graph_launches(graphs: Table) -> int:
    """Return how many launches rows of graphs come from: one on two streams has two rows."""
    process, correlation = graphs["process_id"], graphs["correlation_id"]
    unknown = is_missing(correlation)
    of = (correlation[~unknown & (process == each)] for each in distinct(process).tolist())
    return int(unknown.sum()) + sum(len(distinct(each)) for each in of)


def _not_recorded(examined: Examined) -> Iterator[Finding]:
    for each in examined.trace.capture.not_recorded:
        what = each.table.replace("_", " ")
        message = (
            f"The capture holds no {what}: {each.how_to_record}."
            if each.how_to_record
            else f"The capture traced {what}, and saw none."
        )
        yield Finding(f"not_recorded_{each.table}", "info", 1, message)


def _doubts(examined: Examined) -> Iterator[Finding]:
    for message in examined.trace.capture.warnings:
        yield Finding("capture_doubt", "warning", 1, message)


EXAMINATIONS: tuple[Callable[[Examined], Iterator[Finding]], ...] = (
    _quarantined, _serialised, _launches, _far_events, _identity, _shared_devices, _opaque_graphs,
    _missing_figures, _doubts, _not_recorded,
)  # fmt: skip
"""Every examination of a trace; a new one is a function and a line here."""
