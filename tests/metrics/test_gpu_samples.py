"""Sampled GPU metrics: what a sample speaks of, and when it counts; golden scenes of a few rows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope import oracle, schema
from kernelscope.metrics.analysis import Analysis, analyze
from kernelscope.metrics.explanations import topics
from kernelscope.metrics.gpu_samples import (
    gpu_metrics,
    gpu_metrics_by_iteration,
    gpu_metrics_by_kernel,
    sampled,
)
from kernelscope.metrics.sample_names import ROLES, meaning
from kernelscope.metrics.window import Window
from kernelscope.oracle.sampled import ISSUE
from kernelscope.report.explained import compare
from kernelscope.report.sql_tables import source_of
from kernelscope.trace import Table, Trace
from tests.build import copies, devices, joined, kernels, table, trace

TENSOR = "Tensor Active [Throughput %]"
READ = "DRAM Read Bandwidth [Throughput %]"


def samples(*rows: tuple[int, int], metric: str = ISSUE, gpu: int = 0, **more: Any) -> Table:
    """Samples ``(time, value)`` of one metric of one GPU."""
    return table(
        schema.GPU_SAMPLES,
        [
            {
                "time_ns": time,
                "source": f"gpu {gpu}",
                "gpu_id": gpu,
                "metric": metric,
                "value": value,
                **more,
            }
            for time, value in rows
        ],
    )


def every(period: int, *values: int, start: int = 0, **more: Any) -> Table:
    """Samples a period apart; the first, at `start`, speaks of nothing."""
    times = [(start, 0), *((start + period * i, v) for i, v in enumerate(values, 1))]
    return samples(*times, **more)


def run(made: Table, **tables: Table) -> Trace:
    return trace(gpu_samples=made, devices=devices({"gpu_id": 0}), **tables)


def figures(made: Table, *keys: str) -> dict[Any, Any]:
    return {
        tuple(row[key] for key in keys): (row["value"], row["samples"], row["covered_ns"])
        for row in made.records()
    }


def only(made: Table) -> dict[str, Any]:
    (row,) = made.records()
    return row


def test_one_kernel_alone_has_the_mean_of_its_samples() -> None:
    made = run(every(100, 10, 20, 30, 40, 50, 0, 0), kernels=kernels((0, 500, "gemm")))

    row = only(gpu_metrics_by_kernel(made))

    assert (row["name"], row["device"], row["gpu_id"], row["role"]) == ("gemm", 0, 0, "sm_issue")
    assert row["value"] == pytest.approx(0.3)
    assert (row["samples"], row["covered_ns"], row["coverage_ratio"]) == (5, 500, 1.0)
    assert row["missing_because"] is None


@pytest.mark.parametrize(("count", "value"), [(4, None), (5, 0.6)])
def test_under_five_samples_there_is_no_mean(count: int, value: float | None) -> None:
    made = run(every(100, *[60] * count, 0, 0, 0), kernels=kernels((0, 100 * count)))

    row = only(gpu_metrics_by_kernel(made))

    assert (row["value"], row["samples"]) == (pytest.approx(value) if value else None, count)
    assert row["missing_because"] == (None if value else "fewer_than_5_samples")


@pytest.mark.parametrize(("covered", "counted"), [(94, 5), (95, 6), (96, 6)])
def test_a_sample_counts_for_a_kernel_from_95_percent_on(covered: int, counted: int) -> None:
    made = run(every(100, *[50] * 8), kernels=kernels((0, 500 + covered)))

    row = only(gpu_metrics_by_kernel(made))

    assert row["samples"] == counted
    assert row["covered_ns"] == 500 + (covered if counted == 6 else 0)


@pytest.mark.parametrize(
    "other",
    [
        {"kernels": kernels((199, 201, "b"))},
        {"copies": copies((150, 160))},
        {"copies": copies((150, 160, "memset"))},
        {"copies": copies((150, 160, "unified HtoD"))},
        {"graphs": table(schema.GRAPHS, [{"start_ns": 150, "end_ns": 160, "device_id": 0,
                                          "process_id": 1}])},
    ],
    ids=["kernel", "copy", "memset", "migration", "graph"],
)  # fmt: skip
def test_a_sample_in_which_anything_else_runs_counts_for_no_kernel(
    other: dict[str, Table],
) -> None:
    mine = kernels((0, 700, "a"))
    both = joined(mine, other["kernels"]) if "kernels" in other else mine
    made = run(
        every(100, *[50] * 7), kernels=both, **{k: v for k, v in other.items() if k != "kernels"}
    )

    found = figures(gpu_metrics_by_kernel(made), "name")

    # (100, 200] is lost, and (200, 300] too where the other kernel reaches into it.
    assert found == {
        ("a",): (0.5, 5 if "kernels" in other else 6, 500 if "kernels" in other else 600)
    }


def test_two_executions_of_one_name_at_once_count_once() -> None:
    made = run(every(100, *[50] * 5), kernels=kernels((0, 400, "a"), (200, 500, "a")))

    row = only(gpu_metrics_by_kernel(made))

    assert (row["samples"], row["covered_ns"], row["coverage_ratio"]) == (5, 500, 500 / 700)


def test_a_copy_on_the_host_alone_occupies_no_gpu() -> None:
    made = run(every(100, *[50] * 5), kernels=kernels((0, 500)), copies=copies((0, 500, "HtoH")))

    assert only(gpu_metrics_by_kernel(made))["samples"] == 5


def test_a_sample_after_a_gap_speaks_of_nothing() -> None:
    """Exactly two periods are still one sample's; more are a gap."""
    times = [0, 100, 200, 300, 400, 500, 700, 901, 1001]
    made = run(samples(*((time, 50) for time in times)), kernels=kernels((0, 1001)))

    window = only(gpu_metrics(made))

    assert (window["samples"], window["covered_ns"]) == (7, 800)
    health = analyze(made).health.records()
    assert [row["count"] for row in health if row["code"] == "samples_lost"] == [1]


def test_a_window_cuts_samples_and_weighs_them_by_their_time() -> None:
    made = run(every(100, 0, 100, 40, 40, 40, 40, 40))

    row = only(gpu_metrics(made, Window(150, 600, "chosen")))

    assert row["value"] == pytest.approx((50 * 1.0 + 400 * 0.4) / 450)
    assert (row["samples"], row["covered_ns"], row["coverage_ratio"]) == (5, 450, 1.0)


def test_iterations_share_a_sample_by_its_time() -> None:
    made = run(every(100, *[10] * 10, *[90] * 10))
    periods = np.array([0, 950]), np.array([950, 2000])

    found = figures(gpu_metrics_by_iteration(made, np.array([3, 4]), periods), "iteration")

    assert found[3,] == (pytest.approx(0.1), 10, 950)
    assert found[4,] == (pytest.approx((50 * 0.1 + 1000 * 0.9) / 1050), 11, 1050)


def test_metrics_of_one_moment_belong_together() -> None:
    """A value that is lacking loses its own interval, and no other metric's."""
    made = run(joined(every(100, *[50] * 6), samples((0, 0), (100, 8), (300, 8), metric=TENSOR)))

    found = figures(gpu_metrics(made, Window(0, 600, "chosen")), "metric")

    assert found[ISSUE,] == (0.5, 6, 600)
    assert found[TENSOR,] == (None, 2, 200)


def test_gpus_are_told_by_the_profilers_number() -> None:
    """Ordinal 0 is GPU 5 here; GPU 9 is none that the program used."""
    one, two = every(100, *[10] * 5, gpu=5), every(100, *[70] * 5, gpu=9)
    made = trace(
        gpu_samples=joined(one, two),
        devices=devices({"device_id": 0, "gpu_id": 5}, {"device_id": 1, "gpu_id": 9}),
        kernels=kernels((0, 500)),
    )

    found = {row["gpu_id"]: (row["device"], row["value"]) for row in gpu_metrics(made).records()}

    assert found == {5: (0, pytest.approx(0.1)), 9: (None, pytest.approx(0.7))}
    assert {row["gpu_id"] for row in gpu_metrics_by_kernel(made).records()} == {5}
    codes = {row["code"]: row["severity"] for row in analyze(made).health.records()}
    assert codes["samples_without_device"] == "info"


def test_a_part_of_a_gpu_is_not_what_was_sampled() -> None:
    made = trace(
        gpu_samples=every(100, *[50] * 5),
        devices=devices({"gpu_id": 0, "uuid": "MIG-1c2d", "identifies": True}),
        kernels=kernels((0, 500)),
    )

    assert sampled(made).devices == (None,)
    assert not len(gpu_metrics_by_kernel(made))
    codes = {row["code"]: row["severity"] for row in analyze(made).health.records()}
    assert codes["samples_without_device"] == "warning"


def test_two_sources_that_claim_one_gpu_are_told_apart_by_nothing() -> None:
    twice = joined(every(100, *[50] * 5), every(100, *[50] * 5, source="another machine"))
    stray = joined(every(100, *[50] * 5), samples((10, 1), (20, 1), source="hiccup"))

    assert sampled(run(twice, kernels=kernels((0, 500)))).devices == (None, None)
    assert 0 in sampled(run(stray, kernels=kernels((0, 500)))).devices


def test_memory_rates_need_a_peak() -> None:
    made = every(100, *[50] * 5, metric=READ)
    known = trace(
        gpu_samples=made,
        devices=devices({"gpu_id": 0, "memory_bytes_per_s": 2_000_000_000_000}),
        kernels=kernels((0, 500)),
    )

    assert only(gpu_metrics(known))["bytes_per_s"] == pytest.approx(1e12)
    assert only(gpu_metrics(run(made, kernels=kernels((0, 500)))))["bytes_per_s"] is None


@pytest.mark.parametrize(
    ("name", "role", "unit"),
    [
        ("SMs Active [Throughput %]", "sm_active", "ratio"),
        ("SM Active", "sm_active", "ratio"),
        ("SM Issue [Throughput %]", "sm_issue", "ratio"),
        ("Tensor Active / FP16 Active", "tensor_or_fp16_active", "ratio"),
        ("DRAM Write Throughput", "dram_write", "ratio"),
        ("GPC Clock Frequency [MHz]", "gpc_clock", "Hz"),
        ("GPC Clock Frequency", "gpc_clock", "Hz"),
        ("NVLink RX Requests User Data [Throughput %]", "nvlink_rx", "ratio"),
        ("PCIe TX Throughput [Throughput %]", "pcie_tx", "ratio"),
        ("PCIe Read Requests to BAR1 [Requests]", None, "1/s"),
        ("VidL2 Total from L1TEX [Bytes]", None, "bytes/s"),
        ("Compute Warps In Flight", None, None),
        ("Compute Warps in Flight [Avg]", None, None),
        ("Compute Warps in Flight [Throughput %]", "compute_warps", "ratio"),
        ("Something New [Throughput %]", None, "ratio"),
        ("Something New", None, None),
        ("metric 17", None, None),
    ],
)
def test_names_of_every_generation(name: str, role: str | None, unit: str | None) -> None:
    assert (meaning(name).role, meaning(name).unit) == (role, unit)


def test_residency_is_no_compute() -> None:
    assert {name for name, role in ROLES.items() if role == "sm_active"} == {
        "sm active",
        "sms active",
    }
    assert "residency" in topics()["gpu_metrics.value"].explanation.pitfalls


def test_clocks_and_counts_have_their_own_units() -> None:
    made = run(
        joined(
            every(100, *[1_410_000_000] * 5, metric="GPC Clock Frequency [MHz]"),
            every(100, *[7] * 5, metric="PCIe Read Requests to BAR1 [Requests]"),
            every(100, *[4_000_000] * 5, metric="Compute Warps in Flight [Avg]"),
        )
    )

    rows = {row["unit"]: row for row in gpu_metrics(made, Window(0, 500, "chosen")).records()}

    assert rows["Hz"]["value"] == pytest.approx(1.41e9)
    assert rows["1/s"]["value"] == pytest.approx(7e7)
    assert (rows[None]["value"], rows[None]["missing_because"]) == (None, "scale_unknown")


def test_samples_with_problems_are_left_out_and_counted() -> None:
    bad: list[dict[str, Any]] = [
        {"time_ns": None, "value": 3, "problem": "no_time"},
        {"time_ns": 300, "value": 130, "problem": "above_peak"},
    ]
    common = {"source": "gpu 0", "gpu_id": 0, "metric": ISSUE}
    made = joined(
        samples(*((time, 50) for time in (0, 100, 200, 400, 500, 600))),
        table(schema.GPU_SAMPLES, [{**common, **row} for row in bad]),
    )
    what = run(made, kernels=kernels((0, 600)))

    assert figures(gpu_metrics(what), "metric") == {(ISSUE,): (0.5, 5, 500)}
    left = {row["message"]: row["count"] for row in analyze(what).health.records()
            if row["code"] == "samples_left_out"}  # fmt: skip
    assert sorted(left.values()) == [1, 1]


def test_samples_without_any_time_are_no_series() -> None:
    rows = [{"source": "gpu 0", "gpu_id": 0, "metric": ISSUE, "time_ns": None, "value": 3,
             "problem": "no_time"}] * 9  # fmt: skip
    found = analyze(run(table(schema.GPU_SAMPLES, rows), kernels=kernels((0, 600))))

    (left,) = [row for row in found.health.records() if row["code"] == "samples_left_out"]
    assert left["count"] == 9
    assert all(row["value"] is None for row in found.tables["gpu_metrics"].records())


def test_samples_of_nobody_knows_which_gpu_are_counted() -> None:
    made = joined(every(100, 50, 50, 50, 50, 50), samples((5, 1), (6, 2), source=None))
    (left,) = [row for row in analyze(run(made, kernels=kernels((0, 600)))).health.records()
               if row["code"] == "samples_left_out"]  # fmt: skip
    assert left["count"] == 2
    assert "typeId" in left["message"]


def test_without_samples_there_are_no_rows() -> None:
    made = analyze(trace(kernels=kernels((0, 500))))

    assert all(not len(made.tables[name]) for name in
               ("gpu_metrics", "gpu_metrics_by_kernel", "gpu_metrics_by_range"))  # fmt: skip


def test_a_chosen_process_sees_the_others_as_something_else() -> None:
    both = joined(kernels((0, 500, "mine")), kernels((500, 1000, "theirs"), process_id=2))
    rows = ({"process_id": process, "gpu_id": 0, "identifies": True} for process in (1, 2))
    made = trace(gpu_samples=every(100, *[50] * 10), kernels=both, devices=devices(*rows))

    assert {r["name"] for r in analyze(made).gpu_metrics_by_kernel.records()} == {"mine", "theirs"}
    chosen = analyze(made, processes=[1]).gpu_metrics_by_kernel.records()
    assert [(row["name"], row["samples"], row["device"]) for row in chosen] == [("mine", 5, 0)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = oracle.SCENES["sampled"]()
    return oracle.write(plan, tmp_path_factory.mktemp("sampled") / "run.sqlite")


@pytest.fixture(scope="module")
def analysed(scene: Path) -> Analysis:
    return ks.analyze(ks.read(scene))


def test_the_scene_has_its_known_answers(analysed: Analysis) -> None:
    facts = oracle.SCENES["sampled"]().facts
    found = figures(analysed.gpu_metrics_by_kernel, "name", "metric")
    for name, metrics in facts["by_kernel"].items():
        for metric, (count, mean) in metrics.items():
            value, samples_, covered = found[name, metric]
            assert (samples_, covered) == (count, count * facts["period_ns"])
            assert value == (None if mean is None else pytest.approx(mean))
    for row in analysed.gpu_metrics.records():
        assert (row["samples"], row["covered_ns"]) == (
            facts["window"]["samples"],
            facts["window"]["covered_ns"],
        )
    ranges = figures(analysed.gpu_metrics_by_range, "path", "metric")
    assert ranges["forward", ISSUE][1] == 14
    assert {path for path, _ in ranges} == {"forward"}  # the copy of `tail` is too short


@pytest.mark.parametrize(("covered", "counted"), [(940, 5), (950, 6), (960, 6)])
def test_a_sample_counts_for_a_range_from_95_percent_on(
    tmp_path: Path, covered: int, counted: int
) -> None:
    """The projection is one stretch, whatever gap lies between its two kernels."""
    made = oracle.Run().range(100, 900, "forward")
    made = made.kernel(1_000, 2_000, "a", call=(200, 300))
    made = made.kernel(5_000, 6_000 + covered, "b", call=(400, 500))
    made = made.kernel(9_000, 9_500, "c", call=(950, 960))
    for time in range(1_000, 10_000, 1_000):
        made = made.samples(time, {ISSUE: 30})

    found = ks.analyze(ks.read(oracle.write(made.plan(), tmp_path / "run.sqlite")))

    (row,) = found.gpu_metrics_by_range.records()
    assert row["samples"] == counted
    assert row["covered_ns"] == 5_000 + (covered if counted == 6 else 0)
    assert row["coverage_ratio"] == row["covered_ns"] / (5_000 + covered)


def test_ranges_of_all_steps_have_one_mean() -> None:
    """Each step alone holds three samples, too few for a mean."""
    made = oracle.Run()
    for step in range(3):
        t = 10_000 * step
        made = made.range(t + 100, t + 900, f"step {step}")
        made = made.kernel(t + 1_000, t + 4_000, "gemm", call=(t + 200, t + 300))
    for time in range(0, 30_000, 1_000):
        made = made.samples(time, {ISSUE: 40 if time % 10_000 in (2_000, 3_000, 4_000) else 0})

    with TemporaryDirectory() as folder:
        found = ks.analyze(ks.read(oracle.write(made.plan(), Path(folder) / "run.sqlite")))
        rows = figures(found.gpu_metrics_by_range, "path", "metric")

    assert rows == {("step #", ISSUE): (pytest.approx(0.4), 9, 9_000)}


def test_the_scenes_gpus_are_not_mixed_up(analysed: Analysis) -> None:
    names = analysed.devices.texts("name")
    means = {
        names[row["device"]]: row["value"]
        for row in analysed.gpu_metrics.records()
        if row["role"] == "sm_active"
    }
    assert means == {
        "NVIDIA A100-SXM4-40GB": pytest.approx(14 / 18),
        "NVIDIA GeForce RTX 3080": pytest.approx(0.01),
    }


@pytest.mark.parametrize(
    "key", ["gpu_metrics.value", "gpu_metrics.samples", "gpu_metrics.covered_ns"]
)
@pytest.mark.parametrize("between", [None, (1_005_000, 1_090_000)])
def test_sql_finds_the_same(scene: Path, key: str, between: tuple[int, int] | None) -> None:
    compared = compare(topics()[key], source_of(ks.read(scene), between=between))

    assert compared is not None
    assert not compared.differences
