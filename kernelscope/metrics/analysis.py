"""Everything that `kernelscope analyze` says of a trace, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.errors import SelectionError
from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.copies import copies, copies_by_kind
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_identity import Lane, device_ordinals, identify
from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.device_time import checks, device_processes, measure
from kernelscope.metrics.device_time import devices as devices_
from kernelscope.metrics.graph_kernels import graph_kernels
from kernelscope.metrics.health import Finding, capture_cost, health
from kernelscope.metrics.iteration_results import ITERATIONS, IterationSummary
from kernelscope.metrics.iteration_window import window_of_iterations, window_of_range
from kernelscope.metrics.iterations import iterations
from kernelscope.metrics.kernels import kernels, kernels_by_device, launch_shapes
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.mark_iterations import Marked, mark_iterations
from kernelscope.metrics.range_checks import range_checks
from kernelscope.metrics.range_paths import range_paths
from kernelscope.metrics.range_results import GRAPH_KERNELS, RANGES, RANGES_BY_NAME, UNATTRIBUTED
from kernelscope.metrics.ranges import measure as measure_ranges
from kernelscope.metrics.ranges import ranges, ranges_by_name, unattributed
from kernelscope.metrics.results import RESULTS
from kernelscope.metrics.selection import select, window_between
from kernelscope.metrics.window import Window, whole
from kernelscope.schema import TableSchema
from kernelscope.trace import Capture, Table, Trace, distinct, stacked

TABLES: tuple[TableSchema, ...] = (
    *RESULTS,
    ITERATIONS,
    RANGES,
    RANGES_BY_NAME,
    UNATTRIBUTED,
    GRAPH_KERNELS,
)
"""Every table of an analysis, in the order of a report."""

MAX_RAW_PATHS = 100_000
"""Digits in range names are folded where they would make more paths than this."""

METRICS: dict[str, Callable[[Trace, Window], Table]] = {
    "kernels": kernels,
    "kernels_by_device": kernels_by_device,
    "launch_shapes": launch_shapes,
    "api_calls": api_calls,
    "copies": copies,
    "copies_by_kind": copies_by_kind,
    "capture_cost": capture_cost,
}
"""Result table → the function that makes it; a new metric is a function and a line here."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The result of :func:`analyze`.

    Attributes
    ----------
    capture : Capture
        What the file says about itself.
    window : Window
        The interval that every figure speaks of.
    tables : mapping of str to Table
        The result tables of :mod:`kernelscope.metrics.results` by name; each is an attribute,
        too: ``analysis.kernels.df``.
    iteration_summary : IterationSummary
        How the training iterations were found, which of them are steady, and the steady step.
    """

    capture: Capture
    window: Window
    tables: Mapping[str, Table]
    iteration_summary: IterationSummary

    def __getattr__(self, name: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            raise AttributeError(f"an analysis has no table {name!r}") from None

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return bool(self.tables["checks"]["ok"].all())


def analyze(  # noqa: PLR0913 - what the command line offers
    trace: Trace,
    *,
    between: tuple[int | None, int | None] | None = None,
    only: str | None = None,
    within: str | None = None,
    processes: Sequence[int] = (),
    devices: Sequence[int] = (),
    iteration: str | None = None,
    batch_size: int | None = None,
    ranks: int | None = None,
    cross_check: bool = False,
) -> Analysis:
    """Compute everything that `kernelscope analyze` reports.

    Parameters
    ----------
    trace : Trace
        What :func:`kernelscope.read` returned.
    between : pair of int or None, optional
        Window in ns of trace time; None leaves an end open.
    only : str, optional
        Window of iterations: ``steady``, a number (``12``) or a slice (``10:20``).
    within : str, optional
        Window of an NVTX range by name or path: ``forward``, ``step 12/forward``, ``step *[3]``.
        At most one of the three windows can be chosen.
    processes, devices : sequence of int
        Operating-system ids and CUDA ordinals to look at; empty for all.
    iteration : str, optional
        Name of the NVTX ranges that are the iterations, a glob; looked for where not given.
    batch_size, ranks : int, optional
        Samples per iteration and rank, and number of ranks, for the throughput.
    cross_check : bool
        Whether to compare the iterations with what repeats in the kernel sequence.

    Raises
    ------
    SelectionError
        If the window, a process, a device or a range does not exist.
    NotRecordedError
        If what was asked for needs ranges or iterations that the trace does not have.
    """
    chosen = select(trace, processes, devices)
    launches = launch_times(chosen)
    marked = mark_iterations(chosen, iteration, launches)
    window = chosen_window(chosen, marked, between, only, within)
    family = marked.family if marked.from_ranges else None
    attribution = attribute(chosen, family=family, launches=launches)
    steps = iterations(
        chosen,
        window,
        marked=marked,
        launches=launches,
        owners=(attribution.kernels.iteration, attribution.graphs.iteration) if family else None,
        batch_size=batch_size,
        ranks=ranks,
        cross_check=cross_check,
    )
    tables, notes = _range_tables(chosen, window, attribution)
    del attribution  # as large as the trace
    tables["iterations"] = steps.rows
    tables["health"] = health(chosen, whole_trace=trace, found_elsewhere=notes, launches=launches)
    del launches
    tables |= {name: metric(chosen, window) for name, metric in METRICS.items()}
    tables |= _device_tables(trace, chosen, window)
    summed = range_checks(chosen, window, tables["ranges"], tables["unattributed"])
    tables["checks"] = stacked(tables["checks"], summed)
    return Analysis(trace.capture, window, tables, steps.summary)


def chosen_window(
    trace: Trace,
    marked: Marked,
    between: tuple[int | None, int | None] | None,
    only: str | None,
    within: str | None,
) -> Window:
    """Return the one window that was chosen; the whole trace where none was."""
    if sum(choice is not None for choice in (between, only, within)) > 1:
        raise SelectionError(
            "Several windows were chosen at once.", "Choose by time, by iterations or by range."
        )
    if between is not None:
        return window_between(trace, between)
    if only is not None:
        return window_of_iterations(marked, only)
    return whole(trace) if within is None else window_of_range(trace, within)


def _folded_ranges() -> Finding:
    return Finding(
        "ranges_folded",
        "info",
        1,
        f"There are more than {MAX_RAW_PATHS:,} distinct range paths: digits in their names are "
        "folded ('step 12' is 'step #'). kernelscope ranges FILE --raw keeps them.",
    )


def _range_tables(
    trace: Trace, window: Window, attribution: Attribution
) -> tuple[dict[str, Table], list[Finding]]:
    """Return what ranges took, and a note where raw paths are more than anybody can use."""
    shared: dict[str, Any] = {"attribution": attribution}
    paths, folded = None, False
    if len(trace.ranges):
        nesting = attribution.enclosed.nesting
        paths = range_paths(trace.ranges, nesting)
        folded = len(paths) > MAX_RAW_PATHS
        paths = range_paths(trace.ranges, nesting, folded=True) if folded else paths
        shared["measured"] = measure_ranges(trace, window, attribution=attribution)
    tables = {
        "ranges": ranges(trace, window, paths=paths, folded=folded, **shared),
        "ranges_by_name": ranges_by_name(trace, window, folded=folded, **shared),
        "unattributed": unattributed(trace, window, attribution=attribution),
        "graph_kernels": graph_kernels(trace, window, attribution=attribution),
    }
    return tables, [_folded_ranges()] if folded else []


def _device_tables(trace: Trace, chosen: Trace, window: Window) -> dict[str, Table]:
    """Account for the devices that `chosen` uses.

    A device's account covers every recorded process, whichever were chosen: what another
    process does on a GPU is not idle time. It is measured once for all its tables.
    """
    measured = measure(trace, window)
    tables = {
        "devices": devices_(trace, window, measured=measured),
        "device_ordinals": device_ordinals(trace, measured.identity),
        "device_processes": device_processes(trace, window, measured=measured),
        "streams": streams(trace, window, identity=measured.identity),
        "gaps": gaps(trace, window, measured=measured),
    }
    if chosen is trace:
        return tables | {"checks": checks(measured)}
    lanes = set(identify(chosen).lanes)
    return _of_lanes(tables, lanes) | {"checks": checks(measured, lanes)}


def _of_lanes(tables: dict[str, Table], lanes: set[Lane]) -> dict[str, Table]:
    """Keep the rows of the given (process, ordinal) pairs and of their GPUs, renumbered."""
    kept = {
        name: tables[name].take(
            np.array([lane in lanes for lane in _lanes(tables[name])], dtype=np.bool_)
        )
        for name in ("device_ordinals", "device_processes", "streams")
    }
    used = distinct(kept["device_ordinals"]["index"])
    place = np.full(len(tables["devices"]) + 1, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    for name, column in (("device_ordinals", "index"), ("devices", "index"), ("gaps", "device")):
        table = kept.get(name, tables[name])
        table = table.take(np.isin(table[column], used))
        columns = {**table.columns, column: place[table[column]]}
        kept[name] = Table.make(table.schema, columns)
    return tables | kept


def _lanes(table: Table) -> list[Lane]:
    return list(zip(table.values("process_id"), table.values("device_id"), strict=True))
