"""Rules that say which time of the host, if spared, would let the GPU start earlier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope import units
from kernelscope.metrics.call_classes import class_of
from kernelscope.metrics.data_loading import os_call_loads_data, range_loads_data
from kernelscope.metrics.finding_words import (
    DELAYED,
    host_waits,
    in_all,
    most,
    nothing,
    often,
    taking,
    threads_of,
)
from kernelscope.metrics.grouping import Key
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import (
    Pieces,
    intersection,
    subtract,
    total,
    union,
    unite,
)
from kernelscope.metrics.library_domains import is_data_pipeline
from kernelscope.metrics.savable import (
    LEAST_SHARE,
    Found,
    Seen,
    idle_where,
    late_threads,
    spared,
    within_basis,
)
from kernelscope.metrics.thread_states import rows_of
from kernelscope.metrics.waiting import WAITS
from kernelscope.trace import Table, is_missing, missing_value

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Spent = tuple[Int64s, Int64s, Int64s]
"""Starts and ends of what the host could spare, and the process of each."""

_MISSING = missing_value(np.dtype(np.int64))

_FETCHING = f"{HOST}data_loading"


def data_loading(seen: Seen) -> Found | None:
    """Does the host fetch data while the GPU waits?"""
    if not seen.late:
        return None
    fetching = _fetching(seen)
    start, end, process = fetching.spent
    if not len(start):
        return None
    savable = spared(seen, start, end, process)
    time = taking(within_basis(start, end, seen.basis), seen)
    several = fetching.threads > 1
    return Found(
        "data_loading",
        "The GPU starves because the host loads data",
        f"{'launching threads fetch' if several else 'the launching thread fetches'} data for "
        f"{time}{' in all' if several else ''}, as {'their' if several else 'its'} NVTX ranges or "
        f"operating-system calls say; the GPU stands still for up to {most(savable, seen)}, "
        f"{DELAYED}",
        "load ahead: more workers, prefetching, pinned memory, decoding on the GPU; or a faster "
        "store",
        "analyze FILE BETWEEN",
        savable,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Fetching:
    """When threads fetched data, and how many did in the basis."""

    spent: Spent
    threads: int


def _fetching(seen: Seen) -> _Fetching:
    """Return when threads fetched data for whose launches a device had to wait at some time.

    What a CUDA call reads is no data: code, or what the driver asks of the system.
    """
    trace = seen.trace
    found: list[Pieces] = []
    processes: list[int] = []
    loading = trace.ranges.holds("name", range_loads_data)
    loading |= trace.ranges.holds("domain", is_data_pipeline)
    reading = trace.os_calls.holds("name", os_call_loads_data)
    some = loading.any() or reading.any()
    calls = seen.launches.api_calls
    for thread in late_threads(seen) if some else ():
        own = rows_of(calls, thread)
        in_calls = union(calls["start_ns"][own], calls["end_ns"][own])
        named_so, read = (
            union(table["start_ns"][rows], table["end_ns"][rows])
            for table, rows in (
                (trace.ranges, _of(thread, trace.ranges, loading)),
                (trace.os_calls, _of(thread, trace.os_calls, reading)),
            )
        )
        found.append(unite(named_so, subtract(read, in_calls)))
        processes += [_MISSING if thread[0] is None else thread[0]] * len(found[-1][0])
    none = np.empty(0, dtype=np.int64)
    start, end = (np.concatenate([none, *(each[i] for each in found)]) for i in (0, 1))
    threads = sum(within_basis(*each, seen.basis) > 0 for each in found)
    return _Fetching((start, end, np.array(processes, dtype=np.int64)), threads)


def _of(thread: Key, table: Table, wanted: Bools) -> Rows:
    rows = rows_of(table, thread)
    return rows[wanted[rows]]


def outside_range(seen: Seen) -> Found | None:
    """Is the host busy between the ranges of the iterations while the GPU waits?"""
    rows = seen.iterations
    if not seen.late or not len(rows) or is_missing(rows["range_ns"]).any():
        return None
    start = rows["start_ns"] + rows["range_ns"]
    outside = start, np.maximum(rows["start_ns"] + rows["period_ns"], start)
    if total(outside) < LEAST_SHARE * total(seen.basis.periods):
        return None  # what the pauses shrink by is at most what is spent there
    host = idle_where(seen, lambda cause, _: cause.startswith(HOST) and cause != _FETCHING)
    if nothing([intersection(each, outside) for each in host]):
        return None
    process = seen.summary.process_id
    of = np.full(len(rows), _MISSING if process is None else process)
    savable = spared(seen, *outside, of)
    share = total(outside) / max(1, int(rows["period_ns"].sum()))
    return Found(
        "outside_range",
        f"The GPU starves between iterations, outside the range {seen.summary.family!r}",
        f"{units.ratio(share)} of the steps lies outside the range, and the GPU stands still for "
        f"up to {most(savable, seen)}, {DELAYED}",
        "data loading usually lies there: annotate it with an NVTX range, or record "
        "--trace=osrt, to see; then load ahead, with more workers or prefetching",
        "analyze FILE BETWEEN",
        savable,
    )


def synchronizations(seen: Seen) -> Found | None:
    """Does the host wait for the GPU, and come late with the next work?"""
    kind = seen.waits.kind == WAITS.index("synchronization")
    if not seen.late or not kind.any():
        return None
    waited = seen.waits.start[kind], seen.waits.end[kind]
    taken = within_basis(*waited, seen.basis)
    if taken < LEAST_SHARE * total(seen.basis.periods):
        return None  # as cheap as that
    process = seen.launches.api_calls["process_id"][seen.waits.call[kind]]
    savable = spared(seen, *waited, process)
    return Found(
        "synchronizations",
        "The host synchronises, and the GPU runs dry afterwards",
        f"{often(waited[0], 'synchronisation', seen)}, in which "
        f"{host_waits(kind, seen)}; the GPU stands still for up to "
        f"{most(savable, seen)}, {DELAYED}",
        "do not read results in every step (.item(), .cpu(), print); synchronise events, not "
        "devices; let the host run ahead",
        "analyze FILE BETWEEN",
        savable,
    )


def _calls_of(seen: Seen, *classes: str) -> Rows:
    """Return the rows of the calls without wrappers of some classes."""
    calls = seen.launches.api_calls
    return np.flatnonzero(calls.holds("name", lambda name: class_of(name) in classes))


def _spent_in(seen: Seen, call: Rows) -> Spent:
    """Return starts, ends and processes of some calls without wrappers."""
    start, end, process = (
        seen.launches.api_calls[name][call] for name in ("start_ns", "end_ns", "process_id")
    )
    return start.astype(np.int64), end.astype(np.int64), process


def allocations(seen: Seen) -> Found | None:
    """Is memory allocated or freed while the GPU waits?"""
    if not seen.late:
        return None
    call = _calls_of(seen, "allocation", "free")
    if not len(call):
        return None
    start, end, process = _spent_in(seen, call)
    savable = spared(seen, start, end, process)
    taken, threads = within_basis(start, end, seen.basis), threads_of(call, start, end, seen)
    return Found(
        "allocations",
        "The GPU waits while memory is allocated or freed",
        f"in {often(start, 'call', seen)} to allocate or free memory "
        f"{in_all(taken, threads, 'spend', seen)}; the GPU stands still for up to "
        f"{most(savable, seen)}, {DELAYED}",
        "allocate once and keep it: a caching allocator, cudaMallocAsync with a pool that keeps "
        "its memory, fixed shapes",
        "analyze FILE --format markdown --table api_calls",
        savable,
    )


def module_loading(seen: Seen) -> Found | None:
    """Is code loaded while the GPU waits?"""
    if not seen.late:
        return None
    waits = seen.waits.kind == WAITS.index("blocked: module")
    call = np.concatenate((_calls_of(seen, "module"), seen.waits.call[waits]))
    if not len(call):
        return None
    start, end, process = _spent_in(seen, call)
    savable = spared(seen, start, end, process)
    taken = within_basis(*union(start, end), seen.basis)
    return Found(
        "module_loading",
        "Code is loaded or compiled while work is under way",
        f"the host spends {taking(taken, seen)} in calls that load code, or in first launches that "
        f"do; the GPU stands still for up to {most(savable, seen)}, {DELAYED}",
        "warm up before measuring (every shape once), load eagerly (CUDA_MODULE_LOADING=EAGER), "
        "ship code for this GPU rather than PTX",
        "analyze FILE BETWEEN",
        savable,
    )
