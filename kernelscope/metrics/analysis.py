"""Everything that `kernelscope analyze` says of a trace, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelscope import units
from kernelscope.errors import SelectionError
from kernelscope.metrics import analysis_parts as parts
from kernelscope.metrics import (
    launch_results,
    overlap_results,
    sample_results,
    transfer_results,
    utilization_results,
)
from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.attribution import attribute
from kernelscope.metrics.communication_results import COMMUNICATION, COMMUNICATION_BY_DEVICE
from kernelscope.metrics.copies import copies, copies_by_kind
from kernelscope.metrics.finding_results import FINDINGS
from kernelscope.metrics.health import capture_cost, health
from kernelscope.metrics.idle_results import GAP_SPECTRUM, IDLE, IDLE_BY_ITERATION
from kernelscope.metrics.iteration_results import ITERATIONS, IterationSummary
from kernelscope.metrics.iteration_window import window_of_iterations, window_of_range
from kernelscope.metrics.iterations import iterations
from kernelscope.metrics.kernels import kernels, kernels_by_device, launch_shapes
from kernelscope.metrics.known_devices import with_known_limits
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.mark_iterations import Marked, mark_iterations
from kernelscope.metrics.peak_results import PEAKS
from kernelscope.metrics.range_checks import range_checks
from kernelscope.metrics.range_results import GRAPH_KERNELS, RANGES, RANGES_BY_NAME, UNATTRIBUTED
from kernelscope.metrics.results import RESULTS
from kernelscope.metrics.selection import select, window_between
from kernelscope.metrics.window import Window, whole
from kernelscope.metrics.work_results import COUNTER_COVERAGE, WORK, WORK_BY_SHAPE
from kernelscope.schema import TableSchema
from kernelscope.trace import Capture, Table, Trace, stacked

if TYPE_CHECKING:
    from kernelscope.parsers.counter_set import CounterSet

TABLES: tuple[TableSchema, ...] = (
    *RESULTS,
    ITERATIONS,
    RANGES,
    RANGES_BY_NAME,
    UNATTRIBUTED,
    GRAPH_KERNELS,
    overlap_results.OVERLAP,
    overlap_results.OVERLAP_BY_ITERATION,
    overlap_results.HOST_THREADS,
    overlap_results.CPU,
    launch_results.LAUNCHES,
    launch_results.LAUNCHES_BY_KERNEL,
    launch_results.LAUNCH_TOTALS,
    launch_results.QUEUE_DEPTH,
    launch_results.LAUNCH_STRETCHES,
    transfer_results.TRANSFERS,
    transfer_results.MIGRATIONS,
    IDLE,
    GAP_SPECTRUM,
    IDLE_BY_ITERATION,
    COMMUNICATION,
    COMMUNICATION_BY_DEVICE,
    WORK,
    WORK_BY_SHAPE,
    COUNTER_COVERAGE,
    *sample_results.TABLES,
    FINDINGS,
    PEAKS,
    *utilization_results.TABLES,
)
"""Every table of an analysis, in the order of a report."""

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        window = units.duration(self.window.duration_ns)
        return f"<Analysis {self.capture.file!r}: window {window}; tables {', '.join(self.tables)}>"

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
    communication: Sequence[str] = (),
    gpu: str | None = None,
    clock_hz: int | None = None,
    counters: CounterSet | None = None,
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
    communication : sequence of str
        Patterns of further kernels that communicate between GPUs, ``REGEX`` or ``KIND=REGEX``.
    gpu : str, optional
        What the GPUs are, for their peaks and limits, where the trace does not say or is not right.
    clock_hz : int, optional
        The clock at which their peaks are reckoned.
    counters : CounterSet, optional
        What :func:`kernelscope.read_counters` read of another run of the same program. The
        counters that a trace holds itself are used without.

    Raises
    ------
    TypeError
        If `trace` is something else: a path, say.
    SelectionError
        If the window, a process, a device or a range does not exist, or `gpu` names no GPU.
    NotRecordedError
        If what was asked for needs ranges or iterations that the trace does not have.
    """
    if not hasattr(trace, "capture"):
        raise TypeError(f"analyze takes what kernelscope.read returns, not {trace!r}")
    trace, limits = with_known_limits(trace, gpu)
    chosen = select(trace, processes, devices)
    launches = launch_times(chosen)
    marked = mark_iterations(chosen, iteration, launches)
    window = chosen_window(chosen, marked, between, only, within)
    family = marked.family if marked.from_ranges else None
    attribution = attribute(chosen, family=family, launches=launches)
    tables, notes = parts.range_tables(chosen, window, attribution)
    known = parts.shared(trace, chosen, window, launches, communication)
    steps = iterations(
        chosen,
        window,
        marked=marked,
        launches=launches,
        owners=(attribution.kernels.iteration, attribution.graphs.iteration) if family else None,
        batch_size=batch_size,
        ranks=ranks,
        cross_check=cross_check,
        measured=None if known.partial else known.measured,
    )
    talk, more = parts.communication_tables(known, attribution, ranks)
    samples, doubts = parts.sample_tables(known, attribution, steps)
    del attribution  # as large as the trace
    tables["peaks"], guesses = parts.peak_table(known, gpu, clock_hz)
    work, missing = parts.counted_tables(chosen, window, launches, counters)
    tables |= talk | work | samples | {"iterations": steps.rows}
    tables["health"] = health(
        chosen,
        whole_trace=trace,
        found_elsewhere=[*notes, *more, *limits, *guesses, *missing, *doubts],
        launches=launches,
    )
    tables |= {name: metric(chosen, window) for name, metric in METRICS.items()}
    tables |= parts.device_tables(known)
    tables |= parts.launch_tables(known)
    tables |= parts.host_tables(known, steps)
    explained = parts.explained_idle(known)
    tables["launch_stretches"] = parts.stretch_table(known, explained)
    tables |= parts.idle_tables(known, explained, steps)
    tables |= parts.utilization_tables(known, explained, steps, tables)
    tables["gaps"] = parts.gap_table(known)  # large: not before what takes more for a moment
    tables["checks"] = stacked(
        parts.device_checks(known, explained, tables),
        range_checks(chosen, window, tables["ranges"], tables["unattributed"]),
    )
    tables["findings"] = parts.finding_table(known, explained, steps, tables)
    tables = parts.of_chosen(known, tables)
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
