"""Figures that depend on when kernels ran are missing where the profiler ran them one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import kernelscope as ks
from kernelscope.metrics.communication import communication, communication_by_device
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.device_time import device_processes, devices, measure
from kernelscope.metrics.idle import explain, gap_spectrum, idle
from kernelscope.metrics.launch_calls import launch_calls
from kernelscope.metrics.launch_stretches import launch_stretches
from kernelscope.metrics.overlap import overlap
from kernelscope.metrics.queue_depth import queue_depth
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.metrics.transfers import copy_exposure, transfers
from kernelscope.report import text
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from kernelscope.report.rows import plain
from kernelscope.trace import Trace
from tests import build

REASON = "the profiler ran the kernels one by one"
WHEN = (
    "busy_ns", "idle_ns", "leading_ns", "trailing_ns", "gap_count", "largest_gap_ns",
    "concurrency.one_ns", "concurrency.two_ns", "concurrency.three_or_more_ns",
    *(f"partition.{name}_ns" for name in PARTITION_CLASSES),
)  # fmt: skip


@pytest.fixture
def serial() -> Trace:
    built = build.trace(
        kernels=build.joined(
            build.kernels((0, 10, "a"), (30, 40, "b")), build.kernels((50, 60, "a"), stream_id=8)
        ),
        devices=build.devices({}),
    )
    return replace(built, capture=replace(built.capture, serialised=REASON))


def test_the_devices_have_their_kernels_time_and_nothing_else(serial: Trace) -> None:
    for table in (devices(serial), device_processes(serial)):
        [row] = table.records()
        assert {row[name] for name in WHEN} == {None}
        assert (row["window_ns"], row["kernel_ns"], row["compute_ns"]) == (60, 30, 30)
    assert device_processes(serial).values("other_process_ns") == [None]


def test_there_are_no_gaps_and_streams_are_not_compared(serial: Trace) -> None:
    assert len(gaps(serial)) == len(gaps(serial, per="process")) == 0
    for row in streams(serial).records():
        assert (row["exclusive_ns"], row["largest_gap_ns"]) == (None, None)
        assert row["busy_ns"] > 0


def test_durations_hold_and_shares_of_the_window_do_not(serial: Trace) -> None:
    analysis = ks.analyze(serial)
    assert analysis.kernels.values("total_ns") == [20, 10]
    assert plain(analysis.kernels, "share") == [2 / 3, 1 / 3]
    assert plain(analysis.kernels, "share_of_window") == [None, None]
    assert set(plain(analysis.launch_shapes, "share_of_window")) == {None}


def test_there_are_no_iterations(serial: Trace) -> None:
    many = build.kernels(*((100 * n, 100 * n + 10, "ab"[n % 2]) for n in range(60)))
    analysis = ks.analyze(serial.with_tables(kernels=many))
    assert analysis.iteration_summary.family is None
    assert any("one by one" in note for note in analysis.iteration_summary.notes)
    as_it_is = build.trace(kernels=many)
    assert ks.analyze(as_it_is).iteration_summary.family is not None


def test_nothing_is_said_of_overlap_queues_and_exposure(serial: Trace) -> None:
    trace = serial.with_tables(
        kernels=build.joined(
            build.kernels((10, 20, "a"), correlation_id=1),
            build.kernels((30, 40, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), correlation_id=2),
        ),
        copies=build.copies((50, 55)),
        api_calls=build.joined(
            build.api_calls((0, 5), correlation_id=1), build.api_calls((6, 9), correlation_id=2)
        ),
    )
    as_it_is = replace(trace, capture=replace(trace.capture, serialised=None))

    [row] = overlap(trace).records()
    assert (row["both_ns"], row["gpu_only_ns"], row["cpu_only_ns"], row["neither_ns"]) == (
        None, None, None, None,
    )  # fmt: skip
    assert row["reason"] == REASON
    assert len(overlap(as_it_is)) == 1
    assert len(launch_calls(trace)) == len(queue_depth(trace)) == len(launch_stretches(trace)) == 0
    assert len(launch_calls(as_it_is)) == 2
    assert len(idle(explain(trace))) == len(gap_spectrum(explain(trace))) == 0
    assert len(idle(explain(as_it_is))) > 0
    for table in (communication(trace), communication_by_device(trace)):
        [row] = table.records()
        assert (row["calls"], row["total_ns"]) == (1, 10)
        assert (row["exposed_ns"], row["exposed_without_graphs_ns"]) == (None, None)
        assert row["overlapped_ns"] is None
    assert communication(as_it_is).values("exposed_ns") == [10]
    assert copy_exposure(measure(trace)).values("exposed_ns") == [None]
    assert copy_exposure(measure(as_it_is)).values("exposed_ns") == [5]
    assert transfers(trace).values("exposed_ns") == [None]
    assert transfers(as_it_is).values("exposed_ns") == [5]


def test_the_reason_is_told_everywhere(serial: Trace) -> None:
    analysis = ks.analyze(serial)
    [said] = [row for row in analysis.health.records() if row["code"] == "serialised_capture"]
    assert said["severity"] == "warning"
    assert "one by one" in said["message"]
    assert analysis.ok
    page = text.render(analysis, Page(100, 10))
    assert f"Not known: {REASON}." in page
    assert "Idle gaps" not in page
    made = json.loads(json.dumps(document(analysis)))
    assert made["capture"]["serialised"] == REASON
    assert set(made["devices"][0]["partition"].values()) == {None}
    assert made["devices"][0]["idle_ns"] is None


def test_a_run_as_it_is_has_all_figures(serial: Trace) -> None:
    plain_run = replace(serial, capture=replace(serial.capture, serialised=None))
    [row] = devices(plain_run).records()
    assert None not in {row[name] for name in WHEN}
    assert document(ks.analyze(plain_run))["capture"]["serialised"] is None
