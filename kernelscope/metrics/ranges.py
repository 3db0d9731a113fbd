"""NVTX ranges by path, by name, one by one, and what no range covers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import range_results as results
from kernelscope.metrics.attribution import REASONS, Attribution, attribute, place_reasons
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.inheritance import NONE
from kernelscope.metrics.intervals import covered_by_group, sums_by
from kernelscope.metrics.range_paths import (
    SEPARATOR,
    STYLES,
    Paths,
    range_names,
    range_paths,
    range_styles,
)
from kernelscope.metrics.range_work import (
    MeasuredRanges,
    Projection,
    measure_ranges,
    self_kernel_ns,
    sums_of_ranges,
    work_by_code,
)
from kernelscope.metrics.window import Window, clipped_durations, starts_inside, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace, missing_value

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_MISSING = np.int64(missing_value(np.dtype(np.int64)))
_HELD = np.int8(-1)
"""In place of a reason for lying in no range, where a call does lie in one."""


def measure(
    trace: Trace, window: Window | None = None, *, attribution: Attribution | None = None
) -> MeasuredRanges:
    """What did the ranges put on the device? What :func:`ranges` and :func:`ranges_by_name` share.

    The parameters are those of :func:`ranges`.
    """
    return measure_ranges(attribution or attribute(trace), _bounds(trace, window))


def ranges(  # noqa: PLR0913 - what is at hand already
    trace: Trace,
    window: Window | None = None,
    *,
    attribution: Attribution | None = None,
    measured: MeasuredRanges | None = None,
    paths: Paths | None = None,
    folded: bool = False,
) -> Table:
    """Which parts of the program take the device's time?

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; by default everywhere. The window of a whole trace, which reaches from
        the first CUDA activity to the last, cuts no range off.
    attribution : Attribution, optional
        What :func:`attribute` returned of the same trace; with an iteration family, iterations
        and phases include what they inherit.
    measured : MeasuredRanges, optional
        What :func:`measure` returned of the same attribution and window.
    paths : Paths, optional
        What :func:`range_paths` returned of the same trace, folded or not.
    folded : bool
        Whether digits in names are folded: ``step 1`` and ``step 2`` are one row ``step #``.

    Returns
    -------
    Table
        Under ``range_results.RANGES``: one row per path, process, domain and style; longest
        kernel time first, opaque graphs included, then longest host time, then by path, domain,
        style and process.

    Notes
    -----
    ``projected_ns`` is Σ over instances of (last end − first start) of the kernels, copies,
    memsets and opaque graphs launched inside, as in ``nsys stats``' ``nvtx_gpu_proj_sum`` (which
    leaves opaque graphs out, and so does `strict`), and 0 for a range that launches nothing;
    ``busy_ns`` is the union of those operations themselves. What an opaque graph ran is unknown:
    its time is in ``opaque_ns``, and in no kernel figure. Σ ``self_kernel_ns`` over the push/pop
    paths of a domain + its unattributed kernel time = all kernel time.
    """
    attribution = attribution or attribute(trace)
    window = _bounds(trace, window)
    if not len(trace.ranges):
        return Table.empty(results.RANGES)
    paths = paths or range_paths(trace.ranges, attribution.enclosed.nesting, folded=folded)
    measured = measured or measure_ranges(attribution, window)
    columns = _path_columns(trace, paths)
    columns |= _figures(attribution, window, measured, paths.of_range, len(paths))
    columns["projected_union_ns"] = _projected_union(
        measured.projection, paths.of_range, len(paths)
    )
    own = self_kernel_ns(attribution, measured, paths.of_range, len(paths))
    columns["self_kernel_ns"] = np.where(paths.style == STYLES.index("push_pop"), own, _MISSING)
    return _longest_first(Table.make(results.RANGES, columns))


def ranges_by_name(
    trace: Trace,
    window: Window | None = None,
    *,
    attribution: Attribution | None = None,
    measured: MeasuredRanges | None = None,
    folded: bool = False,
) -> Table:
    """Which ranges take the device's time, wherever they stand?

    A kernel in two nested ranges of one name counts once. The parameters are those of
    :func:`ranges`.

    Returns
    -------
    Table
        Under ``range_results.RANGES_BY_NAME``: one row per name, domain, style and process.
    """
    attribution = attribution or attribute(trace)
    window = _bounds(trace, window)
    if not len(trace.ranges):
        return Table.empty(results.RANGES_BY_NAME)
    measured = measured or measure_ranges(attribution, window)
    names, texts = range_names(trace.ranges, folded=folded)
    styles = range_styles(trace.ranges, attribution.enclosed.nesting)
    key = trace.ranges["process_id"], trace.ranges["domain"], styles, names
    code, (process, domain, style, name) = grouped(key)
    columns = _figures(attribution, window, measured, code, len(name))
    columns |= {
        "name": Categorical(name, texts),
        "domain": Categorical(domain, trace.ranges.categories("domain")),
        "style": Categorical(style, STYLES),
        "process_id": process,
    }
    return _longest_first(Table.make(results.RANGES_BY_NAME, columns))


def range_instances(
    trace: Trace, window: Window | None = None, *, attribution: Attribution | None = None
) -> Table:
    """What did each range, one by one, put on the device, and when?

    Returns
    -------
    Table
        Under ``range_results.RANGE_INSTANCES``: one row per range, in the order of the trace.
    """
    attribution = attribution or attribute(trace)
    if not len(trace.ranges):
        return Table.empty(results.RANGE_INSTANCES)
    nest, events = attribution.enclosed.nesting, trace.ranges
    measured = measure_ranges(attribution, _bounds(trace, window))
    calls, work, projection = measured.calls, measured.work, measured.projection
    paths = range_paths(events, nest)
    path = paths.column()
    none = ~projection.exists
    columns: dict[str, ColumnData] = {
        "row": np.arange(len(events)),
        "path": Categorical(path.codes[paths.of_range], path.categories),
        "name": Categorical(events["name"], events.categories("name")),
        "domain": Categorical(events["domain"], events.categories("domain")),
        "style": Categorical(range_styles(events, nest), STYLES),
        **{key: events[key] for key in ("process_id", "thread_id", "start_ns", "end_ns")},
        "depth": nest.depth,
        "parent": np.where(nest.parent < 0, _MISSING, nest.parent),
        "projected_start_ns": np.where(none, _MISSING, projection.first),
        "projected_end_ns": np.where(none, _MISSING, projection.last),
        "launches": sums_of_ranges(calls, measured.stretches.lengths(), len(events)),
        "operations": sums_of_ranges(calls, work.operations, len(events)),
        "kernels": sums_of_ranges(calls, work.kernels, len(events)),
        "kernel_ns": sums_of_ranges(calls, work.kernel_ns, len(events)),
        "opaque_ns": np.zeros(len(events), dtype=np.int64)
        if work.opaque_ns is None
        else sums_of_ranges(calls, work.opaque_ns, len(events)),
    }
    return Table.make(results.RANGE_INSTANCES, columns)


def range_tree(table: Table) -> Table:
    """How do the ranges stand inside each other?

    Parameters
    ----------
    table : Table
        What :func:`ranges` returned.

    Returns
    -------
    Table
        The same rows, each followed by the rows of the ranges inside it; rows of one parent
        stay in their order. ``depth`` says how far to indent, ``name`` what to print.
    """
    keys = _tree_keys(table)
    place = {key: row for row, key in enumerate(keys)}
    children: dict[int, list[int]] = {}
    for row, (path, domain, style, process) in enumerate(keys):
        outer = place.get((path[:-1], domain, style, process), -1)
        children.setdefault(outer, []).append(row)
    order: list[int] = []
    left = children.get(-1, [])[::-1]
    while left:
        row = left.pop()
        order.append(row)
        left.extend(children.get(row, [])[::-1])
    return table.take(np.array(order, dtype=np.intp))


def _tree_keys(table: Table) -> list[tuple[tuple[str, ...], str, str, int]]:
    paths = [tuple(str(text).split(SEPARATOR)) for text in table.texts("path")]
    domains, styles = table.texts("domain"), table.texts("style")
    process = table["process_id"].tolist()
    return [
        (path, str(domain), str(style), process)
        for path, domain, style, process in zip(paths, domains, styles, process, strict=True)
    ]


def unattributed(
    trace: Trace, window: Window | None = None, *, attribution: Attribution | None = None
) -> Table:
    """Which kernel time, and which opaque graphs, belong to no range, and why?

    Returns
    -------
    Table
        Under ``range_results.UNATTRIBUTED``, longest first: rows without a domain tell of the
        work that lies in no range at all and inherits none, the others, domain by domain, of
        what is outside its push/pop ranges. The rule of nsys knows no opaque graphs.
    """
    if not len(trace.kernels) and not len(trace.graphs):
        return Table.empty(results.UNATTRIBUTED)
    attribution = attribution or attribute(trace)
    window = _bounds(trace, window)
    call = attribution.kernels.call
    place = place_reasons(trace.ranges, attribution.enclosed.calls)
    inside, time = starts_inside(trace.kernels, window), clipped_durations(trace.kernels, window)
    graph_call, graph_time = _opaque(attribution, window)
    records: list[tuple[str | None, int, int, int, int]] = []
    for where, calls, by_family in _without_range(attribution):
        why = np.where(_family_reason(attribution), attribution.inheritance.reason, place)
        why = np.where(calls, why if by_family else place, _HELD)
        of_call = np.append(why, np.int8(REASONS.index("no_launch_row")))
        of_kernel, of_graph = of_call[call], of_call[graph_call]
        for number in range(len(REASONS)):
            mine, graphs = of_kernel == number, of_graph == number
            count, opaque = np.count_nonzero(mine & inside), graph_time.sum(where=graphs)
            total = time.sum(where=mine) if mine.any() else 0
            if count or total or opaque:
                records.append((where, number, int(count), int(total), int(opaque)))
    records.sort(key=lambda row: (row[0] is not None, row[0] or "", -row[3] - row[4]))
    return Table.make(
        results.UNATTRIBUTED,
        {
            "domain": Categorical.of([record[0] for record in records]),
            "reason": Categorical.of([REASONS[record[1]] for record in records]),
            "kernels": np.array([record[2] for record in records], dtype=np.int64),
            "total_ns": np.array([record[3] for record in records], dtype=np.int64),
            "opaque_ns": np.array([record[4] for record in records], dtype=np.int64),
        },
    )


def _opaque(attribution: Attribution, window: Window) -> tuple[Int32s, Int64s]:
    """Return the launch of each opaque graph and its time; none under the rule of nsys."""
    graphs = attribution.enclosed.trace.graphs
    if attribution.enclosed.strict:
        graphs = Table.empty(graphs.schema)
    return attribution.graphs.call[: len(graphs)], clipped_durations(graphs, window)


def _without_range(
    attribution: Attribution,
) -> Iterator[tuple[str | None, npt.NDArray[np.bool_], bool]]:
    """Yield the calls in no range at all, then domain by domain those outside its stacks.

    And whether the iteration family has a say there: it has in general and in its own domain,
    where it cannot bring calls into a stack that its own ranges have no place in.
    """
    around, family = attribution.enclosed, attribution.family
    row = attribution.inheritance.inherited
    yield None, ~around.ranged & (row < 0), family is not None
    pushed = range_styles(around.trace.ranges, around.nesting) == STYLES.index("push_pop")
    stacked = np.append(pushed, False)[row]  # −1: the spare last place
    for domain, rows in around.innermost.items():
        own = family is not None and family.domain == domain
        yield domain, (rows < 0) & ~(stacked & own), own


def _family_reason(attribution: Attribution) -> npt.NDArray[np.bool_]:
    """Return which calls belong to no iteration for a reason that the family gives."""
    given = attribution.inheritance
    reasons = ("several_annotating_threads", "outside_iterations")
    codes = [REASONS.index(each) for each in reasons]
    return np.asarray((given.how == NONE) & np.isin(given.reason, codes))


def _bounds(trace: Trace, window: Window | None) -> Window:
    """Return the window; the one of the whole trace reaches to the last range, too."""
    everything = whole(trace)
    bounds = (everything.start_ns, everything.end_ns)
    if window is None or (window.start_ns, window.end_ns) == bounds:
        return unclipped(trace)
    return window


def unclipped(trace: Trace) -> Window:
    """Return the window that no range, call or device activity of a trace sticks out of."""
    active = (trace.kernels, trace.copies, trace.graphs, trace.api_calls, trace.ranges)
    tables = [table for table in active if len(table)]
    if not tables:
        return whole(trace)
    start = min(int(table["start_ns"].min()) for table in tables)
    end = max(int(table["end_ns"].max()) for table in tables)
    return Window(start, end, "first to last event")


def _path_columns(trace: Trace, paths: Paths) -> dict[str, ColumnData]:
    return {
        "path": paths.column(),
        "name": Categorical(paths.name, paths.names),
        "domain": Categorical(paths.domain, trace.ranges.categories("domain")),
        "style": Categorical(paths.style, STYLES),
        "process_id": paths.process,
        "depth": paths.depth,
    }


def _figures(
    attribution: Attribution, window: Window, measured: MeasuredRanges, code: Int32s, count: int
) -> dict[str, ColumnData]:
    """Return the figures of groups of ranges, each of shape (count,)."""
    events, projection = attribution.enclosed.trace.ranges, measured.projection
    instances = np.bincount(code[starts_inside(events, window)], minlength=count)
    projected = np.where(projection.exists, projection.last - projection.first, 0)
    return {
        "instances": instances.astype(np.int64),
        "host_ns": sums_by(code, clipped_durations(events, window), count),
        "projected_ns": sums_by(code, projected, count),
        **work_by_code(attribution, measured, code, count),
    }


def _projected_union(projection: Projection, code: Int32s, count: int) -> Int64s:
    some = projection.exists
    return covered_by_group(projection.first[some], projection.last[some], code[some], count)


def _longest_first(table: Table) -> Table:
    """Leave out rows without anything, and sort the others as :func:`ranges` says."""
    text = "path" if "path" in table.schema.names else "name"
    total = table["kernel_ns"] + table["opaque_ns"]
    seen = (table["instances"] > 0) | (table["host_ns"] > 0) | (total > 0)
    seen |= table["busy_ns"] > 0
    kept = np.flatnonzero(seen)
    ranks = (_rank(table, name)[kept] for name in ("style", "domain", text))
    process = table["process_id"][kept]
    order = np.lexsort((process, *ranks, -table["host_ns"][kept], -total[kept]))
    return table.take(kept[order])


def _rank(table: Table, column: str) -> Int64s:
    """Return where the text of each row stands in the alphabet; texts are fewer than rows."""
    texts = table.categories(column)
    place = {text: i for i, text in enumerate(sorted(set(texts)))}  # two paths may read alike
    rank = np.array([*(place[text] for text in texts), -1])  # the spare last place: no text
    return np.asarray(rank[table[column]])
