"""Overlap, threads and processor time of known-answer traces, written, read and analysed.

As in ``test_known_answers``, the answers come from plain loops over the plan, and the figures
from the file that was written of it, in every generation of exports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.metrics.host_threads import cpu, host_threads
from kernelscope.metrics.overlap import host_and_devices, overlap
from kernelscope.metrics.window import Window, whole
from kernelscope.oracle.plan import Plan, Setup, Thread
from kernelscope.report.document import records
from tests.agreement.test_known_answers import differences, keyed

US = 1_000
MS = 1_000_000
MAIN, HELPER, LOADER = 1000, 1001, 1002
NAMED = Setup(threads=(Thread(1000, MAIN, "main"), Thread(1000, LOADER, "loader")))


def spinning() -> Plan:
    """One thread, on its core throughout: launches, works, spins until the device is done."""
    run = oracle.Run(setup=NAMED).on_core(0, 30 * MS)
    for step in range(3):
        at = MS + step * 9 * MS
        run = (
            run.kernel(at + 20 * US, at + 6 * MS, "step", call=(at, at + 10 * US))
            .call(at + 2 * MS, at + 6 * MS + 5 * US, "cudaStreamSynchronize")
            .range(at, at + 7 * MS, f"step {step}")
        )
    return run.plan()


def blocked() -> Plan:
    """A pageable copy blocks for 8 ms; allocations, a module and a free block for less."""
    run = oracle.Run().on_core(0, 2 * MS).on_core(3 * MS, 40 * MS)
    run = run.call(MS, 4 * MS, "cudaMalloc").call(5 * MS, 6 * MS, "cuModuleLoadData")
    run = run.kernel(7 * MS, 12 * MS, "long", call=(6 * MS, 6 * MS + 5 * US))
    run = run.copy(12 * MS, 15 * MS, "DtoH", call=(7 * MS, 15 * MS + 20 * US))
    run = run.kernel(30 * MS, 31 * MS, "late", call=(16 * MS, 16 * MS + 400 * US))
    run = run.call(32 * MS, 33 * MS, "cudaFree")
    return run.call(
        32 * MS + 100 * US, 32 * MS + 800 * US, "cuCtxSynchronize", kind="driver"
    ).plan()


def straggling() -> Plan:
    """Two driving threads; the second works on while the first waits. A loader calls nothing."""
    run = oracle.Run(setup=NAMED).on_core(0, 20 * MS)
    run = run.kernel(2 * MS, 6 * MS, "first", call=(MS, MS + 20 * US))
    run = run.call(2 * MS, 18 * MS, "cudaDeviceSynchronize").on(thread=HELPER)
    run = run.on_core(MS, 9 * MS).os_call(9 * MS, 11 * MS).on_core(11 * MS, 14 * MS)
    run = run.kernel(14 * MS, 17 * MS, "second", call=(13 * MS, 13 * MS + 30 * US))
    return run.on(thread=LOADER).on_core(3 * MS, 16 * MS).os_call(16 * MS, 19 * MS, "read").plan()


def half_recorded() -> Plan:
    """Scheduling of one of two threads, ending before the run does; ranges bound the rest."""
    run = oracle.Run().on_core(0, 3 * MS).on_core(5 * MS, 9 * MS)
    run = run.kernel(2 * MS, 8 * MS, call=(MS, MS + 10 * US))
    run = run.kernel(11 * MS, 12 * MS, call=(10 * MS, 10 * MS + 10 * US))
    run = run.range(6 * MS, 11 * MS, "main").on(thread=HELPER)
    run = run.range(4 * MS, 14 * MS, "helper").call(5 * MS, 6 * MS, "cudaEventRecord")
    return run.kernel(13 * MS, 15 * MS, call=(12 * MS, 12 * MS + 10 * US)).plan()


def never_seen_to_begin() -> Plan:
    """A thread first seen being switched out ran before; one not switched out again ran on."""
    run = oracle.Run().on(thread=LOADER).on_core(MS, 20 * MS).on(thread=MAIN)
    switch = oracle.events.Switch
    run = run.add(switch(4 * MS, False), switch(10 * MS, True))
    run = run.kernel(3 * MS, 5 * MS, call=(2 * MS, 2 * MS + 10 * US))
    return run.call(11 * MS, 12 * MS, "cudaEventSynchronize").plan()


def calls_chained() -> Plan:
    """Every call a second time as a wrapper, and none recorded of a second process."""
    run = oracle.Run()
    for step in range(4):
        at = MS + step * MS
        run = run.kernel(at + 50 * US, at + 400 * US, call=(at, at + 10 * US))
        run = run.call(at - 5 * US, at + 15 * US, "cudaLaunchKernel", kind="wrapper")
    return run.on(process=2000).kernel(2 * MS, 3 * MS).plan()


def full_queue() -> Plan:
    """A thousand launches outstanding; the next but one waits until there is room."""
    run = oracle.Run()
    for number in range(1002):
        at = MS + number * 2 * US
        took = 20 * MS if number == 1001 else US
        start = 10 * MS + number * 20 * US
        run = run.kernel(start, start + 15 * US, call=(at, at + took))
    return run.plan()


PLANS: Mapping[str, Callable[[], Plan]] = {
    each.__name__: each
    for each in (
        spinning, blocked, straggling, half_recorded, never_seen_to_begin, calls_chained,
        full_queue,
    )
}  # fmt: skip


def assert_host_answers(
    plan: Plan, path: Path, generation: str, window: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Assert that the analysis of an export says what the plan's own loops say; return that."""
    expected = oracle.host_answers(plan, generation=generation, window=window)
    trace = ks.read(oracle.write(plan, path, generation=generation))
    place = whole(trace) if window is None else Window(*window, "chosen")
    found = host_and_devices(trace, place)
    ours = {
        "overlap": records(overlap(trace, found=found)),
        "host_threads": records(host_threads(trace, host=found.host)),
        "cpu": records(cpu(trace, place)),
    }
    wrong = [
        each
        for name in expected
        for each in differences(_sorted(ours[name]), _sorted(expected[name]), name)
    ]
    assert not wrong, "\n".join(wrong[:20])
    return expected


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        keyed(rows),
        key=lambda row: str([row.get(k) for k in ("process_id", "thread_id", "device_id")]),
    )


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
@pytest.mark.parametrize("plan", PLANS)
def test_plans_in_every_generation(tmp_path: Path, plan: str, generation: str) -> None:
    assert_host_answers(PLANS[plan](), tmp_path / "run.sqlite", generation)


@pytest.mark.parametrize("scene", [name for name in oracle.SCENES if name != "resnet"])
def test_scenes(tmp_path: Path, scene: str) -> None:
    assert_host_answers(oracle.SCENES[scene](), tmp_path / "scene.sqlite", "2022.4")


@pytest.mark.slow
@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_the_training_run(tmp_path: Path, generation: str) -> None:
    found = assert_host_answers(oracle.SCENES["resnet"](), tmp_path / "run.sqlite", generation)
    (row,) = found["overlap"]
    assert row["driving_threads"] == 2
    assert row["gpu_only_ns"] > 0


def test_answers_worked_out_by_hand() -> None:
    (row,) = oracle.host_answers(spinning())["overlap"]
    # Per step: 10 µs launch, on to 2 ms; then it spins until 5 µs after the kernel's end.
    assert row["both_ns"] == 3 * (2 * MS - 20 * US)
    assert row["gpu_only_ns"] == 3 * 4 * MS
    assert row["waiting"]["synchronization_ns"] == 3 * (4 * MS + 5 * US)
    (row,) = oracle.host_answers(blocked())["overlap"]
    assert row["waiting"]["copy_ns"] == 8 * MS - 30 * US
    assert row["waiting"]["synchronization_ns"] == 700 * US
    assert row["waiting"]["allocation_ns"] == (3 * MS - 50 * US) + (1 * MS - 50 * US - 700 * US)
    assert row["waiting"]["module_ns"] == (1 * MS - 50 * US) + 350 * US
    (row,) = oracle.host_answers(full_queue())["overlap"]
    assert row["waiting"]["queue_ns"] == 20 * MS - 50 * US


@pytest.mark.parametrize("seed", range(60))
def test_random_runs_with_scheduling(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    run = oracle.Run()
    for number in range(dice.randrange(1, 12)):
        process = 1000 + 1000 * dice.randrange(2)
        run = run.on(process=process, thread=process + dice.randrange(3), device=dice.randrange(2))
        at = MS + dice.randrange(40) * 20 * US
        took = dice.randrange(8) * 20 * US
        if dice.random() < 0.5:
            start = at + dice.randrange(1, 20) * 20 * US
            run = run.kernel(start, start + dice.randrange(9) * 20 * US, call=(at, at + took))
        else:
            name = dice.choice(["cudaStreamSynchronize", "cudaMemcpyAsync", "cudaFree", "cudaFoo"])
            run = run.call(at, at + took, name, correlation=5000 + number)
        if dice.random() < 0.6:
            cuts = sorted(dice.sample(range(60), 2))
            run = run.on_core(*(MS + cut * 20 * US for cut in cuts))
        if dice.random() < 0.3:
            run = run.range(at, at + dice.randrange(30) * 20 * US, "range")
    if not any(type(each).__name__ == "Kernel" for each in run.events):
        run = run.kernel(2 * MS, 3 * MS)
    generation = tuple(oracle.GENERATIONS)[seed % len(oracle.GENERATIONS)]
    window = (MS + 200 * US, MS + 900 * US) if dice.random() < 0.4 else None
    assert_host_answers(run.plan(), tmp_path / "run.sqlite", generation, window)
