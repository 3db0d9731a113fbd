"""Idle time explained the slow, obvious way: one look at every moment, from METRICS' own words.

Between two neighbouring edges of anything that was recorded nothing changes, so that one look at
each such moment is a look at every nanosecond. Nothing of the implementation is used but the
lists of names: what a call's name says, which overheads are flushes, what names fetch data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from kernelscope.metrics.call_classes import class_of
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.data_loading import os_call_loads_data, range_loads_data
from kernelscope.metrics.idle_profiler import FLUSHES
from kernelscope.metrics.iteration_family import fold
from kernelscope.trace import Trace

US = 1000
Row = dict[str, Any]
Piece = tuple[int, int, int, str, str]

BLOCKS = {
    "copy": "blocked: copy", "memset": "blocked: copy", "allocation": "blocked: allocation",
    "free": "blocked: allocation", "module": "blocked: module", "launch": "blocked: module",
}  # fmt: skip


@dataclass(eq=False)
class Activity:
    device: int
    table: str
    row: int
    event: Row
    call: Row | None = None
    marks: list[int] = field(default_factory=list)

    @property
    def start(self) -> int:
        return int(self.event["start_ns"])

    @property
    def end(self) -> int:
        return int(self.event["end_ns"])

    @property
    def rank(self) -> tuple[Any, ...]:
        stream = self.event["stream_id"]
        tables = ("kernels", "copies", "graphs")
        return (
            self.start, stream is not None, stream or 0, tables.index(self.table), self.row,
        )  # fmt: skip


Gap = tuple[int, int, Activity | None]


def inside(event: Row, t: int) -> bool:
    return bool(event["start_ns"] <= t < event["end_ns"])


class Slow:
    def __init__(self, trace: Trace, device_of: dict[tuple[int | None, int], int]) -> None:
        self.tables = {name: table.records() for name, table in trace.tables.items()}
        self.calls = [c for c in self.tables["api_calls"] if c["kind"] != "wrapper"]
        self.device_of = device_of
        self.activities = list(self._activities())

    def launch(self, event: Row) -> Row | None:
        """The innermost call with the event's process and correlation id."""
        if event["correlation_id"] is None:
            return None
        key = ("process_id", "correlation_id")
        found = [c for c in self.calls if all(c[k] == event[k] for k in key)]
        best = None
        for call in found:
            if best is None or call["start_ns"] >= best["start_ns"]:
                best = call
        return best

    def _activities(self) -> Iterator[Activity]:
        for table in ("kernels", "copies", "graphs"):
            for row, event in enumerate(self.tables[table]):
                if event.get("kind") == "HtoH":
                    continue
                device = self.device_of[event["process_id"], event["device_id"]]
                call = self.launch(event)
                found = Activity(device, table, row, event, call, [device])
                for end in ("src_device_id", "dst_device_id"):
                    if event.get(end) is not None:
                        other = self.device_of.get((event["process_id"], event[end]))
                        if other is not None:
                            found.marks.append(other)
                yield found

    # -- states of a thread -------------------------------------------------------------------

    def of_thread(self, table: Sequence[Row], thread: tuple[int, int], t: int) -> list[Row]:
        return [
            row
            for row in table
            if (row["process_id"], row["thread_id"]) == thread and inside(row, t)
        ]

    def scheduled(self, thread: tuple[int, int], t: int) -> bool:
        rows = self.tables["on_core"]
        own = [r for r in rows if (r["process_id"], r["thread_id"]) == thread]
        if not own:
            return False
        low, high = min(r["start_ns"] for r in rows), max(r["end_ns"] for r in rows)
        first, last = min(r["start_ns"] for r in own), max(r["end_ns"] for r in own)
        for call in self.calls:
            if (call["process_id"], call["thread_id"]) == thread:
                # Who calls is on a core: the records of this thread do not reach so far.
                if low <= call["start_ns"] < first - 1000 * US:
                    low = first
                if last + 1000 * US < call["start_ns"] <= high:
                    high = last
        return bool(low <= t < high)

    def asleep(self, thread: tuple[int, int], t: int) -> bool:
        core = self.of_thread(self.tables["on_core"], thread, t)
        return self.scheduled(thread, t) and not core

    def wait(self, call: Row, t: int) -> str | None:
        """What a call waits for at a moment inside it."""
        kind = class_of(call["name"])
        if kind == "synchronization":
            return "synchronization"
        if kind in BLOCKS and t >= call["start_ns"] + 50 * US:
            return BLOCKS[kind]
        return None

    def state(self, thread: tuple[int, int], t: int) -> tuple[str, str]:  # noqa: PLR0911 - the list
        calls = self.of_thread(self.calls, thread, t)
        number = {id(call): i for i, call in enumerate(self.calls)}
        inner = sorted(calls, key=lambda c: (c["start_ns"], -c["end_ns"], number[id(c)]))
        syncs = [c for c in inner if self.wait(c, t) == "synchronization"]
        if syncs:
            return "host: synchronization", syncs[-1]["name"]
        blocked = [c for c in inner if self.wait(c, t)]
        # Of blocked calls the one whose wait began last; 50 µs behind its start, as all of them.
        if blocked:
            what = str(self.wait(blocked[-1], t))
            return "host: " + what.replace(": ", "_"), blocked[-1]["name"]
        if inner:
            return "host: cuda_call", inner[-1]["name"]
        ranges = self.of_thread(self.tables["ranges"], thread, t)
        spoken = [(r["start_ns"], -r["end_ns"], 0, i, r) for i, r in enumerate(ranges)]
        osc = self.of_thread(self.tables["os_calls"], thread, t)
        spoken += [(r["start_ns"], -r["end_ns"], 1, i, r) for i, r in enumerate(osc)]
        if spoken:
            *_, is_os, _, last = max(spoken, key=lambda s: s[:4])
            name = last["name"] if is_os else fold(last["name"])
            loading = any(range_loads_data(r["name"], r["domain"]) for r in ranges)
            if loading or (is_os and os_call_loads_data(last["name"])):
                return "host: data_loading", name
            if is_os:
                return "host: os_call", name
            return "host: range", name + (" (asleep)" if self.asleep(thread, t) else "")
        if self.asleep(thread, t):
            return "host: off_core", self.elsewhere(thread, t)
        return "host: code", "" if self.scheduled(thread, t) else "scheduling not recorded"

    def elsewhere(self, thread: tuple[int, int], t: int) -> str:
        nothing = "thread asleep, nothing recorded"
        driving = sorted(
            {
                (c["process_id"], c["thread_id"])
                for c in self.calls
                if c["process_id"] == thread[0] and c["thread_id"] is not None
            }
            - {thread}
        )
        for other in driving:
            if not self.of_thread(self.tables["on_core"], other, t) or not self.scheduled(other, t):
                continue
            if any(self.wait(c, t) for c in self.of_thread(self.calls, other, t)):
                continue
            what = self.state(other, t)[1] or "host code"
            return f"{nothing}; another driving thread: {what}"
        return nothing

    def profiled(self, thread: tuple[int, int] | None, t: int) -> bool:
        if thread is None:
            return False
        rows = [
            row
            for row in self.tables["overheads"]
            if inside(row, t)
            and row["process_id"] == thread[0]
            and any(re.fullmatch(pattern, row["name"]) for pattern in FLUSHES)
        ]
        if any(row["thread_id"] == thread[1] for row in rows):
            return True
        away = self.asleep(thread, t) or bool(self.of_thread(self.calls, thread, t))
        return bool(rows) and away

    # -- gaps ---------------------------------------------------------------------------------

    def gaps(self, device: int, low: int, high: int) -> list[Gap]:
        mine = sorted((a for a in self.activities if device in a.marks), key=lambda a: a.rank)
        found: list[Gap] = []
        reached = low
        for activity in mine:
            if activity.start > reached:
                found.append((reached, activity.start, activity))
            reached = max(reached, activity.end)
        if reached < high:
            found.append((reached, high, None))
        return found

    def pieces(self, low: int, high: int) -> list[Piece]:
        """(device, start, end, cause, detail), neighbours of one gap that are alike as one."""
        found: list[Piece] = []
        for device in sorted(set(self.device_of.values())):
            if not any(a.device == device for a in self.activities):
                continue
            gaps = self.gaps(device, low, high)
            limit = self.ordinary(device, gaps)
            for gap in gaps:
                found += self.explained(device, gap, limit)
        return found

    def thread_of(self, call: Row | None) -> tuple[int, int] | None:
        if call is None or call["thread_id"] is None:
            return None
        return call["process_id"], call["thread_id"]

    def moments(self, start: int, end: int) -> list[int]:
        edges = {start, end}
        for table in ("api_calls", "ranges", "os_calls", "on_core", "overheads"):
            for row in self.tables[table]:
                edges |= {row["start_ns"], row["end_ns"], row["start_ns"] + 50 * US}
        return sorted(t for t in edges if start <= t <= end)

    def rest(self, gap: Gap) -> int:
        """The length of a gap without the profiler's share."""
        thread = self.thread_of(gap[2].call) if gap[2] else None
        return sum(
            b - a for a, b in pairwise(self.moments(*gap[:2])) if not self.profiled(thread, a)
        )

    def in_graph(self, gap: Gap) -> bool:
        start, _, ending = gap
        if ending is None or ending.event["correlation_id"] is None:
            return False
        call = ending.call
        node = ending.event.get("graph_node_id") is not None
        if not node and not (call and "GraphLaunch" in call["name"]):
            return False
        key = ("process_id", "correlation_id")
        others = self.tables["kernels"] + self.tables["copies"]
        return any(
            all(e[k] == ending.event[k] for k in key) and e["start_ns"] <= start for e in others
        )

    def ordinary(self, device: int, gaps: list[Gap]) -> float:
        lengths = []
        for gap in gaps:
            start, _, ending = gap
            if ending is None or ending.call is None or self.in_graph(gap):
                continue
            if self.leading(device, gap):
                continue
            if start - ending.call["end_ns"] >= 10 * US and self.rest(gap):
                lengths.append(self.rest(gap))
        usual = 3 * median(lengths) if len(lengths) >= 10 else 0
        return max(5 * US, min(usual, 50 * US))

    def leading(self, device: int, gap: Gap) -> bool:
        return not any(device in a.marks and a.start <= gap[0] for a in self.activities)

    def explained(self, device: int, gap: Gap, limit: float) -> list[Piece]:
        start, end, ending = gap
        mine = [a for a in self.activities if device in a.marks]
        leading = self.leading(device, gap)
        if ending is None:
            last = max(a.end for a in mine)
            decides = min((a for a in mine if a.end == last), key=self.order_of_end)
            call = decides.call
        else:
            call = ending.call
        thread = self.thread_of(call)
        found: list[Piece] = []
        edges = self.moments(start, end)
        if call is not None:
            edges += [t for t in (call["start_ns"], call["end_ns"]) if start < t < end]
        for a, b in pairwise(sorted(set(edges))):
            if self.profiled(thread, a):
                label = ("profiler", "")
            elif ending is None:
                label = ("after_last", "")
            elif leading:
                label = ("before_first", "")
            elif self.in_graph(gap):
                label = ("intra_graph", "")
            elif call is None:
                kind = ending.event.get("kind") or ""
                label = ("unknown_launch", "migration" if kind.startswith("unified") else "")
            else:
                label = self.by_call(device, gap, call, a, limit)
            if found and found[-1][3:] == label and found[-1][2] == a:
                found[-1] = (device, found[-1][1], b, *label)
            else:
                found.append((device, a, b, *label))
        return found

    def order_of_end(self, activity: Activity) -> tuple[Any, ...]:
        tables = ("kernels", "copies", "graphs")
        return (activity.start, tables.index(activity.table), activity.row)

    def by_call(self, device: int, gap: Gap, call: Row, t: int, limit: float) -> tuple[str, str]:
        start, _, ending = gap
        assert ending is not None
        name = call["name"]
        held = f"{name} ({self.wait(call, t)})" if inside(call, t) and self.wait(call, t) else ""
        if call["start_ns"] > start:
            if t >= call["start_ns"]:
                return "launch_latency", held
            thread = self.thread_of(call)
            return self.state(thread, t) if thread else ("host: unknown", "")
        if call["end_ns"] > start:
            return ("in_call", held or name) if t < call["end_ns"] else ("launch_latency", "")
        if start - call["end_ns"] < 10 * US:
            return "launch_latency", ""
        if self.rest(gap) <= limit:
            return "kernel_to_kernel", ""
        evidence = self.evidence(gap, device)
        return ("dependency", evidence) if evidence else ("unexplained", "")

    # -- evidence -----------------------------------------------------------------------------

    def evidence(self, gap: Gap, device: int) -> str:
        start, end, ending = gap
        assert ending is not None
        if any(0 <= end - t <= 10 * US for t in self.released(ending)):
            return "stream wait"
        for other in self.activities:
            near = 0 <= end - other.end <= 10 * US
            if near and self.peers(ending, other, device):
                return "peer"
        for other in self.activities:
            kind = other.event.get("kind") or ""
            if kind.startswith("unified") and other.end == start and other.device == device:
                return "migration"
        return ""

    def peers(self, one: Activity, other: Activity, device: int) -> bool:
        if one.table == other.table == "kernels":
            talk = is_communication([one.event["name"], other.event["name"]])
            return bool(talk.all()) and other.device != device
        if one.table == other.table == "copies":
            both = one.event["kind"] == other.event["kind"] == "PtoP"
            away = set(one.marks) - {device}
            return both and bool(away & set(other.marks)) and other.end > other.start
        return False

    def released(self, activity: Activity) -> list[int]:
        """When the work ended that each wait before an activity was for."""
        stream = self.stream(activity.event)
        assert activity.call is not None
        at = activity.call["start_ns"]
        same = [
            a.call["start_ns"]
            for a in self.activities_with_host()
            if a.call and self.stream(a.event) == stream and a.call["start_ns"] < at
        ]
        since = max(same, default=-1)
        ends = []
        for wait in self.tables["syncs"]:
            if wait["kind"] != "stream_wait_event" or self.stream(wait) != stream:
                continue
            if not since < wait["start_ns"] <= at:
                continue
            records = []
            for i, record in enumerate(self.tables["event_records"]):
                call = self.launch(record)
                keys = ("process_id", "event_id")
                if call and all(record[k] == wait[k] for k in keys):
                    records.append((call["start_ns"], i, record))
            past = [r for r in records if r[0] <= wait["start_ns"]]
            if not past:
                continue
            time, _, record = max(past, key=lambda r: r[:2])
            if self.stream(record) == stream:
                continue
            work = [
                (a.call["start_ns"], a.end)
                for a in self.activities_with_host()
                if a.call
                and self.stream(a.event) == self.stream(record)
                and a.call["start_ns"] < time
            ]
            if work:
                ends.append(max(work)[1])
        return ends

    def activities_with_host(self) -> list[Activity]:
        found = []
        for table in ("kernels", "copies", "graphs"):
            for row, event in enumerate(self.tables[table]):
                found.append(Activity(0, table, row, event, self.launch(event)))
        return found

    def stream(self, row: Row) -> tuple[Any, ...]:
        return row["process_id"], row["context_id"], row["stream_id"]
