"""What is measured in a process of its own: ``python -m benchmarks.child JOB ARGUMENTS``.

A job does its imports first and its work then. It prints one line of JSON: what the work alone
took, stage by stage, and what came out, so that two ways to one number can be compared.
"""

# ruff: noqa: PLC0415 - a job pays for its own imports only

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
    "demangledName",
)  # fmt: skip
"""The eight columns that are read: times, identity and name of every execution."""

SUM = f"SELECT sum(end - start) FROM {TABLE}"
GROUP_BY = f"SELECT demangledName, count(*), sum(end - start) FROM {TABLE} GROUP BY demangledName"
SUMMARY = f"""\
SELECT value, count(*), sum(end - start), avg(end - start), min(end - start), max(end - start)
FROM {TABLE} JOIN StringIds ON StringIds.id = demangledName
GROUP BY demangledName ORDER BY 3 DESC"""

Stages = dict[str, dict[str, float]]


@contextlib.contextmanager
def timed(stages: Stages, name: str) -> Iterator[None]:
    """Add the CPU and wall seconds of the block to `stages`."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    stages[name] = {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
    }


def statement(path: str, sql: str, total: int) -> dict[str, Any]:
    """Run a statement with Python's ``sqlite3``; column `total` of its rows sums to the answer."""
    import sqlite3

    stages: Stages = {}
    with (
        timed(stages, "statement"),
        contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection,
    ):
        rows = connection.execute(sql).fetchall()
    return {"stages": stages, "kernel_ns": sum(row[total] or 0 for row in rows)}


def read(path: str) -> dict[str, Any]:
    """Read the eight columns as kernelscope's parsers do."""
    from kernelscope.parsers.sqlite import SqliteFile

    stages: Stages = {}
    with timed(stages, "read"):
        columns = SqliteFile.open(Path(path)).read(TABLE, COLUMNS)
    start, end = (getattr(columns.columns[name], "values") for name in ("start", "end"))  # noqa: B009
    return {
        "stages": stages,
        "kernel_ns": int(end.sum(dtype="int64") - start.sum(dtype="int64")),
        "how": columns.how,
    }


def pandas(path: str) -> dict[str, Any]:
    """Read the eight columns into a DataFrame, and group them."""
    import sqlite3

    import pandas as pd

    stages: Stages = {}
    with timed(stages, "read_sql"), contextlib.closing(sqlite3.connect(path)) as connection:
        frame = pd.read_sql(f"SELECT {', '.join(COLUMNS)} FROM {TABLE}", connection)
    with timed(stages, "groupby"):
        frame["duration"] = frame["end"] - frame["start"]
        groups = frame.groupby("demangledName")["duration"].agg(["count", "sum"])
    return {"stages": stages, "kernel_ns": int(groups["sum"].sum())}


def device_report(path: str) -> dict[str, Any]:
    """Read a trace, and write what its kernels, copies, calls and devices took as JSON.

    That is what `analyze` was when its cost was first bounded, before it knew of ranges,
    iterations, launches, idle causes and findings.
    """
    import os

    from kernelscope.cli.process import collect_rarely, keep_freed_memory

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does all three
    collect_rarely()
    keep_freed_memory()
    import kernelscope as ks
    from kernelscope.metrics import device_time
    from kernelscope.metrics.analysis import METRICS
    from kernelscope.metrics.device_gaps import gaps
    from kernelscope.metrics.device_streams import streams
    from kernelscope.metrics.health import health
    from kernelscope.metrics.window import whole
    from kernelscope.report import to_json
    from kernelscope.report.json_rows import json_rows
    from kernelscope.report.rows import ordered

    trace = ks.read(path)
    window = whole(trace)
    measured = device_time.measure(trace, window)
    tables = {name: metric(trace, window) for name, metric in METRICS.items()}
    tables["devices"] = device_time.devices(trace, window, measured=measured)
    tables["device_processes"] = device_time.device_processes(trace, window, measured=measured)
    tables["streams"] = streams(trace, window, identity=measured.identity)
    tables["checks"] = device_time.checks(measured)
    tables["health"] = health(trace)
    pauses = gaps(trace, window, measured=measured)
    text = to_json.render({name: json_rows(ordered(each)) for name, each in tables.items()})
    return {
        "stages": {},
        "kernel_ns": int(tables["kernels"]["total_ns"].sum()),
        "gaps": len(pauses),
        "characters": len(text),
    }


def help_modules() -> dict[str, Any]:
    """Print the help of the command line; say whether that imported NumPy."""
    from kernelscope.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        main(["--help"])
    return {"modules": len(sys.modules), "numpy": "numpy" in sys.modules}


def make(kind: str, kernels: str, generation: str, path: str) -> dict[str, Any]:
    """Write an export of `kind`."""
    from benchmarks.plans import PLANS
    from kernelscope import oracle

    run = PLANS[kind](int(kernels))
    oracle.write(run, path, generation=generation, overwrite=True)
    return {"rows": {name: len(events) for name, events in run.tables.items() if len(events)}}


def main(job: str, *arguments: str) -> None:
    """Do one job and print what it says."""
    jobs: dict[str, Callable[..., dict[str, Any]]] = {
        "sum": lambda path: statement(path, SUM, 0),
        "group-by": lambda path: statement(path, GROUP_BY, 2),
        "summary": lambda path: statement(path, SUMMARY, 2),
        "read": read,
        "device-report": device_report,
        "pandas": pandas,
        "help-modules": help_modules,
        "make": make,
    }
    print(json.dumps(jobs[job](*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
