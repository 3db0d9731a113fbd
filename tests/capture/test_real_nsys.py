"""``doctor`` and ``profile`` with a real Nsight Systems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.capture.self_test import EXPECTED
from tests.capture.fakes import ROOT
from tests.real_nsys import as_command

pytestmark = pytest.mark.slow

PROGRAM = """
import warnings, kernelscope as ks
warnings.simplefilter("ignore", ks.annotation.CaptureWarning)
for batch in ks.iterations(range(12), batch_size=64, profile=range(4, 8)):
    with ks.phase("forward"):
        pass
"""


def kernelscope(
    nsys: Path, folder: Path, *arguments: str, path: list[Path]
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "KERNELSCOPE_NSYS": str(as_command(nsys)),
        "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT])),
    }
    return subprocess.run(
        [sys.executable, "-m", "kernelscope", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_doctor_counts_the_ranges_that_arrive(
    nsys: Path, audible: list[Path], tmp_path: Path
) -> None:
    done = kernelscope(nsys, tmp_path, "doctor", "--format", "json", path=audible)
    found = {row["name"]: row for row in json.loads(done.stdout)["checks"]}

    assert (found["self-test"]["status"], found["self-test"]["found"]) == (
        "ok", f"{sum(EXPECTED.values())} of {sum(EXPECTED.values())} ranges arrived",
    )  # fmt: skip
    assert found["nvtx"]["status"] == "ok"
    assert done.returncode == 0


def test_doctor_says_that_a_newer_nvtx_is_not_heard(nsys: Path, tmp_path: Path) -> None:
    done = kernelscope(nsys, tmp_path, "doctor", path=[])

    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert f"0 of {sum(EXPECTED.values())} ranges arrived" in said
    assert "nsys 2022.4.2 records no range of nvtx 0.2.1" in said
    assert "pip install 'nvtx<0.2.12'" in said


def test_profile_records_the_chosen_iterations(
    nsys: Path, audible: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    done = kernelscope(
        nsys, tmp_path, "profile", "-o", "run", "--trace", "nvtx,osrt", "--capture", "nvtx", "--",
        sys.executable, "train.py", path=audible,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "NVTX ranges" in done.stdout
    ranges = ks.read(str(tmp_path / "run" / "trace.sqlite")).ranges
    named = list(zip(ranges.values("name"), ranges.values("payload_int"), strict=True))
    assert [number for name, number in named if name == "iteration"] == [4, 5, 6, 7]
    assert len(named) == 4 * 3
    assert (tmp_path / "run" / "report.txt").stat().st_size
