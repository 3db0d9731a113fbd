"""What a trace file holds, before any analysis: the answer of ``kernelscope info``."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.report.document import SCHEMA_VERSION, Row, capture, records
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph, shorten
from kernelscope.report.text import printed, source
from kernelscope.report.text_trust import not_recorded
from kernelscope.report.words import table_in_words
from kernelscope.trace import Table, Trace, is_missing

_ACTIVE = ("kernels", "copies", "api_calls", "ranges")
"""A process is shown if it has a row in one of these: a capture may list all of a machine's."""


_FOR_MORE = {
    "os_calls": "Nsight Systems records them: nsys profile --trace=cuda,nvtx,osrt",
    "on_core": "Nsight Systems records it: nsys profile --cpuctxsw=process-tree",
    "event_records": "exports of Nsight Systems 2022 and newer hold them",
    "counters": "Nsight Compute, or nvprof --metrics on GPUs before Ampere, in a run of its own",
    "gpu_samples": "Nsight Systems records them: nsys profile --gpu-metrics-devices=all",
}
"""Tables that the parser does not miss, where this kind of file has none → what holds them."""


def about(trace: Trace) -> Row:
    """Return what `trace` holds as dictionaries, lists, numbers, texts and None."""
    processes = _processes(trace)
    return {
        "schema_version": SCHEMA_VERSION,
        "capture": capture(trace.capture),
        "warnings": list(trace.capture.warnings),
        "devices": records(trace.devices),
        "processes": processes,
        "other_processes": len(
            set(trace.processes.values("process_id")) - {row["process_id"] for row in processes}
        ),
        "tables": [
            {"table": name, "recorded": trace.recorded(name), "rows": len(table)}
            for name, table in trace.tables.items()
        ],
        "read_paths": dict(trace.capture.read_paths),
    }


def render(trace: Trace, page: Page, *, color: bool = False, unicode: bool = True) -> str:
    """Return what `trace` holds as text for a terminal."""
    facts = about(trace)
    version = trace.capture.schema or "not recorded"
    lines = [
        Text.assemble(("kernelscope", "bold"), "  ", shorten(trace.capture.file, page.width - 13)),
        *paragraph(page, f"{source(trace.capture)}; export schema {version}"),
        *_machine(trace, page),
        *_gpus(facts["devices"], page),
        *_process_list(facts, page),
        *_table_list(facts, trace, page),
        *_lacking(trace, page),
        *heading(page, "How the profiler's tables were read"),
        *_paths(facts["read_paths"], page),
    ]
    return printed(lines, page.width, color=color, unicode=unicode)


def _machine(trace: Trace, page: Page) -> list[Text]:
    """Say what concerns the whole capture: its processor cores, and whether it ran as it would."""
    cores, serialised = trace.capture.cpu_cores, trace.capture.serialised
    lines = [] if cores is None else paragraph(page, units.quantity(cores, "processor core"))
    if serialised is not None:
        said = f"{serialised[0].upper()}{serialised[1:]}."
        lines += paragraph(page, said, mark="! ", style="yellow")
    return lines


def _processes(trace: Trace) -> list[Row]:
    names = dict(
        zip(trace.processes.values("process_id"), trace.processes.values("name"), strict=True)
    )
    counts = {table: _counts(trace.tables[table]) for table in _ACTIVE}
    active = sorted({process for each in counts.values() for process in each})
    threads = _threads(trace.api_calls)
    return [
        {
            "process_id": process,
            "name": names.get(process),
            "threads_that_call_cuda": threads.get(process, 0),
            **{table: counts[table].get(process, 0) for table in _ACTIVE},
        }
        for process in active
    ]


def _counts(table: Table) -> dict[int, int]:
    """Return how many rows each process has."""
    processes = table["process_id"]
    found, counts = np.unique(processes[~is_missing(processes)], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _threads(calls: Table) -> dict[int, int]:
    """Return how many threads of each process made a CUDA call."""
    processes, threads = calls["process_id"], calls["thread_id"]
    known = ~(is_missing(processes) | is_missing(threads))
    pairs = np.unique(np.stack([processes[known], threads[known]]), axis=1)
    found, counts = np.unique(pairs[0], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _gpus(devices: list[Row], page: Page) -> list[Text]:
    lines = heading(page, "GPUs")
    if not devices:
        return [*lines, *paragraph(page, "No GPU is described in this capture.")]
    for row in devices:
        ordinal = "not seen by CUDA" if row["device_id"] is None else f"CUDA {row['device_id']}"
        owner = "" if row["process_id"] is None else f", process {row['process_id']}"
        title = f"{row['name'] or 'unnamed GPU'} ({ordinal}{owner})"
        facts = ", ".join(_specs(row))
        lines += paragraph(page, f"{title}: {facts}" if facts else title)
    return lines


def _specs(row: Row) -> list[str]:
    """Return what is recorded of a GPU; what is not is left out."""
    bandwidth = row["memory_bytes_per_s"]
    specs = [
        (row["chip"], row["chip"]),
        (row["compute_major"], f"compute {row['compute_major']}.{row['compute_minor']}"),
        (row["sm_count"], f"{row['sm_count']} SMs"),
        (row["clock_hz"], units.frequency(row["clock_hz"])),
        (row["memory_bytes"], units.size(row["memory_bytes"])),
        (bandwidth, units.rate(bandwidth)),
        (row["l2_bytes"], f"{units.size(row['l2_bytes'])} L2"),
        (row["bus"], f"at {row['bus']}"),
    ]
    return [text for value, text in specs if value]


def _process_list(facts: Row, page: Page) -> list[Text]:
    lines = heading(page, "Processes", "with CUDA activity or NVTX ranges")
    rows: list[Row] = facts["processes"]
    if rows:
        shown = rows[: page.shown(len(rows))]
        figures = [
            Figures("process", [str(row["process_id"]) for row in shown]),
            Figures("kernels", [units.count(row["kernels"]) for row in shown]),
            Figures("copies", [units.count(row["copies"]) for row in shown]),
            Figures("CUDA calls", [units.count(row["api_calls"]) for row in shown]),
            Figures("on threads", [units.count(row["threads_that_call_cuda"]) for row in shown], 2),
            Figures("ranges", [units.count(row["ranges"]) for row in shown], 1),
        ]
        lines += grid(page, figures, "name", [row["name"] or units.MISSING for row in shown])
        if len(shown) < len(rows):
            lines += paragraph(page, f"… {len(rows) - len(shown)} more", style="dim")
    else:
        lines += paragraph(page, "None.")
    others = facts["other_processes"]
    if others:
        seen = (
            "1 other process was" if others == 1 else f"{units.count(others)} other processes were"
        )
        lines += paragraph(page, f"{seen} seen, without any.", style="dim")
    return lines


def _table_list(facts: Row, trace: Trace, page: Page) -> list[Text]:
    rows: list[dict[str, Any]] = [row for row in facts["tables"] if row["recorded"] or row["rows"]]
    figures = [Figures("rows", [units.count(row["rows"]) for row in rows], style="bold")]
    return [
        *heading(page, "Recorded"),
        *grid(page, figures, "table", [_named(row["table"], trace) for row in rows]),
    ]


def _named(table: str, trace: Trace) -> str:
    """Return what people call a table; of counters, how many metrics they are."""
    words = table_in_words(table)
    if table != "counters":
        return words
    return f"{words}: {units.quantity(len(set(trace.counters.texts('metric'))), 'metric')}"


def _lacking(trace: Trace, page: Page) -> list[Text]:
    lines = not_recorded(trace.capture, page)
    known = {*trace.capture.recorded, *(each.table for each in trace.capture.not_recorded)}
    for table, remedy in _FOR_MORE.items():
        if table not in known and not (trace.recorded(table) or len(trace.tables[table])):
            lines += paragraph(page, f"not here: {table_in_words(table)} ({remedy})", mark="- ")
    for warning in trace.capture.warnings:
        lines += paragraph(page, warning, mark="! ", style="yellow")
    return [*heading(page, "Not recorded, and doubts"), *lines] if lines else []


def _paths(paths: dict[str, str], page: Page) -> list[Text]:
    if not paths:
        return paragraph(page, "The reader did not say.")
    by_path: dict[str, list[str]] = {}
    for table, path in paths.items():
        by_path.setdefault(path, []).append(table)
    lines: list[Text] = []
    for path, tables in by_path.items():
        lines += paragraph(page, f"{path}: {', '.join(tables)}")
    return lines
