"""Small random runs that look for trouble: ties, nothing-long kernels, orphans, bad times."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kernelscope.oracle.events import (
    Call,
    Copy,
    Event,
    Graph,
    Kernel,
    Memset,
    Overhead,
    Range,
    Sync,
)
from kernelscope.oracle.gpus import A100, T4, Gpu
from kernelscope.oracle.plan import Device, Plan, Setup, plan_of

Dice = Callable[[int], int]
"""``dice(n)`` gives one of 0 … n − 1."""

KERNEL_NAMES = (
    "a",
    "void b<int>(T1)",
    "void ns::b<float>(T1)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm *)",
    "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWork)",
    'odd, "name"\twith\nall',
)
COPY_KINDS = (
    ("HtoD", "pageable", "device"),
    ("HtoD", "pinned", "device"),
    ("DtoH", "device", "pageable"),
    ("DtoD", "device", "device"),
    ("HtoH", "pinned", "pinned"),
)
RANGE_NAMES = ("step 1", "step 2", "forward", "", 'näme, with "all"')
FIRST_PROCESS = 500


@dataclass(frozen=True, slots=True)
class Luck:
    """What is drawn from: dice, the scale of all times in ns, and what may happen at all."""

    dice: Dice
    scale: int
    bad_times: bool
    peers: bool
    graphs: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where something runs, and who launched it."""

    process: int
    thread: int
    device: int
    context: int
    stream: int


def random_run(
    seed: int, *, bad_times: bool = True, peers: bool = False, graphs: bool = False
) -> Plan:
    """Return a small nasty run; the same seed gives the same run in every Python version.

    Times come from a short scale, so that starts and ends coincide all the time. Streams overlap
    with themselves. Launches may be missing, late, wrapped, or without a kernel; correlation ids
    repeat across processes; devices are shared or permuted.

    Parameters
    ----------
    seed : int
        Which run.
    bad_times : bool
        Whether some rows end before they start, or at 0.
    peers : bool
        Whether devices copy to each other.
    graphs : bool
        Whether some launches are of CUDA graphs traced as one unit, some of these with rows of
        their nodes, too; exports of 2020.5 cannot hold them.
    """
    roll = random.Random(seed).random

    def dice(sides: int) -> int:
        return int(roll() * sides)

    gpus = _gpus(1 + dice(3), dice)
    processes = [FIRST_PROCESS + number for number in range(1 + dice(3))]
    devices = tuple(
        Device(process, ordinal, gpu)
        for process in processes
        for ordinal, gpu in enumerate(_shuffled(len(gpus), dice))
    )
    luck = Luck(dice, (1, 10, 700)[dice(3)], bad_times, peers, graphs)
    events: list[Event] = []
    for process in processes:
        for number in range(dice(16)):
            place = Place(
                process, process + dice(3), dice(len(gpus)), 1 + dice(2), (7, 13, 20)[dice(3)]
            )
            events += _launched(place, 10 + number, luck)
        for thread in range(process, process + 2):
            events += _nest((process, thread), luck, (0, 40), 3)
    shuffled = [events[i] for i in _shuffled(len(events), dice)]
    return plan_of(shuffled, Setup(gpus=gpus, devices=devices))


def _gpus(count: int, dice: Dice) -> tuple[Gpu, ...]:
    ids = _shuffled(count, dice)
    return tuple(
        replace(
            (A100, T4)[dice(2)],
            id=ids[n],
            bus=f"0000:{n:02x}:00.0",
            uuid=f"{n:08x}-0000-4000-8000-{ids[n]:012x}",
        )
        for n in range(count)
    )


def _shuffled(count: int, dice: Dice) -> list[int]:
    left = list(range(count))
    return [left.pop(dice(len(left))) for _ in range(count)]


def _span(luck: Luck) -> tuple[int, int]:
    # From 50 on: 0 is no believable time of anything.
    start = (50 + luck.dice(30)) * luck.scale
    end = start + (0, 1, 2, 3, 5, 8, 13)[luck.dice(7)] * luck.scale
    if luck.bad_times and luck.dice(25) == 0:
        end = (start - luck.scale, 0)[luck.dice(2)]
    return start, end


def _launched(place: Place, correlation: int, luck: Luck) -> Iterator[Event]:
    """Yield an activity, most often with its launch, and what else comes with it."""
    dice = luck.dice
    start, end = _span(luck)
    where: dict[str, Any] = {
        "process": place.process,
        "device": place.device,
        "context": place.context,
        "stream": place.stream,
        "correlation": correlation,
    }
    kind = dice(10)
    name = "cudaLaunchKernel"
    if luck.graphs and dice(4) == 0:
        name = "cudaGraphLaunch"
        yield Graph(start, end, **where)
        if dice(3) == 0:
            yield _kernel((start, max(start, end)), where, dice)
    elif kind < 6:
        yield _kernel((start, end), where, dice)
        if end >= start and dice(12) == 0:  # a second node of one graph launch
            name = "cudaGraphLaunch"
            yield _kernel((end, end + luck.scale), where, dice)
    elif kind == 6:
        name = "cudaMemsetAsync"
        yield Memset(start, end, bytes=4 * (1 + dice(9)), **where)
    elif kind == 7 and dice(2):
        migrated = where | {"context": 0, "stream": 0, "correlation": 0}
        migrated |= {"src_memory": "unknown", "dst_memory": "unknown", "cause": "page fault"}
        yield Copy(start, end, "unified DtoH", 65_536, **migrated, address=4096)
    else:
        name = "cudaMemcpyAsync"
        yield _copy((start, end), where, luck)
    yield from _calls(place, correlation, name, start, luck)


def _kernel(span: tuple[int, int], where: dict[str, Any], dice: Dice) -> Kernel:
    name = KERNEL_NAMES[dice(len(KERNEL_NAMES))]
    shape = {"grid_x": 1 + dice(2), "grid_y": 1 + dice(2), "block_x": 32 * (1 + dice(2))}
    start, end = span
    return Kernel(start, end, name, **where, **shape)


def _copy(span: tuple[int, int], where: dict[str, Any], luck: Luck) -> Copy:
    start, end = span
    if luck.peers and where["device"] and luck.dice(2):
        ends = {"src_device": where["device"], "dst_device": 0}
        return Copy(start, end, "PtoP", 512, **where, **ends, src_memory="device")
    kind, source, target = COPY_KINDS[luck.dice(len(COPY_KINDS))]
    size = 1 + luck.dice(5000)
    return Copy(start, end, kind, size, **where, src_memory=source, dst_memory=target)


def _calls(place: Place, correlation: int, name: str, start: int, luck: Luck) -> Iterator[Event]:
    dice, scale = luck.dice, luck.scale
    fate = dice(12)
    who: dict[str, Any] = {"process": place.process, "thread": place.thread}
    begin = max(1, start - dice(12) * scale)
    if fate == 0:  # the launch was not recorded
        return
    if fate == 1:  # the device's clock runs ahead of the host's
        begin = start + 3_000 * dice(2) + 500
    end = begin + dice(4) * scale
    yield Call(begin, end, name, **who, correlation=correlation)
    if fate == 2:  # call chains: the same call a second time, around the first
        around = (begin - dice(2), end + dice(2))
        yield Call(*around, name, **who, correlation=correlation, kind="wrapper")
    if fate == 3:  # a call that launches nothing, under an id of its own
        alone: dict[str, Any] = {"correlation": 900 + correlation, "kind": "driver"}
        yield Call(end, end + scale, "cuCtxSetCurrent", **who, **alone)
    if fate == 4:
        yield Sync(end, end + scale, place.process, place.device, place.context, place.stream)
    if fate == 5:
        yield Overhead(begin, end, "CUPTI Buffer flush", **who)


def _nest(lane: tuple[int, int], luck: Luck, span: tuple[int, int], depth: int) -> Iterator[Event]:
    """Yield properly nested ranges between two moments on one thread."""
    at, high = span
    while depth and at < high and luck.dice(3):
        start = at + luck.dice(high - at)
        end = start + luck.dice(high - start + 1)
        name = RANGE_NAMES[luck.dice(len(RANGE_NAMES))]
        moments = ((40 + start) * luck.scale, (40 + end) * luck.scale)
        yield Range(*moments, name, *lane, registered=bool(luck.dice(2)))
        yield from _nest(lane, luck, (start, end), depth - 1)
        at = end + 1
