"""Kernels, launch shapes, CUDA calls, copies and profiler overhead, summed over events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernelscope.metrics.explanations.entry import NSYS, OWN, TBD, Explanation
from kernelscope.metrics.explanations.queries import (
    DURATION,
    clipped_totals,
    shares,
    statistics,
)
from kernelscope.metrics.results import QUANTILES

_TABLES = ("kernels", "launch_shapes", "api_calls", "copies", "copies_by_kind")
_TIMES = ("{events}.start_ns", "{events}.end_ns")
_COUNTED = (
    "over the events that start in the window, at their full length: where a window cuts events, "
    "it is not total_ns / count"
)


def _also(column: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{table}.{column}" for table in (*_TABLES[1:], *more))


def _statistic(  # noqa: PLR0913 - an entry has that many parts
    column: str,
    question: str,
    formula: str,
    expression: str,
    *,
    numbers: str | None = None,
    pitfalls: str = "",
    elsewhere: str = "",
) -> Explanation:
    return Explanation(
        key=f"kernels.{column}",
        question=question,
        formula=formula,
        denominator=f"statistics are {_COUNTED}",
        inputs=_TIMES,
        source=f"as {NSYS} reckons it, but for the window",
        pitfalls=pitfalls,
        elsewhere=elsewhere,
        numbers=numbers,
        whole=True,
        sql=statistics(column, expression, *_TABLES),
        also=_also(column),
    )


def _quantiles() -> Iterable[Explanation]:
    for q in QUANTILES:
        yield _statistic(
            f"quantiles_ns.p{q}",
            f"Which duration do {q} % of them not exceed?",
            f"the value at (n − 1) · {q / 100} of the n sorted durations, interpolated linearly",
            f"quantile({DURATION}, {q / 100})",
            pitfalls="Of few executions the extreme quantiles are the extremes.",
            elsewhere="As numpy.quantile by default; nsys stats has no quantiles.",
        )


def _decoded() -> Iterator[Explanation]:
    for column, question, pitfalls in (
        (
            "family",
            "Whose kernel is it: a library's, a compiler's?",
            "A program's own kernels have none. A name proves who wrote it, not who called it.",
        ),
        (
            "operation",
            "What does the kernel compute?",
            "Auxiliary kernels (kernelscope decode says which) do none of the model's work.",
        ),
        (
            "pipe",
            "Where does its arithmetic run: on CUDA cores or tensor cores, in which type?",
            "Given only where a type or an instruction in the name proves it. Kernels of CUDA "
            "cores that read FP16 or BF16 may convert them to FP32: theirs is missing. A "
            "tensor-core kernel runs some FP32 arithmetic, too.",
        ),
    ):
        yield Explanation(
            key=f"kernels.{column}",
            question=question,
            formula="read from the kernel's name by tables of patterns",
            unit="text",
            inputs=("kernels.name",),
            source=f"{OWN}; checked against hardware counters where there were any",
            pitfalls=pitfalls,
            elsewhere="Lists of substrings (PyProf, Kineto's TensorBoard plugin) take every "
            "xmma_gemm for tensor cores: …f32f32…ffma… runs on none.",
            also=(f"launch_shapes.{column}",),
        )


def _count(column: str, table: str, *more: str) -> Explanation:
    return Explanation(
        key=f"{table}.{column}",
        question="How many of them started in the window?",
        formula="number of rows with window start ≤ start < window end",
        unit="count",
        inputs=_TIMES[:1],
        pitfalls="An event that began before the window and reaches into it has time in it "
        "(total_ns), and is not counted.",
        elsewhere="nsys stats --timeunit … start= counts every event that overlaps.",
        sql=statistics(column, "count(*)", table, *more),
        also=tuple(f"{each}.{column}" for each in more),
    )


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="kernels.total_ns",
        question="How much time did all of its executions, calls or operations take together?",
        formula="Σ (min(end, window end) − max(start, window start))",
        inputs=_TIMES,
        source=f"as {NSYS} sums it, but clipped to the window",
        pitfalls="A sum of durations: what overlaps counts as often as it runs, so it can "
        "exceed the window. For time see devices.kernel_ns.",
        elsewhere="nsys stats does not clip: with a start and end it counts whole events. It "
        "counts a call and the wrapper around it twice where call chains were recorded.",
        sql=clipped_totals("total_ns", *_TABLES, "kernels_by_device", "capture_cost"),
        also=_also("total_ns", "kernels_by_device", "capture_cost"),
    ),
    Explanation(
        key="kernels.share",
        question="How much of the kernel time is this kernel's?",
        formula="total_ns / Σ total_ns of all kernels",
        unit="ratio",
        denominator="Σ total_ns of all kernels: kernel time, not the window",
        inputs=_TIMES,
        source=f"as {NSYS} has it (Time %)",
        pitfalls="It says what to look at among kernels; a share of 50 % of a GPU that is idle "
        "most of the time is little. For that see kernels.share_of_window.",
        numbers="total_ns / sum(total_ns)",
        sql=shares("kernels.share", "(SELECT sum(total_ns) FROM t)"),
        also=("launch_shapes.share",),
    ),
    Explanation(
        key="kernels.share_of_window",
        question="How does this kernel's time compare with the window?",
        formula="total_ns / window",
        unit="ratio",
        denominator="the window, once, however many GPUs there are",
        inputs=_TIMES,
        pitfalls="Above 1 where executions overlap, or several GPUs run it.",
        numbers="total_ns / window_ns",
        sql=shares("kernels.share_of_window", "(SELECT duration_ns FROM window)"),
        also=("launch_shapes.share_of_window",),
    ),
    *_decoded(),
    _count("executions", "kernels", "launch_shapes", "kernels_by_device"),
    _count("calls", "api_calls"),
    _count("operations", "copies", "copies_by_kind"),
    _count("events", "capture_cost"),
    _statistic(
        "mean_ns",
        "How long does one take on average?",
        "Σ durations / n",
        f"avg({DURATION})",
        numbers="total_ns / n",
        pitfalls="A few long ones pull it up: compare the median.",
        elsewhere="nsys stats rounds it to 0.1 ns.",
    ),
    _statistic(
        "median_ns",
        "How long does a typical one take?",
        "the middle of the sorted durations; of an even number the mean of the middle two",
        f"median({DURATION})",
    ),
    _statistic("min_ns", "How long was the shortest?", "min(end − start)", f"min({DURATION})"),
    _statistic("max_ns", "How long was the longest?", "max(end − start)", f"max({DURATION})"),
    _statistic(
        "std_ns",
        "How much do durations vary?",
        "√(Σ (duration − mean)² / (n − 1)); 0 for a single one",
        f"stddev({DURATION})",
        pitfalls="Of two kinds of execution (two launch shapes) it tells how far apart they are.",
    ),
    *_quantiles(),
    Explanation(
        key="copies.bytes",
        question="How much was moved or set?",
        formula="Σ bytes of the operations that start in the window",
        unit="bytes",
        inputs=("copies.bytes",),
        pitfalls="Missing for a kind of which any size was not recorded: a part is no sum.",
        elsewhere="nsys stats prints MB of 10⁶ bytes.",
        sql=statistics(
            "bytes", "CASE WHEN count(*) = count(e.bytes) THEN sum(e.bytes) END",
            "copies", "copies_by_kind",
        ),
        also=("copies_by_kind.bytes",),
    ),
    Explanation(
        key="copies.bytes_per_s",
        question="How fast were they, while they ran?",
        formula="Σ bytes / Σ duration of the operations that start in the window",
        unit="bytes/s",
        denominator="the operations' own time, not the window",
        inputs=("copies.bytes", "copies.start_ns", "copies.end_ns"),
        pitfalls="The mean over bytes: many small copies, each dominated by its latency, hide "
        "behind a large one. Copies that overlap share a link, and each looks slow.",
        elsewhere="nsys stats' cuda_gpu_trace divides whole numbers, and truncates.",
        numbers="bytes / total_ns * 1000000000",
        whole=True,
        sql=statistics(
            "bytes_per_s",
            f"CASE WHEN count(*) = count(e.bytes) THEN 1e9 * sum(e.bytes) / sum({DURATION}) END",
            "copies", "copies_by_kind",
        ),
        also=("copies_by_kind.bytes_per_s",),
    ),
    Explanation(
        key="streams.kernels",
        question="How many kernels of this stream started in the window?",
        formula="number of kernel executions with window start ≤ start < window end",
        unit="count",
        inputs=("kernels.start_ns", "kernels.stream_id"),
        sql={
            "streams.kernels": "SELECT e.process_id, e.device_id, e.context_id, e.stream_id,\n"
            "  count(*) AS value\nFROM kernels AS e, window AS w\nWHERE e.start_ns >= w.start_ns "
            "AND (e.start_ns < w.end_ns OR e.end_ns = w.end_ns)\nGROUP BY 1, 2, 3, 4"
        },
    ),
    Explanation(
        key="checks.ok",
        question="Do sums that must agree agree?",
        formula="expected = actual, to the nanosecond",
        unit="flag",
        pitfalls="A breach is a fault of kernelscope or of the capture: it is printed, and "
        "--strict makes it an error.",
        source=OWN,
    ),
    Explanation(
        key="health.count",
        question="How many events or tables does a doubt concern?",
        formula="number of events, calls or tables that the message names",
        unit="count",
        pitfalls="Rows left out are in no sum; rows with doubtful clocks are in all sums, and "
        "have no queue time.",
    ),
    Explanation(
        key="mean_over_median",
        question="Is a kernel's duration lopsided?",
        formula="mean_ns / median_ns",
        unit="ratio",
        denominator="the median execution",
        inputs=_TIMES,
        source=f"{OWN}; {TBD} compares kernels with their mean",
        pitfalls="Well above 1: a few executions are much longer, another launch shape or a "
        "stall; launch_shapes tells which.",
        numbers="mean_ns / median_ns",
        of="kernels",
    ),
)  # fmt: skip
