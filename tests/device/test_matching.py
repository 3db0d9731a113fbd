"""What a trace's GPU is taken for: by its name, by its specs, computed, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelscope.device import SmLimits, find_device, sm_limits
from kernelscope.device.matching import limits, match
from kernelscope.errors import SelectionError
from kernelscope.parsers import read
from tests.corpus import each, nsys_traces

A100_40 = {
    "name": "NVIDIA A100-SXM4-40GB", "chip": "GA100", "compute_major": 8, "compute_minor": 0,
    "sm_count": 108, "clock_hz": 1_410_000_000, "memory_bytes": 42_297_524_224,
    "memory_bytes_per_s": 1_555_200_000_000, "l2_bytes": 41_943_040,
}  # fmt: skip


def like(**more: Any) -> dict[str, Any]:
    return {**A100_40, **more}


@pytest.mark.parametrize(
    ("described", "name"),
    [
        (A100_40, "NVIDIA A100-SXM4-40GB"),
        (like(name="A100-SXM4-80GB", memory_bytes_per_s=2_039 * 10**9), "NVIDIA A100-SXM4-80GB"),
        (like(name="NVIDIA A100-PCIE-40GB"), "NVIDIA A100-PCIE-40GB"),
        ({"name": "NVIDIA A100 80GB PCIe"}, "NVIDIA A100 80GB PCIe"),
        ({"name": "NVIDIA GeForce RTX 3080", "sm_count": 68}, "GeForce RTX 3080"),
        ({"name": "NVIDIA GeForce RTX 3080", "sm_count": 70}, "GeForce RTX 3080 12GB"),
        ({"name": "Orin", "sm_count": 8, "clock_hz": 918_000_000,
          "memory_bytes_per_s": 102_400_000_000}, "Jetson Orin NX"),
        ({"name": "Tesla V100-SXM2-32GB"}, "Tesla V100-SXM2-16GB"),
        ({"name": "h100 80gb hbm3"}, "NVIDIA H100 80GB HBM3"),
    ],
)  # fmt: skip
def test_by_name_and_what_tells_namesakes_apart(described: dict[str, Any], name: str) -> None:
    found = match(described)
    assert found.matched_by == "name"
    assert found.device is not None
    assert found.device.name == name
    assert found.doubts == ()


def test_by_specs_where_the_driver_did_not_know_the_name() -> None:
    for name in ("Graphics Device", None):
        found = match(like(name=name))
        assert found.matched_by == "specs"
        assert found.device is not None
        assert found.device.name in ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB")
        assert "by its SMs, clock and bandwidth" in found.why


def test_specs_must_all_agree() -> None:
    for other in (
        {"sm_count": 100}, {"clock_hz": 1_200_000_000}, {"memory_bytes_per_s": 10**12},
        {"compute_minor": 7}, {"chip": "GA10B"},
    ):  # fmt: skip
        assert match(like(name="Graphics Device", **other)).matched_by == "computed"


def test_a_mig_instance_has_its_own_sms_and_no_bandwidth() -> None:
    found = match(like(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", sm_count=14))
    assert found.matched_by == "name"
    assert found.device is not None
    assert found.device.peak("fp32").per_s == 14 * 64 * 2 * 1.41e9
    assert found.device.peak("tensor_fp16_fp32").per_s == 14 * 2048 * 1.41e9
    assert found.device.memory_bytes_per_s is None
    assert found.device.l2_bytes_per_s is None
    assert "14 of 108 SMs: a MIG instance, or a part of the GPU" in found.doubts

    unnamed = match(like(sm_count=42))  # CUDA gives an instance the name of the whole
    assert unnamed.device is not None
    assert unnamed.device.sm_count == 42
    assert any("42 of 108 SMs" in doubt for doubt in unnamed.doubts)


def test_a_gpu_larger_than_its_namesake_is_another() -> None:
    found = match(like(sm_count=128))
    assert found.matched_by == "computed"
    assert found.device is not None
    assert found.device.peak("fp32").per_s == 128 * 128 * 1.41e9


def test_the_traces_own_clock_and_bandwidth_count() -> None:
    found = match({"name": "NVIDIA GeForce RTX 4060 Ti", "clock_hz": 2_565_000_000,
                   "memory_bytes_per_s": 288_032_000_000})  # fmt: skip
    assert found.device is not None
    assert found.device.peak("fp32").per_s == 34 * 256 * 2.565e9
    assert found.device.peak("tensor_fp16_fp32").per_s == 34 * 512 * 2.565e9
    assert found.device.peak("fp32").clock_basis == "maximum clock in the trace"
    assert found.device.memory_bytes_per_s == 288_032_000_000


def test_tensor_cores_keep_a_clock_of_their_own_unless_the_trace_is_slower() -> None:
    fast = match({"name": "NVIDIA H100 80GB HBM3", "clock_hz": 1_980_000_000}).device
    slow = match({"name": "NVIDIA H100 80GB HBM3", "clock_hz": 1_500_000_000}).device
    assert fast is not None
    assert slow is not None
    assert fast.peak("tensor_bf16_fp32").clock_hz == 1_830_000_000
    assert fast.peak("tensor_bf16_fp32").clock_basis == "tensor clock of the catalogue"
    assert slow.peak("tensor_bf16_fp32").clock_hz == 1_500_000_000
    assert slow.peak("tensor_bf16_fp32").clock_basis == "maximum clock in the trace"


def test_a_bandwidth_unlike_the_catalogues_is_said() -> None:
    found = match(like(memory_bytes_per_s=10**12))
    assert found.doubts == ("the trace says 1,000 GB/s, the catalogue 1,555",)


@pytest.mark.parametrize(
    ("name", "capability", "tensor"),
    [
        ("NVIDIA GeForce RTX 3070 Laptop GPU", (8, 6), "geforce"),
        ("NVIDIA RTX A3000 Laptop GPU", (8, 6), "full"),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", (7, 5), "none"),
        ("Something", (8, 6), "unknown"),
        ("Something", (8, 0), "full"),
        ("NVIDIA H20-3e", (9, 0), "unknown"),
        (None, (12, 0), "unknown"),
    ],
)
def test_unknown_gpus_are_computed_and_say_from_what(
    name: str | None, capability: tuple[int, int], tensor: str
) -> None:
    major, minor = capability
    found = match(
        {"name": name, "compute_major": major, "compute_minor": minor, "sm_count": 20,
         "clock_hz": 1_500_000_000}
    )  # fmt: skip
    assert found.matched_by == "computed"
    assert found.device is not None
    assert found.device.tensor == tensor
    assert (
        f"computed from compute capability {major}.{minor}, 20 SMs and the maximum clock in the "
        "trace" in found.why
    )
    peaks = {peak.key: peak for peak in found.device.peaks}
    assert ("tensor_fp16_fp32" in peaks) == (tensor in ("full", "geforce"))
    assert all(peak.confidence == "C" for peak in peaks.values() if peak.tensor)
    assert bool(found.doubts) == (tensor == "unknown")
    lanes = 64 if major in (7, 8) and (major, minor) != (8, 6) else 128
    assert peaks["fp32"].per_s == lanes * 2 * 20 * 1.5e9


@pytest.mark.parametrize(
    ("described", "lacking"),
    [
        ({"name": "Something"}, "does not say its compute capability, number of SMs, clock"),
        (
            {"name": "Something", "compute_major": 8, "compute_minor": 0, "sm_count": 4},
            "does not say its clock",
        ),
        (
            {"name": "GeForce GT 520M", "compute_major": 2, "compute_minor": 1, "sm_count": 1,
             "clock_hz": 10**9},
            "compute capability 2.1 is not, either",
        ),
        ({}, "a GPU without a name is not in the catalogue"),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_asked_for(described: dict[str, Any], lacking: str) -> None:
    found = match(described)
    assert found.device is None
    assert found.matched_by == "nothing"
    assert lacking in found.why
    assert "--gpu NAME says which GPU it is" in found.why


def test_the_user_decides() -> None:
    found = match({"name": "Something", "sm_count": 66}, gpu="H100 SXM", clock_hz=1_200_000_000)
    assert found.matched_by == "--gpu"
    assert found.device is not None
    assert found.device.peak("fp32").per_s == 66 * 256 * 1.2e9
    assert found.device.peak("fp32").clock_basis == "--clock"
    assert found.doubts[0] == "the trace says Something"
    assert match(like(), gpu="a100 40gb").doubts == ()
    assert match(like(), gpu="V100").doubts[1] == "the trace says compute capability 8.0, not 7.0"
    with pytest.raises(SelectionError, match="no GPU 'H1O0'"):
        match({}, gpu="H1O0")


def test_limits_are_known_by_capability_or_else_by_name() -> None:
    assert limits({"compute_major": 8, "compute_minor": 6}) == sm_limits(8, 6)
    assert limits({"name": "Tesla T4"}) == sm_limits(7, 5)
    assert limits({"name": "Something"}) is None
    assert limits({"compute_major": 2, "compute_minor": 1}) is None


@each(nsys_traces())
def test_what_traces_record_is_what_the_catalogue_says(trace_file: Path) -> None:
    recorded: dict[str, Callable[[SmLimits], int]] = {
        "max_warps_per_sm": lambda held: held.threads // 32,
        "max_blocks_per_sm": lambda held: held.blocks,
        "max_registers_per_sm": lambda held: held.registers,
        "max_registers_per_block": lambda held: held.block_registers,
        "max_shared_bytes_per_sm": lambda held: held.shared_bytes,
        "max_shared_bytes_per_block_optin": lambda held: held.block_shared_bytes,
    }
    for row in read(trace_file).devices.records():
        held = limits(row)
        if held is None:
            continue
        for column, ours in recorded.items():
            assert row[column] in (None, ours(held)), (row["name"], column)
        found = match(row)
        assert found.device is not None
        if found.matched_by == "name":
            device = find_device(found.device.name)
            assert row["sm_count"] in (None, device.sm_count)
            assert row["l2_bytes"] in (None, device.l2_bytes)
            assert row["clock_hz"] is None or abs(row["clock_hz"] / device.boost_hz - 1) < 0.03
