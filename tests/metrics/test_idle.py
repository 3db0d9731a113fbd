"""Why a device stood still: known answers, one cause at a time."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import numpy as np
import pytest

from kernelscope import schema
from kernelscope.metrics import thread_states
from kernelscope.metrics.idle import (
    explain,
    idle,
)
from kernelscope.metrics.intervals import union
from kernelscope.metrics.window import Window
from kernelscope.trace import Trace
from tests import build
from tests.metrics.pauses import (
    EDGE,
    FIRST,
    LAUNCH,
    MS,
    US,
    between,
    calls,
    kernels,
    on_core,
    on_thread,
    pieces,
    ranges,
)

ASLEEP = "thread asleep, nothing recorded"


def test_the_host_was_late() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)))
    assert pieces(trace) == [
        EDGE,
        (20, 500, "host: code", "scheduling not recorded"),
        (500, 1000, "launch_latency", ""),
    ]


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("cudaStreamSynchronize", "host: synchronization"),
        ("cudaEventRecord", "host: cuda_call"),
        ("cudaGraphInstantiate", "host: cuda_call"),
    ],
)
def test_the_launching_thread_was_in_a_call(call: str, cause: str) -> None:
    trace = between(FIRST, calls((20, 400, call, 9), (400, 405, LAUNCH, 2)), 410)
    assert pieces(trace)[1:] == [(20, 400, cause, call), (400, 410, "launch_latency", "")]


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        ("cudaMemcpyAsync", "host: blocked_copy"),
        ("cudaMalloc", "host: blocked_allocation"),
        ("cudaFree", "host: blocked_allocation"),
        ("cuModuleLoadData", "host: blocked_module"),
        ("cudaLaunchKernel", "host: blocked_module"),
    ],
)
def test_calls_that_can_block_are_work_for_50_us(call: str, cause: str) -> None:
    trace = between(FIRST, calls((20, 400, call, 9), (400, 405, LAUNCH, 2)), 410)
    assert pieces(trace)[1:] == [
        (20, 70, "host: cuda_call", call),
        (70, 400, cause, call),
        (400, 410, "launch_latency", ""),
    ]


def test_a_launch_held_up_by_a_full_queue() -> None:
    count = 1001  # the first of them runs at once
    many = build.joined(
        *(build.api_calls((i, i, LAUNCH), correlation_id=100 + i) for i in range(count))
    )
    late = build.joined(
        *(build.kernels((3 * MS, 3 * MS + 1), correlation_id=100 + i) for i in range(count))
    )
    trace = build.trace(
        kernels=build.joined(kernels((10, 20, 100), (1000, 1010, 2)), late),
        api_calls=build.joined(many, calls((20, 400, LAUNCH, None), (400, 405, LAUNCH, 2))),
    )
    assert (70, 400, "host: blocked_queue", LAUNCH) in pieces(trace)


def test_a_host_that_spins_in_a_synchronisation_does_not_work() -> None:
    trace = between(
        FIRST,
        calls((20, 400, "cudaDeviceSynchronize", 9), (400, 405, LAUNCH, 2)),
        410,
        on_core=on_core((0, 500)),
    )
    assert pieces(trace)[1] == (20, 400, "host: synchronization", "cudaDeviceSynchronize")


def test_ranges_name_what_the_host_did_the_innermost_first_digits_folded() -> None:
    trace = between(
        FIRST,
        calls((400, 405, LAUNCH, 2)),
        410,
        ranges=ranges(
            (30, 390, "step 7"),
            (100, 200, "optimizer 3"),
            (
                150,
                160,
                "x",
            ),
        ),
    )
    assert pieces(trace)[1:] == [
        (20, 30, "host: code", "scheduling not recorded"),
        (30, 100, "host: range", "step #"),
        (100, 150, "host: range", "optimizer #"),
        (150, 160, "host: range", "x"),
        (160, 200, "host: range", "optimizer #"),
        (200, 390, "host: range", "step #"),
        (390, 400, "host: code", "scheduling not recorded"),
        (400, 410, "launch_latency", ""),
    ]  # fmt: skip


def test_of_two_domains_the_range_that_began_last_names_it() -> None:
    both = build.joined(ranges((10, 100, "a"), domain="one"), ranges((50, 405, "b"), domain="two"))
    trace = between(FIRST, calls((400, 405, LAUNCH, 2)), 410, ranges=both)
    assert pieces(trace)[1:3] == [(20, 50, "host: range", "a"), (50, 400, "host: range", "b")]


def test_ranges_of_other_threads_and_processes_say_nothing() -> None:
    other = build.joined(ranges((10, 500, "a"), thread_id=2), ranges((10, 500, "b"), process_id=2))
    trace = between(FIRST, calls((400, 405, LAUNCH, 2)), 410, ranges=other)
    assert pieces(trace)[1] == (20, 400, "host: code", "scheduling not recorded")


def test_operating_system_calls_count_beside_ranges() -> None:
    trace = between(
        FIRST,
        calls((400, 405, LAUNCH, 2)),
        410,
        ranges=ranges((30, 405, "step 1"), (150, 160, "inner")),
        os_calls=on_thread(schema.OS_CALLS, (100, 200, "pthread_cond_wait")),
    )
    assert pieces(trace)[2:7] == [
        (30, 100, "host: range", "step #"),
        (100, 150, "host: os_call", "pthread_cond_wait"),
        (150, 160, "host: range", "inner"),
        (160, 200, "host: os_call", "pthread_cond_wait"),
        (200, 400, "host: range", "step #"),
    ]


@pytest.mark.parametrize("name", ["read", "pread64", "recv", "poll"])
def test_reading_is_data_loading(name: str) -> None:
    trace = between(
        FIRST,
        calls((400, 405, LAUNCH, 2)),
        410,
        os_calls=on_thread(schema.OS_CALLS, (100, 200, name)),
    )
    assert (100, 200, "host: data_loading", name) in pieces(trace)


def test_whatever_happens_inside_a_range_that_fetches_data_is_data_loading() -> None:
    fetch = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    trace = between(
        FIRST,
        calls((300, 310, "cudaStreamSynchronize", 9), (400, 405, LAUNCH, 2)),
        410,
        ranges=ranges((30, 390, fetch), (100, 200, "collate")),
        os_calls=on_thread(schema.OS_CALLS, (120, 180, "pthread_cond_timedwait")),
    )
    assert pieces(trace)[2:-2] == [
        (30, 100, "host: data_loading", fetch),
        (100, 120, "host: data_loading", "collate"),
        (120, 180, "host: data_loading", "pthread_cond_timedwait"),
        (180, 200, "host: data_loading", "collate"),
        (200, 300, "host: data_loading", fetch),
        (300, 310, "host: synchronization", "cudaStreamSynchronize"),
        (310, 390, "host: data_loading", fetch),
    ]


def test_a_thread_asleep_of_which_nothing_else_is_recorded() -> None:
    trace = between(
        FIRST,
        calls((400, 405, LAUNCH, 2)),
        410,
        ranges=ranges((300, 390, "step 1")),
        on_core=build.joined(on_core((0, 50), (350, 500)), on_core((600, 700), thread_id=5)),
    )
    assert pieces(trace)[1:] == [
        (20, 50, "host: code", ""),
        (50, 300, "host: off_core", ASLEEP),
        (300, 350, "host: range", "step # (asleep)"),
        (350, 390, "host: range", "step #"),
        (390, 400, "host: code", ""),
        (400, 410, "launch_latency", ""),
    ]


def test_a_thread_whose_records_do_not_reach_so_far_was_not_asleep() -> None:
    """It calls 3 ms before its first record, so that the lack of records says nothing."""
    trace = between(
        FIRST,
        build.joined(calls((2000, 2010, "cudaGetDevice", None)), calls((5050, 5060, LAUNCH, 2))),
        5070,
        on_core=build.joined(on_core((5000, 6000)), on_core((0, 6000), thread_id=2)),
    )
    unknown = "host: code", "scheduling not recorded"
    assert pieces(trace)[1:] == [
        (20, 2000, *unknown),
        (2000, 2010, "host: cuda_call", "cudaGetDevice"),
        (2010, 5000, *unknown),
        (5000, 5050, "host: code", ""),
        (5050, 5070, "launch_latency", ""),
    ]


def test_where_recording_had_not_begun_a_thread_may_have_slept() -> None:
    trace = between(FIRST, calls((400, 405, LAUNCH, 2)), 410, on_core=on_core((200, 500)))
    assert pieces(trace)[1:3] == [
        (20, 200, "host: code", "scheduling not recorded"),
        (200, 400, "host: code", ""),
    ]


def test_threads_in_turn_asleep_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many threads that launch is held against all others: not its records each time."""
    many = range(40)
    looked_at = Mock(wraps=union)
    monkeypatch.setattr(thread_states, "union", looked_at)
    starts = [100 * (number + 1) for number in many]
    trace = build.trace(
        kernels=kernels(*((start, start + 10, number) for number, start in enumerate(starts))),
        api_calls=build.joined(
            *(
                calls((start - 5, start - 3, LAUNCH, n), thread_id=n)
                for n, start in enumerate(starts)
            )
        ),
        on_core=build.joined(
            *(on_core((start - 6, start), thread_id=n) for n, start in enumerate(starts))
        ),
    )
    asleep = sum(end - start for start, end, _, detail in pieces(trace) if detail == ASLEEP)
    assert asleep == pytest.approx(39 * 84)
    assert looked_at.call_count <= 4 * len(many)


def test_a_straggling_thread_is_named_by_what_it_did() -> None:
    """Thread 1 launches, and sleeps until thread 2, which drives the device too, is done."""
    trace = between(
        build.joined(
            FIRST,
            calls((1, 2, "cudaGetDevice", None), thread_id=2),
            calls((1, 2, "cudaGetDevice", None), thread_id=2, process_id=9),
        ),
        build.joined(
            calls((400, 405, LAUNCH, 2)),
            calls((200, 300, "cudaStreamSynchronize", None), thread_id=2),
        ),
        410,
        ranges=ranges((100, 390, "augment 5"), thread_id=2),
        on_core=build.joined(
            on_core((0, 20), (390, 500)),
            on_core((60, 350), thread_id=2),
            on_core((0, 400), thread_id=3),  # makes no CUDA call
            on_core((0, 400), thread_id=2, process_id=9),
        ),
    )
    busy = f"{ASLEEP}; another driving thread: "
    assert pieces(trace)[1:] == [
        (20, 60, "host: off_core", ASLEEP),
        (60, 100, "host: off_core", busy + "host code"),
        (100, 200, "host: off_core", busy + "augment #"),
        (200, 300, "host: off_core", ASLEEP),  # it waits, too
        (300, 350, "host: off_core", busy + "augment #"),
        (350, 390, "host: off_core", ASLEEP),
        (390, 400, "host: code", ""),
        (400, 410, "launch_latency", ""),
    ]


def test_the_launch_was_in_flight() -> None:
    trace = between(FIRST, calls((15, 25, LAUNCH, 2)), 40)
    assert pieces(trace)[1:] == [(20, 25, "in_call", LAUNCH), (25, 40, "launch_latency", "")]


def test_a_launch_that_starts_with_the_pause_is_in_flight() -> None:
    trace = between(FIRST, calls((20, 25, LAUNCH, 2)), 40)
    assert pieces(trace)[1:] == [(20, 25, "in_call", LAUNCH), (25, 40, "launch_latency", "")]


def test_a_launch_that_loads_its_code_first() -> None:
    trace = between(FIRST, calls((100, 900, LAUNCH, 2)))
    assert pieces(trace)[2:] == [
        (100, 150, "launch_latency", ""),
        (150, 900, "launch_latency", f"{LAUNCH} (blocked: module)"),
        (900, 1000, "launch_latency", ""),
    ]


def test_a_pageable_copy_blocks_whatever_its_name_says() -> None:
    """An "asynchronous" copy from pageable memory: two chunks, the host staging in between."""
    trace = build.trace(
        copies=build.joined(
            *(build.copies((s * US, e * US), correlation_id=1) for s, e in ((30, 60), (200, 230)))
        ),
        api_calls=calls((0, 240, "cudaMemcpyAsync", 1)),
    )
    assert pieces(trace) == [
        (0, 30, "before_first", ""),
        (60, 200, "in_call", "cudaMemcpyAsync (blocked: copy)"),
        (230, 240, "after_last", ""),
    ]


def test_a_kernel_recorded_as_starting_before_its_launch() -> None:
    """The clocks disagree: the pause is the host's, and nothing is negative."""
    trace = between(FIRST, calls((1200, 1205, LAUNCH, 2)))
    assert pieces(trace)[1:2] == [(20, 1000, "host: code", "scheduling not recorded")]


@pytest.mark.parametrize(
    ("returned", "length", "cause"),
    [
        (10.001, 900, "launch_latency"),  # 9,999 ns before the pause
        (10, 5, "kernel_to_kernel"),
        (10, 5.001, "unexplained"),
        (1, 900, "unexplained"),
    ],
)
def test_a_call_that_had_returned(returned: float, length: float, cause: str) -> None:
    trace = between(FIRST, calls((0.5, returned, LAUNCH, 2)), 20 + length)
    assert pieces(trace)[1:] == [(20, 20 + length, cause, "")]


def queue_of(lengths: Sequence[float]) -> Trace:
    """Kernels of 10 µs, launched long before, with pauses of the given lengths behind each."""
    starts = np.cumsum([100, *(10 + length for length in lengths)]).tolist()
    return build.trace(
        kernels=kernels(*((at, at + 10, i) for i, at in enumerate(starts))),
        api_calls=calls(*((i, i + 0.5, LAUNCH, i) for i in range(len(starts)))),
    )


def test_ordinary_is_up_to_three_times_the_median_of_such_pauses() -> None:
    table = idle(explain(queue_of([3] * 12 + [9, 9.001]))).records()
    found = {row["cause"]: (row["total_ns"], row["gaps"]) for row in table}
    assert found["kernel_to_kernel"] == (12 * 3 * US + 9 * US, 13)
    assert found["unexplained"] == (9001, 1)


def test_a_few_long_pauses_are_not_ordinary_by_being_alike() -> None:
    assert {row["cause"] for row in idle(explain(queue_of([300] * 9))).records()} == {
        "before_first",
        "unexplained",
    }
    many = idle(explain(queue_of([30] * 40 + [49, 51]))).records()
    found = {row["cause"]: row["gaps"] for row in many}
    assert (found["kernel_to_kernel"], found["unexplained"]) == (41, 1)


def test_between_the_nodes_of_a_graph() -> None:
    trace = build.trace(
        kernels=build.joined(
            kernels((100, 110, 1), (140, 150, 1), graph_node_id=5), kernels((400, 410, 2))
        ),
        api_calls=calls((0, 20, "cudaGraphLaunch", 1), (0, 2, LAUNCH, 2)),
    )
    assert pieces(trace)[1:] == [
        (110, 140, "intra_graph", ""),
        (150, 400, "unexplained", ""),
    ]


def test_a_node_of_no_length_begins_its_graph() -> None:
    trace = build.trace(
        kernels=kernels((10, 20, 2), (100, 100, 1), (130, 140, 1)),
        api_calls=calls((0, 5, "cudaGraphLaunch", 1), (0, 2, LAUNCH, 2)),
    )
    assert pieces(trace)[1:] == [(20, 100, "unexplained", ""), (100, 130, "intra_graph", "")]


def test_an_opaque_graph_is_busy() -> None:
    """USER_PAINS 30, 31: 26 % and 99 % of "idle" time were graphs without a row per node."""
    graph = {"process_id": 1, "device_id": 0, "stream_id": 7, "correlation_id": 1}
    trace = build.trace(
        kernels=kernels((10, 20, 2)),
        graphs=build.table(schema.GRAPHS, [{**graph, "start_ns": 20 * US, "end_ns": 900 * US}]),
        api_calls=calls((0, 3, "cudaGraphLaunch", 1), (0, 2, LAUNCH, 2)),
    )
    assert pieces(trace) == [EDGE]


@pytest.mark.parametrize("identity", [None, 77])
def test_work_without_a_recorded_call(identity: int | None) -> None:
    trace = build.trace(
        kernels=kernels((10, 20, 1), (500, 510, identity)), api_calls=calls((0, 2, LAUNCH, 1))
    )
    assert pieces(trace) == [EDGE, (20, 500, "unknown_launch", "")]


def test_migrations_have_no_call() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)), copies=build.copies(
        (100 * US, 200 * US, "unified HtoD")
    ))  # fmt: skip
    assert pieces(trace)[1] == (20, 100, "unknown_launch", "migration")


def test_a_thread_that_was_not_recorded() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2), thread_id=None))
    assert pieces(trace)[1:] == [(20, 500, "host: unknown", ""), (500, 1000, "launch_latency", "")]


def test_a_device_idle_throughout_the_window() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)))
    window = Window(100 * US, 600 * US, "test")
    assert pieces(trace, window) == [
        (100, 500, "host: code", "scheduling not recorded"),
        (500, 600, "launch_latency", ""),
    ]


def test_a_window_beyond_the_trace() -> None:
    trace = between(FIRST, calls((500, 505, LAUNCH, 2)))
    found = pieces(trace, Window(-50 * US, 2000 * US, "test"))
    assert found[0] == (-50, 10, "before_first", "")
    assert found[-1] == (1010, 2000, "after_last", "")
