"""When did a thread of the host wait inside a CUDA call, and for what?

CUDA spins while it waits, so a thread that is on its core is not thereby working, and a copy
whose name says *asynchronous* blocks where its memory is pageable. Waiting is therefore told by
what the call does and how long it takes (METRICS, *CPU–GPU overlap*): a synchronisation waits
from beginning to end; copies, memsets, allocations, frees, module loads and launches wait from
their first 50 µs on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.call_classes import NAMES, call_classes
from kernelscope.metrics.intervals import ordered
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.trace import Trace

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

WORK_NS = 50_000
"""What a call that can block may take before it is waiting."""

QUEUE_FULL = 1000
"""Operations outstanding from which on a long launch call waits for room in the queue, which
holds 1022 of them: kernels, copies and memsets alike."""

WAITS: tuple[str, ...] = (
    "synchronization",
    "blocked: copy",
    "blocked: allocation",
    "blocked: module",
    "blocked: queue",
)
"""What a thread can wait for; its place is its code."""

_WAIT_OF_CLASS = {
    "synchronization": 0, "copy": 1, "memset": 1, "allocation": 2, "free": 2, "module": 3,
    "launch": 3,
}  # fmt: skip
_QUEUE = WAITS.index("blocked: queue")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Waiting:
    """The waits of all threads, one per call that waits, in the order of the calls.

    Attributes
    ----------
    call : ndarray of int64, shape (w,)
        Row in the calls without wrappers.
    start, end : ndarray of int64, shape (w,)
        ``end > start``. Waits of one thread overlap where a call is made inside another.
    kind : ndarray of int8, shape (w,)
        Place in `WAITS`.
    """

    call: Int64s
    start: Int64s
    end: Int64s
    kind: npt.NDArray[np.int8]


def waiting(trace: Trace, launches: LaunchTimes | None = None) -> Waiting:
    """When did a thread of the host wait inside a CUDA call, and for what?

    Parameters
    ----------
    trace : Trace
        Its kernels, copies and graphs say how much was outstanding.
    launches : LaunchTimes, optional
        What :func:`kernelscope.metrics.launch_times.launch_times` says of the trace.
    """
    launches = launches or launch_times(trace)
    calls = launches.api_calls
    classes = call_classes(calls.categories("name"))
    kind_of = np.array([_WAIT_OF_CLASS.get(name, -1) for name in NAMES], dtype=np.int8)[classes]
    grace_of = np.where(kind_of == 0, 0, WORK_NS)
    code = calls["name"]
    start, end = calls["start_ns"], calls["end_ns"]
    grace = np.append(grace_of, np.iinfo(np.int64).max)
    grace[:-1][kind_of < 0] = np.iinfo(np.int64).max
    call = np.flatnonzero(end - start > grace[code])
    kind = kind_of[code[call]]
    launching = classes[code[call]] == NAMES.index("launch")
    if launching.any():
        full = _outstanding(trace, launches, call[launching]) >= QUEUE_FULL
        kind[np.flatnonzero(launching)[full]] = _QUEUE
    return Waiting(call, start[call] + grace[code[call]], end[call].astype(np.int64), kind)


def _outstanding(trace: Trace, launches: LaunchTimes, asked: Int64s) -> Int64s:
    """Return how many calls of its process had put work in the queue that had not started yet.

    Copies and memsets take places in it as kernels do; a graph's nodes take one together.
    """
    calls = launches.api_calls
    start = calls["start_ns"]
    first = np.full(len(calls), np.iinfo(np.int64).max)
    for work, call in (
        (trace.kernels, launches.call_of_kernel),
        (trace.copies, launches.call_of_copy),
        (trace.graphs, launches.call_of_graph),
    ):
        found = call >= 0
        np.minimum.at(first, call[found], work["start_ns"][found])
    launched = np.flatnonzero(first < np.iinfo(np.int64).max)
    count = np.zeros(len(asked), dtype=np.int64)
    process = calls["process_id"]
    for each in set(process[asked].tolist()):
        mine = launched[process[launched] == each]
        here = process[asked] == each
        at = start[asked[here]]
        begun = np.searchsorted(ordered(start[mine]), at, side="left")
        count[here] = begun - np.searchsorted(ordered(first[mine]), at, side="right")
    return count
