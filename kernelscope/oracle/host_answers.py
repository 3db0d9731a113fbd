"""Answers about host and devices together: overlap, threads, and the processor's utilization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kernelscope.oracle.answers import believable, counted, whole_window
from kernelscope.oracle.device_answers import MARK, activities_of
from kernelscope.oracle.events import Call, Copy, Graph, Kernel, Memset, Range, Switch
from kernelscope.oracle.graph_answers import opaque_graphs
from kernelscope.oracle.host_times import KINDS, HostTimes, Key, Span, source, states, threads
from kernelscope.oracle.plan import Plan
from kernelscope.oracle.range_answers import launched_of

Answers = dict[str, Any]

CORES = 64
"""Processor cores of every plan's machine; exports of 2020 do not say how many."""

GRACE = 50_000
"""Longer than this a call that can block is waiting, ns."""

QUEUE = 1_000
"""With so many operations outstanding a long launch waits for room."""

_WAITS_FOR: tuple[tuple[str, str], ...] = (
    ("Memcpy", "copy"), ("Memset", "copy"), ("Malloc", "allocation"), ("HostAlloc", "allocation"),
    ("Free", "allocation"), ("ModuleLoad", "module"), ("LibraryLoad", "module"),
    ("Launch", "module"), ("GraphLaunch", "module"),
)  # fmt: skip
"""How a call's name goes on behind ``cuda`` or ``cu``, and what it waits for."""

BOUNDS = ("both_high_ns", "gpu_only_low_ns", "cpu_only_high_ns", "neither_low_ns")
STATES = ("both_ns", "gpu_only_ns", "cpu_only_ns", "neither_ns")


def host_answers(plan: Plan, *, generation: str = "2025.5", window: Span | None = None) -> Answers:
    """Return what an analysis of `plan` must find about host and devices together.

    Parameters
    ----------
    plan : Plan
        What happened. Plain loops run over it, as in :func:`kernelscope.oracle.answers`.
    generation : str
        The export's generation; it decides whether the number of cores is known.
    window : (int, int), optional
        ``[start, end)`` in ns; by default from the first to the last device activity or call.

    Returns
    -------
    dict
        ``overlap``, ``host_threads`` and ``cpu``.
    """
    kernels = [row for row in plan.kernels.rows(Kernel) if believable(row)]
    copies = [row for row in plan.copies.rows(Copy) if believable(row)]
    memsets = [row for row in plan.memsets.rows(Memset) if believable(row)]
    calls = [row for row in plan.calls.rows(Call) if believable(row)]
    graphs = [row for row in opaque_graphs(plan) if believable(row)]
    window = window or whole_window(kernels, copies, memsets, calls, graphs)
    own = [call for call in calls if call.kind != "wrapper"]
    times = HostTimes(
        device=_spans(
            ((each.process, each.device), (each.start, each.end))
            for each in activities_of(kernels, copies, memsets, graphs)
            if each.stream != MARK
        ),
        calls=_spans(((call.process, call.thread), (call.start, call.end)) for call in own),
        waits=_waits(own, (*kernels, *copies, *memsets, *graphs)),
        on_core=stretches(plan.switches.rows(Switch)),
        ranges=_spans(
            ((row.process, row.thread), (row.start, plan.end if row.end is None else row.end))
            for row in plan.ranges.rows(Range)
            if believable(row)
        ),
    )
    starts = [(call.process, call.thread) for call in own if counted(call, *window)]
    return {
        "overlap": _overlap(times, window),
        "host_threads": _threads(plan, times, window, starts),
        "cpu": [_cpu(times, window, None if generation == "2020.5" else CORES)],
    }


def _spans(rows: Iterable[tuple[Key, Span]]) -> dict[Key, list[Span]]:
    found: dict[Key, list[Span]] = defaultdict(list)
    for key, span in rows:
        found[key].append(span)
    return dict(found)


def _waits(
    calls: Sequence[Call], work: Sequence[Kernel | Copy | Memset | Graph]
) -> dict[Key, list[tuple[int, int, int]]]:
    """Return when each thread waited inside a call, and for what."""
    started: dict[int, int] = {}
    for launched in launched_of(work, calls):
        at = started.get(id(launched.call), launched.start)
        started[id(launched.call)] = min(at, launched.start)
    found: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    for call in calls:
        stem = call.name.removeprefix("cuda").removeprefix("cu")
        kind = next((what for begin, what in _WAITS_FOR if stem.startswith(begin)), None)
        grace = GRACE
        if "Synchronize" in stem:
            kind, grace = "synchronization", 0
        if kind is None or call.end - call.start <= grace:
            continue
        if kind == "module" and "Launch" in stem:
            outstanding = sum(
                other.start < call.start < started[id(other)]
                for other in calls
                if other.process == call.process and id(other) in started
            )
            kind = "queue" if outstanding >= QUEUE else kind
        thread = (call.process, call.thread)
        found[thread].append((call.start + grace, call.end, KINDS.index(kind)))
    return dict(found)


def stretches(switches: Sequence[Switch]) -> dict[Key, list[Span]]:
    """Return when each thread was on a core, of the records of its being switched."""
    records: dict[Key, list[Switch]] = defaultdict(list)
    for each in sorted(switches, key=lambda each: each.start):
        records[each.process, each.thread].append(each)
    moments = [each.start for each in switches]
    found: dict[Key, list[Span]] = {}
    for thread, mine in records.items():
        # Who is first seen going off a core was on it when recording began.
        since = None if mine[0].on_core else min(moments)
        spans: list[Span] = []
        for each in mine:
            if each.on_core:
                since = each.start if since is None else since
            elif since is not None:
                spans.append((since, each.start))
                since = None
        found[thread] = spans if since is None else [*spans, (since, max(moments))]
    return found


def _overlap(times: HostTimes, window: Span) -> list[Answers]:
    driving = times.driving(window)
    recorded = {thread: each["recorded_ns"] for thread, each in threads(times, window).items()}
    known = states(times, window)
    rows = []
    for lane in sorted(times.device, key=str):
        mine = [thread for thread in driving if thread[0] == lane[0]]
        found = known.get(lane)
        length = window[1] - window[0]
        bounded = any(thread in times.ranges and recorded[thread] < length for thread in mine)

        def time(name: str, *, there: bool = True, found: Any = found) -> int | None:
            return found[name] if there and found is not None else None

        rows.append(
            {
                "process_id": lane[0],
                "device_id": lane[1],
                "cpu_source": source([recorded[each] for each in mine], window) if mine else None,
                **{name: time(name) for name in STATES},
                **{name: time(name, there=bounded) for name in BOUNDS},
                "unscheduled_ns": time("unscheduled_ns"),
                "waiting": {f"{kind}_ns": time(f"waiting.{kind}_ns") for kind in KINDS},
                "driving_threads": len(mine),
                "other_threads_on_core_ns": _others(times, window, lane, mine),
            }
        )
    return rows


def _others(times: HostTimes, window: Span, lane: Key, mine: Sequence[Key]) -> int | None:
    if not any(thread[0] == lane[0] for thread in times.on_core):
        return None
    return sum(
        max(0, min(end, window[1]) - max(start, window[0]))
        for thread, spans in times.on_core.items()
        for start, end in spans
        if thread[0] == lane[0] and thread not in mine
    )


def _threads(plan: Plan, times: HostTimes, window: Span, starts: Sequence[Key]) -> list[Answers]:
    driving = times.driving(window)
    names = {(each.process, each.id): each.name for each in plan.threads}
    rows = []
    for thread, found in threads(times, window).items():
        if thread not in driving and not found["on_core_ns"]:
            continue
        recorded = [found["recorded_ns"]]
        rows.append(
            {
                "process_id": thread[0],
                "thread_id": thread[1],
                "name": names[int(thread[0] or 0), int(thread[1] or 0)],
                "driving": thread in driving,
                "cpu_source": source(recorded, window) if thread in driving else "scheduling",
                "on_core_ns": found["on_core_ns"] if thread in times.on_core else None,
                "busy_ns": found["busy_ns" if thread in driving else "on_core_ns"],
                "waiting": {f"{kind}_ns": found[f"waiting.{kind}_ns"] for kind in KINDS},
                "calls": starts.count(thread),
            }
        )
    return rows


def _cpu(times: HostTimes, window: Span, cores: int | None) -> Answers:
    spans = [span for mine in times.on_core.values() for span in mine]
    low = max(window[0], min((start for start, _ in spans), default=0))
    high = min(window[1], max((end for _, end in spans), default=0))
    scheduled = max(0, high - low)
    inside = sum(max(0, min(end, window[1]) - max(start, window[0])) for start, end in spans)
    return {
        "cores": cores,
        "on_core_ns": inside if scheduled else None,
        "scheduled_ns": scheduled,
        "utilization": inside / (cores * scheduled) if scheduled and cores else None,
    }
