"""Pipe activity as the TBD benchmark measured it: levels of nvprof, percentages of ncu.

TBD (Zhu et al., "TBD: Benchmarking and Analyzing Deep Neural Network Training") took durations from
a plain run and, of another one, ``single_precision_fu_utilization``: how busy the FP32 pipe was on
a scale from 0 to 10. It is *activity* in steps of ten points, not FLOPs over the peak: a kernel of
additions scores like one of fused multiply-adds at twice the FLOPs. The authors' released tools
have defects that are not repeated here: they read ``Max (10)`` as 0, count empty cells as 0, leave
a kernel exactly at the mean out of both tables, and drop the last kernel of an ncu run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.errors import NotRecordedError
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.schema import TableSchema, integer, real, text
from kernelscope.trace import Categorical, Table

Floats = npt.NDArray[np.float64]

FP32_LEVEL = "single_precision_fu_utilization"
"""nvprof's level of the FP32 pipe."""

CYCLES = "gpc__cycles_elapsed.max"
PIPES: tuple[str, ...] = tuple(
    f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_elapsed"
    for pipe in ("fma", "fp16", "tensor", "xu")
)
"""What TBD's second version counts with ncu, each weighted by the cycles of its kernel."""

LISTED = 5
LOW, HIGH = "low", "high"

PIPE_ACTIVITY = TableSchema(
    "pipe_activity",
    "Which long kernels leave the FP32 pipe idle?",
    (
        text("name", "the kernel's full name"),
        integer("executions", "count", "executions in the plain trace"),
        integer("total_ns", "ns", "sum of durations in the plain trace"),
        real("share", "ratio", "total_ns over the total of all kernels"),
        real("activity", "ratio", "mean level over ten, ± 0.1; missing where no level was counted"),
        text(
            "listed",
            "low: one of the five longest at or below the mean; high: of those above it",
            optional=True,
        ),
    ),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PipeActivity:
    """How busy a pipe was.

    Attributes
    ----------
    activity : float
        Σ(duration · level) / Σ duration over ten, of the kernels with a level; ± 0.1.
    coverage : float
        Share of the kernels' time that has a level.
    kernels : Table
        Under `PIPE_ACTIVITY`, the longest first, then by name.
    """

    activity: float
    coverage: float
    kernels: Table


def pipe_activity(kernels: Table, counted: CounterSet, metric: str = FP32_LEVEL) -> PipeActivity:
    """How busy was a pipe while kernels ran, by nvprof's levels?

    Parameters
    ----------
    kernels : Table
        Under ``results.KERNELS``: names and durations of a plain trace.
    counted : CounterSet
        Of a run with this metric.
    metric : str
        A metric that nvprof gives as a level from 0 to 10.

    Raises
    ------
    NotRecordedError
        If there is no level of any kernel of the trace.

    Notes
    -----
    By kernel name, as TBD joins them. A kernel without a level is left out of both sums.
    """
    level = _levels(counted, metric)
    names = [name or "" for name in kernels.texts("name")]
    each = np.array([level.get(name, np.nan) for name in names]) / 10
    total = kernels["total_ns"].astype(np.float64)
    known = ~np.isnan(each)
    if not known.any() or not total[known].sum():
        raise NotRecordedError(
            f"No kernel of the trace has a level of {metric} among the counters.",
            f"Count it in a run of its own: nvprof --metrics {metric} --csv PROGRAM",
        )
    mean = float((total * each)[known].sum() / total[known].sum())
    order = np.lexsort((np.argsort(np.argsort(names)), -total))
    listed: list[str | None] = [None] * len(names)
    for label, rows in ((LOW, known & (each <= mean)), (HIGH, known & (each > mean))):
        for row in [row for row in order.tolist() if rows[row]][:LISTED]:
            listed[row] = label
    table = Table.make(
        PIPE_ACTIVITY,
        {
            "name": Categorical.of(names),
            "executions": kernels["executions"],
            "total_ns": kernels["total_ns"],
            "share": total / total.sum(),
            "activity": each,
            "listed": Categorical.of(listed),
        },
    )
    return PipeActivity(mean, float(total[known].sum() / total.sum()), table.take(order))


def _levels(counted: CounterSet, metric: str) -> dict[str, float]:
    """Return the mean level of each kernel over the executions that have one."""
    table = counted.counters
    wanted = [
        row
        for row in table.take(_is(table, "metric", metric)).records()
        if row["value"] is not None
        and row["unit"] == "level"
        and row["instance"] is None
        and row["statistic"] in ("value", "mean")
    ]
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in wanted:
        number = row["executions"] or 1
        sums[row["kernel_name"] or ""][0] += row["value"] * number
        sums[row["kernel_name"] or ""][1] += number
    return {name: total / number for name, (total, number) in sums.items()}


def core_utilization(counted: CounterSet, metrics: Sequence[str] = PIPES) -> dict[str, float]:
    """How busy was each pipe, by ncu's percentages weighted by the cycles of the kernels?

    Parameters
    ----------
    counted : CounterSet
        One run of ncu with the percentages and ``gpc__cycles_elapsed.max``, per execution.
    metrics : sequence of str
        The percentages.

    Returns
    -------
    dict of str to float
        Metric → Σ(cycles · share) / Σ cycles, 0 to 1, over every kernel that has both; those that
        were not counted are absent.

    Raises
    ------
    NotRecordedError
        If cycles were not counted.
    """
    table = counted.counters
    cycles = _by_execution(table, CYCLES)
    if not cycles:
        raise NotRecordedError(
            f"{CYCLES} was not counted: it is what percentages are weighted by.",
            f"ncu --csv --page raw --metrics {CYCLES},{','.join(metrics)} PROGRAM",
        )
    found = {}
    for metric in metrics:
        shares = _by_execution(table, metric)
        both = [key for key in shares if cycles.get(key)]
        if both:
            weights = np.array([cycles[key] for key in both])
            values = np.array([shares[key] for key in both])
            found[metric] = float((weights * values).sum() / weights.sum())
    return found


def _by_execution(table: Table, metric: str) -> dict[tuple[int | None, int | None], float]:
    return {
        (row["run"], row["execution"]): row["value"]
        for row in table.take(_is(table, "metric", metric)).records()
        if row["value"] is not None and row["instance"] is None and row["statistic"] == "value"
    }


def _is(table: Table, column: str, text_: str) -> npt.NDArray[np.bool_]:
    codes = [each == text_ for each in table.categories(column)]
    return np.array([*codes, False], dtype=np.bool_)[table[column]]
