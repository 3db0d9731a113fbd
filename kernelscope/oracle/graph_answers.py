"""Answers about CUDA graphs: which are opaque, and where kernels of the others were captured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kernelscope.oracle.events import Call, Copy, Graph, GraphNode, Kernel, Memset
from kernelscope.oracle.plan import Plan
from kernelscope.oracle.range_answers import Opened, launches_by_id, opened

Answers = dict[str, Any]
Path = tuple[str, ...] | None


def opaque_graphs(plan: Plan) -> list[Graph]:
    """Return the graphs traced as one unit; not those whose launch has rows of its nodes, too."""
    nodes = {(row.process, row.correlation) for row in plan.kernels.rows(Kernel)}
    nodes |= {(row.process, row.correlation) for row in plan.copies.rows(Copy)}
    nodes |= {(row.process, row.correlation) for row in plan.memsets.rows(Memset)}
    return [
        graph
        for graph in plan.graphs.rows(Graph)
        if (graph.process, graph.correlation) not in nodes
    ]


def graph_answers(plan: Plan, kernels: Sequence[Kernel], calls: Sequence[Call]) -> Answers:
    """Return ``graph_kernels``: kernels of graphs by the ranges that launched and captured them.

    Each is the innermost push/pop range of the thread at that moment; plans that are asked this
    keep their ranges in one domain.
    """
    ranges = [each for each in opened(plan) if each.range.style == "push_pop"]
    made = {(node.process, node.node): node for node in plan.graph_nodes.rows(GraphNode)}
    launches = launches_by_id(calls)
    groups: dict[tuple[Path, Path, str], list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        if kernel.graph_node is None:
            continue
        call = launches.get((kernel.process, kernel.correlation))
        node = _original(made, kernel.process, kernel.graph_node)
        groups[_path(ranges, call), _path(ranges, node), kernel.name].append(kernel)
    rows = [
        {
            "path": None if path is None else list(path),
            "capture_path": None if captured is None else list(captured),
            "name": name,
            "kernels": len(mine),
            "total_ns": sum(kernel.end - kernel.start for kernel in mine),
        }
        for (path, captured, name), mine in groups.items()
    ]
    return {"graph_kernels": sorted(rows, key=lambda row: str([*row.values()][:3]))}


def _original(
    made: dict[tuple[int, int], GraphNode], process: int, number: int
) -> GraphNode | None:
    """Follow a clone to what it was cloned from; None where the trail is lost."""
    node = made.get((process, number))
    while node is not None and node.original is not None:
        node = made.get((process, node.original))
    return node


def _path(ranges: Sequence[Opened], moment: Call | GraphNode | None) -> Path:
    """Return the path of the innermost range around a moment of a thread."""
    if moment is None:
        return None
    around = [
        each
        for each in ranges
        if (each.range.process, each.range.thread) == (moment.process, moment.thread)
        and each.range.start <= moment.start < each.end
    ]
    return max((each.path for each in around), key=len, default=None)
