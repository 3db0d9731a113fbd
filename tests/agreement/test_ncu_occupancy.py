"""Theoretical occupancy agrees exactly with what Nsight Compute puts into its reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import kernelscope as ks
from kernelscope.device import find_device, sm_limits
from kernelscope.metrics.occupancy import RESOURCES, Launches, Limits, block_limits, occupancy
from tests.corpus import counter_files, each

REPORTS = counter_files("ncu", ".ncu-rep")

WITHOUT_CARVEOUT = "ncu2020.3.1"
"""It reckons with the most shared memory that an SM can have, whatever the driver set aside."""

_THEIRS = dict(
    zip(RESOURCES, ("warps", "registers", "shared_mem", "blocks"), strict=True)
)  # fmt: skip
_SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")


def executions(path: Path) -> list[dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for row in ks.read_counters(path).counters.records():
        if row["value"] is not None:
            found.setdefault(row["execution"], {})[row["metric"]] = row["value"]
    return list(found.values())


def limits_of(one: dict[str, float]) -> Limits:
    """Return the limits of the catalogue: those of the report must be the same."""
    major, minor = (
        int(one[f"device__attribute_compute_capability_{part}"]) for part in ("major", "minor")
    )
    held = sm_limits(major, minor)
    assert held is not None
    recorded = {
        "max_blocks_per_multiprocessor": held.blocks,
        "max_threads_per_multiprocessor": held.threads,
        "max_registers_per_multiprocessor": held.registers,
        "max_registers_per_block": held.block_registers,
        "max_shared_memory_per_multiprocessor": held.shared_bytes,
        "max_shared_memory_per_block_optin": held.block_shared_bytes,
        "reserved_shared_memory_per_block": held.reserved_shared_bytes,
    }
    for name, ours in recorded.items():
        assert one[f"device__attribute_{name}"] == ours, name
    return Limits(
        major, minor, int(one["device__attribute_multiprocessor_count"]), held.blocks,
        held.threads // 32, held.registers, held.shared_bytes, held.block_registers,
        held.block_shared_bytes,
    )  # fmt: skip


def launches_of(one: dict[str, float], *, carveout: bool = True) -> Launches:
    values = (
        one["launch__grid_size"],
        one["launch__block_size"],
        one["launch__registers_per_thread"],
        sum(one[name] for name in _SHARED),
        one["launch__shared_mem_config_size"] if carveout else 0,
        max(one.get("launch__cluster_size", 0), 1),
    )
    return Launches(*(np.array([int(value)], dtype=np.int64) for value in values))


@each(REPORTS)
def test_limits_occupancy_and_waves_are_those_of_the_report(trace_file: Path) -> None:
    found = executions(trace_file)
    assert found
    for one in found:
        limits = limits_of(one)
        told = not trace_file.name.startswith(WITHOUT_CARVEOUT)
        by_resource = block_limits(limits, launches_of(one, carveout=told))[:, 0].tolist()
        for name, ours in zip(RESOURCES, by_resource, strict=True):
            assert ours == one[f"launch__occupancy_limit_{_THEIRS[name]}"], name
        ours_ = occupancy(limits, launches_of(one))
        assert ours_.occupancy[0] == one["sm__maximum_warps_per_active_cycle_pct"]
        assert ours_.waves[0] == one["launch__waves_per_multiprocessor"]
        active = one["sm__maximum_warps_avg_per_active_cycle"]
        assert ours_.resident_blocks[0] * ours_.warps[0] == active


@each(REPORTS)
def test_the_catalogue_knows_the_gpus_of_the_reports(trace_file: Path) -> None:
    (name,) = {
        row["value_text"]
        for row in ks.read_counters(trace_file).counters.records()
        if row["metric"] == "device__attribute_display_name"
    }
    one = executions(trace_file)[0]
    device = find_device(name)
    assert device.sm_count == one["device__attribute_multiprocessor_count"]
    assert device.boost_hz == one["device__attribute_clock_rate"] * 1000
    for attribute, figure in (
        ("max_gpu_frequency_khz", device.figures.get("max_mhz")),
    ):  # fmt: skip
        if figure is not None:
            assert figure.value * 1000 == one[f"device__attribute_{attribute}"]
    width = one["device__attribute_global_memory_bus_width"] / 8
    clock = one["device__attribute_max_mem_frequency_khz"] * 1000
    assert device.memory_bytes_per_s is not None
    assert abs(2 * width * clock / device.memory_bytes_per_s - 1) < 0.01
