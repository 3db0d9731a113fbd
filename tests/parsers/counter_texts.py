"""Texts as ncu and nvprof print them, from a few values: any locale, any chatter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

NCU = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC",
)  # fmt: skip
LONG = (*NCU, "Section Name", "Metric Name", "Metric Unit", "Metric Value")
SUMMARY = (
    "Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device",
    "CC", "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum",
    "Average",
)  # fmt: skip

CHATTER = (
    "step 1, loss 0.5\n==PROF== Connected to process 7 (/usr/bin/python3)\n"
    '==PROF== Profiling "gemm" - 0: 0%....50%....100% - 3 passes\n'
)


def quoted(cells: Sequence[Any]) -> str:
    return ",".join('"' + str(cell).replace('"', '""') + '"' for cell in cells)


def about(number: int, kernel: str = "gemm", grid: str = "(4, 2, 1)") -> tuple[Any, ...]:
    return (number, 7, "python", "127.0.0.1", kernel, 1, 13, "(256, 1, 1)", grid, 0, "8.0")


def details(rows: Sequence[Sequence[Any]], header: Sequence[str] = LONG) -> str:
    """A text of ``--page details``: (execution, metric, unit, value), or with a kernel first."""
    lines = [quoted(header)]
    for number, metric, unit, value, *kernel in rows:
        shown = (*about(number, *kernel), "Command line profiler metrics", metric, unit, value)
        lines.append(quoted(shown))
    return "\n".join(lines) + "\n"


def raw(metrics: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> str:
    """A text of ``--page raw``: (metric, unit) of each column, and a row per execution."""
    lines = [
        quoted([*NCU, *(name for name, _ in metrics)]),
        quoted([*[""] * len(NCU), *(unit for _, unit in metrics)]),
        *(quoted([*about(number), *row]) for number, row in enumerate(rows)),
    ]
    return "\n".join(lines) + "\n"


def nvprof_summary(rows: Sequence[Sequence[Any]], noun: str = "Metric") -> str:
    """A text of ``nvprof --csv --metrics``: (kernel, invocations, metric, least, most, mean)."""
    header = ["Device", "Kernel", "Invocations", f"{noun} Name"]
    header += ["Metric Description"] if noun == "Metric" else []
    header += ["Min", "Max", "Avg"] + (["Total"] if noun == "Event" else [])
    lines = [f"==31== {noun} result:", quoted(header)]
    for kernel, count, metric, *values in rows:
        cells = [f'"Tesla V100 (1)","{kernel}",{count},"{metric}"']
        cells += ['"What it is"'] if noun == "Metric" else []
        words = [
            f'"{v}"' if not str(v).replace(".", "").isdigit() and v else str(v) for v in values
        ]
        lines.append(",".join([*cells, *words]))
    return "\n".join(lines) + "\n"


def written(folder: Path, text: str, name: str = "counters.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path
