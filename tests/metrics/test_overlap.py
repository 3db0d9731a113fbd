"""Overlap of host and devices: known answers, and random traces against a walk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.host_threads import cpu, host_threads
from kernelscope.metrics.overlap import NO_CALLS, NO_CALLS_INSIDE, overlap
from kernelscope.metrics.overlap_results import BOUNDS, STATES, WAIT_NAMES
from kernelscope.metrics.window import Window, whole
from kernelscope.oracle.host_times import source, states, threads
from kernelscope.trace import Capture, Table, Trace
from tests import build
from tests.metrics.scenes import pushed
from tests.metrics.slow_overlap import times_of

US = 1000
MS = 1000 * US


def on_core(*rows: tuple[int, int], **common: Any) -> Table:
    """Stretches ``(start, end)`` on a core of process 1, thread 1."""
    base = {"process_id": 1, "thread_id": 1, "cpu": 0, **common}
    return build.table(schema.ON_CORE, [{**base, "start_ns": s, "end_ns": e} for s, e in rows])


def only(table: Table) -> dict[str, Any]:
    (row,) = table.records()
    return row


def four(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[f"{name}_ns"] for name in STATES)


def bounds(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[f"{name}_ns"] for name in BOUNDS)


def waited(row: dict[str, Any]) -> dict[str, int]:
    return {name: row[f"waiting.{name}_ns"] for name in WAIT_NAMES if row[f"waiting.{name}_ns"]}


def test_a_host_that_spins_does_not_work() -> None:
    # On its core throughout: 10 µs launch, 20 µs of Python, then 70 µs spinning until the end.
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (30, 100, "cudaStreamSynchronize")),
        kernels=build.kernels((20, 95)),
        on_core=on_core((0, 100)),
    )
    row = only(overlap(trace))
    assert four(row) == (10, 65, 20, 5)
    assert (row["cpu_source"], row["unscheduled_ns"], waited(row)) == (
        "scheduling", 0, {"synchronization": 70},
    )  # fmt: skip
    assert bounds(row) == (None,) * 4
    thread = only(host_threads(trace))
    assert (thread["on_core_ns"], thread["busy_ns"], thread["calls"]) == (100, 30, 2)


def test_a_thread_asleep_in_a_synchronisation_waits_and_one_asleep_elsewhere_does_nothing() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (20, 60, "cudaEventSynchronize"), (90, 100)),
        kernels=build.kernels((10, 55)),
        on_core=on_core((0, 22), (58, 70), (85, 100)),
    )
    row = only(overlap(trace))
    assert four(row) == (10, 35, 35, 20)  # off its core from 70 to 85
    assert waited(row) == {"synchronization": 40}


def test_calls_alone_give_bounds_and_ranges_the_other_ends_of_them() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (60, 100, "cudaDeviceSynchronize")),
        kernels=build.kernels((20, 95)),
        ranges=pushed((5, 40, "forward"), (50, 100, "wait")),
    )
    row = only(overlap(trace))
    assert (row["cpu_source"], row["unscheduled_ns"]) == ("api_calls", 100)
    assert four(row) == (0, 75, 10, 15)
    # Busy at most from 0 to 40 and from 50 to 60: the rest of the second range is waiting.
    assert bounds(row) == (30, 45, 20, 5)


def test_ranges_never_add_busy_time_and_those_of_other_threads_bound_nothing() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (90, 100)),
        kernels=build.kernels((20, 80)),
        ranges=pushed((0, 100, "loader"), thread_id=2),
    )
    row = only(overlap(trace))
    assert four(row) == (0, 60, 20, 20)
    assert bounds(row) == (None,) * 4


def test_a_pageable_copy_blocks_whatever_its_name_says() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 10 * US), (20 * US, 1020 * US, "cudaMemcpyAsync")),
        kernels=build.kernels((15 * US, 900 * US)),
        copies=build.copies((950 * US, 1010 * US)),
        on_core=on_core((0, 1020 * US)),
    )
    row = only(overlap(trace))
    assert waited(row) == {"copy": 950 * US}
    # Until 70 µs it works: 15 on its own, 55 beside the kernel.
    assert four(row) == (55 * US, (830 + 60) * US, 15 * US, (50 + 10) * US)


def test_a_straggling_thread_keeps_its_process_busy() -> None:
    # One thread waits from 10 on; another of the process works until 80 and launches then.
    trace = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (10, 100, "cudaDeviceSynchronize")),
            build.api_calls((75, 80), thread_id=2),
        ),
        kernels=build.kernels((5, 40), (82, 95)),
        on_core=build.joined(on_core((0, 100)), on_core((5, 80), thread_id=2)),
    )
    row = only(overlap(trace))
    assert four(row) == (35, 13, 45, 7)
    assert row["driving_threads"] == 2
    assert waited(row) == {"synchronization": 20}  # while the other worked nobody waited for it
    first, second = host_threads(trace).records()
    assert (first["thread_id"], first["busy_ns"]) == (2, 75)
    assert (second["busy_ns"], second["waiting.synchronization_ns"]) == (10, 90)


def test_threads_that_make_no_call_stand_beside() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 100, "cudaDeviceSynchronize")),
        kernels=build.kernels((10, 90)),
        on_core=build.joined(
            on_core((0, 100)), on_core((20, 70), thread_id=2),
            on_core((0, 30), (95, 120), thread_id=3), on_core((0, 50), process_id=2, thread_id=9),
        ),
        threads=build.table(
            schema.THREADS, [{"process_id": 1, "thread_id": 2, "name": "loader"}]
        ),
    )  # fmt: skip
    row = only(overlap(trace))
    assert four(row) == (0, 80, 0, 20)
    assert row["other_threads_on_core_ns"] == 50 + 35
    rows = [
        (each["process_id"], each["thread_id"], each["name"], each["driving"], each["busy_ns"])
        for each in host_threads(trace).records()
    ]
    assert rows == [
        (1, 1, None, True, 0), (1, 2, "loader", False, 50), (1, 3, None, False, 35),
        (2, 9, None, False, 50),
    ]  # fmt: skip


def test_a_thread_without_records_falls_back_to_its_calls() -> None:
    trace = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (95, 100)), build.api_calls((40, 50), thread_id=2)
        ),
        kernels=build.kernels((30, 60)),
        on_core=on_core((0, 20), (90, 100)),
    )
    row = only(overlap(trace))
    assert row["cpu_source"] == "scheduling and api_calls"
    assert (four(row), row["unscheduled_ns"]) == ((10, 20, 30, 40), 100)
    sources = {each["thread_id"]: each["cpu_source"] for each in host_threads(trace).records()}
    assert sources == {1: "scheduling", 2: "api_calls"}


def test_where_recording_ended_before_the_window_calls_tell_of_the_rest() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (70, 80), (95, 100)),
        kernels=build.kernels((20, 90)),
        on_core=on_core((0, 40), (50, 60)),
        ranges=pushed((0, 85, "work")),
    )
    row = only(overlap(trace))
    assert (row["cpu_source"], row["unscheduled_ns"]) == ("scheduling and api_calls", 40)
    assert four(row) == (20 + 10 + 10, 30, 20 + 5, 5)
    # From 40 to 50 it was off its core, whatever its range says; from 60 on the range counts.
    assert bounds(row) == (20 + 10 + 25, 15, 20 + 5, 5)


@pytest.mark.parametrize(("late", "expected"), [(False, "scheduling"), (True, "mixed")])
def test_records_that_its_own_calls_contradict_do_not_reach_so_far(
    late: bool, expected: str
) -> None:
    call = 3 * MS + 1 if late else 3 * MS
    trace = build.trace(
        api_calls=build.api_calls((0, 10), (call, call + 10)),
        kernels=build.kernels((0, 4 * MS)),
        on_core=build.joined(on_core((0, 2 * MS)), on_core((0, 4 * MS), thread_id=2)),
    )
    row = only(overlap(trace))
    assert row["cpu_source"] == expected.replace("mixed", "scheduling and api_calls")
    assert row["both_ns"] == 2 * MS + (10 if late else 0)


def test_the_same_before_a_threads_first_record() -> None:
    trace = build.trace(
        api_calls=build.api_calls((MS, MS + 10), (3 * MS, 4 * MS, "cudaDeviceSynchronize")),
        kernels=build.kernels((0, 4 * MS)),
        on_core=build.joined(on_core((3 * MS, 4 * MS)), on_core((0, 4 * MS), thread_id=2)),
    )
    row = only(overlap(trace))
    assert (row["cpu_source"], row["unscheduled_ns"]) == ("scheduling and api_calls", 3 * MS)
    assert row["both_ns"] == 10


def test_a_call_that_is_open_throughout_the_window_makes_its_thread_a_driving_one() -> None:
    trace = build.trace(
        api_calls=build.api_calls((0, 100, "cudaDeviceSynchronize")),
        kernels=build.kernels((10, 90)),
    )
    row = only(overlap(trace, Window(20, 60, "here")))
    assert (four(row), row["driving_threads"], waited(row)) == (
        (0, 40, 0, 0), 1, {"synchronization": 40},
    )  # fmt: skip
    assert only(host_threads(trace, Window(20, 60, "here")))["calls"] == 0


def test_nested_calls_count_once_and_wrappers_not_at_all() -> None:
    trace = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 100, "wrapped"), kind="wrapper"),
            build.api_calls((10, 90, "cudaFree")),
            build.api_calls((20, 70, "cuCtxSynchronize"), kind="driver"),
        ),
        kernels=build.kernels((0, 100)),
    )
    row = only(overlap(trace, Window(0, 100, "all")))
    assert (four(row), waited(row)) == ((30, 70, 0, 0), {"synchronization": 50})


def test_two_devices_of_one_process_and_two_processes_on_one() -> None:
    trace = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (20, 30)), build.api_calls((50, 100), process_id=2)
        ),
        kernels=build.joined(
            build.kernels((5, 25)),
            build.kernels((25, 60), device_id=1),
            build.kernels((60, 90), process_id=2),
        ),
    )
    rows = {
        (row["process_id"], row["device_id"]): four(row) for row in overlap(trace).records()
    }  # fmt: skip
    assert rows == {
        (1, 0): (10, 10, 10, 70), (1, 1): (5, 30, 15, 50), (2, 0): (30, 0, 20, 50),
    }  # fmt: skip


def test_without_calls_the_host_is_unknown_and_not_idle() -> None:
    kernels = build.joined(build.kernels((0, 60)), build.kernels((0, 50), process_id=2))
    calls = build.api_calls((0, 10), (90, 100), process_id=2)
    trace = build.trace(kernels=kernels, api_calls=calls, on_core=on_core((0, 30)))
    first, second = overlap(trace).records()
    assert [first[f"{name}_ns"] for name in (*STATES, *BOUNDS)] == [None] * 8
    assert (first["cpu_source"], first["reason"], first["driving_threads"]) == (None, NO_CALLS, 0)
    assert first["other_threads_on_core_ns"] == 30
    assert (second["both_ns"], second["other_threads_on_core_ns"]) == (10, None)
    inside = overlap(trace, Window(20, 80, "between calls")).records()
    assert [row["reason"] for row in inside] == [NO_CALLS, NO_CALLS_INSIDE]


def test_an_empty_trace_has_no_rows() -> None:
    assert len(overlap(build.trace())) == len(host_threads(build.trace())) == 0
    row = only(cpu(build.trace()))
    assert (row["utilization"], row["on_core_ns"]) == (None, None)
    assert row["reason"].startswith("thread scheduling was not recorded")


def with_cores(cores: int | None, **tables: Table) -> Trace:
    return Trace(Capture("built", "test", cpu_cores=cores), **tables)


def test_utilization_is_time_on_cores_over_cores_times_window() -> None:
    tables = {
        "kernels": build.kernels((0, 100)),
        "on_core": build.joined(
            on_core((0, 60), (80, 200)), on_core((50, 100), process_id=2, thread_id=5)
        ),
    }
    row = only(cpu(with_cores(4, **tables)))
    assert (row["on_core_ns"], row["scheduled_ns"], row["cores"]) == (130, 100, 4)
    assert row["utilization"] == 130 / 400
    assert row["reason"] is None
    unknown = only(cpu(with_cores(None, **tables)))
    assert (unknown["utilization"], unknown["on_core_ns"]) == (None, 130)
    assert "cores" in unknown["reason"]


def test_more_threads_on_cores_than_there_are_cores_is_no_utilization() -> None:
    """Records without their thread, such that nothing tells that one is written twice."""
    rows = on_core((0, 100), (0, 100), (50, 100), thread_id=None)
    row = only(cpu(with_cores(2, on_core=rows, api_calls=build.api_calls((0, 100)))))
    assert (row["utilization"], row["on_core_ns"]) == (None, 250)
    assert row["reason"] == (
        "the scheduling records contradict 2 processor cores: they have more threads on one at once"
    )


def test_utilization_is_of_the_part_of_the_window_that_was_recorded() -> None:
    trace = with_cores(2, kernels=build.kernels((0, 100)), on_core=on_core((60, 70), (75, 80)))
    row = only(cpu(trace))
    assert (row["scheduled_ns"], row["utilization"]) == (20, 15 / 40)
    outside = only(cpu(trace, Window(0, 50, "before")))
    assert (outside["on_core_ns"], outside["utilization"]) == (None, None)
    assert outside["reason"] == "thread scheduling was not recorded in the window"


# ---- random traces -------------------------------------------------------------------------

STEP = 25 * US
"""All times are multiples of it, so that calls are shorter and longer than 50 µs."""

NAMES = (
    "cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaFree",
    "cuModuleLoadData", "cudaEventRecord",
)  # fmt: skip
MOMENTS = st.integers(0, 60)
SPANS = st.tuples(MOMENTS, st.integers(0, 12)).map(lambda t: (t[0] * STEP, (t[0] + t[1]) * STEP))
WHO = st.tuples(st.integers(1, 2), st.integers(1, 2))
CALLS = st.lists(st.tuples(SPANS, WHO, st.sampled_from(NAMES), st.booleans()), max_size=8)
WORK = st.lists(st.tuples(SPANS, WHO), max_size=6)
CORES = st.dictionaries(WHO, st.lists(MOMENTS, unique=True, min_size=2, max_size=8), max_size=4)
RANGES = st.lists(st.tuples(SPANS, WHO), max_size=4)
WINDOWS = st.none() | st.tuples(MOMENTS, st.integers(1, 40))


def trace_of(calls: Any, work: Any, cores: Any, ranges: Any) -> Trace:
    """Put random rows together: stretches on cores lie between pairs of moments."""

    def who(pair: tuple[int, int], second: str = "thread_id") -> dict[str, int]:
        return {"process_id": pair[0], second: pair[1]}

    stretched = [
        on_core(*zip(cuts[::2], cuts[1::2], strict=False), **who(pair))
        for pair, moments in cores.items()
        for cuts in [[at * STEP for at in sorted(moments)]]
    ]
    return build.trace(
        api_calls=build.joined(
            build.api_calls(),
            *(
                build.api_calls((*span, name), kind="wrapper" if wraps else "runtime", **who(pair))
                for span, pair, name, wraps in calls
            ),
        ),
        kernels=build.joined(
            build.kernels(), *(build.kernels(span, **who(pair, "device_id")) for span, pair in work)
        ),
        on_core=build.joined(on_core(), *stretched),
        ranges=build.joined(
            pushed(), *(pushed((*span, "range"), **who(pair)) for span, pair in ranges)
        ),
    )  # fmt: skip


TRACES = st.builds(trace_of, CALLS, WORK, CORES, RANGES)


def placed(trace: Trace, place: tuple[int, int] | None) -> Window:
    """Return a window of random place and length; the whole trace for None."""
    if place is None:
        return whole(trace)
    return Window(place[0] * STEP, (place[0] + place[1]) * STEP, "random")


@given(TRACES, WINDOWS)
def test_any_trace_agrees_with_walking_it(trace: Trace, place: tuple[int, int] | None) -> None:
    agrees(trace, placed(trace, place))


def agrees(trace: Trace, window: Window) -> None:
    """Assert that the tables say what a walk over the trace finds, and add up."""
    span = (window.start_ns, window.end_ns)
    times = times_of(trace)
    walked, alone = states(times, span), threads(times, span)
    driving = times.driving(span)
    for row in overlap(trace, window).records():
        lane = (row["process_id"], row["device_id"])
        if lane not in walked:
            assert row["both_ns"] is None
            assert row["reason"] is not None
            continue
        expected = walked[lane]
        assert sum(four(row)) == window.duration_ns
        assert four(row) == tuple(expected[f"{name}_ns"] for name in STATES)
        assert waited(row) == {
            name: expected[f"waiting.{name}_ns"]
            for name in WAIT_NAMES
            if expected[f"waiting.{name}_ns"]
        }
        assert row["unscheduled_ns"] == expected["unscheduled_ns"]
        mine = [thread for thread in driving if thread[0] == lane[0]]
        recorded = [alone[thread]["recorded_ns"] for thread in mine]
        assert row["driving_threads"] == len(mine)
        if window.duration_ns:
            assert row["cpu_source"] == source(recorded, span)
        length = window.duration_ns
        bounded = any(each in times.ranges and alone[each]["recorded_ns"] < length for each in mine)
        assert (row["both_high_ns"] is not None) == bounded
        if bounded:
            assert bounds(row) == tuple(expected[f"{name}_ns"] for name in BOUNDS)
    for row in host_threads(trace, window).records():
        found = alone[row["process_id"], row["thread_id"]]
        assert row["busy_ns"] == found["busy_ns"]
        assert row["on_core_ns"] in (None, found["on_core_ns"])
        assert sum(waited(row).values()) + row["busy_ns"] <= window.duration_ns
        assert waited(row) == {
            name: found[f"waiting.{name}_ns"] for name in WAIT_NAMES if found[f"waiting.{name}_ns"]
        }
