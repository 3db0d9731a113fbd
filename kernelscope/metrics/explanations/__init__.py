"""How every number comes about: formula, denominator, source, inputs, pitfalls.

A new metric adds an :class:`Explanation` to the file of its topic, or a file to :data:`TOPICS`.
Columns without one are explained by what the schema says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from kernelscope.errors import SelectionError, nearest
from kernelscope.metrics.analysis import TABLES
from kernelscope.metrics.explanations import (
    context_entries,
    device_entries,
    event_entries,
    host_entries,
    idle_entries,
    iteration_entries,
    launch_entries,
    occupancy_entries,
    range_entries,
    sample_entries,
    transfer_entries,
    utilization_entries,
    work_entries,
)
from kernelscope.metrics.explanations.context_entries import FACT
from kernelscope.metrics.explanations.entry import Explanation, Numbers, Worked, names_in, worked
from kernelscope.metrics.explanations.planned_entries import PLANNED
from kernelscope.metrics.explanations.queries import events_of
from kernelscope.schema import Column, TableSchema

__all__ = [
    "FACT",
    "PLANNED",
    "TOPICS",
    "Explanation",
    "Numbers",
    "Topic",
    "Worked",
    "groups",
    "inside",
    "names_in",
    "resolve",
    "topics",
    "worked",
]

TOPICS: Mapping[str, tuple[Explanation, ...]] = {
    "GPU time": device_entries.ENTRIES,
    "Kernels, calls, copies": event_entries.ENTRIES,
    "Occupancy and peaks": occupancy_entries.ENTRIES,
    "CPU and GPU": host_entries.ENTRIES,
    "Launches": launch_entries.ENTRIES,
    "Idle time and findings": idle_entries.ENTRIES,
    "Copies and communication": transfer_entries.ENTRIES,
    "Sampled GPU metrics": sample_entries.ENTRIES,
    "Training iterations": iteration_entries.ENTRIES,
    "NVTX ranges": range_entries.ENTRIES,
    "Counted work": work_entries.ENTRIES,
    "Utilization and bounds": utilization_entries.ENTRIES,
    "Context": context_entries.ENTRIES,
}
"""Group of the listing → its explanations; a new file of entries is a line here."""

_IN_JSON: tuple[tuple[str, str], ...] = (
    ("kernels.by_device.", "kernels_by_device."),
    ("devices.device_ids.", "device_ordinals."),
    ("devices.peaks.", "peaks."),
    ("iterations.rows.", "iterations."),
    ("unattributed.reasons.", "unattributed."),
    ("unattributed.by_domain.", "unattributed."),
    ("launches.api.", "launches."),
    ("launches.by_kernel.", "launches_by_kernel."),
    ("launches.queue_depth.", "queue_depth."),
    ("launches.stretches.", "launch_stretches."),
)
"""Where the JSON nests a table: its path there → the table's name."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One number, and what explains it.

    Attributes
    ----------
    key : str
        ``devices.kernel_ns``, ``gpu_utilization``, …
    explanation : Explanation
        Written for it, or for a column of the same definition, or made of the schema.
    written : bool
        Whether somebody wrote it.
    table : TableSchema or None
        The result table in whose rows it stands, or of whose rows it is made.
    column : Column or None
        The column that it is; None where it is made of columns, or stands in no table.
    """

    key: str
    explanation: Explanation
    written: bool
    table: TableSchema | None
    column: Column | None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The canonical columns that it rests on."""
        events = events_of(self.table.name) if self.table else ""
        return tuple(each.format(events=events) for each in self.explanation.inputs)


@cache
def topics() -> Mapping[str, Topic]:
    """Return every number that can be explained, by its key, in the order of the listing."""
    found: dict[str, Topic] = {}
    for entry in _entries():
        for key in (entry.key, *entry.also):
            # A figure with a function of its own is one value, though a table may have its name.
            table, column = (None, None) if callable(entry.numbers) else place(key)
            found[key] = Topic(key, entry, True, table or _table(entry.of), column)
    for schema in TABLES:
        for column in schema.columns:
            key = f"{schema.name}.{column.name}"
            found.setdefault(key, Topic(key, _of_schema(schema, column), False, schema, column))
    return found


def _entries() -> Iterator[Explanation]:
    for entries in TOPICS.values():
        yield from entries
    written = {key for entries in TOPICS.values() for e in entries for key in (e.key, *e.also)}
    for entry in PLANNED:
        if entry.key not in written and place(entry.key)[1] is not None:
            there = tuple(key for key in entry.also if place(key)[1] is not None)
            yield replace(entry, also=there)


def inside(name: str) -> list[Topic]:
    """Return the numbers inside a table, a group of columns, or a list of the JSON, in order.

    Parameters
    ----------
    name : str
        ``devices``, ``devices.partition``, ``launches.by_kernel``. That of a number, and one that
        does not exist, hold none.
    """
    for prefix in (*_nested(f"{name}."), f"{name}."):
        found = [
            topic
            for key, topic in topics().items()
            if key.startswith(prefix) and not key.removeprefix(prefix).isdigit()
        ]
        if found:
            return found
    return []


def groups() -> Iterator[tuple[str, list[Topic]]]:
    """Yield the headings of the listing, each with its topics."""
    known = topics()
    listed: set[str] = set()
    for title, entries in TOPICS.items():
        keys = [key for entry in entries for key in (entry.key, *entry.also)]
        listed.update(keys)
        yield title, [known[entry.key] for entry in entries]
    rest = [topic for key, topic in known.items() if key not in listed]
    yield "More columns", rest


def place(key: str) -> tuple[TableSchema | None, Column | None]:
    """Return the table and column that a key names; None and None where it names none."""
    name, _, column = key.partition(".")
    table = _table(name)
    if table is None or column not in table.names:
        return None, None
    return table, table.column(column)


def _table(name: str) -> TableSchema | None:
    return next((each for each in TABLES if each.name == name), None)


def _of_schema(table: TableSchema, column: Column) -> Explanation:
    return Explanation(
        key=f"{table.name}.{column.name}",
        question=table.meaning,
        formula=column.meaning,
        unit=column.unit,
    )


def resolve(name: str) -> Topic:
    """Return what explains `name`.

    Parameters
    ----------
    name : str
        A key (``devices.kernel_ns``), its place in the JSON (``kernels.by_device.total_ns``), its
        name in SQL (``result_kernels.quantiles_ns_p5``), or a column's name where only one
        definition goes by it (``sm_fill``).

    Raises
    ------
    SelectionError
        If there is none, or several; the hint names the nearest, or them.
    """
    known = topics()
    for spelling in _spellings(name):
        if spelling in known:
            return known[spelling]
    found = [topic for key, topic in known.items() if _ends(key, name)]
    found = [topic for topic in found if topic.written] or found
    distinct = list({id(topic.explanation): topic for topic in reversed(found)}.values())[::-1]
    if len(distinct) == 1:
        return distinct[0]
    if distinct:
        keys = ", ".join(topic.key for topic in distinct)
        raise SelectionError(f"Several numbers are called {name!r}.", f"Which one: {keys}.")
    raise SelectionError(f"There is no metric {name!r}.", nearest(name, _names(known)))


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from _nested(name)
    parent = name.rpartition(".")[0]
    if parent in topics() and topics()[parent].column is None:
        yield parent  # iterations.runner_up.score is a part of iterations.runner_up
    in_sql = name.removeprefix("result_")
    for key in topics():
        table, _, column = key.partition(".")
        if in_sql == f"{table}.{column.replace('.', '_')}":
            yield key
    yield from (f"{name}.0",)  # grid, a list in the JSON


def _nested(name: str) -> Iterator[str]:
    """Yield the key of what the JSON nests, with its table's own name."""
    for place_there, table in _IN_JSON:
        if name.startswith(place_there):
            yield table + name.removeprefix(place_there)


def _ends(key: str, name: str) -> bool:
    column = key.partition(".")[2]
    return key.endswith((f".{name}", f".{name}.0")) or column.replace(".", "_") == name != ""


def _names(known: Iterable[str]) -> list[str]:
    """Return keys, and the columns' names without their tables."""
    return [*known, *(key.partition(".")[2] for key in known if "." in key)]
