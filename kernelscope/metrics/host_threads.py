"""Which threads of the host worked, and how much of the machine's processor that took."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope import units
from kernelscope.metrics import overlap_results as results
from kernelscope.metrics.device_identity import integers, texts
from kernelscope.metrics.host_time import HostActivity, host_activity, recording
from kernelscope.metrics.intervals import total
from kernelscope.metrics.overlap_results import SCHEDULING, WAIT_NAMES
from kernelscope.metrics.window import Window, clipped_durations, whole
from kernelscope.trace import ColumnData, Table, Trace

_NUMBERS = (
    "process_id", "thread_id", "on_core_ns", "busy_ns", "calls",
    *(f"waiting.{name}_ns" for name in WAIT_NAMES),
)  # fmt: skip


def host_threads(
    trace: Trace, window: Window | None = None, *, host: HostActivity | None = None
) -> Table:
    """Which threads of the host worked, and which waited?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        The whole trace by default.
    host : HostActivity, optional
        What :func:`kernelscope.metrics.host_time.host_activity` found of this window.

    Returns
    -------
    Table
        Under ``overlap_results.HOST_THREADS``: driving threads, and the others that were on a
        core in the window; by process, driving ones first, busiest first.
    """
    host = host or host_activity(trace, window)
    rows = sorted(_rows(host), key=_busiest_first)
    whose = ("process_id", "thread_id", "name")
    names = {
        (process, thread): name
        for process, thread, name in zip(*(trace.threads.values(n) for n in whose), strict=True)
    }
    columns: dict[str, ColumnData] = {
        column: integers(row[column] for row in rows) for column in _NUMBERS
    }
    columns["name"] = texts(names.get((row["process_id"], row["thread_id"])) for row in rows)
    columns["cpu_source"] = texts(row["cpu_source"] for row in rows)
    columns["driving"] = np.array([row["driving"] for row in rows], dtype=np.bool_)
    return Table.make(results.HOST_THREADS, columns)


def _rows(host: HostActivity) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for each in host.threads:
        waits = zip(WAIT_NAMES, each.waits, strict=True)
        rows.append(
            {
                "process_id": each.process_id,
                "thread_id": each.thread_id,
                "driving": True,
                "cpu_source": each.source,
                "on_core_ns": None if each.on_core is None else total(each.on_core),
                "busy_ns": total(each.busy),
                "calls": each.calls,
                **{f"waiting.{name}_ns": total(pieces) for name, pieces in waits},
            }
        )
    for (process, thread), time in host.others.items():
        # It made no call, so that it waited in none: all its time on a core is its own.
        rows.append(
            {
                "process_id": process,
                "thread_id": thread,
                "driving": False,
                "cpu_source": SCHEDULING,
                "on_core_ns": time,
                "busy_ns": time,
                "calls": 0,
                **dict.fromkeys((f"waiting.{name}_ns" for name in WAIT_NAMES), 0),
            }
        )
    return rows


def _busiest_first(row: dict[str, Any]) -> tuple[int, bool, int, int]:
    process, thread = (-1 if row[name] is None else row[name] for name in _NUMBERS[:2])
    return process, not row["driving"], -row["busy_ns"], thread


def cpu(trace: Trace, window: Window | None = None) -> Table:
    """How much of the machine's processor did the recorded processes use?

    CPU utilization as TBD (Zhu et al., 2018) defines it, Σ time of threads on cores / (cores ×
    time), of the recorded processes; TBD's own figure saw every process of the machine. Only
    from scheduling records and a known number of cores; where recording covers a part of the
    window, of that part. There is none where the records, whose threads may be missing, have more
    time on cores than the machine has.

    Parameters
    ----------
    trace : Trace
        The whole trace: processes that were not selected used the processor as well.
    window : Window, optional
        The whole trace by default.

    Returns
    -------
    Table
        Under ``overlap_results.CPU``, one row.
    """
    window = window or whole(trace)
    recorded, cores = recording(trace), trace.capture.cpu_cores
    scheduled = 0
    if recorded is not None:
        low, high = max(recorded[0], window.start_ns), min(recorded[1], window.end_ns)
        scheduled = max(0, high - low)
    on_core = int(clipped_durations(trace.on_core, window).sum()) if scheduled else None
    share = on_core / (cores * scheduled) if on_core is not None and cores else np.nan
    known = share <= 1
    return Table.make(
        results.CPU,
        {
            "cores": integers([cores]),
            "on_core_ns": integers([on_core]),
            "scheduled_ns": integers([scheduled]),
            "utilization": np.array([share if known else np.nan]),
            "reason": texts([None if known else _why_not(recorded is not None, scheduled, cores)]),
        },
    )


def _why_not(recorded: bool, scheduled: int, cores: int | None) -> str:
    if not recorded:
        return "thread scheduling was not recorded (nsys profile --cpuctxsw=process-tree)"
    if not scheduled:
        return "thread scheduling was not recorded in the window"
    if not cores:
        return "the file does not say how many processor cores the machine has"
    return (
        f"the scheduling records contradict {units.quantity(cores, 'processor core')}: they have "
        "more threads on one at once"
    )
