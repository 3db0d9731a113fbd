"""Why did each device stand still? Every nanosecond gets the first cause that holds.

A pause ``[g0, g1)`` ends with the activity A, launched by the call L of a thread. METRICS.md
(*Idle, to the last nanosecond*) has the order; what it leaves open is decided here:

- The profiler's share goes first, wherever in the pause it lies, leading and trailing time
  included. Behind the last activity there is no A: the launching thread of the activity that
  ended last stands in. Where the launching thread is not recorded, nothing is the profiler's.
- L *started after the pause did* if it started later than g0; one that starts with the pause is
  in flight when it begins. A call recorded as starting behind A leaves all of the pause to the
  host.
- What remains of a pause behind the end of a call that was in flight at its beginning is
  ``launch_latency``: the call returned less than 10 µs before the pause began, in fact later.
- ``intra_graph`` stands before the rules about L: A is a node of a graph launch (process and
  correlation id) of which another activity had started by the time the pause began.
- *Such gaps*, of whose lengths ``kernel_to_kernel`` takes the median, are the device's pauses
  whose L had returned 10 µs or more before they began; a length is without the profiler's share,
  and pauses that are all the profiler's do not count. METRICS.md leaves open that a median of
  one pause is that pause: it counts where there are ten, and nothing beyond 50 µs is ordinary,
  however many such pauses there are.
- While L itself is held up (beyond its first 50 µs), the detail of ``in_call`` and
  ``launch_latency`` says by what: a launch that loads code first is ``blocked: module``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import group
from kernelscope.metrics.idle_evidence import KINDS, MIGRATION, Looked, dependencies
from kernelscope.metrics.idle_gaps import LEADING, TRAILING, IdleGaps, by_thread, column_of
from kernelscope.metrics.idle_host import name_host
from kernelscope.metrics.idle_profiler import flushes, flushing, held_up
from kernelscope.metrics.idle_results import CAUSE_NAMES, HOST
from kernelscope.metrics.idle_segments import Segments, cut_by_pieces, in_order, merged, together
from kernelscope.metrics.intervals import extended, touches
from kernelscope.metrics.launching import GRAPH_LAUNCHES
from kernelscope.metrics.thread_states import Host, Labels, label_code, labelled
from kernelscope.metrics.waiting import WAITS
from kernelscope.trace import Trace, distinct, is_missing, median

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

LATENCY_NS = 10_000
"""A call that returned less than this before a pause may still be on its way to the device."""

ORDINARY_NS = 5_000
"""A pause between queued activities is ordinary up to here, whatever others there are."""

ORDINARY_TIMES = 3
"""… or up to this many times the median of such pauses of the device,"""

ORDINARY_SEEN = 10
"""where there are at least so many to take it of,"""

ORDINARY_MOST_NS = 50_000
"""and at most up to here."""

_CODE = {name: code for code, name in enumerate(CAUSE_NAMES)}
_IN_CALL, _LATENCY = _CODE["in_call"], _CODE["launch_latency"]
_FAR = _CODE["unexplained"]
_HOST = _CODE[HOST + "unknown"]


def new_labels() -> Labels:
    """Return the labels of all causes without a detail, in their order."""
    return {(cause, ""): code for code, cause in enumerate(CAUSE_NAMES)}


def causes(looked: Looked, gaps: IdleGaps, host: Host) -> Segments:
    """Why did each device stand still?

    Parameters
    ----------
    looked : Looked
        The whole trace, and where evidence is looked for.
    gaps : IdleGaps
        Its pauses.
    host : Host
        What was recorded of the host, with :func:`new_labels`, to which details are added.

    Returns
    -------
    Segments
        The pauses cut into stretches of one (cause, detail) each, by pause, then time.
    """
    trace = looked.trace
    every = _by_call(trace, gaps, host)
    rows = flushes(trace.overheads)
    cutting = every.label == _HOST
    cutting |= _own_wait(gaps, host, every) >= 0
    if len(rows):
        cutting |= touches(every.start, every.end, flushing(trace.overheads, rows))
    some, taken = _profilers(gaps, host, every.take(cutting), rows)
    queued = _waited_in_queue(looked, gaps, host, every, taken)
    del taken
    every = every.take(~cutting)
    some = _held_up_in_call(host, some, _own_wait(gaps, host, some))
    some = name_host(host, gaps, some, _HOST)
    done = merged(every, some)
    del every, some  # as large as the pauses
    done = in_order(done)
    label = done.label.copy()
    far, flying = np.flatnonzero(label == _FAR), np.flatnonzero(label == _IN_CALL)
    label[far] = queued[done.gap[far]]
    label[flying] = labelled(host, "in_call", host.calls, gaps.call[done.gap[flying]])
    return replace(done, label=label)


def _by_call(trace: Trace, gaps: IdleGaps, host: Host) -> Segments:
    """Cut each pause where its launching call began or ended; by pause, then time."""
    known = gaps.call >= 0
    began = _of_calls(host, gaps, "start_ns")
    ended = _of_calls(host, gaps, "end_ns")
    late = began > gaps.start
    late &= known
    flying = ended > gaps.start
    flying &= known
    flying &= ~late
    just = ended > gaps.start - LATENCY_NS
    label = np.full(len(gaps), _FAR, dtype=np.int32)
    label[just] = _LATENCY
    label[flying] = _IN_CALL
    label[late] = _HOST
    label[~known] = _unknown_launches(trace, gaps, host)[~known]
    split = late | flying
    for found, cause in (
        (_in_graph(trace, gaps, host), "intra_graph"),
        (gaps.place == LEADING, "before_first"),
        (gaps.place == TRAILING, "after_last"),
    ):
        label[found] = _CODE[cause]
        split &= ~found
    rows = np.flatnonzero(split)
    edge = np.where(late[rows], began[rows], ended[rows])
    inside = edge < gaps.end[rows]
    rows, edge = rows[inside], edge[inside]
    parts = np.ones(len(gaps), dtype=np.int8)
    parts[rows] = 2
    gap = np.repeat(np.arange(len(gaps), dtype=np.int32), parts)
    behind = rows + np.arange(1, len(rows) + 1)  # the second part of each that is cut
    start, end, label = gaps.start[gap], gaps.end[gap], label[gap]
    start[behind] = end[behind - 1] = edge
    label[behind] = _LATENCY
    return Segments(start, end, label, gap)


def _unknown_launches(trace: Trace, gaps: IdleGaps, host: Host) -> Int32s:
    """Return what pauses are called whose activity has no recorded call: migrations never have."""
    label = np.full(len(gaps), _CODE["unknown_launch"], dtype=np.int32)
    kinds = trace.copies.categories("kind")
    moved = np.array([*(kind.startswith(MIGRATION) for kind in kinds), False])
    if moved.any():
        row = gaps.activity.astype(np.int64) - len(trace.kernels)
        copy = np.flatnonzero((row >= 0) & (row < len(trace.copies)))
        copy = copy[moved[trace.copies["kind"][row[copy]]]]
        label[copy] = label_code(host.labels, "unknown_launch", "migration")
    return label


def _of_calls(host: Host, gaps: IdleGaps, column: str) -> Int64s:
    if not len(host.calls):
        return np.zeros(len(gaps), dtype=np.int64)
    return np.asarray(host.calls[column][gaps.call])  # −1 reads any: `known` tells


def _in_graph(trace: Trace, gaps: IdleGaps, host: Host) -> Bools:
    """Return which pauses lie between two activities of one graph launch."""
    found = np.zeros(len(gaps), dtype=np.bool_)
    launches = host.calls.holds("name", lambda text: text.startswith(GRAPH_LAUNCHES))
    nodes = [~is_missing(t["graph_node_id"]) for t in (trace.kernels, trace.copies)]
    if not launches.any() and not any(bool(each.any()) for each in nodes):
        return found
    # One entry more, at the end: the row −1 reads it.
    is_node = np.concatenate((*nodes, np.zeros(len(trace.graphs) + 1, dtype=np.bool_)))
    by_name = np.append(launches, False)
    asked = np.flatnonzero((gaps.activity >= 0) & (is_node[gaps.activity] | by_name[gaps.call]))
    every = np.arange(len(trace.kernels) + len(trace.copies), dtype=np.int32)
    both = np.concatenate((every, gaps.activity[asked]))
    key = [column_of(trace, name, both) for name in ("process_id", "correlation_id")]
    codes = group(*key).codes
    if codes is None:
        codes = np.zeros(len(both), dtype=np.int32)
    first = np.full(int(codes.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, codes[: len(every)], column_of(trace, "start_ns", every))
    tied = key[1][len(every) :] != np.iinfo(np.int64).min
    found[asked] = tied & (first[codes[len(every) :]] <= gaps.start[asked])
    return found


def _profilers(
    gaps: IdleGaps, host: Host, segments: Segments, rows: npt.NDArray[np.intp]
) -> tuple[Segments, Int64s]:
    """Cut out what is the profiler's; return also how much of each pause that is."""
    taken = np.zeros(len(gaps), dtype=np.int64)
    if not len(rows):
        return segments, taken
    left = np.ones(len(segments), dtype=np.bool_)
    parts = []
    for thread, mine in by_thread(host.calls, gaps.call[segments.gap]):
        held = extended(held_up(host, rows, thread))
        left[mine] = False
        parts.append(cut_by_pieces(segments.take(mine), held, _CODE["profiler"]))
    done = together(segments.take(left), *parts)
    theirs = done.label == _CODE["profiler"]
    np.add.at(taken, done.gap[theirs], (done.end - done.start)[theirs])
    return done, taken


def _waited_in_queue(
    looked: Looked, gaps: IdleGaps, host: Host, segments: Segments, taken: Int64s
) -> Int32s:
    """Return, for pauses whose activity had been launched long before, why it did not start."""
    label = np.full(len(gaps), _FAR, dtype=np.int32)
    gap = segments.gap[segments.label == _FAR]
    rest = gaps.end[gap] - gaps.start[gap]
    rest -= taken[gap]
    if not rest.all():  # nothing is left of some
        gap, rest = gap[rest > 0], rest[rest > 0]
    device = gaps.device[gap]
    for each in distinct(device).tolist():
        mine = device == each
        length = rest if mine.all() else rest[mine]
        usual = ORDINARY_TIMES * median(length) if len(length) >= ORDINARY_SEEN else 0
        limit = max(ORDINARY_NS, min(usual, ORDINARY_MOST_NS))
        mine &= rest <= limit
        label[gap[mine]] = _CODE["kernel_to_kernel"]
    asked = gap[label[gap] == _FAR]
    shown = dependencies(looked, gaps, asked)
    named = [label_code(host.labels, "dependency", kind) for kind in KINDS]
    label[asked] = np.array([*named, _FAR], dtype=np.int32)[shown]
    return label


def _own_wait(gaps: IdleGaps, host: Host, segments: Segments) -> Int32s:
    """Return the wait of the launching call itself within each segment; −1 for none."""
    found = np.full(len(segments), -1, dtype=np.int32)
    waits = host.waits
    if not len(waits.call):
        return found
    wait_of = np.full(len(host.calls), -1, dtype=np.int32)
    wait_of[waits.call] = np.arange(len(waits.call), dtype=np.int32)
    asked = np.flatnonzero((segments.label == _IN_CALL) | (segments.label == _LATENCY))
    wait = wait_of[gaps.call[segments.gap[asked]]]
    asked, wait = asked[wait >= 0], wait[wait >= 0]
    during = (waits.start[wait] < segments.end[asked]) & (waits.end[wait] > segments.start[asked])
    found[asked[during]] = wait[during]
    return found


def _held_up_in_call(host: Host, segments: Segments, wait: Int32s) -> Segments:
    """Cut out where the launching call itself was held up."""
    asked = np.flatnonzero(wait >= 0)
    if not len(asked):
        return segments
    some, wait, waits = segments.take(asked), wait[asked], host.waits
    begin = np.maximum(waits.start[wait], some.start)
    end = np.minimum(waits.end[wait], some.end)
    held = _held_label(host, some.label, waits.kind[wait], waits.call[wait])
    parts = (
        replace(some, end=begin),
        replace(some, start=begin, end=end, label=held),
        replace(some, start=end),
    )
    left = np.ones(len(segments), dtype=np.bool_)
    left[asked] = False
    lasting = (part.take(part.end > part.start) for part in parts)
    return together(segments.take(left), *lasting)


def _held_label(
    host: Host, cause: Int32s, kind: npt.NDArray[np.int8], call: npt.NDArray[np.int64]
) -> Int32s:
    """Return the labels of calls that were held up: ``cudaLaunchKernel (blocked: module)``."""
    names = host.calls.categories("name")
    groups = group(cause, kind, host.calls["name"][call])
    codes = [
        label_code(host.labels, CAUSE_NAMES[cause or 0], f"{names[name or 0]} ({WAITS[wait or 0]})")
        for cause, wait, name in groups.keys
    ]
    which = np.zeros(len(cause), dtype=np.intp) if groups.codes is None else groups.codes
    return np.asarray(np.array(codes, dtype=np.int32)[which])
