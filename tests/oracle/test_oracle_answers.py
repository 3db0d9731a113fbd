"""Answers against figures worked out by hand, and against counting every nanosecond."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope import oracle
from kernelscope.oracle.answers import whole_window
from kernelscope.oracle.device_answers import activities_of
from kernelscope.oracle.events import Copy, Kernel, Memset
from kernelscope.oracle.gpus import A100
from kernelscope.oracle.summaries import deviation, quantile
from kernelscope.oracle.sweep import CLASSES, Activity, gaps, partition, pieces

Row = dict[str, Any]


def by_name(rows: list[Row], key: str = "name") -> dict[str, Row]:
    return {row[key]: row for row in rows}


def test_quantiles_interpolate_at_n_minus_one_times_q() -> None:
    assert quantile([10], 99) == 10
    assert quantile([10, 20], 50) == 15
    assert quantile([10, 20, 40], 25) == 15
    assert quantile([0, 100], 5) == 5


def test_deviation_is_of_the_sample() -> None:
    assert deviation([7]) == 0
    assert deviation([1, 3]) == pytest.approx(2**0.5)
    assert deviation([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx((32 / 7) ** 0.5)


def test_overlapping_streams() -> None:
    found = oracle.answers(oracle.SCENES["overlapping_streams"]())
    assert found["window"] == {"start_ns": 10, "end_ns": 1_100, "duration_ns": 1_090}
    (device,) = found["devices"]
    assert device["partition"] == {
        "compute_and_communication_ns": 120,
        "compute_and_copy_ns": 50,
        "compute_only_ns": 330,
        "opaque_graph_ns": 0,
        "communication_only_ns": 300,
        "copy_only_ns": 100,
        "memset_only_ns": 20,
        "idle_ns": 170,
    }
    assert device["concurrency"] == {"one_ns": 500, "two_ns": 230, "three_or_more_ns": 70}
    assert (device["busy_ns"], device["kernel_ns"], device["compute_ns"]) == (920, 800, 500)
    assert (device["leading_ns"], device["trailing_ns"]) == (90, 0)
    assert (device["gap_count"], device["largest_gap_ns"]) == (2, 50)
    streams = {
        row["stream_id"]: (
            row["kernels"],
            row["busy_ns"],
            row["exclusive_ns"],
            row["largest_gap_ns"],
        )
        for row in found["streams"]
    }
    assert streams == {
        7: (2, 400, 150, 500),
        13: (1, 450, 0, None),
        14: (1, 260, 100, 290),
        20: (1, 440, 120, 50),
    }
    assert by_name(found["kernels"])["compute"]["share"] == 700 / 1_170
    assert by_name(found["copies_by_kind"], "kind")["memset"]["total_ns"] == 80


def test_windows_clip_totals_and_count_starts() -> None:
    found = oracle.answers(oracle.SCENES["windows"](), window=(1_000, 2_000))
    kernels = by_name(found["kernels"])
    assert {name: (row["executions"], row["total_ns"]) for name, row in kernels.items()} == {
        "covers": (0, 1_000),
        "inside": (2, 400),
        "reaches_in": (0, 100),
        "reaches_out": (1, 100),
        "no_length": (1, 0),
    }
    assert kernels["reaches_out"]["mean_ns"] == 250  # statistics are of whole executions
    assert kernels["covers"]["median_ns"] is None
    assert kernels["covers"]["share_of_window"] == 1.0
    (device,) = found["devices"]
    assert (device["busy_ns"], device["leading_ns"], device["gap_count"]) == (1_000, 0, 0)


def test_quarantined_rows_count_nowhere() -> None:
    found = oracle.answers(oracle.SCENES["quarantine"]())
    assert found["window"] == {"start_ns": 5_000, "end_ns": 14_000, "duration_ns": 9_000}
    assert by_name(found["kernels"])["good"]["executions"] == 1
    assert "never_ended" not in by_name(found["kernels"])
    assert "cudaFree" not in by_name(found["api_calls"])
    quarantined = {name: count for name, count in found["quarantined"].items() if count}
    assert quarantined == {"kernels": 2, "copies": 2, "api_calls": 1}
    assert found["starts_before_launch"] == 1


def test_lonely_copy_is_busy_and_computes_nothing() -> None:
    found = oracle.answers(oracle.SCENES["lonely_copy"]())
    (device,) = found["devices"]
    assert found["kernels"] == []
    assert (device["busy_ns"], device["kernel_ns"]) == (20_000, 0)
    assert found["copies"][0]["bytes_per_s"] == 25e9


def test_shared_device_is_one_only_where_the_export_says_so() -> None:
    plan = oracle.SCENES["two_processes"]()
    (shared,) = oracle.answers(plan, generation="2025.5")["devices"]
    assert [row["process_id"] for row in shared["device_ids"]] == [4_001, 4_002]
    apart = oracle.answers(plan, generation="2020.5")["devices"]
    assert [row["physical_id"] for row in apart] == [None, None]
    for row in oracle.answers(plan, generation="2025.5")["device_processes"]:
        # What one process leaves free is idle, or the other's alone.
        assert row["busy_ns"] + row["other_process_ns"] == shared["busy_ns"]


def test_reversed_devices_are_named_by_their_ordinal() -> None:
    for generation in oracle.GENERATIONS:
        plan = oracle.SCENES["reversed_devices"]()
        found = oracle.answers(plan, generation=generation)["device_processes"]
        assert [row["name"] for row in found] == [
            "NVIDIA A100-SXM4-40GB",
            "NVIDIA GeForce RTX 3080",
        ]
        assert [row["busy_ns"] for row in found] == [300_000, 100_000]


def test_peer_copies_mark_the_other_gpu_and_host_copies_none() -> None:
    run = oracle.Run(setup=oracle.Setup(gpus=(A100, A100)))
    run = run.kernel(0, 10).on(device=1).kernel(0, 10)
    run = run.copy(20, 30, "PtoP", src_device=1, dst_device=0).copy(50, 90, "HtoH")
    found = oracle.answers(run.plan())
    assert [row["partition"]["copy_only_ns"] for row in found["devices"]] == [10, 10]
    assert [row["partition"]["copy_only_ns"] for row in found["device_processes"]] == [0, 10]


@pytest.mark.parametrize("seed", range(60))
def test_parts_are_what_counting_nanoseconds_gives(seed: int) -> None:
    plan = oracle.random_run(seed, bad_times=False)
    tables = (plan.kernels.rows(Kernel), plan.copies.rows(Copy), plan.memsets.rows(Memset))
    start, end = whole_window(*tables)
    end = min(end, start + 2_000)  # counting goes on for ever otherwise
    activities = activities_of(*tables)
    for device in {each.device for each in activities}:
        mine = [each for each in activities if each.device == device]
        assert partition(pieces(mine, start, end)) == counted(mine, start, end)


def counted(activities: list[Activity], start: int, end: int) -> dict[str, int]:
    totals = dict.fromkeys(CLASSES, 0)
    for moment in range(start, end):
        now = {each.what for each in activities if each.start <= moment < each.end}
        if {"compute", "communication"} <= now:
            totals["compute_and_communication"] += 1
        elif "compute" in now:
            totals["compute_and_copy" if now & {"copy", "memset"} else "compute_only"] += 1
        elif now:
            first = next(w for w in ("communication", "copy", "memset") if w in now)
            totals[f"{first}_only"] += 1
        else:
            totals["idle"] += 1
    return totals


@pytest.mark.parametrize("seed", range(100))
def test_answers_hold_together(seed: int) -> None:
    found = oracle.answers(oracle.random_run(seed))
    assert sum(row["total_ns"] for row in found["launch_shapes"]) == sum(
        row["total_ns"] for row in found["kernels"]
    )
    assert sum(row["executions"] for row in found["launch_shapes"]) == sum(
        row["executions"] for row in found["kernels"]
    )
    for row in found["kernels"]:
        assert sum(each["total_ns"] for each in row["by_device"]) == row["total_ns"]
    for index, row in enumerate(found["devices"]):
        pauses = [g for g in found["gaps"] if g["process_id"] is None and g["device"] == index]
        check_device(row, pauses)
    for row in found["device_processes"]:
        key = (row["process_id"], row["device_id"])
        check_device(row, [g for g in found["gaps"] if (g["process_id"], g["device_id"]) == key])


def check_device(row: Row, pauses: list[Row]) -> None:
    assert sum(row["partition"].values()) == row["window_ns"]
    assert row["busy_ns"] + row["idle_ns"] == row["window_ns"]
    idle = row["leading_ns"] + row["trailing_ns"] + sum(gap["duration_ns"] for gap in pauses)
    assert idle == row["idle_ns"]
    assert len(pauses) == row["gap_count"]
    assert sum(row["concurrency"].values()) == row["kernel_ns"]


def test_something_without_length_divides_a_gap() -> None:
    spans = ((0, 10), (40, 40), (60, 70))
    activities = [Activity(start, end, "compute", 1, 0, 1, 7) for start, end in spans]
    assert gaps(activities) == [(10, 40), (40, 60)]


def test_handover_between_threads() -> None:
    found = oracle.answers(oracle.SCENES["handover"]())
    ranges = {"/".join(row["path"]): row for row in found["ranges"]}
    assert ranges["layer"]["instances"] == 6
    assert ranges["layer"]["direct"]["kernel_ns"] == 6_000
    step = ranges["step 0"]["direct"]
    assert (step["kernels"], step["kernel_ns"], step["self_kernels"]) == (2, 1_500, 0)
    assert ranges["step 0/forward"]["direct"]["self_kernel_ns"] == 1_500
    assert ranges["step 0/forward"]["direct"]["projected_ns"] == 1_600
    assert ranges["whole"]["direct"]["kernels"] == 12
    assert found["without_range"] == {"kernels": 7, "total_ns": 19_000}
    rows = found["iterations"]["rows"]
    assert [row["period_ns"] for row in rows] == [10_000] * 5 + [None]
    assert {row["outside_ns"] for row in rows[:-1]} == {2_000}
    assert rows[0]["launched"] == {"kernels": 3, "kernel_ns": 4_500}


def test_graphs_are_opaque_or_known_by_their_nodes() -> None:
    found = oracle.answers(oracle.SCENES["graphs"]())
    (device,) = found["devices"]
    used = {name: time for name, time in device["partition"].items() if time}
    del used["idle_ns"]
    assert used == {
        "compute_only_ns": 5 * 10_500 + 3_000,
        "opaque_graph_ns": 11_500 + 8_500 + 2 * 11_500 + 200,
        "copy_only_ns": 1_000,
    }
    assert found["quarantined"]["graphs"] == 1
    ranges = {"/".join(row["path"]): row["direct"] for row in found["ranges"]}
    four, eight = ranges["step 4"], ranges["step 8"]
    assert (four["kernels"], four["opaque_ns"], four["projected_ns"]) == (0, 11_500, 13_500)
    assert (eight["kernels"], eight["opaque_ns"], eight["kernel_ns"]) == (6, 2_000, 10_500)
    assert len(found["graph_kernels"]) == 5 * 6
    assert found["graph_kernels"][0] == {
        "path": ["step 0"],
        "capture_path": ["capture", "layer 0"],
        "name": "gemm",
        "kernels": 1,
        "total_ns": 1_600,
    }
