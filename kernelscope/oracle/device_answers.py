"""Answers about devices, processes on devices, streams and gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelscope.oracle.events import COMMUNICATION_PREFIXES, Copy, Graph, Kernel, Memset
from kernelscope.oracle.plan import Device, Plan
from kernelscope.oracle.sweep import (
    Activity,
    concurrency,
    gaps,
    inside,
    partition,
    pieces,
    time_with,
)

Answers = dict[str, Any]
Pair = tuple[int, int]

MARK = -1
"""Stream of the mark that a peer copy leaves on the device that did not issue it.

A mark occupies the GPU; it is no activity of the (process, ordinal) pair there.
"""


@dataclass(frozen=True, slots=True)
class Physical:
    """One row of ``devices``: a GPU, and which (process, ordinal) pairs mean it."""

    id: str | None
    name: str | None
    pairs: tuple[Pair, ...]


def activities_of(
    kernels: Iterable[Kernel],
    copies: Iterable[Copy],
    memsets: Iterable[Memset],
    graphs: Iterable[Graph] = (),
) -> list[Activity]:
    """Return everything that occupies a device; copies from host to host do not."""
    found: list[Activity] = []
    for kernel in kernels:
        communication = kernel.name.startswith(COMMUNICATION_PREFIXES)
        found.append(_activity(kernel, "communication" if communication else "compute"))
    for copy in copies:
        if copy.kind == "HtoH":
            continue
        mine = _activity(copy, "copy")
        found.append(mine)
        if copy.kind == "PtoP":
            others = {copy.src_device, copy.dst_device} - {copy.device, None}
            found += [
                replace(mine, device=other, stream=MARK) for other in others if other is not None
            ]
    found += [_activity(memset, "memset") for memset in memsets]
    return found + [_activity(graph, "graph") for graph in graphs]


def _activity(row: Kernel | Copy | Memset | Graph, what: str) -> Activity:
    return Activity(row.start, row.end, what, row.process, row.device, row.context, row.stream)


def physical_devices(plan: Plan, activities: Sequence[Activity], generation: str) -> list[Physical]:
    """Return which pairs are known to be one GPU: GPUs by id, then those known by ordinal only.

    From 2025 on an export says which GPU each (process, ordinal) is. Before, an ordinal that a
    single process uses is taken for a GPU, and ordinals that several use stay apart, unnamed.
    """
    pairs = sorted({(each.process, each.device) for each in activities if each.stream != MARK})
    gpu_of = {(device.process, device.ordinal): device.gpu for device in plan.devices}
    if generation == "2025.5":
        groups: dict[int, list[Pair]] = defaultdict(list)
        for pair in pairs:
            groups[gpu_of[pair]].append(pair)
        return [
            Physical(plan.gpus[gpu].uuid, plan.gpus[gpu].name, tuple(mine))
            for gpu, mine in sorted(groups.items(), key=lambda item: plan.gpus[item[0]].id)
        ]
    ordinals = [ordinal for _, ordinal in pairs]
    pairs = sorted(pairs, key=lambda pair: (ordinals.count(pair[1]) > 1, pair[1], pair[0]))
    return [
        Physical(
            str(ordinal) if ordinals.count(ordinal) == 1 else None,
            _name(plan, generation, (process, ordinal), gpu_of),
            ((process, ordinal),),
        )
        for process, ordinal in pairs
    ]


def _name(plan: Plan, generation: str, pair: Pair, gpu_of: dict[Pair, int]) -> str | None:
    """Return the GPU's name: 2020 has it by process and ordinal, 2022 by ordinal alone."""
    gpu = pair[1] if generation == "2022.4" else gpu_of[pair]
    return plan.gpus[gpu].name if gpu < len(plan.gpus) else None


def device_answers(
    plan: Plan, activities: Sequence[Activity], generation: str, window: tuple[int, int]
) -> Answers:
    """Return ``devices``, ``device_processes``, ``streams``, ``gaps`` and ``shared_devices``.

    Parameters
    ----------
    plan : Plan
        The run; for the devices' identity.
    activities : sequence of Activity
        What occupied devices, quarantined rows left out.
    generation : str
        The export's generation.
    window : (int, int)
        ``[start, end)`` in ns.
    """
    found = [
        (index, physical, _on(plan, activities, physical, generation))
        for index, physical in enumerate(physical_devices(plan, activities, generation))
    ]
    processes = [
        _process(physical, pair, mine, window)
        for _, physical, mine in found
        for pair in physical.pairs
    ]
    streams = [
        row
        for _, _, mine in found
        for row in _streams([each for each in mine if each.stream != MARK], window)
    ]
    together = [(index, _together(mine, window)) for index, _, mine in found]
    return {
        "devices": [_device(physical, mine, window) for _, physical, mine in found],
        "device_processes": sorted(processes, key=lambda r: (r["process_id"], r["device_id"])),
        "streams": sorted(streams, key=lambda r: [r[key] for key in STREAM_KEY]),
        "gaps": [gap for each in found for gap in _all_gaps(*each, window)],
        "shared_devices": [
            {"device": index, "overlap_ns": time} for index, time in together if time
        ],
    }


def _device(physical: Physical, mine: Sequence[Activity], window: tuple[int, int]) -> Answers:
    return {
        "physical_id": physical.id,
        "device_ids": [{"process_id": p, "device_id": d} for p, d in physical.pairs],
        "name": physical.name,
        **_device_time(mine, window),
    }


def _process(
    physical: Physical, pair: Pair, mine: Sequence[Activity], window: tuple[int, int]
) -> Answers:
    return {
        "process_id": pair[0],
        "device_id": pair[1],
        "name": physical.name,
        "other_process_ns": _only_others(mine, pair[0], window),
        **_device_time(_own(mine, pair), window),
    }


def _own(activities: Sequence[Activity], pair: Pair) -> list[Activity]:
    return [
        each for each in activities if (each.process, each.device) == pair and each.stream != MARK
    ]


def _all_gaps(
    index: int, physical: Physical, mine: Sequence[Activity], window: tuple[int, int]
) -> list[Answers]:
    """Return the gaps of a GPU (process and ordinal null), and those of each of its pairs."""
    rows = [_gap(None, None, index, pause) for pause in gaps(inside(mine, *window))]
    for process, device in physical.pairs:
        pauses = gaps(inside(_own(mine, (process, device)), *window))
        rows += [_gap(process, device, index, pause) for pause in pauses]
    return rows


def _on(
    plan: Plan, activities: Sequence[Activity], physical: Physical, generation: str
) -> list[Activity]:
    """Return what occupies a GPU, marks included where the export says which GPU they mean."""
    gpus = {device.gpu for device in plan.devices if _pair(device) in physical.pairs}
    meant = {_pair(device) for device in plan.devices if device.gpu in gpus}
    pairs = meant if generation == "2025.5" else set(physical.pairs)
    return [each for each in activities if (each.process, each.device) in pairs]


def _pair(device: Device) -> Pair:
    return (device.process, device.ordinal)


STREAM_KEY: tuple[str, ...] = ("process_id", "device_id", "context_id", "stream_id")


def _gap(process: int | None, device: int | None, index: int, pause: tuple[int, int]) -> Answers:
    start, end = pause
    return {
        "process_id": process,
        "device_id": device,
        "device": index,
        "start_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
    }


def _device_time(activities: Sequence[Activity], window: tuple[int, int]) -> Answers:
    start, end = window
    mine = inside(activities, start, end)
    cut = pieces(mine, start, end)
    classes = partition(cut)
    pauses = gaps(mine)
    first = min((each.start for each in mine), default=end)
    last = max((each.end for each in mine), default=end)
    return {
        "window_ns": end - start,
        "busy_ns": end - start - classes["idle"],
        "kernel_ns": time_with(cut, "compute", "communication", "graph"),
        "compute_ns": time_with(cut, "compute"),
        "idle_ns": classes["idle"],
        "leading_ns": max(0, first - start),
        "trailing_ns": max(0, end - last),
        "gap_count": len(pauses),
        "largest_gap_ns": max((e - s for s, e in pauses), default=None),
        "concurrency": concurrency(cut),
        "partition": {f"{name}_ns": length for name, length in classes.items()},
    }


def _only_others(activities: Sequence[Activity], process: int, window: tuple[int, int]) -> int:
    """Return how long other processes were on the device and this one was not, ns."""
    cut = pieces(inside(activities, *window), *window)
    return sum(
        piece.length
        for piece in cut
        if piece.running and all(each.process != process for each in piece.running)
    )


def _together(activities: Sequence[Activity], window: tuple[int, int]) -> int:
    """Return how long kernels of several processes were running at once, ns."""
    kernels = [each for each in activities if each.what in ("compute", "communication")]
    cut = pieces(inside(kernels, *window), *window)
    return sum(piece.length for piece in cut if len({each.process for each in piece.running}) > 1)


def _streams(activities: Sequence[Activity], window: tuple[int, int]) -> list[Answers]:
    mine = inside(activities, *window)
    cut = pieces(mine, *window)
    found = []
    for key in sorted({_stream_key(each) for each in activities}):
        own = [each for each in mine if _stream_key(each) == key]
        busy = [piece for piece in cut if any(_stream_key(e) == key for e in piece.running)]
        found.append(
            {
                **dict(zip(STREAM_KEY, key, strict=True)),
                "kernels": sum(
                    1
                    for each in own
                    if each.what in ("compute", "communication") and each.start >= window[0]
                ),
                "busy_ns": sum(piece.length for piece in busy),
                "exclusive_ns": sum(
                    piece.length
                    for piece in busy
                    if all(_stream_key(e) == key for e in piece.running)
                ),
                "largest_gap_ns": max((end - start for start, end in gaps(own)), default=None),
            }
        )
    return found


def _stream_key(each: Activity) -> tuple[int, int, int, int]:
    return (each.process, each.device, each.context, each.stream)
