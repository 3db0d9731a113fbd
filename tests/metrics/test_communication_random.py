"""Communication in thousands of small random traces agrees with plain loops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.communication import (
    communication,
    communication_by_device,
    measure_communication,
)
from kernelscope.metrics.window import Window
from kernelscope.trace import Trace
from tests import build
from tests.metrics.slow_communication import Row, Slow

NAMES: dict[str, str | None] = {
    "gemm": None,
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)": "all_reduce",
    "ncclDevKernel_AllGather_RING_LL(x)": "all_gather",
    "ncclDevKernel_SendRecv(x)": "send_recv",
    "ncclDevKernel_Generic(x)": "unknown",
}
OPERATIONS = ("ncclAllReduce", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv")
SMALL = st.integers(0, 20)
PROCESSES, THREADS = st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2])


@st.composite
def kernel_row(draw: st.DrawFn) -> Row:
    low, high = sorted((draw(SMALL), draw(SMALL)))
    name = draw(st.sampled_from(list(NAMES)))
    return {
        "start_ns": low,
        "end_ns": high,
        "process_id": draw(PROCESSES),
        "device_id": draw(st.sampled_from([0, 0, 1])),
        "context_id": 1,
        "stream_id": 7,
        "correlation_id": draw(st.integers(0, 20)),
        "name": name,
        "says": NAMES[name],
    }


@st.composite
def batch(draw: st.DrawFn) -> list[str]:
    """What goes to the device together: an operation, a group of them, a piece of a group."""
    operation = st.sampled_from(OPERATIONS)
    if draw(st.booleans()):
        return [draw(operation)]
    mixes: list[tuple[str, ...]] = [("ncclAllReduce",), ("ncclSend", "ncclRecv"), OPERATIONS]
    inner = draw(st.lists(st.sampled_from(draw(st.sampled_from(mixes))), max_size=3))
    if inner and draw(st.integers(0, 4)) == 0:
        inner[:1] = ["ncclGroupStart", inner[0], "ncclGroupEnd"]
    names = ["ncclGroupStart", *inner, "ncclGroupEnd"]
    return names[draw(st.sampled_from([0, 0, 0, 0, 1])) :]


@st.composite
def nccl_ranges(draw: st.DrawFn) -> list[Row]:
    """One thread's ranges, one after another."""
    common = {"process_id": draw(PROCESSES), "thread_id": draw(THREADS), "domain": "NCCL"}
    names = [name for part in draw(st.lists(batch(), max_size=4)) for name in part]
    some_sizes: list[list[int | None]] = [[3], [3, 5], [3, 5, 0], [3, None]]
    some_ranks: list[list[int | None]] = [[None], [4], [4, 4, 2]]
    sizes, ranks = draw(st.sampled_from(some_sizes)), draw(st.sampled_from(some_ranks))
    return [
        common
        | {
            "start_ns": 4 * i,
            "end_ns": 4 * i + draw(st.integers(2, 4)),
            "name": name,
            "message_bytes": draw(st.sampled_from(sizes)) if name in OPERATIONS else None,
            "communicator_ranks": draw(st.sampled_from(ranks)) if name in OPERATIONS else None,
            "style": "push_pop",
            "closed": True,
        }
        for i, name in enumerate(names)
    ]


@st.composite
def pytorch_ranges(draw: st.DrawFn, process: int, thread: int) -> list[Row]:
    """An outer range, and disjoint ones in it."""
    common = {"process_id": process, "thread_id": thread, "domain": ""}
    names = st.sampled_from(["nccl:all_to_all", "nccl:broadcast", "step", "aten::mm"])
    times = [(0, 60)] + [(a, a + draw(st.integers(1, 9))) for a in (2, 14, 28)]
    return [
        common
        | {"start_ns": a, "end_ns": b, "name": draw(names), "style": "push_pop", "closed": True}
        for a, b in times[: draw(st.integers(0, 4))]
    ]


@st.composite
def launched(draw: st.DrawFn, ranges: list[Row], identity: int) -> Row:
    """A launch call, most often inside one of NCCL's ranges."""
    chosen: Row = {"process_id": draw(PROCESSES), "thread_id": draw(THREADS)}
    start = draw(st.integers(0, 40))
    if ranges and draw(st.integers(0, 4)) > 0:
        chosen = draw(st.sampled_from(ranges))
        start = chosen["start_ns"] + 1
    return {
        "start_ns": start,
        "end_ns": start + 1,
        "process_id": chosen["process_id"],
        "thread_id": chosen["thread_id"],
        "correlation_id": identity,
        "name": "cudaLaunchKernel",
        "kind": "runtime",
    }


@st.composite
def slow_traces(draw: st.DrawFn) -> Slow:
    low, high = sorted((draw(st.integers(0, 20)), draw(st.integers(0, 20))))
    if draw(st.booleans()):
        low, high = 0, 20
    nccl = draw(nccl_ranges())
    # Two threads' ranges are drawn apart; were they one thread's, they would cross.
    threads = {(r["process_id"], r["thread_id"]) for r in nccl}
    nccl += [r for r in draw(nccl_ranges()) if (r["process_id"], r["thread_id"]) not in threads]
    asked = [r for thread in sorted(threads) for r in draw(pytorch_ranges(*thread))]
    calls = [draw(launched(nccl, i)) for i in range(draw(st.integers(0, 6)))]
    kernels = draw(st.lists(kernel_row(), max_size=4))
    for call in calls:
        kernel = draw(kernel_row())
        kernels.append(kernel | {name: call[name] for name in ("process_id", "correlation_id")})
    ranks = draw(st.sampled_from([None, None, 8]))
    return Slow(kernels, calls, nccl + asked, (low, high + 1), ranks)


def traced(slow: Slow) -> Trace:
    # An ordinal is one GPU, whoever uses it.
    gpus = [
        {"process_id": p, "device_id": d, "gpu_id": d, "identifies": True}
        for p in (1, 2)
        for d in (0, 1)
    ]
    return build.trace(
        kernels=build.table(schema.KERNELS, slow.kernels),
        api_calls=build.table(schema.API_CALLS, slow.calls),
        ranges=build.table(schema.RANGES, slow.ranges),
        devices=build.devices(*gpus),
    )


@settings(max_examples=500, deadline=None)
@given(slow_traces())
def test_agrees_with_plain_loops(slow: Slow) -> None:
    found = traced(slow)
    time = measure_communication(found, Window(*slow.window, "test"), ranks=slow.ranks)
    expected = slow.table()
    actual: dict[Any, Row] = {
        (row["process_id"], row["device_id"], row["kind"]): row
        for row in communication(found, found=time).records()
    }
    assert actual.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: actual[key][name] for name in row} == pytest.approx(row), key
        # There is a reason exactly where calls of the window lack a size.
        lacks = row["calls"] > 0 and row["bytes"] is None
        assert (actual[key]["bytes_missing_because"] is not None) == lacks
        assert (actual[key]["bytes_source"] is not None) == (row["bytes"] is not None)
        assert (actual[key]["ranks_source"] is None) or row["calls"] > 0
    whole = {
        (row["process_id"], row["device_id"]): row
        for row in communication_by_device(found, found=time).records()
    }
    known = communication_by_device(found, found=time, by_kind=communication(found, found=time))
    assert known.records() == list(whole.values())
    by_device = slow.by_device()
    assert whole.keys() == by_device.keys()
    for lane, row in by_device.items():
        assert {name: whole[lane][name] for name in row} == row
        parts = [actual[key] for key in actual if key[:2] == lane]
        for name in ("busy_ns", "exposed_ns", "overlapped_ns"):
            assert max(p[name] for p in parts) <= row[name] <= sum(p[name] for p in parts)
        assert row["busy_ns"] == row["exposed_ns"] + row["overlapped_ns"]
