"""Idle time of several devices, processes and a million pauses, and its tables."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope import schema
from kernelscope.metrics.device_time import devices, measure
from kernelscope.metrics.idle import (
    checks,
    explain,
    gap_spectrum,
    idle,
    idle_by_iteration,
    idle_pieces,
)
from kernelscope.metrics.idle_results import CAUSE_NAMES
from kernelscope.metrics.window import Window
from kernelscope.trace import Categorical, Table, Trace
from tests import build
from tests.metrics.pauses import (
    FIRST,
    LAUNCH,
    MS,
    US,
    between,
    calls,
    kernels,
    pieces,
)


def test_on_a_shared_device_the_launching_thread_of_the_next_activity_decides() -> None:
    rows = build.devices(
        {"process_id": 1, "device_id": 0, "gpu_id": 4, "identifies": True},
        {"process_id": 2, "device_id": 0, "gpu_id": 4, "identifies": True},
    )
    trace = build.trace(
        kernels=build.joined(kernels((10, 20, 1)), kernels((300, 310, 1), process_id=2)),
        api_calls=build.joined(
            FIRST,
            calls((15, 290, "cudaDeviceSynchronize", None)),
            calls((100, 200, "cudaMalloc", 2), (250, 255, LAUNCH, 1), process_id=2),
        ),
        devices=rows,
    )
    assert pieces(trace)[1:] == [
        (20, 100, "host: code", "scheduling not recorded"),
        (100, 150, "host: cuda_call", "cudaMalloc"),
        (150, 200, "host: blocked_allocation", "cudaMalloc"),
        (200, 250, "host: code", "scheduling not recorded"),
        (250, 300, "launch_latency", ""),
    ]


def test_of_activities_that_start_together_the_first_stream_decides() -> None:
    trace = build.trace(
        kernels=build.joined(
            kernels((10, 20, 1)),
            kernels((100, 110, 2), stream_id=9),
            kernels((100, 105, 3), stream_id=8),
        ),
        api_calls=calls((0, 1, LAUNCH, 1), (2, 3, LAUNCH, 2), (60, 61, LAUNCH, 3)),
    )
    assert [each[2] for each in pieces(trace)[1:]] == ["host: code", "launch_latency"]
    table = idle_pieces(explain(trace)).records()
    assert {(row["ending_table"], row["ending_row"]) for row in table[1:]} == {("kernels", 2)}


def test_kernels_that_overlap_in_one_stream_or_last_no_time() -> None:
    """USER_PAINS 37: a union is a union, and what has no length still ends a pause."""
    trace = build.trace(
        kernels=kernels((10, 30, 1), (15, 20, 1), (50, 50, 1), (60, 70, 1)),
        api_calls=calls((0, 2, LAUNCH, 1)),
    )
    explained = explain(trace)
    rows = idle_pieces(explained).records()
    found = [(row["start_ns"] // US, row["end_ns"] // US) for row in rows]
    assert found == [(0, 10), (30, 50), (50, 60)]
    assert int(idle(explained)["total_ns"].sum()) == int(devices(trace)["idle_ns"][0])


def test_a_copy_alone_on_the_device_is_no_idle_time() -> None:
    trace = build.trace(copies=build.copies((0, 10 * MS)), kernels=kernels((10_000, 10_001, None)))
    assert len(idle(explain(trace))) == 0


def test_nothing_is_trimmed() -> None:
    """USER_PAINS 47: 20 s at the beginning were left out, and nobody was told."""
    trace = build.trace(
        kernels=kernels((20_000_000, 20_000_010, 1)),
        api_calls=calls((0, 1, "cudaMalloc", None), (19_999_990, 19_999_991, LAUNCH, 1)),
    )
    assert pieces(trace) == [(0, 20_000_000, "before_first", "")]
    assert idle(explain(trace))["share"].tolist() == [1.0]


def test_calls_inside_calls_are_not_counted_twice() -> None:
    """USER_PAINS 48: waiting took 271 % of the wall."""
    trace = between(
        FIRST,
        calls(
            (30, 300, "cudaFree", 7), (100, 200, "cuCtxSynchronize", 8), (40, 90, "cuMemFree", 9),
            (400, 405, LAUNCH, 2),
        ),
        410,
    )  # fmt: skip
    assert pieces(trace)[1:] == [
        (20, 30, "host: code", "scheduling not recorded"),
        (30, 40, "host: cuda_call", "cudaFree"),
        (40, 80, "host: cuda_call", "cuMemFree"),
        (80, 100, "host: blocked_allocation", "cudaFree"),
        (100, 200, "host: synchronization", "cuCtxSynchronize"),
        (200, 300, "host: blocked_allocation", "cudaFree"),
        (300, 400, "host: code", "scheduling not recorded"),
        (400, 410, "launch_latency", ""),
    ]
    assert idle(explain(trace))["share"].sum() == pytest.approx(1)


def test_call_chain_wrappers_are_no_calls() -> None:
    wrapper = calls((20, 405, "cudaLaunchKernel", 2), kind="wrapper")
    trace = between(FIRST, build.joined(wrapper, calls((400, 405, LAUNCH, 2))), 410)
    assert pieces(trace)[1] == (20, 400, "host: code", "scheduling not recorded")


def million(pause: int, count: int) -> Trace:
    """Kernels of 8 µs with equal pauses, all launched before the first."""
    number = np.arange(count, dtype=np.int32)
    one, start = np.ones(count, dtype=np.int32), count + number * np.int64(8 * US + pause)
    common = {"process_id": one, "correlation_id": number}
    return build.trace(
        kernels=Table.make(
            schema.KERNELS,
            {**common, "start_ns": start + 20 * US, "end_ns": start + 28 * US,
             "device_id": one, "stream_id": one, "name": Categorical.constant("gemm", count)},
        ),
        api_calls=Table.make(
            schema.API_CALLS,
            {**common, "start_ns": number.astype(np.int64), "end_ns": number.astype(np.int64) + 1,
             "thread_id": one, "name": Categorical.constant(LAUNCH, count),
             "kind": Categorical.constant("runtime", count)},
        ),
    )  # fmt: skip


def test_a_million_pauses_of_2_us_are_2_seconds() -> None:
    """Another tool found "no significant idle gaps" here: it looked at gaps from 1 ms on."""
    count = 1_000_000
    explained = explain(million(2 * US, count + 1))
    row = idle(explained).records()[0]
    assert (row["cause"], row["total_ns"], row["gaps"]) == (
        "kernel_to_kernel",
        2 * US * count,
        count,
    )
    spectrum = [row for row in gap_spectrum(explained).records() if row["gaps"]]
    assert (spectrum[0]["up_to_ns"], spectrum[0]["gaps"]) == (2 * US, count)
    assert spectrum[0]["total_ns"] == 2 * US * count
    assert len(explained.pieces) == count + 1


def test_two_devices_are_explained_apart_and_checked() -> None:
    trace = build.trace(
        kernels=build.joined(
            kernels((10, 20, 1), (500, 510, 2)), kernels((30, 40, 3), device_id=1)
        ),
        api_calls=calls((0, 1, LAUNCH, 1), (25, 26, LAUNCH, 3), (400, 401, LAUNCH, 2)),
    )
    window = Window(0, 600 * US, "test")
    explained = explain(trace, window)
    found = checks(explained, measure(trace, window))
    assert found["ok"].all()
    assert found.texts("name") == [
        "device 0: idle causes = idle", "device 0: gap spectrum = idle",
        "device 1: idle causes = idle", "device 1: gap spectrum = idle",
    ]  # fmt: skip
    by_iteration = idle_by_iteration(
        explained, np.array([0, 300 * US]), np.array([300 * US, 600 * US])
    )
    total = {(row["iteration"], row["device"]): 0 for row in by_iteration.records()}
    for row in by_iteration.records():
        total[row["iteration"], row["device"]] += row["total_ns"]
    assert total == {(0, 0): 290 * US, (0, 1): 290 * US, (1, 0): 290 * US, (1, 1): 300 * US}


def test_a_trace_without_device_work() -> None:
    explained = explain(build.trace(api_calls=calls((0, 5, "cudaMalloc", 1))))
    for table in (idle(explained), gap_spectrum(explained), idle_pieces(explained)):
        assert len(table) == 0
    assert len(idle_by_iteration(explained, np.array([0]), np.array([5]))) == 0


def test_a_trace_without_calls() -> None:
    trace = build.trace(kernels=kernels((10, 20, 1), (30, 40, 2)))
    assert pieces(trace) == [(20, 30, "unknown_launch", "")]


def test_every_cause_that_is_given_is_a_known_one() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)))
    table = idle(explain(trace))
    assert set(table.texts("cause")) <= set(CAUSE_NAMES)
    assert len(set(CAUSE_NAMES)) == len(CAUSE_NAMES)
