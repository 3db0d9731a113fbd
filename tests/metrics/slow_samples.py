"""Sampled GPU metrics once more, nanosecond by nanosecond: slow, and plain to see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.trace import Trace

SCALES = {"[Throughput %]": 0.01, "[MHz]": 1.0, "[Requests]": 1e9}
Figures = tuple[int, int, float | None]
"""Samples, covered ns, and the mean; None under five samples, or where the unit is unknown."""


@dataclass(frozen=True)
class Interval:
    """What a sample speaks of: ``[start, end)``, and its values by metric."""

    start: int
    end: int
    values: dict[str, int]

    @property
    def moments(self) -> set[int]:
        return set(range(self.start, self.end))


def intervals(trace: Trace) -> dict[int, list[Interval]]:
    """Return the intervals of each GPU, by the profiler's number of it."""
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in trace.gpu_samples.records():
        if row["problem"] not in ("no_time", "time_outside"):
            rows[row["gpu_id"]].append(row)
    found = {}
    for gpu, mine in rows.items():
        times = sorted({row["time_ns"] for row in mine})
        lengths = [b - a for a, b in pairwise(times)]
        values: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for row in mine:
            # A value with a problem still stands beside another of the same moment.
            values[row["time_ns"]][row["metric"]].append(
                row["value"] if row["problem"] is None else None
            )
        found[gpu] = [
            Interval(a, b, {m: v[0] for m, v in values[b].items() if v != [None] and len(v) == 1})
            for a, b in pairwise(times)
            if b - a <= 2 * median(lengths)
        ]
    return found


def mean(counted: Iterable[tuple[Interval, set[int]]], metric: str) -> Figures:
    """Return what a metric comes to over samples, each with the moments that count."""
    samples = covered = 0
    amount = 0.0
    for interval, moments in counted:
        if metric in interval.values and moments:
            samples += 1
            covered += len(moments)
            value = interval.values[metric] * len(moments)
            whole = interval.end - interval.start
            amount += value / whole if metric.endswith("[Requests]") else value
    scale = SCALES.get(metric[metric.find("[") :])
    if samples < 5 or scale is None:
        return samples, covered, None
    return samples, covered, scale * amount / covered


def in_window(trace: Trace, window: set[int]) -> dict[tuple[int, str], Figures]:
    """(GPU, metric) → figures, samples cut to the window."""
    names = sorted(trace.gpu_samples.categories("metric"))
    return {
        (gpu, metric): mean([(each, each.moments & window) for each in mine], metric)
        for gpu, mine in intervals(trace).items()
        for metric in names
    }


def _operations(trace: Trace, device: int) -> Iterator[tuple[str | None, set[int], int | None]]:
    """Yield (kernel's name or None, its moments, correlation id) of all that is on a device."""
    for row in trace.kernels.records():
        if row["device_id"] == device:
            yield row["name"], set(range(row["start_ns"], row["end_ns"])), row["correlation_id"]
    for row in (*trace.copies.records(), *trace.graphs.records()):
        sides = {row["device_id"], row.get("src_device_id"), row.get("dst_device_id")}
        if device in sides and row.get("kind") != "HtoH":
            own = row["correlation_id"] if row["device_id"] == device else None
            yield None, set(range(row["start_ns"], row["end_ns"])), own


def by_kernel(
    trace: Trace, window: set[int], gpus: dict[int, int]
) -> dict[tuple[str, int, str], Figures]:
    """(kernel, device, metric) → figures; `gpus` says which GPU is which device."""
    counted: dict[tuple[str, int], list[tuple[Interval, set[int]]]] = defaultdict(list)
    for gpu, mine in intervals(trace).items():
        device = gpus[gpu]
        for each in mine:
            here = [(n, m & each.moments) for n, m, _ in _operations(trace, device)]
            running = {name for name, moments in here if moments}
            covered = set().union(*(moments for _, moments in here)) & window
            enough = len(covered) >= 0.95 * (each.end - each.start)
            if enough and len(running) == 1 and None not in running:
                counted[running.pop() or "", device].append((each, covered))
    return _figures(trace, counted)


def by_range(
    trace: Trace, window: set[int], gpus: dict[int, int]
) -> dict[tuple[str, int, str], Figures]:
    """(path, device, metric) → figures; ranges of one thread that nest, calls in them."""
    calls = {row["correlation_id"]: row["start_ns"] for row in trace.api_calls.records()}
    ranges = trace.ranges.records()
    counted: dict[tuple[str, int], list[tuple[Interval, set[int]]]] = defaultdict(list)
    for gpu, mine in intervals(trace).items():
        device = gpus[gpu]
        projected: dict[str, set[int]] = defaultdict(set)
        for row in ranges:
            around = [
                each
                for each in ranges
                if each["start_ns"] <= row["start_ns"] and row["end_ns"] <= each["end_ns"]
            ]
            path = SEPARATOR.join(
                each["name"] for each in sorted(around, key=lambda each: each["start_ns"])
            )
            moments = set().union(
                *(
                    moments & window
                    for _, moments, own in _operations(trace, device)
                    if own in calls and row["start_ns"] <= calls[own] < row["end_ns"]
                )
            )
            if moments:
                projected[path] |= set(range(min(moments), max(moments) + 1))
        for path, moments in projected.items():
            for each in mine:
                inside = each.moments & moments
                if len(inside) >= 0.95 * (each.end - each.start):
                    counted[path, device].append((each, inside))
    return _figures(trace, counted)


def _figures(
    trace: Trace, counted: dict[tuple[str, int], list[tuple[Interval, set[int]]]]
) -> dict[tuple[str, int, str], Figures]:
    names = sorted(trace.gpu_samples.categories("metric"))
    found = {
        (name, device, metric): mean(mine, metric)
        for (name, device), mine in counted.items()
        for metric in names
    }
    return {key: figures for key, figures in found.items() if figures[0]}
