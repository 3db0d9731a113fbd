"""When did the profiler hold a launching thread up? Its writing out of data, nothing else of it.

A closed list of what the profiler calls that, 2020 to 2026; rows such as ``CUPTI:
Instrumentation``, ``TLS allocation`` or ``dlopen(…)`` are overhead too, but not of this kind:
they are in ``capture_cost`` alone.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import Key
from kernelscope.metrics.intervals import Pieces, intersection, subtract, touches, union, unite
from kernelscope.metrics.thread_states import NOT_RECORDED, Host, rows_of
from kernelscope.trace import Table, is_missing

Rows = npt.NDArray[np.intp]

FLUSHES: tuple[str, ...] = (
    # CUPTI: Buffer flush (2020.3 to 2024.5), CUPTI Buffer flush (2024.6 on)
    r"CUPTI:? Buffer flush",
    # CUDA profiling data flush overhead (2020, 2021), CUDA profiling data flush (2022.2 to
    # 2024.5), … on process exit, on cuInit finished, on cudaProfilerStop, on context created
    # (2023.2 on)
    r"CUDA profiling data flush( overhead| on .+)?",
    # CUDA profiling stop overhead (2022.1)
    r"CUDA profiling stop( overhead)?",
)
"""Patterns of the whole name of rows in which the profiler writes its data out, or stops."""

_PATTERN = re.compile("|".join(FLUSHES))


def flushes(overheads: Table) -> Rows:
    """Return the rows in which the profiler wrote data out, or stopped."""
    return np.flatnonzero(overheads.holds("name", lambda name: bool(_PATTERN.fullmatch(name))))


def flushing(overheads: Table, rows: Rows) -> Pieces:
    """Return when any of some overheads went on."""
    return union(overheads["start_ns"][rows], overheads["end_ns"][rows])


def held_up(host: Host, rows: Rows, thread: Key) -> Pieces:
    """When did the profiler hold a thread up?

    Parameters
    ----------
    host : Host
        What the profiler did, when threads ran, and their CUDA calls.
    rows : ndarray of int
        The :func:`flushes` among the overheads.
    thread : (process, thread)
        Whose.

    Returns
    -------
    Pieces
        While a flush ran on the thread itself; or on any thread of its process while the thread
        was off its core or inside a CUDA call.
    """
    process, _ = thread
    overheads, calls = host.trace.overheads, host.calls
    column = overheads["process_id"][rows]
    theirs = is_missing(column) if process is None else column == process
    own = np.zeros(len(overheads), dtype=np.bool_)
    own[rows_of(overheads, thread)] = True
    others = flushing(overheads, rows[theirs])
    core, scheduled = host.cores.get(thread, NOT_RECORDED)
    made = rows_of(calls, thread)
    began, ended = calls["start_ns"][made], calls["end_ns"][made]
    near = touches(began, ended, others)
    away = unite(subtract(scheduled, core), union(began[near], ended[near]))
    return unite(flushing(overheads, rows[own[rows]]), intersection(others, away))
