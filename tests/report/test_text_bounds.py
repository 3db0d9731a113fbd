"""The section on utilization and bounds: what it says at every width, with counters alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.report import text
from kernelscope.report.layout import Page
from tests.metrics.test_utilization import FP32, analyzed
from tests.report.analyses import eventful


@pytest.mark.parametrize("width", [60, 120])
def test_the_section_fits(tmp_path: Path, width: int) -> None:
    analysis = analyzed(tmp_path, {"flops": 0.8 * FP32 * 1e-3}, names=("gemm", "relu"))
    page = text.render(analysis, Page(width))
    assert max(map(len, page.splitlines())) <= width
    section = " ".join(page[page.index("Utilization and bounds") :].split())
    assert "GPU 0: compute utilization 66.7 % of the window" in section
    assert "FP32 utilization between 40.0 % and 90.0 % while active" in section
    assert "FLOPs of 50.0 % of the active time are known" in section
    assert "fp32" in section


def test_a_value_where_all_was_counted(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, {"flops": 0.5 * FP32 * 1e-3})
    page = " ".join(text.render(analysis, Page(120)).split())
    assert "FP32 utilization 50.0 % while active, 50.0 % of wall time" in page
    assert "FLOPs of 100 % of the active time are known" in page


def test_without_counters_there_is_no_section() -> None:
    assert "Utilization and bounds" not in text.render(eventful(), Page(100))
    assert isinstance(eventful(), ks.Analysis)
