"""The rules by which findings are found: each a question to what was seen, with its answer.

A rule says which stretches of device time would go if the cause went, what the numbers are, and
what to try. Whether that is enough to be told is decided in
:mod:`kernelscope.metrics.findings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from kernelscope import units
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.finding_host_rules import (
    allocations,
    data_loading,
    module_loading,
    outside_range,
    synchronizations,
)
from kernelscope.metrics.finding_words import either, host_waits, most, often
from kernelscope.metrics.intervals import intersection, subtract, total, unite
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.metrics.savable import (
    LEAST_SHARE,
    Found,
    Seen,
    chosen_rows,
    idle_before,
    idle_of,
    idle_where,
    is_late,
    ran,
    spared,
    within_basis,
)
from kernelscope.metrics.transfers import copy_calls
from kernelscope.metrics.waiting import WAITS
from kernelscope.metrics.window import starts_inside
from kernelscope.trace import distinct

Rule = Callable[[Seen], Found | None]

TINY_NS = 5_000
"""Kernels up to this long are tiny: a launch costs the host about as much."""

TINY_SHARE = 0.5
"""Many are tiny where at least this share of executions is."""

STRAGGLER = 1.25
"""An iteration is slow beyond so many times the median step."""

PROFILER_SHARE = 0.1
"""Of idle time; from here on the profiler itself spoils the picture,"""

PROFILER_OF_WINDOW = 0.0025
"""unless that is less than this share of the window."""

LAYOUT_KERNELS = re.compile(
    # cuDNN: nchwToNhwcKernel, nhwcToNchwKernel, nchwToFoldedNhwcKernel, foldedNhwcToNhwcKernel,
    # nhwcAddPaddingKernel, nchwToNchhw2Kernel (TensorRT, too)
    r"[nN](?:chw|CHW)To(?:Folded)?[nN](?:hwc|HWC)|[nN](?:hwc|HWC)To(?:Folded)?[nN](?:chw|CHW)"
    r"|nhwcToFoldedNhwc|foldedNhwcToNhwc|nchwTo[nN]chhw2|nhwcAddPadding"
    # TensorFlow: SwapDimension1And2InTensor3UsingTiles and …Simple, ShuffleInTensor3Simple
    r"|SwapDimension1And2InTensor3|ShuffleInTensor3"
)
"""Kernels that change nothing but the layout of a tensor.

Not convertTensor_kernel, which changes the type of its elements, nor kernels that work on a
layout (…_nhwckrsc_nchw_…) or convert it on the way (…_nhwc2nchw_…), nor a transpose that the
program asked for.
"""

_QUEUED = ("kernel_to_kernel", "launch_latency", "in_call", "intra_graph")


def _pageable_copies(seen: Seen) -> Found | None:
    copies = seen.trace.copies
    sides = [copies.holds(side, "pageable".__eq__) for side in ("src_memory", "dst_memory")]
    pageable = (sides[0] | sides[1]) & ~copies.holds("kind", "HtoH".__eq__)
    if not pageable.any():
        return None
    issuing = copy_calls(seen.trace, seen.launches).row[pageable]
    issuing = distinct(issuing[issuing >= 0])
    calls = seen.launches.api_calls
    held = np.isin(seen.waits.call, issuing)
    held &= seen.waits.kind == WAITS.index("blocked: copy")
    copying = ran(seen, copies, pageable)
    exposed = [
        subtract(each, account.kernels)
        for each, account in zip(copying, seen.measured.devices, strict=True)
    ]
    spent = (calls[name][issuing] for name in ("start_ns", "end_ns", "process_id"))
    savable = either(exposed, spared(seen, *spent))
    number = often(copies["start_ns"][pageable], "copy", seen, "copies")
    blocks = within_basis(seen.waits.start[held], seen.waits.end[held], seen.basis) > 0
    waits = f"{host_waits(held, seen)} in them, whatever the calls' names say, and " * blocks
    return Found(
        "pageable_copies",
        "Copies from or to pageable memory hold up the host"
        if blocks
        else "Copies from or to pageable memory keep the GPU from its work",
        f"{number} from or to pageable memory; {waits}the GPU has nothing else to do for "
        f"{most(savable, seen)}",
        "copy from and to pinned memory (pin_memory=True, cudaHostAlloc), and read results less "
        "often",
        "analyze FILE --format markdown --table transfers",
        savable,
    )


def _launch_bound(seen: Seen) -> Found | None:
    table = seen.tables["launch_stretches"]
    table = table.take(np.isin(table["device"], seen.chosen))
    if not len(table):
        return None
    idle = idle_where(seen, lambda cause, _: is_late(cause))
    savable = []
    for number in seen.devices:
        mine = table["device"] == number
        stretches = table["start_ns"][mine], table["end_ns"][mine]
        savable.append(intersection(idle[number], (np.sort(stretches[0]), np.sort(stretches[1]))))
    executions = int(table["executions"].sum())
    busy, waited = int(table["busy_ns"].sum()), int(table["waiting_ns"].sum())
    found = f"{len(table):,} stretch{'es' if len(table) > 1 else ''} of the window"
    whose = ", whichever process made them," if seen.partial else ""
    before = ", before launches of what was chosen" if seen.partial else ""
    return Found(
        "launch_bound",
        "Stretches in which the GPU waits for launches longer than it works",
        f"in {found} with {units.quantity(executions, 'execution')}{whose} the GPU works "
        f"{units.duration(busy)} and waits {units.duration(waited)} for the host to launch; that "
        f"is {most(savable, seen)}{before}",
        "launch less: CUDA graphs, torch.compile or another fusing compiler, fused optimisers, "
        "larger batches",
        "analyze FILE --format markdown --table launch_stretches",
        savable,
    )


def _tiny_kernels(seen: Seen) -> Found | None:
    kernels = seen.everything.kernels
    tiny = kernels["end_ns"] - kernels["start_ns"] <= TINY_NS
    tiny &= starts_inside(kernels, seen.window)
    tiny &= chosen_rows(kernels, seen.trace.kernels)
    executions = int(seen.tables["kernels"]["executions"].sum())
    number = int(np.count_nonzero(tiny))
    if not executions or number < TINY_SHARE * executions:
        return None
    savable = either(ran(seen, kernels, tiny), idle_before(seen, tiny, _QUEUED))
    return Found(
        "tiny_kernels",
        f"Many kernels last no longer than {units.limit(TINY_NS)}",
        f"{often(kernels['start_ns'][tiny], 'tiny kernel', seen)} "
        f"({units.ratio(number / executions)} of the window's executions); they, and the pauses "
        f"between their launch and start, take {most(savable, seen)}",
        "fuse them: torch.compile, fused optimisers (foreach, apex), CUDA graphs, larger batches",
        "analyze FILE --format markdown --table kernels",
        savable,
    )


def _exposed_communication(seen: Seen) -> Found | None:
    calls = int(seen.tables["communication"]["calls"].sum())
    alone = PARTITION_CLASSES.index("communication_only")
    exposed = [seen.measured.devices[device].partition[alone] for device in seen.chosen]
    if not calls or max(exposed) < LEAST_SHARE * total(seen.basis.periods):
        return None
    kernels, patterns = seen.trace.kernels, seen.measured.communication
    talks = np.append(is_communication(kernels.categories("name"), patterns), False)
    savable = [  # of what was chosen: another process may communicate on the device, too
        subtract(each, unite(account.compute, account.graphs))
        for each, account in zip(
            ran(seen, kernels, talks[kernels["name"]]), seen.measured.devices, strict=True
        )
    ]
    return Found(
        "exposed_communication",
        "Communication between GPUs is not hidden behind compute",
        f"{units.quantity(calls, 'communication kernel')} in the window; for "
        f"{most(savable, seen)} a GPU runs no other kernel, waiting for peers included",
        "overlap it with the backward pass (smaller or differently sized buckets, gradients as "
        "they come), compress or accumulate gradients, balance the ranks",
        "analyze FILE --format markdown --table communication",
        savable,
    )


def _layout_conversions(seen: Seen) -> Found | None:
    kernels = seen.trace.kernels
    rows = kernels.holds("name", lambda name: LAYOUT_KERNELS.search(name) is not None)
    if not rows.any():
        return None
    savable = ran(seen, kernels, rows)
    table = seen.tables["kernels"]
    share = float(
        table["share"][table.holds("name", lambda n: LAYOUT_KERNELS.search(n) is not None)].sum()
    )
    return Found(
        "layout_conversions",
        "Tensors are converted between layouts",
        f"{often(kernels['start_ns'][rows], 'execution', seen)} of layout-conversion kernels "
        f"(nchwToNhwc and the like): {most(savable, seen)}, {units.ratio(share)} of the "
        "window's kernel time",
        "keep tensors in the layout that the kernels want (channels_last), from the first layer "
        "to the last",
        "analyze FILE --format markdown --table kernels",
        savable,
    )


def _slow_iterations(seen: Seen) -> Found | None:
    rows = seen.iterations
    median = seen.summary.steady.median_ns
    if median is None or seen.basis.name != "iteration":
        return None
    slow = rows["period_ns"] > STRAGGLER * median
    if not slow.any():
        return None
    start, end = rows["start_ns"][slow], (rows["start_ns"] + rows["period_ns"])[slow]
    excess = start + int(median), end
    longest = int(rows["period_ns"].max())
    return Found(
        "slow_iterations",
        "Some iterations take much longer than others",
        f"{int(slow.sum())} of {len(rows)} iterations after warm-up take more than "
        f"{STRAGGLER:g} × the median of {units.duration(median)}, up to "
        f"{units.duration(longest)}",
        "compare a slow iteration with the one before it: what does the host do meanwhile?",
        "iterations FILE",
        [excess for _ in seen.devices],
    )


def _profiler(seen: Seen) -> Found | None:
    window = np.array([seen.window.start_ns]), np.array([seen.window.end_ns])
    flushed = [intersection(each, window) for each in idle_of(seen, ("profiler",))]
    lost = sum(total(flushed[device]) for device in seen.chosen)
    idle = sum(seen.measured.devices[device].partition[-1] for device in seen.chosen)
    whole = seen.window.duration_ns * len(seen.chosen)
    if not idle or lost < PROFILER_SHARE * idle or lost < PROFILER_OF_WINDOW * whole:
        return None
    return Found(
        "profiler_overhead",
        "The profiler itself makes the GPU wait",
        f"{units.duration(lost)} of the window's idle time ({units.ratio(lost / idle)} of it) pass "
        "while the profiler writes its data out: idle time and step times are shorter without it",
        "record a shorter time (--duration, a capture range), fewer events, or leave out "
        "call stacks and sampling",
        "analyze FILE --format markdown --table capture_cost",
        None,
        flushed,
    )


RULES: tuple[Rule, ...] = (
    data_loading,
    outside_range,
    _pageable_copies,
    synchronizations,
    _launch_bound,
    _tiny_kernels,
    _exposed_communication,
    allocations,
    module_loading,
    _layout_conversions,
    _slow_iterations,
    _profiler,
)
"""Every rule; a new one is a function and a line here."""
