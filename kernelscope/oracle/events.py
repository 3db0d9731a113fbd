"""The kinds of events of a plan: one small frozen class each, whose fields are the columns.

All times are integer nanoseconds on the trace's clock.
"""

from __future__ import annotations

from dataclasses import dataclass

COMMUNICATION_PREFIXES: tuple[str, ...] = ("ncclKernel", "ncclDevKernel")
"""Kernels of a plan whose names begin so are communication; all others compute."""


def short_name(name: str) -> str:
    """Return a kernel's base name: ``void a::b<int>(T1)`` gives ``b``."""
    head = name.replace("<unnamed>", "unnamed").split("(", 1)[0].split("<", 1)[0]
    return head.split("::")[-1].split(" ")[-1]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One execution of a kernel on a device."""

    start: int
    end: int
    name: str = "kernel"
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    correlation: int = 0
    grid_x: int = 1
    grid_y: int = 1
    grid_z: int = 1
    block_x: int = 128
    block_y: int = 1
    block_z: int = 1
    registers: int = 32
    static_shared: int = 0
    dynamic_shared: int = 0
    carveout: int = 32768
    graph_node: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One CUDA call of the host.

    `kind` is ``runtime``, ``driver`` or ``wrapper``: the second row that captures with call
    chains hold of a call. `name` carries no ABI version; the writer adds it.
    """

    start: int
    end: int
    name: str = "cudaLaunchKernel"
    process: int = 1000
    thread: int = 1000
    correlation: int = 0
    kind: str = "runtime"
    result: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy, or one migration of unified memory (kinds ``unified HtoD``, …)."""

    start: int
    end: int
    kind: str = "HtoD"
    bytes: int = 4096
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    correlation: int = 0
    src_memory: str = "pinned"
    dst_memory: str = "device"
    src_device: int | None = None
    src_context: int | None = None
    dst_device: int | None = None
    dst_context: int | None = None
    cause: str | None = None
    address: int | None = None


@dataclass(frozen=True, slots=True)
class Memset:
    """One memset on a device."""

    start: int
    end: int
    bytes: int = 4096
    value: int = 0
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    correlation: int = 0
    memory: str = "device"


@dataclass(frozen=True, slots=True)
class Graph:
    """One execution of a CUDA graph that was traced as one unit: what ran inside is unknown.

    `graph` was instantiated as `executable`. A reader leaves it out where its launch has kernels
    of its own, too.
    """

    start: int
    end: int
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    correlation: int = 0
    graph: int = 1
    executable: int = 1


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a CUDA graph was made, anew or as a clone of the node `original`."""

    start: int
    end: int
    node: int = 1
    process: int = 1000
    thread: int = 1000
    original: int | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """One synchronisation: what is set tells its kind.

    Stream and event: a stream waits for an event. Event only: the host waits for it. Stream
    only: stream synchronize. Neither: device or context synchronize.
    """

    start: int
    end: int
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int | None = None
    event: int | None = None
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A CUDA event was recorded on a stream; the export holds no time of it."""

    event: int
    process: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """One NVTX range; `end` is None where the program never closed it.

    `style` is ``push_pop`` or ``start_end``; `end_thread` the thread that closed a start/end
    range where that is another one; `registered` strings are exported by id, others inline.
    """

    start: int
    end: int | None
    name: str = "range"
    process: int = 1000
    thread: int = 1000
    end_thread: int | None = None
    domain: str = ""
    style: str = "push_pop"
    registered: bool = False
    category: int | None = None
    color: int | None = None
    payload: int | None = None


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the profiler itself did on a thread."""

    start: int
    end: int
    name: str = "CUPTI Buffer flush"
    process: int = 1000
    thread: int = 1000


@dataclass(frozen=True, slots=True)
class Switch:
    """A thread went onto a core, or off it."""

    start: int
    on_core: bool
    cpu: int = 0
    process: int = 1000
    thread: int = 1000


@dataclass(frozen=True, slots=True)
class OsCall:
    """A call of the operating-system runtime that took longer than the capture's threshold."""

    start: int
    end: int
    name: str = "poll"
    process: int = 1000
    thread: int = 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one of a GPU's own counters, taken at a moment.

    `gpu` is the GPU's place in the plan, `metric` the name with its unit in brackets.
    """

    time: int
    metric: str = "SMs Active [Throughput %]"
    value: int = 0
    gpu: int = 0


Event = (
    Kernel
    | Call
    | Copy
    | Memset
    | Graph
    | GraphNode
    | Sync
    | EventRecord
    | Range
    | Overhead
    | Switch
    | OsCall
    | Sample
)
