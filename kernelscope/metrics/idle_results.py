"""What is said of a device's idle time: its causes, and how long its pauses are."""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

HOST = "host: "
"""How the causes begin that name what the launching thread did."""

CAUSES: tuple[tuple[str, str], ...] = (
    ("profiler", "the profiler wrote its data out on the launching thread, or held it up"),
    ("before_first", "before the device's first activity"),
    ("after_last", "after the device's last activity"),
    ("host: synchronization", "the launching thread waited in a synchronisation (detail)"),
    ("host: blocked_copy", "it was held up in a copy or memset call, beyond its first 50 µs"),
    ("host: blocked_allocation", "likewise in a call that allocates or frees memory"),
    ("host: blocked_module", "likewise in a call that loads code, or a launch that did so"),
    ("host: blocked_queue", "likewise in a launch, with 1000 or more launches outstanding"),
    ("host: cuda_call", "it was in another CUDA call (detail)"),
    ("host: data_loading", "it fetched data: a range or an operating-system call says so (detail)"),
    ("host: range", "it was in an NVTX range (detail: the innermost, digits folded)"),
    ("host: os_call", "it was in a call of the operating system (detail)"),
    ("host: off_core", "it was asleep, and nothing recorded says why"),
    ("host: code", "it ran code of which nothing is recorded"),
    ("host: unknown", "the thread that launched the next activity was not recorded"),
    ("in_call", "the call that launched the next activity had begun, and not returned (detail)"),
    ("launch_latency", "the next activity had just been launched"),
    ("intra_graph", "between two activities of one graph launch"),
    ("kernel_to_kernel", "the ordinary pause between two activities that wait in the queue"),
    ("dependency", "the next activity waited for another one (detail)"),
    ("unexplained", "the next activity had been launched long before, and no reason is known"),
    ("unknown_launch", "the call that launched the next activity was not recorded"),
)
"""Every cause of idle time and what it means; its place is its code."""

CAUSE_NAMES: tuple[str, ...] = tuple(name for name, _ in CAUSES)

_DEVICE = integer("device", "id", "the row of `devices`")
_CAUSE = text("cause", "why the device stood still: " + ", ".join(CAUSE_NAMES))
_DETAIL = text("detail", "what exactly: a call, a range, what was waited for; may be empty")

IDLE = TableSchema(
    "idle",
    "Why does each GPU stand still?",
    (
        _DEVICE,
        _CAUSE,
        _DETAIL,
        integer("total_ns", "ns", "idle time of this cause inside the window"),
        integer("gaps", "count", "pauses, leading and trailing ones included, with any such time"),
        real("share", "ratio", "total_ns over the device's idle time"),
        integer("largest_ns", "ns", "the longest unbroken stretch of it"),
    ),
)

GAP_SPECTRUM = TableSchema(
    "gap_spectrum",
    "Are a few long pauses to blame, or a million short ones?",
    (
        _DEVICE,
        integer(
            "up_to_ns",
            "ns",
            "pauses longer than the row before, up to this long; missing in the last row: any",
            optional=True,
        ),
        integer("gaps", "count", "pauses of that length, leading and trailing ones included"),
        integer("total_ns", "ns", "idle time in them"),
        integer("cumulative_ns", "ns", "idle time in them and in all shorter ones"),
        integer("edge_ns", "ns", "the part of total_ns that no activity stands before, or behind"),
    ),
)

IDLE_PIECES = TableSchema(
    "idle_pieces",
    "Why did a GPU stand still at each moment?",
    (
        _DEVICE,
        integer("start_ns", "ns", "when the stretch began"),
        integer("end_ns", "ns", "when it ended"),
        _CAUSE,
        _DETAIL,
        integer("gap", "id", "number of the pause that it belongs to: by device, then time"),
        Column(
            "ending_table",
            "category",
            "text",
            "table of the activity that ended the pause: kernels, copies or graphs; missing "
            "behind the last",
            optional=True,
        ),
        integer("ending_row", "id", "its row there", optional=True),
    ),
)

IDLE_BY_ITERATION = TableSchema(
    "idle_by_iteration",
    "Why did each GPU stand still in each iteration?",
    (
        integer("iteration", "id", "the iteration's number"),
        _DEVICE,
        _CAUSE,
        _DETAIL,
        integer("total_ns", "ns", "idle time of this cause within the iteration's whole period"),
    ),
)
