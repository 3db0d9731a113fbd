"""Work that the hardware counted: FLOPs, bytes and instructions."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, Explanation

_INPUTS = (
    "kernels.name", "kernels.grid_x", "kernels.block_x", "counters.metric", "counters.value",
    "counters.kernel_name", "counters.grid_x", "counters.block_x",
)  # fmt: skip
_METHOD = "NERSC's roofline method (Yang et al. 2020): FLOPs = add + mul + 2·fma per precision"
_JOIN = (
    "By kernel name, grid and block. Executions of a launch shape whose FLOPs differ by 2 % at "
    "most count as their mean; if they differ by more, the n-th launch counts as the n-th counted "
    "where both runs launched it as often, else as the mean, between the least and the most"
)

ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="work.value",
        question="How many FLOPs, bytes or instructions did the kernel's executions take?",
        formula="Σ over launch shapes of executions · (Σ factor · counter), as in column counters",
        unit="see the row's unit",
        inputs=_INPUTS,
        source=f"{_METHOD}; sectors and transactions are 32 bytes; tensor instructions by the "
        "shape in the kernel's name, 2·m·n·k each",
        pitfalls=f"{_JOIN}. Counts only: no time, rate or percentage of the other run enters. Of "
        "the counted executions: coverage says how much of the kernel's time that is. Missing "
        "where only bounds are known.",
        elsewhere="ncu multiplies every tensor instruction by 512, which holds for Volta only; "
        "NERSC's tables divide by 1024³ for GFLOP/s.",
    ),
    Explanation(
        key="work.low",
        question="How much work did the kernel's executions take at least?",
        formula="as work.value, of the least that was counted of each launch shape",
        unit="see the row's unit",
        inputs=_INPUTS,
        source=OWN,
        pitfalls="Missing for DRAM bytes that were counted with emptied caches (cold_cache). Of "
        "several runs that counted the same and differ, it lies below all of them.",
    ),
    Explanation(
        key="work.high",
        question="How much work did the kernel's executions take at most?",
        formula="as work.value, of the most that was counted of each launch shape",
        unit="see the row's unit",
        inputs=_INPUTS,
        source=OWN,
        pitfalls="Missing where the counters see a part only (partial). Of several runs that "
        "counted the same and differ, it lies above all of them.",
    ),
    Explanation(
        key="work.rate_per_s",
        question="At which rate does the kernel work?",
        formula="work.value / time of the counted executions in this trace",
        unit="unit of the row per second",
        denominator="the durations of the plain trace: counting makes kernels slower",
        inputs=(*_INPUTS, "kernels.start_ns", "kernels.end_ns"),
        source="TBD's method: durations of a plain trace, counters of another run",
        pitfalls="Missing of a trace in which the profiler ran kernels one by one.",
    ),
    Explanation(
        key="work.coverage",
        question="How much of the kernel's time do its counters speak for?",
        formula="time of its launch shapes that were counted / its time",
        unit="ratio",
        denominator="the kernel's time inside the window",
        inputs=(*_INPUTS, "kernels.start_ns", "kernels.end_ns"),
        source=OWN,
    ),
    Explanation(
        key="counter_coverage.spread",
        question="How much do the executions of a launch shape differ in their FLOPs?",
        formula="(most − least) / mean; without FLOPs, of what else was counted",
        unit="ratio",
        denominator="their mean",
        inputs=("counters.value",),
        source=OWN,
        pitfalls="Beyond 2 % executions are told apart by their order, or known between bounds.",
    ),
)
