"""Definitions that stand before their tables do.

An entry counts once its table and column exist; until then nobody sees it. Move it to the file of
its topic then.
"""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import HTA, NSYS, OWN, TBD, Explanation

_HOST = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.name", "api_calls.thread_id")
_DEVICE = ("kernels.start_ns", "kernels.end_ns", "copies.start_ns", "copies.end_ns")
_JOIN = ("kernels.correlation_id", "api_calls.correlation_id", "kernels.process_id")
_API_ONLY = (
    "With CUDA calls only, CPU-only and neither are not told apart: cpu_only_ns is a lower bound "
    "and neither_ns an upper one"
)
_BOTH = _HOST + _DEVICE

PLANNED: tuple[Explanation, ...] = (
    Explanation(
        key="overlap.both_ns",
        question="How long did host and GPU work at the same time?",
        formula="|CPU busy ∧ GPU busy|",
        denominator="the four states sum to the window",
        inputs=_BOTH,
        pitfalls="Waiting is not work: synchronize calls whole, copies, allocations and module "
        "loads beyond 50 µs, are no CPU busy time.",
        numbers="window_ns - gpu_only_ns - cpu_only_ns - neither_ns",
    ),
    Explanation(
        key="overlap.gpu_only_ns",
        question="How long did the GPU work while the host waited or slept?",
        formula="|GPU busy ∧ ¬CPU busy|",
        denominator="the four states sum to the window",
        inputs=_BOTH,
    ),
    Explanation(
        key="overlap.cpu_only_ns",
        question="How long did the host work while the GPU was idle?",
        formula="|CPU busy ∧ ¬GPU busy|",
        denominator="the four states sum to the window",
        inputs=_BOTH,
        pitfalls=_API_ONLY,
    ),
    Explanation(
        key="overlap.neither_ns",
        question="How long did neither work?",
        formula="|¬CPU busy ∧ ¬GPU busy|",
        denominator="the four states sum to the window",
        inputs=_BOTH,
        pitfalls=_API_ONLY,
    ),
    Explanation(
        key="cpu_utilization.value",
        question="Which share of the CPU's cores did the program use?",
        formula="Σ on-core time of the recorded process tree / (cores × window)",
        unit="ratio",
        denominator="cores × window",
        source=f"{TBD} (CPU utilization)",
        pitfalls="Only from scheduling records. TBD's own figure saw the whole machine.",
    ),
    Explanation(
        key="launches.overhead_ns.median",
        question="How long does a launch call take the host?",
        formula="median(call end − call start)",
        denominator="launch calls that start in the window",
        inputs=_HOST,
        source=f"as {HTA} and {NSYS} reckon it",
        pitfalls="Per call, never per graph node. Tracing lengthens every call.",
    ),
    Explanation(
        key="launches.queue_ns.median",
        question="How long does work wait between its launch and its start?",
        formula="median(start of the first execution − end of the call), where not negative",
        denominator="calls with a queue time",
        inputs=(*_HOST, *_JOIN),
        source=f"as {NSYS} (cuda_kern_exec_trace)",
        pitfalls="A long queue is good: the host is ahead. Of a graph launch it is that of its "
        "first node.",
    ),
    Explanation(
        key="launches.latency_ns.median",
        question="How long does it take from the start of a launch call to the kernel's?",
        formula="median(start of the first execution − start of the call)",
        denominator="launch calls whose first execution is known",
        inputs=(*_HOST, *_JOIN),
        source=f"{HTA} (CUDA kernel launch statistics)",
    ),
    Explanation(
        key="queue_depth.mean",
        question="How many launches is the host ahead of the GPU?",
        formula="∫ launch calls begun whose first execution has not started dt / window",
        unit="count",
        denominator="the window",
        inputs=(*_HOST, *_JOIN),
        source=f"{HTA} (queue length)",
    ),
    Explanation(
        key="idle.total_ns",
        question="How much of the idle time has this cause?",
        formula="Σ of the idle nanoseconds whose first cause that holds is this one",
        denominator="the causes sum to devices.idle_ns",
        inputs=_BOTH,
        pitfalls="A gap may have several causes, one after the other. What evidence does not "
        "decide is unexplained.",
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
        key="communication.exposed_ns",
        question="How much communication does no compute hide?",
        formula="|M ∧ ¬C|",
        denominator="communication time; stated with and without G",
        inputs=_DEVICE,
        source=f"{OWN}; {HTA} reckons the overlap of sums of durations",
        pitfalls="Waiting for other GPUs is inside: from one rank it is an upper bound of "
        "transfer time.",
    ),
    Explanation(
        key="transfers.bytes_per_s",
        question="How fast are transfers, while they run?",
        formula="Σ bytes / Σ duration",
        unit="bytes/s",
        denominator="the transfers' own time",
        inputs=("copies.bytes", "copies.start_ns", "copies.end_ns"),
    ),
    Explanation(
        key="findings.saving_bound_ns",
        question="How much would fixing it save at the most?",
        formula="time of the window that the finding's cause covers",
        pitfalls="A bound, not a forecast: something else may take its place.",
    ),
)
