"""An open Nsight Systems export: its strings, its processes, and how its tables were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelscope.parsers.convert import coded, integers, texts_by_id
from kernelscope.parsers.sqlite import COLUMNAR, RawColumn, Read, SqliteFile
from kernelscope.trace import Array, Categorical, distinct, is_missing, missing_value

PID_SHIFT = 24
ID_MASK = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class Reader:
    """A database that remembers how its tables were read.

    Attributes
    ----------
    file : SqliteFile
        The open database.
    paths : dict of str to str
        Table → how it was read. Of a table that was read twice, the unusual way stays.
    """

    file: SqliteFile
    paths: dict[str, str] = field(default_factory=dict)

    def read(self, table: str, wanted: Sequence[str]) -> Read:
        """Read the `wanted` columns that `table` has, and remember how."""
        result = self.file.read(table, wanted)
        if result.how != "absent" and self.paths.get(table, COLUMNAR) == COLUMNAR:
            self.paths[table] = result.how
        return result


@dataclass(frozen=True, slots=True)
class Export:
    """What every table of an export needs to be understood.

    Attributes
    ----------
    file : SqliteFile
        The open database.
    strings : mapping of int to str
        ``StringIds``.
    metadata : mapping of str to str
        The export's and capture's key-value table; a repeated key keeps its first value.
    traced_events : frozenset of str
        What the capture was told to trace, as far as the file says.
    ambiguous : frozenset of int
        Process ids that several recorded processes share (on other machines or in other
        containers); those keep Nsight Systems' global id instead.
    process_ids : tuple of int
        Every process that the capture knows of.
    read_paths : dict of str to str
        Table → how it was read, the small ones and the strings included; grows while the tables
        are read.
    """

    file: SqliteFile
    strings: Mapping[int, str]
    metadata: Mapping[str, str]
    traced_events: frozenset[str]
    ambiguous: frozenset[int]
    process_ids: tuple[int, ...]
    read_paths: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, file: SqliteFile) -> Export:
        """Read the strings and metadata of `file`."""
        reader = Reader(file)
        pairs = [
            pair
            for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE")
            for pair in _key_values(reader, table)
        ]
        metadata: dict[str, str] = {}
        for key, value in pairs:
            metadata.setdefault(key, value)
        seen = _global_pids(reader)
        decoded = [_pid(number) for number in seen]
        ambiguous = frozenset(pid for pid in decoded if decoded.count(pid) > 1)
        return cls(
            file=file,
            strings=_strings(reader),
            metadata=metadata,
            traced_events=frozenset(v for k, v in pairs if k == "CAPTURE_EVENT_TYPE"),
            ambiguous=ambiguous,
            process_ids=tuple(
                number if pid in ambiguous else pid
                for number, pid in zip(seen, decoded, strict=True)
            ),
            read_paths=reader.paths,
        )

    def read(self, table: str, wanted: Sequence[str]) -> Read:
        """Read the `wanted` columns that `table` has, and remember how."""
        return Reader(self.file, self.read_paths).read(table, wanted)

    def single(self, table: str, column: str) -> int | None:
        """Return the one number that a small information table holds; None where absent."""
        values = integers(self.read(table, (column,)).columns.get(column))
        if values is None or not len(values) or is_missing(values[:1])[0]:
            return None
        return int(values[0])

    def texts(
        self, raw: RawColumn | None, text_of: Callable[[str], str] = str
    ) -> Categorical | None:
        """Return a column of string ids (or of text itself) as text; None where absent."""
        if raw is None:
            return None
        if isinstance(raw, Categorical):
            again = Categorical.of([text_of(text) for text in raw.categories])
            table = np.append(again.codes, np.int32(-1))
            return Categorical(table[raw.codes], again.categories)
        ids = integers(raw)
        if ids is None:
            return None
        return coded(ids, lambda number: text_of(self.strings.get(number, f"[string {number}]")))

    def process_of_global_pid(self, global_pid: Array | None, rows: int) -> Array | None:
        """Return operating-system process ids of shape (rows,); None where unknown.

        Without the column, events belong to the one process that the capture recorded, if it
        recorded one: that much is certain.
        """
        if global_pid is None:
            if len(self.process_ids) == 1 and rows:
                return np.broadcast_to(np.int64(self.process_ids[0]), (rows,))
            return None
        return self.process_and_thread(global_pid)[0]

    def process_and_thread(self, global_id: Array | None) -> tuple[Array | None, Array | None]:
        """Split serialized global ids: bits 24–47 are the process, bits 0–23 the thread."""
        if global_id is None:
            return None, None
        if not len(global_id):
            return self._split(global_id, is_missing(global_id))
        rows = global_id.shape
        low, high = int(global_id.min()), int(global_id.max())
        if low >> PID_SHIFT != high >> PID_SHIFT:
            return self._split(global_id, is_missing(global_id))
        # One process: its id need not be stored more than once.
        process, thread = self._split(global_id[:1], is_missing(global_id[:1]))
        if low != high:
            thread = (global_id & ID_MASK).astype(np.int32)
        return np.broadcast_to(process, rows), np.broadcast_to(thread, rows)

    def _split(self, global_id: Array, missing: Array) -> tuple[Array, Array]:
        absent = np.int32(missing_value(np.dtype(np.int32)))
        process = ((global_id >> PID_SHIFT) & ID_MASK).astype(np.int32)
        thread = (global_id & ID_MASK).astype(np.int32)
        if missing.any():
            process, thread = (np.where(missing, absent, part) for part in (process, thread))
        if self.ambiguous:
            shared = np.isin(process, list(self.ambiguous))
            process = np.where(shared, global_id & ~np.int64(ID_MASK), process)
        return process, thread


def _pid(global_pid: int) -> int:
    return (global_pid >> PID_SHIFT) & ID_MASK


def _global_pids(reader: Reader) -> list[int]:
    """Return the distinct global process ids, in order.

    The small tables that name processes and threads know them all; only where a third party cut
    both away are the events themselves asked.
    """
    small = (("PROCESSES", "globalPid"), ("ThreadNames", "globalTid"))
    events = (
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid"),
        ("NVTX_EVENTS", "globalTid"),
    )
    for sources in (small, events):
        found: set[int] = set()
        for table, column in sources:
            values = integers(reader.read(table, (column,)).columns.get(column))
            if values is not None:
                known = values[~is_missing(values)]
                found.update(int(v) << PID_SHIFT for v in distinct(known >> PID_SHIFT))
        if found:
            return sorted(found)
    return []


def _strings(reader: Reader) -> dict[int, str]:
    read = reader.read("StringIds", ("id", "value"))
    return texts_by_id(read.columns.get("id"), read.columns.get("value"))


def _key_values(reader: Reader, table: str) -> list[tuple[str, str]]:
    read = reader.read(table, ("name", "value"))
    keys, values = read.columns.get("name"), read.columns.get("value")
    if not isinstance(keys, Categorical) or not isinstance(values, Categorical):
        return []
    return [
        (keys.categories[key], values.categories[value])
        for key, value in zip(keys.codes.tolist(), values.codes.tolist(), strict=True)
        if key >= 0 and value >= 0
    ]


def first_present(*columns: Categorical | None, default: str, rows: int) -> Categorical:
    """Return, row by row, the first text that is there, else `default`."""
    found: Categorical | None = None
    for column in (*columns, Categorical.constant(default, rows)):
        if column is None:
            continue
        if found is None:
            found = column
        gaps = found.codes < 0
        if not gaps.any():
            return found
        found = _filled(found, column, gaps)
    return found if found is not None else Categorical.constant(default, rows)


def _filled(column: Categorical, other: Categorical, gaps: Array) -> Categorical:
    seen = {text: code for code, text in enumerate(column.categories)}
    moved = [seen.setdefault(text, len(seen)) for text in other.categories]
    table = np.array([*moved, -1], dtype=np.int32)
    return Categorical(np.where(gaps, table[other.codes], column.codes), tuple(seen))


def messages(
    export: Export, inline: RawColumn | None, by_id: RawColumn | None, rows: int
) -> Categorical:
    """Return NVTX messages: registered ones by id, the others inline; empty where neither."""
    text = inline if isinstance(inline, Categorical) else None
    return first_present(export.texts(by_id), text, default="", rows=rows)
