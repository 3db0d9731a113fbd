"""Launch by launch, and by call and kernel: known answers, and plain loops."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kernelscope import schema
from kernelscope.metrics.graph_gaps import gaps_before_nodes
from kernelscope.metrics.launch_calls import find_launch_calls, intra_graph_gaps, launch_calls
from kernelscope.metrics.launch_latency import (
    launch_figures,
    launch_totals,
    launches,
    launches_by_kernel,
)
from kernelscope.metrics.launch_results import GRAPH
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Categorical, Table, Trace, is_missing
from tests import build
from tests.metrics.launch_scenes import TRACES, WINDOWS, Launch, counted, launches_of


def only(table: Table) -> dict[str, Any]:
    (row,) = table.records()
    return row


def test_a_launch_that_waits_in_the_queue() -> None:
    found = build.trace(
        api_calls=build.api_calls((100, 140), correlation_id=3),
        kernels=build.kernels((200, 260, "gemm"), correlation_id=3, device_id=2),
    )
    row = only(launch_calls(found))
    times = ("overhead_ns", "queue_ns", "latency_ns", "overlap_ns")
    assert [row[name] for name in times] == [40, 60, 100, None]
    assert (row["kernel"], row["graph"], row["device_id"], row["executions"]) == (
        "gemm", False, 2, 1,
    )  # fmt: skip
    assert row["intra_graph_gap_ns"] is None


def test_an_execution_that_starts_before_its_call_returns() -> None:
    found = build.trace(
        api_calls=build.api_calls((100, 140), correlation_id=3),
        kernels=build.kernels((130, 260), correlation_id=3),
    )
    row = only(launch_calls(found))
    assert (row["queue_ns"], row["latency_ns"], row["overlap_ns"]) == (None, 30, 10)
    row = only(launches(found))
    assert (row["calls"], row["queued"], row["overlapping"], row["overlap_ns"]) == (1, 0, 1, 10)
    assert (row["queue_ns.median"], row["latency_ns.median"]) == (None, 30.0)


@pytest.mark.parametrize(("early", "known"), [(1000, True), (1001, False)])
def test_a_start_before_the_launch_is_the_clocks(early: int, known: bool) -> None:
    found = build.trace(
        api_calls=build.api_calls((5000, 5100), correlation_id=3),
        kernels=build.kernels((5000 - early, 9000), correlation_id=3),
    )
    row = only(launch_calls(found))
    assert row["latency_ns"] == (-1000 if known else None)
    assert row["overlap_ns"] == (1100 if known else None)
    row = only(launches(found))
    assert (row["calls"], row["unknown"], row["total_ns"]) == (1, 0 if known else 1, 100)


def graph_launch() -> Trace:
    """One launch of a graph: memset, kernel, pause, two kernels at once, pause, kernel."""
    kernels = [(30, 40), (55, 70), (60, 80), (95, 99)]
    return build.trace(
        api_calls=build.api_calls((0, 10, "cudaGraphLaunch"), correlation_id=5),
        kernels=build.kernels(*kernels, correlation_id=5, graph_node_id=1),
        copies=build.copies((25, 30, "memset"), correlation_id=5, graph_node_id=2, device_id=1),
    )


def test_a_graph_is_one_launch_with_the_queue_time_of_its_first_node() -> None:
    row = only(launch_calls(graph_launch()))
    assert (row["queue_ns"], row["latency_ns"], row["first_start_ns"]) == (15, 25, 25)
    assert (row["executions"], row["graph"], row["kernel"]) == (5, True, GRAPH)
    assert row["device_id"] == 1
    assert row["intra_graph_gap_ns"] == 15 + 15
    assert only(launches_by_kernel(graph_launch()))["name"] == GRAPH
    row = only(launches(graph_launch()))
    assert (row["name"], row["calls"], row["executions"]) == ("cudaGraphLaunch", 1, 5)


def test_of_executions_that_start_at_once_the_first_kernel_row_names_the_launch() -> None:
    node = {"correlation_id": 5, "graph_node_id": 1}
    found = build.trace(
        api_calls=build.api_calls((0, 10), correlation_id=5),
        kernels=build.joined(
            build.kernels((30, 40, "first"), correlation_id=5, device_id=2),
            build.kernels((30, 35, "second"), correlation_id=5, device_id=1),
        ),
    )
    row = only(launch_calls(found))
    assert (row["kernel"], row["device_id"], row["executions"]) == ("first", 2, 2)
    found = found.with_tables(copies=build.copies((30, 33), device_id=4, **node))
    row = only(launch_calls(found))
    assert (row["kernel"], row["device_id"], row["executions"]) == (GRAPH, 2, 3)


def test_later_nodes_have_a_gap_inside_the_graph_instead() -> None:
    kernels, copies = intra_graph_gaps(graph_launch())
    assert kernels.tolist() == [0, 15, 0, 15]
    assert is_missing(copies).tolist() == [True]


def test_gaps_of_nodes_at_the_ends_of_time() -> None:
    """Laid one behind the other, these launches do not fit 64 bits."""
    early, late = -(1 << 61), 1 << 61
    launch = np.array([2, 2, 1, 1, 1])
    start = np.array([early, late, early, early + 10, late])
    end = np.array([early + 5, late + 5, early + 20, early + 15, late + 1])
    gaps = gaps_before_nodes(launch, start, end)
    assert is_missing(gaps).tolist() == [True, False, True, False, False]
    assert gaps[[1, 3, 4]].tolist() == [late - early - 5, 0, late - early - 20]


def test_a_graph_traced_as_one_unit() -> None:
    row = {"start_ns": 30, "end_ns": 90, "process_id": 1, "device_id": 0, "correlation_id": 5}
    found = build.trace(
        api_calls=build.api_calls((0, 10, "cudaGraphLaunch"), correlation_id=5),
        graphs=build.table(schema.GRAPHS, [row]),
    )
    launch = only(launch_calls(found))
    assert (launch["queue_ns"], launch["kernel"], launch["executions"]) == (20, GRAPH, 1)
    assert launch["intra_graph_gap_ns"] is None


def test_kernels_without_a_call_are_no_launch() -> None:
    found = build.trace(
        api_calls=build.api_calls((0, 10), correlation_id=1),
        kernels=build.joined(
            build.kernels((20, 30), correlation_id=1), build.kernels((5, 9), correlation_id=2)
        ),
    )
    assert only(launch_totals(found))["calls"] == 1
    assert len(launch_totals(build.trace(kernels=build.kernels((5, 9), correlation_id=2)))) == 0


def test_a_driver_call_inside_a_runtime_call_is_the_launch() -> None:
    found = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 100), correlation_id=4),
            build.api_calls((0, 101), correlation_id=4, kind="wrapper"),
            build.api_calls((20, 80, "cuLaunchKernel"), correlation_id=4, kind="driver"),
        ),
        kernels=build.kernels((130, 140), correlation_id=4),
    )
    row = only(launch_calls(found))
    assert (row["row"], row["name"], row["queue_ns"]) == (2, "cuLaunchKernel", 50)
    assert [(r["name"], r["without_execution"]) for r in launches(found).records()] == [
        ("cuLaunchKernel", 0)
    ]


def test_two_processes_with_the_same_correlation_ids() -> None:
    """The join on the id alone would find four launches, two of them with the wrong call."""
    found = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (100, 110), correlation_id=7),
            build.api_calls((1000, 1010), correlation_id=7, process_id=2),
        ).take(np.array([1, 2])),
        kernels=build.joined(
            build.kernels((1030, 1040), correlation_id=7, process_id=2),
            build.kernels((150, 160), correlation_id=7),
        ),
    )
    rows = launch_calls(found).records()
    assert [(row["process_id"], row["queue_ns"]) for row in rows] == [(1, 40), (2, 20)]


def test_launches_of_which_nothing_ran() -> None:
    """Captured into a graph, failed, or not recorded; a host function is no launch of a kernel."""
    found = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (20, 30), correlation_id=1),
            build.api_calls((40, 50, "cudaLaunchHostFunc"), correlation_id=2),
        ),
    )
    row = only(launches(found))
    assert (row["name"], row["calls"], row["without_execution"]) == ("cudaLaunchKernel", 0, 1)
    assert row["total_ns"] == 0


def test_a_launch_counts_where_the_call_starts_and_its_time_is_clipped() -> None:
    found = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 20), correlation_id=1), build.api_calls((30, 60), correlation_id=2)
        ),
        kernels=build.joined(
            build.kernels((35, 40), correlation_id=1), build.kernels((90, 95), correlation_id=2)
        ),
    )
    row = only(launches(found, Window(10, 50, "test")))
    assert (row["calls"], row["total_ns"]) == (1, 10 + 20)
    assert (row["overhead_ns.max"], row["queue_ns.max"], row["latency_ns.max"]) == (30, 30, 60)


def slow_gaps(launch: Launch) -> int | None:
    nodes = [(e["start_ns"], e["end_ns"]) for *_, e in launch.started if e.get("graph_node_id")]
    if not nodes:
        return None
    gap, reached = 0, min(nodes)[1]
    for start, end in sorted(nodes):
        gap += max(start - reached, 0)
        reached = max(reached, end)
    return gap


def slow_row(launch: Launch) -> dict[str, Any]:
    call, begun = launch.call, launch.first["start_ns"]
    known = call["start_ns"] - begun <= 1000
    returned = begun >= call["end_ns"]
    return {
        **{name: call[name] for name in ("process_id", "thread_id", "correlation_id", "name")},
        **{name: call[name] for name in ("start_ns", "end_ns")},
        "row": launch.row,
        "kernel": GRAPH if launch.graph else launch.first["name"],
        "graph": launch.graph,
        "device_id": launch.first["device_id"],
        "first_start_ns": begun,
        "executions": len(launch.started),
        "overhead_ns": call["end_ns"] - call["start_ns"],
        "queue_ns": begun - call["end_ns"] if known and returned else None,
        "latency_ns": begun - call["start_ns"] if known else None,
        "overlap_ns": call["end_ns"] - begun if known and not returned else None,
        "intra_graph_gap_ns": slow_gaps(launch),
    }


@given(TRACES)
def test_each_launch_agrees_with_plain_loops(found: Trace) -> None:
    expected = [slow_row(launch) for launch in launches_of(found)]
    assert launch_calls(found).records() == [
        {name: row[name] for name in launch_calls(found).schema.names} for row in expected
    ]


@given(TRACES, WINDOWS)
def test_the_figures_agree_with_plain_loops(found: Trace, bounds: tuple[int, int] | None) -> None:
    window = whole(found)
    if bounds:
        window = Window(bounds[0], bounds[0] + bounds[1], "test")
    low, high = window.start_ns, window.end_ns
    rows = [slow_row(launch) for launch in launches_of(found)]
    for table, key in (
        (launches(found, window), "name"),
        (launches_by_kernel(found, window), "kernel"),
    ):
        for row in table.records():
            mine = [each for each in rows if each[key] == row["name"]]
            inside = [each for each in mine if counted(each, low, high)]
            assert row["calls"] == len(inside)
            assert row["executions"] == sum(each["executions"] for each in inside)
            assert row["total_ns"] == sum(
                max(min(each["end_ns"], high) - max(each["start_ns"], low), 0) for each in mine
            )
            for name in ("overhead_ns", "queue_ns", "latency_ns"):
                check(row, name, [each[name] for each in inside if each[name] is not None])
            assert row["queued"] == sum(each["queue_ns"] is not None for each in inside)
            overlaps = [e["overlap_ns"] for e in inside if e["overlap_ns"] is not None]
            assert (row["overlapping"], row["overlap_ns"]) == (len(overlaps), sum(overlaps))
            assert row["unknown"] == sum(each["latency_ns"] is None for each in inside)
            gaps = [e["intra_graph_gap_ns"] for e in inside if e["intra_graph_gap_ns"] is not None]
            assert row["intra_graph_gap_ns"] == (sum(gaps) if gaps else None)
        shown = {row["name"]: row["calls"] for row in table.records()}
        names = {each[key] for each in rows if counted(each, low, high)}
        assert names == {name for name, calls in shown.items() if calls}


@given(TRACES, WINDOWS)
def test_what_is_found_together_is_what_is_found_apart(
    found: Trace, bounds: tuple[int, int] | None
) -> None:
    window = Window(bounds[0], bounds[0] + bounds[1], "test") if bounds else whole(found)
    together = launch_figures(found, window, find_launch_calls(found))
    for table in (launches, launches_by_kernel, launch_totals):
        apart = table(found, window, calls=launch_calls(found))
        assert together[apart.schema.name].records() == apart.records()


def check(row: dict[str, Any], name: str, values: list[int]) -> None:
    if not values:
        assert row[f"{name}.min"] is None
        assert row[f"{name}.mean"] is None
        return
    assert (row[f"{name}.min"], row[f"{name}.max"]) == (min(values), max(values))
    assert row[f"{name}.mean"] == pytest.approx(statistics.mean(values))
    assert row[f"{name}.median"] == pytest.approx(statistics.median(values))
    assert row[f"{name}.p95"] == pytest.approx(float(np.quantile(values, 0.95)))
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    assert row[f"{name}.std"] == pytest.approx(deviation)


def test_the_arguments_at_hand_change_nothing() -> None:
    found = graph_launch()
    times = launch_times(found)
    assert launch_calls(found, launches=times).records() == launch_calls(found).records()
    assert launches(found, calls=launch_calls(found)).records() == launches(found).records()


def test_a_million_launches_take_a_second_at_most() -> None:
    count = 1_000_000
    start = np.arange(count, dtype=np.int64) * 5000
    ids = np.arange(count, dtype=np.int32)
    one = np.ones(count, dtype=np.int32)
    base = {"process_id": one, "correlation_id": ids}
    calls = Table.make(
        schema.API_CALLS,
        {
            **base, "start_ns": start, "end_ns": start + 3000, "thread_id": one,
            "name": Categorical.constant("cudaLaunchKernel", count),
            "kind": Categorical.constant("runtime", count),
        },
    )  # fmt: skip
    kernels = Table.make(
        schema.KERNELS,
        {
            **base, "start_ns": start + 7000, "end_ns": start + 9000, "device_id": one,
            "name": Categorical.constant("gemm", count),
        },
    )  # fmt: skip
    found = build.trace(api_calls=calls, kernels=kernels)
    begun = time.process_time()
    row = only(launches(found, calls=launch_calls(found)))
    assert time.process_time() - begun < 2  # about 0.15 s on an idle machine
    assert (row["calls"], row["queue_ns.median"], row["overhead_ns.p99"]) == (count, 4000, 3000)
