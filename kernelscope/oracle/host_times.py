"""Host and devices together, by walking from one moment at which something changes to the next.

Written to be checked by eye, like :mod:`kernelscope.oracle.sweep`, and to hold any trace against:
what the walk needs to know stands in a :class:`HostTimes`, however it was found. Shares nothing
with :mod:`kernelscope.metrics`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Answers = dict[str, Any]
Span = tuple[int, int]
Key = tuple[int | None, int | None]
"""(process, thread), or (process, device)."""

KINDS: tuple[str, ...] = ("synchronization", "copy", "allocation", "module", "queue")
"""What a thread can wait for; where several hold, the first does."""

RELIABLE = 1_000_000
"""A call that begins this long before a thread's first time on a core, or after its last, tells
that scheduling was not recorded of it then, ns."""


@dataclass(frozen=True, slots=True)
class HostTimes:
    """When everything was going on that overlap depends on.

    Attributes
    ----------
    device : mapping of (process, device) to spans
        When the process had something there.
    calls, on_core, ranges : mapping of (process, thread) to spans
        CUDA calls without wrappers, time on cores, NVTX ranges.
    waits : mapping of (process, thread) to (start, end, kind)
        Waiting inside the calls, each with a place in :data:`KINDS`.
    """

    device: Mapping[Key, Sequence[Span]]
    calls: Mapping[Key, Sequence[Span]]
    waits: Mapping[Key, Sequence[tuple[int, int, int]]]
    on_core: Mapping[Key, Sequence[Span]] = field(default_factory=dict)
    ranges: Mapping[Key, Sequence[Span]] = field(default_factory=dict)

    def recorded(self, thread: Key) -> Span | None:
        """Return from when to when scheduling was recorded of a thread; None where it was not."""
        if thread not in self.on_core:
            return None
        every = [span for spans in self.on_core.values() for span in spans]
        low, high = min(start for start, _ in every), max(end for _, end in every)
        first = min(start for start, _ in self.on_core[thread])
        last = max(end for _, end in self.on_core[thread])
        begun = [start for start, _ in self.calls[thread] if low <= start <= high]
        if any(start < first - RELIABLE for start in begun):
            low = first
        if any(start > last + RELIABLE for start in begun):
            high = last
        return low, high

    def driving(self, window: Span) -> list[Key]:
        """Return the threads that were inside a call in the window."""
        return [
            thread
            for thread, spans in self.calls.items()
            if any(
                (start < window[1] and end > window[0])
                or (start == end and window[0] <= start <= window[1])
                for start, end in spans
            )
        ]


Open = Counter[tuple[Any, ...]]
"""How many of each (what, whose) are open."""


def walk(times: HostTimes, window: Span) -> Iterator[tuple[int, Open]]:
    """Yield the stretches of a window in which nothing changes: their length, and what is open."""
    spans: list[tuple[int, int, tuple[Any, ...]]] = []
    for what in ("device", "calls", "on_core", "ranges"):
        for key, mine in getattr(times, what).items():
            spans += [(start, end, (what, key)) for start, end in mine]
    for key, waits in times.waits.items():
        spans += [(start, end, ("waits", key, kind)) for start, end, kind in waits]
    for thread in times.calls:
        recorded = times.recorded(thread)
        spans += [] if recorded is None else [(*recorded, ("recorded", thread))]
    changes: dict[int, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for start, end, key in spans:
        begin, stop = max(start, window[0]), min(end, window[1])
        if begin < stop:
            changes[begin].append((1, key))
            changes[stop].append((-1, key))
    moments = sorted({*changes, *window})
    opened: Open = Counter()
    for begin, stop in pairwise(moments):
        for by, key in changes[begin]:
            opened[key] += by
        yield stop - begin, opened


@dataclass(frozen=True, slots=True)
class Doing:
    """What a thread does in one stretch: `busy`, `maybe` busy, `waits` for a kind, or nothing."""

    recorded: bool
    busy: bool
    maybe: bool
    waits: int | None


def doing(thread: Key, opened: Open) -> Doing:
    """Return what a thread does while certain things are open."""
    waits = next((k for k in range(len(KINDS)) if opened["waits", thread, k]), None)
    recorded = opened["recorded", thread] > 0
    at_work = opened["on_core" if recorded else "calls", thread] > 0
    may_be = at_work or (not recorded and opened["ranges", thread] > 0)
    return Doing(recorded, at_work and waits is None, may_be and waits is None, waits)


def states(
    times: HostTimes, window: Span, driving: Sequence[Key] | None = None
) -> dict[Key, Counter[str]]:
    """Return for each (process, device) how long each state, bound and kind of wait lasts, ns.

    Processes without driving threads have no entry. Which threads these are is asked of the
    window where it is not given.
    """
    driving = times.driving(window) if driving is None else driving
    lanes = [lane for lane in times.device if any(lane[0] == thread[0] for thread in driving)]
    found: dict[Key, Counter[str]] = {lane: Counter() for lane in lanes}
    for length, opened in walk(times, window):
        does = {thread: doing(thread, opened) for thread in driving}
        for lane in lanes:
            mine = [each for thread, each in does.items() if thread[0] == lane[0]]
            gpu, busy = opened["device", lane] > 0, any(each.busy for each in mine)
            found[lane][_STATE[gpu, busy]] += length
            found[lane][_BOUND[gpu, any(each.maybe for each in mine)]] += length
            if not all(each.recorded for each in mine):
                found[lane]["unscheduled_ns"] += length
            waits = [each.waits for each in mine if each.waits is not None]
            if waits and not busy:
                found[lane][f"waiting.{KINDS[min(waits)]}_ns"] += length
    return found


_STATE = {
    (True, True): "both_ns", (True, False): "gpu_only_ns",
    (False, True): "cpu_only_ns", (False, False): "neither_ns",
}  # fmt: skip
_BOUND = {
    (True, True): "both_high_ns", (True, False): "gpu_only_low_ns",
    (False, True): "cpu_only_high_ns", (False, False): "neither_low_ns",
}  # fmt: skip


def threads(times: HostTimes, window: Span) -> dict[Key, Counter[str]]:
    """Return for each thread how long it was on a core, busy, and in each kind of wait, ns."""
    found: dict[Key, Counter[str]] = {each: Counter() for each in times.calls}
    for length, opened in walk(times, window):
        for thread, mine in found.items():
            does = doing(thread, opened)
            mine["recorded_ns"] += length * does.recorded
            mine["busy_ns"] += length * does.busy
            if does.waits is not None:
                mine[f"waiting.{KINDS[does.waits]}_ns"] += length
    for thread, spans in times.on_core.items():
        core = sum(max(0, min(end, window[1]) - max(start, window[0])) for start, end in spans)
        found.setdefault(thread, Counter(busy_ns=core))["on_core_ns"] = core
    return found


def source(recorded_ns: Sequence[int], window: Span) -> str:
    """Name what tells when threads of which scheduling was recorded for so long were busy."""
    length = window[1] - window[0]
    if all(each == length for each in recorded_ns):
        return "scheduling"
    return "scheduling and api_calls" if any(recorded_ns) else "api_calls"
