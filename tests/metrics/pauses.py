"""Traces with one pause that matters, in µs, and what is said of it."""

from __future__ import annotations

from typing import Any

from kernelscope import schema
from kernelscope.metrics.idle import (
    explain,
    idle_pieces,
)
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics import scenes

US = 1000
MS = 1000 * US


def pieces(trace: Trace, window: Window | None = None) -> list[tuple[int, int, str, str]]:
    """(start, end, cause, detail) of a trace of one device, in µs."""
    table = idle_pieces(explain(trace, window), window)
    return [
        (r["start_ns"] / US, r["end_ns"] / US, r["cause"], r["detail"]) for r in table.records()
    ]


def calls(*rows: tuple[float, float, str, int | None], **common: Any) -> Table:
    """Calls ``(start, end, name, correlation id)``, in µs."""
    return build.joined(
        *(
            build.api_calls((round(s * US), round(e * US), name), correlation_id=i, **common)
            for s, e, name, i in rows
        )
    )


def kernels(*rows: tuple[float, float, int | None], **common: Any) -> Table:
    """Kernels ``(start, end, correlation id)``, in µs."""
    return build.joined(
        *(
            build.kernels((round(s * US), round(e * US)), correlation_id=i, **common)
            for s, e, i in rows
        )
    )


def on_thread(kind: Any, *rows: tuple[float, float, str], **common: Any) -> Table:
    """Rows ``(start, end, name)`` of process 1, thread 1, in µs."""
    base = {"process_id": 1, "thread_id": 1, **common}
    return build.table(
        kind,
        [
            {**base, "start_ns": round(s * US), "end_ns": round(e * US), "name": name}
            for s, e, name in rows
        ],
    )


def on_core(*rows: tuple[float, float], **common: Any) -> Table:
    base = {"process_id": 1, "thread_id": 1, **common}
    return build.table(
        schema.ON_CORE,
        [{**base, "start_ns": round(s * US), "end_ns": round(e * US)} for s, e in rows],
    )


def ranges(*rows: tuple[float, float, str], **common: Any) -> Table:
    return scenes.pushed(*((round(s * US), round(e * US), name) for s, e, name in rows), **common)


LAUNCH = "cudaLaunchKernel"


def between(first: Table, second: Table, at: float = 1000, **more: Table) -> Trace:
    """A kernel from 10 to 20 µs, launched at 0, and one that begins at `at`, launched as said."""
    return build.trace(
        kernels=kernels((10, 20, 1), (at, at + 10, 2)),
        api_calls=build.joined(first, second),
        **more,
    )


FIRST = calls((0, 2, LAUNCH, 1))
EDGE = (0, 10, "before_first", "")
