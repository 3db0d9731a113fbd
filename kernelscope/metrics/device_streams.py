"""How busy each CUDA stream is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import results
from kernelscope.metrics.device_identity import Identity, identify, integers, lane_of, on_device
from kernelscope.metrics.grouping import Groups, Key, group
from kernelscope.metrics.intervals import (
    Int64s,
    alone,
    clip,
    no_times,
    union_by_group,
)
from kernelscope.metrics.window import Window, starts_inside, whole
from kernelscope.trace import Table, Trace, distinct

_IDS = ("process_id", "device_id", "context_id", "stream_id")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Streams:
    """Pieces of every stream, one stream after the other.

    Attributes
    ----------
    starts, ends : ndarray of int64, shape (n,)
        The pieces.
    bounds : ndarray of int, shape (streams + 1,)
        Stream i has the pieces from ``bounds[i]`` to ``bounds[i + 1]``.
    """

    starts: Int64s
    ends: Int64s
    bounds: npt.NDArray[np.intp]


def streams(
    trace: Trace, window: Window | None = None, *, identity: Identity | None = None
) -> Table:
    """How busy is each CUDA stream?

    Busiest first. Every stream with kernels, graphs or copies on a device has a row, whether it is
    active in the window or not. `exclusive_ns` compares with the streams of all processes on
    the same physical device. It and the gap are missing of a serialised capture.

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and devices are read.
    window : Window, optional
        The whole trace by default.
    identity : Identity, optional
        Of the same trace, where it was found before.
    """
    window = window or whole(trace)
    copies = trace.copies
    occupying = on_device(copies)
    used = copies if occupying is None else copies.take(occupying)
    tables = [trace.kernels, used, trace.graphs]
    groups = [group(*(table[name] for name in _IDS)) for table in tables]
    keys = sorted({key for each in groups for key in each.keys}, key=_ranked)
    number = {key: i for i, key in enumerate(keys)}
    codes = [_renumbered(each, number, len(t)) for each, t in zip(groups, tables, strict=True)]
    pieces = _pieces(tables, codes, len(keys), window)

    length = pieces.ends - pieces.starts
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))[pieces.bounds]
    busy = before[1:] - before[:-1]
    exclusive = _exclusive(pieces, keys, identity or identify(trace), busy)
    order = np.lexsort((np.arange(len(keys)), -busy))
    columns = {name: integers(key[i] for key in keys)[order] for i, name in enumerate(_IDS)}
    columns["kernels"] = _counts(trace.kernels, codes[0], len(keys), window)[order]
    columns["busy_ns"] = busy[order]
    columns["exclusive_ns"] = exclusive[order]
    columns["largest_gap_ns"] = integers(_largest_gap(pieces, i) for i in order.tolist())
    if trace.capture.serialised is not None:
        nothing = integers(None for _ in keys)
        columns |= {"exclusive_ns": nothing, "largest_gap_ns": nothing}
    return Table.make(results.STREAMS, columns)


def _ranked(key: Key) -> tuple[int, ...]:
    return tuple(-1 if value is None else value for value in key)


def _renumbered(groups: Groups, number: dict[Key, int], rows: int) -> npt.NDArray[Any]:
    """Return the stream of each row; one constant without memory where there is one stream."""
    table = np.array([number[key] for key in groups.keys], dtype=np.int32)
    if groups.codes is None:
        return np.broadcast_to(table[:1] if rows else table, (rows,))
    return np.asarray(table[groups.codes])


def _pieces(
    tables: Sequence[Table], codes: Sequence[npt.NDArray[Any]], count: int, window: Window
) -> _Streams:
    starts, ends, owners = [no_times()], [no_times()], [np.empty(0, dtype=np.int32)]
    for table, code in zip(tables, codes, strict=True):
        start, end, kept = clip(table["start_ns"], table["end_ns"], window.start_ns, window.end_ns)
        starts.append(start)
        ends.append(end)
        owners.append(code if kept is None else code[kept])
    return _Streams(
        *union_by_group(_concatenated(starts), _concatenated(ends), _concatenated(owners), count)
    )


def _concatenated(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate(parts)


def _exclusive(pieces: _Streams, keys: Sequence[Key], identity: Identity, busy: Int64s) -> Int64s:
    """Return how long each stream was the only busy one of its physical device."""
    devices = np.array([identity.device_of(lane_of(key)) for key in keys], dtype=np.int64)
    exclusive = np.zeros(len(keys), dtype=np.int64)
    owner = np.repeat(np.arange(len(keys), dtype=np.int32), np.diff(pieces.bounds))
    for device in distinct(devices).tolist():
        members = np.flatnonzero(devices == device)
        if len(members) == 1:
            exclusive[members] = busy[members]
            continue
        if len(members) == len(keys):
            exclusive = alone(pieces.starts, pieces.ends, owner, len(keys))
            continue
        here = np.flatnonzero((devices == device)[owner])
        exclusive += alone(pieces.starts[here], pieces.ends[here], owner[here], len(keys))
    return exclusive


def _counts(
    kernels: Table, code: npt.NDArray[Any], count: int, window: Window
) -> npt.NDArray[np.int64]:
    inside = starts_inside(kernels, window)
    if code.strides == (0,) and len(code):
        counts = np.zeros(count, dtype=np.int64)
        counts[code[0]] = np.count_nonzero(inside)
        return counts
    counted = code if inside.all() else code[inside]
    return np.bincount(counted, minlength=count).astype(np.int64)


def _largest_gap(pieces: _Streams, stream: int) -> int | None:
    first, last = pieces.bounds[stream], pieces.bounds[stream + 1]
    if last - first < 2:
        return None
    return int((pieces.starts[first + 1 : last] - pieces.ends[first : last - 1]).max())
