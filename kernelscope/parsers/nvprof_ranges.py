"""NVTX ranges in an nvprof database: pairs of markers, put together by their id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope import schema
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.annotation_scheme import annotated_columns, of_the_program
from kernelscope.parsers.convert import integers
from kernelscope.parsers.nsys_events import present
from kernelscope.parsers.nvprof_database import Database
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    is_missing,
    missing_value,
)

_ABSENT = missing_value(np.dtype(np.int64))
_DOUBLE, _UINT64, _INT64 = 0, 1, 4
"""``payloadKind`` (CUpti_MetricValueKind) of what NVTX can carry."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """Markers put together.

    Attributes
    ----------
    start, end : ndarray of int64, shape (n,)
        Rows of the markers that open and close each range, −1 where nothing closes it.
    orphans : int
        Markers that close what was open before the capture began.
    """

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    orphans: int


def ranges_table(database: Database, last_ns: int) -> tuple[Table, int]:
    """Return the NVTX ranges, and how many markers close a range that nothing opens.

    Instantaneous markers are no ranges. Ranges of a process come from start/end calls, those of
    a thread from push/pop (nvprof does not tell them apart any further).

    Parameters
    ----------
    database : Database
        The open database.
    last_ns : int
        When the last other event ended: a range that was never closed ends with the trace.
    """
    wanted = ("flags", "timestamp", "id", "objectKind", "name", "domain")
    read = database.read(names.MARKER, wanted)
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    flags, time, ids = (numbers.get(name) for name in ("flags", "timestamp", "id"))
    if not read.rows or flags is None or time is None or ids is None:
        return Table.empty(schema.RANGES), 0
    pairs = paired(flags, time, ids)
    rows = pairs.start
    if not len(rows):
        return Table.empty(schema.RANGES), pairs.orphans
    closed = pairs.end >= 0
    last = max(last_ns, int(time.max()))
    kinds = numbers.get("objectKind")
    objects = database.objects(names.MARKER, kinds)
    process, thread = (None, None) if objects is None else (each[rows] for each in objects)
    of_process = np.zeros(len(rows), np.bool_)
    if kinds is not None:
        of_process = kinds[rows] == names.PROCESS_OBJECT
    texts = {  # the default domain, and a range without text, are empty
        name: database.texts(_of(numbers.get(name), rows), len(rows), default="")
        for name in ("domain", "name")
    }
    columns: dict[str, ColumnData] = {
        "start_ns": time[rows].astype(np.int64),
        "end_ns": np.where(closed, time[pairs.end], last).astype(np.int64),
        "closed": closed,
        **texts,
        "style": Categorical(of_process.astype(np.int32), ("push_pop", "start_end")),
    }
    columns |= present({"process_id": process, "thread_id": thread})
    columns |= _payloads(database, ids[rows])
    numbered = columns.get("category")
    said = annotated_columns(
        texts["domain"], texts["name"], None if isinstance(numbered, Categorical) else numbered
    )
    table, program = Table.make(schema.RANGES, columns | said), of_the_program(said)
    return table if program is None else table.take(program), pairs.orphans


def paired(flags: Array, time: Array, ids: Array) -> Pairs:
    """Put together the markers that open and close a range: equal ids, the next in time.

    Parameters
    ----------
    flags, time, ids : ndarray of int, shape (n,)
        Of every marker.
    """
    closing = (flags & names.MARKER_END) != 0
    rows = np.flatnonzero(closing | ((flags & names.MARKER_START) != 0))
    rows = rows[np.lexsort((closing[rows], time[rows], ids[rows]))]
    closes = closing[rows]
    follows = np.zeros(len(rows), np.bool_)  # closes what the marker before it opens
    follows[1:] = closes[1:] & ~closes[:-1] & (ids[rows][1:] == ids[rows][:-1])
    opens = np.flatnonzero(~closes)
    end = np.full(len(opens), -1, np.int64)
    has = opens + 1 < len(rows)
    has[has] = follows[opens[has] + 1]
    end[has] = rows[opens[has] + 1]
    start = rows[opens].astype(np.int64)
    order = np.argsort(start)
    return Pairs(start[order], end[order], int(closes.sum() - follows.sum()))


def _of(values: Array | None, rows: Array) -> Array | None:
    return None if values is None else values[rows]


def _payloads(database: Database, ids: Array) -> dict[str, ColumnData]:
    """Return category and payload of each range; a payload of 0 cannot be told from none."""
    read = database.read(names.MARKER_DATA, ("id", "payloadKind", "category"))
    owner = integers(read.columns.get("id"))
    if owner is None or not read.rows:
        return {}
    order = np.argsort(owner, kind="stable")
    place = np.minimum(np.searchsorted(owner[order], ids), len(owner) - 1)
    row = order[place]
    known = owner[row] == ids
    columns: dict[str, ColumnData] = {}
    category = integers(read.columns.get("category"))
    if category is not None:
        some = known & ~is_missing(category[row]) & (category[row] != 0)
        columns["category"] = np.where(some, category[row].astype(np.int64), _ABSENT)
    kind = integers(read.columns.get("payloadKind"))
    blobs = database.file.read_bytes(names.MARKER_DATA, "payload", 8)
    if kind is None or blobs is None or len(blobs.length) != read.rows:
        return columns
    known = known & blobs.hold(8)[row] & (blobs.numbers("<u8")[row] != 0)
    whole = known & np.isin(kind[row], (_UINT64, _INT64))
    columns["payload_int"] = np.where(whole, blobs.numbers("<i8")[row], _ABSENT)
    columns["payload_float"] = np.where(
        known & (kind[row] == _DOUBLE), blobs.numbers("<f8")[row], np.nan
    )
    return columns
