"""Copies that block and copies that hide: known answers, and plain loops."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from kernelscope.metrics.device_time import devices, measure
from kernelscope.metrics.transfers import copy_calls, copy_exposure, migrations, transfers
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics.launch_scenes import TRACES, WINDOWS, Row, call_of, counted

H2D: dict[str, Any] = {"src_memory": "pageable", "dst_memory": "device", "bytes": 1000}


def only(table: Table) -> dict[str, Any]:
    (row,) = table.records()
    return row


def copied(call: tuple[int, int], copy: tuple[int, int], **common: Any) -> Trace:
    return build.trace(
        api_calls=build.api_calls((*call, "cudaMemcpyAsync"), correlation_id=1),
        copies=build.copies(copy, **({**H2D, "correlation_id": 1} | common)),
    )


@pytest.mark.parametrize(
    ("call", "copy", "blocking", "blocked"),
    [
        ((0, 9_000), (20_000, 30_000), "no", 0),
        ((0, 29_999), (20_000, 30_000), "no", 0),
        ((0, 30_000), (20_000, 30_000), "yes", 0),  # returned when the copy had ended
        ((0, 50_000), (60_000, 70_000), "no", 0),
        ((0, 50_001), (60_000, 70_000), "yes", 1),  # waited, whatever for
        ((0, 80_000), (60_000, 70_000), "yes", 30_000),
    ],
)
def test_blocking_is_told_from_the_times(
    call: tuple[int, int], copy: tuple[int, int], blocking: str, blocked: int
) -> None:
    row = only(transfers(copied(call, copy)))
    assert (row["call"], row["blocking"], row["blocked_ns"]) == (
        "cudaMemcpyAsync", blocking, blocked,
    )  # fmt: skip
    assert (row["src_memory"], row["dst_memory"], row["link_bytes_per_s"]) == (
        "pageable", "device", None,
    )  # fmt: skip


def test_without_a_call_nothing_is_known_of_the_host() -> None:
    row = only(transfers(copied((0, 90_000), (10, 20), correlation_id=2)))
    assert (row["call"], row["blocking"], row["blocked_ns"]) == (None, None, None)


def test_two_processes_with_the_same_correlation_ids() -> None:
    """On the id alone each copy has two calls, one of them of a process that did not copy."""
    found = build.trace(
        api_calls=build.joined(
            build.api_calls((0, 90_000, "cudaMemcpy"), correlation_id=1),
            build.api_calls((0, 9_000, "cudaMemcpyAsync"), correlation_id=1, process_id=2),
        ),
        copies=build.joined(
            build.copies((60_000, 70_000), correlation_id=1, **H2D),
            build.copies((50_000, 60_000), correlation_id=1, process_id=2, **H2D),
        ),
    )
    rows = {row["process_id"]: (row["call"], row["blocking"]) for row in transfers(found).records()}
    assert rows == {1: ("cudaMemcpy", "yes"), 2: ("cudaMemcpyAsync", "no")}


def test_a_node_of_a_graph_blocks_nobody() -> None:
    row = only(transfers(copied((0, 90_000), (10, 20), graph_node_id=2)))
    assert (row["blocking"], row["blocked_ns"]) == ("no", 0)


def test_a_call_of_two_copies_blocks_once() -> None:
    found = build.trace(
        api_calls=build.api_calls((0, 90_000, "cudaMemcpy"), correlation_id=1),
        copies=build.joined(
            build.copies((70_000, 80_000), correlation_id=1, **H2D),
            build.copies((10_000, 20_000), correlation_id=1, **H2D),
        ),
    )
    row = only(transfers(found))
    assert (row["operations"], row["blocking"], row["blocked_ns"]) == (2, "yes", 40_000)
    row = only(transfers(found, Window(0, 60_000, "test")))
    assert (row["operations"], row["blocked_ns"], row["busy_ns"]) == (1, 10_000, 10_000)


def test_of_two_copies_of_a_call_the_first_blocks() -> None:
    found = build.trace(
        api_calls=build.api_calls((0, 90_000, "cudaMemcpy"), correlation_id=1),
        copies=build.joined(
            build.copies((70_000, 80_000, "DtoH"), correlation_id=1, **H2D),
            build.copies((10_000, 20_000, "HtoD"), correlation_id=1, **H2D),
            build.copies((10_000, 30_000, "DtoD"), correlation_id=1, **H2D),
        ),
    )
    blocked = {row["kind"]: row["blocked_ns"] for row in transfers(found).records()}
    assert blocked == {"HtoD": 40_000, "DtoH": 0, "DtoD": 0}


def test_hidden_and_exposed() -> None:
    """A kernel hides it wherever it ran on the same GPU, a graph too; twice copied counts once."""
    found = build.trace(
        kernels=build.joined(
            build.kernels((0, 10)), build.kernels((0, 100), device_id=1), build.kernels((25, 30))
        ),
        copies=build.joined(
            build.copies((5, 20), **H2D), build.copies((15, 40), **H2D), build.copies((90, 95))
        ),
    )
    rows = transfers(found).records()
    assert [(r["total_ns"], r["busy_ns"], r["hidden_ns"], r["exposed_ns"]) for r in rows] == [
        (40, 35, 10, 25),
        (5, 5, 0, 5),
    ]
    assert [row["exposed_ns"] for row in copy_exposure(measure(found)).records()] == [30, 0]


def test_rates() -> None:
    found = build.trace(
        copies=build.joined(
            build.copies((0, 10), **H2D),
            build.copies((20, 120), **H2D),
            build.copies((200, 240), **H2D),
            build.copies((300, 300), **H2D),
        )
    )
    row = only(transfers(found))
    assert row["bytes_per_s"] == pytest.approx(4000 / 150 * 1e9)
    assert row["median_bytes_per_s"] == pytest.approx(1000 / 40 * 1e9)
    row = only(transfers(build.trace(copies=build.copies((0, 10)))))
    assert (row["bytes"], row["bytes_per_s"], row["median_bytes_per_s"]) == (None, None, None)


def test_copies_between_host_memories_occupy_no_device() -> None:
    row = only(transfers(build.trace(copies=build.copies((0, 10, "HtoH")))))
    assert (row["operations"], row["total_ns"]) == (1, 10)
    assert (row["busy_ns"], row["hidden_ns"], row["exposed_ns"]) == (None, None, None)


def test_a_peer_copy_is_a_row_of_its_issuer_and_marks_the_other() -> None:
    found = build.trace(
        kernels=build.joined(build.kernels((0, 10)), build.kernels((10, 20), device_id=1)),
        copies=build.copies((5, 20, "PtoP"), src_device_id=0, dst_device_id=1),
    )
    row = only(transfers(found))
    assert (row["device_id"], row["src_device_id"], row["dst_device_id"]) == (0, 0, 1)
    assert (row["busy_ns"], row["hidden_ns"], row["exposed_ns"]) == (15, 5, 10)
    assert [(r["copy_ns"], r["hidden_ns"]) for r in copy_exposure(measure(found)).records()] == [
        (15, 5),
        (15, 10),
    ]


def test_migrations_by_cause() -> None:
    causes = {"migration_cause": "page fault", "correlation_id": 0, "bytes": 100}
    found = build.trace(
        api_calls=build.api_calls((0, 90_000), correlation_id=0),
        kernels=build.kernels((0, 10)),
        copies=build.joined(
            build.copies((0, 20, "unified HtoD"), (50, 60, "unified DtoH"), **causes),
            build.copies((70, 90, "unified HtoD"), **{**causes, "migration_cause": "prefetch"}),
            build.copies((100, 110), **H2D),
        ),
    )
    rows = migrations(found).records()
    assert [(r["kind"], r["cause"], r["total_ns"], r["hidden_ns"]) for r in rows] == [
        ("unified HtoD", "page fault", 20, 10),
        ("unified HtoD", "prefetch", 20, 0),
        ("unified DtoH", "page fault", 10, 0),
    ]
    # Nobody called for them, though a call has their id of 0.
    assert copy_calls(found).row.tolist() == [-1, -1, -1, -1]


KEYS = ("kind", "src_memory", "dst_memory", "process_id", "device_id")


def slow_copies(found: Trace) -> list[Row]:
    """Return each copy with its call, whether it blocked, and when."""
    calls = found.api_calls.records()
    rows: list[Row] = []
    for number, copy in enumerate(found.copies.records()):
        at = None if copy["kind"].startswith("unified") else call_of(copy, calls)
        call = None if at is None else calls[at]
        row = {**copy, "number": number, "at": at, "call": None, "blocking": None, "wait": (0, 0)}
        if call is not None:
            graph = "GraphLaunch" in call["name"] or copy["graph_node_id"] is not None
            long = call["end_ns"] - call["start_ns"] > 50_000
            kept = not graph and (long or call["end_ns"] >= copy["end_ns"])
            row |= {"call": call["name"], "blocking": "yes" if kept else "no"}
            if long and not graph:
                row["wait"] = (call["start_ns"] + 50_000, call["end_ns"])
        rows.append(row)
    for row in rows:
        twins = [each for each in rows if row["at"] is not None and each["at"] == row["at"]]
        if twins and min(twins, key=lambda each: (each["start_ns"], each["number"])) is not row:
            row["wait"] = (0, 0)
    return rows


def ticks(rows: list[Row], low: int, high: int) -> set[int]:
    """Return the hundreds of ns that events cover in a window: all times are multiples."""
    return {
        t for row in rows for t in range(max(row["start_ns"], low), min(row["end_ns"], high), 100)
    }


def stretched(found: Trace) -> Trace:
    """Make the host's calls ten times as long, so that some last longer than 50 µs."""
    calls = found.api_calls
    longer = calls["start_ns"] + 30 * (calls["end_ns"] - calls["start_ns"])
    return found.with_tables(
        api_calls=Table.make(calls.schema, {**calls.columns, "end_ns": longer})
    )


@given(TRACES, WINDOWS)
def test_transfers_agree_with_plain_loops(found: Trace, bounds: tuple[int, int] | None) -> None:
    found = stretched(found)
    window = whole(found)
    if bounds:
        window = Window(bounds[0], bounds[0] + bounds[1], "test")
    copies = slow_copies(found)
    compare(found, window, copies, transfers(found, window), keyed(*KEYS, "call", "blocking"))
    moved = [row | {"cause": row["migration_cause"]} for row in copies if "unified" in row["kind"]]
    by_cause = keyed("kind", "cause", "process_id", "device_id")
    compare(found, window, moved, migrations(found, window), by_cause)


def keyed(*names: str) -> Callable[[Row], list[Any]]:
    return lambda row: [row[name] for name in names]


def compare(
    found: Trace, window: Window, copies: list[Row], table: Table, key: Callable[[Row], list[Any]]
) -> None:
    low, high = window.start_ns, window.end_ns
    time = measure(found, window)
    kernels = [row for t in (found.kernels, found.graphs) for row in t.records()]
    seen = []
    for row in table.records():
        seen.append(key(row))
        mine = [copy for copy in copies if key(copy) == seen[-1]]
        inside = [copy for copy in mine if counted(copy, low, high)]
        assert row["operations"] == len(inside)
        sizes = [copy["bytes"] for copy in inside]
        assert row["bytes"] == (None if None in sizes else sum(sizes))
        clipped = [max(min(c["end_ns"], high) - max(c["start_ns"], low), 0) for c in mine]
        assert row["total_ns"] == sum(clipped)
        rates = [
            copy["bytes"] / (copy["end_ns"] - copy["start_ns"]) * 1e9
            for copy in inside
            if copy["bytes"] is not None and copy["end_ns"] > copy["start_ns"]
        ]
        expected = pytest.approx(statistics.median(rates)) if rates else None
        assert row["median_bytes_per_s"] == expected
        if "blocked_ns" in row:
            waits = [(max(a, low), min(b, high)) for a, b in (copy["wait"] for copy in mine)]
            blocked = sum(max(b - a, 0) for a, b in waits)
            assert row["blocked_ns"] == (None if row["call"] is None else blocked)
        if row["kind"] == "HtoH":
            assert row["busy_ns"] is row["hidden_ns"] is row["exposed_ns"] is None
            continue
        busy = ticks(mine, low, high)
        device = time.identity.device_of((row["process_id"], row["device_id"]))
        beside = ticks(
            [
                kernel
                for kernel in kernels
                if time.identity.device_of((kernel["process_id"], kernel["device_id"])) == device
            ],
            low,
            high,
        )
        assert (row["busy_ns"], row["hidden_ns"], row["exposed_ns"]) == (
            100 * len(busy),
            100 * len(busy & beside),
            100 * len(busy - beside),
        )
    assert len({tuple(each) for each in seen}) == len(seen)
    counts = [each for copy in copies if counted(copy, low, high) for each in [key(copy)]]
    assert all(each in seen for each in counts)


@given(TRACES, WINDOWS)
def test_exposure_is_that_of_the_partition(found: Trace, bounds: tuple[int, int] | None) -> None:
    window = Window(bounds[0], sum(bounds), "test") if bounds else whole(found)
    time = measure(found, window)
    rows = devices(found, measured=time)
    table = copy_exposure(time)
    assert table["exposed_ns"].tolist() == rows["partition.copy_only_ns"].tolist()
    assert (table["copy_ns"] - table["hidden_ns"]).tolist() == table["exposed_ns"].tolist()
