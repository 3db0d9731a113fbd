"""Part of a trace: some processes, some devices, some stretch of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Table, Trace, distinct, is_missing

BY_PROCESS = (
    "kernels", "api_calls", "copies", "graphs", "graph_nodes", "syncs", "event_records", "ranges",
    "overheads", "os_calls", "on_core", "counters",
)  # fmt: skip
LATEST_NS = 1 << 62

BY_DEVICE = ("kernels", "copies", "graphs", "counters")


def select(trace: Trace, processes: Sequence[int] = (), devices: Sequence[int] = ()) -> Trace:
    """Return the trace of the chosen processes and devices.

    Parameters
    ----------
    trace : Trace
        The whole trace.
    processes : sequence of int
        Operating-system ids; empty for all.
    devices : sequence of int
        CUDA ordinals, as each process counts them; empty for all. Host calls stay.

    Raises
    ------
    SelectionError
        If no event belongs to a named process or device; the hint lists those there are.
    NotRecordedError
        If the capture does not say which process an event belongs to.
    """
    chosen = trace
    if processes:
        _known("process", "process_id", processes, [getattr(trace, n) for n in BY_PROCESS])
        chosen = _kept(chosen, BY_PROCESS, "process_id", processes)
    if devices:
        _known("device", "device_id", devices, [getattr(trace, n) for n in BY_DEVICE])
        chosen = _kept(chosen, BY_DEVICE, "device_id", devices)
    return chosen


def window_between(trace: Trace, between: tuple[int | None, int | None]) -> Window:
    """Return the window from `between`, whose open ends are those of the whole trace.

    Raises
    ------
    SelectionError
        If the window is empty, or lies outside everything that was recorded.
    """
    if any(abs(end) > LATEST_NS for end in between if end is not None):
        raise SelectionError("The window ends beyond any clock: times are nanoseconds.")
    everything = whole(trace)
    start = everything.start_ns if between[0] is None else between[0]
    end = everything.end_ns if between[1] is None else between[1]
    if start >= end and None not in between:
        raise SelectionError(
            f"The window from {start:,} ns to {end:,} ns is empty.",
            "Give a start that lies before the end: --between 1.5s,2s",
        )
    if start >= end or end <= everything.start_ns or start >= everything.end_ns:
        raise SelectionError(
            f"Nothing was recorded {_spoken(between)}.",
            f"CUDA activity lies between {everything.start_ns:,} ns and "
            f"{everything.end_ns:,} ns of the trace.",
        )
    return Window(start, end, "--between")


def _spoken(between: tuple[int | None, int | None]) -> str:
    start, end = between
    if end is None:
        return "at all" if start is None else f"after {start:,} ns"
    return f"before {end:,} ns" if start is None else f"between {start:,} ns and {end:,} ns"


def _kept(trace: Trace, tables: Sequence[str], column: str, values: Sequence[int]) -> Trace:
    return trace.with_tables(
        **{name: _rows_of(getattr(trace, name), column, values) for name in tables}
    )


def _rows_of(table: Table, column: str, values: Sequence[int]) -> Table:
    mask: npt.NDArray[np.bool_] = np.isin(table[column], list(values))
    return table if mask.all() else table.take(mask)


def _known(what: str, column: str, asked: Sequence[int], tables: Sequence[Table]) -> None:
    there = {
        int(value)
        for table in tables
        if len(table)
        for value in distinct(table[column][~is_missing(table[column])])
    }
    if not there:
        raise NotRecordedError(
            f"The trace does not say which {what} an event belongs to.",
            f"Leave the choice of a {what} out.",
        )
    for value in asked:
        if value not in there:
            known = ", ".join(str(number) for number in sorted(there)[:12])
            raise SelectionError(
                f"There is no {what} {value} in the trace.", f"It has events of {what} {known}."
            )
