"""Occupancy: by hand, by NVIDIA's calculator, and by a slow second implementation."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.device import SmLimits, sm_limits
from kernelscope.metrics.occupancy import (
    RESOURCES,
    UNLIMITED,
    Launches,
    Limits,
    block_limits,
    occupancy,
    resident_blocks,
    sm_fill,
)
from tests.metrics import slow_occupancy as slow

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


CAPABILITIES = (
    (3, 0), (3, 2), (3, 5), (3, 7), (5, 0), (5, 2), (5, 3), (6, 0), (6, 1), (6, 2), (7, 0), (7, 2),
    (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1),
)  # fmt: skip


def held_by(major: int, minor: int) -> SmLimits:
    held = sm_limits(major, minor)
    assert held is not None
    return held


def limits_of(major: int, minor: int, sm_count: int = 10) -> Limits:
    held = held_by(major, minor)
    return Limits(
        major, minor, sm_count, held.blocks, held.threads // 32, held.registers, held.shared_bytes,
        held.block_registers, held.block_shared_bytes,
    )  # fmt: skip


def launch(
    threads: int, registers: int, shared: int = 0, *, blocks: int = 1, carveout: int = 0,
    cluster: int = 1,
) -> Launches:  # fmt: skip
    values = (blocks, threads, registers, shared, carveout, cluster)
    return Launches(*(np.array([value], dtype=np.int64) for value in values))


def golden() -> list[dict[str, str]]:
    path = Path(__file__).with_name("occupancy_by_nvidia.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_limits_are_those_that_nvidias_calculator_gives() -> None:
    """Its answers for sixteen launches a capability, of cuda_occupancy.h of CUDA 13.5."""
    rows = golden()
    assert {row["capability"] for row in rows} == {f"{a}.{b}" for a, b in CAPABILITIES}
    for row in rows:
        major, minor = map(int, row["capability"].split("."))
        shared = int(row["static_bytes"]) + int(row["dynamic_bytes"])
        one = launch(int(row["threads"]), int(row["registers"]), shared)
        found = dict(zip(RESOURCES, block_limits(limits_of(major, minor), one)[:, 0], strict=True))
        theirs = {name: int(row[f"by_{name}"] or UNLIMITED) for name in RESOURCES}
        assert found == theirs, row
        assert occupancy(limits_of(major, minor), one).resident_blocks[0] == int(row["blocks"])


@given(data=st.data(), capability=st.sampled_from(CAPABILITIES))
def test_it_is_what_placing_block_after_block_gives(
    data: st.DataObject, capability: tuple[int, int]
) -> None:
    limits = limits_of(*capability)
    held = held_by(*capability)
    most = held.block_shared_bytes
    threads = data.draw(st.integers(1, 1100) | st.sampled_from((32, 64, 128, 256, 512, 1024)))
    registers = data.draw(st.integers(0, 258))
    shared = data.draw(st.integers(0, most + 2048) | st.integers(0, 4096))
    carveout = data.draw(st.sampled_from((0, *held.shared_sizes)))
    one = launch(threads, registers, shared, carveout=carveout)
    found = occupancy(limits, one)

    expected = slow.resident(limits, threads, registers, shared, carveout)
    assert found.resident_blocks.tolist() == [expected]
    if expected:
        warps = -(-threads // 32)
        assert found.occupancy.tolist() == [expected * warps / (held.threads // 32)]
    else:
        assert np.isnan(found.occupancy).all()
        assert found.limiter == ["none_fits"]
        refused = slow.refused(limits, threads, registers, shared)
        assert refused is not None
        assert block_limits(limits, one)[RESOURCES.index(refused), 0] == 0


@given(data=st.data(), capability=st.sampled_from(CAPABILITIES))
def test_the_limiter_is_what_more_of_would_let_another_block_in(
    data: st.DataObject, capability: tuple[int, int]
) -> None:
    """Of each resource alone, as much as one could want: only all limiters together help."""
    limits = limits_of(*capability)
    most = held_by(*capability).block_shared_bytes
    one = launch(
        data.draw(st.integers(1, 1024)),
        data.draw(st.integers(0, 128)),
        data.draw(st.integers(0, most)),
    )
    found = occupancy(limits, one)
    if not found.resident_blocks[0]:
        return
    named = set(found.limiter[0].split("+"))
    assert named <= set(RESOURCES)
    plenty = {
        "warps": {"warps": 10**6},
        "registers": {"registers": 10**9},
        "shared_memory": {"shared_bytes": 10**9},
        "blocks": {"blocks": 10**6},
    }
    more: dict[str, int] = {}
    for name in named:
        more |= plenty[name]
    relieved = replace(limits, block_shared_bytes=most, **more)
    assert occupancy(relieved, one).resident_blocks[0] > found.resident_blocks[0]
    for name in named if len(named) > 1 else ():
        rest = {key: value for key, value in more.items() if key not in plenty[name]}
        partly = replace(limits, block_shared_bytes=most, **rest)
        assert occupancy(partly, one).resident_blocks[0] == found.resident_blocks[0]


def test_the_carveout_limits_and_is_named_where_nothing_else_does() -> None:
    limits = limits_of(8, 6)
    free = occupancy(limits, launch(128, 32, 7168))
    held = occupancy(limits, launch(128, 32, 7168, carveout=32 << 10))
    assert (free.resident_blocks[0], free.limiter) == (12, ["warps+shared_memory"])
    assert (held.resident_blocks[0], held.limiter) == (4, ["carveout"])
    # What is less than a block takes is none of this launch's settings.
    assert occupancy(limits, launch(128, 32, 9000, carveout=8192)).resident_blocks[0] == 10
    # The driver sets aside what is of use: registers limit, not the shared memory it left.
    fitted = occupancy(limits, launch(256, 255, 0, carveout=8192))
    assert (fitted.resident_blocks[0], fitted.limiter) == (1, ["registers"])
    # 5.x and 6.x have shared memory of its own.
    assert occupancy(limits_of(6, 1), launch(32, 16, 8192, carveout=8192)).resident_blocks[0] == 12


def test_waves_and_the_tail() -> None:
    limits = limits_of(8, 0, sm_count=108)  # 8 blocks of 256 threads an SM: 864 at once
    for blocks, waves, tail in (
        (864, 1.0, 1.0), (865, 865 / 864, 865 / 864 / 2), (432, 0.5, 0.5), (8640, 10.0, 1.0),
        (2**62, 2**62 / 864, 1.0),
    ):  # fmt: skip
        found = occupancy(limits, launch(256, 32, blocks=blocks))
        assert found.waves.tolist() == [waves]
        assert found.tail_efficiency.tolist() == [pytest.approx(tail, rel=1e-12)]


def test_clusters_leave_waves_unknown_and_the_sm_as_it_is() -> None:
    limits = limits_of(9, 0)
    alone = occupancy(limits, launch(256, 64, 1024, blocks=100))
    clustered = occupancy(limits, launch(256, 64, 1024, blocks=100, cluster=4))
    assert clustered.resident_blocks.tolist() == alone.resident_blocks.tolist()
    assert np.isnan(clustered.waves).all()
    assert np.isnan(clustered.tail_efficiency).all()
    assert not np.isnan(alone.waves).any()
