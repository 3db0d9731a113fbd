"""Write a plan as the SQLite export of an Nsight Systems generation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.errors import OutputError, SelectionError, nearest
from kernelscope.oracle import (
    nsys_ddl,
    nsys_enums,
    nsys_events,
    nsys_graphs,
    nsys_info,
    nsys_samples,
)
from kernelscope.oracle.nsys_columns import Content, records
from kernelscope.oracle.nsys_ids import Strings
from kernelscope.oracle.plan import MISSING, Plan

CHUNK = 65_536
"""Rows handed to SQLite at once: they exist as Python objects only while they are written."""


def write(
    plan: Plan,
    path: str | Path,
    *,
    generation: str = "2025.5",
    lazy: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write `plan` as an SQLite export.

    Parameters
    ----------
    plan : Plan
        What happened.
    path : str or Path
        Where to write.
    generation : {"2020.5", "2022.4", "2025.5"}
        Whose schema, units and quirks.
    lazy : bool
        Leave out tables without rows, as exporters do by default.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    Path
        The file. The same arguments give the same rows in the same order.

    Raises
    ------
    OutputError
        If the file exists and may not be replaced, or cannot be written.
    SelectionError
        If there is no such generation, or it has no table for what happened.
    """
    target = Path(path)
    if generation not in nsys_ddl.TABLES:
        raise SelectionError(
            f"there is no export generation {generation!r}",
            nearest(generation, nsys_ddl.GENERATIONS),
        )
    if generation not in generations(plan):
        raise SelectionError(
            f"an export of {generation} cannot hold this plan's CUDA graphs or GPU samples",
            f"Generations that can: {', '.join(generations(plan))}.",
        )
    if target.exists():
        if not overwrite:
            raise OutputError(f"{target} exists", "Choose another name, or remove it first.")
        target.unlink()
    try:
        with closing(sqlite3.connect(target)) as database:
            _fill(database, plan, generation, lazy)
    except sqlite3.OperationalError as error:
        raise OutputError(f"{target} cannot be written: {error}") from error
    return target


def generations(plan: Plan) -> tuple[str, ...]:
    """Return the generations of exports that have a table for everything in `plan`."""
    graphs, samples = len(plan.graphs) or len(plan.graph_nodes), len(plan.samples)
    return tuple(
        each
        for each in nsys_ddl.GENERATIONS
        if (each in nsys_graphs.NODE_TABLES or not graphs)
        and (each in nsys_samples.GENERATIONS or not samples)
    )


def _fill(database: sqlite3.Connection, plan: Plan, generation: str, lazy: bool) -> None:
    # Nothing is lost if the machine dies half way: the file is made again from its plan.
    for pragma in ("page_size=4096", "journal_mode=off", "synchronous=off"):
        database.execute(f"pragma {pragma}")
    strings = Strings()
    contents = nsys_events.contents(plan, generation, strings) | {
        table: (records(rows),)
        for table, rows in nsys_info.tables(plan, generation, strings).items()
    }
    specs = nsys_ddl.TABLES[generation]
    for table, columns in specs.items():
        if not lazy or table == "StringIds" or any(part.rows for part in contents.get(table, ())):
            database.execute(nsys_ddl.create(table, columns, generation))
    for table, columns in specs.items():
        for part in contents.get(table, ()):
            _insert(database, table, columns, part)
    for table, rows in nsys_enums.ENUMS[generation].items():
        database.execute(nsys_ddl.create(table, "id# name$ label$", generation))
        database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(strings.texts))
    database.commit()


def _insert(database: sqlite3.Connection, table: str, columns: str, content: Content) -> None:
    if not content.rows:
        return
    known = nsys_ddl.fields(columns)
    lacking = {f.name for f in known if f.required} - set(content.columns)
    unknown = set(content.columns) - {f.name for f in known}
    if lacking or unknown:
        raise AssertionError(f"{table}: lacks {sorted(lacking)}, does not know {sorted(unknown)}")
    # Values that never change stand in the statement: SQLite binds only what varies.
    marks, varying = [], []
    for source in content.columns.values():
        marks.append("?" if callable(source) else _quoted(source))
        if callable(source):
            varying.append(source)
    statement = f"INSERT INTO {table} ({', '.join(content.columns)}) VALUES ({', '.join(marks)})"
    for begin in range(0, content.rows, CHUNK):
        part = slice(begin, min(begin + CHUNK, content.rows))
        rows: Iterator[tuple[Any, ...]] = zip(
            *(_values(source(part)) for source in varying), strict=True
        )
        if not varying:
            rows = iter([()] * (part.stop - part.start))
        database.executemany(statement, rows)


def _quoted(value: int | str | None) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(int(value))


def _values(array: npt.NDArray[Any]) -> list[Any]:
    values: list[Any] = array.tolist()
    if array.dtype == np.int64 and bool((array == MISSING).any()):
        return [None if value == MISSING else value for value in values]
    return values
