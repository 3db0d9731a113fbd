"""A command line whose reader returns a trace of five rows, and what it printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kernelscope import parsers
from kernelscope.cli import main
from kernelscope.trace import NotRecorded, Trace
from tests import build


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def five_rows() -> Trace:
    """Two kernels, a copy and two calls of one process on one A100."""
    made = build.trace(
        kernels=build.kernels((2_000, 4_000, "sgemm"), (5_000, 6_000, "relu")),
        copies=build.copies((1_000, 1_500)),
        api_calls=build.api_calls((0, 500), (600, 900, "cudaMemcpyAsync")),
        devices=build.devices({}),
    )
    lacking = (NotRecorded("ranges", "nsys profile --trace=cuda,nvtx"),)
    return replace(made, capture=replace(made.capture, not_recorded=lacking))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runner(*args: str | Path) -> Outcome:
        code = main([str(each) for each in args])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return runner


@pytest.fixture
def trace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that the (replaced) reader reads as five rows."""
    path = tmp_path / "trace.sqlite"
    path.write_bytes(b"a trace")
    made = five_rows()
    monkeypatch.setattr(
        parsers,
        "read",
        lambda file: replace(made, capture=replace(made.capture, file=str(file))),
    )
    return path
