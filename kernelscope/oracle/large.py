"""Runs of any size, straight as columns: ten million kernels take seconds and about a gigabyte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.oracle.events import Call, Copy, Kernel, Memset, Range, Sync
from kernelscope.oracle.gpus import A100
from kernelscope.oracle.plan import MISSING, Column, Events, Plan, Setup, Thread, assemble
from kernelscope.trace import Categorical

Array = npt.NDArray[Any]

PROCESS = 30_000
BACKWARD = PROCESS + 7
PER_ITERATION = 1_000
VARIANTS = 16
"""Iterations that differ; a longer run repeats them, with durations of its own."""

STREAMS = (7, 13, 14, 20)
COPY_STREAM = 21
NAMES = 200
LAYERS = 20
HEAD = 2
"""Calls before the launches of an iteration: a copy and a memset. One synchronize follows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frame:
    """The iterations of a run: which variant each repeats, when it begins, its first call's id."""

    shape: dict[str, Array]
    variant: Array
    begin: Array
    base: Array
    kernels: int

    def __len__(self) -> int:
        return len(self.begin)

    def times(self, table: Array) -> Array:
        """Return times of the variants, one iteration after another."""
        return np.asarray((table[self.variant] + self.begin[:, np.newaxis]).reshape(-1))

    def repeat(self, table: Array) -> Array:
        """Return any figures of the variants, one iteration after another."""
        return np.asarray(table[self.variant].reshape(-1))


def large(kernels: int, *, names: int = NAMES) -> Plan:
    """Return a training-like run of `kernels` executions.

    Iterations of 1,000 kernels on four streams, launched by two threads in turn: a copy, a
    memset, launches, a synchronize; ranges ``iteration N`` > phase > layer.

    Parameters
    ----------
    kernels : int
        How many executions.
    names : int
        How many distinct kernel names.

    Returns
    -------
    Plan
        The run; :func:`kernelscope.oracle.answers.totals` has its totals.
    """
    count = -(-kernels // PER_ITERATION)
    shape = _variants()
    # Iterations follow one another; each lasts as long as its variant.
    variant = np.arange(count) % VARIANTS
    begin = 1_000_000_000 + np.concatenate(([0], np.cumsum(shape["length"][variant])[:-1]))
    base = 100 + np.arange(count, dtype=np.int64) * (PER_ITERATION + HEAD + 1)
    frame = Frame(shape, variant, begin, base, kernels)
    made = {
        "kernels": _kernels(frame, names),
        "calls": _calls(frame),
        "copies": _copies(frame),
        "memsets": _memsets(frame),
        "syncs": _syncs(frame),
        "ranges": _ranges(frame),
    }
    threads = (Thread(PROCESS, PROCESS, "python"), Thread(PROCESS, BACKWARD, "backward"))
    setup = Setup(gpus=(A100,), threads=threads, iteration_family="iteration #")
    return assemble(made, setup)


def mixed(numbers: Array) -> Array:
    """Scramble integers into 32 even-handed bits: repeatable in every NumPy version."""
    bits = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray((bits >> np.uint64(32)).astype(np.int64))


def _variants() -> dict[str, Array]:
    """Work out the iterations that differ, relative to their begin; shape (variants, kernels)."""
    size = (VARIANTS, PER_ITERATION)
    noise = mixed(np.arange(VARIANTS * PER_ITERATION)).reshape(size)
    took, pause = 3_200 + noise % 3_000, 1_500 + (noise >> 12) % 5_000
    launch = 24_000 + np.cumsum(took + pause, axis=1) - took - pause
    duration = 2_000 + (noise >> 3) % 14_000
    stream = np.where((noise >> 7) % 100 < 70, 0, 1 + (noise >> 5) % (len(STREAMS) - 1))
    start = np.empty(size, dtype=np.int64)
    for row in range(VARIANTS):
        for each in range(len(STREAMS)):
            mine = np.flatnonzero(stream[row] == each)
            # A kernel starts when it has arrived and the one before it has ended: in terms of
            # time less the work queued before it, that is a running maximum.
            before = np.cumsum(duration[row, mine] + 900) - duration[row, mine] - 900
            arrival = launch[row, mine] + took[row, mine] + 2_000
            start[row, mine] = before + np.maximum.accumulate(arrival - before)
    done = (start + duration).max(axis=1)
    return {
        "launch": launch,
        "launched": launch + took,
        "start": start,
        "duration": duration,
        "stream": np.array(STREAMS, dtype=np.int16)[stream],
        "done": done,
        "length": done + 30_000,
    }


def _over(kind: type[Any], rows: int, **columns: Column | int) -> Events:
    """Return events whose columns are given where they vary, and else one value or missing."""
    whole: dict[str, Column] = {}
    for name, default in _defaults(kind).items():
        value = columns.get(name, default)
        if isinstance(value, str):
            value = Categorical.constant(value, rows)
        elif value is None and name in ("cause", "domain"):
            value = Categorical.constant(None, rows)
        elif value is None or isinstance(value, int):
            narrow = np.int64(MISSING if value is None else value)
            value = np.broadcast_to(narrow, (rows,))
        whole[name] = value
    return Events(kind, whole)


def _defaults(kind: type[Any]) -> dict[str, Any]:
    sample = kind(0, 0)
    place = {"process": PROCESS, "thread": PROCESS}
    fields = {name: getattr(sample, name) for name in kind.__dataclass_fields__}
    return {name: place.get(name, value) for name, value in fields.items()}


def _kernels(frame: Frame, names: int) -> Events:
    shape, kernels = frame.shape, frame.kernels
    start = frame.times(shape["start"])[:kernels]
    number = np.arange(kernels, dtype=np.int64)
    # Repeats of a variant must not repeat its durations: up to an eighth is taken off each.
    end = start + frame.repeat(shape["duration"])[:kernels]
    end -= mixed(number) % 250
    name = ((number % PER_ITERATION) * 7919 % names).astype(np.int32)
    grid = (64 + name * 8).astype(np.int32)
    correlation = _correlations(frame.base)[:kernels]
    texts = tuple(
        f"void layer_kernel_{n}<float, (int){n % 8}>(const float *, float *, int)"
        if n % 10
        else f"ncclDevKernel_AllReduce_Sum_f32_RING_LL_{n}(ncclDevComm *, unsigned long)"
        for n in range(names)
    )
    return _over(
        Kernel,
        kernels,
        start=start,
        end=end,
        name=Categorical(name, texts),
        stream=frame.repeat(shape["stream"])[:kernels],
        correlation=correlation,
        grid_x=grid,
        block_x=(32 * (1 + name % 16)).astype(np.int16),
        registers=(16 + name % 200).astype(np.int16),
    )


def _correlations(base: Array) -> Array:
    launches = base[:, np.newaxis] + HEAD + np.arange(PER_ITERATION)
    return np.asarray(launches.reshape(-1).astype(np.int32))


def _calls(frame: Frame) -> Events:
    """Return copy, memset, launches and synchronize of each iteration, in this order."""
    shape, kernels = frame.shape, frame.kernels
    lead = np.array([[2_000, 11_000]] * VARIANTS), np.array([[9_000, 16_000]] * VARIANTS)
    last = shape["launched"][:, -1:] + 4_000
    start = np.hstack((lead[0], shape["launch"], last))
    end = np.hstack((lead[1], shape["launched"], np.maximum(last, shape["done"][:, None]) + 2_500))
    name = np.full(start.shape[1], 0, dtype=np.int8)
    name[[0, 1, -1]] = 1, 2, 3
    thread = np.full(start.shape[1], PROCESS, dtype=np.int32)
    thread[HEAD + 360 : HEAD + 920] = BACKWARD
    # Launches of the last iteration beyond the number asked for never happened.
    position = np.tile(np.arange(start.shape[1]), len(frame))
    row = np.repeat(np.arange(len(frame)), start.shape[1])
    wanted = row * PER_ITERATION + position - HEAD < kernels
    kept = wanted | (position == start.shape[1] - 1)
    texts = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize")
    return _over(
        Call,
        int(kept.sum()),
        start=frame.times(start)[kept],
        end=frame.times(end)[kept],
        name=Categorical(np.tile(name, len(frame))[kept].astype(np.int32), texts),
        thread=np.tile(thread, len(frame))[kept],
        correlation=(frame.base[row] + position)[kept].astype(np.int32),
    )


def _copies(frame: Frame) -> Events:
    size = 65_536 + mixed(np.arange(len(frame))) % 1_000_000
    start = frame.begin + 12_000
    return _over(
        Copy,
        len(frame),
        start=start,
        end=start + 1_300 + size // 24,
        bytes=size,
        stream=COPY_STREAM,
        correlation=frame.base,
    )


def _memsets(frame: Frame) -> Events:
    start = frame.begin + 18_500
    return _over(
        Memset,
        len(frame),
        start=start,
        end=start + 1_800,
        bytes=1 << 20,
        correlation=frame.base + 1,
    )


def _syncs(frame: Frame) -> Events:
    shape = frame.shape
    last = shape["launched"][:, -1] + 4_000
    end = np.maximum(last, shape["done"]) + 2_200
    return _over(
        Sync,
        len(frame),
        start=frame.begin + last[frame.variant] + 300,
        end=frame.begin + end[frame.variant],
        stream=STREAMS[0],
        correlation=frame.base + PER_ITERATION + HEAD,
    )


def _ranges(frame: Frame) -> Events:
    """Return iteration, three phases, and the layers of the forward phase, for each iteration."""
    shape = frame.shape
    launch, done = shape["launch"], shape["launched"]
    cuts = (0, 360, 920, PER_ITERATION)
    starts, ends = [np.full((VARIANTS, 1), 500)], [shape["length"][:, None] - 12_000]
    starts.append(launch[:, [0]] - 900)
    ends.append(done[:, [cuts[1] - 1]] + 500)
    edges = np.linspace(0, cuts[1], LAYERS + 1).astype(int)
    starts.append(launch[:, edges[:-1]] - 300)
    ends.append(done[:, edges[1:] - 1] + 200)
    for first, last in ((cuts[1], cuts[2]), (cuts[2], cuts[3])):
        starts.append(launch[:, [first]] - 500)
        ends.append(done[:, [last - 1]] + 500)
    start, end = np.hstack(starts), np.hstack(ends)
    labels = [f"iteration {n}" for n in range(len(frame))]
    texts = ("forward", *(f"layer {n}" for n in range(LAYERS)), "backward", "optimizer")
    code = np.tile(np.arange(-1, len(texts), dtype=np.int32), (len(frame), 1))
    code[:, 0] = len(texts) + np.arange(len(frame))
    rows = start.shape[1] * len(frame)
    inline = np.tile(np.arange(start.shape[1]) > 0, len(frame))
    return _over(
        Range,
        rows,
        start=frame.times(start),
        end=frame.times(end),
        name=Categorical(code.reshape(-1), (*texts, *labels)),
        registered=inline.astype(np.int8),
    )
