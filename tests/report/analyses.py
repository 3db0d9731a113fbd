"""Analyses built by hand, of a few rows each: reporters are tested without a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelscope.metrics.analysis import TABLES, Analysis
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.metrics.steady import SteadyFigures
from kernelscope.metrics.window import Window
from kernelscope.trace import Capture, NotRecorded, Table
from tests.build import table

Rows = Sequence[Mapping[str, Any]]

CAPTURE = Capture(
    file="runs/train.sqlite",
    format="nsys",
    profiler_version="2025.3.1.90",
    schema="3.20.2",
    started_at="2025-08-04T16:29:32.242076786Z",
    recorded=("kernels", "api_calls", "copies", "devices"),
    not_recorded=(NotRecorded("ranges", "nsys profile --trace=cuda,nvtx"),),
)
WINDOW = Window(1_000, 11_000, "first to last CUDA activity")

SGEMM = "ampere_sgemm_128x64_tn"
FILL = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
    "std::array<char *, (unsigned long)1>>(int, T2, T3)"
)


NO_ITERATIONS = IterationSummary(
    family=None,
    domain=None,
    process_id=None,
    thread_id=None,
    source=None,
    score=None,
    runner_up=None,
    also_in=(),
    count=0,
    warmup=(),
    outliers=(),
    steady=SteadyFigures(0, None, None, None, None),
    throughput_per_s=None,
    kernel_sequence=None,
    notes=("The trace holds no NVTX ranges.",),
)


def analysis(
    capture: Capture = CAPTURE,
    window: Window = WINDOW,
    iteration_summary: IterationSummary = NO_ITERATIONS,
    **tables: Rows,
) -> Analysis:
    """An analysis of the given rows; tables that are not named are empty."""
    made: dict[str, Table] = {
        schema.name: table(schema, tables.get(schema.name, ())) for schema in TABLES
    }
    return Analysis(capture, window, made, iteration_summary)


def summary(**more: Any) -> dict[str, Any]:
    """Duration statistics of two events of 1,000 and 3,000 ns."""
    quantiles = {"p5": 1100.0, "p25": 1500.0, "p75": 2500.0, "p95": 2900.0, "p99": 2980.0}
    return {
        "total_ns": 4000,
        "mean_ns": 2000.0,
        "median_ns": 2000.0,
        "min_ns": 1000,
        "max_ns": 3000,
        "std_ns": 1414.213562373095,
        **{f"quantiles_ns.{name}": value for name, value in quantiles.items()},
        **more,
    }


def kernel(name: str, total_ns: int = 4000, **more: Any) -> dict[str, Any]:
    """A row of `kernels` or `launch_shapes`."""
    totals = {"executions": 2, "share": 0.5, "share_of_window": 0.4}
    return {"name": name, **summary(**{**totals, "total_ns": total_ns, **more})}


def device(index: int = 0, **more: Any) -> dict[str, Any]:
    """A GPU that computes for 4,000 of 10,000 ns, copies for 1,000 and is idle else."""
    parts = {f"partition.{name}_ns": 0 for name in PARTITION_CLASSES}
    parts |= {"partition.compute_only_ns": 4000, "partition.copy_only_ns": 1000}
    parts |= {"partition.idle_ns": 5000}
    return {
        "index": index,
        "physical_id": f"GPU-{index}",
        "name": "NVIDIA A100-SXM4-40GB",
        "window_ns": 10_000,
        "busy_ns": 5000,
        "kernel_ns": 4000,
        "compute_ns": 4000,
        "idle_ns": 5000,
        "leading_ns": 500,
        "trailing_ns": 1500,
        "gap_count": 2,
        "largest_gap_ns": 2000,
        "sm_fill": 0.75,
        "concurrency.one_ns": 4000,
        "concurrency.two_ns": 0,
        "concurrency.three_or_more_ns": 0,
        **parts,
        **more,
    }


def typical() -> Analysis:
    """One GPU, two kernels, a copy and a memset, two calls, two gaps: all is well."""
    return analysis(
        kernels=[kernel(SGEMM, share=0.4), kernel(FILL, 6000, share=0.6)],
        kernels_by_device=[
            {"name": name, "process_id": 42, "device_id": 0, "executions": 2, "total_ns": total}
            for name, total in ((SGEMM, 4000), (FILL, 6000))
        ],
        launch_shapes=[
            kernel(
                SGEMM,
                **{f"{what}.{i}": 2**i for what in ("grid", "block") for i in range(3)},
                occupancy=0.25,
                limiter="registers",
                resident_blocks=2,
                waves=1.5,
                tail_efficiency=0.75,
            ),
            kernel(FILL, 6000, occupancy_note="not recorded"),
        ],
        peaks=[
            {
                "device": 0,
                "pipe": "fp32",
                "instruction": "FFMA",
                "input_type": "fp32",
                "accumulate_type": "fp32",
                "per_s": 19.5e12,
                "unit": "FLOP/s",
                "clock_hz": 1_410_000_000,
                "clock_basis": "maximum clock in the trace",
                "confidence": "A",
                "gpu": "NVIDIA A100-SXM4-40GB",
                "matched_by": "name",
            }
        ],
        api_calls=[
            {"name": "cudaLaunchKernel", "calls": 4, **summary()},
            {"name": "cudaMemcpyAsync", "calls": 2, **summary(total_ns=9000)},
        ],
        copies=[
            {
                "kind": "HtoD",
                "src_memory": "pageable",
                "dst_memory": "device",
                "operations": 2,
                "bytes": 2**20,
                "bytes_per_s": 12.5e9,
                **summary(),
            },
            {"kind": "memset", "dst_memory": "device", "operations": 2, **summary(total_ns=10)},
        ],
        copies_by_kind=[
            {"kind": "HtoD", "operations": 2, "bytes": 2**20, "bytes_per_s": 12.5e9, **summary()},
            {"kind": "memset", "operations": 2, **summary(total_ns=10)},
        ],
        devices=[device()],
        device_ordinals=[{"index": 0, "process_id": 42, "device_id": 0}],
        device_processes=[
            {"process_id": 42, "device_id": 0, "other_process_ns": 0, **_without_index(device())}
        ],
        streams=[
            {
                "process_id": 42,
                "device_id": 0,
                "context_id": 1,
                "stream_id": stream,
                "kernels": 2,
                "busy_ns": busy,
                "exclusive_ns": busy,
            }
            for stream, busy in ((7, 1000), (13, 4000))
        ],
        gaps=[
            {"device": 0, "start_ns": 2000, "end_ns": 3000, "duration_ns": 1000},
            {"device": 0, "start_ns": 6000, "end_ns": 8000, "duration_ns": 2000},
            {
                "process_id": 42,
                "device_id": 0,
                "device": 0,
                "start_ns": 6000,
                "end_ns": 8000,
                "duration_ns": 2000,
            },
        ],
        health=[
            {
                "code": "quarantine",
                "severity": "warning",
                "count": 3,
                "message": "3 rows left out.",
            },
            {
                "code": "not_recorded_ranges",
                "severity": "info",
                "count": 1,
                "message": "The capture holds no ranges.",
            },
        ],
        checks=[{"name": "partition of GPU 0", "expected": 10_000, "actual": 10_000, "ok": True}],
        capture_cost=[{"name": "buffer flush", "events": 2, "total_ns": 700}],
    )


def launched(**more: Any) -> dict[str, Any]:
    """Figures of four launch calls, as in `launches` and `launch_totals`."""
    figures: dict[str, Any] = {"calls": 4, "executions": 4, "total_ns": 20_000, "queued": 3}
    figures |= {"overlapping": 1, "overlap_ns": 50, "unknown": 0}
    for name, median in (("overhead_ns", 5000), ("queue_ns", 700), ("latency_ns", 6000)):
        figures |= {f"{name}.median": float(median), f"{name}.p95": 2.0 * median}
        figures |= {f"{name}.min": median // 2, f"{name}.max": 3 * median}
    return figures | more


def finding(code: str, saving_ns: int | None, **more: Any) -> dict[str, Any]:
    """A row of `findings`."""
    share = None if saving_ns is None else saving_ns / 10_000
    return {
        "code": code,
        "title": f"The title of {code}",
        "evidence": f"the evidence of {code}, 42 calls",
        "saving_bound_ns": saving_ns,
        "saving_share": share,
        "per": "window",
        "device": 0,
        "where": "the longest stretch 2.000 µs at 0.000006 s",
        "advice": "mend it",
        "next": "kernelscope analyze runs/train.sqlite --between 5ns,9ns",
        **more,
    }


def beside(process_id: int, source: str | None, **more: Any) -> dict[str, Any]:
    """A row of `overlap`: the states of 10,000 ns."""
    states = {"both_ns": 1000, "gpu_only_ns": 4000, "cpu_only_ns": 500, "neither_ns": 4500}
    waits = {"synchronization": 2000, "copy": 900, "allocation": 0, "module": 0, "queue": 0}
    return {
        "process_id": process_id,
        "device_id": process_id - 42,
        "cpu_source": source,
        **states,
        **{f"waiting.{name}_ns": ns for name, ns in waits.items()},
        "driving_threads": 1,
        **more,
    }


def eventful() -> Analysis:
    """Two GPUs of two processes, with a row or two in every table that says why time is lost."""
    copy = {"kind": "HtoD", "src_memory": "pageable", "dst_memory": "device"}
    moved = {"operations": 2, "bytes": 2**20, "total_ns": 4000, "bytes_per_s": 2.5e9}
    talk = {"calls": 3, "total_ns": 900, "busy_ns": 900, "exposed_ns": 600, "overlapped_ns": 300}
    bounds = {"both_high_ns": 2500, "gpu_only_low_ns": 2500}
    bounds |= {"cpu_only_high_ns": 700, "neither_low_ns": 4300}
    return analysis(
        kernels=[kernel(SGEMM)],
        copies=[{**copy, **summary(), "operations": 2, "bytes": 2**20, "bytes_per_s": 2.5e9}],
        devices=[device(0), device(1)],
        device_ordinals=[
            {"index": index, "process_id": 42 + index, "device_id": index} for index in (0, 1)
        ],
        gaps=[
            {"device": 1, "start_ns": 2000, "end_ns": 3000, "duration_ns": 1000},
            {"device": 0, "start_ns": 6000, "end_ns": 8000, "duration_ns": 2000},
        ],
        findings=[
            finding("synchronizations", 3000, device=1),
            finding("profiler_overhead", None, next="kernelscope analyze runs/train.sqlite"),
        ],
        idle=[
            {
                "device": place,
                "cause": cause,
                "detail": detail,
                "total_ns": ns,
                "gaps": 2,
                "share": ns / 5000,
                "largest_ns": ns // 2,
            }
            for place, cause, detail, ns in (
                (0, "host: synchronization", "cudaStreamSynchronize", 3000),
                (0, "host: off_core", "thread asleep, nothing recorded", 1999),
                (0, "intra_graph", "", 1),
                (1, "in_call", "cudaLaunchKernel (blocked: module)", 5000),
            )
        ],
        gap_spectrum=[
            {
                "device": 0,
                "up_to_ns": up_to,
                "gaps": gaps,
                "total_ns": ns,
                "cumulative_ns": ns,
                "edge_ns": 0,
            }
            for up_to, gaps, ns in ((1000, 0, 0), (2000, 1, 2000), (5000, 1, 3000), (None, 0, 0))
        ],
        overlap=[beside(42, "api_calls", **bounds), beside(43, "scheduling")],
        cpu=[{"cores": 8, "on_core_ns": 4000, "scheduled_ns": 10_000, "utilization": 0.05}],
        launch_totals=[{"name": "all", **launched()}],
        launches=[{"name": "cudaLaunchKernel", "without_execution": 1, **launched()}],
        launches_by_kernel=[{"name": SGEMM, **launched()}],
        queue_depth=[
            {
                "process_id": 42,
                "device_id": 0,
                "launches": 4,
                "mean": 1.5,
                "max": 3,
                "time_ns.depth_0": 5000,
                "unknown": 0,
            }
        ],
        launch_stretches=[
            {"device": 0, "start_ns": 1000, "end_ns": 3000, "duration_ns": 2000, "waiting_ns": 1500}
        ],
        transfers=[
            {**copy, "call": call, **moved, "blocked_ns": held, "exposed_ns": exposed}
            for call, held, exposed in (("cudaMemcpyAsync", 8000, 700), ("cudaMemcpy", 500, 100))
        ],
        migrations=[{"kind": "unified HtoD", "cause": "page fault", **moved, "exposed_ns": 4000}],
        communication=[
            {
                "process_id": 42,
                "device_id": 0,
                "library": "NCCL, RCCL",
                "kind": "all_reduce",
                **talk,
                "bytes": 2**20,
                "bus_bytes_per_s": 3.2e9,
                "lower_bound": True,
            },
            {
                "process_id": 43,
                "device_id": 1,
                "library": "user",
                "kind": "unknown",
                **talk,
                "bytes_missing_because": "no_nvtx_range",
                "lower_bound": True,
            },
        ],
        communication_by_device=[{"process_id": 42, "device_id": 0, **talk}],
    )


def _without_index(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("index", "physical_id")}
