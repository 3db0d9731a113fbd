"""Launches agree with what `nsys stats` prints of each execution, to the nanosecond.

nsys joins every kernel with every row of the CUDA calls that has its process and correlation id.
Ours is the innermost call, so that its rows are ours, and beside them those of call-chain
wrappers, which nsys takes for calls. No trace here has a kernel that two calls proper share, nor
one that only the process tells from another's; what then holds is in the known answers.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import kernelscope as ks
from kernelscope.metrics.aggregate import statistics_by_group
from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.device_time import measure
from kernelscope.metrics.intervals import gaps, total
from kernelscope.metrics.launch_calls import launch_calls
from kernelscope.metrics.launch_latency import launch_totals, launches, launches_by_kernel
from kernelscope.metrics.launch_results import DEPTHS
from kernelscope.metrics.launch_stretches import launch_stretches
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.launch_waits import launch_limited, launch_waits
from kernelscope.metrics.queue_depth import queue_depth, queue_depth_steps
from kernelscope.metrics.window import whole
from kernelscope.parsers.nsys import api_name
from kernelscope.trace import Table, Trace
from tests.agreement.close import assert_close
from tests.agreement.test_nsys_summaries import CALL_CHAINS
from tests.corpus import each, nsys_traces, nsys_traces_with, oracle

read = lru_cache(maxsize=2)(ks.read)

Row = tuple[Any, ...]
"""Start and duration of call, queue and kernel, total, process, thread, device, names."""


def joined(trace: Trace) -> list[Row]:
    """Rebuild the rows of `cuda_kern_exec_trace` from our join."""
    calls = calls_without_wrappers(trace.api_calls)
    found = launch_times(trace).call_of_kernel
    rows = np.flatnonzero(found >= 0)
    return as_printed(trace, calls, rows, found[rows])


def of_wrappers(trace: Trace) -> list[Row]:
    """Rebuild the rows that nsys makes of call-chain wrappers."""
    calls = trace.api_calls
    kinds = calls.texts("kind")
    ids = zip(calls.values("process_id"), calls.values("correlation_id"), strict=True)
    wrappers = {key: row for row, key in enumerate(ids) if kinds[row] == "wrapper"}
    kernels = trace.kernels
    keys = zip(kernels.values("process_id"), kernels.values("correlation_id"), strict=True)
    pairs = [(row, wrappers[key]) for row, key in enumerate(keys) if key in wrappers]
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return as_printed(trace, calls, array[:, 0], array[:, 1])


def as_printed(trace: Trace, calls: Table, kernels: Any, rows: Any) -> list[Row]:
    work, call = trace.kernels.take(kernels), calls.take(rows)
    start, end = call["start_ns"], call["end_ns"]
    queue = work["start_ns"] - end
    total = np.maximum(end, work["end_ns"]) - start
    columns: list[list[Any]] = [
        start.tolist(),
        (end - start).tolist(),
        [int(at) if wait >= 0 else None for at, wait in zip(end, queue, strict=True)],
        [int(wait) if wait >= 0 else None for wait in queue],
        work.values("start_ns"),
        (work["end_ns"] - work["start_ns"]).tolist(),
        total.tolist(),
        call.values("process_id"),
        call.values("thread_id"),
        work.values("device_id"),
        call.texts("name"),
        work.texts("name"),
    ]
    return list(zip(*columns, strict=True))


NUMBERS = (
    "API Start (ns)", "API Dur (ns)", "Queue Start (ns)", "Queue Dur (ns)", "Kernel Start (ns)",
    "Kernel Dur (ns)", "Total Dur (ns)", "PID", "TID", "DevId",
)  # fmt: skip


def printed(trace_file: Path) -> list[Row]:
    return [
        (
            *(int(row[name]) if row[name] else None for name in NUMBERS),
            api_name(row["API Function"]),
            row["Kernel Name"],
        )
        for row in oracle(trace_file.stem, "cuda_kern_exec_trace")
    ]


@each(nsys_traces_with("cuda_kern_exec_trace"))
def test_every_execution(trace_file: Path) -> None:
    trace, theirs = read(trace_file), Counter(printed(trace_file))
    ours, wrapped = Counter(joined(trace)), Counter(of_wrappers(trace))
    assert ours.total() > 0
    assert bool(wrapped) == (trace_file.stem in CALL_CHAINS)
    assert ours + wrapped == theirs


@each(nsys_traces_with("cuda_kern_exec_trace"))
def test_queue_times_call_by_call(trace_file: Path) -> None:
    """Of calls with one execution each, which are all of those here, theirs are ours."""
    trace = read(trace_file)
    calls = launch_calls(trace)
    assert set(calls["executions"].tolist()) == {1}
    names = ("start_ns", "overhead_ns", "queue_ns", "first_start_ns", "process_id", "thread_id")
    ours = Counter(zip(*(calls.values(name) for name in names), strict=True))
    theirs = Counter(
        (row[0], row[1], row[3], row[4], row[7], row[8]) for row in printed(trace_file)
    )
    for row in of_wrappers(trace):
        theirs[row[0], row[1], row[3], row[4], row[7], row[8]] -= 1
    assert ours == +theirs


@each(nsys_traces_with("cuda_kern_exec_sum"))
def test_executions_by_thread_device_call_and_kernel(trace_file: Path) -> None:
    trace = read(trace_file)
    groups: dict[Row, list[Row]] = {}
    for row in joined(trace) + of_wrappers(trace):
        groups.setdefault(row[7:], []).append(row)
    theirs = oracle(trace_file.stem, "cuda_kern_exec_sum")
    assert len(theirs) == len(groups)
    for line in theirs:
        ids = (int(line["PID"]), int(line["TID"]), int(line["DevId"]))
        mine = groups[(*ids, api_name(line["API Name"]), line["Kernel Name"])]
        assert len(mine) == int(line["Count"])
        for letter, column in (("T", 6), ("A", 1), ("Q", 3), ("K", 5)):
            values = [each[column] for each in mine if each[column] is not None]
            check(values, line, letter)
        assert sum(each[3] is not None for each in mine) == int(line["QCount"])


def check(values: list[int], row: dict[str, str], letter: str) -> None:
    if not values:
        assert row[f"{letter}Min (ns)"] == ""
        return
    whole = np.zeros(len(values), dtype=np.int32)
    mine = statistics_by_group(np.array(values, dtype=np.int64), whole, 1)
    assert int(mine["min_ns"][0]) == int(row[f"{letter}Min (ns)"])
    assert int(mine["max_ns"][0]) == int(row[f"{letter}Max (ns)"])
    for ours, theirs in (("mean_ns", "Avg"), ("median_ns", "Med"), ("std_ns", "StdDev")):
        assert_close(float(mine[ours][0]), row[f"{letter}{theirs} (ns)"], letter + theirs)


@each(nsys_traces())
def test_the_tables_account_for_every_launch(trace_file: Path) -> None:
    """Calls add up over names and over kernels, and to the kernels whose call is known."""
    trace = read(trace_file)
    calls = launch_calls(trace)
    known = int((launch_times(trace).call_of_kernel >= 0).sum())
    assert int(calls["executions"].sum()) == known  # none of these traces launches graphs
    by_name, by_kernel = launches(trace, calls=calls), launches_by_kernel(trace, calls=calls)
    totals = launch_totals(trace, calls=calls).records()
    assert len(totals) == (1 if known else 0)
    for name in (
        "calls",
        "executions",
        "total_ns",
        "queued",
        "overlapping",
        "overlap_ns",
        "unknown",
    ):
        expected = totals[0][name] if totals else 0
        assert by_name[name].sum() == by_kernel[name].sum() == expected


@each(nsys_traces())
def test_stretches_are_waits_that_were_recorded(trace_file: Path) -> None:
    """Their parts add up, they do not overlap, and they lie in the device's idle time."""
    trace = read(trace_file)
    time = measure(trace)
    table = launch_stretches(trace, measured=time)
    for row in table.records():
        assert row["busy_ns"] + row["idle_ns"] == row["duration_ns"]
        assert row["busy_ns"] < row["waiting_ns"] <= row["idle_ns"]
    waits = launch_waits(trace, measured=time)
    assert len(waits) == len(time.devices)
    for device, (one, account) in enumerate(zip(waits, time.devices, strict=True)):
        idle = total(gaps(account.busy))
        assert total(one.waiting) == one.wait.sum() <= idle
        mine = sorted(
            (r["start_ns"], r["end_ns"]) for r in table.records() if r["device"] == device
        )
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))
    limited = launch_limited(trace, waits)
    duration = trace.kernels["end_ns"] - trace.kernels["start_ns"]
    assert duration[limited].sum() < sum(int(one.wait.sum()) for one in waits) or not limited.any()


@each(nsys_traces())
def test_queue_depth_adds_up(trace_file: Path) -> None:
    """Σ depth · ns is Σ latency, over all launches; the classes of depth fill the window."""
    trace = read(trace_file)
    calls, window = launch_calls(trace), whole(trace)
    table = queue_depth(trace, calls=calls)
    steps = queue_depth_steps(trace, calls=calls)
    latency = calls["latency_ns"]
    area = int((steps["depth"] * (steps["end_ns"] - steps["start_ns"])).sum())
    assert area == int(latency[latency > 0].sum())
    assert np.isclose(table["mean"].sum() * window.duration_ns, area)
    for row in table.records():
        spent = sum(row[f"time_ns.depth_{name}"] for name, _ in DEPTHS)
        assert spent == window.duration_ns
