"""Scenes tell the story that they promise, and could have happened."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kernelscope import oracle
from kernelscope.oracle.events import Call, Copy, Kernel, Memset, Range
from kernelscope.oracle.plan import Plan

LIVELIKE = ("resnet", "cupy_like", "two_processes", "reversed_devices")


def launches(plan: Plan) -> dict[tuple[int, int], Call]:
    return {(call.process, call.correlation): call for call in plan.calls.rows(Call)}


def check_streams(plan: Plan) -> None:
    """Work on a stream runs one after the other, and never before its call began."""
    calls = launches(plan)
    lanes = defaultdict(list)
    rows: list[Kernel | Copy | Memset] = [
        *plan.kernels.rows(Kernel),
        *plan.copies.rows(Copy),
        *plan.memsets.rows(Memset),
    ]
    for row in rows:
        lanes[row.process, row.device, row.stream].append((row.start, row.end))
        assert row.start > calls[row.process, row.correlation].start
    for lane in lanes.values():
        ordered = sorted(lane)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))


@pytest.mark.parametrize("scene", LIVELIKE)
def test_streams_are_queues(scene: str) -> None:
    check_streams(oracle.SCENES[scene]())


@pytest.mark.parametrize("scene", [*LIVELIKE, "handover", "migrations"])
def test_calls_and_ranges_nest_on_their_threads(scene: str) -> None:
    plan = oracle.SCENES[scene]()
    threads = defaultdict(list)
    for call in plan.calls.rows(Call):
        threads[call.process, call.thread].append((call.start, call.end))
    for calls in threads.values():
        ordered = sorted(calls)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))
    for a in (rows := [r for r in plan.ranges.rows(Range) if r.style == "push_pop" and r.end]):
        for b in rows:
            same = (a.process, a.thread, a.domain) == (b.process, b.thread, b.domain)
            if same and a.end is not None and b.end is not None:
                assert not a.start < b.start < a.end < b.end


def test_resnet_tells_its_story() -> None:
    plan = oracle.SCENES["resnet"]()
    found = oracle.answers(plan)
    periods = [row["period_ns"] for row in found["iterations"]["rows"][:-1]]
    usual = sorted(periods)[len(periods) // 2]
    slow = {index for index, period in enumerate(periods) if period > 1.5 * usual}
    assert slow == {0, 7}
    assert periods[5] > 1.1 * usual
    assert {row["launched"]["kernels"] for row in found["iterations"]["rows"]} == {160}
    (device,) = found["devices"]
    assert all(
        device["partition"][f"{name}_ns"] > 0
        for name in (
            "compute_and_communication",
            "compute_and_copy",
            "communication_only",
            "memset_only",
        )
    )
    backward = {c.thread for c in plan.calls.rows(Call)} - {plan.facts["main_thread"]}
    assert backward == {plan.facts["backward_thread"]}
    assert found["capture_cost"][0]["name"] == "CUPTI Buffer flush"


def test_launch_queues_stay_within_what_a_driver_holds() -> None:
    plan = oracle.SCENES["resnet"]()
    calls = launches(plan)
    moments = []
    for kernel in plan.kernels.rows(Kernel):
        call = calls[kernel.process, kernel.correlation]
        moments += [(call.start, 1), (kernel.start, -1)]
    depth = np.cumsum([step for _, step in sorted(moments)])
    assert 20 < depth.max() < 1_000


def test_two_processes_count_alike_and_overlap() -> None:
    plan = oracle.SCENES["two_processes"]()
    ids = defaultdict(set)
    for kernel in plan.kernels.rows(Kernel):
        ids[kernel.process].add(kernel.correlation)
    assert ids[4_001] == ids[4_002]
    (device,) = oracle.answers(plan)["devices"]
    assert device["concurrency"]["two_ns"] > 0


def test_random_runs_repeat_and_hold_every_kind_of_trouble() -> None:
    for seed in range(5):
        one, two = oracle.random_run(seed), oracle.random_run(seed)
        assert one.kernels.rows(Kernel) == two.kernels.rows(Kernel)
        assert one.devices == two.devices
    runs = [oracle.random_run(seed) for seed in range(80)]
    kernels = [kernel for run in runs for kernel in run.kernels.rows(Kernel)]
    assert any(kernel.start == kernel.end for kernel in kernels)
    assert any(kernel.end < kernel.start for kernel in kernels)
    assert any(run.devices != tuple(sorted(run.devices, key=lambda d: d.gpu)) for run in runs)
    unlaunched = [k for run in runs for k in run.kernels.rows(Kernel) if _lacks(run, k)]
    assert unlaunched
    assert any(oracle.answers(run)["starts_before_launch"] for run in runs)
    assert not any(
        kernel.end < kernel.start
        for seed in range(40)
        for kernel in oracle.random_run(seed, bad_times=False).kernels.rows(Kernel)
    )


def _lacks(run: Plan, kernel: Kernel) -> bool:
    return (kernel.process, kernel.correlation) not in launches(run)


@pytest.mark.parametrize("count", [1, 999, 2_500])
def test_large_runs_are_as_consistent_as_small_ones(count: int) -> None:
    plan = oracle.large(count)
    assert len(plan.kernels) == count
    check_streams(plan)
    totals, answers = oracle.totals(plan), oracle.answers(plan, window=None)
    assert totals["window"] == answers["window"]
    for table, counter in (("kernels", "executions"), ("api_calls", "calls")):
        slow = {
            row["name"]: {"count": row[counter], "total_ns": row["total_ns"]}
            for row in answers[table]
        }
        assert slow == totals[table]
    copies = {
        row["kind"]: {"count": row["operations"], "total_ns": row["total_ns"]}
        for row in answers["copies_by_kind"]
    }
    assert copies == totals["copies"]
    assert answers["starts_before_launch"] == 0
    assert answers["iterations"]["count"] == -(-count // 1_000)


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_large_runs_are_written_as_planned(generation: str, tmp_path: Path) -> None:
    # More rows than are handed to SQLite at once.
    plan = oracle.large(70_001, names=37)
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation)
    with closing(sqlite3.connect(path)) as database:
        found = database.execute(
            "SELECT s.value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL "
            "JOIN StringIds s ON s.id = demangledName GROUP BY 1"
        ).fetchall()
        joined = database.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
            "ON r.correlationId = k.correlationId AND r.start < k.start"
        ).fetchone()
    expected = oracle.totals(plan)["kernels"]
    assert {name: {"count": n, "total_ns": time} for name, n, time in found} == expected
    assert joined == (70_001,)
