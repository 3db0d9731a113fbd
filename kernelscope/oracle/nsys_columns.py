"""From the columns of a plan to the columns of an export, without touching every row twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.oracle.nsys_ids import Strings, global_ids
from kernelscope.oracle.plan import MISSING, Events
from kernelscope.trace import Categorical

Array = npt.NDArray[Any]
Source = int | str | None | Callable[[slice], Array]
"""A column to write: one value for all rows, or what the rows of a slice hold."""


@dataclass(frozen=True, slots=True)
class Content:
    """What goes into one table: columns by name; absent ones stay NULL."""

    rows: int
    columns: Mapping[str, Source]


def records(rows: Sequence[Mapping[str, Any]]) -> Content:
    """Return rows given one by one, all with the same columns."""
    names = list(rows[0]) if rows else []
    return Content(len(rows), {name: _literal([row[name] for row in rows]) for name in names})


def _literal(values: list[Any]) -> Source:
    array = np.array(values, dtype=object)
    return lambda part: array[part]


def take(array: Array) -> Source:
    """Return a column as it is; an array that repeats one element in memory is one value."""
    if len(array) and array.strides == (0,):
        value = int(array[0])
        return None if value == MISSING else value
    return lambda part: array[part]


def _look_up(table: Array, codes: Array) -> Source:
    """Return the column ``table[codes]``; code −1 takes the table's last entry."""
    if len(codes) and codes.strides == (0,):
        value = int(table[int(codes[0])])
        return None if value == MISSING else value
    return lambda part: table[codes[part]]


def enum(column: Categorical, numbers: Mapping[str, int]) -> Source:
    """Return a column of texts as the numbers that stand for them."""
    table = np.array([*(numbers[text] for text in column.categories), MISSING], dtype=np.int64)
    return _look_up(table, column.codes)


def string_ids(column: Categorical, strings: Strings, shape: Callable[[str], str] = str) -> Source:
    """Return a column of texts, each passed through `shape`, as numbers of strings."""
    ids = [strings.id(shape(text)) for text in column.categories]
    return _look_up(np.array([*ids, MISSING], dtype=np.int64), column.codes)


def thread_ids(events: Events) -> Source:
    """Return ``globalTid`` of events."""
    processes, threads = events["process"], events["thread"]
    if len(threads) and processes.strides == threads.strides == (0,):
        return int(global_ids(processes[:1], threads[:1])[0])
    return lambda part: global_ids(processes[part], threads[part])


def _process_ids(events: Events) -> Source:
    processes = events["process"]
    if len(processes) and processes.strides == (0,):
        return int(global_ids(processes[:1])[0])
    return lambda part: global_ids(processes[part])


def where(events: Events, generation: str) -> dict[str, Source]:
    """Return the columns that place an activity: device, context, stream, correlation, process."""
    green: dict[str, Source] = {"greenContextId": 0} if generation == "2025.5" else {}
    return {
        "deviceId": take(events["device"]),
        "contextId": take(events["context"]),
        **green,
        "streamId": take(events["stream"]),
        "correlationId": take(events["correlation"]),
        "globalPid": _process_ids(events),
    }


def when(events: Events) -> dict[str, Source]:
    """Return start and end."""
    return {"start": take(events["start"]), "end": take(events["end"])}
