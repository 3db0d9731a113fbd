"""The tables of what CPU and GPU do at the same time; the rules are those of ``results``."""

from __future__ import annotations

from kernelscope.metrics.waiting import WAITS
from kernelscope.schema import Column, TableSchema, integer, real, text

SCHEDULING, API_CALLS, MIXED = CPU_SOURCES = (
    "scheduling",
    "api_calls",
    "scheduling and api_calls",
)
"""What can say when a thread of the host was busy."""

STATES: tuple[str, ...] = ("both", "gpu_only", "cpu_only", "neither")
"""What a moment can be; they sum to the window."""

BOUNDS: tuple[str, ...] = ("both_high", "gpu_only_low", "cpu_only_high", "neither_low")
"""The other end of each state, where the states are not exact."""

WAIT_NAMES: tuple[str, ...] = tuple(kind.removeprefix("blocked: ") for kind in WAITS)
"""The kinds of waiting as names of columns, in the order of `WAITS`."""

_PROCESS = integer("process_id", "id", "the process", optional=True)
_DEVICE = integer("device_id", "id", "the process's own CUDA ordinal of the device")
_SOURCE = text(
    "cpu_source",
    "what says when the host was busy: scheduling; api_calls (CUDA calls alone: both and CPU only "
    "are then lower bounds, GPU only and neither upper ones); or scheduling and api_calls, where "
    "scheduling was recorded of some threads or for some of the time",
    optional=True,
)

_STATES: tuple[Column, ...] = (
    integer("both_ns", "ns", "a driving thread and the device were busy", optional=True),
    integer("gpu_only_ns", "ns", "the device was busy, no driving thread was", optional=True),
    integer("cpu_only_ns", "ns", "a driving thread was busy, the device was not", optional=True),
    integer("neither_ns", "ns", "neither was busy", optional=True),
)

_BOUNDS: tuple[Column, ...] = tuple(
    integer(
        f"{name}_ns",
        "ns",
        f"{name.rpartition('_')[0]}_ns if the driving threads are taken to be busy throughout "
        "their NVTX ranges, their waits apart; missing where the states are exact or no ranges "
        "were recorded",
        optional=True,
    )
    for name in BOUNDS
)

_WAITING = {
    "synchronization": "in a synchronisation",
    "copy": "in a copy or memset, beyond its first 50 µs",
    "allocation": "in an allocation or a free, beyond its first 50 µs",
    "module": "for code to be loaded, or in a launch with room in the queue, beyond 50 µs",
    "queue": "for room in the launch queue",
}

OVERLAP = TableSchema(
    "overlap",
    "Do CPU and GPU work at the same time, or does one wait for the other?",
    (
        _PROCESS,
        _DEVICE,
        _SOURCE,
        text("reason", "why the states are missing", optional=True),
        *_STATES,
        *_BOUNDS,
        integer(
            "unscheduled_ns",
            "ns",
            "time in which some driving thread is known by its CUDA calls alone",
            optional=True,
        ),
        *(
            integer(
                f"waiting.{name}_ns",
                "ns",
                f"time in which no driving thread of the process was busy and one waited "
                f"{_WAITING[name]}; each moment counts once, under the first kind that holds",
                optional=True,
            )
            for name in WAIT_NAMES
        ),
        integer(
            "driving_threads", "count", "threads of the process inside a CUDA call in the window"
        ),
        integer(
            "other_threads_on_core_ns",
            "ns",
            "sum of the time on a core of its other threads; missing without scheduling records of "
            "the process",
            optional=True,
        ),
    ),
)

HOST_THREADS = TableSchema(
    "host_threads",
    "Which threads of the host worked, and which waited?",
    (
        _PROCESS,
        integer("thread_id", "id", "the thread, by the operating system's id", optional=True),
        text("name", "the thread's name", optional=True),
        Column("driving", "bool", "flag", "whether it was inside a CUDA call in the window"),
        text("cpu_source", "what says when it was busy, as in `overlap`"),
        integer(
            "on_core_ns",
            "ns",
            "time on a processor core, waiting included; missing without scheduling records",
            optional=True,
        ),
        integer("busy_ns", "ns", "time on a core, or inside CUDA calls, less waiting"),
        *(
            integer(f"waiting.{name}_ns", "ns", f"time in which it waited {_WAITING[name]}")
            for name in WAIT_NAMES
        ),
        integer("calls", "count", "CUDA calls that start in the window"),
    ),
)

CPU = TableSchema(
    "cpu",
    "How much of the machine's processor did the recorded processes use?",
    (
        integer("cores", "count", "processor cores of the machine", optional=True),
        integer("on_core_ns", "ns", "sum of the time of all threads on cores", optional=True),
        integer("scheduled_ns", "ns", "the part of the window in which scheduling was recorded"),
        real(
            "utilization",
            "ratio",
            "CPU utilization (TBD) of the recorded processes: on_core_ns over cores times "
            "scheduled_ns. TBD's own figure saw every process of the machine",
        ),
        text("reason", "why there is none", optional=True),
    ),
)

OVERLAP_BY_ITERATION = TableSchema(
    "overlap_by_iteration",
    "Do CPU and GPU work at the same time in each iteration?",
    (
        integer("index", "id", "the iteration's number in the trace, from 0"),
        _PROCESS,
        _DEVICE,
        _SOURCE,
        integer(
            "period_ns",
            "ns",
            "its period, from the trace's first CUDA activity to its last: sum of the states; also "
            "what lies behind the window, if it starts in it",
        ),
        *_STATES,
        *_BOUNDS,
    ),
)

_RANGE: tuple[Column, ...] = (
    text("domain", "NVTX domain; empty for the default domain"),
    text("style", "push_pop, start_end, or crossing"),
    _PROCESS,
    _DEVICE,
    _SOURCE,
    integer("instances", "count", "ranges that start in the window"),
    integer("open_ns", "ns", "time in which any of them was open in the window: sum of the states"),
    *_STATES,
    *_BOUNDS,
)

OVERLAP_BY_PATH = TableSchema(
    "overlap_by_path",
    "Do CPU and GPU work at the same time while a range of each path is open?",
    (
        Column("path", "category", "path", "names from the outermost range to this one"),
        text("name", "the range's own name"),
        *_RANGE,
    ),
)

OVERLAP_BY_NAME = TableSchema(
    "overlap_by_name",
    "Do CPU and GPU work at the same time while a range of each name is open?",
    (text("name", "the range's own name"), *_RANGE),
)
