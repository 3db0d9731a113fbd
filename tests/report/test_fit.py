"""Whatever the names and the page, no line is cut at the page's edge, and every figure is whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

import kernelscope as ks
from kernelscope import schema, units
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.report import about, text
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from tests import build
from tests.report.analyses import (
    CAPTURE,
    analysis,
    device,
    eventful,
    finding,
    kernel,
    summary,
    typical,
)

WIDTHS = (40, 50, 60, 80, 120)
LONG = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (engineering sample)"
WIDE = "汉字内核" * 20
CLASSES = {name: 10**9 + 7 * 10**8 * place for place, name in enumerate(PARTITION_CLASSES)}


def with_all_classes(**more: Any) -> dict[str, Any]:
    """A GPU whose time holds every class."""
    total = sum(CLASSES.values())
    parts = {f"partition.{name}_ns": ns for name, ns in CLASSES.items()}
    return device(window_ns=total, busy_ns=total // 10, **parts, **more)


CASES = {
    "typical": typical(),
    "eventful": eventful(),
    "long causes": analysis(
        replace(CAPTURE, file=f"runs/{WIDE}.sqlite"),
        devices=[with_all_classes()],
        findings=[
            finding(f"code {rank}", 9000 - rank, evidence=f"{WIDE} {WIDE}", where=WIDE)
            for rank in range(9)
        ],
        idle=[
            {
                "device": 0,
                "cause": "host: range",
                "detail": f"{WIDE}{rank}",
                "total_ns": 3 * 10**17 - rank,
                "gaps": 10**12,
                "share": 0.1,
                "largest_ns": 10**17,
            }
            for rank in range(4)
        ],
        communication=[
            {
                "process_id": 2**31,
                "device_id": 0,
                "library": WIDE,
                "kind": "all_reduce",
                "calls": 10**12,
                "total_ns": 3 * 10**17,
                "busy_ns": 1,
                "exposed_ns": 1,
                "overlapped_ns": 10**16,
                "bytes": 2**50,
                "bus_bytes_per_s": 1.5,
                "lower_bound": True,
            }
        ],
    ),
    "long GPU name": analysis(devices=[with_all_classes(name=LONG)]),
    "wide names": analysis(
        replace(CAPTURE, file=f"runs/{WIDE}.sqlite"),
        devices=[with_all_classes(name=WIDE)],
        kernels=[kernel(f"{WIDE}{number}{WIDE}", 100 - number) for number in range(12)],
        api_calls=[{"name": WIDE, "calls": 1, **summary()}],
        health=[{"code": "x", "severity": "info", "count": 1, "message": f"Of {WIDE} {WIDE}."}],
    ),
    "large figures": analysis(
        devices=[device()],
        kernels=[kernel("k" * 50, 3 * 10**17, executions=10**12), kernel("j", 1)],
        streams=[
            {
                "process_id": 2**31,
                "device_id": 0,
                "context_id": 2**31,
                "stream_id": stream,
                "kernels": 10**12,
                "busy_ns": 3 * 10**17,
                "exclusive_ns": 1,
                "largest_gap_ns": 10**15 + stream,
            }
            for stream in (7, 13)
        ],
        gaps=[
            {"device": 0, "start_ns": 10**16, "end_ns": 2 * 10**16, "duration_ns": 10**16},
            {"device": 0, "start_ns": 1, "end_ns": 2, "duration_ns": 1},
        ],
    ),
}


@pytest.fixture
def uncropped(monkeypatch: pytest.MonkeyPatch) -> list[Text]:
    """The lines of a report as they go to rich, which would crop them."""
    kept: list[Text] = []
    printed = text.printed

    def keep(lines: Iterable[Text], width: int, **how: bool) -> str:
        kept.extend(lines)
        return printed(kept, width, **how)

    monkeypatch.setattr(text, "printed", keep)
    monkeypatch.setattr(about, "printed", keep)
    return kept


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_cut(uncropped: list[Text], case: str, width: int) -> None:
    text.render(CASES[case], Page(width))

    assert [line.plain for line in uncropped if cell_len(line.plain) > width] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_every_figure_of_the_partition_is_whole(case: str, width: int) -> None:
    out = text.render(CASES[case], Page(width)).splitlines()

    for row in document(CASES[case])["devices"]:
        parts = {name: ns for name, ns in row["partition"].items() if ns}
        assert any(line.endswith(f" busy {share(row['busy_ns'], row)}") for line in out)
        for ns, time in zip(parts.values(), units.durations(list(parts.values())), strict=True):
            assert any(f" {time} " in line and f" {share(ns, row)}" in line for line in out)


def share(ns: int, row: dict[str, Any]) -> str:
    return units.ratio(ns / row["window_ns"])


def test_a_share_is_not_shortened_to_another() -> None:
    """10.1 % once became 10, for a long name before it."""
    what = analysis(devices=[device(name=LONG, busy_ns=1010)])

    assert text.render(what, Page(50)).count("busy 10.1 %\n") == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_info_is_cut(uncropped: list[Text], width: int) -> None:
    trace = build.trace(
        kernels=build.kernels((10, 20)),
        devices=build.devices({"name": LONG}, {"name": WIDE}),
        processes=build.table(schema.PROCESSES, [{"process_id": 1, "name": WIDE}]),
    )
    about.render(trace, Page(width))

    assert [line.plain for line in uncropped if cell_len(line.plain) > width] == []


def test_wide_names_are_shortened_in_the_middle() -> None:
    out = text.render(CASES["wide names"], Page(60, 0))
    rows = [line for line in out.splitlines() if "…" in line and "字" in line]

    assert all(cell_len(row) <= 60 for row in rows)
    assert len(set(rows)) == len(rows)


SAMPLE = Path(ks.__file__).parents[1] / "traces" / "resnet_training.sqlite"


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_the_sample_is_cut(uncropped: list[Text], width: int) -> None:
    text.render(ks.analyze(ks.read(SAMPLE)), Page(width))

    assert [line.plain for line in uncropped if cell_len(line.plain) > width] == []
