"""Definitions that stand before their tables do.

An entry counts once its table and column exist; until then nobody sees it. Then it belongs into
the file of its topic, with a query where SQL can recompute it.
"""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import HTA, NSYS, OWN, TBD, Explanation

_HOST = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.name", "api_calls.thread_id")
_DEVICE = ("kernels.start_ns", "kernels.end_ns", "copies.start_ns", "copies.end_ns")
_JOIN = ("kernels.correlation_id", "api_calls.correlation_id", "kernels.process_id")
_COPIES = ("copies.bytes", "copies.start_ns", "copies.end_ns", "copies.kind")
_TALK = ("kernels.name", "kernels.start_ns", "kernels.end_ns")
_API_ONLY = (
    "With CUDA calls alone, CPU only and neither are not told apart: cpu_only_ns is then a lower "
    "bound and neither_ns an upper one, and no finding may rest on either"
)
_WAITING = (
    "Waiting is not work: synchronisations whole; copies, allocations and module loads beyond "
    "their first 50 µs. CUDA spins while it waits, so time on a core alone is not work"
)
_SPINS = (
    "A rank's kernel starts when the rank is ready and spins until its peers are: waiting is inside"
)

_OVERLAPS: tuple[tuple[str, str, str], ...] = (
    ("overlap", "window_ns", "the window"),
    ("overlap_by_iteration", "period_ns", "the iteration's period inside the window"),
    ("overlap_by_path", "open_ns", "the time in which the range was open"),
    ("overlap_by_name", "open_ns", "the time in which the range was open"),
)
_STATES: tuple[tuple[str, str, str, str], ...] = (
    ("both", "How long did host and GPU work at the same time?", "|CPU busy ∧ GPU busy|", _WAITING),
    ("gpu_only", "How long did the GPU work while the host waited or slept?",
     "|GPU busy ∧ ¬CPU busy|", _WAITING),
    ("cpu_only", "How long did the host work while the GPU was idle?",
     "|CPU busy ∧ ¬GPU busy|", _API_ONLY),
    ("neither", "How long did neither work?", "|¬CPU busy ∧ ¬GPU busy|", _API_ONLY),
)  # fmt: skip


def _rest(state: str, whole: str) -> str:
    others = [f"{name}_ns" for name, *_ in _STATES if name != state]
    return " - ".join([whole, *others])


def _in_launches(column: str) -> tuple[str, ...]:
    return (f"launches_by_kernel.{column}", f"launch_totals.{column}")


PLANNED: tuple[Explanation, ...] = (
    *(
        Explanation(
            key=f"{table}.{state}_ns",
            question=question,
            formula=formula,
            denominator=f"the four states sum to {words}",
            inputs=_HOST + _DEVICE,
            source=f"{OWN}; TBD's question of CPU and GPU overlap",
            pitfalls=pitfalls,
            numbers=_rest(state, whole),
        )
        for table, whole, words in _OVERLAPS
        for state, question, formula, pitfalls in _STATES
    ),
    Explanation(
        key="cpu.utilization",
        question="Which share of the machine's cores did the recorded processes use?",
        formula="Σ time of their threads on cores / (cores × time with scheduling records)",
        unit="ratio",
        denominator="cores × the part of the window in which scheduling was recorded",
        source=f"{TBD} (CPU utilization)",
        pitfalls="Only from scheduling records. TBD's own figure saw every process of the machine. "
        "A thread that spins in CUDA is on a core, too.",
        numbers="on_core_ns / (cores * scheduled_ns)",
    ),
    Explanation(
        key="host_threads.busy_ns",
        question="How long did this thread work?",
        formula="|time on a core, or inside CUDA calls| − |waiting|",
        inputs=_HOST,
        pitfalls=_WAITING,
    ),
    *(
        Explanation(
            key=f"launches.{column}.median",
            question=question,
            formula=f"median({formula})",
            denominator="launch calls that start in the window and have one",
            inputs=(*_HOST, *_JOIN),
            source=source,
            pitfalls=pitfalls,
            also=_in_launches(f"{column}.median"),
        )
        for column, question, formula, source, pitfalls in (
            ("overhead_ns", "How long does a launch call take the host?",
             "call end − call start", f"as {HTA} and {NSYS} reckon it",
             "Per call, never per graph node. Tracing lengthens every call."),
            ("queue_ns", "How long does work wait between its launch and its start?",
             "start of the first execution − end of the call, where not negative",
             f"as {NSYS} reckons it (cuda_kern_exec_trace)",
             "A long queue is good: the host is ahead. Of a graph launch it is that of its first "
             "node."),
            ("latency_ns", "How long does it take from the start of a launch call to the kernel's?",
             "start of the first execution − start of the call",
             f"{HTA} (CUDA kernel launch statistics)", ""),
        )
    ),
    Explanation(
        key="launches.total_ns",
        question="How long was the host inside these launch calls?",
        formula="Σ (call end − call start), clipped to the window",
        inputs=(*_HOST, *_JOIN),
        pitfalls="Summed over threads; tracing lengthens every call.",
        also=_in_launches("total_ns"),
    ),
    Explanation(
        key="queue_depth.mean",
        question="How many launches is the host ahead of the GPU?",
        formula="∫ number of launch calls begun whose first execution has not started dt / window",
        unit="count",
        denominator="the window",
        inputs=(*_HOST, *_JOIN),
        source=f"{HTA} (queue length)",
        pitfalls="Near 0 the GPU waits for the host; at about 1000 the host waits for room.",
    ),
    Explanation(
        key="launch_stretches.waiting_ns",
        question="How long did the GPU wait for launches in this stretch?",
        formula="the part of its idle time that ends with a launch that was not there yet",
        denominator="compare it with busy_ns of the stretch",
        inputs=(*_HOST, *_JOIN),
    ),
    Explanation(
        key="idle.total_ns",
        question="How much of the idle time has this cause?",
        formula="Σ of the idle nanoseconds whose first cause that holds is this one",
        denominator="the causes sum to devices.idle_ns",
        inputs=_HOST + _DEVICE,
        pitfalls="A gap may have several causes, one after the other. What no evidence decides is "
        "unexplained.",
    ),
    Explanation(
        key="gap_spectrum.total_ns",
        question="How much idle time lies in gaps up to this length?",
        formula="Σ length of the gaps ≤ up_to_ns",
        denominator="all gaps; leading and trailing idle time are none",
        inputs=_DEVICE,
        pitfalls="A million gaps of 2 µs matter as much as one of two seconds.",
    ),
    Explanation(
        key="communication.busy_ns",
        question="How long did GPUs communicate?",
        formula="|M|",
        inputs=_TALK,
        pitfalls=_SPINS,
        numbers="exposed_ns + overlapped_ns",
        also=("communication_by_device.busy_ns",),
    ),
    Explanation(
        key="communication.exposed_ns",
        question="How much communication does no compute hide?",
        formula="|M ∧ ¬C|",
        denominator="communication time, busy_ns",
        inputs=_TALK,
        source=f"{OWN}; {HTA} reckons communication that compute does not overlap",
        pitfalls=f"{_SPINS}, so it is an upper bound of what a faster link would save.",
        numbers="busy_ns - overlapped_ns",
        also=("communication_by_device.exposed_ns",),
    ),
    Explanation(
        key="communication.bus_bytes_per_s",
        question="How fast must the busiest link have been?",
        formula="algorithm_bytes_per_s × 2(n − 1)/n for all_reduce, (n − 1)/n for all_gather, "
        "reduce_scatter and all_to_all, 1 for others; n ranks",
        unit="bytes/s",
        denominator="the kernels' own time",
        inputs=_TALK,
        source="NVIDIA nccl-tests, doc/PERFORMANCE.md",
        pitfalls=f"A lower bound. {_SPINS}.",
    ),
    Explanation(
        key="transfers.bytes_per_s",
        question="How fast are these transfers, while they run?",
        formula="Σ bytes / Σ duration of the operations that start in the window",
        unit="bytes/s",
        denominator="the transfers' own time",
        inputs=_COPIES,
        also=("migrations.bytes_per_s",),
    ),
    Explanation(
        key="transfers.exposed_ns",
        question="How much of their time does no kernel hide?",
        formula="|P ∧ ¬(C ∨ M ∨ G)|",
        denominator="busy_ns of the row",
        inputs=(*_COPIES, *_TALK),
        numbers="busy_ns - hidden_ns",
        also=("migrations.exposed_ns",),
    ),
    Explanation(
        key="transfers.blocked_ns",
        question="How long did these copies block the host?",
        formula="Σ over calls of (duration − 50 µs), where positive, in the window",
        inputs=(*_HOST, *_COPIES),
        pitfalls="An \"asynchronous\" copy of pageable memory blocks, whatever its name says.",
    ),
    Explanation(
        key="copy_exposure.exposed_ns",
        question="How much of the GPU's copying does no kernel hide?",
        formula="|P ∧ ¬(C ∨ M ∨ G)|",
        denominator="copy_ns",
        inputs=(*_COPIES, *_TALK),
        numbers="copy_ns - hidden_ns",
    ),
    Explanation(
        key="findings.saving_bound_ns",
        question="How much would fixing it save at the most?",
        formula="time of the window that the finding's cause covers",
        pitfalls="A bound, not a forecast: something else may take its place.",
    ),
)  # fmt: skip
