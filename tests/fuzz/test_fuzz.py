"""The fuzz targets run, for a few seconds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_fuzz_btree(tmp_path: Path) -> None:
    target = Path(__file__).with_name("fuzz_btree.py")
    run = subprocess.run(
        [sys.executable, str(target), "-runs=300", "-seed=1", "-max_len=128"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
