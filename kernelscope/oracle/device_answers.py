"""Answers about devices, processes on devices, streams and gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelscope.oracle.events import COMMUNICATION_PREFIXES, Copy, Kernel, Memset
from kernelscope.oracle.plan import Plan
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
"""Stream of the mark that a peer copy leaves on the device that did not issue it."""


@dataclass(frozen=True, slots=True)
class Physical:
    """One row of ``devices``: a GPU, and which (process, ordinal) pairs mean it."""

    id: str | None
    name: str | None
    pairs: tuple[Pair, ...]


def activities_of(
    kernels: Iterable[Kernel], copies: Iterable[Copy], memsets: Iterable[Memset]
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
    return found + [_activity(memset, "memset") for memset in memsets]


def _activity(row: Kernel | Copy | Memset, what: str) -> Activity:
    return Activity(row.start, row.end, what, row.process, row.device, row.context, row.stream)


def physical_devices(plan: Plan, activities: Sequence[Activity], generation: str) -> list[Physical]:
    """Return which pairs are known to be one GPU.

    From 2025 on an export says which GPU each (process, ordinal) is. Before, an ordinal that a
    single process uses is taken for a GPU, and ordinals that several use stay apart, unnamed.
    """
    pairs = sorted({(each.process, each.device) for each in activities})
    gpu_of = {(device.process, device.ordinal): device.gpu for device in plan.devices}
    if generation == "2025.5":
        groups: dict[int, list[Pair]] = defaultdict(list)
        for pair in pairs:
            groups[gpu_of[pair]].append(pair)
        found = [
            Physical(str(plan.gpus[gpu].id), plan.gpus[gpu].name, tuple(mine))
            for gpu, mine in groups.items()
        ]
        return sorted(found, key=lambda device: device.pairs)
    ordinals = [ordinal for _, ordinal in pairs]
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
    devices, processes, streams, all_gaps, shared = [], [], [], [], []
    for index, physical in enumerate(physical_devices(plan, activities, generation)):
        mine = [each for each in activities if (each.process, each.device) in physical.pairs]
        time, pauses = _device_time(mine, window)
        devices.append(
            {
                "physical_id": physical.id,
                "device_ids": [{"process_id": p, "device_id": d} for p, d in physical.pairs],
                "name": physical.name,
                **time,
            }
        )
        all_gaps += [_gap(None, None, index, pause) for pause in pauses]
        together = _together(mine, window)
        shared += [{"device": index, "overlap_ns": together}] if together else []
        for process, device in physical.pairs:
            own = [each for each in mine if (each.process, each.device) == (process, device)]
            time, pauses = _device_time(own, window)
            processes.append(
                {
                    "process_id": process,
                    "device_id": device,
                    "name": physical.name,
                    "other_process_ns": _only_others(mine, process, window),
                    **time,
                }
            )
            all_gaps += [_gap(process, device, index, pause) for pause in pauses]
        streams += _streams(mine, window)
    return {
        "devices": devices,
        "device_processes": sorted(processes, key=lambda r: (r["process_id"], r["device_id"])),
        "streams": sorted(streams, key=lambda r: [r[key] for key in STREAM_KEY]),
        "gaps": all_gaps,
        "shared_devices": shared,
    }


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


def _device_time(
    activities: Sequence[Activity], window: tuple[int, int]
) -> tuple[Answers, list[tuple[int, int]]]:
    start, end = window
    mine = inside(activities, start, end)
    cut = pieces(mine, start, end)
    classes = partition(cut)
    pauses = gaps(mine)
    first = min((each.start for each in mine), default=end)
    last = max((each.end for each in mine), default=end)
    time = {
        "window_ns": end - start,
        "busy_ns": end - start - classes["idle"],
        "kernel_ns": time_with(cut, "compute", "communication"),
        "compute_ns": time_with(cut, "compute"),
        "idle_ns": classes["idle"],
        "leading_ns": max(0, first - start),
        "trailing_ns": max(0, end - last),
        "gap_count": len(pauses),
        "largest_gap_ns": max((e - s for s, e in pauses), default=None),
        "concurrency": concurrency(cut),
        "partition": {f"{name}_ns": length for name, length in classes.items()},
    }
    return time, pauses


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
    for key in sorted({_stream_key(each) for each in mine if each.stream != MARK}):
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
