"""The tables of utilization: how much of what the GPU can do kernels do, and what bounds them."""

from __future__ import annotations

from kernelscope.metrics.work_results import SHAPE_COLUMNS
from kernelscope.schema import Column, TableSchema, integer, real, text

_SHARES = (
    real(
        "value", "ratio", "work over peak · time; missing where only bounds are known, or it is > 1"
    ),
    real("low", "ratio", "the least that it can be; missing where nothing bounds it"),
    real("high", "ratio", "the most that it can be; missing where nothing bounds it"),
)

_UTILIZATION = (
    text(
        "resource",
        "a pipe of the table `peaks` (fp32, tensor_tf32_fp32, …), `tensor` where nothing tells the "
        "type, or a memory level: dram, l2",
    ),
    *_SHARES,
    real("peak_per_s", "see `peaks`", "the peak; missing where several may be meant"),
    text("clock_basis", "the clock that it is reckoned at", optional=True),
    text("source", "where the work comes from: counters"),
    integer("time_ns", "ns", "time of the executions whose work is known: the denominator"),
    real("coverage", "ratio", "time_ns over the time of all executions"),
    text(
        "diagnosis",
        "what may be wrong where the work is more than the peak allows; the value is missing then",
        optional=True,
    ),
)

PIPE_UTILIZATION = TableSchema(
    "pipe_utilization",
    "How much of each pipe and memory do kernels use?",
    (text("name", "the kernel's full name"), *_UTILIZATION),
)

PIPE_UTILIZATION_BY_SHAPE = TableSchema(
    "pipe_utilization_by_shape",
    "How much of each pipe and memory do kernels use in each launch shape?",
    (text("name", "the kernel's full name"), *SHAPE_COLUMNS, *_UTILIZATION),
)

BOUND: tuple[Column, ...] = (
    text(
        "bound",
        "what limits it: a pipe, dram, l2, balanced, latency, communication; or cannot_tell",
    ),
    text("bound_reason", "of latency the reason; of cannot_tell what would tell", optional=True),
    text("bound_evidence", "the figures that say so", optional=True),
    real("bound_margin", "ratio", "how far the deciding figure is from the threshold or the rival"),
    real("compute", "ratio", "utilization of the pipe used most"),
    real("compute_low", "ratio", "the least that it can be"),
    real("compute_high", "ratio", "the most that it can be: a grid of few blocks reaches few SMs"),
    text("compute_pipe", "that pipe", optional=True),
    real("memory", "ratio", "utilization of the memory level used most"),
    real("memory_low", "ratio", "the least that it can be"),
    real("memory_high", "ratio", "the most that it can be"),
    text("memory_level", "that level", optional=True),
    real("intensity", "flop/byte", "FLOPs of all pipes per byte of DRAM"),
    real("intensity_low", "flop/byte", "the least that it can be"),
    real("intensity_high", "flop/byte", "the most that it can be"),
    real("ridge", "flop/byte", "intensity at which the pipe's roof meets that of DRAM"),
    text(
        "roofline_side",
        "memory below the ridge, compute above; where it is does not say what bounds it",
        optional=True,
    ),
    real(
        "roof_share",
        "ratio",
        "FLOP/s over what the roofline allows at this intensity: min(peak, intensity · bandwidth)",
    ),
    real(
        "launch_limited",
        "ratio",
        "executions that the GPU waited for longer than they took, idle for the host or in launch "
        "latency, over all of them",
    ),
)

BOUNDS = TableSchema(
    "bounds",
    "What bounds each kernel?",
    (
        text("name", "the kernel's full name"),
        integer("executions", "count", "executions that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
        real("share", "ratio", "total_ns over the total of all kernels"),
        *BOUND,
    ),
)

BOUNDS_BY_SHAPE = TableSchema(
    "bounds_by_shape",
    "What bounds each kernel in each launch shape?",
    (
        text("name", "the kernel's full name"),
        *SHAPE_COLUMNS,
        integer("executions", "count", "executions that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
        real("share", "ratio", "total_ns over the total of all kernels"),
        *BOUND,
    ),
)

_TOTALS = (
    integer("active_ns", "ns", "time with at least one kernel or graph on the GPU"),
    real("gpu", "ratio", "GPU compute utilization: active_ns over the window"),
    real("coverage", "ratio", "share of active_ns in which all kernels' FP32 FLOPs are known"),
    real(
        "fp32",
        "ratio",
        "FP32 FLOPs over peak · active_ns; missing where less than 90 % is covered",
    ),
    real("fp32_low", "ratio", "the least that it can be: kernels that were not counted do none"),
    real("fp32_high", "ratio", "the most: those work at the peak of the SMs that they reach"),
    real("fp32_of_wall", "ratio", "FP32 FLOPs over peak · window: fp32 · gpu"),
    real("fp32_of_wall_low", "ratio", "the least that it can be"),
    real("fp32_of_wall_high", "ratio", "the most that it can be"),
    real(
        "ideal_compute_ratio",
        "ratio",
        "Σ over pipes of FLOPs / peak, over active_ns: fp32 where nothing else computes",
    ),
    real("ideal_compute_ratio_low", "ratio", "the least that it can be"),
    real("ideal_compute_ratio_high", "ratio", "the most that it can be"),
    text("clock_basis", "the clock of the FP32 peak", optional=True),
)

DEVICE_UTILIZATION = TableSchema(
    "device_utilization",
    "How much of its FP32 peak does each GPU use?",
    (integer("device", "id", "the GPU: the row's place in `devices`"), *_TOTALS),
)

UTILIZATION_BY_ITERATION = TableSchema(
    "utilization_by_iteration",
    "How much of its FP32 peak does each GPU use in each iteration?",
    (
        integer("index", "count", "the iteration, as in `iterations`"),
        integer("device", "id", "the GPU: the row's place in `devices`"),
        *_TOTALS,
    ),
)

PRECISION = TableSchema(
    "precision",
    "In which precision do matrix kernels run, and on which pipe?",
    (
        text("operation", "gemm, convolution, attention, rnn; by the name"),
        text("pipe", "where the arithmetic runs, by the name; missing where it does not tell",
             optional=True),
        integer("kernels", "count", "distinct names"),
        integer("executions", "count", "executions that start in the window"),
        integer("total_ns", "ns", "sum of durations inside the window"),
        real("share", "ratio", "total_ns over the total of all kernels"),
        text(
            "tensor_path",
            "tensor cores of this GPU that could do it faster, with the least loss of precision",
            optional=True,
        ),
        integer(
            "saving_bound_ns",
            "ns",
            "the most that it could save: total_ns less the time that its counted FLOPs, or none, "
            "take at the peak of tensor_path",
            optional=True,
        ),
    ),
)  # fmt: skip

TABLES = (
    PIPE_UTILIZATION,
    PIPE_UTILIZATION_BY_SHAPE,
    BOUNDS,
    BOUNDS_BY_SHAPE,
    DEVICE_UTILIZATION,
    UTILIZATION_BY_ITERATION,
    PRECISION,
)
