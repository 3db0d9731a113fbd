"""What is said of training iterations: a row for each, and a summary of all."""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.metrics.find_iterations import RunnerUp
from kernelscope.metrics.steady import SteadyFigures
from kernelscope.schema import Column, TableSchema, integer

STATES: tuple[str, ...] = ("warmup", "steady", "outlier", "last")
"""What an iteration is; the last one has no following start and is in no period statistic."""

ITERATIONS = TableSchema(
    "iterations",
    "How long does each training iteration take, and what does the GPU do in it?",
    (
        integer("index", "id", "the iteration's number in the trace, from 0"),
        Column(
            "label",
            "category",
            "text",
            "the range's own name; with its number where kernelscope.iterations opened it",
            optional=True,
        ),
        integer("start_ns", "ns", "when it began"),
        integer(
            "period_ns",
            "ns",
            "step time: until the next one began; the last ends with its range; whole, as all "
            "figures of an iteration that starts in the window",
        ),
        integer("range_ns", "ns", "how long its NVTX range was open", optional=True),
        integer("outside_ns", "ns", "period less range: data loading, often", optional=True),
        integer(
            "busy_in_window_ns",
            "ns",
            "time within the period in which any device of the process ran a kernel, copy, "
            "memset or opaque graph of the process",
        ),
        integer(
            "kernel_in_window_ns",
            "ns",
            "time within the period in which any kernel of it ran, or any opaque graph, which is "
            "kernels that nobody knows",
        ),
        integer(
            "attributed_ns",
            "ns",
            "sum of the durations of the kernels and opaque graphs that the iteration launched",
        ),
        integer("spill_ns", "ns", "the part of attributed_ns that ran after the period"),
        integer(
            "opaque_ns",
            "ns",
            "the part of attributed_ns in CUDA graphs that were traced as one unit",
        ),
        integer(
            "launches",
            "count",
            "calls of the process in the period that launched a kernel or an opaque graph",
        ),
        integer("kernels", "count", "executions that the iteration launched"),
        Column("state", "category", "text", "warmup, steady, outlier or last"),
    ),
)


@dataclass(frozen=True, slots=True)
class SequenceCheck:
    """What repeats in the kernel sequence, beside the markers.

    Attributes
    ----------
    name : str
        ``repeating unit of N kernels``.
    count : int
        How often it repeats.
    median_ns : float or None
        Median time between two of them.
    confidence : float
        Between 0 and 1.
    agrees : bool
        Whether it is what the markers mark, by number and median period.
    """

    name: str
    count: int
    median_ns: float | None
    confidence: float
    agrees: bool


@dataclass(frozen=True, slots=True)
class IterationSummary:
    """The training iterations of a trace, in one value.

    Attributes
    ----------
    family : str or None
        The ranges' name with digits folded, or ``repeating unit of N kernels``; None where no
        iterations were found.
    domain : str or None
        NVTX domain; None where the iterations do not come from NVTX.
    process_id, thread_id : int or None
        Whose ranges they are.
    source : {"nvtx", "kernel_sequence", "user"} or None
        How the iterations were found.
    score : float or None
        Of the family, or the confidence of the kernel sequence.
    runner_up : RunnerUp or None
        The family that would be next, with its score.
    also_in : tuple of (process, thread)
        Where else the same ranges are: other ranks.
    count : int
        Iterations in the window, the last one of the trace included.
    warmup, outliers : tuple of int
        Which iterations of the window are.
    steady : SteadyFigures
        What the others take, the last one of the trace left out.
    throughput_per_s : float or None
        Samples of the iterations after warm-up over the time that they took, outliers included,
        times the ranks; None without a batch size.
    kernel_sequence : SequenceCheck or None
        What the kernel sequence says, where it was asked for beside the markers.
    notes : tuple of str
        What a reader must know, one sentence each: why there are no iterations, for one.
    """

    family: str | None
    domain: str | None
    process_id: int | None
    thread_id: int | None
    source: str | None
    score: float | None
    runner_up: RunnerUp | None
    also_in: tuple[tuple[int | None, int | None], ...]
    count: int
    warmup: tuple[int, ...]
    outliers: tuple[int, ...]
    steady: SteadyFigures
    throughput_per_s: float | None
    kernel_sequence: SequenceCheck | None
    notes: tuple[str, ...]
