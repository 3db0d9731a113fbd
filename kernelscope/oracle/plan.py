"""The plan of a run: what happened, nanosecond by nanosecond, before any file exists.

A plan is frozen data. Each kind of event is described by a small frozen class of
:mod:`kernelscope.oracle.events` whose fields are the columns; a :class:`Plan` holds the events of
one kind as columns (:class:`Events`), so that five rows written by hand and ten million rows
computed with NumPy are the same thing. Writers turn a plan into a profiler's export, and
:mod:`kernelscope.oracle.answers` computes from the plan what an analysis of that export must find.

All times are integer nanoseconds on the trace's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from kernelscope.oracle.events import (
    Call,
    Copy,
    Event,
    EventRecord,
    Graph,
    GraphNode,
    Kernel,
    Memset,
    OsCall,
    Overhead,
    Range,
    Sample,
    Switch,
    Sync,
)
from kernelscope.oracle.gpus import A100, Gpu, distinct
from kernelscope.trace import Categorical

Column = npt.NDArray[Any] | Categorical
Row = TypeVar("Row")

MISSING = int(np.iinfo(np.int64).min)
"""Stands for *no value* in an integer column of a plan; written as NULL."""


def columns_of(kind: type[Any], rows: Sequence[Any]) -> dict[str, Column]:
    """Turn row objects into columns.

    Parameters
    ----------
    kind : type
        One of the event classes of this module.
    rows : sequence of that class
        The events.

    Returns
    -------
    dict of str to ndarray or Categorical
        One column per field; None becomes :data:`MISSING`, or code −1 in a text column.
    """
    columns: dict[str, Column] = {}
    for name, hint in get_type_hints(kind).items():
        values = [getattr(row, name) for row in rows]
        if str in (hint, *getattr(hint, "__args__", ())):
            columns[name] = Categorical.of(values)
        else:
            columns[name] = np.array(
                [MISSING if value is None else int(value) for value in values], dtype=np.int64
            )
    return columns


def plain(column: Column) -> list[Any]:
    """Return a column as plain Python values, None where missing."""
    if isinstance(column, Categorical):
        texts = (*column.categories, None)
        return [texts[code] for code in column.codes.tolist()]
    return [None if value == MISSING else value for value in column.tolist()]


TABLES: Mapping[str, type[Any]] = {
    "kernels": Kernel,
    "calls": Call,
    "copies": Copy,
    "memsets": Memset,
    "graphs": Graph,
    "graph_nodes": GraphNode,
    "syncs": Sync,
    "event_records": EventRecord,
    "ranges": Range,
    "overheads": Overhead,
    "switches": Switch,
    "os_calls": OsCall,
    "samples": Sample,
}
"""The event tables of a plan: attribute of :class:`Plan` and class of its rows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Events:
    """The events of one kind, as columns of equal length in the order of recording."""

    kind: type[Any]
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        first = next(iter(self.columns.values()))
        return len(first.codes) if isinstance(first, Categorical) else len(first)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return an integer column, or the codes of a text column."""
        column = self.columns[name]
        return column.codes if isinstance(column, Categorical) else column

    def texts(self, name: str) -> Categorical:
        """Return a text column."""
        column = self.columns[name]
        if not isinstance(column, Categorical):
            raise TypeError(f"{self.kind.__name__}.{name} is not a text column")
        return column

    def rows(self, kind: type[Row]) -> list[Row]:
        """Return the events as objects of `kind`, their class; for plans of moderate size."""
        if kind is not self.kind:
            raise TypeError(f"these events are {self.kind.__name__}, not {kind.__name__}")
        return [
            kind(*values)
            for values in zip(
                *(plain(self.columns[name]) for name in get_type_hints(kind)), strict=True
            )
        ]


def events_of(kind: type[Any], rows: Sequence[Any] = ()) -> Events:
    """Return row objects as :class:`Events`."""
    return Events(kind, columns_of(kind, rows))


@dataclass(frozen=True, slots=True)
class Process:
    """A recorded process."""

    id: int
    name: str = "python"


@dataclass(frozen=True, slots=True)
class Thread:
    """A recorded thread."""

    process: int
    id: int
    name: str = "python"


@dataclass(frozen=True, slots=True)
class Device:
    """What a process calls device `ordinal` is GPU number `gpu` of the plan."""

    process: int
    ordinal: int
    gpu: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """A whole run.

    Attributes
    ----------
    kernels, calls, copies, memsets, graphs, graph_nodes, syncs, event_records : Events
        What the device and the CUDA library did.
    ranges, overheads, switches, os_calls : Events
        What else happened on the host.
    samples : Events
        What the GPUs' own counters showed.
    processes, threads : tuple
        Who ran.
    gpus : tuple of Gpu
        The machine's GPUs, in the order of their CUDA ordinals without any restriction.
    devices : tuple of Device
        Which GPU each process's ordinals stand for.
    end : int
        When the recording ended, ns.
    iteration_family : str or None
        Names of ranges that mark iterations, digits folded to ``#``; None if there are none.
    facts : mapping
        What the plan knows of itself beyond its events, such as which iterations warm up.
    """

    kernels: Events
    calls: Events
    copies: Events
    memsets: Events
    graphs: Events
    graph_nodes: Events
    syncs: Events
    event_records: Events
    ranges: Events
    overheads: Events
    switches: Events
    os_calls: Events
    samples: Events
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    gpus: tuple[Gpu, ...]
    devices: tuple[Device, ...]
    end: int
    iteration_family: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, Events]:
        """The event tables by name."""
        return {name: getattr(self, name) for name in TABLES}


@dataclass(frozen=True, slots=True)
class Setup:
    """The machine under a plan, and what the plan says about itself.

    Attributes
    ----------
    gpus : tuple of Gpu
        The machine's GPUs; numbered in turn where their ids repeat.
    devices : tuple of Device, optional
        Which GPU each process's ordinals stand for; by default the GPU of that number.
    threads : tuple of Thread
        Names of threads; threads that occur in events without a name are added.
    iteration_family, facts
        See :class:`Plan`.
    """

    gpus: tuple[Gpu, ...] = (A100,)
    devices: tuple[Device, ...] | None = None
    threads: tuple[Thread, ...] = ()
    iteration_family: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Setup()
"""One A100, and nothing to say about it."""


def plan_of(events: Iterable[Event], setup: Setup = PLAIN) -> Plan:
    """Return the plan of events given as objects, in the order given."""
    rows = list(events)
    tables = {
        name: events_of(kind, [row for row in rows if type(row) is kind])
        for name, kind in TABLES.items()
    }
    return assemble(tables, setup)


def assemble(tables: Mapping[str, Events], setup: Setup = PLAIN) -> Plan:
    """Return the plan of event tables given as columns; absent tables are empty."""
    full = {name: tables.get(name) or events_of(kind) for name, kind in TABLES.items()}
    ordinals = _pairs(full, ("kernels", "copies", "memsets", "graphs"), "device")
    last = len(setup.gpus) - 1
    devices = setup.devices or tuple(Device(process, n, min(n, last)) for process, n in ordinals)
    hosts = ("calls", "graph_nodes", "ranges", "overheads", "switches", "os_calls")
    seen = _pairs(full, hosts, "thread")
    named = {(thread.process, thread.id) for thread in setup.threads}
    processes = sorted({process for process, _ in (*ordinals, *seen)})
    return Plan(
        **full,
        processes=tuple(Process(process) for process in processes),
        threads=(*setup.threads, *(Thread(*pair) for pair in seen if pair not in named)),
        gpus=distinct(setup.gpus),
        devices=devices,
        end=_last(full) + 1_000_000,
        iteration_family=setup.iteration_family,
        facts=setup.facts,
    )


def _pairs(
    tables: Mapping[str, Events], names: Sequence[str], second: str
) -> list[tuple[int, int]]:
    """Return the distinct (process, `second`) of several tables, sorted."""
    found: set[tuple[int, int]] = set()
    for events in (tables[name] for name in names):
        packed = np.unique((events["process"].astype(np.int64) << 32) | events[second])
        found.update((int(each) >> 32, int(each) & 0xFFFFFFFF) for each in packed)
    return sorted(found)


def _last(tables: Mapping[str, Events]) -> int:
    """Return the latest time in any table, 0 without events."""
    times = [
        int(events[name].max())
        for events in tables.values()
        for name in ("start", "end", "time")
        if name in events.columns and len(events)
    ]
    return max([0, *times])
