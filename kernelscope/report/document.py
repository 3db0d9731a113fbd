"""An analysis as one plain dictionary: the JSON that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelscope.metrics.analysis import Analysis
from kernelscope.report.rows import ordered, plain
from kernelscope.trace import Capture, Table

SCHEMA_VERSION = 1
"""Raised when a name changes its meaning; new names may come without."""

Row = dict[str, Any]

_LISTS = (
    "health",
    "checks",
    "capture_cost",
    "kernels",
    "launch_shapes",
    "api_calls",
    "copies",
    "copies_by_kind",
    "devices",
    "device_processes",
    "streams",
)


def document(analysis: Analysis) -> Row:
    """Return `analysis` as dictionaries, lists, numbers, texts and None, ready for JSON.

    Dotted columns become dictionaries (``quantiles_ns.p5``) and numbered ones lists
    (``grid.0``); what is missing is None. Times are integers in ns, statistics floats.
    """
    window = analysis.window
    result: Row = {
        "schema_version": SCHEMA_VERSION,
        "capture": capture(analysis.capture),
        "window": {
            "start_ns": window.start_ns,
            "end_ns": window.end_ns,
            "duration_ns": window.duration_ns,
            "chosen_by": window.chosen_by,
        },
    }
    for name in _LISTS:
        result[name] = records(ordered(analysis.tables[name]))
    _place(result["kernels"], "name", analysis.tables["kernels_by_device"], "by_device")
    _place(result["devices"], "index", analysis.tables["device_ordinals"], "device_ids")
    for device in result["devices"]:
        del device["index"]  # its place in the list
    return result


def capture(what: Capture) -> Row:
    """Return what the file says about itself, ready for JSON.

    What was traced and never occurred has None for `how_to_record`.
    """
    return {
        "file": what.file,
        "format": what.format,
        "profiler_version": what.profiler_version,
        "schema": what.schema,
        "started_at": what.started_at,
        "recorded": list(what.recorded),
        "not_recorded": [
            {"table": each.table, "how_to_record": each.how_to_record or None}
            for each in what.not_recorded
        ],
    }


def records(table: Table) -> list[Row]:
    """Return the rows of `table` with dotted columns nested, None where missing.

    A list whose parts are all missing (the grid of a graph launch) is None itself.
    """
    names, columns = [], []
    for name, values in _nested(table):
        names.append(name)
        columns.append(values)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _nested(table: Table) -> Iterator[tuple[str, list[Any]]]:
    groups: dict[str, list[str]] = {}
    for name in table.schema.names:
        groups.setdefault(name.partition(".")[0], []).append(name)
    for group, members in groups.items():
        if members == [group]:
            yield group, plain(table, group)
            continue
        parts = [member.partition(".")[2] for member in members]
        rows = zip(*(plain(table, member) for member in members), strict=True)
        if all(part.isdigit() for part in parts):
            yield group, [None if row.count(None) == len(row) else list(row) for row in rows]
        else:
            yield group, [dict(zip(parts, row, strict=True)) for row in rows]


def _place(parents: list[Row], key: str, children: Table, under: str) -> None:
    """Put into each new row of `parents` those of `children` that share its `key`."""
    families: dict[Any, list[Row]] = {}
    for child in records(ordered(children)):
        families.setdefault(child.pop(key), []).append(child)
    for parent in parents:
        parent[under] = families.get(parent[key], [])
