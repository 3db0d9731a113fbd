"""Training iterations: each, and the steady step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernelscope.metrics.explanations.entry import OWN, TBD, Explanation, Numbers, Worked, spelled

if TYPE_CHECKING:
    from kernelscope.metrics.analysis import Analysis

_RANGES = ("ranges.start_ns", "ranges.end_ns", "ranges.name")
_LAUNCHED = ("kernels.correlation_id", "api_calls.correlation_id", "api_calls.start_ns")
_STEADY = "the steady iterations: without warm-up, isolated outliers, and the last one"


def _periods(analysis: Analysis, *states: str) -> list[int]:
    rows = analysis.tables["iterations"]
    pairs = zip(rows.values("period_ns"), rows.texts("state"), strict=True)
    return [period for period, state in pairs if state in states]


def _steady(statistic: Callable[[list[int]], float], words: str) -> Numbers:
    def numbers(analysis: Analysis) -> list[Worked]:
        periods = sorted(_periods(analysis, "steady"))
        shown = ", ".join(map(spelled, periods[:4]))
        if len(periods) > 8:
            shown += f", … {len(periods) - 8} more …, "
            shown += ", ".join(map(spelled, periods[-4:]))
        elif len(periods) > 4:
            shown += ", " + ", ".join(map(spelled, periods[4:]))
        value = statistic(periods) if periods else None
        return [Worked(f"{len(periods)} steady iterations", f"{words} of {shown}", value)]

    return numbers


def quantile(q: float) -> Callable[[list[int]], float]:
    """Return the statistic that interpolates linearly at (n − 1)·q of sorted values."""
    return lambda values: float(np.quantile(values, q))


def _mean(values: list[int]) -> float:
    return math.fsum(values) / len(values)


def _mean_over_median(values: list[int]) -> float:
    return _mean(values) / quantile(0.5)(values)


def _throughput(analysis: Analysis) -> list[Worked]:
    """The samples are not kept in the analysis: it holds what they come to."""
    periods = _periods(analysis, "steady", "outlier")
    value = analysis.iteration_summary.throughput_per_s
    if value is None or not periods:
        return [Worked("all ranks", "", None)]
    samples = round(value * sum(periods) / 1e9 / len(periods))
    text = (
        f"{len(periods)} iterations × {samples:,} samples / {spelled(sum(periods))} ns × 10⁹ ns/s"
    )
    return [Worked("all ranks", text, len(periods) * samples * 1e9 / sum(periods))]


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="iterations.period_ns",
        question="How long did this step take?",
        formula="start of the next iteration − its own start; the last ends with its range",
        inputs=_RANGES,
        source=f"{OWN}; TBD times iterations in the framework",
        pitfalls="Data loading outside the range counts: it is part of the step.",
        elsewhere="nsys stats' nvtx_sum times the range alone, which is iterations.range_ns.",
        sql={
            "iterations.period_ns": 'SELECT i."index",\n'
            "  coalesce(lead(i.start_ns) OVER (ORDER BY i.start_ns) - i.start_ns,\n"
            "    CASE i.state WHEN 'last' THEN i.range_ns END,\n"
            "    i.period_ns) AS value  -- where the next one lies outside the window\n"
            "FROM result_iterations AS i"
        },
    ),
    Explanation(
        key="iterations.range_ns",
        question="How long was the iteration's NVTX range open?",
        formula="end of the range − its start",
        inputs=_RANGES,
        elsewhere="As nsys stats' nvtx_sum.",
        sql={
            "iterations.range_ns": 'SELECT i."index",\n  r.end_ns - r.start_ns AS value\n'
            "FROM result_iterations AS i JOIN ranges AS r\n"
            "  ON r.start_ns = i.start_ns AND r.name = i.label"
        },
    ),
    Explanation(
        key="iterations.outside_ns",
        question="How much of the step lies outside its range?",
        formula="period − range",
        inputs=_RANGES,
        pitfalls="Often data loading, also logging, or validation between two steps.",
        numbers="period_ns - range_ns",
    ),
    Explanation(
        key="iterations.busy_in_window_ns",
        question="How long did any GPU of the process work within the step?",
        formula="|kernels ∪ copies ∪ memsets of the process ∧ [start, next start)|",
        denominator="reports show it as a share of period_ns",
        inputs=("kernels.start_ns", "copies.start_ns", *_RANGES),
        pitfalls="In the period, whoever launched it: the tail of the step before may run in it. "
        "These times add up over steps; work attributed to them does not lie in them.",
    ),
    Explanation(
        key="iterations.kernel_in_window_ns",
        question="How long did any kernel of the process run within the step?",
        formula="|kernels of the process ∧ [start, next start)|",
        inputs=("kernels.start_ns", *_RANGES),
        pitfalls="As for busy_in_window_ns.",
    ),
    Explanation(
        key="iterations.attributed_ns",
        question="How much kernel time did the step launch?",
        formula="Σ duration of the kernels that belong to it by their launch",
        inputs=(*_LAUNCHED, *_RANGES),
        pitfalls="A sum of durations, whenever they ran; overlapping kernels count twice. Never "
        "set it against the period: for that there is busy_in_window_ns.",
    ),
    Explanation(
        key="iterations.spill_ns",
        question="How much of that ran after the step?",
        formula="Σ (end − max(start, next iteration's start)) of its kernels that end later",
        inputs=(*_LAUNCHED, *_RANGES),
        pitfalls="The host runs ahead: of an asynchronous program this is normal.",
    ),
    Explanation(
        key="iterations.launches",
        question="How many calls of the process in the step launched a kernel?",
        formula="number of launch calls with iteration start ≤ start < next start",
        unit="count",
        inputs=(*_LAUNCHED, *_RANGES),
        pitfalls="A graph launch is one call, of many kernels.",
    ),
    Explanation(
        key="iterations.kernels",
        question="How many kernel executions did the step launch?",
        formula="number of kernels that belong to it by their launch",
        unit="count",
        inputs=(*_LAUNCHED, *_RANGES),
    ),
    Explanation(
        key="iterations.steady.median_ns",
        question="How long does a steady step take?",
        formula="median(period_ns) over the steady iterations",
        denominator=_STEADY,
        inputs=_RANGES,
        source=f"{OWN}; {TBD} samples 50 to 1000 iterations after warm-up",
        pitfalls="Where every second step stalls the median hides the stall: compare the mean.",
        numbers=_steady(quantile(0.5), "median"),
        sql={
            "iterations.steady.median_ns": "SELECT median(period_ns) AS value\n"
            "FROM result_iterations\nWHERE state = 'steady'"
        },
    ),
    Explanation(
        key="iterations.steady.mean_ns",
        question="How long does a steady step take on average?",
        formula="Σ period_ns / n over the steady iterations",
        denominator=_STEADY,
        inputs=_RANGES,
        numbers=_steady(_mean, "mean"),
        sql={
            "iterations.steady.mean_ns": "SELECT avg(period_ns) AS value\n"
            "FROM result_iterations\nWHERE state = 'steady'"
        },
    ),
    *(
        Explanation(
            key=f"iterations.steady.p{q}_ns",
            question=f"Which step time do {q} % of the steady steps not exceed?",
            formula=f"the value at (n − 1) · {q / 100} of the sorted periods, interpolated "
            "linearly",
            denominator=_STEADY,
            inputs=_RANGES,
            pitfalls="Of fewer than twenty steps it is nearly the extreme.",
            numbers=_steady(quantile(q / 100), f"{q} % quantile"),
            sql={
                f"iterations.steady.p{q}_ns": f"SELECT quantile(period_ns, {q / 100}) AS value\n"
                "FROM result_iterations\nWHERE state = 'steady'"
            },
        )
        for q in (5, 95)
    ),
    Explanation(
        key="iterations.steady.count",
        question="How many steps are steady?",
        formula="iterations in the window − warm-up − isolated outliers (fewer than 5 %) − the "
        "last one",
        unit="count",
        inputs=_RANGES,
        pitfalls="A stall at every second step is no outlier: it is the story.",
        numbers=lambda analysis: [
            Worked(
                "iterations",
                "number of state = steady",
                len(_periods(analysis, "steady")),
            )
        ],
        sql={
            "iterations.steady.count": "SELECT count(*) AS value\n"
            "FROM result_iterations\nWHERE state = 'steady'"
        },
    ),
    Explanation(
        key="step_time_ratio",
        question="Is the step time steady?",
        formula="mean / median of the steady periods; above 1.1 it is not",
        unit="ratio",
        denominator="the median steady step",
        inputs=_RANGES,
        numbers=_steady(_mean_over_median, "mean / median"),
        sql={
            "step_time_ratio": "SELECT avg(period_ns) / median(period_ns) AS value\n"
            "FROM result_iterations\nWHERE state = 'steady'"
        },
    ),
    Explanation(
        key="iterations.throughput_per_s",
        question="How many samples per second does the training process?",
        formula="samples of the iterations after warm-up × ranks / the time that those took",
        unit="1/s",
        denominator="Σ period_ns after warm-up, outliers included, the last one left out",
        inputs=_RANGES,
        source=f"{TBD} (throughput)",
        pitfalls="Needs --batch-size, where kernelscope.iterations did not say it (and --ranks). "
        "From one rank's trace, times the ranks: that all go in step is taken for granted.",
        numbers=_throughput,
    ),
    Explanation(
        key="iterations.score",
        question="How sure is it that these ranges are the iterations?",
        formula="Σ periods / (first to last device activity) × (1 − MAD / median of launches per "
        "period); of a kernel sequence, its confidence",
        unit="ratio",
        denominator="the span of device activity",
        inputs=(*_RANGES, *_LAUNCHED),
        pitfalls="Below 0.3 there are none. --iteration NAME decides otherwise.",
    ),
)
