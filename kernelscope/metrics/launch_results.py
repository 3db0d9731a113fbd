"""The tables that say how launches reach the device: calls, queue depth, launch-bound stretches.

Everything is per launch *call*, never per execution or graph node: a call that starts a CUDA
graph of 500 nodes is one launch, with one queue time, that of the node that ran first. A call is
*counted*, and enters every distribution, where the call starts; its own duration is summed
clipped to the window.
"""

from __future__ import annotations

from kernelscope.metrics.results import QUANTILES
from kernelscope.schema import Column, TableSchema, integer, real, text

GRAPH = "[CUDA graph]"
"""What stands for the kernel's name where a call launched a CUDA graph."""

_PROCESS = integer("process_id", "id", "the process", optional=True)
_THREAD = integer("thread_id", "id", "the thread that made the call", optional=True)
_DEVICE = integer("device_id", "id", "the process's own CUDA ordinal of the device")

STATISTICS: tuple[str, ...] = (
    "mean", "median", "min", "max", "std", *(f"p{q}" for q in QUANTILES),
)  # fmt: skip
"""What is said of the overheads, queue times and latencies of some calls."""

_OF_STATISTIC = {
    "mean": "mean",
    "median": "median",
    "min": "least",
    "max": "greatest",
    "std": "sample standard deviation (n − 1) of the",
    **{f"p{q}": f"{q} % are at most this:" for q in QUANTILES},
}


def _distribution(name: str, what: str) -> tuple[Column, ...]:
    columns = []
    for statistic in STATISTICS:
        meaning = f"{_OF_STATISTIC[statistic]} {what}"
        column = f"{name}.{statistic}"
        if statistic in ("min", "max"):
            columns.append(integer(column, "ns", meaning, optional=True))
        else:
            columns.append(real(column, "ns", meaning))
    return tuple(columns)


OVERHEAD = "duration of the call"
QUEUE = "time from the end of the call to the start of its first execution"
LATENCY = "time from the start of the call to the start of its first execution"

LAUNCH_CALLS = TableSchema(
    "launch_calls",
    "How long did each launch take to reach the device?",
    (
        integer("row", "id", "the call's row in api_calls, wrappers counted, from 0"),
        _PROCESS,
        _THREAD,
        integer("correlation_id", "id", "ties the call to its executions", optional=True),
        text("name", "the call, without its ABI version suffix"),
        text("kernel", f"the kernel that it launched, {GRAPH} for a graph"),
        Column("graph", "bool", "flag", "whether it launched a CUDA graph"),
        integer("start_ns", "ns", "when the call began"),
        integer("end_ns", "ns", "when the call returned"),
        integer("device_id", "id", "CUDA ordinal of the device of its first execution"),
        integer("first_start_ns", "ns", "when its first execution started"),
        integer("executions", "count", "kernels, graph nodes and whole graphs that it started"),
        integer("overhead_ns", "ns", OVERHEAD),
        integer(
            "queue_ns",
            "ns",
            f"{QUEUE}; missing where the execution started before the call returned, or where "
            "the clocks disagree",
            optional=True,
        ),
        integer(
            "latency_ns",
            "ns",
            f"{LATENCY}; missing where that lies more than 1 µs before the call",
            optional=True,
        ),
        integer(
            "overlap_ns",
            "ns",
            "time from the start of the first execution to the end of the call; missing where "
            "the call had returned by then, or where the clocks disagree",
            optional=True,
        ),
        integer(
            "intra_graph_gap_ns",
            "ns",
            "time between the first start and the last end of its graph's nodes in which none "
            "ran; missing for launches of kernels and of graphs traced as one unit",
            optional=True,
        ),
    ),
)

_FIGURES: tuple[Column, ...] = (
    integer("calls", "count", "launch calls that start in the window"),
    integer("executions", "count", "kernels, graph nodes and whole graphs that those started"),
    integer("total_ns", "ns", "sum of the calls' durations inside the window"),
    *_distribution("overhead_ns", OVERHEAD),
    integer("queued", "count", "calls with a queue time"),
    *_distribution("queue_ns", QUEUE),
    *_distribution("latency_ns", LATENCY),
    integer("overlapping", "count", "calls whose first execution started before they returned"),
    integer("overlap_ns", "ns", "sum of the time from that start to the end of the call"),
    integer(
        "unknown",
        "count",
        "calls without queue time and latency: the execution starts more than 1 µs before them",
    ),
    integer(
        "intra_graph_gap_ns",
        "ns",
        "time inside graph launches in which no node of theirs ran; missing where no graph was "
        "launched node by node",
        optional=True,
    ),
)

LAUNCHES = TableSchema(
    "launches",
    "What do launches cost the host, and how long do they wait for the device?",
    (
        text("name", "the call, without its ABI version suffix"),
        *_FIGURES,
        integer(
            "without_execution",
            "count",
            "launch calls by name, in the window, of which no execution is known (captured into "
            "a graph, failed, or not recorded); in no other figure",
        ),
    ),
)

LAUNCHES_BY_KERNEL = TableSchema(
    "launches_by_kernel",
    "Which kernels' launches cost the host, or wait for the device?",
    (text("name", f"the kernel's full name, {GRAPH} for launches of graphs"), *_FIGURES),
)

LAUNCH_TOTALS = TableSchema(
    "launch_totals",
    "How long do all launches take to reach the device?",
    (text("name", "all"), *_FIGURES),
)

DEPTHS: tuple[tuple[str, int], ...] = (
    ("0", 0), ("1", 1), ("2_to_9", 2), ("10_to_99", 10), ("100_to_999", 100),
    ("1000_or_more", 1000),
)  # fmt: skip
"""Classes of queue depth: name, and the least depth of each."""

QUEUE_DEPTH = TableSchema(
    "queue_depth",
    "How many launches does the host keep ahead of the device?",
    (
        _PROCESS,
        _DEVICE,
        integer("launches", "count", "launch calls that start in the window"),
        real(
            "mean",
            "count",
            "launch calls begun whose first execution had not started, mean over the window's "
            "time; missing where the window is empty",
        ),
        integer("max", "count", "the most of them at once"),
        *(
            integer(f"time_ns.depth_{name}", "ns", f"time with {name.replace('_', ' ')} of them")
            for name, _ in DEPTHS
        ),
        integer("unknown", "count", "launches in the window left out: the clocks disagree"),
    ),
)

QUEUE_DEPTH_STEPS = TableSchema(
    "queue_depth_steps",
    "How does the number of launches ahead of the device change over time?",
    (
        _PROCESS,
        _DEVICE,
        integer("start_ns", "ns", "from when on"),
        integer("end_ns", "ns", "until when"),
        integer("depth", "count", "launch calls begun whose first execution had not started"),
    ),
)

LAUNCH_STRETCHES = TableSchema(
    "launch_stretches",
    "When did a device wait for the host's launches longer than it worked?",
    (
        integer("device", "id", "the row of `devices`"),
        integer("start_ns", "ns", "start of the first wait"),
        integer("end_ns", "ns", "end of the last activity"),
        integer("duration_ns", "ns", "how long the stretch lasts"),
        integer("waits", "count", "pieces of activity in it, waited for longer than they lasted"),
        integer("executions", "count", "kernels and whole graphs that start in it"),
        integer("busy_ns", "ns", "time in it with anything on the device"),
        integer("idle_ns", "ns", "time in it with nothing on the device"),
        integer("waiting_ns", "ns", "the part of idle_ns spent waiting for a launch"),
    ),
)

RESULTS: tuple[TableSchema, ...] = (
    LAUNCHES,
    LAUNCHES_BY_KERNEL,
    LAUNCH_TOTALS,
    LAUNCH_CALLS,
    QUEUE_DEPTH,
    QUEUE_DEPTH_STEPS,
    LAUNCH_STRETCHES,
)
"""The tables of this topic."""
