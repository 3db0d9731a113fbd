"""Training runs built in code: ranges, launches and kernels at times that a reader can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelscope import schema
from kernelscope.trace import Capture, Trace
from tests.build import table

PROCESS, THREAD = 1, 1
Range = tuple[str, int, int]
"""Name, start, end."""


def ranges(*rows: Range, **common: Any) -> list[dict[str, Any]]:
    """Ranges ``(name, start, end)`` of process 1, thread 1, in the default domain."""
    base = {"process_id": PROCESS, "thread_id": THREAD, "domain": "", "style": "push_pop"}
    base |= {"closed": True, **common}
    return [{**base, "name": name, "start_ns": start, "end_ns": end} for name, start, end in rows]


def every(name: str, period: int, length: int, count: int, begin: int = 0) -> list[Range]:
    """`count` ranges, one each `period`; ``{}`` in the name is the number."""
    starts = [begin + i * period for i in range(count)]
    return [(name.format(i), start, start + length) for i, start in enumerate(starts)]


def trace(
    range_rows: Sequence[Mapping[str, Any]] = (),
    launches: Sequence[int] = (),
    *,
    names: Sequence[str] | None = None,
    latency: int = 2,
    duration: int = 3,
    thread: int = THREAD,
    process: int = PROCESS,
) -> Trace:
    """A trace of ranges, and of kernels launched at the given times.

    Each launch call takes 1 ns; the kernel starts `latency` after the call and takes `duration`.
    """
    ids = {"process_id": process, "correlation_id": 0}
    calls, kernels = [], []
    for number, at in enumerate(launches):
        own = {**ids, "correlation_id": number}
        call = {"thread_id": thread, "name": "cudaLaunchKernel", "kind": "runtime"}
        calls.append({**own, **call, "start_ns": at, "end_ns": at + 1})
        name = names[number] if names else "kernel"
        event = {"device_id": 0, "context_id": 1, "stream_id": 7, "name": name}
        start = at + latency
        kernels.append({**own, **event, "start_ns": start, "end_ns": start + duration})
    return Trace(
        Capture("built", "test", recorded=("ranges", "kernels", "api_calls")),
        ranges=table(schema.RANGES, range_rows),
        api_calls=table(schema.API_CALLS, calls),
        kernels=table(schema.KERNELS, kernels),
    )


def merged(*traces: Trace) -> Trace:
    """The events of several traces in one."""
    first = traces[0]
    tables = {
        name: table(part.schema, [row for each in traces for row in each.tables[name].records()])
        for name, part in first.tables.items()
    }
    return first.with_tables(**tables)
