"""The catalogue: whole, sourced, and in agreement with what is published."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest

import kernelscope.device
from kernelscope.device import Device, catalogue, devices, find_device, sm_limits
from kernelscope.errors import SelectionError
from tests.corpus import CORPUS, needs_corpus

TOML = Path(kernelscope.device.__file__).with_name("devices.toml")
RAW: dict[str, Any] = tomllib.loads(TOML.read_text(encoding="utf-8"))
TOLERANCE = 0.01

NOT_FIGURES = {"name", "also", "chip", "capability", "tensor", "published", "differs", "note"}
FIGURES = {
    "sm_count", "base_mhz", "boost_mhz", "max_mhz", "tensor_mhz", "memory_gb", "memory_gb_per_s",
    "l2_mib", "l2_bytes_per_clock", "tdp_w", "link", "fp64_lanes",
}  # fmt: skip

SHARED_NAMES = {"rtx3080", "orin"}
"""Names that several boards have: which one is meant, their specs say."""


def test_an_entry_at_a_time_is_the_whole_file() -> None:
    assert [dict(catalogue.parsed(entry)) for entry in catalogue.entries()] == RAW["gpu"]
    assert catalogue.sources() == RAW["source"]
    assert list(catalogue.capability_texts()) == list(RAW["capability"])
    for name, raw in RAW["capability"].items():
        assert catalogue.capability(name) == raw
    assert RAW.keys() == {"source", "capability", "gpu"}


def figures(value: Any, path: str = "") -> list[tuple[str, list[Any]]]:
    """Return every figure of the TOML with its place."""
    if isinstance(value, dict):
        return [each for key, inside in value.items() for each in figures(inside, f"{path}.{key}")]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [each for inside in value for each in figures(inside, inside["name"])]
    skipped = path.rpartition(".")[2] in (NOT_FIGURES - {"published"}) | {"architecture"}
    return [] if skipped or path.startswith(".source") or ".differs." in path else [(path, value)]


def test_every_figure_has_confidence_and_sources_and_no_source_is_idle() -> None:
    used = set()
    for path, figure in figures(RAW):
        value, confidence, sources = figure
        assert value is not None, path
        assert confidence in ("A", "B", "C"), path
        assert sources.split(), path
        used |= set(sources.split())
        # What two sources are said to agree on has two.
        independent = set(sources.split()) - {"recalled", "derived"}
        assert confidence != "A" or independent, path
    assert used == RAW["source"].keys()


@pytest.mark.parametrize("raw", RAW["gpu"], ids=lambda raw: str(raw["name"]))
def test_an_entry_holds_what_is_known_and_nothing_else(raw: dict[str, Any]) -> None:
    assert raw.keys() <= NOT_FIGURES | FIGURES
    assert {"sm_count", "boost_mhz", "memory_gb", "memory_gb_per_s"} <= raw.keys()
    assert raw["capability"] in RAW["capability"]
    assert raw.get("tensor", "full") in ("full", "geforce", "half", "none", "unknown")
    limited = "GeForce RTX" in raw["name"]
    assert (raw.get("tensor") == "geforce") == limited


def test_a_name_is_of_one_gpu() -> None:
    own = [catalogue.plain(entry.name) for entry in catalogue.entries()]
    assert len(set(own)) == len(own)
    seen: dict[str, str] = {}
    for entry in catalogue.entries():
        for name in {catalogue.plain(each) for each in entry.names}:
            assert seen.setdefault(name, entry.name) == entry.name or name in SHARED_NAMES, name


def rate_of(device: Device, key: str) -> float:
    """Work a rate per clock and SM out from the TOML, without the code that is tested."""
    raw = next(each for each in RAW["gpu"] if each["name"] == device.name)
    capability = RAW["capability"][raw["capability"]]
    if not key.startswith("tensor_"):
        return float(2 * raw.get(f"{key}_lanes", capability.get(f"{key}_lanes"))[0])
    kind = key.removeprefix("tensor_")
    rate = capability["tensor"][kind][0]
    if raw.get("tensor") == "geforce":
        rate = capability.get("tensor_geforce", {}).get(kind, [rate])[0]
    return float(rate / 2 if raw.get("tensor") == "half" else rate)


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_a_peak_is_rate_times_sms_times_clock_and_agrees_with_the_published_one(
    device: Device,
) -> None:
    raw = next(each for each in RAW["gpu"] if each["name"] == device.name)
    boost = raw["boost_mhz"][0]
    tensor = raw.get("tensor_mhz", [boost])[0]
    assert {"fp32"} <= {peak.key for peak in device.peaks}
    for peak in device.peaks:
        mhz = tensor if peak.tensor and peak.input_type != "fp64" else boost
        expected = rate_of(device, peak.key) * raw["sm_count"][0] * mhz * 1e6
        assert peak.per_s == pytest.approx(expected, rel=1e-9)
        if peak.published_per_s is None:
            assert not peak.differs
            continue
        far = abs(peak.per_s / peak.published_per_s - 1) > TOLERANCE
        assert far == bool(peak.differs), (peak.key, peak.per_s, peak.published_per_s)
    known = {peak.key for peak in device.peaks}
    assert raw.get("published", {}).keys() <= known
    assert raw.get("differs", {}).keys() <= raw.get("published", {}).keys()


def test_accumulating_in_fp32_halves_the_rate_of_geforce_boards_alone() -> None:
    for device in devices():
        keys = {peak.key: peak.per_s for peak in device.peaks}
        if "tensor_fp16_fp32" not in keys:
            continue
        quotient = keys["tensor_fp16_fp16"] / keys["tensor_fp16_fp32"]
        assert quotient == (2 if device.tensor == "geforce" else 1), device.name


def test_no_peak_counts_sparsity() -> None:
    """The figures that are published with 2:4 sparsity are twice these."""
    for name, key, dense in (
        ("A100 80GB", "tensor_fp16_fp32", 312), ("H100", "tensor_fp8_fp32", 1979),
        ("H100", "tensor_fp16_fp32", 989), ("L4", "tensor_fp16_fp32", 121),
        ("RTX 4090", "tensor_fp16_fp32", 165), ("B200", "tensor_fp4_fp32", 9000),
        ("RTX 3090", "tensor_fp16_fp16", 142), ("T4", "tensor_int8_int32", 130),
    ):  # fmt: skip
        assert find_device(name).peak(key).per_s / 1e12 == pytest.approx(dense, rel=TOLERANCE)


def test_kepler_to_blackwell() -> None:
    assert {device.architecture for device in devices()} >= {
        "Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell",
    }  # fmt: skip
    for major, minor in ((3, 0), (5, 0), (6, 0), (7, 0), (8, 9), (9, 0), (10, 0), (12, 0)):
        assert sm_limits(major, minor) is not None
    assert sm_limits(2, 1) is None


# What gpu_specs.csv, of which the catalogue was made, has otherwise -----------------------------

LIMITED = "the vendor publishes half of the chip's rate, for every type"
OTHERWISE: dict[tuple[str, str], str] = {
    ("Tesla K80 (one GK210 of two)", "name"): "CUDA's own name",
    ("NVIDIA A10G", "num_sms"): "CUDA reports 80; 72 is techpowerup's",
    ("NVIDIA A10G", "tensor_fp16_flop_per_clk_sm"): LIMITED,
    ("NVIDIA A10G", "tensor_bf16_flop_per_clk_sm"): LIMITED,
    ("NVIDIA A10G", "tensor_tf32_flop_per_clk_sm"): LIMITED,
    ("NVIDIA A10G", "tensor_int8_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40", "tensor_fp16_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40", "tensor_bf16_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40", "tensor_tf32_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40", "tensor_fp8_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40", "tensor_int8_flop_per_clk_sm"): LIMITED,
    ("NVIDIA L40S", "tensor_boost_mhz"): "TF32, FP8, INT8 and sparse peaks are at the boost clock",
    ("NVIDIA B300", "tensor_fp4_flop_per_clk_sm"): "1.5 × the rate of B200, as is published",
    ("NVIDIA B300", "tensor_int8_flop_per_clk_sm"): "sources disagree: left out",
    ("NVIDIA B300", "tensor_fp64_flop_per_clk_sm"): "10.3 has none (Programming Guide, table 33)",
}
_TENSOR = ("fp16", "bf16", "tf32", "fp8", "fp4", "fp64", "int8")


def of_csv(row: dict[str, str]) -> dict[str, float | str | None]:
    """Return what a row of gpu_specs.csv says, under its own names."""
    numbers = (
        "num_sms", "boost_mhz", "tensor_boost_mhz", "mem_gb", "mem_bw_gbs", "fp32_lanes_per_sm",
        "fp64_lanes_per_sm", "smem_kb_per_sm", "max_threads_per_sm", "max_blocks_per_sm",
        "regs_per_sm", "fp16_vector_flop_per_clk_sm",
        *(f"tensor_{kind}_flop_per_clk_sm" for kind in _TENSOR if kind != "int8"),
        "tensor_fp16_acc16_flop_per_clk_sm",
    )  # fmt: skip
    found: dict[str, float | str | None] = {
        key: float(row[key]) if row[key] else None for key in numbers
    }
    int8 = row["tensor_int8_op_per_clk_sm"]
    return found | {
        "tensor_int8_flop_per_clk_sm": float(int8) if int8 else None,
        "chip": row["chip"],
        "capability": row["compute_capability"],
    }


def of_ours(device: Device) -> dict[str, float | str | None]:
    limits = device.limits
    rates = {peak.key: peak.per_clock for peak in device.peaks}
    last = {"int8": "int32", "fp64": "fp64"}
    tensor = {
        f"tensor_{kind}_flop_per_clk_sm": rates.get(f"tensor_{kind}_{last.get(kind, 'fp32')}")
        for kind in _TENSOR
    }
    return {
        "num_sms": device.sm_count,
        "boost_mhz": device.boost_hz / 1e6,
        "tensor_boost_mhz": device.tensor_hz / 1e6 if device.tensor != "none" else None,
        "mem_gb": (device.memory_bytes or 0) / 1e9,
        "mem_bw_gbs": (device.memory_bytes_per_s or 0) / 1e9,
        "fp32_lanes_per_sm": rates["fp32"] / 2,
        "fp64_lanes_per_sm": rates["fp64"] / 2,
        "smem_kb_per_sm": limits.shared_bytes / 1024,
        "max_threads_per_sm": limits.threads,
        "max_blocks_per_sm": limits.blocks,
        "regs_per_sm": limits.registers,
        "fp16_vector_flop_per_clk_sm": rates.get("fp16"),
        "tensor_fp16_acc16_flop_per_clk_sm": rates.get("tensor_fp16_fp16"),
        "chip": device.chip,
        "capability": device.capability,
        **tensor,
    }


@needs_corpus
def test_the_catalogue_is_gpu_specs_but_for_what_is_said_here() -> None:
    assert CORPUS is not None
    with (CORPUS / "reference" / "gpu_specs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = set()
    for row in rows:
        device = find_device(row["name"].partition(" (")[0])
        if device.name != row["name"]:
            found.add((row["name"], "name"))
        ours = of_ours(device)
        for key, theirs in of_csv(row).items():
            if theirs is None or (theirs == 0 and ours[key] is None):
                continue  # it says nothing, or none
            if isinstance(theirs, str):
                differs = ours[key] != theirs
            else:
                mine = ours[key]
                assert not isinstance(mine, str)
                differs = mine is None or mine != pytest.approx(theirs, rel=1e-3)
            if differs:
                found.add((row["name"], key))
    assert found == set(OTHERWISE)


def test_a_typo_gives_the_nearest_names() -> None:
    with pytest.raises(SelectionError, match="no GPU 'H10O'") as error:
        find_device("H10O")
    assert "Did you mean 'H100'?" in error.value.hint
    with pytest.raises(SelectionError, match="No peak 'fp23'"):
        find_device("H100").peak("fp23")


def test_a_part_of_several_names_gives_all_of_them() -> None:
    with pytest.raises(SelectionError, match="no GPU 'P100'") as error:
        find_device("P100")
    assert error.value.hint.startswith("There are: Tesla P100-PCIE-16GB, Tesla P100-SXM2-16GB.")
    with pytest.raises(SelectionError) as error:
        find_device("RTX")
    assert ", …. kernelscope" in error.value.hint


def test_a_product_of_other_sms_and_memory_is_no_name_of_the_a100() -> None:
    """Leonardo's A100 of 64 GB has 124 SMs: it is computed from what a trace says of it."""
    assert not catalogue.named("NVIDIA A100-SXM-64GB")


def test_a_chosen_clock_is_that_of_every_pipe() -> None:
    device = find_device("h100 sxm", clock_hz=1_000_000_000)
    assert {peak.clock_hz for peak in device.peaks} == {1_000_000_000}
    assert {peak.clock_basis for peak in device.peaks} == {"chosen clock"}
    assert device.peak("fp32").per_s == 132 * 256 * 1e9
