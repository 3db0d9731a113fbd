"""Answers about NVTX ranges and iterations: whose launches are whose.

Only what the plan can say without a judgement: a launch belongs to the ranges open on its own
thread when the call began. Which launches *inherit* a range from another thread is a matter of
rules, and not answered here; an iteration's period is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelscope.oracle.events import Call, Copy, Graph, Kernel, Memset, Range
from kernelscope.oracle.plan import Plan

Answers = dict[str, Any]
Key = tuple[int, str, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Launched:
    """Something on a device, and the call that caused it."""

    start: int
    end: int
    is_kernel: bool
    is_opaque: bool
    call: Call


@dataclass(frozen=True, slots=True)
class Opened:
    """A range, the moment at which it counts as closed, and its path."""

    range: Range
    end: int
    path: tuple[str, ...]

    def holds(self, launched: Launched) -> bool:
        """Tell whether the launch was called on the range's thread while it was open."""
        call = launched.call
        same = (call.process, call.thread) == (self.range.process, self.range.thread)
        return same and self.range.start <= call.start < self.end


def launched_of(
    rows: Sequence[Kernel | Copy | Memset | Graph], calls: Sequence[Call]
) -> list[Launched]:
    """Join device activity and calls on process and correlation id; the innermost call wins."""
    by_id = launches_by_id(calls)
    return [
        Launched(
            row.start,
            row.end,
            isinstance(row, Kernel),
            isinstance(row, Graph),
            by_id[row.process, row.correlation],
        )
        for row in rows
        if (row.process, row.correlation) in by_id
    ]


def launches_by_id(calls: Sequence[Call]) -> dict[tuple[int, int], Call]:
    """Return the call that each process and correlation id stand for: of several the innermost."""
    by_id: dict[tuple[int, int], Call] = {}
    for call in calls:
        key = (call.process, call.correlation)
        known = by_id.get(key)
        if call.kind != "wrapper" and (known is None or call.start >= known.start):
            by_id[key] = call
    return by_id


def opened(plan: Plan) -> list[Opened]:
    """Return the ranges with their paths: the names around them on their thread and domain."""
    rows = plan.ranges.rows(Range)
    ends = [plan.end if row.end is None else row.end for row in rows]
    lanes: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        if row.style == "push_pop":
            lanes[row.process, row.thread, row.domain].append(i)
    paths: dict[int, tuple[str, ...]] = {}
    for lane in lanes.values():
        stack: list[int] = []
        for i in sorted(lane, key=lambda i: (rows[i].start, -ends[i], i)):
            while stack and ends[stack[-1]] <= rows[i].start:
                stack.pop()
            around = paths[stack[-1]] if stack else ()
            paths[i] = (*around, rows[i].name)
            stack.append(i)
    return [Opened(row, ends[i], paths.get(i, (row.name,))) for i, row in enumerate(rows)]


def range_answers(
    plan: Plan,
    kernels: Sequence[Kernel],
    calls: Sequence[Call],
    others: Sequence[Copy | Memset | Graph],
) -> Answers:
    """Return ``ranges``, one row a path, ``ranges_by_name``, and ``without_range``.

    Each row's ``direct`` figures are of launches by the range's own thread while it was open:
    number and time of kernels, the same less what ranges further in hold (``self``), and the
    projection and busy time of kernels and `others`: copies, memsets and opaque graphs.
    """
    ranges = opened(plan)
    launched = launched_of((*kernels, *others), calls)
    groups: dict[Key, list[Opened]] = defaultdict(list)
    for each in ranges:
        row = each.range
        groups[row.process, row.domain, row.style, each.path].append(each)
    rows = [_row(key, mine, ranges, launched) for key, mine in groups.items()]
    names: dict[tuple[str, str, str], list[Opened]] = defaultdict(list)
    for each in ranges:
        names[each.range.name, each.range.domain, each.range.style].append(each)
    by_name = [
        {
            **dict(zip(("name", "domain", "style"), key, strict=True)),
            **_figures(mine, launched),
        }
        for key, mine in names.items()
    ]
    outside = [
        each
        for each in launched
        if each.is_kernel and not any(other.holds(each) for other in ranges)
    ]
    return {
        "ranges": sorted(rows, key=lambda row: (-row["host_ns"], row["path"])),
        "ranges_by_name": sorted(by_name, key=lambda row: (-row["host_ns"], row["name"])),
        "without_range": {
            "kernels": len(outside),
            "total_ns": sum(each.end - each.start for each in outside),
        },
    }


def _row(
    key: Key, mine: Sequence[Opened], ranges: Sequence[Opened], launched: Sequence[Launched]
) -> Answers:
    process, domain, style, path = key
    deeper = [
        one
        for one in ranges
        if (one.range.process, one.range.domain, one.range.style) == key[:3]
        and len(one.path) > len(path)
        and one.path[: len(path)] == path
    ]
    own = [
        each
        for each in launched
        if each.is_kernel
        and any(one.holds(each) for one in mine)
        and not any(one.holds(each) for one in deeper)
    ]
    figures = _figures(mine, launched)
    figures["direct"] |= {
        "self_kernels": len(own),
        "self_kernel_ns": sum(each.end - each.start for each in own),
    }
    return {
        "path": list(path),
        "name": path[-1],
        "domain": domain,
        "style": style,
        "process_id": process,
        **figures,
    }


def _figures(mine: Sequence[Opened], launched: Sequence[Launched]) -> Answers:
    """Return what several instances hold together; whatever two of them hold counts once."""
    held = [[each for each in launched if one.holds(each)] for one in mine]
    work = [each for each in launched if any(one.holds(each) for one in mine)]
    kernels = [each for each in work if each.is_kernel]
    spans = [(min(w.start for w in ws), max(w.end for w in ws)) for ws in held if ws]
    return {
        "instances": len(mine),
        "host_ns": sum(one.end - one.range.start for one in mine),
        "direct": {
            "kernels": len(kernels),
            "kernel_ns": sum(each.end - each.start for each in kernels),
            "opaque_ns": sum(each.end - each.start for each in work if each.is_opaque),
            "projected_ns": sum(end - start for start, end in spans),
            "projected_union_ns": _union(spans),
            "busy_ns": _union([(each.start, each.end) for each in work]),
        },
    }


def _union(spans: Sequence[tuple[int, int]]) -> int:
    """Return how much time is covered by at least one span, ns."""
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def folded(name: str) -> str:
    """Return a name with its digits folded: ``step 12`` is ``step #``."""
    return re.sub(r"\d+", "#", name)


def iteration_answers(plan: Plan, kernels: Sequence[Kernel], calls: Sequence[Call]) -> Answers:
    """Return ``iterations`` where the plan names a family, else nothing.

    An iteration lasts until the next begins; the last ends with its range and has no period.
    ``launched`` is the work that any thread of the process launched in that time.
    """
    marks = sorted(
        (row for row in plan.ranges.rows(Range) if folded(row.name) == plan.iteration_family),
        key=lambda row: row.start,
    )
    if not marks:
        return {}
    launched = launched_of(kernels, calls)
    rows = []
    for index, mark in enumerate(marks):
        last = index + 1 == len(marks)
        end = (mark.end or plan.end) if last else marks[index + 1].start
        mine = [
            each
            for each in launched
            if each.call.process == mark.process and mark.start <= each.call.start < end
        ]
        length = (mark.end or plan.end) - mark.start
        rows.append(
            {
                "index": index,
                "label": mark.name,
                "start_ns": mark.start,
                "period_ns": None if last else end - mark.start,
                "range_ns": length,
                "outside_ns": None if last else end - mark.start - length,
                "launched": {
                    "kernels": len(mine),
                    "kernel_ns": sum(each.end - each.start for each in mine),
                },
            }
        )
    return {"iterations": {"family": plan.iteration_family, "count": len(rows), "rows": rows}}
