"""The table of what GPUs can do at most."""

from __future__ import annotations

from kernelscope.schema import TableSchema, integer, real, text

PEAKS = TableSchema(
    "peaks",
    "What can each GPU do at most?",
    (
        integer("device", "id", "the GPU: the row's place in `devices`"),
        text(
            "pipe",
            "fp32, fp64, fp16, bf16; tensor_ with input and accumulate type; dram and l2 memory",
        ),
        text("instruction", "the machine instruction that reaches it", optional=True),
        text("input_type", "the type that is read", optional=True),
        text("accumulate_type", "the type that is summed in", optional=True),
        real("per_s", "see unit", "the peak, dense"),
        text("unit", "FLOP/s, OP/s (integers) or bytes/s; an FMA is two"),
        integer("clock_hz", "Hz", "the clock that it is reckoned at", optional=True),
        text("clock_basis", "which clock that is", optional=True),
        text(
            "confidence",
            "A several sources agree, or the device says so; B one that fits; C uncertain",
            optional=True,
        ),
        text("gpu", "what the trace's GPU was taken for"),
        text("matched_by", "name, specs, computed or --gpu"),
    ),
)
