"""How copies and collectives move data, and what hides them."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import HTA, OWN, Explanation

_COPIES = ("copies.bytes", "copies.start_ns", "copies.end_ns", "copies.kind",
           "copies.src_memory", "copies.dst_memory")  # fmt: skip
_CALLS = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.correlation_id",
          "copies.correlation_id")  # fmt: skip
_TALK = ("kernels.name", "kernels.start_ns", "kernels.end_ns")
_SPINS = (
    "A rank's kernel starts when the rank is ready and spins until its peers are: waiting is inside"
)

_TRANSFER = (
    "SELECT e.kind, e.src_memory, e.dst_memory, e.call_name AS call, e.blocking, e.process_id,\n"
    "  e.device_id, e.src_device_id, e.dst_device_id,\n  {} AS value\n"
    "FROM copy_launches AS e, window AS w\nWHERE {}\nGROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
)
_MIGRATION = (
    "SELECT e.kind, e.migration_cause AS cause, e.process_id, e.device_id,\n  {} AS value\n"
    "FROM copies AS e, window AS w\nWHERE e.kind LIKE 'unified %' AND {}\nGROUP BY 1, 2, 3, 4"
)
_STARTS = "e.start_ns >= w.start_ns AND (e.start_ns < w.end_ns OR e.end_ns = w.end_ns)"
_CLIPPED = "sum(max(0, min(e.end_ns, w.end_ns) - max(e.start_ns, w.start_ns)))"
_EXPRESSIONS = {
    "operations": "count(*)",
    "bytes": "CASE WHEN count(*) = count(e.bytes) THEN sum(e.bytes) END",
    "bytes_per_s": "CASE WHEN count(*) = count(e.bytes)\n"
    "    THEN 1e9 * sum(e.bytes) / sum(e.end_ns - e.start_ns) END",
}


def _sql(column: str) -> dict[str, str]:
    if column == "total_ns":
        expression, where = _CLIPPED, "1"
    else:
        expression, where = _EXPRESSIONS[column], _STARTS
    return {
        f"transfers.{column}": _TRANSFER.format(expression, where),
        f"migrations.{column}": _MIGRATION.format(expression, where),
    }


_BESIDE = """WITH spans AS (
  SELECT r.process_id, r.device_id, max(k.start_ns, w.start_ns) AS start_ns,
    min(k.end_ns, w.end_ns) AS end_ns, 1 AS own, 0 AS compute, 0 AS graph
  FROM window AS w CROSS JOIN result_communication_by_device AS r JOIN kernels AS k
    ON k.process_id IS r.process_id AND k.device_id = r.device_id
  WHERE is_communication(k.name) AND k.end_ns > w.start_ns AND k.start_ns < w.end_ns
  UNION ALL
  SELECT r.process_id, r.device_id, k.start_ns, k.end_ns, 0, k.class = 'compute',
    k.class = 'graph'
  FROM result_communication_by_device AS r JOIN result_device_ordinals AS o
    ON o.process_id IS r.process_id AND o.device_id = r.device_id
    JOIN device_work AS k ON k.device = o."index"
  WHERE k.class IN ('compute', 'graph')),
edges AS (
  SELECT process_id, device_id, start_ns AS at, own, compute, graph FROM spans
  UNION ALL SELECT process_id, device_id, end_ns, -own, -compute, -graph FROM spans),
moments AS (
  SELECT process_id, device_id, at, sum(own) AS own, sum(compute) AS compute,
    sum(graph) AS graph FROM edges GROUP BY 1, 2, 3),
states AS (
  SELECT process_id, device_id, at AS start_ns, lead(at) OVER along AS end_ns,
    sum(own) OVER along AS own, sum(compute) OVER along AS compute,
    sum(graph) OVER along AS graph
  FROM moments WINDOW along AS (PARTITION BY process_id, device_id ORDER BY at))
SELECT process_id, device_id,
  sum((end_ns - start_ns) * ({})) AS value
FROM states WHERE end_ns IS NOT NULL AND own > 0
GROUP BY 1, 2"""


def _beside(column: str, condition: str) -> dict[str, str]:
    return {f"communication_by_device.{column}": _BESIDE.format(condition)}


_COLLECTIVE = (
    "SELECT e.process_id, e.device_id,\n  {} AS value\nFROM kernels AS e, window AS w\n"
    "WHERE is_communication(e.name) AND {}\nGROUP BY 1, 2"
)

ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="transfers.operations",
        question="How many copies are of this kind, and issued like this?",
        formula="number of copies with window start ≤ start < window end",
        unit="count",
        inputs=(*_COPIES, *_CALLS),
        sql=_sql("operations"),
        also=("migrations.operations",),
    ),
    Explanation(
        key="transfers.total_ns",
        question="How much time did these copies take together?",
        formula="Σ (min(end, window end) − max(start, window start))",
        inputs=(*_COPIES, *_CALLS),
        pitfalls="A sum of durations: copies that run at once count twice; for time see busy_ns.",
        sql=_sql("total_ns"),
        also=("migrations.total_ns",),
    ),
    Explanation(
        key="transfers.bytes",
        question="How much did they move?",
        formula="Σ bytes of the copies that start in the window",
        unit="bytes",
        inputs=(*_COPIES, *_CALLS),
        pitfalls="Missing where any size was not recorded: a part is no sum.",
        sql=_sql("bytes"),
        also=("migrations.bytes",),
    ),
    Explanation(
        key="transfers.bytes_per_s",
        question="How fast are these transfers, while they run?",
        formula="Σ bytes / Σ duration of the operations that start in the window",
        unit="bytes/s",
        denominator="the transfers' own time, not the window",
        inputs=(*_COPIES, *_CALLS),
        pitfalls="The mean over bytes; of small copies latency is most. median_bytes_per_s is "
        "that of the copies, each counted once.",
        elsewhere="nsys stats' cuda_gpu_trace divides whole numbers, and truncates.",
        sql=_sql("bytes_per_s"),
        also=("migrations.bytes_per_s",),
    ),
    Explanation(
        key="transfers.exposed_ns",
        question="How much of their time does no kernel hide?",
        formula="|P ∧ ¬(C ∨ M ∨ G)|, P being the row's operations and the kernels those of any "
        "process on the same GPU",
        denominator="busy_ns of the row: its union, not the sum",
        inputs=(*_COPIES, *_TALK),
        pitfalls="Rows that ran at once both count it; devices.partition.copy_only_ns counts it "
        "once.",
        numbers="busy_ns - hidden_ns",
        also=("migrations.exposed_ns",),
    ),
    Explanation(
        key="transfers.blocked_ns",
        question="How long did these copies block the host?",
        formula="Σ over calls of (duration − 50 µs), where positive, in the window",
        inputs=(*_CALLS, *_COPIES),
        pitfalls="An \"asynchronous\" copy of pageable memory blocks, whatever its name says. Of "
        "several copies of one call the first one has it.",
        elsewhere="nsys stats' rule cuda_memcpy_async lists such copies by their memory, not by "
        "whether the host waited.",
    ),
    Explanation(
        key="transfers.blocking",
        question="Did the host wait in the call that copied?",
        formula="yes where the call returned when its copy had ended, or lasted longer than 50 µs",
        unit="text",
        inputs=(*_CALLS, *_COPIES),
        pitfalls="no for nodes of a graph; missing where no call was recorded, as of migrations.",
    ),
    Explanation(
        key="communication.total_ns",
        question="How much time did these collectives take together?",
        formula="Σ (min(end, window end) − max(start, window start)) of their kernels",
        inputs=_TALK,
        pitfalls=f"{_SPINS}. A sum: kernels that run at once count twice; for time see busy_ns.",
        sql={
            "communication_by_device.total_ns": _COLLECTIVE.format(
                _CLIPPED, "e.end_ns > w.start_ns AND e.start_ns < w.end_ns"
            )
        },
        also=("communication_by_device.total_ns",),
    ),
    Explanation(
        key="communication.calls",
        question="How many collectives were there?",
        formula="number of communication kernels that start in the window",
        unit="count",
        inputs=_TALK,
        pitfalls="Kernels: a library may make one collective of several, or several of one.",
        sql={"communication_by_device.calls": _COLLECTIVE.format("count(*)", _STARTS)},
        also=("communication_by_device.calls",),
    ),
    Explanation(
        key="communication.busy_ns",
        question="How long did GPUs communicate?",
        formula="|M|",
        inputs=_TALK,
        pitfalls=f"{_SPINS}.",
        numbers="exposed_ns + overlapped_ns",
        sql=_beside("busy_ns", "1"),
        also=("communication_by_device.busy_ns",),
    ),
    Explanation(
        key="communication.exposed_ns",
        question="How much communication does no compute hide?",
        formula="|M ∧ ¬C|, C of every process on the GPU",
        denominator="communication time, busy_ns",
        inputs=_TALK,
        source=f"{OWN}; {HTA} reckons communication that compute does not overlap",
        pitfalls=f"{_SPINS}, so it is an upper bound of what a faster link would save.",
        elsewhere="HTA leaves graphs out; exposed_without_graphs_ns takes a graph that was traced "
        "as one unit for compute.",
        numbers="busy_ns - overlapped_ns",
        sql=_beside("exposed_ns", "compute = 0"),
        also=("communication_by_device.exposed_ns",),
    ),
    Explanation(
        key="communication.exposed_without_graphs_ns",
        question="How much communication do neither compute nor opaque graphs hide?",
        formula="|M ∧ ¬C ∧ ¬G|",
        denominator="communication time, busy_ns",
        inputs=(*_TALK, "graphs.start_ns", "graphs.end_ns"),
        pitfalls="What ran inside a graph that was traced as one unit is not known: this is the "
        "least, exposed_ns the most.",
        sql=_beside("exposed_without_graphs_ns", "compute = 0 AND graph = 0"),
        also=("communication_by_device.exposed_without_graphs_ns",),
    ),
    Explanation(
        key="communication.overlapped_ns",
        question="How much communication does compute hide?",
        formula="|M ∧ C|",
        denominator="communication time, busy_ns",
        inputs=_TALK,
        source=f"{HTA} (communication computation overlap)",
        numbers="busy_ns - exposed_ns",
        sql=_beside("overlapped_ns", "compute > 0"),
        also=("communication_by_device.overlapped_ns",),
    ),
    Explanation(
        key="communication.algorithm_bytes_per_s",
        question="How fast did the collective move its data?",
        formula="Σ bytes / Σ duration of the calls that start in the window",
        unit="bytes/s",
        denominator="the kernels' own time",
        inputs=(*_TALK, "ranges.name"),
        source="NVIDIA nccl-tests, doc/PERFORMANCE.md (algbw)",
        pitfalls=f"A lower bound. {_SPINS}. Missing where NVTX does not say how many bytes.",
    ),
    Explanation(
        key="communication.bus_bytes_per_s",
        question="How fast must the busiest link have been?",
        formula="algorithm_bytes_per_s × 2(n − 1)/n for all_reduce, (n − 1)/n for all_gather, "
        "reduce_scatter, all_to_all, gather and scatter, 1 for others; n ranks",
        unit="bytes/s",
        denominator="the kernels' own time",
        inputs=_TALK,
        source="NVIDIA nccl-tests, doc/PERFORMANCE.md (busbw)",
        pitfalls=f"A lower bound. {_SPINS}. Missing where the number of ranks is not known "
        "(--ranks).",
    ),
)  # fmt: skip
