"""Stretches of idle time, each with one cause, and how they are cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import Pieces, sorting
from kernelscope.metrics.runs import expanded

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Segments:
    """Stretches of pauses, shape (n,) each.

    Attributes
    ----------
    start, end : ndarray of int64
        ``end > start``.
    label : ndarray of int32
        Code of (cause, detail).
    gap : ndarray of int32
        The pause that it is part of.
    """

    start: Int64s
    end: Int64s
    label: Int32s
    gap: Int32s

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: npt.NDArray[np.intp] | Bools) -> Segments:
        """Return some of them."""
        if rows.dtype == np.bool_:  # a mask picks more slowly than places do
            rows = np.flatnonzero(rows)
        return Segments(self.start[rows], self.end[rows], self.label[rows], self.gap[rows])


def together(*parts: Segments) -> Segments:
    """Return several as one, in that order."""
    filled = [part for part in parts if len(part)]
    if len(filled) <= 1:
        return filled[0] if filled else parts[0]
    return Segments(
        np.concatenate([part.start for part in filled]),
        np.concatenate([part.end for part in filled]),
        np.concatenate([part.label for part in filled]),
        np.concatenate([part.gap for part in filled]),
    )


def merged(many: Segments, few: Segments) -> Segments:
    """Return two sets as one, by pause, then time; `many` must be in that order.

    Written to its place at once: both one behind the other, and an order of them, would take as
    much memory again.
    """
    few = _by_pause(few)
    place = _places(many, few)
    place += np.arange(len(few))
    other = np.ones(len(many) + len(few), dtype=np.bool_)
    other[place] = False
    columns = []
    for name in ("start", "end", "label", "gap"):
        column = np.empty(len(other), dtype=getattr(many, name).dtype)
        column[place], column[other] = getattr(few, name), getattr(many, name)
        columns.append(column)
    return Segments(*columns)


def _places(many: Segments, few: Segments) -> npt.NDArray[np.intp]:
    """Return how many of `many` stand before each of `few`; a pause has few parts."""
    before = np.searchsorted(many.gap, few.gap)
    behind = np.searchsorted(many.gap, few.gap, side="right")
    asked = np.flatnonzero(before < behind)
    while len(asked):
        asked = asked[many.start[before[asked]] < few.start[asked]]
        before[asked] += 1
        asked = asked[before[asked] < behind[asked]]
    return before


def in_order(segments: Segments) -> Segments:
    """Return them by pause, then time, those that touch and are called alike as one."""
    segments = _by_pause(segments)
    gap, label = segments.gap, segments.label
    alike = (gap[1:] == gap[:-1]) & (label[1:] == label[:-1])
    if not alike.any():
        return segments
    place = np.flatnonzero(np.insert(~alike, 0, True))
    start, label, gap = segments.start[place], label[place], gap[place]
    place[:-1] = place[1:] - 1  # from the first of each to the last
    place[-1] = len(segments) - 1
    return Segments(start, segments.end[place], label, gap)


def _by_pause(segments: Segments) -> Segments:
    """Return them by pause, then time."""
    gap = segments.gap
    if (gap[1:] < gap[:-1]).any() or _back_in_time(segments):
        # Pauses are numbered by device, then time, and most lie in order already.
        segments = segments.take(sorting(gap))
        if _back_in_time(segments):
            segments = segments.take(np.lexsort((segments.start, segments.gap)))
    return segments


def _back_in_time(segments: Segments) -> bool:
    """Return whether a part of a pause stands behind a later one."""
    gap, start = segments.gap, segments.start
    return bool(((gap[1:] == gap[:-1]) & (start[1:] < start[:-1])).any())


def cut(segments: Segments, times: Int64s, label: Int32s) -> tuple[Segments, npt.NDArray[np.intp]]:
    """Cut segments where a step function changes, and call the parts by its value.

    Parameters
    ----------
    segments : Segments
        Each begins at or behind ``times[0]``.
    times : ndarray of int64, shape (k,)
        Where the steps begin, ascending.
    label : ndarray of int32, shape (k,)
        What the parts are called; −1 leaves the segment's own label.

    Returns
    -------
    Segments
        The parts in the segments' order; neighbours that are called alike stay together.
    step : ndarray of int, shape (m,)
        The step in which each part begins.
    """
    first = np.searchsorted(times, segments.start, side="right") - 1
    last = np.searchsorted(times, segments.end, side="left")
    which, step = expanded(first, last)
    until = np.append(times[1:], np.iinfo(np.int64).max)
    start = np.maximum(times[step], segments.start[which])
    end = np.minimum(until[step], segments.end[which])
    called = label[step]
    called = np.where(called < 0, segments.label[which], called)
    begins = np.ones(len(which), dtype=np.bool_)
    begins[1:] = (which[1:] != which[:-1]) | (called[1:] != called[:-1])
    head = np.flatnonzero(begins)
    tail = np.append(head[1:], len(which))[: len(head)] - 1
    parts = Segments(start[head], end[tail], called[head], segments.gap[which[head]])
    return parts, step[head]


def cut_by_pieces(segments: Segments, pieces: Pieces, label: int) -> Segments:
    """Cut segments at the edges of pieces, and call what lies inside them `label`."""
    starts, ends = pieces
    times = np.empty(2 * len(starts) + 1, dtype=np.int64)
    times[0] = np.iinfo(np.int64).min
    times[1::2], times[2::2] = starts, ends
    labels = np.full(len(times), -1, dtype=np.int32)
    labels[1::2] = label
    return cut(segments, times, labels)[0]
