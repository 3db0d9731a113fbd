"""Occupancy of executions and of launch shapes: the same, and absent with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope import schema
from kernelscope.metrics.device_identity import identify, limits_of
from kernelscope.metrics.kernels import launch_shapes
from kernelscope.metrics.launch_occupancy import (
    CLUSTERS,
    DIFFERS,
    DOES_NOT_FIT,
    NO_CARVEOUT,
    NO_LIMITS,
    NOT_RECORDED,
    execution_occupancy,
)
from kernelscope.metrics.window import Window
from kernelscope.parsers import read
from kernelscope.trace import Table, Trace
from tests import build
from tests.corpus import each, nsys_traces
from tests.metrics import slow_occupancy as slow

LAUNCH: dict[str, Any] = {
    "grid_x": 432, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
    "registers_per_thread": 64, "static_shared_bytes": 0, "dynamic_shared_bytes": 0,
}  # fmt: skip
FIGURES = (
    "occupancy", "limiter", "resident_blocks", "waves", "tail_efficiency", "occupancy_note",
)  # fmt: skip


def traced(*launches: dict[str, Any], **device: Any) -> Trace:
    some = [
        build.kernels((10 * i, 10 * i + 5), **{**LAUNCH, **launch})
        for i, launch in enumerate(launches)
    ]
    return build.trace(kernels=build.joined(*some), devices=build.devices(device))


def rows(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in FIGURES) for row in table.records()]


def test_a_launch_shape_says_how_full_it_makes_the_gpu() -> None:
    found = traced({})  # 4 blocks of 8 warps and 64 registers: half of 64 warps; 432 at once
    expected = (0.5, "registers", 4, 1.0, 1.0, None)
    assert rows(launch_shapes(found)) == [expected]
    assert rows(execution_occupancy(found)) == [expected]


@pytest.mark.parametrize(
    ("launch", "device", "note"),
    [
        ({"registers_per_thread": None}, {}, NOT_RECORDED),
        ({"grid_y": None}, {}, NOT_RECORDED),
        ({"static_shared_bytes": None}, {}, NOT_RECORDED),
        ({}, {"compute_major": None}, NO_LIMITS),
        ({}, {"sm_count": None}, NO_LIMITS),
        ({}, {"compute_major": 2, "compute_minor": 1}, NO_LIMITS),
    ],
)
def test_what_is_missing_has_a_reason(
    launch: dict[str, Any], device: dict[str, Any], note: str
) -> None:
    found = traced(launch, **device)
    (row,) = rows(launch_shapes(found))
    assert row == (None, None, None, None, None, note)
    assert len(execution_occupancy(found)) == 1


def test_what_does_not_fit_was_not_this_gpu() -> None:
    (row,) = launch_shapes(traced({"block_x": 1024, "registers_per_thread": 255})).records()
    assert row["limiter"] == "none_fits"
    assert row["resident_blocks"] is None
    assert row["occupancy"] is None
    assert row["occupancy_note"] == DOES_NOT_FIT


def test_bounds_are_called_so() -> None:
    (row,) = launch_shapes(traced({"dynamic_shared_bytes": 50_000})).records()
    assert (row["resident_blocks"], row["occupancy_note"]) == (3, NO_CARVEOUT)
    told = traced({"dynamic_shared_bytes": 50_000, "shared_carveout_bytes": 102_400})
    (row,) = launch_shapes(told).records()
    assert (row["resident_blocks"], row["limiter"]) == (2, "carveout")
    assert row["occupancy_note"] is None
    hopper = {"compute_major": 9, "compute_minor": 0, "max_shared_bytes_per_sm": 233_472}
    (row,) = launch_shapes(
        traced({"cluster_x": 2, "cluster_y": 2, "cluster_z": 1}, **hopper)
    ).records()
    assert row["occupancy"] == 0.5
    assert row["waves"] is None
    assert row["occupancy_note"] == CLUSTERS
    (row,) = launch_shapes(traced({"cluster_x": 0, "cluster_y": 0, "cluster_z": 0})).records()
    assert row["waves"] == 1.0


def test_executions_of_one_shape_that_differ_leave_out_what_they_differ_in() -> None:
    found = traced({}, {"registers_per_thread": 128}, {})
    (row,) = launch_shapes(found).records()
    assert row["occupancy"] is None
    assert row["limiter"] == "registers"  # of both
    assert row["occupancy_note"] == DIFFERS
    assert execution_occupancy(found)["resident_blocks"].tolist() == [4, 2, 4]
    # What is outside the window does not count.
    (row,) = launch_shapes(found, Window(20, 30, "")).records()
    assert (row["occupancy"], row["occupancy_note"]) == (0.5, None)


def test_executions_that_differ_in_what_does_not_matter_agree() -> None:
    found = traced({}, {"registers_per_thread": 63}, {"dynamic_shared_bytes": 16})
    (row,) = launch_shapes(found).records()
    assert (row["occupancy"], row["resident_blocks"]) == (0.5, 4)


def test_each_gpu_has_its_own_limits() -> None:
    kernels = build.joined(
        build.kernels((0, 5), **LAUNCH), build.kernels((6, 9), **{**LAUNCH, "device_id": 1})
    )
    other = {"device_id": 1, "max_warps_per_sm": 48, "compute_minor": 6, "max_blocks_per_sm": 16}
    both = build.trace(kernels=kernels, devices=build.devices({}, other))
    assert execution_occupancy(both)["occupancy"].tolist() == [32 / 64, 32 / 48]
    (row,) = launch_shapes(both).records()
    assert (row["resident_blocks"], row["occupancy_note"]) == (4, DIFFERS)
    same = build.trace(kernels=kernels, devices=build.devices({}, {"device_id": 1}))
    assert launch_shapes(same)["occupancy"].tolist() == [0.5]


def test_no_kernels() -> None:
    nothing = build.trace()
    assert len(execution_occupancy(nothing)) == len(launch_shapes(nothing)) == 0


@pytest.mark.parametrize("seed", range(4))
def test_shapes_say_what_their_executions_say(seed: int) -> None:
    random = np.random.default_rng(seed)
    launches = [
        {
            "block_x": int(random.choice([32, 64, 100, 1024])),
            "grid_x": int(random.integers(1, 4)) * 100,
            "registers_per_thread": int(random.choice([16, 32, 40, 255])),
            "dynamic_shared_bytes": int(random.choice([0, 0, 100, 49_152])),
            "shared_carveout_bytes": [None, 0, 65_536, 167_936][int(random.integers(4))],
        }
        for _ in range(60)
    ]
    found = traced(*launches)
    single = rows(execution_occupancy(found))
    assert single == [rows(execution_occupancy(traced(one)))[0] for one in launches]
    for row in launch_shapes(found).records():
        mine = [
            figures
            for figures, launch in zip(single, launches, strict=True)
            if (launch["block_x"], launch["grid_x"]) == (row["block.0"], row["grid.0"])
        ]
        for place, name in enumerate(FIGURES[:-1]):
            values = {figures[place] for figures in mine}
            assert row[name] == (values.pop() if len(values) == 1 else None)


@each(nsys_traces())
def test_every_execution_of_the_corpus_is_what_the_slow_rules_say(trace_file: Path) -> None:
    trace = read(trace_file)
    kernels, identity = trace.kernels, identify(trace)
    found = execution_occupancy(trace, identity)
    assert len(found) == len(kernels)
    described = dict(zip(identity.lanes, identity.described, strict=True))
    columns = (*LAUNCH, "shared_carveout_bytes", "process_id", "device_id")
    values = zip(*(kernels.values(name) for name in columns), strict=True)
    seen: dict[tuple[Any, ...], Any] = {}
    for launch, blocks in zip(values, found.values("resident_blocks"), strict=True):
        assert seen.setdefault(launch, blocks) == blocks
    for launch, blocks in seen.items():
        row = dict(zip(columns, launch, strict=True))
        limits = limits_of(described[row["process_id"], row["device_id"]])
        if limits is None or None in launch[: len(LAUNCH)]:
            assert blocks is None
            continue
        expected = slow.resident(
            limits,
            row["block_x"] * row["block_y"] * row["block_z"],
            row["registers_per_thread"],
            row["static_shared_bytes"] + row["dynamic_shared_bytes"],
            row["shared_carveout_bytes"] or 0,
        )
        assert blocks == expected  # and it ran, so that it fits
        assert expected > 0
    assert schema.KERNELS.names
