"""What an analysis must find, computed from the plan and never from a file.

The answers have the shape of ``kernelscope analyze --format json``. They are computed by slow,
obvious means: whoever doubts a figure can follow it with a pencil. Nothing here imports
:mod:`kernelscope.metrics`. What a plan cannot say (how a file was read, which health messages a
reader words how) is not here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope.oracle.device_answers import activities_of, device_answers
from kernelscope.oracle.events import (
    Call,
    Copy,
    Graph,
    Kernel,
    Memset,
    OsCall,
    Overhead,
    Range,
    Sync,
)
from kernelscope.oracle.graph_answers import graph_answers, opaque_graphs
from kernelscope.oracle.plan import Events, Plan
from kernelscope.oracle.range_answers import iteration_answers, range_answers
from kernelscope.oracle.summaries import summary
from kernelscope.trace import Categorical

Answers = dict[str, Any]
Timed = Kernel | Call | Copy | Memset | Overhead

FAMILY_OF_TABLE: Mapping[str, tuple[str, type[Any]]] = {
    "kernels": ("kernels", Kernel),
    "calls": ("api_calls", Call),
    "copies": ("copies", Copy),
    "memsets": ("copies", Memset),
    "graphs": ("graphs", Graph),
    "syncs": ("syncs", Sync),
    "ranges": ("ranges", Range),
    "overheads": ("overheads", Overhead),
    "os_calls": ("os_calls", OsCall),
}
"""Table of a plan → the table that an analysis files its rows under, and their class."""


def answers(
    plan: Plan, *, generation: str = "2025.5", window: tuple[int, int] | None = None
) -> Answers:
    """Return what an analysis of `plan`, exported as `generation`, must find.

    Parameters
    ----------
    plan : Plan
        What happened. Plain loops run over it: meant for up to some ten thousand events.
    generation : str
        The export's generation; it decides whether ordinals of several processes can be told
        apart.
    window : (int, int), optional
        ``[start, end)`` in ns; by default from the first to the last device activity or CUDA
        call. Ranges and iterations are those of the whole run and left out with a window.

    Returns
    -------
    dict
        ``window, kernels, launch_shapes, api_calls, copies, copies_by_kind, devices,
        device_processes, streams, gaps, shared_devices, capture_cost, quarantined,
        starts_before_launch, facts``, and where there is no `window` and the plan has ranges
        ``ranges``, ``ranges_by_name``, ``without_range``, ``graph_kernels`` and ``iterations``.
    """
    kernels = plan.kernels.rows(Kernel)
    calls = plan.calls.rows(Call)
    copies = plan.copies.rows(Copy)
    memsets = plan.memsets.rows(Memset)
    good = (_good(kernels), _good(calls), _good(copies), _good(memsets))
    graphs = _good(opaque_graphs(plan))
    start, end = window or whole_window(*good, graphs)
    found: Answers = {
        "window": {"start_ns": start, "end_ns": end, "duration_ns": end - start},
        **_kernel_tables(good[0], start, end),
        "api_calls": _api_calls(good[1], start, end),
        **_copy_tables(good[2], good[3], start, end),
        **device_answers(
            plan,
            activities_of(good[0], good[2], good[3], graphs),
            generation,
            (start, end),
        ),
        "capture_cost": _capture_cost(_good(plan.overheads.rows(Overhead)), start, end),
        "quarantined": quarantined(plan),
        "starts_before_launch": _starts_before_launch(good[0], good[1]),
        "facts": dict(plan.facts),
    }
    if window is None and len(plan.ranges):
        found |= range_answers(plan, good[0], good[1], (*good[2], *good[3], *graphs))
        found |= graph_answers(plan, good[0], good[1])
        found |= iteration_answers(plan, good[0], good[1])
    return found


def believable(event: Any) -> bool:
    """Tell whether an event's times can be true: others are quarantined."""
    return event.end is None or (event.end >= event.start and event.end != 0)


def _good(rows: Sequence[Any]) -> list[Any]:
    return [row for row in rows if believable(row)]


def quarantined(plan: Plan) -> dict[str, int]:
    """Return how many rows of each table an analysis leaves out."""
    counts: dict[str, int] = defaultdict(int)
    for table, (family, kind) in FAMILY_OF_TABLE.items():
        rows = opaque_graphs(plan) if kind is Graph else getattr(plan, table).rows(kind)
        counts[family] += sum(1 for row in rows if not believable(row))
    return dict(counts)


def whole_window(*tables: Iterable[Any]) -> tuple[int, int]:
    """Return the earliest start and the latest end of all rows; (0, 0) without any."""
    rows = [row for table in tables for row in table]
    if not rows:
        return (0, 0)
    return (min(row.start for row in rows), max(row.end for row in rows))


def counted(row: Any, start: int, end: int) -> bool:
    """Tell whether an event starts in the window; without length also at its very end."""
    return bool(start <= row.start < end or row.start == row.end == end)


def clipped(row: Any, start: int, end: int) -> int:
    """Return how much of an event lies in the window, ns."""
    return max(0, min(int(row.end), end) - max(int(row.start), start))


def _totals(rows: Sequence[Any], start: int, end: int, count_as: str) -> Answers:
    """Return how many start in the window, their time in it, and their statistics."""
    durations = [row.end - row.start for row in rows if counted(row, start, end)]
    return {
        count_as: len(durations),
        "total_ns": sum(clipped(row, start, end) for row in rows),
        **summary(durations),
    }


def _grouped(rows: Iterable[Any], key: Any, start: int, end: int) -> list[tuple[Any, list[Any]]]:
    """Return rows that are counted in the window or reach into it, by key."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        if counted(row, start, end) or clipped(row, start, end):
            groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda item: str(item[0]))


def _by_total(rows: Iterable[Answers], *names: str) -> list[Answers]:
    return sorted(
        rows, key=lambda row: (-row["total_ns"], *(str(row[name] or "") for name in names))
    )


def _kernel_tables(kernels: Sequence[Kernel], start: int, end: int) -> Answers:
    whole = sum(clipped(row, start, end) for row in kernels)
    length = end - start

    def row_of(rows: Sequence[Kernel]) -> Answers:
        totals = _totals(rows, start, end, "executions")
        return totals | {
            "share": totals["total_ns"] / whole if whole else None,
            "share_of_window": totals["total_ns"] / length if length else None,
        }

    by_name = [
        {"name": name, **row_of(rows), "by_device": _by_device(rows, start, end)}
        for name, rows in _grouped(kernels, lambda row: row.name, start, end)
    ]
    by_shape = [
        {"name": name, "grid": list(grid), "block": list(block), **row_of(rows)}
        for (name, grid, block), rows in _grouped(kernels, _shape, start, end)
    ]
    return {
        "kernels": _by_total(by_name, "name"),
        "launch_shapes": _by_total(by_shape, "name", "grid", "block"),
    }


def _shape(row: Kernel) -> tuple[str, tuple[int, int, int], tuple[int, int, int]]:
    grid = (row.grid_x, row.grid_y, row.grid_z)
    return (row.name, grid, (row.block_x, row.block_y, row.block_z))


def _by_device(rows: Sequence[Kernel], start: int, end: int) -> list[Answers]:
    return [
        {
            "process_id": process,
            "device_id": device,
            "executions": sum(1 for row in mine if counted(row, start, end)),
            "total_ns": sum(clipped(row, start, end) for row in mine),
        }
        for (process, device), mine in sorted(
            _grouped(rows, lambda row: (row.process, row.device), start, end)
        )
    ]


def _api_calls(calls: Sequence[Call], start: int, end: int) -> list[Answers]:
    real = [call for call in calls if call.kind != "wrapper"]
    return _by_total(
        (
            {"name": name, **_totals(rows, start, end, "calls")}
            for name, rows in _grouped(real, lambda row: row.name, start, end)
        ),
        "name",
    )


def _copy_tables(
    copies: Sequence[Copy], memsets: Sequence[Memset], start: int, end: int
) -> Answers:
    rows = (*copies, *memsets)

    def key(row: Copy | Memset) -> tuple[str, str | None, str | None]:
        if isinstance(row, Memset):
            return ("memset", None, row.memory)
        return (row.kind, row.src_memory, row.dst_memory)

    detailed = [
        {"kind": kind, "src_memory": src, "dst_memory": dst, **_copied(mine, start, end)}
        for (kind, src, dst), mine in _grouped(rows, key, start, end)
    ]
    by_kind = [
        {"kind": kind, **_copied(mine, start, end)}
        for kind, mine in _grouped(rows, lambda row: key(row)[0], start, end)
    ]
    return {
        "copies": _by_total(detailed, "kind", "src_memory", "dst_memory"),
        "copies_by_kind": _by_total(by_kind, "kind"),
    }


def _copied(rows: Sequence[Copy | Memset], start: int, end: int) -> Answers:
    mine = [row for row in rows if counted(row, start, end)]
    size = sum(row.bytes for row in mine)
    time = sum(row.end - row.start for row in mine)
    totals = _totals(rows, start, end, "operations")
    return totals | {"bytes": size, "bytes_per_s": size * 1e9 / time if time else None}


def _capture_cost(overheads: Sequence[Overhead], start: int, end: int) -> list[Answers]:
    return _by_total(
        (
            {
                "name": name,
                "events": sum(1 for row in rows if counted(row, start, end)),
                "total_ns": sum(clipped(row, start, end) for row in rows),
            }
            for name, rows in _grouped(overheads, lambda row: row.name, start, end)
        ),
        "name",
    )


def _starts_before_launch(kernels: Sequence[Kernel], calls: Sequence[Call]) -> int:
    """Return how many kernels start more than 1 µs before the call that launched them."""
    launches = {
        (call.process, call.correlation): call.start for call in calls if call.kind != "wrapper"
    }
    return sum(
        1
        for kernel in kernels
        if kernel.start + 1_000 < launches.get((kernel.process, kernel.correlation), kernel.start)
    )


def totals(plan: Plan) -> Answers:
    """Return the answers that can be had of ten million kernels: window, counts and times.

    Returns
    -------
    dict
        ``window``; ``kernels``, ``api_calls`` and ``copies``: name or kind → count and summed
        duration. Plans for this hold no row that would be quarantined, and no wrapper.
    """
    tables = (plan.kernels, plan.calls, plan.copies, plan.memsets, plan.graphs)
    filled = [events for events in tables if len(events)]
    start = min((int(events["start"].min()) for events in filled), default=0)
    end = max((int(events["end"].max()) for events in filled), default=0)
    copies = _sums(plan.copies, plan.copies.texts("kind"))
    if len(plan.memsets):
        time = int((plan.memsets["end"] - plan.memsets["start"]).sum())
        copies["memset"] = {"count": len(plan.memsets), "total_ns": time}
    return {
        "window": {"start_ns": start, "end_ns": end, "duration_ns": end - start},
        "kernels": _sums(plan.kernels, plan.kernels.texts("name")),
        "api_calls": _sums(plan.calls, plan.calls.texts("name")),
        "copies": copies,
    }


def _sums(events: Events, names: Categorical) -> dict[str, dict[str, int]]:
    durations = events["end"] - events["start"]
    times = np.zeros(len(names.categories), dtype=np.int64)
    np.add.at(times, names.codes, durations)
    counts = np.bincount(names.codes, minlength=len(names.categories))
    return {
        name: {"count": int(count), "total_ns": int(time)}
        for name, count, time in zip(names.categories, counts, times, strict=True)
        if count
    }
