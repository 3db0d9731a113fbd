"""What overlap depends on, gathered from a trace row by row; the oracle's walk does the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kernelscope.metrics.call_classes import class_of
from kernelscope.oracle.host_times import KINDS, HostTimes, Key
from kernelscope.trace import Trace

WAITS_FOR = {
    "synchronization": "synchronization", "copy": "copy", "memset": "copy",
    "allocation": "allocation", "free": "allocation", "module": "module", "launch": "module",
}  # fmt: skip


def times_of(trace: Trace) -> HostTimes:
    """Return when everything was going on that overlap depends on."""
    calls = [row for row in trace.api_calls.records() if row["kind"] != "wrapper"]
    work = [*trace.kernels.records(), *trace.copies.records(), *trace.graphs.records()]
    return HostTimes(
        device=spans((row for row in work if row.get("kind") != "HtoH"), "device_id"),
        calls=spans(calls, "thread_id"),
        waits=waits(calls, work),
        on_core=spans(trace.on_core.records(), "thread_id"),
        ranges=spans(
            (row for row in trace.ranges.records() if row["thread_id"] is not None), "thread_id"
        ),
    )


def spans(rows: Iterable[dict[str, Any]], second: str) -> dict[Key, list[tuple[int, int]]]:
    found: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        found[row["process_id"], row[second]].append((row["start_ns"], row["end_ns"]))
    return dict(found)


def waits(
    calls: list[dict[str, Any]], work: list[dict[str, Any]]
) -> dict[Key, list[tuple[int, int, int]]]:
    innermost: dict[tuple[int, int], int] = {}
    for i, call in sorted(enumerate(calls), key=lambda pair: pair[1]["start_ns"]):
        innermost[call["process_id"], call["correlation_id"]] = i
    first: dict[int, int] = {}
    for row in work:
        call_at = innermost.get((row["process_id"], row["correlation_id"]))
        if call_at is not None and row["correlation_id"] is not None:
            first[call_at] = min(first.get(call_at, row["start_ns"]), row["start_ns"])
    begun, ran = defaultdict(list), defaultdict(list)
    for call_at, start in first.items():
        begun[calls[call_at]["process_id"]].append(calls[call_at]["start_ns"])
        ran[calls[call_at]["process_id"]].append(start)
    for times in (*begun.values(), *ran.values()):
        times.sort()
    found: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    for call in calls:
        what = class_of(call["name"])
        kind = WAITS_FOR.get(what)
        start = call["start_ns"] + (0 if kind == "synchronization" else 50_000)
        if kind is None or start >= call["end_ns"]:
            continue
        process, at = call["process_id"], call["start_ns"]
        if what == "launch" and outstanding(begun[process], ran[process], at) >= 1000:
            kind = "queue"
        found[process, call["thread_id"]].append((start, call["end_ns"], KINDS.index(kind)))
    return dict(found)


def outstanding(begun: list[int], ran: list[int], at: int) -> int:
    return bisect_left(begun, at) - bisect_right(ran, at)
