"""What is said of kernel names: columns of other tables, and a table of their own."""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

NAME_COLUMNS: tuple[Column, ...] = (
    text("family", "the library or compiler whose kernel it is, by its name", optional=True),
    text("operation", "what it computes, by its name", optional=True),
    text(
        "pipe",
        "where its arithmetic runs, where a type or instruction in the name proves it: FFMA, DFMA, "
        "HFMA2, ALU; on tensor cores HMMA, BF16, TF32, IMMA, FP8, FP4, DMMA, BMMA",
        optional=True,
    ),
)
"""What kernels and launch shapes say of a name; missing where it does not tell."""

DECODED_NAMES = TableSchema(
    "decoded_names",
    "What do the names of the kernels say of their work?",
    (
        text("name", "the kernel's full name, demangled where it was mangled"),
        text("short_name", "a short form of it for people, of which no two are alike"),
        *NAME_COLUMNS,
        text(
            "tensor_core", "yes, no, or missing: whether it uses tensor cores, by its name",
            optional=True,
        ),
        text(
            "pass",
            "forward, backward, data_gradient or weight_gradient: the form of the computation",
            optional=True,
        ),
        text("input_type", "type of the inputs in memory", optional=True),
        text("accumulate_type", "type of the sums", optional=True),
        text("output_type", "type of what is written", optional=True),
        text("instruction", "shape of the matrix instruction: 16x8x16", optional=True),
        integer("tile.0", "count", "rows of a block's tile; queries", optional=True),
        integer("tile.1", "count", "columns of a block's tile; keys", optional=True),
        integer("tile.2", "count", "depth of a block's tile; head dimension", optional=True),
        integer("stages", "count", "buffers of the software pipeline", optional=True),
        Column("split_k", "bool", "flag", "whether blocks share the inner dimension, by the name"),
        text("layout", "nn, tn, … of matrices; nhwc, nchw of images", optional=True),
        text("architecture", "for which GPUs it was written", optional=True),
        Column("auxiliary", "bool", "flag", "whether it only serves another kernel"),
        text("certainty", "certain; likely, where others may use such a name; unknown"),
        text("evidence", "the piece of the name that says it", optional=True),
        integer("executions", "count", "executions in the trace", optional=True),
        integer("total_ns", "ns", "sum of durations", optional=True),
        real("share", "ratio", "total_ns over the total of all kernels"),
    ),
)  # fmt: skip
