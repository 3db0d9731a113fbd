"""How far the host runs ahead: known answers, and stepping from one change to the next."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given

from kernelscope.metrics.launch_results import DEPTHS
from kernelscope.metrics.queue_depth import queue_depth, queue_depth_steps
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Trace
from tests import build
from tests.metrics.launch_scenes import TRACES, WINDOWS, counted, launches_of
from tests.metrics.scenes import kernels as launched
from tests.metrics.scenes import launches as made


def test_three_launches_ahead_of_the_device() -> None:
    found = build.trace(
        api_calls=made((0, 5), (10, 15), (20, 25)),
        kernels=launched((30, 50, 1), (50, 70, 2), (70, 90, 3)),
    )
    (row,) = queue_depth(found).records()
    assert (row["process_id"], row["device_id"], row["launches"], row["max"]) == (1, 0, 3, 3)
    assert row["time_ns.depth_0"] == 20
    assert row["time_ns.depth_1"] == 10 + 20
    assert row["time_ns.depth_2_to_9"] == 10 + 10 + 20
    assert row["mean"] == (30 + 40 + 50) / 90
    steps = [(r["start_ns"], r["end_ns"], r["depth"]) for r in queue_depth_steps(found).records()]
    assert steps == [
        (0, 10, 1), (10, 20, 2), (20, 30, 3), (30, 50, 2), (50, 70, 1), (70, 90, 0),
    ]  # fmt: skip


def test_a_window_holds_what_was_in_the_queue_when_it_began() -> None:
    found = build.trace(
        api_calls=made((0, 5), (10, 15)), kernels=launched((30, 50, 1), (50, 70, 2))
    )
    (row,) = queue_depth(found, Window(20, 40, "test")).records()
    assert (row["launches"], row["max"], row["mean"]) == (0, 2, (2 * 10 + 10) / 20)
    (row,) = queue_depth(found, Window(20, 20, "test")).records()
    assert (row["mean"], row["max"], row["time_ns.depth_0"]) == (None, 0, 0)


def test_a_graph_of_three_nodes_is_one_launch() -> None:
    found = build.trace(
        api_calls=made((0, 5), name="cudaGraphLaunch"),
        kernels=launched((30, 50, 1), (60, 70, 1), (80, 90, 1), graph_node_id=4),
    )
    (row,) = queue_depth(found).records()
    assert (row["max"], row["time_ns.depth_1"], row["time_ns.depth_0"]) == (1, 30, 60)


def test_a_launch_on_two_devices_is_in_the_queue_of_both() -> None:
    """As cudaLaunchCooperativeKernelMultiDevice and graphs do; and whichever is chosen."""
    found = build.trace(
        api_calls=made((0, 5), name="cudaLaunchCooperativeKernelMultiDevice"),
        kernels=build.joined(
            launched((30, 50, 1), (60, 70, 1)), launched((40, 50, 1), device_id=1)
        ),
    )
    rows = queue_depth(found).records()
    assert [(r["device_id"], r["launches"], r["time_ns.depth_1"]) for r in rows] == [
        (0, 1, 30), (1, 1, 40),
    ]  # fmt: skip
    chosen = select(found, devices=[1])
    assert queue_depth(chosen, whole(found)).records() == rows[1:]


def test_a_thousand_launches_ahead() -> None:
    count = 1500
    found = build.trace(
        api_calls=made(*((i, i + 1) for i in range(count))),
        kernels=launched(*((10_000 + i, 10_001 + i, i + 1) for i in range(count))),
    )
    (row,) = queue_depth(found).records()
    assert row["max"] == count
    assert row["time_ns.depth_1000_or_more"] == (10_000 + count - 1000) - 999
    assert sum(row[f"time_ns.depth_{name}"] for name, _ in DEPTHS) == 10_000 + count


def test_nothing_launched() -> None:
    assert len(queue_depth(build.trace(api_calls=made((0, 5))))) == 0
    assert len(queue_depth_steps(build.trace(api_calls=made((0, 5))))) == 0


@given(TRACES, WINDOWS)
def test_the_depth_agrees_with_counting_at_every_change(
    found: Trace, bounds: tuple[int, int] | None
) -> None:
    window = whole(found)
    if bounds:
        window = Window(bounds[0], bounds[0] + bounds[1], "test")
    low, high = window.start_ns, window.end_ns
    table, steps = queue_depth(found, window), queue_depth_steps(found, window).records()
    launches = launches_of(found)
    lanes = {(one.call["process_id"], device) for one in launches for device in one.by_device}
    rows = {(row["process_id"], row["device_id"]): row for row in table.records()}
    assert rows.keys() == lanes
    for lane, row in rows.items():
        mine = [
            (one.call, one.by_device[lane[1]])
            for one in launches
            if one.call["process_id"] == lane[0] and lane[1] in one.by_device
        ]
        spans = [(call["start_ns"], first) for call, first in mine]
        inside = [(call, first) for call, first in mine if counted(call, low, high)]
        assert row["launches"] == len(inside)
        early = [call["start_ns"] - first > 1000 for call, first in inside]
        assert row["unknown"] == sum(early)
        changes = sorted({low, high, *(t for span in spans for t in span if low < t < high)})
        depths = [
            (start, end, sum(a <= start < b for a, b in spans)) for start, end in pairwise(changes)
        ]
        assert row["max"] == max((depth for _, _, depth in depths), default=0)
        if high > low:
            area = sum((end - start) * depth for start, end, depth in depths)
            assert np.isclose(row["mean"], area / (high - low))
        bounds_of = [*DEPTHS[1:], ("", 1 << 40)]
        for (name, least), (_, most) in zip(DEPTHS, bounds_of, strict=True):
            spent = sum(end - start for start, end, depth in depths if least <= depth < most)
            assert row[f"time_ns.depth_{name}"] == spent
        drawn = [s for s in steps if (s["process_id"], s["device_id"]) == lane]
        assert [s["depth"] for s in drawn for _ in range(s["start_ns"], s["end_ns"], 100)] == [
            depth for start, end, depth in depths for _ in range(start, end, 100)
        ]
