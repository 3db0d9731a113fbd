"""Sampled GPU metrics in every output."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.sample_results import TABLES
from kernelscope.report import about, text
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from tests.report.analyses import typical

NAMES = {each.name for each in TABLES}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = oracle.SCENES["sampled"]()
    return oracle.write(plan, tmp_path_factory.mktemp("sampled") / "run.sqlite")


@pytest.fixture(scope="module")
def made(path: Path) -> Analysis:
    return ks.analyze(ks.read(path))


def test_the_document_has_them_where_there_are_samples(made: Analysis) -> None:
    assert document(made).keys() >= NAMES
    assert not document(typical()).keys() & NAMES
    row = document(made)["gpu_metrics_by_range"][0]
    assert row["path"] == ["forward"]
    assert (row["role"], row["unit"]) == ("sm_active", "ratio")


def test_the_report_shows_means_and_says_what_residency_is(made: Analysis) -> None:
    shown = text.render(made, Page(100, 10))

    assert "Sampled GPU metrics" in shown
    assert "residency" in shown
    section = shown[shown.index("Sampled GPU metrics") : shown.index("Copies and memsets")]
    lines = [line.split() for line in section.splitlines()]
    assert ["77.8", "%", "–", "18", "66.9", "%", "SMs", "Active", "on", "GPU", "0"] in lines
    assert ["60.00", "µs", "62.5", "%", "80.0", "%", "40.0", "%", "6", "gemm"] in lines
    assert "softmax" not in section  # four samples are too few
    assert "Sampled GPU metrics" not in text.render(typical(), Page(100, 10))


@pytest.mark.parametrize("width", [40, 60, 100, 140])
def test_the_section_fits(made: Analysis, width: int) -> None:
    shown = text.render(made, Page(width, 10))

    assert max(map(len, shown.splitlines())) <= width


def test_info_lists_them(path: Path) -> None:
    trace = ks.read(path)

    assert f"{len(trace.gpu_samples)}  sampled GPU metrics" in about.render(trace, Page(100, 10))
