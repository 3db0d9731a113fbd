"""NVTX ranges in an Nsight Systems export: text inline or by id, domains, never-closed ranges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelscope import schema
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.annotation_scheme import annotated_columns, of_the_program
from kernelscope.parsers.convert import coded, floats, integers, labelled
from kernelscope.parsers.nsys_events import interval, present
from kernelscope.parsers.nsys_export import Export, messages
from kernelscope.parsers.nsys_payloads import message_payloads
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    distinct,
    is_missing,
    missing_value,
)


def ranges_table(export: Export) -> Table:
    """Return the NVTX ranges; marks, categories, domain rows and the capture's own are none."""
    wanted = (
        "start", "end", "eventType", "category", "text", "textId", "globalTid", "endGlobalTid",
        "domainId", "uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue",
        "floatValue",
    )  # fmt: skip
    read = export.read(names.NVTX, wanted)
    event_type = integers(read.columns.get("eventType"))
    if event_type is None or not read.rows:
        return Table.empty(schema.RANGES)
    chosen = np.zeros(read.rows, dtype=np.bool_)
    for style in names.RANGE_STYLES:
        chosen |= event_type == style
    text = messages(export, read.columns.get("text"), read.columns.get("textId"), read.rows)
    numbers = {n: integers(raw) for n, raw in read.columns.items() if n not in ("text", "textId")}
    process, thread = export.process_and_thread(numbers.get("globalTid"))
    _, end_thread = export.process_and_thread(numbers.get("endGlobalTid"))
    domain = _domains(process, numbers.get("domainId"), event_type, text)
    end, closed = _closed(export, numbers, read.rows)
    said = annotated_columns(domain, text, numbers.get("category"))
    if (program := of_the_program(said)) is not None:
        chosen &= program
    columns: dict[str, ColumnData | None] = {
        **interval(numbers, read.rows),
        "end_ns": end,
        "closed": closed,
        "process_id": process,
        "thread_id": thread,
        "end_thread_id": end_thread,
        "domain": domain,
        "name": text,
        "style": labelled(event_type, names.RANGE_STYLES),
        "category": numbers.get("category"),
        "payload_int": _first_integer(
            *(numbers.get(f"{n}Value") for n in ("uint64", "int64", "uint32", "int32"))
        ),
        "payload_float": floats(read.columns.get("doubleValue")),
        **message_payloads(export, read.rows),
        **said,
    }
    return Table.make(schema.RANGES, present(columns)).take(chosen)


def _first_integer(*columns: Array | None) -> Array | None:
    """Return, row by row, the first value that is set: an NVTX event has one payload at most."""
    found: Array | None = None
    for column in columns:
        if column is None or is_missing(column).all():
            continue
        wide = column.astype(np.int64)
        wide[is_missing(column)] = missing_value(wide.dtype)
        found = wide if found is None else np.where(is_missing(found), wide, found)
    return found


def _closed(export: Export, numbers: Mapping[str, Array | None], rows: int) -> tuple[Array, Array]:
    """Return the ends of ranges, and which were really closed.

    A range that the program never closed is exported with the end of the trace as its end
    (2022.4.2) or with none; both end with the trace here and say so.
    """
    start, end = numbers.get("start"), numbers.get("end")
    duration = export.single("ANALYSIS_DETAILS", "duration")
    if start is None or end is None:
        return np.full(rows, 0 if duration is None else duration), np.zeros(rows, dtype=np.bool_)
    open_ended = is_missing(end)
    last = max(int(start.max()), int(end.max()), duration or 0)
    closed = ~open_ended if duration is None else ~(open_ended | (end == duration))
    return np.where(open_ended, np.int64(last), end), closed


def _place(distinct_values: Array, values: Array) -> Array:
    """Return the index of each value among the distinct ones."""
    if len(distinct_values) == 1:
        return np.broadcast_to(np.intp(0), values.shape)
    return np.searchsorted(distinct_values, values)


def _domains(
    process: Array | None, domain_id: Array | None, event_type: Array, text: Categorical
) -> Categorical:
    """Return each event's domain by name: ids are per process, and 0 is the default domain."""
    rows = len(event_type)
    if domain_id is None or not rows:
        return Categorical.constant("", rows)
    owner = np.zeros(rows, dtype=np.int64) if process is None else process.astype(np.int64)
    known: dict[tuple[int, int], str] = {}
    for row in np.flatnonzero(event_type == names.NVTX_DOMAIN_CREATE).tolist():
        if name := text.categories[text.codes[row]]:  # without one it is not the default domain
            known[int(owner[row]), int(domain_id[row])] = name
    ids = np.where(is_missing(domain_id), 0, domain_id).astype(np.int64)
    processes = distinct(owner)
    numbers = distinct(ids)  # which may be any of 64 bits, and so would overflow a product
    place = _place(processes, owner) * len(numbers) + _place(numbers, ids)

    def label(pair: int) -> str:
        process, number = pair // len(numbers), int(numbers[pair % len(numbers)])
        default = "" if number == 0 else f"domain {number}"
        return known.get((int(processes[process]), number), default)

    return coded(place, label)
