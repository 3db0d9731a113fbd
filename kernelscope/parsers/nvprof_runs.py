"""Databases of nvprof that hold metrics, as counters: the trace's parser reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernelscope import schema
from kernelscope.errors import DamagedFileError, NotRecordedError
from kernelscope.parsers import nsys, nvprof
from kernelscope.parsers.counter_file import CounterFile
from kernelscope.parsers.counter_set import SHAPE, CounterSet, one_row
from kernelscope.parsers.nvprof_names import HOW_TO_RECORD
from kernelscope.parsers.sqlite import SqliteFile
from kernelscope.trace import Categorical, ColumnData, Table, Trace, widened

NAME = "nvprof database"
DESCRIPTION = "databases of nvprof and the Visual Profiler that hold metrics (.nvprof, .nvvp, .sql)"


def recognises(file: CounterFile) -> bool:
    """Return whether the file is an SQLite database; never raises."""
    return file.is_database


def parse(file: CounterFile) -> CounterSet:
    """Read the metric values of a database, and the executions that they are of.

    Raises
    ------
    NotRecordedError
        If it holds no counters: a timeline of nvprof, or a trace of Nsight Systems.
    TraceFileError
        If it is damaged, or no trace.
    """
    _refuse_nsys(file.path)
    from kernelscope.parsers import read  # noqa: PLC0415 - it may import us one day

    trace = read(file.path)
    if not len(trace.counters):
        raise NotRecordedError(
            f"{file.path} is a timeline of nvprof and holds no counters.",
            f"kernelscope analyze {file.path} reads it; counters need {HOW_TO_RECORD['counters']}.",
        )
    return of_trace(trace, str(file.path))


def _refuse_nsys(path: Path) -> None:
    import sqlite3  # noqa: PLC0415 - for its error

    try:
        database = SqliteFile.open(path)
    except (sqlite3.Error, DamagedFileError):
        return  # the trace's parser says it better
    if nsys.recognises(database) and not nvprof.recognises(database):
        raise NotRecordedError(
            f"{path} is a trace of Nsight Systems, which holds times and no counters of kernels.",
            f"kernelscope analyze {path} reads it; for counters run the program again under ncu: "
            "ncu --export REPORT.ncu-rep PROGRAM",
        )


def of_trace(trace: Trace, file: str) -> CounterSet:
    """Return the counters that a trace holds itself, and the executions that they are of."""
    rows, kernels = len(trace.counters), trace.kernels
    counters = Table.make(
        schema.COUNTERS,
        {
            **trace.counters.columns,
            "file": Categorical.constant(file, rows),
            "run": np.zeros(rows, dtype=np.int32),
        },
    )
    source = one_row(
        schema.COUNTER_SOURCES,
        {
            "run": 0,
            "file": file,
            "part": 0,
            "tool": "nvprof",
            "tool_version": trace.capture.profiler_version,
            "format": NAME,
            "started_at": trace.capture.started_at,
            "summarised": False,
            "executions": len(kernels),
            "metrics": len(set(trace.counters.texts("metric"))),
            "process_name": next(iter(trace.processes.texts("name")), None),
        },
    )
    return CounterSet(counters, _executions(trace), source, trace.capture.warnings)


def _executions(trace: Trace) -> Table:
    kernels = trace.kernels
    same = ("process_id", "device_id", "context_id", "stream_id", "correlation_id", *SHAPE)
    columns: dict[str, ColumnData] = {name: kernels[name] for name in same}
    about = {
        row["device_id"]: row for row in trace.devices.records() if row["device_id"] is not None
    }
    devices = [about.get(number, {}) for number in kernels.values("device_id")]
    missing = np.int64(np.iinfo(np.int64).min)
    for name in ("compute_major", "compute_minor"):
        numbers = [row.get(name) for row in devices]
        columns[name] = np.array([missing if n is None else n for n in numbers], dtype=np.int64)
    return Table.make(
        schema.COUNTED_EXECUTIONS,
        {
            **columns,
            "run": np.zeros(len(kernels), dtype=np.int32),
            "execution": np.arange(len(kernels), dtype=np.int64),
            "kernel_name": Categorical(kernels["name"], kernels.categories("name")),
            "executions": np.ones(len(kernels), dtype=np.int32),
            "duration_ns": (widened(kernels["end_ns"]) - widened(kernels["start_ns"])).astype(
                np.float64
            ),
            "device_name": Categorical.of([row.get("name") for row in devices]),
        },
    )
