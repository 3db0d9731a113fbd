"""The profiler's own share of idle time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import schema
from kernelscope.metrics.idle import explain, idle
from kernelscope.trace import Table
from tests import build
from tests.metrics.pauses import (
    FIRST,
    LAUNCH,
    between,
    calls,
    kernels,
    on_core,
    on_thread,
    pieces,
)


def flushed(*rows: tuple[float, float, str], **common: Any) -> Table:
    return on_thread(schema.OVERHEADS, *rows, **common)


@pytest.mark.parametrize(
    "name",
    [
        "CUPTI: Buffer flush",
        "CUPTI Buffer flush",
        "CUDA profiling data flush",
        "CUDA profiling data flush overhead",
        "CUDA profiling data flush on process exit",
        "CUDA profiling data flush on cuInit finished",
        "CUDA profiling data flush on cudaProfilerStop",
        "CUDA profiling data flush on context created",
        "CUDA profiling stop overhead",
    ],
)
def test_flushes_on_the_launching_thread_are_the_profilers(name: str) -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)), overheads=flushed((30, 90, name)))
    assert pieces(trace)[1:4] == [
        (20, 30, "host: code", "scheduling not recorded"),
        (30, 90, "profiler", ""),
        (90, 500, "host: code", "scheduling not recorded"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "CUPTI: Instrumentation", "CUPTI Resource Management", "TLS allocation", "Unknown",
        "dlopen(libcuda.so.1)", "CUDA profiling initialization", "Chunk Allocation",
        "CUDA profiling memory allocation",
    ],
)  # fmt: skip
def test_other_overhead_is_not(name: str) -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)), overheads=flushed((30, 90, name)))
    assert "profiler" not in {cause for _, _, cause, _ in pieces(trace)}


def test_a_flush_on_another_thread_counts_while_the_launching_one_is_away() -> None:
    flush = "CUPTI: Buffer flush"
    trace = between(
        FIRST,
        calls((100, 120, "cudaEventQuery", 9), (500, 505, LAUNCH, 2)),
        overheads=build.joined(
            flushed((30, 300, flush), thread_id=8), flushed((0, 2000, flush), process_id=2)
        ),
        on_core=on_core((0, 200), (400, 900)),
    )
    assert [each for each in pieces(trace) if each[2] == "profiler"] == [
        (100, 120, "profiler", ""),
        (200, 300, "profiler", ""),
    ]


def test_what_is_left_of_a_pause_decides_whether_it_was_ordinary() -> None:
    flush = flushed((30, 200, "CUDA profiling data flush"))
    trace = between(FIRST, calls((2, 4, LAUNCH, 2)), 204, overheads=flush)
    # 10 + 4 µs are left of the pause: more than 5 µs
    assert pieces(trace)[1:] == [
        (20, 30, "unexplained", ""),
        (30, 200, "profiler", ""),
        (200, 204, "unexplained", ""),
    ]
    trace = between(
        FIRST, calls((2, 4, LAUNCH, 2)), 203, overheads=flushed((21, 200, "CUPTI Buffer flush"))
    )
    assert [each[2] for each in pieces(trace)[1:]] == [
        "kernel_to_kernel", "profiler", "kernel_to_kernel",
    ]  # fmt: skip


@pytest.mark.parametrize(("thread", "found"), [(1, True), (2, False)])
def test_behind_the_last_activity_the_thread_of_the_one_that_ended_last_decides(
    thread: int, found: bool
) -> None:
    """The kernel that thread 2 launched started last, and ended first."""
    trace = build.trace(
        kernels=kernels((10, 100, 1), (50, 60, 2)),
        api_calls=build.joined(
            FIRST, calls((3, 4, LAUNCH, 2), (190, 200, "cudaFree", None), thread_id=2)
        ),
        overheads=flushed((120, 150, "CUPTI: Buffer flush"), thread_id=thread),
    )
    assert ((120, 150, "profiler", "") in pieces(trace)) == found


def test_a_pause_that_the_profiler_cuts_in_two_counts_once_in_the_median() -> None:
    """Five of 1 µs, five of 13 µs and one of 20 µs: up to 39 µs is ordinary."""
    lengths = [1.0] * 5 + [13.0] * 5 + [20.0]
    starts = np.cumsum([100, *(10 + length for length in lengths)])
    trace = build.trace(
        kernels=kernels(*((at, at + 10, i) for i, at in enumerate(starts.tolist()))),
        api_calls=calls(*((i, i + 0.5, LAUNCH, i) for i in range(len(starts)))),
    )
    flushes = flushed(*((at - 0.8, at - 0.6, "CUPTI Buffer flush") for at in starts[1:6].tolist()))
    plain, with_flushes = (
        {r["cause"]: r["gaps"] for r in idle(explain(each)).records()}
        for each in (trace, trace.with_tables(overheads=flushes))
    )
    assert with_flushes["profiler"] == 5
    assert with_flushes["kernel_to_kernel"] == plain["kernel_to_kernel"] == 11


def test_flushes_before_the_first_and_after_the_last_activity() -> None:
    flush = flushed((3, 6, "CUPTI Buffer flush"), (1100, 1200, "CUDA profiling data flush"))
    trace = between(FIRST, calls((15, 16, LAUNCH, 2), (1300, 1301, "cudaFree", 3)), overheads=flush)
    found = pieces(trace)
    assert found[:3] == [
        (0, 3, "before_first", ""), (3, 6, "profiler", ""), (6, 10, "before_first", ""),
    ]  # fmt: skip
    assert found[-3:] == [
        (1010, 1100, "after_last", ""),
        (1100, 1200, "profiler", ""),
        (1200, 1301, "after_last", ""),
    ]
