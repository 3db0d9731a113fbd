"""The tables that metrics return: the contract between metrics and reports.

A dot in a column's name groups it in JSON: ``quantiles_ns.p5`` becomes ``{"quantiles_ns":
{"p5": …}}``, and numbered parts a list: ``grid.0, grid.1, grid.2`` become ``"grid": [x, y, z]``.
Totals are clipped to the window; counts, means, medians, extremes, deviations and quantiles are
over the events that *start* in the window, unclipped, and missing where none does.
"""

from __future__ import annotations

from kernelscope.metrics.decoder_results import NAME_COLUMNS
from kernelscope.metrics.occupancy_results import OCCUPANCY
from kernelscope.schema import Column, TableSchema, integer, real, text

_PROCESS = integer("process_id", "id", "the process", optional=True)
_DEVICE = integer("device_id", "id", "the process's own CUDA ordinal of the device")

QUANTILES: tuple[int, ...] = (5, 25, 75, 95, 99)
"""Percent points of every duration summary, by linear interpolation at (n − 1)·q."""

DURATION_STATISTICS: tuple[Column, ...] = (
    real("mean_ns", "ns", "mean duration"),
    real("median_ns", "ns", "median duration; of an even number the mean of the middle two"),
    integer("min_ns", "ns", "shortest duration", optional=True),
    integer("max_ns", "ns", "longest duration", optional=True),
    real("std_ns", "ns", "sample standard deviation (n − 1); 0 for a single event"),
    *(real(f"quantiles_ns.p{q}", "ns", f"{q} % of durations are at most this") for q in QUANTILES),
)

_KERNEL_TOTALS: tuple[Column, ...] = (
    integer("executions", "count", "executions that start in the window"),
    integer("total_ns", "ns", "sum of durations inside the window"),
    *DURATION_STATISTICS,
    real("share", "ratio", "total_ns over the total of all kernels"),
    real("share_of_window", "ratio", "total_ns over the window; above 1 where executions overlap"),
)

KERNELS = TableSchema(
    "kernels",
    "Which kernels take the device's time?",
    (text("name", "the kernel's full name"), *_KERNEL_TOTALS, *NAME_COLUMNS),
)

KERNELS_BY_DEVICE = TableSchema(
    "kernels_by_device",
    "On which device and for which process does each kernel run?",
    (
        text("name", "the kernel's full name"),
        _PROCESS,
        _DEVICE,
        integer("executions", "count", "executions that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
    ),
)

LAUNCH_SHAPES = TableSchema(
    "launch_shapes",
    "In which launch shapes does each kernel run?",
    (
        text("name", "the kernel's full name"),
        *(
            integer(f"grid.{i}", "count", f"blocks along {axis}", optional=True)
            for i, axis in enumerate("xyz")
        ),
        *(
            integer(f"block.{i}", "count", f"threads per block along {axis}", optional=True)
            for i, axis in enumerate("xyz")
        ),
        *_KERNEL_TOTALS,
        *OCCUPANCY,
        *NAME_COLUMNS,
    ),
)

API_CALLS = TableSchema(
    "api_calls",
    "Where do the host's CUDA calls take time?",
    (
        text("name", "the call, without its ABI version suffix"),
        integer("calls", "count", "calls that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
        *DURATION_STATISTICS,
    ),
)

_COPY_TOTALS: tuple[Column, ...] = (
    integer("operations", "count", "operations that start in the window"),
    integer(
        "bytes", "bytes", "bytes of those operations; missing where not recorded", optional=True
    ),
    integer("total_ns", "ns", "sum of durations inside the window"),
    *DURATION_STATISTICS,
    real(
        "bytes_per_s",
        "bytes/s",
        "Σ bytes over Σ duration of the operations that start in the window",
    ),
)

COPIES = TableSchema(
    "copies",
    "What is copied and set, between which memories, and how fast?",
    (
        text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, memset, unified HtoD, …"),
        text("src_memory", "kind of memory copied from", optional=True),
        text("dst_memory", "kind of memory written", optional=True),
        *_COPY_TOTALS,
    ),
)

COPIES_BY_KIND = TableSchema(
    "copies_by_kind",
    "How much does each kind of copy move?",
    (text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, memset, unified HtoD, …"), *_COPY_TOTALS),
)

PARTITION_CLASSES: tuple[str, ...] = (
    "compute_and_communication",
    "compute_and_copy",
    "compute_only",
    "opaque_graph",
    "communication_only",
    "copy_only",
    "memset_only",
    "idle",
)
"""The classes of device time; at each nanosecond the first that holds."""


def _when(name: str, meaning: str, *, unit: str = "ns") -> Column:
    """Return a figure that depends on when kernels ran: missing of a serialised capture."""
    return integer(name, unit, meaning, optional=True)


_DEVICE_TIME: tuple[Column, ...] = (
    integer("window_ns", "ns", "length of the window"),
    _when("busy_ns", "window less idle"),
    integer("kernel_ns", "ns", "union of kernel executions and graph launches"),
    integer("compute_ns", "ns", "union of compute kernels"),
    _when("idle_ns", "time with nothing on the device, of the recorded processes"),
    _when("leading_ns", "idle before the first activity"),
    _when("trailing_ns", "idle after the last activity"),
    _when("gap_count", "idle gaps between two activities", unit="count"),
    integer(
        "largest_gap_ns", "ns", "the longest of them; missing where there is none", optional=True
    ),
    real(
        "sm_fill",
        "ratio",
        "at most this share of the block slots was used, weighted by "
        "duration; missing where launch shapes or device limits are",
    ),
    *(
        _when(f"concurrency.{name}_ns", f"time with {what} kernels at once")
        for name, what in (
            ("one", "exactly one"),
            ("two", "two"),
            ("three_or_more", "three or more"),
        )
    ),
    *(
        _when(f"partition.{name}_ns", f"device time that is {name.replace('_', ' ')}")
        for name in PARTITION_CLASSES
    ),
)

DEVICES = TableSchema(
    "devices",
    "Where does the time of each GPU go?",
    (
        integer("index", "id", "the row's number, from 0"),
        text(
            "physical_id",
            "UUID, GPU id or ordinal of the GPU; missing where the capture "
            "cannot tell GPUs of several processes apart",
            optional=True,
        ),
        text("name", "the GPU's product name", optional=True),
        *_DEVICE_TIME,
    ),
)

DEVICE_ORDINALS = TableSchema(
    "device_ordinals",
    "Which (process, CUDA ordinal) is which GPU?",
    (
        integer("index", "id", "the row of `devices`"),
        _PROCESS,
        _DEVICE,
    ),
)

DEVICE_PROCESSES = TableSchema(
    "device_processes",
    "Where does the time of each GPU go, as one process sees it?",
    (
        _PROCESS,
        _DEVICE,
        text("name", "the GPU's product name", optional=True),
        _when("other_process_ns", "time in which only other processes were on the GPU"),
        *_DEVICE_TIME,
    ),
)

STREAMS = TableSchema(
    "streams",
    "How busy is each CUDA stream?",
    (
        _PROCESS,
        _DEVICE,
        integer("context_id", "id", "the CUDA context", optional=True),
        integer("stream_id", "id", "the CUDA stream", optional=True),
        integer("kernels", "count", "executions that start in the window"),
        integer("busy_ns", "ns", "union of the stream's kernels, copies and memsets"),
        _when("exclusive_ns", "busy time in which no other stream of the device was busy"),
        integer("largest_gap_ns", "ns", "longest pause inside the stream", optional=True),
    ),
)

GAPS = TableSchema(
    "gaps",
    "When was a device idle between two activities?",
    (
        integer(
            "process_id",
            "id",
            "the process; missing where the row is of a whole device",
            optional=True,
        ),
        integer(
            "device_id",
            "id",
            "CUDA ordinal; missing where the row is of a whole device",
            optional=True,
        ),
        integer("device", "id", "the row of `devices`"),
        integer("start_ns", "ns", "end of the activity before"),
        integer("end_ns", "ns", "start of the activity after"),
        integer("duration_ns", "ns", "how long nothing ran"),
    ),
)

HEALTH = TableSchema(
    "health",
    "Can this capture be trusted?",
    (
        text("code", "a stable name for scripts"),
        text("severity", "info, warning or error"),
        integer("count", "count", "how many events or tables it concerns"),
        text("message", "what it means for the numbers, and what to do"),
    ),
)

CHECKS = TableSchema(
    "checks",
    "Do the sums add up?",
    (
        text("name", "what must be equal"),
        integer("expected", "ns", "the whole"),
        integer("actual", "ns", "the sum of the parts"),
        Column("ok", "bool", "flag", "whether they are equal"),
    ),
)

CAPTURE_COST = TableSchema(
    "capture_cost",
    "What did profiling itself cost inside the window?",
    (
        text("name", "what the profiler did"),
        integer("events", "count", "events that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
    ),
)

RESULTS: tuple[TableSchema, ...] = (
    KERNELS,
    KERNELS_BY_DEVICE,
    LAUNCH_SHAPES,
    API_CALLS,
    COPIES,
    COPIES_BY_KIND,
    DEVICES,
    DEVICE_ORDINALS,
    DEVICE_PROCESSES,
    STREAMS,
    GAPS,
    HEALTH,
    CHECKS,
    CAPTURE_COST,
)
"""Every result table, in the order of a report."""
