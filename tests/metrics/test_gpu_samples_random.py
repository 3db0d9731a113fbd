"""Sampled GPU metrics against the slow second implementation, on random small traces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.attribution import attribute
from kernelscope.metrics.gpu_samples import (
    gpu_metrics,
    gpu_metrics_by_iteration,
    gpu_metrics_by_kernel,
    gpu_metrics_by_range,
)
from kernelscope.metrics.sample_ranges import RangesSeen
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests.build import api_calls, devices, table, trace
from tests.metrics import slow_samples

LAST = 400
GPUS = {7: 0, 3: 1}
"""The profiler's number of a GPU → its CUDA ordinal."""

METRICS = (
    "SM Issue [Throughput %]",
    "Tensor Active [Throughput %]",
    "GPC Clock Frequency [MHz]",
    "PCIe Read Requests to BAR1 [Requests]",
    "Compute Warps in Flight [Avg]",
)
WITH_ROLE = METRICS[:3]
PROBLEMS = ("no_time", "no_number", "negative")


@st.composite
def sample_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Samples of up to two GPUs: a period, gaps, lost and repeated values, problems, any order."""
    rows: list[dict[str, Any]] = []
    for gpu in draw(st.sampled_from([(7,), (3,), (7, 3)])):
        time = draw(st.integers(0, 30))
        period = draw(st.integers(5, 25))
        metrics = draw(st.lists(st.sampled_from(METRICS), min_size=1, unique=True))
        jitter = st.sampled_from([0, 0, 0, 0, 1, -1, period, period + 1, 3 * period])
        while time < LAST:
            rows += [
                {
                    "time_ns": time,
                    "source": f"source {gpu}",
                    "gpu_id": gpu,
                    "metric": metric,
                    "value": draw(st.integers(0, 100)),
                }
                for metric in metrics
            ]
            time += max(period + draw(jitter), 1)
    changes = st.sampled_from(["drop", "repeat", *PROBLEMS])
    for place, change in draw(
        st.lists(st.tuples(st.integers(0, len(rows) - 1), changes), max_size=4)
    ):
        if change == "drop":
            rows[place] = {}
        elif change == "repeat":
            rows.append(dict(rows[place]))
        elif rows[place].get("time_ns") is not None:
            rows[place] = {**rows[place], "problem": change}
            if change == "no_time":
                rows[place]["time_ns"] = None
    rows = [row for row in rows if row]
    return draw(st.permutations(rows)) if draw(st.booleans()) else rows


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Operations of one process on two devices, launched in nested ranges, and samples."""
    kernels, copies, graphs, calls = [], [], [], []
    for number in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, LAST))
        call = draw(st.integers(0, LAST))
        event = {
            "start_ns": start,
            "end_ns": start + draw(st.integers(0, 150)),
            "process_id": 1,
            "device_id": draw(st.integers(0, 1)),
            "correlation_id": number,
        }
        calls.append({"start_ns": call, "end_ns": call + 1, "correlation_id": number})
        kind = draw(st.sampled_from(["kernel", "kernel", "kernel", "copy", "peer", "graph"]))
        if kind == "kernel":
            kernels.append({**event, "name": draw(st.sampled_from(["a", "b"]))})
        elif kind == "graph":
            graphs.append(event)
        else:
            peer = {"src_device_id": 0, "dst_device_id": 1} if kind == "peer" else {}
            copies.append({**event, "kind": "PtoP" if peer else "HtoD", **peer})
    known = {"process_id": 1, "thread_id": 1, "domain": "", "style": "push_pop", "closed": True}
    ranges = []
    for begin in range(0, draw(st.integers(0, 4)) * 100, 100):
        ranges.append({"start_ns": begin, "end_ns": begin + 95, "name": "outer", **known})
        if draw(st.booleans()):
            ranges.append({"start_ns": begin + 10, "end_ns": begin + 60, "name": "inner", **known})
    base = {"process_id": 1, "thread_id": 1, "kind": "runtime", "name": "cudaLaunchKernel"}
    return trace(
        kernels=table(schema.KERNELS, kernels),
        copies=table(schema.COPIES, copies),
        graphs=table(schema.GRAPHS, graphs),
        api_calls=table(schema.API_CALLS, [{**base, **call} for call in calls])
        if calls
        else api_calls(),
        ranges=table(schema.RANGES, ranges),
        devices=devices(*({"device_id": ordinal, "gpu_id": gpu} for gpu, ordinal in GPUS.items())),
        gpu_samples=table(schema.GPU_SAMPLES, draw(sample_rows())),
    )


windows = st.tuples(st.integers(0, LAST), st.integers(1, LAST)).map(
    lambda pair: Window(pair[0], pair[0] + pair[1], "chosen")
)


def figures(made: Table, *key: str) -> dict[tuple[Any, ...], slow_samples.Figures]:
    return {
        tuple(row[name] for name in key): (row["samples"], row["covered_ns"], row["value"])
        for row in made.records()
    }


def assert_same(ours: dict[Any, Any], theirs: dict[Any, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for key, (samples, covered, value) in theirs.items():
        assert ours[key][:2] == (samples, covered), key
        if value is None:
            assert ours[key][2] is None, key
        else:
            assert math.isclose(ours[key][2], value, rel_tol=1e-9, abs_tol=1e-12), key


@settings(max_examples=150, deadline=None)
@given(traces(), windows)
def test_windows_and_iterations(made: Trace, window: Window) -> None:
    inside = set(range(window.start_ns, window.end_ns))
    expected = {
        key: value
        for key, value in slow_samples.in_window(made, inside).items()
        if any(key[1] == row["metric"] and key[0] == row["gpu_id"] and row["problem"] != "no_time"
               for row in made.gpu_samples.records())
    }  # fmt: skip
    assert_same(figures(gpu_metrics(made, window), "gpu_id", "metric"), expected)
    middle = (window.start_ns + window.end_ns) // 2
    edges = np.array([window.start_ns, middle]), np.array([middle, window.end_ns])
    halves = gpu_metrics_by_iteration(made, np.array([4, 5]), edges)
    by_half: dict[Any, slow_samples.Figures] = {
        (index, *key): value
        for index, low, high in zip((4, 5), *edges, strict=True)
        for key, value in slow_samples.in_window(made, set(range(low, high))).items()
        if key[1] in WITH_ROLE and value[0]
    }
    assert_same(figures(halves, "iteration", "gpu_id", "metric"), by_half)


@settings(max_examples=200, deadline=None)
@given(traces(), windows)
def test_kernels_and_ranges(made: Trace, window: Window) -> None:
    inside = set(range(window.start_ns, window.end_ns))
    used = {
        *(row["device_id"] for name in ("kernels", "copies", "graphs")
          for row in made.tables[name].records()),
    }  # fmt: skip
    gpus = {gpu: ordinal if ordinal in used else -1 for gpu, ordinal in GPUS.items()}

    def with_role(found: dict[Any, Any]) -> dict[Any, Any]:
        return {key: value for key, value in found.items() if key[2] in WITH_ROLE}

    ours = gpu_metrics_by_kernel(made, window)
    numbers = {row["gpu_id"]: row["device"] for row in ours.records()}
    made_by = {
        (n, GPUS[g], m): v for (n, g, m), v in figures(ours, "name", "gpu_id", "metric").items()
    }
    assert len(set(numbers.values())) == len(numbers)
    assert_same(made_by, with_role(slow_samples.by_kernel(made, inside, gpus)))
    attribution = attribute(made)
    if len(made.ranges):
        found = gpu_metrics_by_range(made, RangesSeen.of(attribution), window)
        made_by = {
            (p, GPUS[g], m): v
            for (p, g, m), v in figures(found, "path", "gpu_id", "metric").items()
        }
        assert_same(made_by, with_role(slow_samples.by_range(made, inside, gpus)))
