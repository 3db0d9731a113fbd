"""Counters of another run, laid on a trace: known answers, and a slow second implementation."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.counted_work import counted_work
from kernelscope.metrics.counter_join import join_counters
from kernelscope.metrics.kernel_spelling import base, spelled, without_parameters
from kernelscope.metrics.window import Window
from kernelscope.parsers.counter_set import CounterSet, joined
from kernelscope.trace import Trace
from tests import build
from tests.corpus import each, needs_corpus, nvprof_traces
from tests.parsers.counter_texts import details, raw, written

FLOPS = tuple(
    (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum", "inst")
    for op in ("fadd", "fmul", "ffma")
)
BYTES = (("dram__bytes_read.sum", "Kbyte"), ("dram__bytes_write.sum", "byte"))
SHAPE = {"grid_x": 4, "grid_y": 2, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}


def plain(*names: str, **more: Any) -> Trace:
    """A trace of kernels of 10 ns, one after the other, in the launch shape of the texts."""
    rows = [(20 * i, 20 * i + 10, name) for i, name in enumerate(names)]
    return build.trace(
        kernels=build.kernels(*rows, **SHAPE, **more), devices=build.devices({"process_id": 1})
    )


def ncu(tmp_path: Path, *rows: tuple[Any, ...], name: str = "run.csv") -> CounterSet:
    return ks.read_counters(written(tmp_path, raw([*FLOPS, *BYTES], rows), name))


def ncu_of(tmp_path: Path, kernel: str, flops: str = "5") -> CounterSet:
    """What ncu counted of one kernel in the shape of the trace's."""
    rows = [(0, name, "inst", flops, kernel) for name, _ in FLOPS]
    return ks.read_counters(written(tmp_path, details(rows), "of_one.csv"))


def by_quantity(trace: Trace, counted: CounterSet, **more: Any) -> dict[str, dict[str, Any]]:
    rows = join_counters(trace, more.pop("window", None), counted, **more).work.records()
    return {row["quantity"]: row for row in rows}


def test_executions_that_are_alike_count_as_their_mean(tmp_path: Path) -> None:
    counted = ncu(tmp_path, (10, 20, 100, 1, 24), (10, 20, 102, 1, 24))
    work = by_quantity(plain("gemm", "gemm", "gemm"), counted)

    flops = work["fp32_flops"]
    assert (flops["value"], flops["low"], flops["high"]) == (3 * 232, 3 * 230, 3 * 234)
    assert (flops["how"], flops["executions"], flops["counted_executions"]) == ("alike", 3, 3)
    assert flops["rate_per_s"] == pytest.approx(3 * 232 / 30e-9)
    assert flops["source"] == "counters"
    assert "2 smsp__sass_thread_inst_executed_op_ffma_pred_on.sum" in flops["counters"]


def test_kbytes_stand_beside_bytes_and_caches_were_cold(tmp_path: Path) -> None:
    work = by_quantity(plain("gemm"), ncu(tmp_path, (0, 0, 0, "1.5", "24")))

    dram = work["dram_bytes"]
    assert (dram["value"], dram["low"]) == (1524, None)
    assert dram["high"] == pytest.approx(1574)  # 1.5 Kbyte may be 1,550 bytes
    assert dram["caveat"] == "cold_cache"
    assert work["fp32_flops"]["value"] == 0.0  # counted, and none: not missing


def test_executions_that_differ_count_in_the_order_of_launches(tmp_path: Path) -> None:
    counted = ncu(tmp_path, *[(n, 0, 0, 1, 0) for n in (100, 300, 200)])
    trace = plain("gemm", "gemm", "gemm")

    flops = by_quantity(trace, counted)["fp32_flops"]
    assert (flops["value"], flops["low"], flops["high"], flops["how"]) == (600, 600, 600, "order")
    second = by_quantity(trace, counted, window=Window(15, 35, "test"))["fp32_flops"]
    assert (second["value"], second["executions"]) == (300, 1)


def test_another_number_of_executions_leaves_bounds(tmp_path: Path) -> None:
    counted = ncu(tmp_path, (100, 0, 0, 1, 0), (300, 0, 0, 1, 0))
    joined_ = join_counters(plain("gemm", "gemm", "gemm"), None, counted)

    [flops] = [row for row in joined_.work.records() if row["quantity"] == "fp32_flops"]
    assert (flops["value"], flops["low"], flops["high"], flops["how"]) == (600, 300, 900, "bounds")
    assert "counted_another_number" in {each.code for each in joined_.findings}


def test_what_was_counted_of_one_side_only(tmp_path: Path) -> None:
    joined_ = join_counters(plain("gemm", "relu"), None, ncu(tmp_path, (1, 1, 1, 1, 1)))
    rows = {row["name"]: row for row in joined_.coverage.records()}

    assert rows["gemm"]["status"] == "matched"
    assert rows["relu"]["status"] == "only_in_trace"
    assert rows["relu"]["share"] == 0.5
    assert "50.0 %" in next(f.message for f in joined_.findings if f.code == "kernels_not_counted")

    two = ncu(tmp_path, (1, 1, 1, 1, 1)), ncu_of(tmp_path, "tanh")
    both = join_counters(plain("gemm"), None, joined(two)).coverage.records()
    assert [(row["name"], row["counted_name"], row["status"]) for row in both] == [
        ("gemm", "gemm", "matched"), (None, "tanh", "only_in_counters"),
    ]  # fmt: skip


def test_counters_of_another_program_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="None of the kernels that were counted") as caught:
        join_counters(plain("relu"), None, ncu(tmp_path, (1, 1, 1, 1, 1)))
    assert "Counted: gemm. In the trace: relu." in caught.value.hint


def test_another_shape_is_another_launch(tmp_path: Path) -> None:
    kernels = build.kernels((0, 10, "gemm"), **{**SHAPE, "grid_x": 5})
    with pytest.raises(SelectionError, match="in a launch shape") as caught:
        join_counters(build.trace(kernels=kernels), None, ncu(tmp_path, (1, 1, 1, 1, 1)))
    assert "batch size" in caught.value.hint


def test_another_gpu_is_left_out(tmp_path: Path) -> None:
    trace = build.trace(
        kernels=build.kernels((0, 10, "gemm"), **SHAPE),
        devices=build.devices({"process_id": 1, "compute_major": 9}),
    )
    joined_ = join_counters(trace, None, ncu(tmp_path, (1, 1, 1, 1, 1)))

    assert not len(joined_.work)
    assert joined_.findings[0].code == "counters_of_another_gpu"


def test_runs_that_counted_different_things_complete_each_other(tmp_path: Path) -> None:
    runs = [
        ks.read_counters(written(tmp_path, raw([metric], [(value,), (value + 1,)]), f"{value}.csv"))
        for metric, value in zip(FLOPS, (10, 20, 30), strict=True)
    ]
    flops = by_quantity(plain("gemm", "gemm"), joined(runs))["fp32_flops"]

    assert flops["value"] == (10 + 20 + 60) + (11 + 21 + 62)


@pytest.mark.parametrize("first", [(100, 100), (100, 300)])
def test_runs_that_disagree_bound_each_other(tmp_path: Path, first: tuple[int, int]) -> None:
    one = ncu(tmp_path, *[(n, 0, 0, 1, 0) for n in first], name="one.csv")
    other = ncu(tmp_path, *[(2 * n, 0, 0, 1, 0) for n in first], name="other.csv")
    found = join_counters(plain("gemm", "gemm"), None, joined([one, other]))

    flops = next(row for row in found.work.records() if row["quantity"] == "fp32_flops")
    assert flops["value"] == 1.5 * sum(first)
    assert flops["low"] <= sum(first)
    assert flops["high"] >= 2 * sum(first)
    assert flops["how"] == ("alike" if first[0] == first[1] else "order")
    (doubt,) = [each for each in found.findings if each.code == "counter_runs_disagree"]
    assert doubt.severity == "warning"
    assert "66.7 %" in doubt.message


def test_runs_that_agree_are_not_doubted(tmp_path: Path) -> None:
    runs = [ncu(tmp_path, (100, 0, 0, n, 0), name=f"{n}.csv") for n in (10, 11)]
    found = join_counters(plain("gemm"), None, joined(runs))

    rows = {row["quantity"]: row for row in found.work.records()}
    assert (rows["fp32_flops"]["low"], rows["fp32_flops"]["high"]) == (100, 100)
    assert rows["dram_bytes"]["high"] == 11_000  # the caches held other things
    assert "counter_runs_disagree" not in {each.code for each in found.findings}


def test_no_order_where_an_execution_has_no_value(tmp_path: Path) -> None:
    counted = ncu(tmp_path, (100, 0, 0, 1, 0), ("n/a", 0, 0, 2, 0))
    found = join_counters(plain("gemm", "gemm"), None, counted)

    hows = {row["quantity"]: row["how"] for row in found.work.records()}
    assert (hows["fp32_flops"], hows["dram_bytes"]) == ("bounds", "order")
    assert found.coverage.texts("how") == ["order"]


def test_what_was_doubtful_about_a_file_is_doubtful_about_its_work(tmp_path: Path) -> None:
    path = written(tmp_path, raw([*FLOPS, *BYTES], [(1, 2, 3, 4, 5)]))
    twice = join_counters(plain("gemm"), None, ks.read_counters(path, path))
    (doubt,) = [each for each in twice.findings if each.code == "counters_doubt"]
    assert "named twice" in doubt.message

    many = replace(ks.read_counters(path), warnings=tuple(f"doubt {n}" for n in range(9)))
    doubts = [e for e in join_counters(plain("gemm"), None, many).findings
              if e.code == "counters_doubt"]  # fmt: skip
    assert [each.count for each in doubts] == [1, 1, 1, 1, 1, 4]


def test_percentages_and_rates_make_no_work(tmp_path: Path) -> None:
    rows = [(0, "sm__throughput.pct", "%", "31")]
    rows += [(0, "dram__bytes.sum.per_second", "Gbyte/second", "3")]  # and no duration
    text = details(rows)
    counted = ks.read_counters(written(tmp_path, text))
    assert not counted_work(counted)
    with pytest.raises(NotRecordedError, match="no FLOPs, bytes or instructions follow") as caught:
        join_counters(plain("gemm"), None, counted)
    assert "ncu --csv" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "capability", "expected"),
    [
        ("ampere_h16816gemm_128x128", (8, 0), (4096, 4096, 4096)),
        ("sm80_xmma_gemm_s1688_tf32", None, (2048, 2048, 2048)),
        ("volta_h884gemm", (7, 0), (512, 512, 512)),
        ("Kernel", (7, 0), (512, 512, 512)),
        ("Kernel", (8, 0), (None, 0, 8192)),
        ("Kernel", (9, 0), (None, 0, None)),
        ("Kernel", None, (None, 0, None)),
        ("volta_sgemm_128x16816", (8, 6), (None, 0, 8192)),
        (
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_stage3_warpsize2x2x1_tensor16x8x16_kernel",
            (8, 0),
            (4096, 4096, 4096),
        ),
        ("ampere_h16816gemm", (9, 0), (None, 0, None)),
    ],
)
def test_tensor_instructions_by_their_shape(
    tmp_path: Path, name: str, capability: tuple[int, int] | None, expected: tuple[Any, ...]
) -> None:
    header = details([(0, "sm__inst_executed_pipe_tensor.sum", "inst", "1", name, "(1, 1, 1)")])
    counted = ks.read_counters(written(tmp_path, header.replace('"8.0"', '""')))
    (group,) = counted_work(counted, capability)
    figures = group.work["tensor_flops"].figures()
    found = tuple(None if math.isnan(each) else each for each in figures)
    assert found == expected
    assert group.work["tensor_instructions"].counted.mean == 1


def test_operations_on_tensor_cores_as_they_were_counted(tmp_path: Path) -> None:
    path = "sm__ops_path_tensor_src_{}_dst_{}{}.sum"
    rows = [
        (0, path.format("fp16", "fp32", ""), "", "700"),
        (0, path.format("fp16", "fp32", "_sparsity_off"), "", "600"),
        (0, path.format("fp16", "fp32", "_sparsity_on"), "", "100"),
        (0, path.format("bf16", "fp32", "_sparsity_off"), "", "50"),
        (0, path.format("int8", "int32", ""), "", "9"),
        (0, "sm__inst_executed_pipe_tensor.sum", "inst", "3"),
    ]
    (group,) = counted_work(ks.read_counters(written(tmp_path, details(rows))))

    assert group.work["tensor_flops"].counted.mean == 750
    assert group.work["tensor_int_ops"].counted.mean == 9


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<(int)4, true>(float *, int)", "f<4, 1>(float*,int)"),
        ("void (anonymous namespace)::g<8ul>()", "void <unnamed>::g<(unsigned long)8>()"),
        ("void h<(bool)1, (int)-3>(T2 *)", "void h<true, -3>(T2*)"),
    ],
)
def test_one_name_in_two_spellings(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)


def test_names_without_what_differs() -> None:
    assert without_parameters("void a::f<int>(float*, void (*)(int))") == "a::f<int>"
    assert base("void a::f<b::c<int>>(float*)") == "f"
    assert base("cupy_add") == "cupy_add"
    assert without_parameters("broken)") == "broken)"


def test_a_looser_spelling_counts_only_where_it_is_the_only_one(tmp_path: Path) -> None:
    counted = ncu(tmp_path, (5, 0, 0, 1, 0))  # of "gemm", the base name
    [row] = (
        join_counters(plain("void a::gemm<float>(int)"), None, counted)
        .work.take(np.array([0]))
        .records()
    )
    assert (row["value"], row["name"]) == (5, "void a::gemm<float>(int)")
    with pytest.raises(SelectionError):  # one of two
        join_counters(plain("a::gemm<float>(int)", "a::gemm<double>(int)"), None, counted)
    with pytest.raises(SelectionError):  # another instance of the template
        join_counters(plain("void gemm<float>(int)"), None, ncu_of(tmp_path, "void gemm<int>(int)"))
    with pytest.raises(SelectionError):  # another overload
        join_counters(plain("void gemm(int)"), None, ncu_of(tmp_path, "gemm(float)"))


def test_a_mangled_name_is_the_kernel_that_it_names(tmp_path: Path) -> None:
    counted = ncu_of(tmp_path, "_Z4gemmIfEvPT_i")
    [row] = join_counters(plain("void gemm<float>(float *, int)"), None, counted).coverage.records()
    assert (row["status"], row["matched_by"]) == ("matched", "spelling")


@needs_corpus
def test_metrics_of_one_kernel_of_a_timeline() -> None:
    """The same program, run twice on a TITAN V: a timeline, and counters of its last kernel."""
    (timeline,) = [p for p in nvprof_traces() if p.name == "TITANV_mxnet_ece408__timeline.nvprof"]
    counters = timeline.with_name("TITANV_mxnet_ece408__forward1_analysis.nvprof")
    analysis = ks.analyze(ks.read(timeline), counters=ks.read_counters(counters))
    [flops] = [row for row in analysis.work.records() if row["quantity"] == "fp32_flops"]

    # Batch 100: 24 maps of 5×5 over 12 maps, on 29×29 positions; each product an FMA, with FADD.
    assert flops["value"] == 512_265_600
    assert flops["rate_per_s"] == pytest.approx(512_265_600 / 436_027e-9)
    assert (flops["executions"], flops["counted_executions"]) == (2, 1)


@each([path for path in nvprof_traces() if "metrics" in path.name])
def test_counters_of_the_trace_itself(trace_file: Path) -> None:
    trace = ks.read(trace_file)
    if not len(trace.counters) or "flop_count_sp_fma" not in trace.counters.categories("metric"):
        return
    found = join_counters(trace, None, ks.read_counters(trace_file), same_run=True)
    expected: dict[str, float] = defaultdict(float)
    times = {"flop_count_sp_add": 1, "flop_count_sp_mul": 1, "flop_count_sp_fma": 2}
    for row in trace.counters.records():
        expected[row["kernel_name"]] += times.get(row["metric"], 0) * (row["value"] or 0)
    rows = [row for row in found.work.records() if row["quantity"] == "fp32_flops"]

    assert {row["name"]: row["value"] for row in rows} == pytest.approx(dict(expected))
    assert {row["how"] for row in rows} == {"same execution"}
    assert {row["rate_per_s"] for row in rows} == {None}
