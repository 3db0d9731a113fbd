"""Published limits of a few GPUs, as exports describe them. Source: CUDA device queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Gpu:
    """A physical GPU, in the units of recent exports: bytes, bytes/s and Hz.

    `id` is the profiler's own number, which need not be the CUDA ordinal.
    """

    name: str
    chip: str
    sm_count: int
    clock_hz: int
    memory_bytes: int
    memory_bytes_per_s: int
    l2_bytes: int
    compute: tuple[int, int]
    max_warps_per_sm: int
    max_blocks_per_sm: int
    shared_per_sm: int
    shared_per_block_optin: int
    copy_engines: int
    id: int = 0
    bus: str = "0000:01:00.0"
    uuid: str = "00000000-0000-4000-8000-000000000000"


def distinct(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return GPUs that can be told apart: as they are, or numbered in turn where ids repeat."""
    if len({gpu.id for gpu in gpus}) == len(gpus):
        return tuple(gpus)
    return tuple(
        replace(gpu, id=n, bus=f"0000:{n + 1:02x}:00.0", uuid=f"00000000-0000-4000-8000-{n:012x}")
        for n, gpu in enumerate(gpus)
    )


A100 = Gpu(
    name="NVIDIA A100-SXM4-40GB",
    chip="GA100",
    sm_count=108,
    clock_hz=1_410_000_000,
    memory_bytes=42_350_739_456,
    memory_bytes_per_s=1_555_200_000_000,
    l2_bytes=41_943_040,
    compute=(8, 0),
    max_warps_per_sm=64,
    max_blocks_per_sm=32,
    shared_per_sm=167_936,
    shared_per_block_optin=166_912,
    copy_engines=5,
)

RTX3080 = Gpu(
    name="NVIDIA GeForce RTX 3080",
    chip="GA102",
    sm_count=68,
    clock_hz=1_740_000_000,
    memory_bytes=10_495_524_864,
    memory_bytes_per_s=760_080_000_000,
    l2_bytes=5_242_880,
    compute=(8, 6),
    max_warps_per_sm=48,
    max_blocks_per_sm=16,
    shared_per_sm=102_400,
    shared_per_block_optin=101_376,
    copy_engines=2,
)

T4 = Gpu(
    name="Tesla T4",
    chip="TU104",
    sm_count=40,
    clock_hz=1_590_000_000,
    memory_bytes=15_828_320_256,
    memory_bytes_per_s=320_064_000_000,
    l2_bytes=4_194_304,
    compute=(7, 5),
    max_warps_per_sm=32,
    max_blocks_per_sm=16,
    shared_per_sm=65_536,
    shared_per_block_optin=65_536,
    copy_engines=3,
)
