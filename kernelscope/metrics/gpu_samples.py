"""What sampled GPU counters show: the mean of each in a window, iteration, range and kernel.

Which samples count where is in :mod:`sample_series` (what a sample covers), :mod:`sample_shares`
(stretches of time), :mod:`sample_kernels` and :mod:`sample_ranges`; the rows that they become are
made in :mod:`sample_rows`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kernelscope.metrics import sample_results as results
from kernelscope.metrics.device_identity import Identity, Lane, identify
from kernelscope.metrics.health import Finding
from kernelscope.metrics.intervals import Pieces
from kernelscope.metrics.range_paths import STYLES
from kernelscope.metrics.sample_health import sample_findings
from kernelscope.metrics.sample_kernels import kernel_shares
from kernelscope.metrics.sample_ranges import RangesSeen, projected
from kernelscope.metrics.sample_rows import Sampled, Scope, table_of
from kernelscope.metrics.sample_series import Series, series_of
from kernelscope.metrics.sample_shares import shares
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace


def sampled(trace: Trace, identity: Identity | None = None) -> Sampled:
    """Which GPUs were sampled, when, and with which values?

    Parameters
    ----------
    trace : Trace
        Its samples are read, which are large.
    identity : Identity, optional
        Of the same trace, where it was found before.
    """
    known = identity or identify(trace)
    series = series_of(trace.gpu_samples)
    of_gpu: dict[int | None, list[Series]] = {}
    for each in series:  # a source of a few samples is a hiccup of the profiler, and no GPU
        if len(each.start) >= results.FEWEST_SAMPLES:
            of_gpu.setdefault(each.gpu_id, []).append(each)
    devices = tuple(
        _device(each, known) if len(of_gpu.get(each.gpu_id, ())) == 1 else None for each in series
    )
    return Sampled(trace, known, series, devices)


def _device(series: Series, identity: Identity) -> int | None:
    """Return the device whose GPU a series samples; a part of a GPU (MIG) is none."""
    found = {
        index
        for described, index in zip(identity.described, identity.index, strict=True)
        if described.get("gpu_id") == series.gpu_id is not None
        and not str(described.get("uuid") or "").startswith("MIG")
    }
    return found.pop() if len(found) == 1 else None


def gpu_metrics(
    trace: Trace, window: Window | None = None, *, found: Sampled | None = None
) -> Table:
    """What did the GPUs' own counters show in the window?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        The whole trace by default.
    found : Sampled, optional
        What :func:`sampled` returned of the trace.

    Returns
    -------
    Table
        Under ``sample_results.GPU_METRICS``: a row per sampled GPU and metric, also of those
        without samples in the window. A sample counts with the part of it inside.
    """
    at = window or whole(trace)
    bounds = np.array([at.start_ns]), np.array([at.end_ns])
    one = np.zeros(1, dtype=np.intp)

    def scope(series: Series, _device: int | None) -> Scope:
        return Scope(shares(series, bounds, one, 1, whole=False), bounds[1] - bounds[0])

    return table_of(results.GPU_METRICS, found or sampled(trace), scope, {}, every=True)


def gpu_metrics_by_iteration(
    trace: Trace, index: Array, periods: Pieces, *, found: Sampled | None = None
) -> Table:
    """What did the GPUs' own counters show in each training iteration?

    Parameters
    ----------
    trace : Trace
        The trace.
    index : ndarray of int, shape (k,)
        The iterations' numbers.
    periods : Pieces
        When each was, up to the start of the next.
    found : Sampled, optional
        What :func:`sampled` returned of the trace.

    Returns
    -------
    Table
        Under ``sample_results.GPU_METRICS_BY_ITERATION``: metrics with a role, and iterations
        with samples. A sample counts with the part of it inside.
    """
    owner = np.arange(len(index))

    def scope(series: Series, _device: int | None) -> Scope:
        given = shares(series, periods, owner, len(owner), whole=False)
        return Scope(given, periods[1] - periods[0])

    keys = {"iteration": index.astype(np.int64)}
    return table_of(results.GPU_METRICS_BY_ITERATION, found or sampled(trace), scope, keys)


def gpu_metrics_by_range(
    trace: Trace, seen: RangesSeen, window: Window | None = None, *, found: Sampled | None = None
) -> Table:
    """What did the GPUs' own counters show while the work of each NVTX range was on the GPU?

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    seen : RangesSeen
        The ranges, of the same trace or of a part of it.
    window : Window, optional
        Where to look; the whole trace by default.
    found : Sampled, optional
        What :func:`sampled` returned of the trace.

    Returns
    -------
    Table
        Under ``sample_results.GPU_METRICS_BY_RANGE``: metrics with a role, and paths with
        samples of which at least 95 % lie in the path's projection.
    """
    at, paths = window or whole(trace), seen.paths

    def scope(series: Series, device: int | None) -> Scope | None:
        if device is None or not len(paths):
            return None
        pieces, owner, taken = projected(seen, known.identity, device, at)
        return Scope(shares(series, pieces, owner, len(paths), whole=True), taken)

    known = found or sampled(trace)
    keys: dict[str, ColumnData] = {}
    if len(paths):
        domains = seen.attribution.enclosed.trace.ranges.categories("domain")
        keys = {
            "path": paths.column(),
            "domain": Categorical(paths.domain, domains),
            "style": Categorical(paths.style, STYLES),
            "process_id": paths.process,
        }
    return table_of(results.GPU_METRICS_BY_RANGE, known, scope, keys, longest_first=True)


def gpu_metrics_by_kernel(
    trace: Trace,
    window: Window | None = None,
    *,
    found: Sampled | None = None,
    lanes: Collection[Lane] | None = None,
) -> Table:
    """What did the GPUs' own counters show while nothing but one kernel ran?

    Parameters
    ----------
    trace : Trace
        Everything that was recorded.
    window : Window, optional
        Where to look; the whole trace by default.
    found : Sampled, optional
        What :func:`sampled` returned of the trace.
    lanes : collection of (process, ordinal), optional
        Whose kernels to look at.

    Returns
    -------
    Table
        Under ``sample_results.GPU_METRICS_BY_KERNEL``: metrics with a role, and kernels with
        samples of which at least 95 % are covered by the kernel while nothing else ran.
    """
    at, known = window or whole(trace), found or sampled(trace)

    def scope(series: Series, device: int | None) -> Scope | None:
        if device is None or not len(trace.kernels):
            return None
        return Scope(*kernel_shares(series, trace, known.identity, device, at, lanes=lanes))

    names = trace.kernels.categories("name")
    keys = {"name": Categorical(np.arange(len(names), dtype=np.int32), names)}
    return table_of(results.GPU_METRICS_BY_KERNEL, known, scope, keys, longest_first=True)


def sample_tables(  # noqa: PLR0913 - what an analysis has at hand
    trace: Trace,
    window: Window,
    identity: Identity,
    iterations: Table,
    *,
    seen: RangesSeen | None,
    lanes: Collection[Lane] | None = None,
) -> tuple[dict[str, Table], list[Finding]]:
    """Return every table of sampled metrics by name, and what is doubtful of them.

    Parameters
    ----------
    trace, window, identity
        As above.
    iterations : Table
        Under ``iteration_results.ITERATIONS``.
    seen : RangesSeen or None
        The ranges; None where there are none.
    lanes : collection of (process, ordinal), optional
        The chosen processes' devices; None for all.
    """
    found = sampled(trace, identity)
    start = iterations["start_ns"]
    periods = start, start + iterations["period_ns"]
    by_range = (
        Table.empty(results.GPU_METRICS_BY_RANGE)
        if seen is None
        else gpu_metrics_by_range(trace, seen, window, found=found)
    )
    made = (
        gpu_metrics(trace, window, found=found),
        gpu_metrics_by_iteration(trace, iterations["index"], periods, found=found),
        by_range,
        gpu_metrics_by_kernel(trace, window, found=found, lanes=lanes),
    )
    tables = {each.schema.name: each for each in made}
    return tables, sample_findings(trace.gpu_samples, found.series, found.devices)
