"""The fuzz targets run, for a few seconds."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed"
)


def fuzz(folder: Path, runs: int, corpus: Path) -> str:
    target = Path(__file__).with_name("fuzz_btree.py")
    run = subprocess.run(
        [sys.executable, str(target), f"-runs={runs}", "-seed=1", "-max_len=128"],
        cwd=folder,
        env={**os.environ, "KERNELSCOPE_CORPUS": str(corpus)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stderr


@needs_corpus
def test_fuzz_real_files(tmp_path: Path) -> None:
    assert CORPUS is not None
    assert "small files of the corpus." in fuzz(tmp_path, 80, CORPUS)


def test_fuzz_made_files(tmp_path: Path) -> None:
    """Where there is no corpus, the samples are damaged, and it is said."""
    said = fuzz(tmp_path, 80, tmp_path)
    assert "Damaging 4 made samples: no corpus of real traces here." in said
