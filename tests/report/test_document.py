"""The JSON contract, written out whole once, and its rules one by one."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from kernelscope.metrics import results
from kernelscope.metrics.analysis import TABLES
from kernelscope.metrics.sample_results import TABLES as SAMPLED
from kernelscope.report import json_rows, to_json
from kernelscope.report.document import document, records
from kernelscope.report.rows import ordered
from kernelscope.trace import Capture, Table
from tests.build import table
from tests.report.analyses import FILL, SGEMM, analysis, device, eventful, kernel, typical

STATISTICS = {
    "mean_ns": 2000.0,
    "median_ns": 2000.0,
    "min_ns": 1000,
    "max_ns": 3000,
    "std_ns": 1414.213562373095,
    "quantiles_ns": {"p5": 1100.0, "p25": 1500.0, "p75": 2500.0, "p95": 2900.0, "p99": 2980.0},
}
DEVICE = {
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
    "concurrency": {"one_ns": 4000, "two_ns": 0, "three_or_more_ns": 0},
    "partition": {
        "compute_and_communication_ns": 0,
        "compute_and_copy_ns": 0,
        "compute_only_ns": 4000,
        "opaque_graph_ns": 0,
        "communication_only_ns": 0,
        "copy_only_ns": 1000,
        "memset_only_ns": 0,
        "idle_ns": 5000,
    },
}


def on_device(total_ns: int) -> list[dict[str, Any]]:
    return [{"process_id": 42, "device_id": 0, "executions": 2, "total_ns": total_ns}]


def kernel_row(name: str, total_ns: int, share: float, **more: Any) -> dict[str, Any]:
    counted = {"name": name, "executions": 2, "total_ns": total_ns}
    shares = {"share": share, "share_of_window": 0.4}
    decoded = dict.fromkeys(("family", "operation", "pipe"))  # not in tables made by hand
    return {**counted, **STATISTICS, **shares, **decoded, **more}


def stream(stream_id: int, busy_ns: int) -> dict[str, Any]:
    where = {"process_id": 42, "device_id": 0, "context_id": 1, "stream_id": stream_id}
    time = {"kernels": 2, "busy_ns": busy_ns, "exclusive_ns": busy_ns, "largest_gap_ns": None}
    return {**where, **time}


def copied(total_ns: int, size: int | None, rate: float | None) -> dict[str, Any]:
    return {
        "operations": 2,
        "bytes": size,
        "total_ns": total_ns,
        **STATISTICS,
        "bytes_per_s": rate,
    }


EXPECTED: dict[str, Any] = {
    "schema_version": 1,
    "capture": {
        "file": "runs/train.sqlite",
        "format": "nsys",
        "profiler_version": "2025.3.1.90",
        "schema": "3.20.2",
        "started_at": "2025-08-04T16:29:32.242076786Z",
        "cpu_cores": None,
        "serialised": None,
        "recorded": ["kernels", "api_calls", "copies", "devices"],
        "not_recorded": [{"table": "ranges", "how_to_record": "nsys profile --trace=cuda,nvtx"}],
    },
    "window": {
        "start_ns": 1000,
        "end_ns": 11_000,
        "duration_ns": 10_000,
        "chosen_by": "first to last CUDA activity",
    },
    "health": [
        {"code": "quarantine", "severity": "warning", "count": 3, "message": "3 rows left out."},
        {
            "code": "not_recorded_ranges",
            "severity": "info",
            "count": 1,
            "message": "The capture holds no ranges.",
        },
    ],
    "checks": [{"name": "partition of GPU 0", "expected": 10_000, "actual": 10_000, "ok": True}],
    "capture_cost": [{"name": "buffer flush", "events": 2, "total_ns": 700}],
    "kernels": [
        kernel_row(FILL, 6000, 0.6, by_device=on_device(6000)),
        kernel_row(SGEMM, 4000, 0.4, by_device=on_device(4000)),
    ],
    "launch_shapes": [
        {
            **kernel_row(FILL, 6000, 0.5),
            "grid": None,
            "block": None,
            "occupancy": None,
            "limiter": None,
            "resident_blocks": None,
            "waves": None,
            "tail_efficiency": None,
            "occupancy_note": "not recorded",
        },
        {
            **kernel_row(SGEMM, 4000, 0.5),
            "grid": [1, 2, 4],
            "block": [1, 2, 4],
            "occupancy": 0.25,
            "limiter": "registers",
            "resident_blocks": 2,
            "waves": 1.5,
            "tail_efficiency": 0.75,
            "occupancy_note": None,
        },
    ],
    "api_calls": [
        {"name": "cudaMemcpyAsync", "calls": 2, "total_ns": 9000, **STATISTICS},
        {"name": "cudaLaunchKernel", "calls": 4, "total_ns": 4000, **STATISTICS},
    ],
    "copies": [
        {
            "kind": "HtoD",
            "src_memory": "pageable",
            "dst_memory": "device",
            **copied(4000, 2**20, 12.5e9),
        },
        {"kind": "memset", "src_memory": None, "dst_memory": "device", **copied(10, None, None)},
    ],
    "copies_by_kind": [
        {"kind": "HtoD", **copied(4000, 2**20, 12.5e9)},
        {"kind": "memset", **copied(10, None, None)},
    ],
    "devices": [
        {
            "physical_id": "GPU-0",
            **DEVICE,
            "device_ids": [{"process_id": 42, "device_id": 0}],
            "peaks": [
                {
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
        }
    ],
    "device_processes": [{"process_id": 42, "device_id": 0, "other_process_ns": 0, **DEVICE}],
    "streams": [stream(13, 4000), stream(7, 1000)],
    "utilization": None,
    "iterations": {
        "family": None,
        "domain": None,
        "process_id": None,
        "thread_id": None,
        "source": None,
        "score": None,
        "runner_up": None,
        "also_in": [],
        "count": 0,
        "warmup": [],
        "outliers": [],
        "steady": {
            "count": 0,
            "median_ns": None,
            "p5_ns": None,
            "p95_ns": None,
            "mean_ns": None,
        },
        "throughput_per_s": None,
        "kernel_sequence": None,
        "notes": ["The trace holds no NVTX ranges."],
        "rows": [],
    },
    "ranges": [],
    "ranges_by_name": [],
    "unattributed": None,
    "graph_kernels": [],
    "overlap": [],
    "overlap_by_iteration": [],
    "host_threads": [],
    "cpu": None,
    "launches": {
        "calls": None,
        "executions": None,
        "total_ns": None,
        "overhead_ns": None,
        "queued": None,
        "queue_ns": None,
        "latency_ns": None,
        "overlapping": None,
        "overlap_ns": None,
        "unknown": None,
        "intra_graph_gap_ns": None,
        "reason": "no execution in the window belongs to a recorded launch call",
        "api": [],
        "by_kernel": [],
        "queue_depth": [],
        "stretches": [],
    },
    "idle": [],
    "gap_spectrum": [],
    "idle_by_iteration": [],
    "transfers": [],
    "migrations": [],
    "communication": [],
    "communication_by_device": [],
    "work": [],
    "work_by_shape": [],
    "counter_coverage": [],
    "utilization_by_iteration": [],
    "precision": [],
    "findings": [],
}


def test_the_whole_document() -> None:
    made = document(typical())

    assert made == EXPECTED
    assert list(made) == list(EXPECTED)


def test_the_json_is_the_document() -> None:
    assert json.loads(to_json.render(document(typical()))) == EXPECTED


def test_a_path_is_a_list_of_names_and_what_lies_in_no_range_has_reasons() -> None:
    made = document(
        analysis(
            Capture("x", "nsys", recorded=("kernels", "ranges")),
            ranges=[{"path": "step 1\x1fforward > not a path", "name": "forward > not a path"}],
            unattributed=[
                {"reason": "no_launch_row", "kernels": 2, "total_ns": 30, "opaque_ns": 4},
                {
                    "domain": "NCCL",
                    "reason": "between_ranges",
                    "kernels": 5,
                    "total_ns": 70,
                    "opaque_ns": 9,
                },
            ],
        )
    )

    assert made["ranges"][0]["path"] == ["step 1", "forward > not a path"]
    assert made["unattributed"] == {
        "kernels": 2,
        "total_ns": 30,
        "opaque_ns": 4,
        "reasons": [{"reason": "no_launch_row", "kernels": 2, "total_ns": 30, "opaque_ns": 4}],
        "by_domain": [
            {
                "domain": "NCCL",
                "reason": "between_ranges",
                "kernels": 5,
                "total_ns": 70,
                "opaque_ns": 9,
            }
        ],
    }


def test_what_launches_cost_stands_in_one_place() -> None:
    made = document(eventful())["launches"]

    assert made["calls"] == 4
    assert (made["queue_ns"]["median"], made["queue_ns"]["p95"]) == (700.0, 1400.0)
    assert made["overhead_ns"]["max"] == 15_000
    assert made["latency_ns"]["p99"] is None
    assert made["reason"] is None
    assert [row["name"] for row in made["api"]] == ["cudaLaunchKernel"]
    assert [row["name"] for row in made["by_kernel"]] == [SGEMM]
    assert made["queue_depth"][0]["time_ns"]["depth_0"] == 5000
    assert made["stretches"][0]["waiting_ns"] == 1500
    assert "name" not in made


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        (Capture("x", "nsys", recorded=("api_calls",)), "no kernels were recorded"),
        (Capture("x", "nsys", recorded=("kernels",)), "no CUDA calls were recorded"),
        (Capture("x", "nvprof", serialised="kernels ran one by one"), "kernels ran one by one"),
    ],
)
def test_launches_that_nobody_can_follow_have_a_reason(capture: Capture, reason: str) -> None:
    made = document(analysis(capture))["launches"]

    assert (made["queue_ns"], made["reason"]) == (None, reason)


def test_causes_keep_the_order_of_their_metric_and_refer_to_devices() -> None:
    made = document(eventful())

    assert [(row["device"], row["total_ns"]) for row in made["idle"]] == [
        (0, 3000), (0, 1999), (0, 1), (1, 5000)
    ]  # fmt: skip
    assert all(row["device"] < len(made["devices"]) for row in made["idle"])
    assert made["gap_spectrum"][-1]["up_to_ns"] is None
    assert made["cpu"]["utilization"] == 0.05
    assert made["overlap"][0]["waiting"]["synchronization_ns"] == 2000
    codes = [(row["code"], row["saving_bound_ns"]) for row in made["findings"]]
    assert codes == [("synchronizations", 3000), ("profiler_overhead", None)]


def test_every_result_table_is_in_the_document() -> None:
    """But those that stand inside others, and the gap list, which may have a million rows.

    And those of sampled GPU metrics, where none were sampled.
    """
    inside = {"kernels_by_device", "device_ordinals", "peaks"}
    inside |= {"pipe_utilization", "pipe_utilization_by_shape", "bounds", "bounds_by_shape"}
    inside |= {
        "device_utilization",
        "launches_by_kernel",
        "launch_totals",
        "queue_depth",
        "launch_stretches",
    }
    names = {each.name for each in TABLES} - inside - {"gaps"} - {each.name for each in SAMPLED}

    assert names <= document(eventful()).keys()


def test_every_row_has_a_line_of_its_own() -> None:
    lines = to_json.render(document(typical())).splitlines()

    assert sum(f'"name": "{SGEMM}"' in line for line in lines) == 2  # kernels, launch_shapes
    assert all(json.loads(line.strip().rstrip(",")) for line in lines if line.startswith("    {"))


def test_an_empty_analysis_is_empty_lists() -> None:
    made = document(analysis(Capture("nothing.sqlite", "nsys")))

    assert made["kernels"] == made["devices"] == made["streams"] == []
    assert made["capture"]["profiler_version"] is None
    json.loads(to_json.render(made))


def test_equal_totals_are_ordered_by_name_and_missing_text_first() -> None:
    rows = [kernel("b", 5), kernel("c", 9), kernel("a", 5)]
    assert [r["name"] for r in document(analysis(kernels=rows))["kernels"]] == ["c", "a", "b"]

    kinds = [("HtoD", "pinned"), ("HtoD", None), ("DtoH", "device")]
    copies = [{"kind": k, "src_memory": m, "operations": 1, "total_ns": 1} for k, m in kinds]
    made = document(analysis(copies=copies))["copies"]
    assert [(row["kind"], row["src_memory"]) for row in made] == sorted(
        kinds, key=lambda pair: (pair[0], pair[1] or "")
    )


def test_devices_keep_their_order_and_get_their_ordinals() -> None:
    made = document(
        analysis(
            devices=[device(0, busy_ns=1), device(1)],
            device_ordinals=[
                {"index": 1, "process_id": 7, "device_id": 0},
                {"index": 0, "process_id": 7, "device_id": 1},
                {"index": 1, "device_id": 0},
            ],
        )
    )["devices"]

    assert [row["physical_id"] for row in made] == ["GPU-0", "GPU-1"]
    assert [row["device_ids"] for row in made] == [
        [{"process_id": 7, "device_id": 1}],
        [{"process_id": 7, "device_id": 0}, {"process_id": None, "device_id": 0}],
    ]


def test_what_is_no_number_is_null() -> None:
    rows = [kernel("a", share=math.nan, share_of_window=math.inf, min_ns=None)]
    (row,) = document(analysis(kernels=rows))["kernels"]

    assert (row["share"], row["share_of_window"], row["min_ns"]) == (None, None, None)


def test_narrow_columns_sort_without_overflow() -> None:
    columns = dict(table(results.CAPTURE_COST, [{"name": "a", "events": 1, "total_ns": 5}]).columns)
    columns["total_ns"] = np.array([5], dtype=np.int32)
    narrow = Table(results.CAPTURE_COST, columns)

    assert records(ordered(narrow)) == [{"name": "a", "events": 1, "total_ns": 5}]


def test_a_number_that_is_not_finite_never_reaches_the_file() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json.render({"share": math.nan})


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_quick() -> None:
    rows = [kernel(f"kernel {i}", i) for i in range(100_000)]
    text = to_json.render(document(analysis(kernels=rows)))

    assert text.count("\n") > 100_000


def test_rows_inside_an_object_have_a_line_each_too() -> None:
    inner = {"count": 2, "rows": [{"a": 1}, {"a": 2}], "none": []}
    text = to_json.render({"before": {}, "inner": inner, "after": 1})

    assert json.loads(text) == {"before": {}, "inner": inner, "after": 1}
    assert text.splitlines()[3:9] == [
        '    "count": 2,',
        '    "rows": [',
        '      {"a": 1},',
        '      {"a": 2}',
        "    ],",
        '    "none": []',
    ]


def test_kernels_outside_ranges_are_unknown_where_none_were_recorded() -> None:
    outside = [{"reason": "no_range_on_thread", "kernels": 2, "total_ns": 5, "opaque_ns": 0}]
    recorded = Capture("x", "nsys", recorded=("kernels", "ranges"))

    assert document(analysis(unattributed=outside))["unattributed"] is None
    found = document(analysis(recorded, unattributed=outside))["unattributed"]
    assert (found["kernels"], found["reasons"]) == (2, outside)


def test_rows_are_told_apart_whatever_their_names_spell() -> None:
    mark = f", {json_rows._MARK}, "
    rows = [{"name": mark, "n": 1}, {"name": "b", "n": [1, 2]}, {"name": '"' + mark, "n": None}]

    text = to_json.render({"rows": rows})

    assert json.loads(text) == {"rows": rows}
    assert len(text.splitlines()) == len(rows) + 4
    assert to_json.render({"rows": rows[1:2]}).splitlines()[2] == '    {"name": "b", "n": [1, 2]}'
