"""Where other people's traces lie, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_beside = Path(__file__).resolve().parents[2] / "shared"
_folder = Path(os.environ.get("KERNELSCOPE_CORPUS", _beside))

CORPUS: Path | None = _folder if (_folder / "traces").is_dir() else None

needs_corpus = pytest.mark.skipif(
    CORPUS is None,
    reason="the trace corpus is neither beside the project nor where KERNELSCOPE_CORPUS points",
)


def _files(folder: str) -> list[Path]:
    return sorted((CORPUS / "traces" / folder).iterdir()) if CORPUS else []


def nsys_traces() -> list[Path]:
    """Nsight Systems exports, and one SQLite file that is none."""
    return _files("nsys")


def nvprof_traces() -> list[Path]:
    """nvprof and Visual Profiler files; some are not SQLite."""
    return _files("nvprof")
