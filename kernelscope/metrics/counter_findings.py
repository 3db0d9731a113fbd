"""What there is to doubt of counters that are laid on a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelscope import units
from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.counted_quantity import COLD_CACHE
from kernelscope.metrics.counted_work import CACHED, Group
from kernelscope.metrics.counter_match import WITHOUT_SHAPE, Match, Shapes
from kernelscope.metrics.health import Finding
from kernelscope.metrics.kernel_spelling import base
from kernelscope.metrics.work_tables import BOUNDS, ONLY_HERE, ONLY_THERE, covered
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Table

COUNTERS: tuple[str, ...] = (
    *(
        f"smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum"
        for kind in "fhd"
        for op in ("add", "mul", "fma")
    ),
    "sm__inst_executed_pipe_tensor.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
)
"""What FLOPs of all pipes and bytes of DRAM and L2 follow from, and so what bounds a kernel."""

HOW_TO_COUNT = f"ncu --csv --page raw --metrics {','.join(COUNTERS)} PROGRAM"

MOST = 0.9
"""Counters that cover this share of the kernels' time speak for all of them."""

AGREE = 0.02
"""Runs whose counts of a launch shape differ by this share of their mean, or less, agree."""

MOST_DOUBTS = 5
"""So many warnings about files of counters are findings of their own."""

_SHOWN = 3


def refuse_what_says_nothing(counted: CounterSet, groups: Sequence[Group]) -> None:
    """Refuse counters of which no quantity of work follows.

    Raises
    ------
    NotRecordedError
        If there is not one; the hint says what to count.
    """
    if groups:
        return
    names = list(counted.counters.categories("metric"))
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    raise NotRecordedError(
        f"Of {units.quantity(len(names), 'counter')} ({shown}) no FLOPs, bytes or instructions "
        "follow: percentages, levels and averages of rates are no counts.",
        f"Count them: {HOW_TO_COUNT}",
    )


def refuse_another_program(shapes: Shapes, groups: Sequence[Group]) -> None:
    """Refuse counters of which none is of a kernel of the trace.

    Raises
    ------
    SelectionError
        Always; the hint names kernels of either side.
    """
    here = dict.fromkeys(shapes.names)
    there = dict.fromkeys(group.name or "" for group in groups)
    both = {base(name) for name in here} & {base(name) for name in there}
    if both:
        raise SelectionError(
            "No kernel was counted in a launch shape, or as an instance of its template, that is "
            f"in the trace, though names agree: {_some(sorted(both))}.",
            "Was the batch size another? Count a run of the same program with the same inputs.",
        )
    raise SelectionError(
        f"None of the kernels that were counted ({units.count(len(there))}) ran in this trace.",
        f"Counted: {_some(there)}. In the trace: {_some(here)}. Are both of the same program?",
    )


def _some(names: Sequence[str] | Mapping[str, None]) -> str:
    listed = list(names)
    shown = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in listed[:_SHOWN])
    return shown + (", …" if len(listed) > _SHOWN else "")


def doubts_of(counted: CounterSet) -> list[Finding]:
    """Return what there was to doubt when counters were read: a finding each, as of a capture."""
    said = [
        Finding("counters_doubt", "warning", 1, message)
        for message in counted.warnings[:MOST_DOUBTS]
    ]
    more = len(counted.warnings) - len(said)
    if more:
        message = f"{units.quantity(more, 'more doubt')} of counters (kernelscope counters FILE)."
        said.append(Finding("counters_doubt", "warning", more, message))
    return said


def findings_of(
    coverage: Table,
    matches: Sequence[Match],
    shapes: Shapes,
    hows: Mapping[int, str],
    *,
    same_run: bool,
) -> Iterator[Finding]:
    """Yield what there is to doubt of counters and their join.

    Parameters
    ----------
    coverage : Table
        What ``work_tables.coverage_table`` returned.
    matches, shapes, hows
        What it was made of.
    same_run : bool
        Whether the trace holds the counters itself.
    """
    status = coverage.texts("status")
    if ONLY_HERE in status:
        share = covered(coverage.records())
        yield Finding(
            "kernels_not_counted",
            "info" if share >= MOST else "warning",
            status.count(ONLY_HERE),
            f"Counters cover {units.ratio(share)} of the kernels' time; "
            f"{units.quantity(status.count(ONLY_HERE), 'launch shape')} of the trace have none "
            "(table counter_coverage).",
        )
    if ONLY_THERE in status:
        yield Finding(
            "counted_elsewhere",
            "info",
            status.count(ONLY_THERE),
            f"{units.quantity(status.count(ONLY_THERE), 'launch shape')} that this trace does not "
            "hold were counted: the other run did something else, too.",
        )
    if same_run:
        return
    yield from _of_another_run(matches, shapes, hows)


def _of_another_run(
    matches: Sequence[Match], shapes: Shapes, hows: Mapping[int, str]
) -> Iterator[Finding]:
    differing = [
        match
        for match in matches
        if match.by != WITHOUT_SHAPE and shapes.executions[match.place] != match.group.executions
    ]
    if differing:
        yield Finding(
            "counted_another_number",
            "info",
            len(differing),
            f"{units.quantity(len(differing), 'launch shape')} ran another number of times than "
            "counted.",
        )
    yield from _disagreeing(matches)
    unsure = [match for match in matches if hows[match.place] == BOUNDS]
    if unsure:
        yield Finding(
            "work_between_bounds",
            "info",
            len(unsure),
            f"Executions of {units.quantity(len(unsure), 'launch shape')} differ in their work, "
            "and nothing tells which is which: each counts as their mean, between the least and "
            "the most.",
        )
    cold = [
        match
        for match in matches
        if any(each.caveat == COLD_CACHE for each in match.group.work.values())
    ]
    if cold:
        yield Finding(
            "cold_cache",
            "info",
            len(cold),
            "Nsight Compute ran kernels one by one and emptied the caches before each pass: bytes "
            "of L2 and DRAM are upper bounds (ncu --cache-control none leaves caches alone). Its "
            "times, of fixed clocks, are not used.",
        )


def _disagreeing(matches: Sequence[Match]) -> Iterator[Finding]:
    """Yield that runs counted the same kernels differently; caches never hold twice the same."""
    apart = [
        max(each.counted.disagreement for each in told)
        for match in matches
        if (told := [each for name, each in match.group.work.items() if name not in CACHED])
    ]
    count = sum(each > AGREE for each in apart)
    if count:
        yield Finding(
            "counter_runs_disagree",
            "warning",
            count,
            f"Runs of the counters differ in the work of {units.quantity(count, 'launch shape')}, "
            f"by up to {units.ratio(max(apart))} of their mean: each counts as the mean, and lies "
            "between the runs. Are all of the same program with the same inputs?",
        )
