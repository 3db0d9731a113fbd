"""The tables of work that was counted: FLOPs, bytes and instructions, and how they were joined."""

from __future__ import annotations

from kernelscope.schema import TableSchema, integer, real, text

SHAPE_COLUMNS = tuple(
    integer(
        f"{part}.{i}", "count", f"{what} along {axis}; missing where not recorded", optional=True
    )
    for part, what in (("grid", "blocks"), ("block", "threads per block"))
    for i, axis in enumerate("xyz")
)

_QUANTITY = (
    text(
        "quantity",
        "what was counted: FLOPs of CUDA cores by precision (fp32_flops, …), of tensor cores "
        "(tensor_flops), bytes of a memory level (dram_bytes, …), warp instructions",
    ),
    text("unit", "flop, op, bytes or count"),
)

COUNTED_WORK = TableSchema(
    "counted_work",
    "How much work does an execution of each kernel do, by its counters?",
    (
        text("kernel_name", "the kernel's name, as its source spells it", optional=True),
        *SHAPE_COLUMNS,
        *_QUANTITY,
        integer("executions", "count", "executions that were counted"),
        real("value", "see unit", "of a mean execution; missing where only bounds are known"),
        real("low", "see unit", "the least that any execution can have done"),
        real("high", "see unit", "the most; missing where nothing bounds it"),
        text("counters", "how it follows from them: 1 a + 2 b"),
        text(
            "caveat",
            "cold_cache: caches were emptied before, so that it is an upper bound; partial: the "
            "counters see a part only; shape: nothing tells the shape of the instructions; packed: "
            "nor on how many elements they worked",
            optional=True,
        ),
    ),
)

_WORK = (
    *_QUANTITY,
    real("value", "see unit", "of the counted executions; missing where only bounds are known"),
    real("low", "see unit", "the least that it can be; missing where nothing bounds it"),
    real("high", "see unit", "the most that it can be; missing where nothing bounds it"),
    real(
        "rate_per_s",
        "unit/s",
        "value over the time of the counted executions in this trace, never in the run that "
        "counted; missing where the profiler ran kernels one by one",
    ),
    real("intensity", "flop/byte", "of a memory level: counted FLOPs per byte"),
    real("intensity_low", "flop/byte", "the least that it can be"),
    real("intensity_high", "flop/byte", "the most that it can be; missing where nothing bounds it"),
    text("intensity_of", "the quantities whose FLOPs those are", optional=True),
    integer("executions", "count", "executions that start in the window"),
    integer("counted_executions", "count", "those of them that counters were found for"),
    real("coverage", "ratio", "the share of the time of all that the counted ones took"),
    text(
        "how",
        "alike: the executions of a launch shape differ by 2 % at most, each counts as their "
        "mean; order: the n-th execution counts as the n-th that was counted; bounds: neither; "
        "same execution: this trace holds the counters",
    ),
    text("source", "counters"),
    text("counters", "how it follows from them: 1 a + 2 b"),
    text("caveat", "see `counted_work`", optional=True),
)

WORK = TableSchema(
    "work",
    "How much work do kernels do, by their counters?",
    (text("name", "the kernel's full name"), *_WORK),
)

WORK_BY_SHAPE = TableSchema(
    "work_by_shape",
    "How much work do kernels do in each launch shape, by their counters?",
    (text("name", "the kernel's full name"), *SHAPE_COLUMNS, *_WORK),
)

COUNTER_COVERAGE = TableSchema(
    "counter_coverage",
    "Which kernels of the trace were counted, and how well does the other run fit?",
    (
        text("name", "the kernel's full name in the trace", optional=True),
        text("counted_name", "as the counters' source spells it", optional=True),
        *SHAPE_COLUMNS,
        text("status", "matched, only_in_trace or only_in_counters"),
        text(
            "matched_by",
            "exact; spelling; without parameters; base name: how the names agree; "
            "without shape: the counters do not say in which shape the kernel ran",
            optional=True,
        ),
        integer("executions", "count", "in the trace; 0 where it is not there"),
        integer("counted_executions", "count", "in the run that counted; 0 where it is not there"),
        real("spread", "ratio", "(most − least) / mean of the FLOPs of its executions"),
        text("how", "see `work`; missing where nothing matched", optional=True),
        integer("total_ns", "ns", "time of the executions in the trace"),
        real("share", "ratio", "total_ns over the time of all kernels"),
    ),
)
