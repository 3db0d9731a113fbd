"""The columns that say how full launches can make a GPU."""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

OCCUPANCY: tuple[Column, ...] = (
    real(
        "occupancy",
        "ratio",
        "theoretical occupancy: warps resident on an SM over those that it can hold",
    ),
    text(
        "limiter",
        "what allows no more blocks: warps, registers, shared_memory, blocks, several joined by +; "
        "or carveout, the shared memory that the driver set aside; or none_fits",
        optional=True,
    ),
    integer("resident_blocks", "count", "blocks resident on an SM at most", optional=True),
    real("waves", "1", "blocks of the grid over those that the GPU holds at once"),
    real(
        "tail_efficiency",
        "ratio",
        "waves over waves rounded up: the share of the block slots that they can use",
    ),
    text(
        "occupancy_note", "why one of these is missing, or an upper bound; else none", optional=True
    ),
)

EXECUTION_OCCUPANCY = TableSchema(
    "execution_occupancy",
    "How full can each execution make the multiprocessors of its GPU?",
    OCCUPANCY,
)
