"""What a trace's GPUs do at most, and what the catalogue adds to what was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope.errors import SelectionError
from kernelscope.metrics.analysis import Analysis, analyze
from kernelscope.metrics.device_peaks import find_peaks, peaks
from kernelscope.metrics.known_devices import with_known_limits
from kernelscope.trace import Trace
from tests import build
from tests.metrics.test_launch_occupancy import LAUNCH

CLOCKED = {"clock_hz": 1_200_000_000, "memory_bytes_per_s": 1_555_200_000_000}
LIMITS = (
    "sm_count", "max_blocks_per_sm", "max_warps_per_sm", "max_registers_per_sm",
    "max_shared_bytes_per_sm",
)  # fmt: skip
UNKNOWN = dict.fromkeys((*LIMITS, "compute_major", "compute_minor", "name"))


def traced(**device: Any) -> Trace:
    kernels = build.kernels((0, 100), **LAUNCH)
    return build.trace(kernels=kernels, devices=build.devices(device))


def undescribed() -> Trace:
    return build.trace(kernels=build.kernels((0, 100), **LAUNCH))


def by_pipe(analysis: Analysis) -> dict[str, dict[str, Any]]:
    return {row["pipe"]: row for row in analysis.peaks.records()}


def codes(analysis: Analysis) -> dict[str, str]:
    return dict(zip(analysis.health.texts("code"), analysis.health.texts("message"), strict=True))  # type: ignore[arg-type]


def test_peaks_of_a_known_gpu() -> None:
    rows = by_pipe(analyze(traced(**CLOCKED)))
    assert rows["fp32"] == {
        "device": 0,
        "pipe": "fp32",
        "instruction": "FFMA",
        "input_type": "fp32",
        "accumulate_type": "fp32",
        "per_s": 108 * 64 * 2 * 1.2e9,
        "unit": "FLOP/s",
        "clock_hz": 1_200_000_000,
        "clock_basis": "maximum clock in the trace",
        "confidence": "A",
        "gpu": "NVIDIA A100-SXM4-40GB",
        "matched_by": "name",
    }
    assert rows["tensor_int8_int32"]["unit"] == "OP/s"
    assert (rows["dram"]["per_s"], rows["dram"]["unit"]) == (1_555_200_000_000, "bytes/s")
    assert rows["l2"]["per_s"] == 5120 * 1.2e9
    assert rows["dram"]["clock_hz"] is None


def test_what_was_recorded_needs_no_catalogue() -> None:
    trace = traced()
    completed, notes = with_known_limits(trace)
    assert completed is trace
    assert notes == []
    assert (
        not {"peaks_unknown", "peaks_doubtful", "limits_from_catalogue"}
        & codes(analyze(trace)).keys()
    )


@pytest.mark.parametrize("lacking", LIMITS)
def test_a_limit_that_was_not_recorded_comes_from_the_catalogue(lacking: str) -> None:
    whole, partial = analyze(traced()), analyze(traced(**{lacking: None}))
    assert partial.launch_shapes.records() == whole.launch_shapes.records()
    assert partial.devices.records() == whole.devices.records()
    assert (
        "is taken from the catalogue for NVIDIA A100-SXM4-40GB"
        in codes(partial)["limits_from_catalogue"]
    )
    assert "sm_fill_unknown" not in codes(partial)


def test_what_was_recorded_is_not_replaced() -> None:
    odd = traced(max_warps_per_sm=32, max_blocks_per_sm=None)
    (row,) = with_known_limits(odd)[0].devices.records()
    assert (row["max_warps_per_sm"], row["max_blocks_per_sm"]) == (32, 32)
    assert row["clock_hz"] is None


def test_a_gpu_of_unknown_name_has_limits_by_its_capability() -> None:
    found = analyze(traced(name="Something", max_blocks_per_sm=None))
    assert found.launch_shapes["resident_blocks"].tolist() == [4]
    assert "for compute capability 8.0" in codes(found)["limits_from_catalogue"]
    assert "does not say its clock" in codes(found)["peaks_unknown"]
    assert len(found.peaks) == 0


def test_nothing_known_is_nothing_said_until_the_user_does() -> None:
    for trace in (undescribed(), traced(**UNKNOWN)):
        silent = analyze(trace)
        assert len(silent.peaks) == 0
        assert silent.launch_shapes.values("occupancy") == [None]
        assert "--gpu NAME says which GPU it is" in codes(silent)["peaks_unknown"]
        assert "sm_fill_unknown" in codes(silent)

        told = analyze(trace, gpu="A100 40GB", clock_hz=10**9)
        assert by_pipe(told)["fp32"]["per_s"] == 108 * 128 * 1e9
        assert by_pipe(told)["fp32"]["matched_by"] == "--gpu"
        assert by_pipe(told)["fp32"]["clock_basis"] == "--clock"
        assert told.launch_shapes.values("occupancy") == [0.5]
        assert told.launch_shapes.values("waves") == [1.0]
        assert told.devices.texts("name") == ["NVIDIA A100-SXM4-40GB"]
        assert told.devices.values("sm_fill") == [1.0]
        assert "sm_fill_unknown" not in codes(told)
        assert "peaks_doubtful" not in codes(told)


def test_a_gpu_against_the_trace_is_doubtful() -> None:
    found = analyze(traced(), gpu="V100")
    assert by_pipe(found)["fp32"]["gpu"] == "Tesla V100-SXM2-16GB"
    assert "the trace says compute capability 8.0, not 7.0" in codes(found)["peaks_doubtful"]
    assert found.launch_shapes.values("occupancy") == [0.5]  # by the limits that were recorded


def test_a_name_that_is_none() -> None:
    with pytest.raises(SelectionError, match="no GPU 'A10O'"):
        analyze(traced(), gpu="A10O")
    with pytest.raises(SelectionError, match="no GPU 'A10O'"):
        with_known_limits(undescribed(), "A10O")


def test_two_gpus_and_one_that_was_chosen() -> None:
    kernels = build.joined(
        build.kernels((0, 5), **LAUNCH), build.kernels((6, 9), **{**LAUNCH, "device_id": 1})
    )
    t4 = {"device_id": 1, "name": "Tesla T4", "compute_major": 7, "compute_minor": 5,
          "sm_count": 40, "clock_hz": 1_590_000_000}  # fmt: skip
    trace = build.trace(kernels=kernels, devices=build.devices(CLOCKED, t4))
    table = peaks(trace)
    assert set(zip(table.values("device"), table.texts("gpu"), strict=True)) == {
        (0, "NVIDIA A100-SXM4-40GB"),
        (1, "Tesla T4"),
    }
    assert find_peaks(trace)[1] == []
    chosen = analyze(trace, devices=[1])
    assert set(zip(chosen.peaks.values("device"), chosen.peaks.texts("gpu"), strict=True)) == {
        (0, "Tesla T4")
    }


def test_a_mig_instance_is_said() -> None:
    found = analyze(traced(sm_count=14, clock_hz=1_410_000_000))
    assert by_pipe(found)["fp32"]["per_s"] == 14 * 128 * 1.41e9
    assert "14 of 108 SMs: a MIG instance" in codes(found)["peaks_doubtful"]
    assert "dram" not in by_pipe(found)
    assert found.launch_shapes.values("waves") == [432 / (4 * 14)]
