"""What a capture's health says, and that it says nothing of a capture that is fine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope.metrics import analysis_parts
from kernelscope.metrics.analysis import analyze
from kernelscope.metrics.health import capture_cost, health
from kernelscope.trace import Trace
from tests import build


def codes(trace: Trace, **more: Any) -> dict[str, int]:
    return {row["code"]: row["count"] for row in health(trace, **more).records()}


def launched(*starts: int, before: int = 10) -> Trace:
    """Kernels of 5 ns at `starts`, each launched `before` ns earlier."""
    return build.trace(
        kernels=build.joined(
            *(build.kernels((s, s + 5), correlation_id=i, **SHAPE) for i, s in enumerate(starts))
        ),
        api_calls=build.joined(
            *(
                build.api_calls((s - before, s - before + 2), correlation_id=i)
                for i, s in enumerate(starts)
            )
        ),
        devices=build.devices({}),
    )


SHAPE = {f"{part}_{axis}": 1 for part in ("grid", "block") for axis in "xyz"} | {
    "registers_per_thread": 32,
    "static_shared_bytes": 0,
    "dynamic_shared_bytes": 0,
}


def test_a_sound_capture_has_no_findings() -> None:
    assert codes(launched(1000, 2000, 3000)) == {}


def test_kernels_before_their_launch_are_counted_beyond_a_microsecond() -> None:
    assert codes(launched(5000, 9000, before=-1000)) == {}
    assert codes(launched(5000, 9000, before=-1001)) == {"kernels_before_launch": 2}


def test_kernels_without_a_launch_are_counted() -> None:
    trace = launched(1000, 2000, 3000)
    some = trace.with_tables(api_calls=trace.api_calls.take(np.array([0])))
    assert codes(some) == {"kernels_without_launch": 2}


def test_an_event_with_a_false_clock_is_told() -> None:
    """Kernels 10¹⁴ ns off would make everything else look idle (USER_PAINS 36)."""
    found = codes(launched(*range(1000, 50_000, 1000), 10**14))
    assert found["events_far_away"] == 1
    assert "events_far_away" not in codes(launched(*range(0, 50 * 10**12, 10**12)))


def two_on_one_gpu() -> Trace:
    same = {"identifies": True, "gpu_id": 3}
    return build.trace(
        kernels=build.joined(
            build.kernels((100, 200), process_id=1), build.kernels((150, 250), process_id=2)
        ),
        devices=build.devices({"process_id": 1, **same}, {"process_id": 2, **same}),
    )


def test_a_shared_device_is_told_of_each_process() -> None:
    trace = two_on_one_gpu()
    assert codes(trace)["shared_device"] == 1
    (row,) = analyze(trace, processes=[1]).devices.records()
    assert row["partition.compute_only_ns"] == 100
    chosen = analyze(trace, processes=[1])
    assert "shared_device" in chosen.health.texts("code")
    assert chosen.device_processes.values("other_process_ns") == [0]


def test_gpus_that_cannot_be_told_apart_are_a_reason_for_null() -> None:
    trace = build.trace(
        kernels=build.joined(
            build.kernels((100, 200), process_id=1), build.kernels((150, 250), process_id=2)
        )
    )
    assert codes(trace)["device_identity_unknown"] == 2
    chosen = analyze(trace, processes=[1])
    assert chosen.devices.texts("physical_id") == [None]
    assert "device_identity_unknown" in chosen.health.texts("code")


def test_what_is_null_has_a_reason() -> None:
    trace = build.trace(kernels=build.kernels((0, 5)), copies=build.copies((7, 9)))
    found = codes(trace)
    assert found["sm_fill_unknown"] == 1
    assert found["sizes_missing"] == 1


def test_profiler_overhead_is_summed_inside_the_window() -> None:
    trace = launched(1000, 2000)
    rows = [
        {"start_ns": 900, "end_ns": 1100, "process_id": 1, "thread_id": 1, "name": "flush"},
        {"start_ns": 1200, "end_ns": 1250, "process_id": 1, "thread_id": 1, "name": "flush"},
    ]
    costly = trace.with_tables(overheads=build.table(trace.overheads.schema, rows))
    (row,) = capture_cost(costly).records()
    assert (row["name"], row["events"], row["total_ns"]) == ("flush", 1, 110 + 50)


def test_too_many_raw_paths_are_folded_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million operator names would make JSON that nobody can load (USER_PAINS H)."""
    rows = [
        {"start_ns": start, "end_ns": start + 5, "process_id": 1, "thread_id": 1, "domain": "",
         "style": "push_pop", "name": f"op_id = {start}", "closed": True}
        for start in range(0, 100, 10)
    ]  # fmt: skip
    trace = launched(*range(1000, 1100, 10))
    trace = trace.with_tables(ranges=build.table(trace.ranges.schema, rows))
    assert len(analyze(trace).ranges) == 10
    monkeypatch.setattr(analysis_parts, "MAX_RAW_PATHS", 9)
    found = analyze(trace)
    assert found.ranges.texts("path") == ["op_id = #"]
    assert found.ranges.values("instances") == [10]
    assert "ranges_folded" in found.health.texts("code")
