"""Kernels of CUDA graphs: the ranges that launched the graph, and those that captured the kernel.

A graph is launched in one range and made in others: a training step is captured once, layer by
layer, and replayed as a whole ever after. Where the capture recorded how nodes were made, each
execution is followed from its node to the node that it was cloned from, by their ids and within
their process, and from there to the range that was open when that one was made.

A node that was made inside the call that ends a capture is the exception: it tells when the
capture ended, not what was captured, and no order of nodes or launches is taken in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.aggregate import by_total, totals_by_group
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.enclosing import Enclosed
from kernelscope.metrics.grouping import group, grouped
from kernelscope.metrics.launching import calls_open_at
from kernelscope.metrics.library_domains import is_library
from kernelscope.metrics.nesting import Nesting
from kernelscope.metrics.range_paths import range_paths
from kernelscope.metrics.range_results import GRAPH_KERNELS
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, is_missing

Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

CAPTURE_ENDS = ("cudaStreamEndCapture", "cuStreamEndCapture")


def graph_kernels(
    trace: Trace,
    window: Window | None = None,
    *,
    attribution: Attribution | None = None,
    folded: bool = True,
) -> Table:
    """Under which ranges were the kernels of CUDA graphs captured, and under which launched?

    Only graphs that were traced node by node have kernels; the others are opaque.

    Parameters
    ----------
    trace : Trace
        The trace.
    window : Window, optional
        Where to look; the whole trace by default. Nodes may have been made outside of it.
    attribution : Attribution, optional
        What :func:`attribute` returned of the same trace.
    folded : bool
        Whether digits in names are folded: a graph that every step launches is one row.

    Returns
    -------
    Table
        Under ``range_results.GRAPH_KERNELS``, longest total first.
    """
    of_graphs = np.flatnonzero(~is_missing(trace.kernels["graph_node_id"]))
    if not len(of_graphs):
        return Table.empty(GRAPH_KERNELS)
    window = window or whole(trace)
    attribution = attribution or attribute(trace)
    kernels, nodes = trace.kernels.take(of_graphs), trace.graph_nodes
    path, paths = _paths(trace, attribution.enclosed.nesting, folded)
    launched = np.append(path[_launched_in(attribution)], np.int32(-1))
    captured = np.append(path[_made_in(nodes, attribution.enclosed)], np.int32(-1))
    node = _find(kernels, kernels["graph_node_id"], nodes)
    groups, (launch, capture, name) = grouped(
        [
            launched[attribution.kernels.call[of_graphs]],
            captured[original_nodes(nodes)[node]],
            kernels["name"],
        ]
    )
    columns: dict[str, ColumnData] = {
        "path": Categorical(launch, paths),
        "capture_path": Categorical(capture, paths),
        "name": Categorical(name, kernels.categories("name")),
        **totals_by_group(kernels, window, groups, len(name), "kernels"),
    }
    return by_total(GRAPH_KERNELS, columns, "kernels")


def original_nodes(nodes: Table) -> Rows:
    """Return where the node that each node is a clone of, at last, stands in `nodes`.

    Parameters
    ----------
    nodes : Table
        Under ``schema.GRAPH_NODES``.

    Returns
    -------
    ndarray of int, shape (n + 1,)
        Row of the node that was made anew; −1 where a clone's original was not recorded, or
        clones go round in a circle. The spare last place holds −1, so that −1 leads to −1.

    Notes
    -----
    Each pass doubles the steps that every node has taken towards its original: of n nodes none
    has more than n to take, circle or not.
    """
    count = len(nodes)
    original = nodes["original_graph_node_id"]
    made = is_missing(original) | (original == nodes["graph_node_id"])
    step = np.append(np.where(made, np.arange(count), _find(nodes, original, nodes)), -1)
    for _ in range(count.bit_length()):
        step = step[step]
    return np.where(np.append(made, False)[step], step, -1)


def _find(events: Table, wanted: Array, nodes: Table) -> Rows:
    """Return the rows of the nodes called `wanted` in the process of each event; −1 for none.

    A node is made once; of several rows with its id the earliest tells when.
    """
    found = np.full(len(events), -1, dtype=np.intp)
    order = np.lexsort((nodes["start_ns"], nodes["graph_node_id"]))
    whose = group(events["process_id"])
    for (process,), rows in zip(whose.keys, whose.rows(), strict=True):
        column = nodes["process_id"][order]
        mine = order[is_missing(column) if process is None else column == process]
        ids = nodes["graph_node_id"][mine]
        if not len(ids):
            continue
        place = np.minimum(np.searchsorted(ids, wanted[rows]), len(ids) - 1)
        found[rows] = np.where(ids[place] == wanted[rows], mine[place], -1)
    return found


def _launched_in(attribution: Attribution) -> Int32s:
    """Return the innermost range of each launching call, or what it inherits; −1 for none."""
    around, inherited = attribution.enclosed, attribution.inheritance.inherited
    return _innermost(around.trace.ranges, around.innermost, inherited)


def _made_in(nodes: Table, around: Enclosed) -> Int32s:
    """Return the innermost range that each node was made in; −1 for none, or not known."""
    domains = around.trace.ranges.categories("domain")
    open_then: dict[str, Int32s] = {}
    whose = group(nodes["process_id"], nodes["thread_id"])
    rows_of = dict(zip(whose.keys, whose.rows(), strict=True))
    for stack in around.nesting.stacks:
        innermost = open_then.setdefault(
            domains[stack.domain], np.full(len(nodes), -1, dtype=np.int32)
        )
        mine = rows_of.get((stack.process_id, stack.thread_id))
        if mine is not None:
            innermost[mine] = stack.at(nodes["start_ns"][mine])
    found = _innermost(around.trace.ranges, open_then, np.full(len(nodes), -1, dtype=np.int32))
    ends = _ends_of_captures(around.trace.api_calls)
    for (process, thread), rows in rows_of.items() if len(ends) else ():
        times = nodes["start_ns"][rows].astype(np.int64)
        found[rows] = np.where(calls_open_at(ends, process, thread, times), -1, found[rows])
    return found


def _ends_of_captures(calls: Table) -> Table:
    return calls.take(calls.holds("name", lambda text: text.startswith(CAPTURE_ENDS)))


def _innermost(ranges: Table, open_then: Mapping[str, Int32s], otherwise: Int32s) -> Int32s:
    """Return, of the ranges open in each domain, the one opened last; −1 for none.

    Of ranges that open together the shorter is the inner one, then the later row, as in a stack.
    A library's range says what the library does, not which part of the program called it: it
    counts only where the program has no range open, and none is known `otherwise`.
    """
    place = np.full(len(ranges) + 1, -1, dtype=np.int64)
    place[np.lexsort((-ranges["end_ns"], ranges["start_ns"]))] = np.arange(len(ranges))
    found = np.full(len(otherwise), -1, dtype=np.int32)
    for library in (False, True):
        last = np.full(len(otherwise), -1, dtype=np.int32)
        for domain, rows in open_then.items():
            if is_library(domain) == library:
                last = np.where(place[rows] > place[last], rows, last)
        found = np.where(found < 0, last, found)
        found = np.where(found < 0, otherwise, found)
    return found


def _paths(trace: Trace, nest: Nesting, folded: bool) -> tuple[Int32s, tuple[str, ...]]:
    """Return the path of each range as a code, −1 for the spare last place, and the texts.

    Paths of several processes or domains that read alike are one here.
    """
    if not len(trace.ranges):
        return np.array([-1], dtype=np.int32), ()
    paths = range_paths(trace.ranges, nest, folded=folded)
    texts = paths.column()
    return np.append(texts.codes[paths.of_range], np.int32(-1)), texts.categories
