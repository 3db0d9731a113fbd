"""Rounds: every workload once, one after the other, so that what is compared runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.exports import Export
from benchmarks.measuring import Sample, run, touch, warm
from benchmarks.workloads import START_UPS, WORKLOADS, NotHereError, Workload

START_UP_ROUNDS = 4
"""Starts are short, and noisy: that many rounds of them in one round of the rest."""

TOUCHED = 3
"""Before each sample so many times the size of its file is touched: more than it will need."""

LARGE, LARGE_ROUNDS = 5_000_000, 2
"""Exports of more kernels than that take part in so many rounds at most."""


@dataclass(slots=True)
class Series:
    """The samples of one workload on one export; the sample of round n stands at place n.

    Attributes
    ----------
    workload : str
        :attr:`Workload.name`.
    export : str or None
        :attr:`Export.name`; None if it needs none.
    warmups, samples : list of Sample
        Those of the round before the first count for nothing.
    absent : str or None
        Why it could not run.
    """

    workload: str
    export: str | None
    warmups: list[Sample] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    absent: str | None = None


def measure(
    folder: Path, exports: Sequence[Export], repeats: int, progress: Callable[[str], None]
) -> list[Series]:
    """Run all workloads on all exports in `folder`, `repeats` times and once before that.

    Raises
    ------
    ChildError
        If a workload fails.
    ValueError
        If two workloads find different sums of kernel durations in one export.
    """
    for each in exports:
        warm(folder / each.file)
    places = [
        (Series(workload.name, each.name), workload, each)
        for each in exports
        for workload in WORKLOADS
        if each.kind in workload.kinds
    ]
    starts = [(Series(workload.name, None), workload) for workload in START_UPS]
    for number in range(-1, repeats):
        progress("warm-up" if number < 0 else f"round {number + 1} of {repeats}")
        for _ in range(START_UP_ROUNDS):
            for series, workload in starts:
                _sample(series, workload, "", number)
        for series, workload, each in places:
            if each.kernels <= LARGE or number < LARGE_ROUNDS:
                progress(f"  {each.name}: {workload.title}")
                touch(TOUCHED * each.bytes)
                _sample(series, workload, str(folder / each.file), number)
    all_series = [series for series, *_ in starts] + [series for series, *_ in places]
    _agreed(all_series)
    return all_series


def _sample(series: Series, workload: Workload, path: str, number: int) -> None:
    try:
        sample = run(workload.command(path), workload.look)
    except NotHereError as reason:
        series.absent = str(reason)
    else:
        (series.warmups if number < 0 else series.samples).append(sample)


def _agreed(measured: Sequence[Series]) -> None:
    """Check that whoever computed the sum of the kernels' durations found the same."""
    found: dict[str | None, set[int]] = {}
    for series in measured:
        for sample in series.warmups + series.samples:
            if "kernel_ns" in sample.said:
                found.setdefault(series.export, set()).add(sample.said["kernel_ns"])
    for name, sums in found.items():
        if len(sums) > 1:
            raise ValueError(f"{name}: the workloads disagree on the sum of durations: {sums}")
