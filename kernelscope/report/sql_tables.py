"""The tables that a query can name: those of the trace, those of an analysis, and their context.

Canonical tables keep their names. Several result tables are called the same (``kernels`` is both
every execution and a row per name), so every result table is called ``result_…``: no name ever
means two things, and a result table that is added later cannot take a canonical table's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from kernelscope import schema
from kernelscope.metrics.analysis import TABLES, Analysis, analyze
from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import Window, whole
from kernelscope.report.printable import printable
from kernelscope.schema import TableSchema, integer, text
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, missing_value, widened

RESULT_PREFIX = "result_"

Kind = Literal["trace", "result", "context"]

WINDOW = TableSchema(
    "window",
    "Which stretch of the trace do the result tables speak of? One row.",
    (
        integer("start_ns", "ns", "where it begins, on the trace's clock"),
        integer("end_ns", "ns", "where it ends; not in it any more"),
        integer("duration_ns", "ns", "its length"),
        text("chosen_by", "how it was chosen"),
    ),
)

CAPTURE = TableSchema(
    "capture",
    "What does the file say about itself? One row.",
    (
        text("file", "the path as given"),
        text("format", "nsys, …"),
        text("profiler_version", "as recorded", optional=True),
        text("schema", "version of the export's tables", optional=True),
        text("started_at", "wall-clock time of the trace's zero, in UTC", optional=True),
    ),
)

NOT_RECORDED = TableSchema(
    "not_recorded",
    "What does the capture not hold, and what would record it?",
    (
        text("table", "the trace's table, which is empty"),
        text(
            "how_to_record",
            "the profiler's flag; missing where it was traced and nothing occurred",
            optional=True,
        ),
    ),
)

KERNEL_LAUNCHES = TableSchema(
    "kernel_launches",
    "Which call launched each kernel execution? `kernels` in its own order, joined by process "
    "and correlation id to the innermost call.",
    (
        *(
            schema.KERNELS.column(name)
            for name in (
                "start_ns", "end_ns", "process_id", "device_id", "stream_id", "correlation_id",
                "graph_node_id", "name",
            )
        ),
        text("call_name", "the call that launched it", optional=True),
        integer("call_start_ns", "ns", "when that call began", optional=True),
        integer("call_end_ns", "ns", "when that call returned", optional=True),
        integer("call_thread_id", "id", "the thread that made it", optional=True),
    ),
)  # fmt: skip


DEVICE_WORK = TableSchema(
    "device_work",
    "What occupied each GPU, inside the window? Kernels, graphs, copies and memsets, cut to it; "
    "a peer copy stands under both its GPUs.",
    (
        integer("device", "id", "the row of `result_devices`"),
        schema.KERNELS.column("process_id"),
        schema.KERNELS.column("stream_id"),
        text("class", "compute, communication, graph, copy or memset"),
        integer("start_ns", "ns", "when it began, or the window did"),
        integer("end_ns", "ns", "when it ended, or the window did"),
    ),
)

DEVICE_STATES = TableSchema(
    "device_states",
    "What ran on each GPU at once, from its first activity in the window to its last? A row per "
    "stretch in which nothing changed.",
    (
        integer("device", "id", "the row of `result_devices`"),
        integer("start_ns", "ns", "from when on"),
        integer("end_ns", "ns", "until when"),
        *(
            integer(name, "count", f"how many {what} were on the GPU")
            for name, what in (
                ("compute", "compute kernels"), ("communication", "communication kernels"),
                ("graph", "graphs traced as one unit"), ("copy", "copies"),
                ("memset", "memsets"),
            )
        ),
    ),
)  # fmt: skip

_VIEWS: dict[str, str] = {
    "device_work": """
WITH work AS (
  SELECT process_id, device_id, stream_id, start_ns, end_ns,
    CASE WHEN is_communication(name) THEN 'communication' ELSE 'compute' END AS class
  FROM kernels
  UNION ALL
  SELECT process_id, device_id, stream_id, start_ns, end_ns, 'graph' FROM graphs
  UNION ALL
  SELECT process_id, device_id, stream_id, start_ns, end_ns,
    CASE WHEN kind = 'memset' THEN 'memset' ELSE 'copy' END
  FROM copies WHERE kind <> 'HtoH'
  UNION ALL
  SELECT process_id, src_device_id, stream_id, start_ns, end_ns, 'copy'
  FROM copies WHERE kind <> 'HtoH' AND src_device_id <> device_id
  UNION ALL
  SELECT process_id, dst_device_id, stream_id, start_ns, end_ns, 'copy'
  FROM copies WHERE kind <> 'HtoH' AND dst_device_id <> device_id)
SELECT o."index" AS device, o.process_id, stream_id, class,
  max(work.start_ns, w.start_ns) AS start_ns, min(work.end_ns, w.end_ns) AS end_ns
FROM window AS w CROSS JOIN work
  JOIN result_device_ordinals AS o
  ON o.device_id = work.device_id AND o.process_id IS work.process_id
WHERE work.end_ns > w.start_ns AND work.start_ns < w.end_ns
  OR work.start_ns = work.end_ns AND work.start_ns BETWEEN w.start_ns AND w.end_ns""",
    "device_states": """
WITH edges AS (
  SELECT device, start_ns AS at, 1 AS step, class FROM device_work
  UNION ALL
  SELECT device, end_ns, -1, class FROM device_work),
moments AS (
  SELECT device, at,
    sum(step * (class = 'compute')) AS compute,
    sum(step * (class = 'communication')) AS communication,
    sum(step * (class = 'graph')) AS graph,
    sum(step * (class = 'copy')) AS copy,
    sum(step * (class = 'memset')) AS memset
  FROM edges GROUP BY device, at),
stretches AS (
  SELECT device, at AS start_ns, lead(at) OVER along AS end_ns,
    sum(compute) OVER along AS compute, sum(communication) OVER along AS communication,
    sum(graph) OVER along AS graph, sum(copy) OVER along AS copy, sum(memset) OVER along AS memset
  FROM moments WINDOW along AS (PARTITION BY device ORDER BY at))
SELECT * FROM stretches WHERE end_ns IS NOT NULL""",
}
"""View → the SQL that makes it of the tables, and of nothing else."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that a query can name.

    Attributes
    ----------
    name : str
        As SQL calls it.
    kind : {"trace", "result", "context"}
        Canonical, of an analysis, or what both rest on.
    schema : TableSchema
        Its columns; in SQL their dots are underscores (:func:`column_name`).
    definition : str
        The SQL of a view; empty for a table, which is filled in.
    """

    name: str
    kind: Kind
    schema: TableSchema
    definition: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names in SQL, in order."""
        return tuple(column_name(name) for name in self.schema.names)


def column_name(name: str) -> str:
    """Return a column's name in SQL, where a dot would need quoting: ``quantiles_ns_p5``."""
    return name.replace(".", "_")


@cache
def relations() -> Mapping[str, Relation]:
    """Return every table that a query can name, by its name, in the order of a listing."""
    made = [
        *(Relation(each.name, "trace", each) for each in schema.CANONICAL),
        *(
            Relation(each.name, "context", each, _VIEWS.get(each.name, ""))
            for each in (
                WINDOW,
                CAPTURE,
                NOT_RECORDED,
                KERNEL_LAUNCHES,
                DEVICE_WORK,
                DEVICE_STATES,
            )
        ),
        *(Relation(f"{RESULT_PREFIX}{each.name}", "result", each) for each in TABLES),
    ]
    return {each.name: each for each in made}


@dataclass(frozen=True, slots=True)
class Source:
    """What a query asks: a trace, and its analysis, which is made when it is first needed.

    Attributes
    ----------
    trace : Trace
        Whose canonical tables they are.
    analysis, window : callable
        → the analysis, and the window that it speaks of.
    """

    trace: Trace
    analysis: Callable[[], Analysis]
    window: Callable[[], Window]


def source_of(trace: Trace, **choice: Any) -> Source:
    """Return what a query about `trace` asks.

    Parameters
    ----------
    trace : Trace
        The whole trace.
    **choice
        As :func:`kernelscope.analyze` takes it. Processes and devices leave rows of the canonical
        tables out; a window does not: it is the table ``window``.
    """
    chosen = select(trace, choice.get("processes", ()), choice.get("devices", ()))
    made = cache(lambda: analyze(trace, **choice))
    apart = any(choice.get(name) is not None for name in ("between", "only", "within"))
    return Source(chosen, made, lambda: made().window if apart else whole(chosen))


def contents(name: str, source: Source) -> Table:
    """Return the rows of the relation called `name`, one of :func:`relations`."""
    relation, trace = relations()[name], source.trace
    if relation.kind == "trace":
        return trace.tables[name]
    if relation.kind == "result":
        return source.analysis().tables[relation.schema.name]
    if name == KERNEL_LAUNCHES.name:
        return kernel_launches(trace)
    if name == WINDOW.name:
        return _window(source.window())
    return _capture(trace) if name == CAPTURE.name else _not_recorded(trace)


def kernel_launches(trace: Trace) -> Table:
    """Which call launched each kernel execution?

    Returns
    -------
    Table
        Under :data:`KERNEL_LAUNCHES`, a row per execution; what is of the call is missing where
        it was not recorded.
    """
    kernels, calls = trace.kernels, calls_without_wrappers(trace.api_calls)
    rows = launch_rows(kernels, calls)
    columns: dict[str, ColumnData] = {
        name: kernels.columns[name]
        for name in KERNEL_LAUNCHES.names
        if not name.startswith("call_")
    }
    if len(calls):
        names = _picked(calls["name"], rows)
        names[rows < 0] = -1
        columns["call_name"] = Categorical(names, calls.categories("name"))
        for name in ("start_ns", "end_ns", "thread_id"):
            picked = _picked(widened(calls[name]), rows)
            picked[rows < 0] = missing_value(picked.dtype)
            columns[f"call_{name}"] = picked
    return Table.make(KERNEL_LAUNCHES, columns)


def _picked(values: Array, rows: Array) -> Array:
    return np.asarray(values[np.maximum(rows, 0)])


def _window(window: Window) -> Table:
    return Table.make(
        WINDOW,
        {
            "start_ns": np.array([window.start_ns], dtype=np.int64),
            "end_ns": np.array([window.end_ns], dtype=np.int64),
            "duration_ns": np.array([window.duration_ns], dtype=np.int64),
            "chosen_by": Categorical.of([window.chosen_by]),
        },
    )


def _capture(trace: Trace) -> Table:
    about = trace.capture
    # SQLite's text is UTF-8, a file's name need not be.
    values = {"file": printable(about.file)} | {
        name: getattr(about, name) for name in CAPTURE.names if name != "file"
    }
    return Table.make(CAPTURE, {name: Categorical.of([value]) for name, value in values.items()})


def _not_recorded(trace: Trace) -> Table:
    lacking = trace.capture.not_recorded
    return Table.make(
        NOT_RECORDED,
        {
            "table": Categorical.of([each.table for each in lacking]),
            "how_to_record": Categorical.of([each.how_to_record or None for each in lacking]),
        },
    )
