"""Training iterations: their periods, what the device does in each, and the steady step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope import units
from kernelscope.metrics.annotated_iterations import batch_size as said_batch_size
from kernelscope.metrics.annotated_iterations import labels
from kernelscope.metrics.device_time import DeviceTime
from kernelscope.metrics.intervals import (
    Pieces,
    covered_before,
    no_times,
    sums_by,
    union,
    unite,
)
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.iteration_results import (
    ITERATIONS,
    STATES,
    IterationSummary,
    SequenceCheck,
)
from kernelscope.metrics.kernel_sequence import agrees, repeating_unit
from kernelscope.metrics.launch_times import (
    UNKNOWN,
    LaunchTimes,
    called_at,
    calls_by_process,
    ids,
    launch_times,
)
from kernelscope.metrics.mark_iterations import Marked, mark_iterations
from kernelscope.metrics.steady import figures
from kernelscope.metrics.window import Window, covers, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace, median

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

TBD_SAMPLE = 50
"""TBD (Zhu et al., 2018) samples 50 to 1000 iterations after warm-up."""

_NOT_DEVICE = "HtoH"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Iterations:
    """The result of :func:`iterations`: a summary, and a table with a row per iteration."""

    summary: IterationSummary
    rows: Table
    marked: Marked


def iterations(  # noqa: PLR0913 - what the command line offers
    trace: Trace,
    window: Window,
    *,
    pattern: str | None = None,
    owners: tuple[Int32s, Int32s] | None = None,
    batch_size: int | None = None,
    ranks: int | None = None,
    cross_check: bool = False,
    marked: Marked | None = None,
    launches: LaunchTimes | None = None,
    measured: DeviceTime | None = None,
) -> Iterations:
    """How long does each training iteration take, and what does the GPU do in it?

    Parameters
    ----------
    trace : Trace
        The whole trace.
    window : Window
        Iterations that start in it get a row; their figures are of their whole periods. What is
        warm-up or an outlier is decided by the whole trace.
    pattern : str, optional
        Name of the ranges that are the iterations; found where it is not given.
    owners : pair of ndarray of int32, shape (kernels,) and (graphs,), optional
        Number of the iteration that launched each kernel, and each graph that was traced as one
        unit; −1 for none. Without it, they belong to the iteration of their process in whose
        period their launch call starts.
    batch_size, ranks : int, optional
        Samples per iteration and rank, by default what the ranges say (``ks.iterations``), and
        number of ranks (1), for the throughput. There is none of a repeating unit of the kernel
        sequence, which may be a part of an iteration.
    cross_check : bool
        Whether to compare the markers with the kernel sequence.
    marked : Marked, optional
        Result of :func:`mark_iterations`, where the caller has it already.
    launches : LaunchTimes, optional
        Of the same trace, likewise.
    measured : DeviceTime, optional
        What :func:`kernelscope.metrics.device_time.measure` found of the same trace; of use
        where it is of the whole of it.

    Returns
    -------
    Iterations
        An iteration lasts from its start to the next one's (``period_ns``): data loading
        usually lies outside the range. The last ends with its range and is in no period
        statistic. ``…_in_window_ns`` clip the device's time to the period, as the union over
        all devices of the process, and add up over iterations; ``attributed_ns`` is the work
        that the iteration launched, whenever it ran. The two are never mixed. Graphs that were
        traced as one unit are in both, and their part of ``attributed_ns`` is ``opaque_ns``.

    Raises
    ------
    NotRecordedError, SelectionError
        If there is no range called `pattern`.
    """
    launches = launches or launch_times(trace)
    marked = marked or mark_iterations(trace, pattern, launches)
    family = marked.family
    if family is None:
        return Iterations(_summary(marked, no_times()), Table.empty(ITERATIONS), marked)
    kept = _in_window(family, window, whole(trace))
    owners = owners or _owners(trace, family, launches)
    if measured is None or not covers(measured.window, whole(trace)):
        busy, kernels = _activity(trace, family)
    else:
        busy, kernels = _accounts(measured, family)
    columns = _device_columns(family, busy, kernels) | _attributed(trace, family, owners)
    rows = _rows(trace, marked, family, launches, columns).take(kept)
    check = _sequence_check(trace, family, launches) if cross_check and marked.from_ranges else None
    # Samples per *unit* of the kernel sequence are not known: it may be a layer.
    samples = batch_size or said_batch_size(trace, family.rows) if marked.from_ranges else None
    rate = None if samples is None else samples * (ranks or 1)
    return Iterations(_summary(marked, kept, rate, check), rows, marked)


def _in_window(family: IterationFamily, window: Window, everything: Window) -> Int64s:
    """Return the iterations that start in the window.

    A window that reaches to the first CUDA activity holds what began before that, and likewise
    behind the last: the window of a whole trace holds all of its iterations.
    """
    inside = np.ones(len(family.starts), dtype=np.bool_)
    if window.start_ns > everything.start_ns:
        inside &= family.starts >= window.start_ns
    if window.end_ns < everything.end_ns:
        inside &= family.starts < window.end_ns
    return np.flatnonzero(inside)


def _rows(
    trace: Trace,
    marked: Marked,
    family: IterationFamily,
    launches: LaunchTimes,
    columns: dict[str, ColumnData],
) -> Table:
    """Return a row per iteration, with the columns of what the device did beside the host's."""
    count = len(family.starts)
    period = family.ends - family.starts
    columns = columns | {
        "index": np.arange(count, dtype=np.int64),
        "start_ns": family.starts,
        "period_ns": period,
        "launches": _launches(trace, family, launches),
        "state": Categorical(marked.state, STATES),
    }
    if marked.from_ranges:
        span = family.range_ends - family.starts
        columns |= {
            "label": Categorical.of(labels(trace, family.rows)),
            "range_ns": span,
            "outside_ns": period - span,
        }
    return Table.make(ITERATIONS, columns)


def _device_columns(
    family: IterationFamily, busy: Pieces, kernels: Pieces
) -> dict[str, ColumnData]:
    return {
        "busy_in_window_ns": _inside(busy, family),
        "kernel_in_window_ns": _inside(kernels, family),
    }


def _owners(trace: Trace, family: IterationFamily, launches: LaunchTimes) -> tuple[Int32s, Int32s]:
    """Return the iteration that launched each kernel, and each opaque graph; −1 for none."""
    of_kernel, of_graph = (
        _iteration_at(family, called_at(work, rows, launches), ids(work["process_id"]))
        for work, rows in (
            (trace.kernels, launches.call_of_kernel),
            (trace.graphs, launches.call_of_graph),
        )
    )
    return of_kernel, of_graph


def _iteration_at(family: IterationFamily, at: Int64s, of_process: Int64s) -> Int32s:
    """Return the iteration in whose period each launch call starts; −1 for none.

    Only work of the family's own process belongs to its iterations. What has no recorded call
    goes by its own start.
    """
    process = UNKNOWN if family.process_id is None else family.process_id
    place = np.searchsorted(family.starts, at, side="right") - 1
    inside = (of_process == process) & (place >= 0)
    inside &= at < family.ends[np.maximum(place, 0)]
    return np.where(inside, place, -1).astype(np.int32)


def _accounts(measured: DeviceTime, family: IterationFamily) -> tuple[Pieces, Pieces]:
    """Return when any device of the family's process worked for it, and on kernels."""
    lanes = zip(measured.identity.lanes, measured.lanes, strict=True)
    own = [account for (process, _), account in lanes if process == family.process_id]
    return unite(*(each.busy for each in own)), unite(*(each.kernels for each in own))


def _activity(trace: Trace, family: IterationFamily) -> tuple[Pieces, Pieces]:
    """Return the same of a trace that was not measured, or not as a whole."""
    kernels, copies = (_of_process(table, family) for table in (trace.kernels, trace.copies))
    if len(trace.graphs):
        kernels = unite(kernels, _of_process(trace.graphs, family))
    return unite(kernels, copies), kernels


def _of_process(table: Table, family: IterationFamily) -> Pieces:
    process = UNKNOWN if family.process_id is None else family.process_id
    mine = ids(table["process_id"]) == process
    kinds = table.categories("kind") if "kind" in table.schema.names else ()
    if _NOT_DEVICE in kinds:
        mine &= table["kind"] != kinds.index(_NOT_DEVICE)
    start, end = table["start_ns"], table["end_ns"]
    return union(start, end) if mine.all() else union(start[mine], end[mine])


def _inside(pieces: Pieces, family: IterationFamily) -> Int64s:
    """Return how much of `pieces` lies in each period."""
    if not len(pieces[0]):
        return np.zeros(len(family.starts), dtype=np.int64)
    both = covered_before(pieces, np.concatenate((family.starts, family.ends)))
    return both[len(family.starts) :] - both[: len(family.starts)]


def _launches(trace: Trace, family: IterationFamily, launches: LaunchTimes) -> Int64s:
    process = UNKNOWN if family.process_id is None else family.process_id
    calls = calls_by_process(trace, launches).get(process)
    if calls is None:
        return np.zeros(len(family.starts), dtype=np.int64)
    found = np.searchsorted(calls, family.ends) - np.searchsorted(calls, family.starts)
    return found.astype(np.int64, copy=False)


def _attributed(
    trace: Trace, family: IterationFamily, owners: tuple[Int32s, Int32s]
) -> dict[str, ColumnData]:
    of_kernel, of_graph = owners
    mine = of_kernel >= 0
    counted = of_kernel if mine.all() else of_kernel[mine]
    total, spill = _time(trace.kernels, family, of_kernel)
    opaque, late = _time(trace.graphs, family, of_graph)
    return {
        "attributed_ns": total + opaque,
        "spill_ns": spill + late,
        "opaque_ns": opaque,
        "kernels": np.bincount(counted, minlength=len(family.starts)).astype(np.int64),
    }


def _time(work: Table, family: IterationFamily, owner: Int32s) -> tuple[Int64s, Int64s]:
    """Return how long the work of each iteration takes, and how much of it after the period."""
    count, mine = len(family.starts), owner >= 0
    start, end = work["start_ns"], work["end_ns"]
    if not mine.all():
        owner, start, end = owner[mine], start[mine], end[mine]
    late = np.flatnonzero(end > family.ends[owner])
    behind = end[late] - np.maximum(start[late], family.ends[owner[late]])
    return sums_by(owner, end - start, count), sums_by(owner[late], behind, count)


def _sequence_check(
    trace: Trace, family: IterationFamily, launches: LaunchTimes
) -> SequenceCheck | None:
    unit = repeating_unit(trace, launches)
    if unit is None:
        return None
    gaps = np.diff(unit.family.starts)
    typical = median(gaps) if len(gaps) else None
    same = agrees(family, unit.family)
    return SequenceCheck(
        unit.family.folded_name, len(unit.family.starts), typical, unit.confidence, same
    )


def _summary(
    marked: Marked,
    kept: Int64s,
    samples: int | None = None,
    check: SequenceCheck | None = None,
) -> IterationSummary:
    """Summarise the iterations of the numbers `kept`."""
    family = marked.family
    period = no_times() if family is None else (family.ends - family.starts)[kept]
    warmup, steady, outlier, last = (marked.state[kept] == code for code in range(len(STATES)))
    after = ~warmup & ~last
    notes = marked.notes
    if family is not None and int(after.sum()) < TBD_SAMPLE:
        notes += (
            f"{units.quantity(int(after.sum()), 'iteration')} after warm-up; the TBD benchmark "
            f"samples at least {TBD_SAMPLE}.",
        )
    return IterationSummary(
        family=None if family is None else family.folded_name,
        domain=family.domain if family is not None and marked.from_ranges else None,
        process_id=None if family is None else family.process_id,
        thread_id=None if family is None else family.thread_id,
        source=marked.source,
        score=marked.score,
        runner_up=marked.runner_up,
        also_in=marked.also_in,
        count=len(kept),
        warmup=tuple(kept[warmup].tolist()),
        outliers=tuple(kept[outlier].tolist()),
        steady=figures(period[steady]),
        throughput_per_s=throughput(period[after], samples),
        kernel_sequence=check,
        notes=notes,
    )


def throughput(periods: Int64s, samples: int | None) -> float | None:
    """Return samples per second of iterations of the given periods in ns.

    Parameters
    ----------
    periods : ndarray of int64, shape (n,)
        Of the iterations after warm-up.
    samples : int or None
        Samples per iteration, over all ranks; None where not known.
    """
    time = int(periods.sum())
    if samples is None or not time:
        return None
    return len(periods) * samples * 1e9 / time
