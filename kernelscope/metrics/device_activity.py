"""What occupied each device inside a window: by process, and by physical device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.device_identity import (
    Identity,
    Lane,
    lane_of,
    lanes_of,
    limits_of,
    on_device,
)
from kernelscope.metrics.grouping import Rows
from kernelscope.metrics.intervals import (
    NO_PIECES,
    Int64s,
    Pieces,
    clip,
    merge_ordered,
    no_times,
    ordered,
    ordered_with,
    union,
    unite,
)
from kernelscope.metrics.sm_fill import Weighted, weighted_fill
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace, distinct, is_missing

MEMSET = "memset"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Activity:
    """What occupied one device, as one process or as all see it.

    Attributes
    ----------
    starts, ends : ndarray of int64, shape (n,)
        Of the kernel executions, ordered.
    compute, communication, graphs, copies, memsets : Pieces
        The five classes of activity.
    fill : (float, int)
        Σ fill · ns and Σ ns of the executions whose fill is known.
    """

    starts: Int64s = field(default_factory=no_times)
    ends: Int64s = field(default_factory=no_times)
    compute: Pieces = NO_PIECES
    communication: Pieces = NO_PIECES
    graphs: Pieces = NO_PIECES
    copies: Pieces = NO_PIECES
    memsets: Pieces = NO_PIECES
    fill: Weighted = (0.0, 0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mark:
    """Time in which a peer copy that another device issued occupies this one."""

    process_id: int | None
    device: int
    pieces: Pieces


def by_lane(
    trace: Trace, window: Window, identity: Identity, communication: Sequence[str]
) -> tuple[list[Activity], list[Mark]]:
    """Return what each lane of `identity` did in the window, and what its peer copies mark."""
    parts: dict[Lane, dict[str, Any]] = {lane: {} for lane in identity.lanes}
    described = dict(zip(identity.lanes, identity.described, strict=True))
    communicates = is_communication(trace.kernels.categories("name"), communication)
    groups = lanes_of(trace.kernels)
    for key, rows in zip(groups.keys, groups.rows(), strict=True):
        lane = lane_of(key)
        parts[lane] |= _kernels(trace.kernels, rows, window, communicates, described[lane])

    groups = lanes_of(trace.graphs)
    for key, rows in zip(groups.keys, groups.rows(), strict=True):
        start, end, _ = _inside(trace.graphs, rows, window)
        parts[lane_of(key)] |= {"graphs": union(start, end)}

    copies = trace.copies
    occupying = on_device(copies)
    used = copies if occupying is None else copies.take(occupying)
    marks: list[Mark] = []
    groups = lanes_of(used)
    for key, rows in zip(groups.keys, groups.rows(), strict=True):
        lane = lane_of(key)
        pieces, marked = _copies(used, rows, window, lane)
        parts[lane] |= pieces
        for other, taken in marked:
            device = identity.device_of(other)
            if device is not None and device != identity.device_of(lane):
                marks.append(Mark(lane[0], device, taken))
    return [Activity(**each) for each in parts.values()], marks


def together(activities: Sequence[Activity], marks: Sequence[Pieces] = ()) -> Activity:
    """Return what several processes' activities and peer copies make of one device."""
    if len(activities) == 1 and not marks:
        return activities[0]
    kernels = [each for each in activities if len(each.starts)]
    starts: Int64s = np.concatenate([no_times(), *(each.starts for each in kernels)])
    ends: Int64s = np.concatenate([no_times(), *(each.ends for each in kernels)])
    return Activity(
        np.sort(starts, kind="stable"),
        np.sort(ends, kind="stable"),
        unite(*(each.compute for each in activities)),
        unite(*(each.communication for each in activities)),
        unite(*(each.graphs for each in activities)),
        unite(*(each.copies for each in activities), *marks),
        unite(*(each.memsets for each in activities)),
        (sum(each.fill[0] for each in activities), sum(each.fill[1] for each in activities)),
    )


def _kernels(
    kernels: Table,
    rows: Rows,
    window: Window,
    communicates: npt.NDArray[np.bool_],
    described: dict[str, Any],
) -> dict[str, Any]:
    start, end, rows = _inside(kernels, rows, window)
    talks = communicates[kernels["name"][rows]] if bool(communicates.any()) else None
    fill = weighted_fill(kernels, rows, end - start, limits_of(described))
    if talks is None or not bool(talks.any()):
        starts, ends = ordered(start), ordered(end)
        compute, communication = merge_ordered(starts, ends), NO_PIECES
    else:
        starts, begins = _told_apart(start, talks)
        ends, finishes = _told_apart(end, talks)
        compute = merge_ordered(starts[~begins], ends[~finishes])
        communication = merge_ordered(starts[begins], ends[finishes])
    return {
        "starts": starts,
        "ends": ends,
        "compute": compute,
        "communication": communication,
        "fill": fill,
    }


def _told_apart(
    times: Int64s, talks: npt.NDArray[np.bool_]
) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Return `times` sorted, and which of them are communication's."""
    ordered_times, label = ordered_with(times, talks, 2)
    return ordered_times, label.astype(np.bool_)


def _copies(
    copies: Table, rows: Rows, window: Window, lane: Lane
) -> tuple[dict[str, Pieces], list[tuple[Lane, Pieces]]]:
    start, end, rows = _inside(copies, rows, window)
    kinds = copies.categories("kind")
    sets = np.array([kind == MEMSET for kind in kinds] + [False])[copies["kind"][rows]]
    marks: list[tuple[Lane, Pieces]] = []
    for column in ("src_device_id", "dst_device_id"):
        named = copies[column][rows]
        away = ~is_missing(named) & (named != lane[1])
        for other in distinct(named[away]).tolist():
            here = named == other
            marks.append(((lane[0], other), union(start[here], end[here])))
    pieces = {
        "copies": union(start[~sets], end[~sets]),
        "memsets": union(start[sets], end[sets]),
    }
    return pieces, marks


def _inside(table: Table, rows: Rows, window: Window) -> tuple[Int64s, Int64s, Rows]:
    """Return starts and ends of `rows` cut to the window, and which rows are left."""
    start, end, kept = clip(
        table["start_ns"][rows], table["end_ns"][rows], window.start_ns, window.end_ns
    )
    if kept is None:
        return start, end, rows
    return start, end, np.flatnonzero(kept) if isinstance(rows, slice) else rows[kept]
