"""What makes sampled GPU metrics doubtful."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelscope import units
from kernelscope.metrics.health import Finding
from kernelscope.metrics.sample_series import LONGEST_PERIODS, Series
from kernelscope.trace import Table

_WHY = {
    "no_time": "they have no time",
    "time_outside": "their time is one that no clock shows",
    "no_number": "their value is no whole number",
    "negative": "their value is negative, which no count or share is",
    "above_peak": "their value is a share of more than 120 %",
}


def sample_findings(
    samples: Table, series: Sequence[Series], devices: Sequence[int | None]
) -> list[Finding]:
    """What makes the sampled metrics doubtful?

    Parameters
    ----------
    samples : Table
        Under ``schema.GPU_SAMPLES``.
    series : sequence of Series
        What :func:`kernelscope.metrics.sample_series.series_of` made of them.
    devices : sequence of int or None
        The device of each series.

    Returns
    -------
    list of Finding
        Samples that were left out, that are of no device, that were lost, and values without a
        known scale.
    """
    findings = [*_left_out(samples), *_without_device(series, devices)]
    lost, gaps = (sum(getattr(each, name) for each in series) for name in ("lost_ns", "gaps"))
    if gaps:
        findings.append(
            Finding(
                "samples_lost",
                "warning",
                gaps,
                f"Stretches between two GPU samples of more than {LONGEST_PERIODS} sampling "
                f"periods, {units.duration(lost)} in all: samples were lost there, and no figure "
                "speaks of that time (coverage_ratio tells how much is left). A lower "
                "--gpu-metrics-frequency loses fewer.",
            )
        )
    repeated = sum(each.repeated for each in series)
    if repeated:
        findings.append(
            Finding(
                "samples_repeated",
                "warning",
                repeated,
                "Values of one GPU metric at one moment, of which there are several: none of them "
                "is in a figure.",
            )
        )
    unknown = {n for each in series for n, m in zip(each.metrics, each.meanings, strict=True)
               if m.unit is None}  # fmt: skip
    if unknown:
        findings.append(
            Finding(
                "sample_scale_unknown",
                "info",
                len(unknown),
                "Sampled GPU metrics whose values are stored under a scale that is not documented "
                f"({_some(sorted(unknown))}): their value is null.",
            )
        )
    return findings


def _some(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _left_out(samples: Table) -> list[Finding]:
    problem, source = samples["problem"], samples["source"]
    findings = []
    if len(source) and source.min() < 0:
        lost = int(np.count_nonzero(source < 0))
        findings.append(
            Finding(
                "samples_left_out",
                "warning",
                lost,
                "GPU samples left out of every figure: nothing says which GPU they are of "
                "(GPU_METRICS.typeId). Their rows of gpu_samples have no source.",
            )
        )
    if not len(problem) or problem.max() < 0:
        return findings
    counts = np.bincount(problem[problem >= 0], minlength=len(samples.categories("problem")))
    return findings + [
        Finding(
            "samples_left_out",
            "warning",
            int(count),
            f"GPU samples left out of every figure: {_WHY.get(name, name)}. Their rows of "
            f"gpu_samples have the problem {name!r}.",
        )
        for name, count in zip(samples.categories("problem"), counts.tolist(), strict=True)
        if count
    ]


def _without_device(series: Sequence[Series], devices: Sequence[int | None]) -> list[Finding]:
    lost = [each for each, device in zip(series, devices, strict=True) if device is None]
    if not lost:
        return []
    named = ", ".join(
        dict.fromkeys("unknown" if each.gpu_id is None else str(each.gpu_id) for each in lost)
    )
    return [
        Finding(
            "samples_without_device",
            "info" if len(lost) < len(series) else "warning",
            len(lost),
            f"Sampled GPUs ({named}, by the profiler's number) that cannot be told to be a device "
            "that the program used: another GPU of the machine, a GPU of which CUDA sees a part "
            "(MIG), or a capture without information on its GPUs. They are in gpu_metrics, and "
            "not among those by range and kernel.",
        )
    ]
