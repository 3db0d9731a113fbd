"""The rules by which findings are found: each a question to what was seen, with its answer.

A rule says which stretches of device time would go if the cause went, what the numbers are, and
what to try. Whether that is enough to be told is decided in
:mod:`kernelscope.metrics.findings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from kernelscope import units
from kernelscope.metrics.call_classes import call_classes, places_of
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import Pieces, intersection, subtract, total, unite
from kernelscope.metrics.savable import (
    Found,
    Seen,
    idle_after_waits,
    idle_before,
    idle_of,
    idle_where,
    ran,
)
from kernelscope.metrics.transfers import copy_calls
from kernelscope.metrics.waiting import WAITS
from kernelscope.trace import is_missing

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

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
    # cuDNN: nchwToNhwcKernel, nhwcToNchwKernel, nchwToFoldedNhwcKernel, nhwcAddPaddingKernel,
    # convertTensor_kernel; TensorFlow: SwapDimension1And2InTensor3Using…, ShuffleInTensor3Simple;
    # TensorRT: …copyVectorizedKernel of nchw to nchhw2
    r"nchw\w*To\w*nhwc|nhwc\w*To\w*nchw|nchwToNchhw2|nhwcAddPadding|convertTensor_kernel"
    r"|SwapDimension1And2InTensor3|ShuffleInTensor3",
    re.IGNORECASE,
)
"""Kernels that only change the layout of a tensor."""

_QUEUED = ("kernel_to_kernel", "launch_latency", "in_call", "intra_graph")


def _most(pieces: Sequence[Pieces], seen: Seen) -> str:
    """Say how much of the window the pieces take on the device where they take most."""
    longest = max(map(total, pieces))
    share = units.ratio(longest / seen.window.duration_ns)
    return f"{units.duration(longest)} ({share} of the window)"


def _either(one: Sequence[Pieces], other: Sequence[Pieces]) -> list[Pieces]:
    return [unite(a, b) for a, b in zip(one, other, strict=True)]


def _nothing(pieces: Sequence[Pieces]) -> bool:
    return not any(map(total, pieces))


def _often(number: int, noun: str, seen: Seen) -> str:
    """Say how many there are, per iteration where there are iterations."""
    if seen.basis.name == "window":
        return units.quantity(number, noun)
    return f"{number / seen.basis.count:,.1f} {noun}s per iteration"


def _data_loading(seen: Seen) -> Found | None:
    idle = idle_of(seen, (f"{HOST}data_loading",))
    if _nothing(idle):
        return None
    return Found(
        "data_loading",
        "The GPU starves while the host loads data",
        f"the GPU stands still for {_most(idle, seen)} while the launching thread fetches data, "
        "as its NVTX ranges or operating-system calls say",
        "load ahead: more workers, prefetching, pinned memory, decoding on the GPU; or a faster "
        "store",
        "analyze FILE BETWEEN",
        idle,
    )


def _outside_range(seen: Seen) -> Found | None:
    rows = seen.iterations
    if not len(rows) or is_missing(rows["range_ns"]).any():
        return None
    start = rows["start_ns"] + rows["range_ns"]
    outside = start, np.maximum(rows["start_ns"] + rows["period_ns"], start)
    host = idle_where(
        seen, lambda cause, _: cause.startswith(HOST) and cause != f"{HOST}data_loading"
    )
    idle = [intersection(each, outside) for each in host]
    if _nothing(idle):
        return None
    name = seen.summary.family
    share = total(outside) / max(1, int(rows["period_ns"].sum()))
    return Found(
        "outside_range",
        f"The GPU starves between iterations, outside the range {name!r}",
        f"{units.ratio(share)} of the steps lies outside the range, and the GPU stands still for "
        f"{_most(idle, seen)} there, waiting for the host",
        "data loading usually lies there: annotate it with an NVTX range, or record "
        "--trace=osrt, to see; then load ahead, with more workers or prefetching",
        "analyze FILE BETWEEN",
        idle,
    )


def _pageable_copies(seen: Seen) -> Found | None:
    copies = seen.trace.copies
    pageable = np.zeros(len(copies), dtype=np.bool_)
    for side in ("src_memory", "dst_memory"):
        kinds = [kind == "pageable" for kind in copies.categories(side)]
        pageable |= np.array([*kinds, False])[copies[side]]
    pageable &= ~np.array([k == "HtoH" for k in copies.categories("kind")] + [False])[
        copies["kind"]
    ]
    if not pageable.any():
        return None
    held = np.isin(seen.waits.call, copy_calls(seen.trace, seen.launches).row[pageable])
    accounts = seen.measured.devices
    copying = ran(seen, copies, pageable)
    exposed = [
        subtract(each, account.kernels) for each, account in zip(copying, accounts, strict=True)
    ]
    savable = _either(exposed, idle_after_waits(seen, held))
    blocked = int((seen.waits.end[held] - seen.waits.start[held]).sum())
    return Found(
        "pageable_copies",
        "Copies from or to pageable memory hold up the host",
        f"{units.quantity(int(pageable.sum()), 'copy').replace('copys', 'copies')} from or to "
        f"pageable memory; the host waits {units.duration(blocked)} in them, whatever the calls' "
        f"names say, and the GPU has nothing else to do for {_most(savable, seen)}",
        "copy from and to pinned memory (pin_memory=True, cudaHostAlloc), and read results less "
        "often",
        "analyze FILE --format markdown --table transfers",
        savable,
    )


def _synchronizations(seen: Seen) -> Found | None:
    synchronizing = seen.waits.kind == WAITS.index("synchronization")
    if not synchronizing.any():
        return None
    savable = _either(
        idle_after_waits(seen, synchronizing), idle_of(seen, (f"{HOST}synchronization",))
    )
    start, end = seen.waits.start[synchronizing], seen.waits.end[synchronizing]
    inside = _inside(start, seen)
    waited = int((end - start)[inside].sum())
    return Found(
        "synchronizations",
        "The host synchronises, and the GPU runs dry afterwards",
        f"{_often(int(inside.sum()), 'synchronisation', seen)}, in which the host waits "
        f"{units.duration(waited)}; the GPU then stands still for {_most(savable, seen)} until "
        "new work reaches it",
        "do not read results in every step (.item(), .cpu(), print); synchronise events, not "
        "devices; let the host run ahead",
        "analyze FILE BETWEEN",
        savable,
    )


def _inside(start: Int64s, seen: Seen) -> Bools:
    """Return which moments lie in the seen.basis."""
    starts, ends = seen.basis.periods
    place = np.searchsorted(starts, start, side="right") - 1
    return (place >= 0) & (start < ends[np.maximum(place, 0)])


def _launch_bound(seen: Seen) -> Found | None:
    table = seen.tables["launch_stretches"]
    if not len(table):
        return None
    idle = idle_where(
        seen, lambda cause, _: cause.startswith(HOST) or cause in ("in_call", "launch_latency")
    )
    savable = []
    for number in seen.devices:
        mine = table["device"] == number
        stretches = table["start_ns"][mine], table["end_ns"][mine]
        order = np.argsort(stretches[0], kind="stable")
        savable.append(intersection(idle[number], (stretches[0][order], stretches[1][order])))
    executions = int(table["executions"].sum())
    busy, waited = int(table["busy_ns"].sum()), int(table["waiting_ns"].sum())
    return Found(
        "launch_bound",
        "Stretches in which the GPU waits for launches longer than it works",
        f"{units.quantity(len(table), 'stretch').replace('stretchs', 'stretches')} with "
        f"{units.quantity(executions, 'execution')}: the GPU works {units.duration(busy)} and "
        f"waits {units.duration(waited)} for the host to launch",
        "launch less: CUDA graphs, torch.compile or another fusing compiler, fused optimisers, "
        "larger batches",
        "analyze FILE --format markdown --table launch_stretches",
        savable,
    )


def _tiny_kernels(seen: Seen) -> Found | None:
    kernels = seen.trace.kernels
    tiny = kernels["end_ns"] - kernels["start_ns"] <= TINY_NS
    inside = tiny & (kernels["start_ns"] >= seen.window.start_ns)
    inside &= kernels["start_ns"] < seen.window.end_ns
    executions = int(seen.tables["kernels"]["executions"].sum())
    number = int(inside.sum())
    if not executions or number < TINY_SHARE * executions:
        return None
    savable = _either(ran(seen, kernels, inside), idle_before(seen, inside, _QUEUED))
    counted = int(_inside(kernels["start_ns"][inside], seen).sum())
    return Found(
        "tiny_kernels",
        f"Many kernels last no longer than {units.duration(TINY_NS)}",
        f"{_often(counted, 'tiny kernel', seen)} ({units.ratio(number / executions)} of all "
        f"executions); they and the pauses before them take {_most(savable, seen)}",
        "fuse them: torch.compile, fused optimisers (foreach, apex), CUDA graphs, larger batches",
        "analyze FILE --format markdown --table kernels",
        savable,
    )


def _exposed_communication(seen: Seen) -> Found | None:
    exposed = [
        subtract(subtract(each.kernels, each.compute), each.graphs)
        for each in seen.measured.devices
    ]
    if _nothing(exposed):
        return None
    calls = int(seen.tables["communication"]["calls"].sum())
    return Found(
        "exposed_communication",
        "Communication between GPUs is not hidden behind compute",
        f"{units.quantity(calls, 'communication kernel')}; for {_most(exposed, seen)} a GPU does "
        "nothing else, waiting for peers included",
        "overlap it with the backward pass (smaller or differently sized buckets, gradients as "
        "they come), compress or accumulate gradients, balance the ranks",
        "analyze FILE --format markdown --table communication",
        exposed,
    )


def _of_classes(seen: Seen, *classes: str) -> Bools:
    """Return which calls without wrappers that start in the window are of some classes."""
    calls = seen.launches.api_calls
    wanted = np.isin(call_classes(calls.categories("name")), places_of(*classes))
    inside = (calls["start_ns"] >= seen.window.start_ns) & (calls["start_ns"] < seen.window.end_ns)
    return np.asarray(np.append(wanted, False)[calls["name"]] & inside)


def _calls_that_wait(seen: Seen, kind: str) -> tuple[list[Pieces], Bools]:
    """Return the idle time that waits of a kind cause, and which waits those are."""
    waits = seen.waits.kind == WAITS.index(f"blocked: {kind}")
    idle = idle_of(seen, (f"{HOST}blocked_{kind}",))
    return _either(idle, idle_after_waits(seen, waits)), waits


def _allocations(seen: Seen) -> Found | None:
    savable, waits = _calls_that_wait(seen, "allocation")
    if _nothing(savable):
        return None
    calls = seen.launches.api_calls
    start = calls["start_ns"][_of_classes(seen, "allocation", "free")]
    waited = int((seen.waits.end[waits] - seen.waits.start[waits]).sum())
    return Found(
        "allocations",
        "The GPU waits while memory is allocated or freed",
        f"{_often(int(_inside(start, seen).sum()), 'call', seen)} that allocate or free memory; "
        f"the host waits {units.duration(waited)} in them, and the GPU stands still for "
        f"{_most(savable, seen)}",
        "allocate once and keep it: a caching allocator, cudaMallocAsync with a pool that keeps "
        "its memory, fixed shapes",
        "analyze FILE --format markdown --table api_calls",
        savable,
    )


def _module_loading(seen: Seen) -> Found | None:
    savable, waits = _calls_that_wait(seen, "module")
    if _nothing(savable):
        return None
    waited = int((seen.waits.end[waits] - seen.waits.start[waits]).sum())
    return Found(
        "module_loading",
        "Code is loaded or compiled within the window",
        f"the host waits {units.duration(waited)} in {int(waits.sum()):,} calls that load code, or "
        f"in first launches, and the GPU stands still for {_most(savable, seen)}",
        "warm up before measuring (every shape once), load eagerly (CUDA_MODULE_LOADING=EAGER), "
        "ship code for this GPU rather than PTX",
        "analyze FILE BETWEEN",
        savable,
    )


def _layout_conversions(seen: Seen) -> Found | None:
    kernels = seen.trace.kernels
    converts = [LAYOUT_KERNELS.search(name) is not None for name in kernels.categories("name")]
    rows = np.array([*converts, False])[kernels["name"]]
    if not rows.any():
        return None
    savable = ran(seen, kernels, rows)
    table = seen.tables["kernels"]
    names = [LAYOUT_KERNELS.search(name or "") is not None for name in table.texts("name")]
    share = float(table["share"][np.array(names, dtype=np.bool_)].sum())
    return Found(
        "layout_conversions",
        "Tensors are converted between layouts",
        f"{units.quantity(int(rows.sum()), 'execution')} of layout-conversion kernels "
        f"(nchwToNhwc and the like) take {units.ratio(share)} of kernel time",
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
    flushed = idle_of(seen, ("profiler",))
    idle = sum(int(each) for each in seen.tables["devices"]["idle_ns"])
    lost = sum(map(total, flushed))
    window = seen.window.duration_ns * len(seen.devices)
    if not idle or lost < PROFILER_SHARE * idle or lost < PROFILER_OF_WINDOW * window:
        return None
    return Found(
        "profiler_overhead",
        "The profiler itself makes the GPU wait",
        f"{units.duration(lost)} of idle time ({units.ratio(lost / idle)} of it) pass while the "
        "profiler writes its data out: idle time and step times are shorter without it",
        "record a shorter time (--duration, a capture range), fewer events, or leave out "
        "call stacks and sampling",
        "analyze FILE --format markdown --table capture_cost",
        None,
        flushed,
    )


RULES: tuple[Rule, ...] = (
    _data_loading,
    _outside_range,
    _pageable_copies,
    _synchronizations,
    _launch_bound,
    _tiny_kernels,
    _exposed_communication,
    _allocations,
    _module_loading,
    _layout_conversions,
    _slow_iterations,
    _profiler,
)
"""Every rule; a new one is a function and a line here."""
