"""What is run: kernelscope's work and its peers', one command each."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import COLUMNS


class NotHereError(Exception):
    """A workload cannot run on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A command whose cost is measured.

    Attributes
    ----------
    name : str
        In the data.
    title : str
        In the table.
    command : callable
        Path of the export → program and arguments.
    kinds : tuple of str
        The kinds of export it is run on; empty if it needs none.
    look : callable or None
        The JSON that it prints → what is worth keeping; None if it prints something else.
    """

    name: str
    title: str
    command: Callable[[str], list[str]]
    kinds: tuple[str, ...] = ("training",)
    look: Callable[[dict[str, Any]], dict[str, Any]] | None = dict


def python(*arguments: str) -> list[str]:
    """Return the command that runs this Python with `arguments`."""
    return [sys.executable, *arguments]


def child(job: str, *arguments: str) -> list[str]:
    """Return the command that runs a job of :mod:`benchmarks.child`."""
    return python("-m", "benchmarks.child", job, *arguments)


def kernelscope(*arguments: str) -> list[str]:
    """Return the command of kernelscope as users type it."""
    return [str(Path(sysconfig.get_path("scripts")) / "kernelscope"), *arguments]


def nsys(path: str) -> list[str]:
    """Return the command that has nsys summarise the kernels of `path`."""
    found = shutil.which("nsys")
    if found is None:
        raise NotHereError("nsys is not on PATH")
    return [found, "stats", "--report", "cuda_gpu_kern_sum", "--format", "csv", path]


EVERY = ("plain", "training", "operators")

WORKLOADS: tuple[Workload, ...] = (
    Workload("sqlite_sum", "SQLite: SELECT sum(end - start)", lambda p: child("sum", p)),
    Workload(
        "read_columns",
        f"kernelscope: read {len(COLUMNS)} columns",
        lambda p: child("read", p),
    ),
    Workload("pandas", "pandas: read_sql of the same, groupby", lambda p: child("pandas", p)),
    Workload(
        "sqlite_group_by",
        "SQLite: count, sum GROUP BY demangledName",
        lambda p: child("group-by", p),
        EVERY,
    ),
    Workload(
        "device_report",
        "kernelscope: kernels, copies, calls, devices",
        lambda p: child("device-report", p),
        EVERY,
    ),
    Workload(
        "analyze",
        "kernelscope analyze --format json",
        lambda p: kernelscope("analyze", "--format", "json", p),
        EVERY,
        lambda said: {"kernel_ns": sum(row["total_ns"] for row in said["kernels"])},
    ),
    Workload(
        "sqlite_summary",
        "SQLite: the same by text, and avg, min, max",
        lambda p: child("summary", p),
    ),
    Workload("nsys_stats", "nsys stats: cuda_gpu_kern_sum", nsys, look=None),
)
"""In the order of a round: what is compared runs one after the other."""

START_UPS: tuple[Workload, ...] = (
    Workload("python", "python -c pass", lambda _: python("-c", "pass"), (), None),
    Workload("help", "kernelscope --help", lambda _: kernelscope("--help"), (), None),
    Workload(
        "sqlite3", "python: import sqlite3", lambda _: python("-c", "import sqlite3"), (), None
    ),
    Workload("numpy", "python: import numpy", lambda _: python("-c", "import numpy"), (), None),
)  # fmt: skip
"""What everything above pays before it begins, and what the help costs."""
