"""Kernels of CUDA graphs: launched under one range, captured under another.

A graph's kernels take the ranges of the call that launches the graph; what the program called
them when it built the graph is lost there. Where the capture recorded how graph nodes were made
(``--cuda-graph-trace=node``), the ranges of that moment are found again: by node id, through the
nodes that each was cloned from, and never by order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import range_results as results
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.library_domains import is_library
from kernelscope.metrics.nesting import Nesting
from kernelscope.metrics.range_paths import range_paths
from kernelscope.metrics.window import Window, clipped_durations, starts_inside, whole
from kernelscope.trace import Categorical, Table, Trace, is_missing

Int32s = npt.NDArray[np.int32]
Node = tuple[int, int]
"""A process and a graph node id."""


def graph_kernels(
    trace: Trace, window: Window | None = None, *, attribution: Attribution | None = None
) -> Table:
    """Under which ranges were the kernels of CUDA graphs captured, and under which launched?

    Parameters
    ----------
    trace : Trace
        Its kernels with a graph node, its graph nodes and its ranges are read.
    window : Window, optional
        Where to look; by default all of it.
    attribution : Attribution, optional
        What :func:`attribute` returned of the same trace.

    Returns
    -------
    Table
        Under ``range_results.GRAPH_KERNELS``, longest total first. Paths are those of the
        innermost push/pop range of the program, library domains left out, with digits folded.
    """
    rows = np.flatnonzero(~is_missing(trace.kernels["graph_node_id"]))
    if not len(rows):
        return Table.empty(results.GRAPH_KERNELS)
    window = window or whole(trace)
    kernels = trace.kernels.take(rows)
    attribution = attribution or attribute(trace)
    nest = attribution.enclosed.nesting
    launched = _launch_ranges(attribution, attribution.kernels.call[rows])
    captured = _capture_ranges(trace, nest, kernels)
    texts, of_range = _texts(trace, nest)
    paths = [np.append(of_range, np.int32(-1))[chosen] for chosen in (launched, captured)]
    groups, (launch, capture, name) = grouped([*paths, kernels["name"]])
    count = len(name)
    inside = starts_inside(kernels, window)
    total = sums_by(groups, clipped_durations(kernels, window), count)
    table = Table.make(
        results.GRAPH_KERNELS,
        {
            "path": Categorical(launch.astype(np.int32), texts),
            "capture_path": Categorical(capture.astype(np.int32), texts),
            "name": Categorical(name.astype(np.int32), kernels.categories("name")),
            "kernels": np.bincount(groups[inside], minlength=count).astype(np.int64),
            "total_ns": total,
        },
    )
    return table.take(np.argsort(-total, kind="stable"))


def _texts(trace: Trace, nest: Nesting) -> tuple[tuple[str, ...], Int32s]:
    """Return the distinct paths as text, and the path of each range."""
    if not len(trace.ranges):
        return (), np.empty(0, dtype=np.int32)
    paths = range_paths(trace.ranges, nest, folded=True)
    return tuple(paths.texts()), paths.of_range


def _launch_ranges(attribution: Attribution, call: Int32s) -> Int32s:
    """Return the row of the program's innermost range around each launch, −1 for none."""
    start = attribution.enclosed.trace.ranges["start_ns"]
    found = np.full(len(call), -1, dtype=np.int32)
    for domain, innermost in attribution.enclosed.innermost.items():
        if not is_library(domain):
            found = _later(found, np.append(innermost, np.int32(-1))[call], start)
    return found


def _later(one: Int32s, other: Int32s, start: npt.NDArray[np.int64]) -> Int32s:
    """Return, row by row, the range that began later: of two domains, the inner one."""
    if not len(start):
        return one
    begin = [np.where(rows < 0, np.iinfo(np.int64).min, start[rows]) for rows in (one, other)]
    return np.where(begin[1] > begin[0], other, one).astype(np.int32)


def _capture_ranges(trace: Trace, nest: Nesting, kernels: Table) -> Int32s:
    """Return the row of the innermost range in which each kernel's node was made, −1 for none."""
    groups, (process, node) = grouped([kernels["process_id"], kernels["graph_node_id"]])
    made = _made(trace.graph_nodes)
    of_node = np.full(len(node), -1, dtype=np.int32)
    for place, key in enumerate(zip(process.tolist(), node.tolist(), strict=True)):
        where = made.get(_origin(key, made))
        if where is not None:
            of_node[place] = _range_at(trace, nest, key[0], *where[1:])
    return of_node[groups]


_Made = dict[Node, tuple[int | None, int | None, int]]
"""Node → the node it was cloned from, and the thread and time that made it."""


def _made(nodes: Table) -> _Made:
    made: _Made = {}
    columns = (
        nodes.values(name)
        for name in (
            "process_id", "graph_node_id", "original_graph_node_id", "thread_id", "start_ns",
        )
    )  # fmt: skip
    for process, node, original, thread, start in zip(*columns, strict=True):
        made.setdefault((process, node), (original, thread, start))
    return made


def _origin(node: Node, made: _Made) -> Node:
    """Follow a node to the one that was captured; a circle of clones ends where it began."""
    seen = {node}
    while (entry := made.get(node)) is not None and entry[0] is not None:
        before = (node[0], entry[0])
        if before in seen or before not in made:
            break
        seen.add(before)
        node = before
    return node


def _range_at(trace: Trace, nest: Nesting, process: int, thread: int | None, time: int) -> int:
    """Return the row of the program's innermost range on a thread at a time, −1 for none."""
    domains = trace.ranges.categories("domain")
    rows = [
        int(stack.at(np.array([time]))[0])
        for stack in nest.stacks
        if (stack.process_id, stack.thread_id) == (process, thread)
        and not is_library(domains[stack.domain])
    ]
    inside = [row for row in rows if row >= 0]
    return max(inside, key=lambda row: int(trace.ranges["start_ns"][row]), default=-1)
