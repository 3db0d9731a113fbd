"""Tables that a query can name beside those of the trace: what both trace and analysis rest on.

Those with a definition are views: SQL over the canonical tables, and nothing else, so that what
is checked with them is found a second way.
"""

from __future__ import annotations

from kernelscope import schema
from kernelscope.schema import TableSchema, integer, text

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

FIRST_EXECUTIONS = TableSchema(
    "first_executions",
    "Which calls launched a kernel or a graph, and when did the first execution of each start? "
    "Joined in SQL by process and correlation id to the innermost call.",
    (
        schema.KERNELS.column("process_id"),
        integer("device_id", "id", "CUDA ordinal of the device of the first execution"),
        text("call_name", "the call"),
        text("kernel", "the kernel that it launched, [CUDA graph] for a graph"),
        integer("call_start_ns", "ns", "when the call began"),
        integer("call_end_ns", "ns", "when it returned"),
        integer("first_start_ns", "ns", "when its first execution started"),
        integer("executions", "count", "kernels, graph nodes and whole graphs that it started"),
    ),
)

COPY_LAUNCHES = TableSchema(
    "copy_launches",
    "Which call issued each copy, and did it hold up the host? Joined in SQL by process and "
    "correlation id to the innermost call.",
    (
        *(
            schema.COPIES.column(name)
            for name in (
                "start_ns",
                "end_ns",
                "process_id",
                "device_id",
                "kind",
                "bytes",
                "src_memory",
                "dst_memory",
                "src_device_id",
                "dst_device_id",
            )
        ),
        text("call_name", "the call that issued it; NULL for migrations", optional=True),
        integer("call_start_ns", "ns", "when that call began", optional=True),
        integer("call_end_ns", "ns", "when that call returned", optional=True),
        text(
            "blocking",
            "yes where the call returned when its copy had ended, or lasted longer "
            "than 50 µs; no for nodes of a graph",
            optional=True,
        ),
    ),
)

THREAD_CALLS = TableSchema(
    "thread_calls",
    "When was each thread inside CUDA calls, and when did it wait in them, in the window? A row "
    "per stretch in which nothing changed.",
    (
        schema.KERNELS.column("process_id"),
        integer("thread_id", "id", "the thread", optional=True),
        integer("start_ns", "ns", "from when on"),
        integer("end_ns", "ns", "until when"),
        integer("calls", "count", "calls that it was inside"),
        integer(
            "waits",
            "count",
            "those of them in which it waited: synchronisations whole, "
            "copies, memsets, allocations, frees, module loads and launches beyond 50 µs",
        ),
    ),
)

_INNERMOST = """
calls AS (
  SELECT process_id, correlation_id, name, start_ns, end_ns, row_number() OVER (
    PARTITION BY process_id, correlation_id ORDER BY start_ns DESC, rowid DESC) AS place
  FROM api_calls WHERE kind <> 'wrapper' AND correlation_id IS NOT NULL)"""

VIEWS: dict[str, str] = {
    "first_executions": f"""
WITH work AS (
  SELECT process_id, correlation_id, device_id, start_ns, name, rowid AS place,
    graph_node_id IS NOT NULL AS graph, 0 AS source FROM kernels
  UNION ALL
  SELECT process_id, correlation_id, device_id, start_ns, NULL, rowid, 1, 1 FROM graphs
  UNION ALL
  SELECT process_id, correlation_id, device_id, start_ns, NULL, rowid, 1, 2
  FROM copies WHERE graph_node_id IS NOT NULL),{_INNERMOST},
launched AS (
  SELECT work.*, calls.name AS call_name, calls.start_ns AS call_start_ns,
    calls.end_ns AS call_end_ns, row_number() OVER alike AS first,
    count(*) OVER every AS executions,
    max(graph OR is_graph_launch(calls.name)) OVER every AS is_graph
  FROM work JOIN calls ON calls.correlation_id = work.correlation_id
    AND calls.process_id IS work.process_id AND calls.place = 1
  WINDOW every AS (PARTITION BY work.process_id, work.correlation_id),
    alike AS (PARTITION BY work.process_id, work.correlation_id
      ORDER BY work.start_ns, work.source, work.place))
SELECT process_id, device_id, call_name,
  CASE WHEN is_graph THEN '[CUDA graph]' ELSE name END AS kernel, call_start_ns, call_end_ns,
  start_ns AS first_start_ns, executions
FROM launched WHERE first = 1""",
    "copy_launches": f"""
WITH {_INNERMOST[1:]}
SELECT c.start_ns, c.end_ns, c.process_id, c.device_id, c.kind, c.bytes, c.src_memory,
  c.dst_memory, c.src_device_id, c.dst_device_id, k.name AS call_name,
  k.start_ns AS call_start_ns, k.end_ns AS call_end_ns,
  CASE WHEN k.name IS NULL THEN NULL
    WHEN c.graph_node_id IS NOT NULL OR is_graph_launch(k.name) THEN 'no'
    WHEN c.end_ns <= k.end_ns OR k.end_ns - k.start_ns > 50000 THEN 'yes' ELSE 'no'
  END AS blocking
FROM copies AS c LEFT JOIN calls AS k ON k.correlation_id = c.correlation_id
  AND k.process_id IS c.process_id AND k.place = 1 AND c.kind NOT LIKE 'unified %'""",
    "thread_calls": """
WITH spans AS (
  SELECT process_id, thread_id, start_ns, end_ns, 1 AS call, 0 AS wait
  FROM api_calls WHERE kind <> 'wrapper'
  UNION ALL
  SELECT process_id, thread_id,
    start_ns + CASE call_class(name) WHEN 'synchronization' THEN 0 ELSE 50000 END, end_ns, 0, 1
  FROM api_calls WHERE kind <> 'wrapper' AND call_class(name) <> 'other'),
clipped AS (
  SELECT process_id, thread_id, call, wait, max(spans.start_ns, w.start_ns) AS start_ns,
    min(spans.end_ns, w.end_ns) AS end_ns
  FROM spans, window AS w
  WHERE spans.end_ns > spans.start_ns AND spans.end_ns > w.start_ns
    AND spans.start_ns < w.end_ns),
edges AS (
  SELECT process_id, thread_id, start_ns AS at, call, wait FROM clipped
  UNION ALL
  SELECT process_id, thread_id, end_ns, -call, -wait FROM clipped),
moments AS (
  SELECT process_id, thread_id, at, sum(call) AS call, sum(wait) AS wait
  FROM edges GROUP BY process_id, thread_id, at),
stretches AS (
  SELECT process_id, thread_id, at AS start_ns, lead(at) OVER along AS end_ns,
    sum(call) OVER along AS calls, sum(wait) OVER along AS waits
  FROM moments WINDOW along AS (PARTITION BY process_id, thread_id ORDER BY at))
SELECT * FROM stretches WHERE end_ns IS NOT NULL AND calls > 0""",
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

CONTEXT: tuple[TableSchema, ...] = (
    WINDOW,
    CAPTURE,
    NOT_RECORDED,
    KERNEL_LAUNCHES,
    FIRST_EXECUTIONS,
    COPY_LAUNCHES,
    THREAD_CALLS,
    DEVICE_WORK,
    DEVICE_STATES,
)
"""All of them, in the order of a listing."""
