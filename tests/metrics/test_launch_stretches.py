"""Waiting for launches, and the stretches that it makes: known answers, and plain loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kernelscope import schema
from kernelscope.metrics.device_time import DeviceTime, measure
from kernelscope.metrics.idle_gaps import idle_gaps
from kernelscope.metrics.launch_stretches import launch_stretches, stretches
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.launch_waits import Waits, launch_limited, launch_waits
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Trace
from tests import build
from tests.metrics.launch_scenes import TRACES, Row, call_of, launches_of
from tests.metrics.scenes import kernels as launched
from tests.metrics.scenes import launches as made


def waited(found: Trace) -> list[int]:
    (waits,) = launch_waits(found)
    return [int(ns) for ns in waits.wait]


@pytest.mark.parametrize(
    ("call", "wait"),
    [
        ((40_000, 45_000), 40_000),  # begun after the gap: the host's
        ((5_000, 45_000), 40_000),  # in flight when the gap began
        ((5_000, 10_000), 40_000),  # returned just before
        ((0, 1), 40_000),  # 9,999 ns before
        ((0, 0), 0),  # 10 µs before: it was queued
        ((51_000, 52_000), 40_000),  # 1 µs after: the clocks, but little
        ((51_001, 52_000), 0),  # the clocks
    ],
)
def test_which_gap_waits_for_a_launch(call: tuple[int, int], wait: int) -> None:
    found = build.trace(
        api_calls=made((0, 0), call), kernels=launched((0, 10_000, 1), (50_000, 60_000, 2))
    )
    assert waited(found) == [0, wait]
    assert launch_limited(found, launch_waits(found)).tolist() == [False, wait > 10_000]


def test_no_gap_waits_for_a_launch_that_was_not_recorded() -> None:
    found = build.trace(api_calls=made((0, 1)), kernels=launched((0, 10, 1), (500, 600, 9)))
    assert waited(found) == [0, 0]


def test_no_gap_inside_a_graph_waits_for_a_launch() -> None:
    found = build.trace(
        api_calls=made((100, 120), name="cudaGraphLaunch"),
        kernels=launched((130, 140, 1), (160, 170, 1), graph_node_id=1),
    )
    assert waited(found) == [0, 0]


def test_the_profiler_is_not_waited_for() -> None:
    found = build.trace(
        api_calls=made((0, 1), (80, 90)),
        kernels=launched((0, 10, 1), (100, 110, 2)),
        overheads=build.table(
            schema.OVERHEADS,
            [
                {"start_ns": 5, "end_ns": 25, "process_id": 1, "name": "flush"},
                {"start_ns": 40, "end_ns": 50, "process_id": 2, "name": "flush"},
            ],
        ),
    )
    assert waited(found) == [0, 75]


QUEUED, LATE = {"correlation_id": 1}, {"correlation_id": 2}


@pytest.mark.parametrize(
    ("kernel", "copy", "wait"),
    [
        ({**LATE, "stream_id": 9}, {**QUEUED, "stream_id": 8}, 0),
        ({**LATE, "stream_id": 8}, {**QUEUED, "stream_id": 9}, 400_000),
        ({**LATE, "stream_id": 8}, {**QUEUED, "stream_id": 8}, 400_000),
        # A copy between host memories is no activity of the device.
        ({**LATE, "stream_id": 9}, {**QUEUED, "stream_id": 8, "kind": "HtoH"}, 400_000),
    ],
)
def test_of_activities_that_start_at_once_the_lower_stream_decides(
    kernel: Row, copy: Row, wait: int
) -> None:
    found = build.trace(
        api_calls=made((0, 1), (400_000, 400_010)),
        kernels=build.joined(
            build.kernels((90_000, 100_000)), build.kernels((500_000, 500_100), **kernel)
        ),
        copies=build.copies((500_000, 500_200), **copy),
    )
    assert waited(found) == [0, wait]


def loop(count: int, period: int, busy: int, begin: int = 0) -> list[tuple[int, int, int, int]]:
    """Launches of 3 µs whose execution starts as they return."""
    starts = [begin + i * period for i in range(count)]
    return [(t, t + 3000, t + 3000, t + 3000 + busy) for t in starts]


def looped(*rows: tuple[int, int, int, int]) -> Trace:
    return build.trace(
        api_calls=made(*((call, end) for call, end, _, _ in rows)),
        kernels=launched(*((start, end, i + 1) for i, (_, _, start, end) in enumerate(rows))),
    )


def test_small_kernels_one_by_one_are_a_stretch() -> None:
    (row,) = launch_stretches(looped(*loop(31, 10_000, 2_000))).records()
    assert (row["device"], row["start_ns"], row["end_ns"]) == (0, 5_000, 305_000)
    assert (row["waits"], row["executions"], row["busy_ns"]) == (30, 30, 60_000)
    assert (row["idle_ns"], row["waiting_ns"], row["duration_ns"]) == (240_000, 240_000, 300_000)


def test_kernels_longer_than_the_wait_are_none() -> None:
    assert len(launch_stretches(looped(*loop(31, 10_000, 5_000)))) == 0


@pytest.mark.parametrize(
    ("count", "period", "rows"), [(11, 20_000, 1), (10, 20_000, 0), (21, 4_900, 0)]
)
def test_what_is_small_is_no_stretch(count: int, period: int, rows: int) -> None:
    """At least 10 waits, and 100 µs."""
    assert len(launch_stretches(looped(*loop(count, period, 500)))) == rows


def test_a_long_absence_of_the_host_is_no_part_of_a_stretch() -> None:
    before, after = loop(31, 10_000, 2_000), loop(31, 10_000, 2_000, 1_400_000)
    rows = launch_stretches(looped(*before, *after)).records()
    assert [(row["start_ns"], row["end_ns"]) for row in rows] == [
        (5_000, 305_000), (1_405_000, 1_705_000),
    ]  # fmt: skip


@pytest.mark.parametrize(("busy", "rows"), [(80_000, 1), (99_000, 2)])
def test_a_short_pause_is_bridged(busy: int, rows: int) -> None:
    """One kernel of 80 µs, its 8 µs wait included, is less than the runs waited beyond work."""
    before, after = loop(31, 10_000, 2_000), loop(31, 10_000, 2_000, 500_000)
    long = (310_000, 313_000, 313_000, 313_000 + busy)
    shift = 500_000 - (313_000 + busy - 1_000)
    after = [(a - shift, b - shift, c - shift, d - shift) for a, b, c, d in after]
    found = launch_stretches(looped(*before, long, *after)).records()
    assert len(found) == rows
    assert all(row["waiting_ns"] > row["busy_ns"] for row in found)


def test_a_stretch_is_clipped_to_the_window() -> None:
    found = looped(*loop(31, 10_000, 2_000))
    (row,) = launch_stretches(found, Window(100_000, 110_000, "test")).records()
    assert (row["start_ns"], row["end_ns"], row["executions"]) == (100_000, 110_000, 1)
    assert (row["busy_ns"], row["waiting_ns"]) == (2_000, 8_000)
    assert len(launch_stretches(found, Window(306_000, 400_000, "test"))) == 0
    cut = measure(found, Window(100_000, 110_000, "test"))
    assert launch_stretches(found, measured=cut).records() == launch_stretches(found).records()


def slow_waits(found: Trace, lanes: set[tuple[int | None, int]]) -> list[tuple[int, int, int]]:
    """Return start, end and wait of each piece of one device's activity."""
    calls = found.api_calls.records()
    first = {one.row: one.first["start_ns"] for one in launches_of(found)}
    work: list[tuple[int, int, int, int, Row]] = []
    for number, table in enumerate((found.kernels, found.copies, found.graphs)):
        for row, event in enumerate(table.records()):
            lane = (event["process_id"], event["device_id"])
            if lane in lanes and event.get("kind") != "HtoH":
                work.append((event["start_ns"], event["stream_id"], number, row, event))
    work.sort(key=lambda each: each[:4])
    pieces: list[tuple[int, int, int]] = []
    for start, _, _, _, event in work:
        if pieces and start <= pieces[-1][1]:
            last = pieces[-1]
            pieces[-1] = (last[0], max(last[1], event["end_ns"]), last[2])
            continue
        wait = slow_wait(found, calls, first, event, pieces[-1][1]) if pieces else 0
        pieces.append((start, event["end_ns"], wait))
    return pieces


def slow_wait(found: Trace, calls: list[Row], first: dict[int, int], event: Row, since: int) -> int:
    row = call_of(event, calls)
    begin = event["start_ns"]
    if row is None or first.get(row, begin) < begin or calls[row]["start_ns"] - begin > 1000:
        return 0
    if calls[row]["end_ns"] <= since - 10_000:
        return 0
    costs = [o for o in found.overheads.records() if o["process_id"] == event["process_id"]]
    # Times are multiples of 100.
    return sum(
        100
        for t in range(since, begin, 100)
        if not any(cost["start_ns"] <= t < cost["end_ns"] for cost in costs)
    )


@given(TRACES)
def test_waits_agree_with_plain_loops(found: Trace) -> None:
    time = measure(found)
    pauses = idle_gaps(found, launch_times(found), whole(found), time.identity)
    for at_hand in (None, pauses):
        check_waits(found, time, launch_waits(found, measured=time, pauses=at_hand))


def check_waits(found: Trace, time: DeviceTime, got: list[Waits]) -> None:
    assert len(got) == len(time.devices)
    for device, waits in enumerate(got):
        pairs = zip(time.identity.lanes, time.identity.index, strict=True)
        expected = slow_waits(found, {lane for lane, index in pairs if index == device})
        pieces = [*zip(*(each.tolist() for each in waits.pieces), waits.wait.tolist(), strict=True)]
        assert pieces == expected


def slow_stretches(pieces: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Runs of limited pieces, joined where the pause is small beside either's surplus."""
    runs: list[dict[str, Any]] = []
    for i, (start, end, wait) in enumerate(pieces):
        gap = start - pieces[i - 1][1] if i else 0
        if wait <= end - start or gap > 1_000_000:
            continue
        if runs and runs[-1]["last"] == i - 1:
            runs[-1]["last"] = i
        else:
            runs.append({"first": i, "last": i, "surplus": 0, "count": 0})
        runs[-1]["surplus"] += wait - (end - start)
        runs[-1]["count"] += 1
    groups = [[run] for run in runs[:1]]
    for before, run in pairwise(runs):
        pause = pieces[run["first"] - 1][1] - pieces[before["last"]][1]
        small = pause <= 100_000 and pause < min(before["surplus"], run["surplus"])
        groups[-1].append(run) if small else groups.append([run])
    return [
        (group[0]["first"], group[-1]["last"])
        for group in groups
        if sum(run["count"] for run in group) >= 10
        and pieces[group[-1]["last"]][1] - pieces[group[0]["first"] - 1][1] >= 100_000
    ]


def random_waits(seed: int) -> Waits:
    """Pieces and gaps of 1 to 60 µs, some gaps queued, few longer than any stretch allows."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 200))
    length = random.integers(0, 60_000, count) // random.choice([1, 4, 20], count)
    gap = random.integers(1, 60_000, count) * random.choice([1, 1, 1, 1, 1, 1, 30], count)
    wait = gap * (random.random(count) < random.choice([0.3, 0.8, 1.0]))
    wait[0] = 0
    end = np.cumsum(gap + length)
    pieces = (end - length, end)
    none = np.empty(0, dtype=np.int64)
    return Waits(pieces, wait, (none, none), lambda: none, np.full(count, -1, dtype=np.int32))


@pytest.mark.parametrize("seed", range(300))
def test_stretches_agree_with_plain_loops(seed: int) -> None:
    waits = random_waits(seed)
    pieces = [*zip(*(each.tolist() for each in waits.pieces), waits.wait.tolist(), strict=True)]
    first, last = stretches(waits)
    got = [*zip(first.tolist(), last.tolist(), strict=True)]
    assert got == slow_stretches(pieces)
    for low, high in got:
        assert sum(p[2] for p in pieces[low : high + 1]) > sum(
            end - start for start, end, _ in pieces[low : high + 1]
        )
