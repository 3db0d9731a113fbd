"""CUDA graphs in an Nsight Systems export: traced as one unit, and how their nodes were made.

With ``--cuda-graph-trace=graph`` (the default) a graph launch is one row of
``CUPTI_ACTIVITY_KIND_GRAPH_TRACE`` and its kernels are not recorded; with ``=node`` every node is
a row of the kernel and copy tables. The columns are those that NVIDIA publishes for the table;
its record is CUPTI's ``CUpti_ActivityGraphTrace2``.
"""

from __future__ import annotations

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import integers, unset
from kernelscope.parsers.nsys_events import EVENT, device_event, present, thread_event
from kernelscope.parsers.nsys_export import Export
from kernelscope.trace import Array, Table, is_missing


def graphs_table(export: Export, kernels: Table, copies: Table) -> Table:
    """Return the graph executions that were traced as one unit.

    A launch that also has rows for its nodes is left out: what runs is never counted twice. So
    is a graph that begins on the host: it names no device.
    """
    read = export.read(names.GRAPH, (*EVENT, "graphId", "graphExecId"))
    if not read.rows:
        return Table.empty(schema.GRAPHS)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    numbers["deviceId"] = unset(numbers.get("deviceId"), names.HOST_DEVICE, names.UNSET_ID)
    columns = device_event(export, numbers, read.rows)
    columns.pop("graph_node_id", None)
    columns |= present(
        {"graph_id": numbers.get("graphId"), "graph_exec_id": numbers.get("graphExecId")}
    )
    table = Table.make(schema.GRAPHS, columns)
    opaque = ~_launched_by(table, kernels) & ~_launched_by(table, copies)
    opaque &= ~is_missing(table["device_id"])
    return table if opaque.all() else table.take(opaque)


def _launched_by(graphs: Table, nodes: Table) -> Array:
    """Return which graph launches have rows of `nodes`: same process, same correlation id."""
    found = np.zeros(len(graphs), dtype=np.bool_)
    processes = graphs["process_id"]
    for process in set(processes.tolist()):
        mine = processes == process
        theirs = nodes["correlation_id"][nodes["process_id"] == process]
        found[mine] = np.isin(graphs["correlation_id"][mine], theirs)
    return found & ~is_missing(graphs["correlation_id"])


def graph_nodes_table(export: Export) -> Table:
    """Return when, and on which thread, graph nodes were made."""
    wanted = ("start", "end", "globalTid", "graphNodeId", "originalGraphNodeId")
    for name in names.GRAPH_NODES:
        read = export.read(name, wanted)
        numbers = {column: integers(raw) for column, raw in read.columns.items()}
        node = numbers.get("graphNodeId")
        if node is None or not read.rows:
            continue
        columns = thread_event(export, numbers, read.rows) | present(
            {
                "graph_node_id": node,
                "original_graph_node_id": unset(numbers.get("originalGraphNodeId"), 0),
            }
        )
        return Table.make(schema.GRAPH_NODES, columns).take(~is_missing(node))
    return Table.empty(schema.GRAPH_NODES)
