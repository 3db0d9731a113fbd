"""CUDA graphs as an export holds them: traced as one unit, and how their nodes were made."""

from __future__ import annotations

from collections.abc import Mapping

from kernelscope.oracle.nsys_columns import Content, take, thread_ids, when, where
from kernelscope.oracle.nsys_ids import Strings
from kernelscope.oracle.plan import Plan

NODE_TABLES: Mapping[str, str] = {
    "2022.4": "CUDA_GRAPH_EVENTS",
    "2025.5": "CUDA_GRAPH_NODE_EVENTS",
}
"""Where each generation that can hold graphs puts the making of their nodes."""

NODE_CREATION_CLASS = 77
"""``eventClass`` of such a row."""


def contents(plan: Plan, generation: str, strings: Strings) -> dict[str, tuple[Content, ...]]:
    """Return what goes into the tables of graphs; nothing in a generation that has none."""
    graphs, nodes = plan.graphs, plan.graph_nodes
    if generation not in NODE_TABLES or not (len(graphs) or len(nodes)):
        return {}
    executions = Content(
        len(graphs),
        {
            **when(graphs),
            **where(graphs, generation),
            "graphId": take(graphs["graph"]),
            "graphExecId": take(graphs["executable"]),
        },
    )
    made = Content(
        len(nodes),
        {
            **when(nodes),
            "eventClass": NODE_CREATION_CLASS,
            "globalTid": thread_ids(nodes),
            "nameId": strings.id("Graph Node Creation"),
            "graphNodeId": take(nodes["node"]),
            "originalGraphNodeId": take(nodes["original"]),
        },
    )
    return {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (executions,), NODE_TABLES[generation]: (made,)}
