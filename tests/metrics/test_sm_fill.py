"""Summing by distinct launch shape is the same as asking for each execution."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope import schema
from kernelscope.metrics.occupancy import Limits, sm_fill
from kernelscope.metrics.sm_fill import weighted_fill
from kernelscope.trace import Categorical, Table

A100 = Limits(8, 0, 108, 32, 64, 65536, 167936)


def random_kernels(rows: int, blocks: int, shared: int) -> Table:
    random = np.random.default_rng(rows)
    start = np.arange(rows, dtype=np.int64)
    one = np.broadcast_to(np.int32(1), (rows,))
    return Table.make(
        schema.KERNELS,
        {
            "start_ns": start,
            "end_ns": start,
            "device_id": one,
            "name": Categorical.constant("k", rows),
            "grid_x": random.integers(1, blocks, rows).astype(np.int32),
            "grid_y": one,
            "grid_z": random.integers(1, 3, rows).astype(np.int32),
            "block_x": random.integers(1, 1024, rows).astype(np.int32),
            "block_y": one,
            "block_z": one,
            "registers_per_thread": random.integers(0, 64, rows).astype(np.int32),
            "static_shared_bytes": random.integers(0, 1000, rows),
            "dynamic_shared_bytes": random.integers(0, shared, rows),
        },
    )


@pytest.mark.parametrize(
    ("rows", "blocks", "shared"),
    [
        (1, 2, 1),
        (5000, 3, 2),
        (400_000, 2**31 - 1, 2**10),  # nearly all distinct: more than the buckets hold
        (2000, 2**31 - 1, 2**28),  # the five figures do not fit one integer
    ],
)
def test_by_shape_is_by_execution(rows: int, blocks: int, shared: int) -> None:
    kernels = random_kernels(rows, blocks, shared)
    duration = np.random.default_rng(1).integers(0, 1000, rows)
    fill = sm_fill(
        A100,
        kernels["grid_x"].astype(np.int64) * kernels["grid_z"],
        kernels["block_x"].astype(np.int64),
        kernels["registers_per_thread"].astype(np.int64),
        kernels["static_shared_bytes"] + kernels["dynamic_shared_bytes"],
    )
    valid = ~np.isnan(fill)
    value, weight = weighted_fill(kernels, slice(None), duration, A100)
    assert weight == int(duration[valid].sum())
    assert value == pytest.approx(float((fill[valid] * duration[valid]).sum()), rel=1e-12)
