"""NVTX ranges: what each costs the device, and what lies in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelscope.metrics.explanations.entry import NSYS, OWN, Explanation, Worked, spelled

if TYPE_CHECKING:
    from kernelscope.metrics.analysis import Analysis

_RANGES = ("ranges.start_ns", "ranges.end_ns", "ranges.name", "ranges.domain", "ranges.thread_id")
_LAUNCHED = (
    "api_calls.start_ns", "api_calls.correlation_id", "kernels.correlation_id", "kernels.start_ns",
    *_RANGES,
)  # fmt: skip
_RULE = (
    "A launch belongs to the ranges of its thread with range start ≤ call start < range end; one "
    "outside the iteration family inherits the iteration that was open"
)
_ELSEWHERE = (
    "nsys demands that the range hold the whole call on its own thread, and inherits nothing: "
    "kernelscope ranges FILE --nsys-rule applies that"
)
_ALL_KERNELS = "reports show it as a share of all kernel time, Σ kernels.total_ns"


def _both(column: str) -> tuple[str, ...]:
    return (f"ranges_by_name.{column}",)


def _nowhere(column: str) -> str:
    return (
        f"SELECT coalesce(sum({column}), 0) AS value\nFROM result_unattributed\n"
        "WHERE domain IS NULL\n"
        """HAVING 'ranges' NOT IN (SELECT "table" FROM not_recorded)"""
    )


def _unattributed(analysis: Analysis, column: str) -> list[Worked]:
    if "ranges" not in analysis.capture.recorded:
        return [Worked("no ranges were recorded", "", None)]
    table = analysis.tables["unattributed"]
    rows = [row for row in table.records() if row["domain"] is None]
    text = " + ".join(f"{spelled(row[column])} ({row['reason']})" for row in rows)
    return [Worked("in no range of any domain", text or "0", sum(row[column] for row in rows))]


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="ranges.instances",
        question="How often was this range opened?",
        formula="number of ranges with window start ≤ start < window end",
        unit="count",
        inputs=_RANGES,
        pitfalls="Ranges that were never closed end with the trace, and count.",
        also=_both("instances"),
    ),
    Explanation(
        key="ranges.host_ns",
        question="How long was it open on the host, in all?",
        formula="Σ (end − start), clipped to the window",
        inputs=_RANGES,
        source=f"as {NSYS} (nvtx_sum), but clipped to the window",
        pitfalls="Host time: launching is quick, the device works later. Ranges of several "
        "threads are summed.",
        also=_both("host_ns"),
    ),
    Explanation(
        key="ranges.projected_ns",
        question="When was the device at what it launched, from first to last?",
        formula="Σ over ranges of (last end − first start of what it launched)",
        inputs=(*_LAUNCHED, "copies.correlation_id"),
        source=f"as {NSYS} (nvtx_gpu_proj_sum)",
        pitfalls="Idle time between its kernels counts, and so does other work that ran there; "
        "what worked is busy_ns.",
        elsewhere=_ELSEWHERE,
        also=_both("projected_ns"),
    ),
    Explanation(
        key="ranges.projected_union_ns",
        question="How long was the device at it, projections that overlap once?",
        formula="|∪ [first start, last end) of what each range launched|",
        inputs=(*_LAUNCHED, "copies.correlation_id"),
        source=OWN,
        pitfalls="Instances whose projections overlap (asynchronous steps) make it smaller than "
        "projected_ns.",
    ),
    Explanation(
        key="ranges.busy_ns",
        question="How long did anything that it launched run?",
        formula="|kernels ∪ copies ∪ memsets launched inside|",
        denominator="a union: compare it with device time, not with kernel_ns",
        inputs=(*_LAUNCHED, "copies.correlation_id"),
        pitfalls=_RULE,
        elsewhere=_ELSEWHERE,
        also=_both("busy_ns"),
    ),
    Explanation(
        key="ranges.kernel_ns",
        question="How much kernel time did it launch, ranges inside included?",
        formula="Σ duration of the kernels launched inside, clipped to the window, each once",
        denominator=_ALL_KERNELS,
        inputs=_LAUNCHED,
        pitfalls=f"{_RULE}. Ranges inside each other both hold it: do not add rows.",
        elsewhere=_ELSEWHERE,
        also=_both("kernel_ns"),
    ),
    Explanation(
        key="ranges.self_kernel_ns",
        question="How much of that lies in no range inside this one?",
        formula="kernel_ns − that of the ranges inside",
        denominator=_ALL_KERNELS,
        inputs=_LAUNCHED,
        pitfalls="Σ self over the push/pop paths of a domain + unattributed = all kernel time: "
        "checked on every run. Start/end ranges do not nest, and have none.",
    ),
    Explanation(
        key="ranges.kernels",
        question="How many kernels did it launch?",
        formula="attribution.direct + inherited + graph + concurrent",
        unit="count",
        inputs=_LAUNCHED,
        pitfalls=_RULE,
        elsewhere=_ELSEWHERE,
        numbers="attribution.direct + attribution.inherited + attribution.graph + "
        "attribution.concurrent",
        also=_both("kernels"),
    ),
    *(
        Explanation(
            key=f"ranges.attribution.{how}",
            question=f"How many of its kernels were {question}?",
            formula=formula,
            unit="count",
            inputs=_LAUNCHED,
            pitfalls=pitfalls,
            also=_both(f"attribution.{how}"),
        )
        for how, question, formula, pitfalls in (
            ("direct", "launched while it was open on the launching thread",
             "range start ≤ call start < range end, one thread", ""),
            ("inherited", "launched by another thread while its iteration or phase was open",
             "no range of the iteration (phase) family on the launching thread; exactly one "
             "thread of the process carries that family",
             "PyTorch's backward pass runs on a thread of its own. Where several threads annotate, "
             "nothing is inherited (unattributed: several_annotating_threads)."),
            ("graph", "nodes of a CUDA graph launched inside it",
             "the graph's launch lies in the range",
             "Under which ranges they were captured is in graph_kernels."),
            ("concurrent", "launched by a data pipeline while its iteration was open",
             "the launching thread's calls lie under a data pipeline's domain (DALI)",
             "They prepare a later batch: in the iteration, in no phase."),
        )
    ),
    Explanation(
        key="ranges.inherited_kernel_ns",
        question="How much of its kernel time is not direct?",
        formula="Σ duration of its kernels that are inherited or concurrent",
        inputs=_LAUNCHED,
        pitfalls="kernel_ns − inherited_kernel_ns is what holds without inheritance.",
        also=_both("inherited_kernel_ns"),
    ),
    Explanation(
        key="unattributed.total_ns",
        question="How much kernel time lies in no range?",
        formula="Σ duration of the kernels that no range of any domain holds, clipped to the "
        "window",
        denominator=_ALL_KERNELS,
        inputs=_LAUNCHED,
        pitfalls="Null where no ranges were recorded: that no range holds a kernel then says "
        "nothing of it. The table has rows per domain, too, which are not to be added.",
        numbers=lambda analysis: _unattributed(analysis, "total_ns"),
        sql={"unattributed.total_ns": _nowhere("total_ns")},
    ),
    Explanation(
        key="unattributed.kernels",
        question="How many kernels lie in no range?",
        formula="number of kernels that no range of any domain holds",
        unit="count",
        inputs=_LAUNCHED,
        numbers=lambda analysis: _unattributed(analysis, "kernels"),
        sql={"unattributed.kernels": _nowhere("kernels")},
    ),
    Explanation(
        key="ranges.opaque_ns",
        question="How much time did CUDA graphs take of which no kernel is known?",
        formula="Σ duration of the graphs traced as one unit that were launched inside, clipped "
        "to the window",
        inputs=("graphs.start_ns", "graphs.end_ns", "graphs.correlation_id", "api_calls.start_ns",
                "api_calls.correlation_id", "ranges.start_ns", "ranges.end_ns"),
        pitfalls="In no kernel figure, but busy: kernel_ns and opaque_ns are two columns. nsys "
        "profile --cuda-graph-trace=node shows the kernels, at a higher cost.",
        elsewhere="Tools that know kernels only take this time for idle.",
        also=(*_both("opaque_ns"), "unattributed.opaque_ns", "iterations.opaque_ns"),
    ),
    Explanation(
        key="graph_kernels.total_ns",
        question="How much time did the kernels of CUDA graphs take, by where they were captured?",
        formula="Σ duration of graph-node kernels, clipped to the window",
        inputs=("kernels.graph_node_id", "graph_nodes.graph_node_id", *_LAUNCHED),
        pitfalls="Needs nsys profile --cuda-graph-trace=node; a graph traced as one unit is "
        "devices.partition.opaque_graph_ns.",
    ),
)  # fmt: skip
