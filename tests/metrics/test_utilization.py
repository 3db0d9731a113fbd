"""Utilization and bounds: known answers on an A100, and what must hold whatever was counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelscope as ks
from kernelscope import schema
from kernelscope.metrics import bound as rules
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.bound import Side, verdict
from tests import build
from tests.corpus import CORPUS, needs_corpus
from tests.parsers.counter_texts import about, quoted, raw, written

FP32, FP16_TENSOR, DRAM = 108 * 64 * 2 * 1.41e9, 108 * 2048 * 1.41e9, 1.5552e12
L2 = 40 << 20

OPS = [f"smsp__sass_thread_inst_executed_op_{k}{op}_pred_on.sum" for k in "fhd" for op in
       ("add", "mul", "fma")]  # fmt: skip
TENSOR = "sm__inst_executed_pipe_tensor.sum"
BYTES = ["dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"]
UNITS = [*((name, "inst") for name in (*OPS, TENSOR)), *((name, "byte") for name in BYTES)]
SHAPE = {"grid_x": 432, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
NS = 1_000_000
A100 = {"l2_bytes": L2, "memory_bytes_per_s": round(DRAM)}


def counters(folder: Path, *rows: dict[str, Any]) -> Any:
    """A run of ncu, with emptied caches, that counted all: FLOPs, tensor instructions, bytes."""
    header, units, *_ = raw(UNITS, []).splitlines()
    lines = []
    for number, row in enumerate(rows):
        ffma = round(row.get("flops", 0) / 2)
        flops = [0, 0, ffma, 0, 0, 0, 0, 0, round(row.get("fp64", 0) / 2)]
        values = [*flops, row.get("tensor", 0), round(row.get("dram", 0)), 0,
                  round(row.get("l2", row.get("dram", 0)))]  # fmt: skip
        start = list(about(number, row.get("name", "gemm"), "(432, 1, 1)"))
        lines.append(quoted([*start, *values]))
    text = "\n".join([header, units, *lines]) + "\n"
    return ks.read_counters(written(folder, text))


def analyzed(
    folder: Path, *rows: dict[str, Any], names: tuple[str, ...] = ("gemm",), **more: Any
) -> Analysis:
    events = [(2 * NS * i, 2 * NS * i + NS, name) for i, name in enumerate(names)]
    shape = {**SHAPE, **more}
    trace = build.trace(kernels=build.kernels(*events, **shape), devices=build.devices(A100))
    return ks.analyze(trace, counters=counters(folder, *rows))


def of_resource(analysis: Analysis, name: str = "gemm") -> dict[str, dict[str, Any]]:
    rows = analysis.tables["pipe_utilization"].records()
    return {row["resource"]: row for row in rows if row["name"] == name}


def bound(analysis: Analysis, name: str = "gemm") -> dict[str, Any]:
    [row] = [row for row in analysis.tables["bounds"].records() if row["name"] == name]
    return row


def test_flops_over_peak_and_time(tmp_path: Path) -> None:
    found = of_resource(analyzed(tmp_path, {"flops": 0.5 * FP32 * 1e-3, "dram": 1e6}))
    assert found["fp32"]["value"] == pytest.approx(0.5, rel=1e-6)
    assert found["fp32"]["peak_per_s"] == pytest.approx(FP32)
    assert found["fp32"]["coverage"] == 1
    assert found["fp64"]["value"] == 0
    assert found["dram"]["high"] == pytest.approx(1e6 / (DRAM * 1e-3))


def test_tensor_flops_are_measured_against_the_peak_of_their_type(tmp_path: Path) -> None:
    name = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn"
    row = {"name": name, "tensor": round(0.8 * FP16_TENSOR * 1e-3 / 4096), "dram": 1e6}
    found = of_resource(analyzed(tmp_path, row, names=(name,)), name)
    assert found["tensor_fp16_fp32"]["value"] == pytest.approx(0.8, rel=1e-4)
    assert found["fp32"]["value"] == 0


def test_a_pipe_bounds(tmp_path: Path) -> None:
    row = bound(analyzed(tmp_path, {"flops": 0.8 * FP32 * 1e-3, "dram": 0.1 * DRAM * 1e-3}))
    assert (row["bound"], row["bound_reason"]) == ("fp32", None)
    assert row["bound_margin"] == pytest.approx(0.2, abs=1e-3)
    assert row["bound_evidence"].startswith("fp32 80.0 %")
    assert row["roofline_side"] == "compute"


def test_memory_bounds(tmp_path: Path) -> None:
    """More bytes than the cache holds: a cold one cannot have made them up."""
    dram = 0.9 * DRAM * 1e-3
    row = bound(analyzed(tmp_path, {"flops": 0.05 * FP32 * 1e-3, "dram": dram}))
    assert row["memory_low"] == pytest.approx((dram - L2) / (DRAM * 1e-3), rel=1e-6)
    assert row["bound"] == "dram"
    assert row["roofline_side"] == "memory"
    assert row["intensity"] == pytest.approx(0.05 * FP32 / (0.9 * DRAM))


def test_neither_is_latency_with_its_reason(tmp_path: Path) -> None:
    work = {"flops": 0.1 * FP32 * 1e-3, "dram": 0.05 * DRAM * 1e-3}
    row = bound(analyzed(tmp_path, work))
    assert row["bound"] == "latency"
    assert row["bound_reason"] in rules.REASONS


def test_cold_bytes_that_may_be_the_bound_tell_nothing(tmp_path: Path) -> None:
    """0.7 of the bandwidth for 10 µs fits into the cache: it may all have been there before."""
    events = build.kernels((0, 10_000, "gemm"), **SHAPE)
    trace = build.trace(kernels=events, devices=build.devices(A100))
    counted = counters(tmp_path, {"dram": 0.7 * DRAM * 1e-5})
    row = bound(ks.analyze(trace, counters=counted))
    assert (row["bound"], row["bound_reason"]) == ("cannot_tell", rules.BETWEEN)
    assert row["memory_low"] == 0


def test_what_was_not_counted_may_be_the_bound(tmp_path: Path) -> None:
    flops = [(name, "inst") for name in OPS[:3]]
    text = raw(flops, [(0, 0, round(0.3 * FP32 * 1e-3 / 2))]).replace("(4, 2, 1)", "(432, 1, 1)")
    trace = build.trace(
        kernels=build.kernels((0, NS, "gemm"), **SHAPE), devices=build.devices(A100)
    )
    row = bound(ks.analyze(trace, counters=ks.read_counters(written(tmp_path, text))))
    assert (row["bound"], row["bound_reason"]) == ("cannot_tell", rules.NO_COMPUTE)
    text = text.replace(str(round(0.3 * FP32 * 1e-3 / 2)), str(round(0.9 * FP32 * 1e-3 / 2)))
    row = bound(ks.analyze(trace, counters=ks.read_counters(written(tmp_path, text, "b.csv"))))
    assert row["bound"] == "fp32"  # one side alone decides from 0.60 on


def test_a_kernel_that_was_not_counted(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, {"flops": 1e6}, names=("gemm", "relu"))
    row = bound(analysis, "relu")
    assert (row["bound"], row["bound_reason"]) == ("cannot_tell", rules.NO_WORK)
    assert row["compute"] is row["compute_low"] is row["bound_evidence"] is None


def test_communication_comes_first(tmp_path: Path) -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    analysis = analyzed(tmp_path, {"flops": 1e6}, names=("gemm", name))
    assert bound(analysis, name)["bound"] == "communication"


def test_more_than_the_peak_is_diagnosed_and_not_printed(tmp_path: Path) -> None:
    row = of_resource(analyzed(tmp_path, {"flops": 1.5 * FP32 * 1e-3}))["fp32"]
    assert row["value"] is None
    assert row["low"] == pytest.approx(1.5, rel=1e-6)
    assert "above the clock of the peak" in row["diagnosis"]
    cold = of_resource(analyzed(tmp_path, {"dram": 2 * DRAM * 1e-3}))["dram"]
    assert cold["value"] is None
    assert "emptied caches" in cold["diagnosis"]


def test_fp32_utilization_of_the_gpu_is_over_active_time(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, {"flops": 0.5 * FP32 * 1e-3}, names=("gemm", "gemm"))
    [row] = analysis.tables["device_utilization"].records()
    assert row["active_ns"] == 2 * NS
    assert row["coverage"] == 1
    assert row["fp32"] == pytest.approx(0.5, rel=1e-6)
    assert row["fp32_low"] == pytest.approx(row["fp32_high"]) == pytest.approx(row["fp32"])
    assert row["gpu"] == pytest.approx(2 / 3)
    assert row["fp32_of_wall"] == pytest.approx(0.5 * 2 / 3, rel=1e-6)
    assert row["ideal_compute_ratio"] == pytest.approx(0.5, rel=1e-6)


def test_kernels_that_were_not_counted_widen_the_interval(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, {"flops": 0.5 * FP32 * 1e-3}, names=("gemm", "relu"), grid_x=432)
    [row] = analysis.tables["device_utilization"].records()
    assert row["coverage"] == 0.5
    assert row["fp32"] is None
    assert row["fp32_low"] == pytest.approx(0.25, rel=1e-6)
    assert row["fp32_high"] == pytest.approx(0.75, rel=1e-6)
    assert row["ideal_compute_ratio_high"] is None


def test_a_grid_of_few_blocks_reaches_few_multiprocessors(tmp_path: Path) -> None:
    events = [build.kernels((0, NS, "gemm"), **SHAPE),
              build.kernels((2 * NS, 3 * NS, "one"), **{**SHAPE, "grid_x": 27})]  # fmt: skip
    trace = build.trace(kernels=ks.trace.stacked(*events), devices=build.devices(A100))
    counted = counters(tmp_path, {"flops": 0.5 * FP32 * 1e-3})
    [row] = ks.analyze(trace, counters=counted).tables["device_utilization"].records()
    assert row["fp32_high"] == pytest.approx(0.25 + 0.5 * 27 / 108, rel=1e-6)


def test_launch_limited_executions(tmp_path: Path) -> None:
    """The second one waits 2 ms for a launch that the host makes late, and takes 1 ms."""
    kernels = build.kernels((1_000, NS, "gemm"), (3 * NS, 4 * NS, "gemm"), **SHAPE)
    kernels = ks.trace.Table(
        kernels.schema, {**kernels.columns, "correlation_id": np.array([1, 2])}
    )
    calls = build.api_calls((0, 500), (3 * NS - 1_000, 3 * NS - 500))
    calls = ks.trace.Table(calls.schema, {**calls.columns, "correlation_id": np.array([1, 2])})
    trace = build.trace(kernels=kernels, api_calls=calls, devices=build.devices(A100))
    row = bound(ks.analyze(trace, counters=counters(tmp_path, {"flops": 1e6})))
    assert row["launch_limited"] == 0.5


def test_precision_says_what_tensor_cores_could_save(tmp_path: Path) -> None:
    name = "ampere_sgemm_128x64_nn"
    flops = 0.8 * FP32 * 1e-3
    analysis = analyzed(tmp_path, {"name": name, "flops": flops}, names=(name,))
    [row] = analysis.tables["precision"].records()
    assert (row["operation"], row["pipe"]) == ("gemm", "FFMA")
    assert row["tensor_path"] == "tensor_tf32_fp32"
    at_peak = flops / (FP16_TENSOR / 2) * 1e9
    assert row["saving_bound_ns"] == pytest.approx(NS - at_peak, abs=1)


def test_without_counters_nothing_is_made_up() -> None:
    trace = build.trace(
        kernels=build.kernels((0, NS, "gemm"), **SHAPE), devices=build.devices(A100)
    )
    analysis = ks.analyze(trace)
    for name in ("pipe_utilization", "bounds", "device_utilization", "precision"):
        assert len(analysis.tables[name]) == 0


SHARES = st.floats(0, 1)


@st.composite
def sides(draw: st.DrawFn) -> Side:
    low, high = sorted((draw(SHARES), draw(SHARES)))
    known = draw(st.booleans())
    return Side(
        np.array([low if low == high else np.nan]),
        np.array([low]),
        np.array([high if known else 1.0]),
        ["it"],
        np.array([known]),
    )


@given(compute=sides(), memory=sides(), data=st.data())
def test_a_class_never_contradicts_its_evidence(
    compute: Side, memory: Side, data: st.DataObject
) -> None:
    """Whatever true values the intervals allow, where both sides were counted whole."""
    compute = Side(compute.value, compute.low, compute.high, ["pipe"], compute.complete)
    memory = Side(memory.value, memory.low, memory.high, ["level"], memory.complete)
    said = verdict(
        compute, memory, communicates=np.array([False]), latency_reason=["other"],
        coverage=np.array([1.0]), peaks=True,
    )  # fmt: skip
    c = data.draw(st.floats(compute.low[0], compute.high[0]))
    m = data.draw(st.floats(memory.low[0], memory.high[0]))
    name = said.bound[0]
    both = bool(compute.complete[0] and memory.complete[0])
    if name == "pipe":
        assert c >= 0.6
        assert not both or c - m >= 0.1 - 1e-9
    elif name == "level":
        assert m >= 0.6
        assert not both or m - c >= 0.1 - 1e-9
    elif name == "balanced":
        assert abs(c - m) < 0.1
    elif name == "latency":
        assert both
        assert max(c, m) < 0.6
    else:
        assert said.reason[0] is not None
    assert np.isnan(said.margin[0]) == (name == "cannot_tell")


@needs_corpus
def test_a_real_timeline_and_its_metric_run() -> None:
    """The figures follow by hand from the counters that nvprof printed, and the GPU's clock."""
    assert CORPUS is not None
    folder = CORPUS / "traces" / "nvprof"
    trace = ks.read(str(folder / "TITANV_mxnet_ece408__timeline.nvprof"))
    counted = ks.read_counters(str(folder / "TITANV_mxnet_ece408__forward1_analysis.nvprof"))
    analysis = ks.analyze(trace, counters=counted)
    rows = {row["resource"]: row for row in analysis.tables["pipe_utilization"].records()}
    [device] = trace.devices.records()
    peak = device["sm_count"] * 64 * 2 * device["clock_hz"]
    [flops] = [
        row["value"] for row in analysis.tables["work"].records() if row["quantity"] == "fp32_flops"
    ]
    assert rows["fp32"]["value"] == pytest.approx(flops / (peak * rows["fp32"]["time_ns"] / 1e9))
    [total] = analysis.tables["device_utilization"].records()
    assert total["fp32_low"] == pytest.approx(flops / (peak * total["active_ns"] / 1e9))
    assert total["fp32_low"] < total["fp32_high"] <= 1


def test_iterations_partition_what_the_window_holds(tmp_path: Path) -> None:
    """Σ FLOPs over iterations is the window's, whatever lies between them."""
    events = [(NS * i, NS * i + NS // 2, "gemm") for i in range(12)]
    ranges = build.table(
        schema.RANGES,
        [
            {
                "start_ns": NS * i, "end_ns": NS * i + NS // 2, "closed": True, "process_id": 1,
                "thread_id": 1, "domain": "", "name": f"step {i}", "style": "push_pop",
            }
            for i in range(12)
        ],
    )  # fmt: skip
    calls = build.api_calls(*((start, start + 10) for start, _, _ in events))
    number = np.arange(1, 13)
    kernels, calls = (
        ks.trace.Table(table.schema, {**table.columns, "correlation_id": number})
        for table in (build.kernels(*events, **SHAPE), calls)
    )
    trace = build.trace(
        kernels=kernels, api_calls=calls, ranges=ranges, devices=build.devices(A100)
    )
    analysis = ks.analyze(trace, counters=counters(tmp_path, {"flops": 0.4 * FP32 * 5e-4}))
    rows = analysis.tables["utilization_by_iteration"].records()
    assert len(rows) == 12
    for row in rows:
        assert row["fp32"] == pytest.approx(0.4, rel=1e-6)
        assert row["active_ns"] == NS // 2
    [whole] = analysis.tables["device_utilization"].records()
    parts = sum(row["fp32"] * row["active_ns"] for row in rows)
    assert parts == pytest.approx(whole["fp32"] * whole["active_ns"])
