"""An open nvprof database: its strings, its process, and the objects that its events are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.convert import coded, integers, texts_by_id
from kernelscope.parsers.nsys_events import interval, present
from kernelscope.parsers.nsys_export import first_present
from kernelscope.parsers.nsys_names import EVENT_COLUMNS
from kernelscope.parsers.sqlite import Read, SqliteFile
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    distinct,
    is_missing,
    missing_value,
)

EVENT = ("start", "end", "deviceId", *EVENT_COLUMNS.values())
"""What :func:`device_event` wants to be read."""

_ABSENT = missing_value(np.dtype(np.int64))


@dataclass(frozen=True, slots=True)
class Database:
    """What every table of a database needs to be understood.

    Attributes
    ----------
    file : SqliteFile
        The open database.
    strings : dict of int to str
        ``StringTable``, without the strings that are not there.
    processes : tuple of int
        The processes that calls, markers and names are of; nvprof writes a file for each
        process, so that there is one.
    read_paths : dict of str to str
        Table → how it was read; grows while the tables are read.
    """

    file: SqliteFile
    strings: dict[int, str]
    processes: tuple[int, ...]
    read_paths: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, file: SqliteFile) -> Database:
        """Read the strings, and which process the file is of."""
        return cls(file, _strings(file), _processes(file))

    @property
    def process(self) -> int | None:
        """The one process that the file is of; None where it does not say, or names several."""
        return self.processes[0] if len(self.processes) == 1 else None

    def read(self, table: str, wanted: Sequence[str]) -> Read:
        """Read the `wanted` columns that `table` has, and remember how."""
        result = self.file.read(table, wanted)
        if result.how != "absent":
            self.read_paths[table] = result.how
        return result

    def rows(self, table: str) -> int:
        """Return how many rows a table has; 0 where there is none such."""
        columns = self.file.tables.get(table, ())
        return self.file.read(table, columns[:1]).rows if columns else 0

    def texts(self, ids: Array | None, rows: int, default: str) -> Categorical:
        """Return string ids as text, `default` where there is no such string, or no id."""
        found = None if ids is None else coded(ids, self.strings.get)
        return first_present(found, default=default, rows=rows)

    def objects(self, table: str, kinds: Array | None) -> tuple[Array, Array] | None:
        """Return the process and thread ids of the objects that a table's rows are of.

        An object of another kind than process and thread has neither; a process has no thread:
        what stands in the bytes behind its id is left over from something else.
        """
        blobs = self.file.read_bytes(table, "objectId", 8)
        if blobs is None or kinds is None or len(kinds) != len(blobs.length):
            return None
        whole = blobs.hold(8)
        of_thread = whole & (kinds == names.THREAD_OBJECT)
        of_process = of_thread | (whole & (kinds == names.PROCESS_OBJECT))
        process, thread = (blobs.numbers("<u4", at).astype(np.int64) for at in (0, 4))
        process[~of_process] = _ABSENT
        thread[~of_thread] = _ABSENT
        return process, thread


def _strings(file: SqliteFile) -> dict[int, str]:
    read = file.read("StringTable", ("_id_", "value"))
    texts = texts_by_id(read.columns.get("_id_"), read.columns.get("value"))
    return {number: text for number, text in texts.items() if text != names.NO_STRING}


def _processes(file: SqliteFile) -> tuple[int, ...]:
    """Return the processes of the calls; where there are none, of the markers and names."""
    found: set[int] = set()
    for table in (names.RUNTIME, names.DRIVER, names.UNIFIED_MEMORY):
        ids = integers(file.read(table, ("processId",)).columns.get("processId"))
        if ids is not None:
            found.update(_without_missing(ids))
    database = Database(file, {}, ())
    for table in (names.MARKER, names.NAME, names.OVERHEAD):
        if not found:
            kinds = integers(file.read(table, ("objectKind",)).columns.get("objectKind"))
            objects = database.objects(table, kinds)
            found.update(_without_missing(objects[0]) if objects else ())
    return tuple(sorted(found))


def _without_missing(ids: Array) -> list[int]:
    seen = distinct(ids)
    kept: list[int] = seen[~is_missing(seen)].tolist()
    return kept


def unsigned(ids: Array | None) -> Array | None:
    """Return 32-bit ids that were stored as signed numbers as the unsigned ones that they are."""
    if ids is None:
        return None
    return np.where(is_missing(ids), _ABSENT, ids.astype(np.int64) & 0xFFFFFFFF)


def process_column(database: Database, rows: int) -> Array | None:
    """Return the file's one process for each of `rows` events; None where it is not known."""
    process = database.process
    return None if process is None else np.broadcast_to(np.int64(process), (rows,))


def device_event(
    database: Database, read: Mapping[str, Array | None], rows: int
) -> dict[str, ColumnData]:
    """Return time, process, device, context, stream and correlation id of each row."""
    device = read.get("deviceId")
    return interval(read, rows) | present(
        {
            "device_id": np.zeros(rows, dtype=np.int32) if device is None else device,
            "process_id": process_column(database, rows),
            **{ours: read.get(theirs) for ours, theirs in EVENT_COLUMNS.items()},
        }
    )
