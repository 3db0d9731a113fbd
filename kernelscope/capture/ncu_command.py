"""The command line of Nsight Compute: which kernels to count, of which launches, which counters.

Counting replays a kernel once for every few counters, so it is bounded: the kernels that make up
most of the time, as often as they run in one iteration. Communication kernels are left out, since
one that is replayed waits for peers that do not come back. Clocks are left alone, and caches too:
the counts are laid on the durations of the plain run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelscope.annotation.scheme import DOMAIN
from kernelscope.capture.nsys_command import CAPTURE_RANGE, CUDA, NVTX, WHOLE
from kernelscope.errors import ToolError
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.counter_findings import COUNTERS
from kernelscope.metrics.kernel_names import function_name
from kernelscope.trace import Trace

METRICS = COUNTERS

SHARE = 0.90
"""Kernels that make up this share of the time of all that compute are counted."""

MOST_NAMES, MOST_LAUNCHES = 400, 2_000

REPORT = ".ncu-rep"


@dataclass(frozen=True, slots=True)
class Counting:
    """Which launches to count.

    Attributes
    ----------
    functions : tuple of str
        The kernels' functions, without namespace, template arguments and parameters.
    skip, launches : int
        How many launches of them to pass over first, and to count then.
    covers : float
        The share of the computing time that they make up.
    """

    functions: tuple[str, ...]
    skip: int
    launches: int
    covers: float


def what_to_count(
    trace: Trace, analysis: Analysis, *, captured: bool, most: int = MOST_LAUNCHES
) -> Counting:
    """Choose the kernels that matter, and the launches of one steady iteration.

    Parameters
    ----------
    trace, analysis
        The plain run.
    captured : bool
        Whether ncu counts only what the program captures: then nothing is to be skipped.
    most : int
        Launches to count at most.

    Raises
    ------
    ToolError
        If no kernel ran that could be counted.
    """
    kernels = analysis.tables["kernels"]
    names = kernels.texts("name")
    talks = is_communication([name or "" for name in names])
    rows = [
        (name or "", int(ns))
        for name, ns, talk in zip(names, kernels["total_ns"].tolist(), talks.tolist(), strict=True)
        if not talk
    ]
    total = sum(ns for _, ns in rows)
    if not total:
        raise ToolError(
            "No kernel that computes was recorded, so there is none to count.",
            "Did the program use the GPU in the part that was recorded? See --capture.",
        )
    chosen: dict[str, None] = {}
    covered = 0
    for name, ns in rows:  # the longest first
        function = plain_function(name)
        if covered < SHARE * total and len(chosen) < MOST_NAMES:
            chosen.setdefault(function)
        if function in chosen:
            covered += ns
    skip, launches = _launches(trace, analysis, set(chosen))
    return Counting(
        tuple(chosen), 0 if captured else skip, max(min(launches, most), 1), covered / total
    )


def plain_function(name: str) -> str:
    """Return a kernel's function as ``--kernel-name-base function`` compares it."""
    return function_name(name).rpartition("::")[2] or name


def _launches(trace: Trace, analysis: Analysis, functions: set[str]) -> tuple[int, int]:
    """Return how many launches of some functions lie before a steady iteration, and in it.

    Without iterations: none, and all of them.
    """
    kernels = trace.kernels
    mine = [plain_function(name) in functions for name in kernels.categories("name")]
    start = np.sort(kernels["start_ns"][np.array([*mine, False])[kernels["name"]]])
    steps = analysis.tables["iterations"]
    labels = analysis.iteration_summary
    warm = len(labels.warmup) if labels.warmup else 0
    if len(steps) <= warm:
        return 0, len(start)
    begin = int(steps["start_ns"][warm])
    end = begin + int(steps["period_ns"][warm])
    first, last = np.searchsorted(start, [begin, end]).tolist()
    return (first, last - first) if last > first else (0, len(start))


def count_command(  # noqa: PLR0913, PLR0917 - what a command is made of
    ncu: Path,
    options: Collection[str],
    wanted: Counting | None,
    output: Path,
    program: Sequence[str],
    capture: str = WHOLE,
) -> tuple[list[str], list[str]]:
    """Return the command that counts, and what this ncu cannot do of what is wanted.

    Parameters
    ----------
    ncu : Path
        The executable.
    options : collection of str
        The options that it lists.
    wanted : Counting or None
        Which launches; None while they are not known (a dry run).
    output : Path
        The report without its suffix.
    program : sequence of str
        The program and its arguments.
    capture : str
        What the program marks, one of ``nsys_command.CAPTURES``.

    Raises
    ------
    ToolError
        If this ncu cannot choose kernels by name: counting all of them might hang.
    """
    command = [str(ncu)]
    lacks: list[str] = []
    for option, value in (
        ("--target-processes", "all"),
        ("--clock-control", "none"),
        ("--cache-control", "none"),
    ):
        if option in options:
            command += [option, value]
        else:
            lacks.append(f"it has no {option}")
    if capture == CUDA:
        command += ["--profile-from-start", "off"]
    elif capture == NVTX:
        command += ["--nvtx", "--nvtx-include", f"{DOMAIN}@{CAPTURE_RANGE}"]
    command += _names(options, wanted)
    if wanted is not None:
        skip = ["--launch-skip", str(wanted.skip)] if wanted.skip else []
        command += [*skip, "--launch-count", str(wanted.launches)]
    command += ["--metrics", ",".join(METRICS), "--export", str(output)]
    return [*command, *program], lacks


NOT_KNOWN_YET = "KERNELS_OF_THE_FIRST_RUN"


def _names(options: Collection[str], wanted: Counting | None) -> list[str]:
    functions = (NOT_KNOWN_YET,) if wanted is None else wanted.functions
    pattern = f"^({'|'.join(map(re.escape, functions))})$"
    if "--kernel-name" in options:
        return ["--kernel-name", f"regex:{pattern}"]
    if "--kernel-regex" in options:  # until 2020.3
        return ["--kernel-regex", pattern]
    raise ToolError(
        "This ncu has neither --kernel-name nor --kernel-regex: it would count every kernel, and "
        "a collective that is replayed may hang.",
        "Use Nsight Compute 2020.3 or newer.",
    )


def print_command(ncu: Path, report: Path) -> list[str]:
    """Return the command that prints a report as the CSV that kernelscope reads."""
    return [str(ncu), "--import", str(report), "--csv", "--page", "raw"]
