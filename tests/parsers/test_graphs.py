"""CUDA graphs: traced as one unit or node by node, and never both."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import kernelscope as ks
from kernelscope import oracle, schema
from kernelscope.metrics.graph_kernels import graph_kernels
from tests import build

GRAPH_TRACE = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
    "correlationId INTEGER, globalPid INTEGER)"
)
NODES = (
    "CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, "
    "graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER)"
)


def export(path: Path, *graphs: tuple[int, int, int, int]) -> Path:
    """One kernel at 100–200, and graph rows ``(start, end, device, correlation)`` beside it."""
    plan = oracle.Run().kernel(100, 200, "gemm", call=(40, 50)).plan()
    oracle.write(plan, path, generation="2025.5")
    with sqlite3.connect(path) as db:
        (pid, correlation) = db.execute(
            "SELECT globalPid, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchone()
        db.execute(GRAPH_TRACE)
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?,?,?,5,6,1,NULL,7,?,?)",
            [
                (start, end, device, correlation + offset, pid)
                for start, end, device, offset in graphs
            ],
        )
        db.execute(NODES)
        db.execute(
            "INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (10,10,0,?,0,77,NULL),(20,20,0,?,0,78,77)",
            (pid | 4000, pid | 4000),
        )
    db.close()
    return path


def test_a_graph_is_busy_and_opaque(tmp_path: Path) -> None:
    analysis = ks.analyze(ks.read(export(tmp_path / "g.sqlite", (150, 300, 0, 90))))
    (device,) = analysis.devices.records()
    assert device["partition.compute_only_ns"] == 100
    assert device["partition.opaque_graph_ns"] == 100
    assert device["kernel_ns"] == device["busy_ns"] == 200
    assert device["compute_ns"] == 100
    (message,) = [r["message"] for r in analysis.health.records() if r["code"] == "opaque_graphs"]
    assert "50.0 % of all busy time is opaque" in message
    assert "--cuda-graph-trace=node" in message
    assert analysis.ok


def test_a_launch_on_two_streams_is_one_launch(tmp_path: Path) -> None:
    rows = (150, 300, 0, 90), (160, 310, 0, 90), (400, 500, 0, 91)
    for graphs, said in (
        (rows[:2], "1 CUDA graph launch was traced as one unit: "),
        (rows, "2 CUDA graph launches were traced as one unit each: "),
    ):
        trace = ks.read(export(tmp_path / f"{len(graphs)}.sqlite", *graphs))
        assert len(trace.graphs) == len(graphs)
        (found,) = [r for r in ks.analyze(trace).health.records() if r["code"] == "opaque_graphs"]
        assert found["message"].startswith(said)
        assert found["count"] == len(graphs) - 1


def test_a_launch_with_rows_for_its_nodes_is_not_counted_twice(tmp_path: Path) -> None:
    trace = ks.read(export(tmp_path / "g.sqlite", (90, 400, 0, 0), (500, 600, 0, 90)))
    assert trace.graphs["start_ns"].tolist() == [500]


def test_a_graph_that_begins_on_the_host_names_no_device(tmp_path: Path) -> None:
    assert len(ks.read(export(tmp_path / "g.sqlite", (90, 400, 2147483647, 90))).graphs) == 0


def test_a_graph_without_times_is_quarantined(tmp_path: Path) -> None:
    trace = ks.read(export(tmp_path / "g.sqlite", (0, 0, 0, 90)))
    assert len(trace.graphs) == 0
    assert trace.quarantine.texts("table") == ["graphs"]


def test_nodes_know_where_they_were_captured(tmp_path: Path) -> None:
    nodes = ks.read(export(tmp_path / "g.sqlite")).graph_nodes
    assert nodes.values("graph_node_id") == [77, 78]
    assert nodes.values("original_graph_node_id") == [None, 77]


def test_kernels_of_graphs_know_where_they_were_captured_and_launched() -> None:
    """Two clones of two captured nodes, replayed under `step #`; by node id, never by order."""
    nodes = [
        {"start_ns": 12, "end_ns": 12, "graph_node_id": 7},
        {"start_ns": 22, "end_ns": 22, "graph_node_id": 8},
        {"start_ns": 40, "end_ns": 40, "graph_node_id": 78, "original_graph_node_id": 8},
        {"start_ns": 40, "end_ns": 40, "graph_node_id": 77, "original_graph_node_id": 7},
        {"start_ns": 41, "end_ns": 41, "graph_node_id": 5, "original_graph_node_id": 6},
        {"start_ns": 41, "end_ns": 41, "graph_node_id": 6, "original_graph_node_id": 5},
    ]
    thread = {"process_id": 1, "thread_id": 1}
    ranges = [
        ("capture", 0, 35), ("layer 1", 10, 20), ("layer 2", 20, 30), ("step 1", 100, 200),
        ("step 2", 200, 300),
    ]  # fmt: skip
    trace = build.trace(
        kernels=build.joined(
            build.kernels((150, 160, "gemm"), graph_node_id=77, correlation_id=1),
            build.kernels((160, 190, "relu"), graph_node_id=78, correlation_id=1),
            build.kernels((250, 260, "gemm"), graph_node_id=77, correlation_id=2),
            build.kernels((260, 270, "lost"), graph_node_id=99, correlation_id=2),
            build.kernels((270, 271, "loop"), graph_node_id=5, correlation_id=2),
            build.kernels((280, 290, "plain"), correlation_id=2),
        ),
        api_calls=build.joined(
            build.api_calls((110, 115, "cudaGraphLaunch"), correlation_id=1),
            build.api_calls((210, 215, "cudaGraphLaunch"), correlation_id=2),
        ),
        graph_nodes=build.table(schema.GRAPH_NODES, [{**thread, **node} for node in nodes]),
        ranges=build.table(
            schema.RANGES,
            [
                {**thread, "name": name, "start_ns": start, "end_ns": end, "domain": "",
                 "style": "push_pop", "closed": True}
                for name, start, end in ranges
            ],
        ),
    )  # fmt: skip
    rows = [tuple(row.values()) for row in graph_kernels(trace).records()]
    assert rows == [
        ("step #", "capture\x1flayer #", "relu", 1, 30),
        ("step #", "capture\x1flayer #", "gemm", 2, 20),
        ("step #", None, "lost", 1, 10),
        ("step #", None, "loop", 1, 1),
    ]
    assert len(ks.analyze(trace).graph_kernels) == 4
