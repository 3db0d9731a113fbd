"""How launches reach the GPUs: per launch call, never per execution or graph node."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import HTA, NSYS, OWN, Explanation
from kernelscope.metrics.results import QUANTILES

_CALLS = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.name", "api_calls.kind")
_JOIN = ("kernels.start_ns", "kernels.correlation_id", "api_calls.correlation_id",
         "kernels.process_id", "api_calls.process_id", "graphs.correlation_id",
         "copies.graph_node_id")  # fmt: skip
_INPUTS = (*_CALLS, *_JOIN)
_TABLES = {"launches": "e.call_name AS name", "launches_by_kernel": "e.kernel AS name",
           "launch_totals": "'all' AS name"}  # fmt: skip
_INSIDE = (
    "e.call_start_ns >= w.start_ns AND (e.call_start_ns < w.end_ns OR e.call_end_ns = w.end_ns)"
)
_KNOWN = "e.first_start_ns >= e.call_start_ns - 1000"

_VALUES = {
    "overhead_ns": "e.call_end_ns - e.call_start_ns",
    "queue_ns": f"CASE WHEN e.first_start_ns >= e.call_end_ns AND {_KNOWN}\n"
    "    THEN e.first_start_ns - e.call_end_ns END",
    "latency_ns": f"CASE WHEN {_KNOWN} THEN e.first_start_ns - e.call_start_ns END",
}
_AGGREGATES = {
    "mean": "avg({})", "median": "median({})", "min": "min({})", "max": "max({})",
    "std": "stddev({})", **{f"p{q}": f"quantile({{}}, {q / 100})" for q in QUANTILES},
}  # fmt: skip
_CHECKED = ("mean", "median", "max", "p95")
"""Statistics with a query: the others are of the same values."""

_SAYS = {
    "mean": "Σ / n of", "median": "the middle of the sorted", "min": "least", "max": "greatest",
    "std": "√(Σ (x − mean)² / (n − 1)) of",
    **{f"p{q}": f"the value at (n − 1) · {q / 100}, interpolated linearly, of" for q in QUANTILES},
}  # fmt: skip


def _sql(column: str, expression: str) -> dict[str, str]:
    """Return the query of a figure of the launch calls that start in the window, per table."""
    return {
        f"{table}.{column}": f"SELECT {group},\n  {expression} AS value\n"
        f"FROM first_executions AS e, window AS w\nWHERE {_INSIDE}\nGROUP BY 1"
        for table, group in _TABLES.items()
    }


def _also(column: str) -> tuple[str, ...]:
    return tuple(f"{table}.{column}" for table in list(_TABLES)[1:])


_DISTRIBUTIONS = (
    ("overhead_ns", "How long does a launch call take the host?",
     "call end − call start", f"as {HTA} and {NSYS} reckon it",
     "Per call, never per graph node. Tracing lengthens every call.",
     "HTA reckons it of cudaLaunchKernel and the like, graphs left out."),
    ("queue_ns", "How long does work wait between its launch and its start?",
     "start of the first execution − end of the call, where not negative",
     f"as {NSYS} reckons it (cuda_kern_exec_trace)",
     "A long queue is good: the host is ahead. Of a graph launch it is that of its first node. "
     "Missing where the execution began before the call returned: see overlap_ns.",
     "nsys stats has a row per kernel, so that each node of a graph has the queue time from "
     "its graph's launch; and joins by correlation id alone."),
    ("latency_ns", "How long does it take from the start of a launch call to the kernel's?",
     "start of the first execution − start of the call",
     f"{HTA} (CUDA kernel launch statistics)",
     "Host and device clocks are fitted by the profiler: up to −1 µs is put down to that, and "
     "what lies beyond has none (unknown).", "nsys stats calls it total, from API start."),
)  # fmt: skip

ENTRIES: tuple[Explanation, ...] = (
    *(
        Explanation(
            key=f"launches.{column}.{statistic}",
            question=question,
            formula=f"{_SAYS[statistic]} ({formula})",
            denominator="launch calls that start in the window and have one, at full length",
            inputs=_INPUTS,
            source=source,
            pitfalls=pitfalls,
            elsewhere=elsewhere,
            sql=_sql(f"{column}.{statistic}", aggregate.format(_VALUES[column]))
            if statistic in _CHECKED
            else {},
            also=_also(f"{column}.{statistic}"),
        )
        for column, question, formula, source, pitfalls, elsewhere in _DISTRIBUTIONS
        for statistic, aggregate in _AGGREGATES.items()
    ),
    Explanation(
        key="launches.total_ns",
        question="How long was the host inside these launch calls?",
        formula="Σ (call end − call start), clipped to the window",
        inputs=_INPUTS,
        pitfalls="Summed over threads; tracing lengthens every call. Calls of which no execution "
        "is known are in api_calls.total_ns only.",
        elsewhere="nsys stats' cuda_api_sum sums all calls of a name, those that launched "
        "nothing included.",
        sql={
            f"{table}.total_ns": f"SELECT {group},\n  sum(max(0, min(e.call_end_ns, w.end_ns) - "
            "max(e.call_start_ns, w.start_ns))) AS value\n"
            "FROM first_executions AS e, window AS w\nGROUP BY 1"
            for table, group in _TABLES.items()
        },
        also=_also("total_ns"),
    ),
    *(
        Explanation(
            key=f"launches.{column}",
            question=question,
            formula=formula,
            unit="count",
            inputs=_INPUTS,
            pitfalls=pitfalls,
            sql=_sql(column, expression),
            also=_also(column),
        )
        for column, question, formula, pitfalls, expression in (
            ("calls", "How many calls launched a kernel or a graph?",
             "number of launch calls that start in the window and whose execution is known",
             "A graph launch is one call, of many kernels.", "count(*)"),
            ("executions", "How many executions did they start?",
             "kernels, graph nodes and whole graphs", "", "sum(e.executions)"),
            ("queued", "How many of them have a queue time?",
             "those whose first execution started when the call had returned, or later", "",
             f"count({_VALUES['queue_ns']})"),
            ("unknown", "Of how many do the clocks disagree?",
             "those whose first execution starts more than 1 µs before the call", "",
             f"sum(NOT ({_KNOWN}))"),
        )
    ),
    Explanation(
        key="queue_depth.mean",
        question="How many launches is the host ahead of the GPU?",
        formula="∫ number of launch calls begun whose first execution has not started dt / window",
        unit="count",
        denominator="the window",
        inputs=_INPUTS,
        source=f"{HTA} (queue length)",
        pitfalls="Near 0 the GPU waits for the host; at about 1000 the host waits for room.",
        elsewhere="HTA counts kernels, and memory operations apart; a graph is one launch here.",
        sql={
            "queue_depth.mean": "SELECT e.process_id, e.device_id,\n"
            "  1.0 * sum(max(0, min(e.first_start_ns, w.end_ns) - "
            "max(e.call_start_ns, w.start_ns)))\n    / w.duration_ns AS value\n"
            "FROM first_executions AS e, window AS w\nGROUP BY 1, 2"
        },
    ),
    Explanation(
        key="queue_depth.launches",
        question="How many launches went to this GPU?",
        formula="launch calls that start in the window, by the device of their first execution",
        unit="count",
        inputs=_INPUTS,
        sql={
            "queue_depth.launches": "SELECT e.process_id, e.device_id,\n  count(*) AS value\n"
            f"FROM first_executions AS e, window AS w\nWHERE {_INSIDE}\nGROUP BY 1, 2"
        },
    ),
    Explanation(
        key="queue_depth.max",
        question="How far ahead was the host at the most?",
        formula="the most launch calls begun at once whose first execution had not started",
        unit="count",
        inputs=_INPUTS,
        source=f"{HTA} (queue length)",
        pitfalls="The driver holds about 1022 operations; the calls of graphs hold many each.",
        sql={
            "queue_depth.max": "SELECT process_id, device_id,\n  max(depth) AS value\n"
            "FROM result_queue_depth_steps\nGROUP BY 1, 2"
        },
    ),
    Explanation(
        key="launch_stretches.waiting_ns",
        question="How long did the GPU wait for launches in this stretch?",
        formula="the part of its idle time that ends with a launch that was not there yet",
        denominator="compare it with busy_ns of the stretch",
        inputs=_INPUTS,
        source=f"{OWN}: a stretch is a run of activities each waited for longer than it lasts",
        pitfalls="Of at least ten activities and 100 µs, without pauses above 1 ms.",
    ),
    Explanation(
        key="launch_stretches.busy_ns",
        question="How long did the GPU work in this stretch?",
        formula="|C ∪ M ∪ P ∪ S ∪ G| between its start and its end",
        denominator="the stretch, duration_ns",
        inputs=(*_JOIN, "kernels.end_ns", "copies.start_ns", "copies.end_ns"),
        numbers="duration_ns - idle_ns",
        sql={
            "launch_stretches.busy_ns": "SELECT r.device, r.start_ns,\n"
            "  sum(min(s.end_ns, r.end_ns) - max(s.start_ns, r.start_ns)) AS value\n"
            "FROM result_launch_stretches AS r JOIN device_states AS s ON s.device = r.device\n"
            "  AND s.start_ns < r.end_ns AND s.end_ns > r.start_ns\n"
            "WHERE compute + communication + graph + copy + memset > 0\nGROUP BY 1, 2"
        },
    ),
)  # fmt: skip
