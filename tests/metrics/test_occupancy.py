"""Resident blocks, by hand from the rules of NVIDIA's occupancy calculator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelscope.metrics.occupancy import Limits, resident_blocks, sm_fill

A100 = Limits(8, 0, 108, 32, 64, 65536, 167936)
V100 = Limits(7, 0, 80, 32, 64, 65536, 98304)
RTX4090 = Limits(8, 9, 128, 24, 48, 65536, 102400)
P100 = Limits(6, 0, 56, 32, 64, 65536, 65536)


@pytest.mark.parametrize(
    ("limits", "threads", "registers", "shared", "blocks"),
    [
        (A100, 32, 16, 0, 32),  # blocks of an SM
        (A100, 256, 32, 0, 8),  # 64 warps / 8
        (A100, 1024, 32, 0, 2),
        (A100, 100, 32, 0, 16),  # 100 threads are 4 warps
        (A100, 256, 64, 0, 4),  # 65536/4 // 2048 = 8 warps a partition, 32 in all, / 8
        (A100, 256, 255, 0, 1),  # 255·32 → 8192 per warp: 2 a partition, 8 in all, / 8
        (A100, 96, 40, 0, 16),  # 1280 per warp: 12 a partition, 48 in all, / 3 = 16
        (A100, 96, 33, 0, 16),  # 33·32 = 1056 → 1280: the same
        (A100, 128, 16, 49152, 3),  # 49152 + 1024 = 50176: 3 in 167936
        (A100, 128, 16, 0, 16),  # 1024 reserved: 164 would fit, warps allow 16
        (A100, 32, 16, 10000, 15),  # 11024 → 11136: 15 in 167936
        (V100, 128, 16, 49152, 2),  # nothing reserved before 8.0: 2 in 98304
        (V100, 32, 16, 10000, 9),  # → 10240: 9 in 98304
        (RTX4090, 256, 32, 0, 6),  # 48 warps / 8
        (P100, 64, 96, 0, 10),  # two partitions: 32768 // 3072 = 10, 20 in all, / 2
        (A100, 1024, 255, 0, 0),  # 8 warps fit, 32 are asked
        (A100, 128, 16, 200000, 0),
    ],
)
def test_resident_blocks(
    limits: Limits, threads: int, registers: int, shared: int, blocks: int
) -> None:
    one = [np.array([v], dtype=np.int64) for v in (threads, registers, shared)]
    assert resident_blocks(limits, *one).tolist() == [blocks]


def test_fill_is_the_share_of_block_slots_at_most_one() -> None:
    blocks = np.array([108, 864, 5000, 1], dtype=np.int64)
    threads = np.array([256, 256, 256, 2048], dtype=np.int64)
    same = np.full(4, 32, dtype=np.int64)
    fill = sm_fill(replace(A100, warps=60), blocks, threads, same, np.zeros(4, np.int64))
    # 60 warps hold 7 blocks of 8: 756 slots; 64 warps for one block do not fit.
    assert fill[:3].tolist() == [108 / 756, 1.0, 1.0]
    assert np.isnan(fill[3])
