"""The tables that a query can name: those of the trace, those of an analysis, and their context.

Canonical tables keep their names. Several result tables are called the same (``kernels`` is both
every execution and a row per name), so every result table is called ``result_…``: no name ever
means two things, and a result table that is added later cannot take a canonical table's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from kernelscope import schema
from kernelscope.metrics.analysis import TABLES, Analysis, analyze
from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.drill_down import DRILL_DOWN, Asked
from kernelscope.metrics.launches import launch_rows
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import Window, whole
from kernelscope.report.printable import printable
from kernelscope.report.sql_context import (
    CAPTURE,
    CONTEXT,
    KERNEL_LAUNCHES,
    NOT_RECORDED,
    VIEWS,
    WINDOW,
)
from kernelscope.schema import TableSchema
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, missing_value, widened

RESULT_PREFIX = "result_"

Kind = Literal["trace", "result", "context"]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that a query can name.

    Attributes
    ----------
    name : str
        As SQL calls it.
    kind : {"trace", "result", "context"}
        Canonical, of an analysis, or what both rest on.
    schema : TableSchema
        Its columns; in SQL their dots are underscores (:func:`column_name`).
    definition : str
        The SQL of a view; empty for a table, which is filled in.
    """

    name: str
    kind: Kind
    schema: TableSchema
    definition: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names in SQL, in order."""
        return tuple(column_name(name) for name in self.schema.names)


def column_name(name: str) -> str:
    """Return a column's name in SQL, where a dot would need quoting: ``quantiles_ns_p5``."""
    return name.replace(".", "_")


@cache
def relations() -> Mapping[str, Relation]:
    """Return every table that a query can name, by its name, in the order of a listing."""
    made = [
        *(Relation(each.name, "trace", each) for each in schema.CANONICAL),
        *(Relation(each.name, "context", each, VIEWS.get(each.name, "")) for each in CONTEXT),
        *(Relation(f"{RESULT_PREFIX}{each.name}", "result", each) for each in TABLES),
        *(
            Relation(f"{RESULT_PREFIX}{each.name}", "result", each)
            for each, _ in DRILL_DOWN.values()
        ),
    ]
    return {each.name: each for each in made}


@dataclass(frozen=True, slots=True)
class Source:
    """What a query asks: a trace, and its analysis, which is made when it is first needed.

    Attributes
    ----------
    trace : Trace
        Whose canonical tables they are.
    analysis, window : callable
        → the analysis, and the window that it speaks of.
    everything : Trace, optional
        All processes and devices, where only some were chosen.
    patterns : tuple of str
        The user's patterns of communication kernels.
    """

    trace: Trace
    analysis: Callable[[], Analysis]
    window: Callable[[], Window]
    everything: Trace | None = None
    patterns: tuple[str, ...] = ()

    @property
    def asked(self) -> Asked:
        """The same for tables that no analysis holds."""
        return Asked(self.everything or self.trace, self.trace, self.window(), self.patterns)


def source_of(trace: Trace, **choice: Any) -> Source:
    """Return what a query about `trace` asks.

    Parameters
    ----------
    trace : Trace
        The whole trace.
    **choice
        As :func:`kernelscope.analyze` takes it. Processes and devices leave rows of the canonical
        tables out; a window does not: it is the table ``window``.
    """
    chosen = select(trace, choice.get("processes", ()), choice.get("devices", ()))
    made = cache(lambda: analyze(trace, **choice))
    apart = any(choice.get(name) is not None for name in ("between", "only", "within"))
    patterns = tuple(choice.get("communication", ()))
    window = cache(lambda: made().window if apart else whole(chosen))
    return Source(chosen, made, window, trace, patterns)


def contents(name: str, source: Source) -> Table:
    """Return the rows of the relation called `name`, one of :func:`relations`."""
    relation, trace = relations()[name], source.trace
    if relation.kind == "trace":
        return trace.tables[name]
    if relation.kind == "result":
        if relation.schema.name in DRILL_DOWN:
            return DRILL_DOWN[relation.schema.name][1](source.asked)
        return source.analysis().tables[relation.schema.name]
    if name == KERNEL_LAUNCHES.name:
        return kernel_launches(trace)
    if name == WINDOW.name:
        return _window(source.window())
    return _capture(trace) if name == CAPTURE.name else _not_recorded(trace)


def kernel_launches(trace: Trace) -> Table:
    """Which call launched each kernel execution?

    Returns
    -------
    Table
        Under :data:`KERNEL_LAUNCHES`, a row per execution; what is of the call is missing where
        it was not recorded.
    """
    kernels, calls = trace.kernels, calls_without_wrappers(trace.api_calls)
    rows = launch_rows(kernels, calls)
    columns: dict[str, ColumnData] = {
        name: kernels.columns[name]
        for name in KERNEL_LAUNCHES.names
        if not name.startswith("call_")
    }
    if len(calls):
        names = _picked(calls["name"], rows)
        names[rows < 0] = -1
        columns["call_name"] = Categorical(names, calls.categories("name"))
        for name in ("start_ns", "end_ns", "thread_id"):
            picked = _picked(widened(calls[name]), rows)
            picked[rows < 0] = missing_value(picked.dtype)
            columns[f"call_{name}"] = picked
    return Table.make(KERNEL_LAUNCHES, columns)


def _picked(values: Array, rows: Array) -> Array:
    return np.asarray(values[np.maximum(rows, 0)])


def _window(window: Window) -> Table:
    return Table.make(
        WINDOW,
        {
            "start_ns": np.array([window.start_ns], dtype=np.int64),
            "end_ns": np.array([window.end_ns], dtype=np.int64),
            "duration_ns": np.array([window.duration_ns], dtype=np.int64),
            "chosen_by": Categorical.of([window.chosen_by]),
        },
    )


def _capture(trace: Trace) -> Table:
    about = trace.capture
    # SQLite's text is UTF-8, a file's name need not be.
    values = {"file": printable(about.file)} | {
        name: getattr(about, name) for name in CAPTURE.names if name != "file"
    }
    return Table.make(CAPTURE, {name: Categorical.of([value]) for name, value in values.items()})


def _not_recorded(trace: Trace) -> Table:
    lacking = trace.capture.not_recorded
    return Table.make(
        NOT_RECORDED,
        {
            "table": Categorical.of([each.table for each in lacking]),
            "how_to_record": Categorical.of([each.how_to_record or None for each in lacking]),
        },
    )
