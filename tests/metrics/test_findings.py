"""Findings: a known answer for each rule, alone and mixed, and none on a trace that is fine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope
from kernelscope import oracle, schema
from kernelscope.metrics.analysis import analyze
from kernelscope.metrics.finding_rules import LAYOUT_KERNELS, RULES
from kernelscope.metrics.waiting import WAITS
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics import scenes
from tests.metrics.finding_scenes import (
    SYNC,
    US,
    Step,
    alloc,
    code,
    copy,
    finish,
    found,
    launch,
    load,
    module,
    run,
    seen_of,
)
from tests.metrics.pauses import between, calls, kernels, on_thread

SAMPLE = Path(__file__).parents[2] / "traces" / "resnet_training.sqlite"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(float const*)"


def us(*steps: Step) -> list[Step]:
    """The steps with their times in µs."""
    return [replace(s, length=s.length * US, work=s.work * US) for s in steps]


# Kernels are launched in 5 µs and start 4 µs later, where the GPU is free; the first of 20 µs
# runs from 9 to 29 µs, and where the host then takes 60 µs, the next one starts at 74.
PROGRAMS: dict[str, tuple[list[Step], int]] = {
    # until 109 the first kernel, until 110 the wait, until 150 the host, at 159 the second kernel
    "synchronizations": (us(launch(100, 5), SYNC, code(40), launch(40, 5)), 50),
    # exposed from 29 to 129; the host returns at 130, launches at 160, and the kernel starts at 169
    "pageable_copies": (us(launch(20, 5), copy(100), code(30), launch(20, 5)), 140),
    "allocations": (us(launch(20, 5), alloc(60), launch(20, 5)), 45),
    "module_loading": (us(launch(20, 5), module(60), launch(20, 5)), 45),
    "data_loading": (us(launch(20, 5), load(60), launch(20, 5)), 45),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_host_does_costs_the_pause_behind_it(name: str) -> None:
    program, expected = PROGRAMS[name]
    rows = found(run(program))

    assert {key: row["saving_bound_ns"] for key, row in rows.items()} == {name: expected * US}
    assert rows[name]["per"] == "window"
    assert rows[name]["saving_share"] == pytest.approx(expected * US / finish(program))


def test_a_wait_shorter_than_the_pause_costs_no_more_than_itself() -> None:
    """Waiting from 85 to 110 makes the launch 25 µs later; the pause is of 70 µs."""
    program = us(launch(100, 5), code(80), SYNC, code(60), launch(40, 5))
    cured = [step for step in program if step is not program[2]]

    row = found(run(program))["synchronizations"]
    assert row["saving_bound_ns"] == 25 * US == finish(program) - finish(cured)


def test_a_first_launch_that_loads_code_counts_whole() -> None:
    rows = found(run(us(launch(20, 5), launch(20, 300))))
    assert {code: row["saving_bound_ns"] for code, row in rows.items()} == {
        "module_loading": 280 * US
    }


def test_what_came_before_the_first_kernel_is_not_saved_behind_it() -> None:
    """600 µs are spent on allocating before the first kernel, and 30 behind it."""
    behind = us(launch(20, 5), alloc(30), code(100), launch(20, 5))
    for before in (us(alloc(600)), us(Step("pinned", 5, 5), alloc(600), code(50))):
        row = found(run([*before, *behind]))["allocations"]
        assert row["saving_bound_ns"] == 30 * US


def test_what_hides_behind_a_copy_before_the_first_kernel_may_be_saved() -> None:
    """The copy runs until 214, the kernel until 234; the host is late by the 100 µs that it spent.

    Without them it launches the last kernel at 220, and not at 320.
    """
    program = us(Step("pinned", 5, 205), alloc(100), launch(20, 5), code(210), launch(20, 5))
    cured = [step for step in program if step is not program[1]]
    row = found(run(program))["allocations"]
    assert finish(program) - finish(cured) <= row["saving_bound_ns"] <= 100 * US


def test_copies_that_hold_nobody_up_are_not_said_to() -> None:
    """The call returns in 25 µs: up to 50 it works. The copy is exposed from 29 to 49 µs."""
    row = found(run(us(launch(20, 5), copy(20), launch(20, 5))))["pageable_copies"]
    assert row["title"] == "Copies from or to pageable memory keep the GPU from its work"
    assert row["evidence"].startswith(
        "1 copy from or to pageable memory; the GPU has nothing else to do for "
    )


def test_data_loading_comes_before_the_copy_that_made_it_late() -> None:
    """The host waits in a copy until the kernel is done, and fetches the next batch only then."""
    step = us(launch(900, 5), copy(2), load(400))
    rows = found(run(us(launch(20, 5)) + step * 5))
    assert list(rows)[:2] == ["data_loading", "pageable_copies"]
    bounds = [row["saving_bound_ns"] for row in rows.values()]
    assert bounds[0] < bounds[1]


def test_a_copy_that_could_save_much_more_comes_before_data_loading() -> None:
    step = us(launch(200, 5), copy(60), load(100))
    assert list(found(run(us(launch(20, 5)) + step * 5)))[:2] == ["pageable_copies", "data_loading"]


def test_the_sample_of_a_training_starves_for_data() -> None:
    rows = found(kernelscope.read(SAMPLE))
    assert list(rows)[:2] == ["data_loading", "pageable_copies"]


@pytest.mark.parametrize(
    ("threads", "said"),
    [
        ((1, 1), "the launching thread fetches data for 60.00 µs, as its NVTX"),
        ((1, 2), "launching threads fetch data for 60.00 µs in all, as their NVTX"),
    ],
)
def test_what_several_threads_take_is_a_sum(threads: tuple[int, int], said: str) -> None:
    first, last = (
        {"thread_id": thread, "correlation_id": number} for number, thread in enumerate(threads)
    )
    launch_ = "cudaLaunchKernel"
    trace = build.trace(
        api_calls=build.joined(
            calls((0, 5, launch_, 7), thread_id=1),
            build.api_calls((50 * US, 55 * US, launch_), **first),
            build.api_calls((150 * US, 155 * US, launch_), **last),
        ),
        ranges=build.joined(
            scenes.pushed((20 * US, 50 * US, "load batch"), thread_id=threads[0]),
            scenes.pushed((120 * US, 150 * US, "load batch"), thread_id=threads[1]),
        ),
        kernels=kernels((9, 11, 7), (59, 69, 0), (159, 169, 1)),
    )
    assert found(trace)["data_loading"]["evidence"].startswith(said)


def test_causes_side_by_side_are_ranked_and_each_is_bounded_by_itself() -> None:
    """One pause, from 29 to 194 µs, of which 60, 30 and 90 µs were spent; 24 before it began."""
    rows = found(run(us(launch(20, 5), alloc(60), load(30), module(90), launch(20, 5))))
    bounds = {code: row["saving_bound_ns"] // US for code, row in rows.items()}
    assert bounds == {"module_loading": 90, "allocations": 60, "data_loading": 30}
    assert list(bounds) == ["module_loading", "allocations", "data_loading"]


def test_the_evidence_has_its_numbers_and_the_place() -> None:
    row = found(run(PROGRAMS["synchronizations"][0]))["synchronizations"]
    assert row["evidence"] == (
        "1 synchronisation, in which the host waits 105.0 µs; the GPU stands still for up to "
        "50.00 µs (25.1 % of the window), as long as that delays the host's next launch"
    )
    assert row["where"] == "the longest stretch 50.00 µs at 0.000109 s"
    assert row["next"] == "kernelscope analyze built --between 104000ns,164000ns"
    assert row["device"] == 0


def loop(periods: Sequence[int], *, busy: int, inside: int) -> Trace:
    """Iterations ``step 0`` … of `periods` µs; each range is open for the first `inside` µs.

    Each launches one kernel of `busy` µs as it begins, in 5 µs, which starts 4 µs later.
    """
    starts = [sum(periods[:i]) for i in range(len(periods) + 1)]
    ranges = [(at * US, (at + inside) * US, f"step {i}") for i, at in enumerate(starts)]
    launches = [(at * US, (at + 5) * US) for at in starts]
    work = [((at + 9) * US, (at + 9 + busy) * US, i + 1) for i, at in enumerate(starts)]
    return build.trace(
        ranges=scenes.pushed(*ranges),
        api_calls=scenes.launches(*launches),
        kernels=scenes.kernels(*work),
    )


def test_time_outside_the_range_costs_what_it_takes() -> None:
    """Of 100 µs the host spends 60 outside; the GPU stands still for 70, 10 of them its own."""
    trace = loop([100] * 12, busy=30, inside=40)
    row = found(trace)["outside_range"]
    assert (row["saving_bound_ns"], row["per"]) == (60 * US, "iteration")
    assert row["saving_share"] == pytest.approx(0.6)
    assert row["evidence"].startswith("60.0 % of the steps lies outside the range")
    assert "60.00 µs per iteration (60.0 % of it), as long as" in row["evidence"]
    assert ", in iteration 0" in row["where"]


def test_a_slow_iteration_costs_what_it_takes_beyond_the_median() -> None:
    trace = loop([100] * 10 + [300] + [100] * 9, busy=85, inside=95)
    row = found(trace)["slow_iterations"]
    assert row["saving_bound_ns"] == 200 * US // 20
    assert row["where"] == "the longest stretch 200.0 µs at 0.001100 s, in iteration 10"
    assert row["evidence"].startswith("1 of 20 iterations after warm-up take more than 1.25 ×")


@pytest.mark.parametrize(
    ("every", "said"),
    [
        (1, "1 execution per iteration of layout-"),
        (2, "0.5 executions per iteration of layout-"),
    ],
)
def test_whole_numbers_have_no_decimals(every: int, said: str) -> None:
    trace = loop([100] * 12, busy=30, inside=95)
    starts = range(50 * US, 1200 * US, every * 100 * US)
    some = build.kernels(*((start, start + 20 * US, LAYOUT) for start in starts))
    row = found(replace(trace, kernels=build.joined(trace.kernels, some)))["layout_conversions"]
    assert row["evidence"].startswith(said)


def test_a_window_inside_an_iteration_is_its_own_basis() -> None:
    trace = loop([100] * 12, busy=30, inside=40)
    rows = found(trace, between=(450 * US, 490 * US))
    assert all(row["per"] == "window" for row in rows.values())
    assert all(row["saving_bound_ns"] <= 40 * US for row in rows.values())


def test_launches_that_are_too_slow() -> None:
    """Thirty kernels of 2 µs, one each 20 µs; between two the GPU waits 18 µs, 9 of them a call."""
    at = [20 * i for i in range(30)]
    trace = build.trace(
        api_calls=calls(*((t, t + 5, "cudaLaunchKernel", t) for t in at)),
        kernels=kernels(*((t + 9, t + 11, t) for t in at)),
    )
    rows = found(trace)
    assert {code: row["saving_bound_ns"] // US for code, row in rows.items()} == {
        "launch_bound": 29 * 18, "tiny_kernels": 30 * 2 + 29 * 9,
    }  # fmt: skip
    assert rows["launch_bound"]["evidence"] == (
        "in 1 stretch of the window with 29 executions the GPU works 58.00 µs and waits 522.0 µs "
        "for the host to launch; that is 522.0 µs (88.3 % of the window)"
    )


@pytest.mark.parametrize(("length", "told"), [(5_000, True), (5_001, False)])
def test_kernels_are_tiny_up_to_5_us(length: int, told: bool) -> None:
    program = [launch(1000 * US), *(launch(length, US) for _ in range(50))]
    rows = found(run(program))
    assert list(rows) == (["tiny_kernels"] if told else [])
    if told:
        assert rows["tiny_kernels"]["saving_bound_ns"] == 50 * length
        assert rows["tiny_kernels"]["evidence"].startswith("50 tiny kernels (98.0 % of the window")


def test_a_part_is_told_that_a_stretch_is_of_every_process() -> None:
    at = range(0, 600, 20)
    trace = build.trace(
        api_calls=build.joined(
            calls(*((t, t + 5, "cudaLaunchKernel", t) for t in at)),
            build.api_calls((0, 5 * US, "cudaFree"), process_id=2, correlation_id=1),
        ),
        kernels=kernels(*((t + 9, t + 11, t) for t in at)),
    )
    evidence = found(trace, processes=[1])["launch_bound"]["evidence"]
    assert "29 executions, whichever process made them, the GPU works" in evidence
    assert evidence.endswith("of the window), before launches of what was chosen")


def test_few_tiny_kernels_are_not_many() -> None:
    assert not found(run(us(launch(100, 5), *(launch(200, 1), launch(1, 1)) * 9, launch(99, 1))))


def test_communication_that_nothing_hides_counts_once_however_many_run() -> None:
    first, second = (50 * US, 180 * US, NCCL), (60 * US, 180 * US, NCCL)
    trace = build.trace(
        kernels=build.joined(
            build.kernels((0, 100 * US)),
            build.kernels(first, stream_id=8),
            build.kernels(second, stream_id=9),
        )
    )
    row = found(trace)["exposed_communication"]
    assert row["saving_bound_ns"] == 80 * US
    assert row["evidence"].startswith("2 communication kernels in the window; for 80.00 µs (44.4 %")


def test_what_another_process_communicates_is_not_of_the_chosen_one() -> None:
    """Two processes share a GPU: the one computes for 920 µs and communicates for 10."""
    one = build.kernels((0, 10 * US, NCCL), (80 * US, 1000 * US))
    trace = build.trace(
        kernels=build.joined(one, build.kernels((10 * US, 80 * US, NCCL), process_id=2)),
        devices=build.devices(
            *({"process_id": each, "uuid": "a", "identifies": True} for each in (1, 2))
        ),
    )
    assert found(trace)["exposed_communication"]["saving_bound_ns"] == 80 * US
    assert not len(analyze(trace, processes=[1]).findings)
    assert analyze(trace, processes=[2]).findings["saving_bound_ns"].tolist() == [70 * US]


def test_a_queue_is_full_whichever_device_is_chosen() -> None:
    """1300 launches wait, on two devices in turn: the next one waits for room, not for code."""
    many = range(1300)
    starts = [(5000 + 10 * number) * US for number in (*many, 1300)]
    work = build.kernels(*((start, start + 9 * US) for start in starts))
    numbers = np.arange(len(work))
    work = Table.make(
        work.schema, {**work.columns, "device_id": numbers % 2, "correlation_id": numbers}
    )
    launches = (*((2 * n, 2 * n + 1, "cudaLaunchKernel", n) for n in many),
                (2600, 2900, "cudaLaunchKernel", 1300))  # fmt: skip
    trace = build.trace(kernels=work, api_calls=calls(*launches))
    for chosen in ({}, {"devices": [0]}, {"devices": [0], "processes": [1]}):
        waits = seen_of(trace, **chosen).waits
        assert [WAITS[kind] for kind in waits.kind] == ["blocked: queue"]


def test_an_opaque_graph_may_hide_communication() -> None:
    trace = build.trace(
        kernels=build.kernels((0, 100 * US, NCCL)),
        graphs=build.table(schema.GRAPHS, [
            {"process_id": 1, "device_id": 0, "stream_id": 8, "start_ns": 0, "end_ns": 95 * US}
        ]),
    )  # fmt: skip
    assert found(trace)["exposed_communication"]["saving_bound_ns"] == 5 * US


def test_layout_conversions_cost_the_time_that_they_run() -> None:
    trace = build.trace(
        kernels=build.kernels((0, 100 * US), (100 * US, 120 * US, LAYOUT), (120 * US, 200 * US))
    )
    row = found(trace)["layout_conversions"]
    assert row["saving_bound_ns"] == 20 * US
    assert "10.0 % of the window's kernel time" in row["evidence"]


CONVERT = (
    "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, (bool)0, (bool)1>(const T1 *, T2 *)",
    "void nhwcToNchwKernel<float, float, float, true, false>(int, int, int, int, float const*)",
    "void nhwcAddPaddingKernel<__nv_bfloat16, __nv_bfloat16, float, (bool)1>(int, int, const T1 *)",
    "void nchwToFoldedNhwcKernel<__half, __half, float, true>(int, __half const*, __half*)",
    "void nhwcToFoldedNhwcKernel<__half, __half, float>(int, __half const*, __half*)",
    "void foldedNhwcToNhwcKernel<__half, __half, float, true>(int, __half const*, __half*)",
    "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32>(",
    "void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0, false>(int, float const*)",
)
DO_NOT = (
    "convertTensor_kernel<float, __half, float>(float, float const*, float, __half*)",
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
    "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc2nchw_tn_v1",
    "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int)",
    "void cudnn::detail::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true>(float)",
    "void tensorflow::functor::PadInputCustomKernelNHWC<Eigen::half, 4>(int, Eigen::half const*)",
    "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False_execute_kernel_trt",
    "transposeNaive(float*, float*, int, int)", "transpose_readWrite_alignment_kernel",
    "void dot_kernel<float, 128, 0, cublasGemv<nchw_store_nhwc>>(int)",
)  # fmt: skip


@pytest.mark.parametrize("name", CONVERT)
def test_kernels_that_convert_layouts(name: str) -> None:
    assert LAYOUT_KERNELS.search(name)


@pytest.mark.parametrize("name", DO_NOT)
def test_kernels_that_do_something_else(name: str) -> None:
    assert not LAYOUT_KERNELS.search(name)


def flushed(start: float, end: float) -> Trace:
    """A pause from 20 to 1,000 µs in which the profiler writes from `start` to `end`."""
    return between(
        calls((0, 2, "cudaLaunchKernel", 1)),
        calls((990, 995, "cudaLaunchKernel", 2)),
        overheads=on_thread(schema.OVERHEADS, (start, end, "CUPTI: Buffer flush")),
    )


def test_the_profilers_own_time_is_told_without_a_bound() -> None:
    row = found(flushed(100, 600))["profiler_overhead"]
    assert (row["saving_bound_ns"], row["device"], row["per"]) == (None, 0, "window")
    assert row["where"] == "the longest stretch 500.0 µs at 0.000100 s"
    assert row["evidence"].startswith("500.0 µs of the window's idle time (50.5 % of it)")


def test_a_little_of_the_profiler_spoils_nothing() -> None:
    assert "profiler_overhead" not in found(flushed(100, 190))


def test_the_profilers_time_is_that_of_the_window() -> None:
    rows = found(flushed(100, 600), between=(650 * US, 900 * US))
    assert "profiler_overhead" not in rows


def test_waits_of_many_threads_are_not_more_than_the_time_that_passes() -> None:
    """Another tool says of such a trace that 271.6 % of it were synchronisation."""
    waiting = [calls((5, 900, "cudaStreamSynchronize", None), thread_id=t) for t in range(2, 9)]
    trace = between(
        calls((0, 2, "cudaLaunchKernel", 1)),
        build.joined(*waiting, calls((900, 905, "cudaLaunchKernel", 2))),
        at=910,
    )
    row = found(trace)["synchronizations"]
    assert row["saving_share"] <= 1
    assert row["saving_bound_ns"] == 890 * US
    assert ", in which threads wait 6.265 ms in all; " in row["evidence"]


def test_a_host_that_waits_while_an_opaque_graph_runs_wastes_nothing() -> None:
    """Another tool takes the time of graphs that were traced as a whole for idle."""
    graph = {"process_id": 1, "device_id": 0, "stream_id": 7, "correlation_id": 1}
    trace = build.trace(
        graphs=build.table(schema.GRAPHS, [{**graph, "start_ns": 9 * US, "end_ns": 900 * US}]),
        api_calls=calls((0, 5, "cudaGraphLaunch", 1), (5, 901, "cudaDeviceSynchronize", None)),
    )
    assert not found(trace)


FINE: dict[str, Trace] = {
    "back to back": build.trace(kernels=build.kernels(*((i, i + 9) for i in range(0, 90, 9)))),
    "the host far ahead": run([launch(90 * US) for _ in range(50)]),
    "a last wait": run([*(launch(90 * US) for _ in range(50)), SYNC]),
    "steps": loop([100] * 12, busy=99, inside=40),
    "nothing": build.trace(),
    "no device": build.trace(api_calls=build.api_calls((0, 10, "cudaMalloc"))),
    "a moment": build.trace(kernels=build.kernels((5, 5))),
}
FINE["back to back"] = FINE["the host far ahead"].with_tables(api_calls=build.api_calls())


@pytest.mark.parametrize("name", FINE)
def test_a_trace_that_is_fine_has_none(name: str) -> None:
    assert not found(FINE[name])


@pytest.mark.parametrize("scene", ["reversed_devices", "lonely_copy", "migrations"])
def test_a_scene_that_is_fine_has_none(scene: str, tmp_path: Path) -> None:
    path = oracle.write(oracle.SCENES[scene](), tmp_path / "scene.sqlite")
    assert not found(kernelscope.read(path))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_serialised_capture_has_none(name: str) -> None:
    trace = run(PROGRAMS[name][0])
    serialised = replace(trace.capture, serialised="one kernel at a time")
    assert not analyze(replace(trace, capture=serialised)).findings.records()


def two_processes() -> Trace:
    """Process 1 waits on device 0; process 2 allocates on device 1, 100 µs later."""
    one = run(PROGRAMS["synchronizations"][0])
    other = run(us(launch(20, 5), alloc(600), launch(20, 5)))
    moved: dict[str, Any] = {}
    for name in ("kernels", "api_calls"):
        table = other.tables[name]
        columns: dict[str, Any] = {c: table.columns[c] for c in table.schema.names}
        columns["process_id"] = table["process_id"] + 1
        columns["start_ns"] = table["start_ns"] + 100 * US
        columns["end_ns"] = table["end_ns"] + 100 * US
        if name == "kernels":
            columns["device_id"] = table["device_id"] + 1
        shifted = type(table).make(table.schema, columns)
        moved[name] = build.joined(one.tables[name], shifted)
    return build.trace(**moved)


def test_a_finding_names_the_device_that_it_is_about() -> None:
    rows = found(two_processes())
    assert rows["allocations"]["device"] == 1
    assert rows["allocations"]["saving_bound_ns"] == 585 * US
    assert rows["synchronizations"]["device"] == 0


def test_a_chosen_process_has_its_own_findings_only() -> None:
    trace = two_processes()
    first, second = found(trace, processes=[1]), found(trace, processes=[2])
    assert list(first) == ["synchronizations"]
    assert first["synchronizations"]["next"].endswith(" --process 1 --device 0")
    assert list(second) == ["allocations"]
    assert second["allocations"]["device"] == 0
    assert second["allocations"]["next"].endswith(" --process 2 --device 1")
    assert found(trace, devices=[1])["allocations"]["saving_bound_ns"] == 585 * US


def test_tiny_kernels_of_one_process_are_told_by_its_own_pauses() -> None:
    """The rows of the chosen process are not those of the whole trace."""
    long = build.kernels(*((i * 100 * US, (i * 100 + 99) * US) for i in range(10)), device_id=1)
    tiny = build.kernels(*((i * 100 * US, i * 100 * US + 3 * US) for i in range(10)), process_id=2)
    trace = build.trace(kernels=build.joined(long, tiny))
    row = found(trace, processes=[2])["tiny_kernels"]
    assert row["saving_bound_ns"] == 30 * US


def test_a_chosen_window_stays_in_the_command() -> None:
    trace = run(PROGRAMS["allocations"][0])
    row = found(trace, between=(20 * US, 80 * US))["allocations"]
    assert row["next"].endswith(" --table api_calls --between 20000ns,80000ns")


@pytest.mark.parametrize("file", ["my trace.sqlite", "it's.sqlite", "-n.sqlite", 'a"b$c;d.sqlite'])
def test_file_names_are_quoted(file: str) -> None:
    trace = run(PROGRAMS["allocations"][0])
    named = replace(trace, capture=replace(trace.capture, file=file))
    words = shlex.split(found(named)["allocations"]["next"])
    assert words[:2] == ["kernelscope", "analyze"]
    assert words[2] in (file, f"./{file}")
    assert not words[2].startswith("-")


def test_every_rule_has_a_code_of_its_own() -> None:
    assert len(RULES) == 12
