"""Small random traces of launches, and what plain loops make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.trace import Table, Trace
from tests import build

Row = dict[str, Any]

TIMES = st.integers(0, 60).map(lambda t: t * 100)
LENGTHS = st.integers(0, 25).map(lambda t: t * 100)
IDS = st.one_of(st.none(), st.integers(1, 6))
NODES = st.sampled_from([None, None, 7])
NAMES = st.sampled_from(["cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpy"])
KINDS = st.sampled_from(["runtime", "runtime", "driver", "wrapper"])


def _rows(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    event = st.fixed_dictionaries(
        {
            "process_id": st.integers(1, 2),
            "correlation_id": IDS,
            "start_ns": TIMES,
            "length": LENGTHS,
            **fields,
        }
    )
    return st.lists(event.map(_ended), max_size=12)


def _ended(row: Row) -> Row:
    length = row.pop("length")
    return {**row, "end_ns": row["start_ns"] + length}


_PLACE = {"device_id": st.integers(0, 1), "stream_id": st.integers(7, 8)}

TRACES = st.builds(
    lambda calls, kernels, copies, graphs, overheads: build.trace(
        api_calls=build.table(schema.API_CALLS, calls),
        kernels=build.table(schema.KERNELS, kernels),
        copies=build.table(schema.COPIES, copies),
        graphs=build.table(schema.GRAPHS, graphs),
        overheads=build.table(schema.OVERHEADS, overheads),
    ),
    _rows(thread_id=st.integers(1, 2), name=NAMES, kind=KINDS),
    _rows(**_PLACE, name=st.sampled_from(["a", "b", "nccl"]), graph_node_id=NODES),
    _rows(
        **_PLACE,
        graph_node_id=NODES,
        kind=st.sampled_from(["HtoD", "DtoH", "HtoH", "memset", "unified HtoD", "PtoP"]),
        src_memory=st.sampled_from(["pageable", "pinned", None]),
        dst_memory=st.just("device"),
        bytes=st.sampled_from([0, 4, 1000, None]),
        migration_cause=st.sampled_from(["page fault", "prefetch", None]),
    ),
    _rows(**_PLACE),
    _rows(name=st.just("flush")),
)
WINDOWS = st.one_of(st.none(), st.tuples(TIMES, st.integers(1, 60).map(lambda t: t * 100)))


@dataclass(frozen=True)
class Launch:
    """One launch call, and what it started, by time."""

    row: int
    call: Row
    started: list[tuple[int, str, int, Row]]

    @property
    def first(self) -> Row:
        return self.started[0][3]

    @property
    def by_device(self) -> dict[int, int]:
        """When its first execution on each device started."""
        return {row["device_id"]: row["start_ns"] for *_, row in reversed(self.started)}

    @property
    def graph(self) -> bool:
        nodes = (row.get("graph_node_id") is not None for *_, row in self.started)
        whole = (table == "1 graphs" for _, table, _, _ in self.started)
        return "GraphLaunch" in self.call["name"] or any(nodes) or any(whole)


def call_of(event: Row, calls: Sequence[Row]) -> int | None:
    """Return the row of the innermost call with an event's process and correlation id."""
    if event["correlation_id"] is None:
        return None
    matching = [
        (call["start_ns"], row)
        for row, call in enumerate(calls)
        if call["kind"] != "wrapper"
        and (call["process_id"], call["correlation_id"])
        == (event["process_id"], event["correlation_id"])
    ]
    return max(matching)[1] if matching else None


def launches_of(trace: Trace) -> list[Launch]:
    """Find every launch call with plain loops."""
    calls = trace.api_calls.records()
    started: dict[int, list[tuple[int, str, int, Row]]] = {}
    tables: list[tuple[str, Table]] = [
        ("0 kernels", trace.kernels), ("1 graphs", trace.graphs), ("2 copies", trace.copies),
    ]  # fmt: skip
    for name, table in tables:
        for row, event in enumerate(table.records()):
            call = call_of(event, calls)
            if call is not None and (name != "2 copies" or event["graph_node_id"] is not None):
                started.setdefault(call, []).append((event["start_ns"], name, row, event))
    return [
        Launch(row, calls[row], sorted(found, key=lambda each: each[:3]))
        for row, found in sorted(started.items())
    ]


def counted(event: Row, low: int, high: int) -> bool:
    """Whether an event counts in a window."""
    start, end = event["start_ns"], event["end_ns"]
    return bool(low <= start < high or start == high == end)
