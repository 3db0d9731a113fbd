"""Random small traces: idle time must be what one look at every moment says."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.device_identity import identify
from kernelscope.metrics.device_time import measure
from kernelscope.metrics.idle import (
    SPECTRUM_NS,
    checks,
    explain,
    gap_spectrum,
    idle,
    idle_by_iteration,
    idle_pieces,
)
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Trace
from tests import build
from tests.metrics.slow_idle import Piece, Slow

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
CALLS = (
    "cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc", "cudaFree",
    "cuModuleLoadData", "cudaGraphLaunch", "cudaEventRecord", "cudaStreamWaitEvent",
)  # fmt: skip
OVERHEADS = (
    "CUPTI: Buffer flush", "CUDA profiling data flush on process exit", "TLS allocation",
    "CUDA profiling stop overhead", "CUPTI: Instrumentation",
)  # fmt: skip
RANGES = ("step 3", "forward", "enumerate(DataLoader)#_BaseIter.__next__", "load batch 2")

TIMES = st.builds(lambda us, ns: 1000 * us + ns, st.integers(0, 120), st.sampled_from([0, 0, 0, 1]))
SHORT = st.builds(
    lambda us, ns: 1000 * us + ns, st.sampled_from([0, 1, 2, 3, 7, 20]), st.sampled_from([0, 1])
)
LONG = st.builds(
    lambda us, ns: 1000 * us + ns, st.sampled_from([1, 5, 20, 55, 90]), st.sampled_from([0, 1])
)
PROCESS, THREAD = st.sampled_from([1, 1, 1, 2]), st.sampled_from([1, 1, 2, 3, None])
CORRELATION = st.sampled_from([1, 2, 3, 4, 5, 6, None])


def rows(fields: dict[str, Any], length: Any, count: int, start: Any = TIMES) -> Any:
    row = st.fixed_dictionaries({"start_ns": start, "length": length, **fields})
    return st.lists(row, max_size=count)


def timed(found: list[dict[str, Any]], **common: Any) -> list[dict[str, Any]]:
    return [
        {**common, **{k: v for k, v in row.items() if k != "length"},
         "end_ns": row["start_ns"] + row["length"]}
        for row in found
    ]  # fmt: skip


WORK = {
    "process_id": PROCESS,
    "device_id": st.sampled_from([0, 0, 1]),
    "context_id": st.just(1),
    "stream_id": st.sampled_from([7, 7, 8, None]),
    "correlation_id": CORRELATION,
    "graph_node_id": st.sampled_from([None, None, None, 5]),
}
ON_THREAD = {"process_id": PROCESS, "thread_id": THREAD}
SHARED = (
    {"process_id": 1, "device_id": 0, "gpu_id": 4, "identifies": True},
    {"process_id": 1, "device_id": 1, "gpu_id": 5, "identifies": True},
    {"process_id": 2, "device_id": 0, "gpu_id": 4, "identifies": True},
    {"process_id": 2, "device_id": 1, "gpu_id": 6, "identifies": True},
)


HOST_EVENTS: dict[str, dict[str, Any]] = {
    "ranges": {
        **ON_THREAD,
        "name": st.sampled_from(RANGES),
        "domain": st.sampled_from(["", "", "DALI", "mine"]),
        "style": st.sampled_from(["push_pop", "start_end"]),
    },
    "os_calls": {**ON_THREAD, "name": st.sampled_from(["read", "pthread_cond_wait"])},
    "on_core": ON_THREAD,
    "overheads": {**ON_THREAD, "name": st.sampled_from(OVERHEADS)},
}
STREAM = {n: WORK[n] for n in ("process_id", "context_id", "stream_id")}
SYNC_KINDS = ["stream_wait_event", "stream_wait_event", "stream_synchronize"]
SYNC = {**STREAM, "kind": st.sampled_from(SYNC_KINDS), "event_id": st.sampled_from([1, 2])}
COPY_KINDS = ["HtoD", "memset", "HtoH", "PtoP", "PtoP", "unified HtoD"]
COPY_ENDS = {n: st.sampled_from([None, None, 0, 1]) for n in ("src_device_id", "dst_device_id")}


def made(draw: Any, tables: dict[str, list[dict[str, Any]]]) -> Trace:
    """A trace of work and calls, with whatever else threads did."""
    for name, fields in HOST_EVENTS.items():
        common = {"closed": True} if name == "ranges" else {}
        tables[name] = timed(draw(rows(fields, LONG, 4)), **common)
    built = {name: build.table(getattr(schema, name.upper()), t) for name, t in tables.items()}
    return build.trace(**built, devices=build.devices(*(SHARED if draw(st.booleans()) else ())))


@st.composite
def scattered(draw: Any) -> Trace:
    """Anything at any time: most work has no call, or one that makes no sense."""
    kernels = {**WORK, "name": st.sampled_from(["gemm", "gemm", NCCL])}
    copies = {**WORK, **COPY_ENDS, "kind": st.sampled_from(COPY_KINDS)}
    graphs = {k: v for k, v in WORK.items() if k != "graph_node_id"}
    calls = {**ON_THREAD, "correlation_id": CORRELATION, "name": st.sampled_from(CALLS)}
    kind = draw(st.sampled_from(["runtime", "driver"]))
    record = {**STREAM, "correlation_id": CORRELATION, "event_id": SYNC["event_id"]}
    return made(
        draw,
        {
            "kernels": timed(draw(rows(kernels, SHORT, 6))),
            "copies": timed(draw(rows(copies, SHORT, 4))),
            "graphs": timed(draw(rows(graphs, SHORT, 1))),
            "api_calls": timed(draw(rows(calls, LONG | SHORT, 9)), kind=kind),
            "syncs": timed(draw(rows(SYNC, SHORT, 3))),
            "event_records": draw(st.lists(st.fixed_dictionaries(record), max_size=3)),
        },
    )


DELAY = st.builds(
    lambda us, ns: 1000 * us + ns, st.sampled_from([0, 2, 12, 25, 40]), st.sampled_from([0, 1])
)


@st.composite
def launched(draw: Any) -> Trace:
    """Work that starts behind its call, in two streams that wait for each other's events."""
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("kernels", "copies", "api_calls", "syncs", "event_records")
    }
    thread = {"process_id": 1, "thread_id": draw(st.sampled_from([1, 1, 2]))}
    stream = st.sampled_from([7, 8])
    for number in range(draw(st.integers(2, 8))):
        start = draw(TIMES)
        length = draw(st.sampled_from([1000, 1000, 3000, 60_000]))
        call = {**thread, "start_ns": start, "end_ns": start + length, "correlation_id": number}
        what = draw(st.sampled_from(["kernel", "kernel", "kernel", "copy", "record", "wait"]))
        place = {"process_id": 1, "context_id": 1, "stream_id": draw(stream)}
        if what == "record":
            name = "cudaEventRecord"
            tables["event_records"].append({**place, "correlation_id": number, "event_id": 1})
        elif what == "wait":
            name = "cudaStreamWaitEvent"
            row = {**place, "kind": "stream_wait_event", "event_id": 1}
            tables["syncs"].append(row | {"start_ns": start, "end_ns": start + length})
        else:
            begin = start + draw(DELAY)
            work = {
                **place,
                "device_id": draw(st.sampled_from([0, 0, 1])),
                "correlation_id": number,
                "start_ns": begin,
                "end_ns": begin + draw(SHORT),
            }
            if what == "kernel":
                name = "cudaLaunchKernel"
                work["name"] = draw(st.sampled_from(["gemm", NCCL]))
                tables["kernels"].append(work)
            else:
                name = "cudaMemcpyAsync"
                ends = {each: draw(values) for each, values in COPY_ENDS.items()}
                kind = draw(st.sampled_from(["HtoD", "PtoP", "PtoP", "unified HtoD"]))
                tables["copies"].append({**work, **ends, "kind": kind})
        tables["api_calls"].append({**call, "name": name, "kind": "runtime"})
    return made(draw, tables)


@st.composite
def queued(draw: Any) -> Trace:
    """Calls first, then work that waited in the queue: on two devices, for events and peers."""
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("kernels", "copies", "api_calls", "syncs", "event_records")
    }
    begin = {7: 40_000, 8: 40_000, 9: 40_000}
    stream = st.sampled_from([7, 8, 9])
    operation = st.sampled_from(["kernel", "kernel", "copy", "record", "wait"])
    single = st.tuples(operation, stream).map(lambda each: [each])
    handed = st.tuples(stream, stream).map(
        lambda s: [("kernel", s[0]), ("record", s[0]), ("wait", s[1]), ("kernel", s[1])]
    )
    groups = draw(st.lists(single | handed, min_size=1, max_size=5))
    for number, (what, stream) in enumerate(each for group in groups for each in group):
        call = {"process_id": 1, "thread_id": 1, "kind": "runtime", "correlation_id": number}
        call |= {"start_ns": number * 2000, "end_ns": number * 2000 + 1000}
        place = {"process_id": 1, "context_id": 1, "stream_id": stream, "correlation_id": number}
        if what == "record":
            call["name"] = "cudaEventRecord"
            tables["event_records"].append({**place, "event_id": draw(st.sampled_from([1, 1, 2]))})
        elif what == "wait":
            call["name"] = "cudaStreamWaitEvent"
            times = {each: call[each] for each in ("start_ns", "end_ns")}
            tables["syncs"].append({**place, **times, "kind": "stream_wait_event", "event_id": 1})
        else:
            call["name"] = "cudaLaunchKernel"
            start = begin[stream] + draw(st.sampled_from([0, 2000, 6000, 11_000, 30_000]))
            begin[stream] = start + draw(st.sampled_from([0, 1000, 4000, 12_000]))
            work = {**place, "device_id": int(stream == 8)}
            work |= {"start_ns": start, "end_ns": begin[stream]}
            if what == "kernel":
                tables["kernels"].append({**work, "name": draw(st.sampled_from(["gemm", NCCL]))})
            else:
                ends = {each: draw(values) for each, values in COPY_ENDS.items()}
                kind = draw(st.sampled_from(["PtoP", "PtoP", "unified HtoD"]))
                tables["copies"].append({**work, **ends, "kind": kind})
        tables["api_calls"].append(call)
    return made(draw, tables)


TRACES = scattered() | launched() | queued()


def slow(trace: Trace, window: Window) -> list[Piece]:
    identity = identify(trace)
    device_of: dict[tuple[int | None, int], int] = dict(identity.elsewhere)
    device_of.update(zip(identity.lanes, identity.index, strict=True))
    return Slow(trace, device_of).pieces(window.start_ns, window.end_ns)


def fast(trace: Trace, window: Window | None = None) -> list[Piece]:
    table = idle_pieces(explain(trace, window), window)
    return [
        (r["device"], r["start_ns"], r["end_ns"], r["cause"], r["detail"]) for r in table.records()
    ]


@given(TRACES)
@settings(max_examples=200)
def test_every_moment_has_the_cause_that_one_look_at_it_gives(trace: Trace) -> None:
    assert fast(trace) == slow(trace, whole(trace))


@given(TRACES, st.tuples(TIMES, TIMES).map(sorted))
def test_a_window_shows_what_is_left_of_the_pieces_of_the_whole(
    trace: Trace, ends: list[int]
) -> None:
    window = Window(ends[0], ends[1] + 1, "test")
    everything = whole(trace)
    hull = Window(
        min(window.start_ns, everything.start_ns), max(window.end_ns, everything.end_ns), "hull"
    )
    cut = [
        (device, max(start, window.start_ns), min(end, window.end_ns), *label)
        for device, start, end, *label in slow(trace, hull)
        if start < window.end_ns and end > window.start_ns
    ]
    assert fast(trace, window) == cut
    time = measure(trace, window)
    found = checks(explain(trace, window), time)
    assert found["ok"].all(), found.records()
    assert len(found) == 2 * len(time.devices)


@given(TRACES)
def test_totals_counts_and_longest_are_those_of_the_pieces(trace: Trace) -> None:
    explained = explain(trace)
    pieces = idle_pieces(explained).records()
    table = idle(explained)
    expected: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for piece in pieces:
        key = (piece["device"], piece["cause"], piece["detail"])
        expected.setdefault(key, []).append(piece)
    whole_of = {
        device: sum(p["end_ns"] - p["start_ns"] for p in pieces if p["device"] == device)
        for device in range(explained.devices)
    }
    assert len(table) == len(expected)
    for row in table.records():
        mine = expected[row["device"], row["cause"], row["detail"]]
        lengths = [p["end_ns"] - p["start_ns"] for p in mine]
        assert (row["total_ns"], row["largest_ns"]) == (sum(lengths), max(lengths))
        assert row["gaps"] == len({p["gap"] for p in mine})
        assert row["share"] == sum(lengths) / whole_of[row["device"]]
    order = [(row["device"], -row["total_ns"]) for row in table.records()]
    assert order == sorted(order)


@given(TRACES)
def test_the_spectrum_sorts_every_pause(trace: Trace) -> None:
    explained = explain(trace)
    gaps = explained.gaps
    rows = gap_spectrum(explained).records()
    for device in range(explained.devices):
        mine = [row for row in rows if row["device"] == device]
        assert [row["up_to_ns"] for row in mine] == [*SPECTRUM_NS, None]
        lengths = (gaps.end - gaps.start)[gaps.device == device].tolist()
        edge = (gaps.end - gaps.start)[(gaps.device == device) & (gaps.place != 1)].tolist()
        low = cumulative = 0
        for row in mine:
            high = row["up_to_ns"] or max([*lengths, low + 1])
            here = [n for n in lengths if low < n <= high]
            cumulative += sum(here)
            assert (row["gaps"], row["total_ns"]) == (len(here), sum(here))
            assert row["edge_ns"] == sum(n for n in edge if low < n <= high)
            assert row["cumulative_ns"] == cumulative
            low = high


@given(TRACES, st.lists(TIMES, min_size=2, max_size=6, unique=True).map(sorted), st.booleans())
def test_iterations_hold_what_lies_in_their_periods(
    trace: Trace, edges: list[int], holes: bool
) -> None:
    starts, ends = np.array(edges[:-1]), np.array(edges[1:])
    if holes:
        ends = np.maximum(starts, ends - 7000)
    explained = explain(trace)
    expected: dict[tuple[Any, ...], int] = {}
    for piece in idle_pieces(explained).records():
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            inside = min(end, piece["end_ns"]) - max(start, piece["start_ns"])
            key = (i, piece["device"], piece["cause"], piece["detail"])
            if inside > 0:
                expected[key] = expected.get(key, 0) + inside
    found = idle_by_iteration(explained, starts, ends).records()
    names = ("iteration", "device", "cause", "detail")
    assert {tuple(row[n] for n in names): row["total_ns"] for row in found} == expected
    order = [(row["iteration"], row["device"], -row["total_ns"]) for row in found]
    assert order == sorted(order)
