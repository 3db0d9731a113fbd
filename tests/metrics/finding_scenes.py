"""A host, a GPU and what each does in turn: programs whose cure can be tried, not only reckoned.

Times are in ns. A program is a list of steps; :func:`run` lets one thread do them in order, with
one stream that works off its launches, and returns the trace. Mending a program is leaving steps
out, or making them short, and running it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from kernelscope import schema
from kernelscope.metrics import analysis_parts
from kernelscope.metrics.analysis import analyze
from kernelscope.metrics.findings import findings
from kernelscope.metrics.savable import Seen
from kernelscope.trace import Table, Trace
from tests import build

US = 1000
MS = 1000 * US
LATENCY = 4 * US
"""From the end of a launch call to the start of a kernel, at the least."""


@dataclass(frozen=True)
class Step:
    """One thing that the host does, for `length` ns, unless what it does says how long."""

    what: str
    length: int = 0
    work: int = 0


def launch(work: int, call: int = 5 * US) -> Step:
    """Launch a kernel that runs for `work`."""
    return Step("launch", call, work)


def code(length: int) -> Step:
    return Step("code", length)


def load(length: int) -> Step:
    return Step("load", length)


def alloc(length: int) -> Step:
    return Step("alloc", length)


def module(length: int) -> Step:
    return Step("module", length)


SYNC = Step("sync")


def copy(work: int) -> Step:
    """Copy from pageable memory, and wait for it."""
    return Step("copy", 0, work)


NAMES = {
    "launch": "cudaLaunchKernel", "sync": "cudaDeviceSynchronize", "alloc": "cudaMalloc",
    "module": "cuModuleLoadData", "copy": "cudaMemcpyAsync", "pinned": "cudaMemcpyAsync",
}  # fmt: skip


class Machine:
    """A host thread and a GPU; the rows that a profiler would have written."""

    def __init__(self) -> None:
        self.now = self.free = 0
        self.rows: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("kernels", "copies", "api_calls", "ranges")
        }

    def do(self, step: Step, number: int) -> None:
        begin, self.now = self.now, self.now + step.length
        if step.what == "sync":
            self.now = max(self.now, self.free) + US
        elif step.work:
            start = max(self.free, self.now + LATENCY)
            self.free = start + step.work
            table, texts = "kernels", {"name": "gemm"}
            if step.what in ("copy", "pinned"):
                memory = "pageable" if step.what == "copy" else "pinned"
                table, texts = "copies", {"kind": "HtoD", "src_memory": memory}
            if step.what == "copy":
                self.now = self.free + US
            self.add(table, start, self.free, number, device_id=0, stream_id=7, **texts)
        if step.what in NAMES:
            texts = {"name": NAMES[step.what], "kind": "runtime"}
            self.add("api_calls", begin, self.now, number, thread_id=1, **texts)
        elif step.what in ("load", "range"):
            # No two names alike, or they would be taken for iterations
            texts = {"name": f"load batch {'x' * number}", "domain": "", "style": "push_pop"}
            self.add("ranges", begin, self.now, None, thread_id=1, closed=True, **texts)

    def add(self, table: str, start: int, end: int, number: int | None, **more: Any) -> None:
        row = {"process_id": 1, "start_ns": start, "end_ns": end, "correlation_id": number}
        self.rows[table].append({**row, **more})


def run(program: Sequence[Step]) -> Trace:
    """Run a program and return its trace."""
    machine = Machine()
    for number, step in enumerate(program):
        machine.do(step, number)
    tables = {
        name: build.table(getattr(schema, name.upper()), rows)
        for name, rows in machine.rows.items()
    }
    return build.trace(**tables)


def finish(program: Sequence[Step]) -> int:
    """Run a program and return when the GPU is done."""
    machine = Machine()
    for number, step in enumerate(program):
        machine.do(step, number)
    return machine.free


def found(trace: Trace, **options: Any) -> dict[str, dict[str, Any]]:
    """The findings of a trace by their code."""
    return {row["code"]: row for row in analyze(trace, **options).findings.records()}


def seen_of(trace: Trace, **options: Any) -> Seen:
    """What the rules of an analysis look at."""
    made: list[Seen] = []

    def keep(seen: Seen) -> Table:
        made.append(seen)
        return findings(seen)

    with patch.object(analysis_parts, "findings", keep):
        analyze(trace, **options)
    return made[0]
