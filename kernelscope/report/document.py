"""An analysis as one plain dictionary: the JSON that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.sample_results import TABLES as SAMPLED
from kernelscope.metrics.window import Window
from kernelscope.report.rows import ordered, plain
from kernelscope.trace import Capture, Table

if TYPE_CHECKING:
    from kernelscope.metrics.range_view import RangeView

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
_CAUSES_FIRST = ("overlap", "overlap_by_iteration", "host_threads")
_CAUSES_LAST = (
    "idle",
    "gap_spectrum",
    "idle_by_iteration",
    "transfers",
    "migrations",
    "communication",
    "communication_by_device",
    "findings",
)


def document(analysis: Analysis) -> Row:
    """Return `analysis` as dictionaries, lists, numbers, texts and None, ready for JSON.

    Dotted columns become dictionaries (``quantiles_ns.p5``) and numbered ones lists
    (``grid.0``); what is missing is None. Times are integers in ns, statistics floats.
    """
    result = _head(analysis.capture, analysis.window)
    for name in _LISTS:
        result[name] = records(ordered(analysis.tables[name]))
    _place(result["kernels"], "name", analysis.tables["kernels_by_device"], "by_device")
    _place(result["devices"], "index", analysis.tables["device_ordinals"], "device_ids")
    for device in result["devices"]:
        del device["index"]  # its place in the list
    result["iterations"] = iterations(analysis.iteration_summary, analysis.tables["iterations"])
    result["ranges"] = records(analysis.tables["ranges"])
    result["ranges_by_name"] = records(analysis.tables["ranges_by_name"])
    result["unattributed"] = unattributed(analysis.capture, analysis.tables["unattributed"])
    result["graph_kernels"] = records(ordered(analysis.tables["graph_kernels"]))
    for name in _CAUSES_FIRST:
        result[name] = records(ordered(analysis.tables[name]))
    result["cpu"] = next(iter(records(analysis.tables["cpu"])), None)
    result["launches"] = launches(analysis)
    for name in _CAUSES_LAST:
        result[name] = records(ordered(analysis.tables[name]))
    if len(analysis.tables["gpu_metrics"]):  # few captures sample them
        for schema in SAMPLED:
            result[schema.name] = records(analysis.tables[schema.name])
    return result


def iterations_document(analysis: Analysis) -> Row:
    """Return what ``kernelscope iterations --format json`` holds."""
    rows = analysis.tables["iterations"]
    return _head(analysis.capture, analysis.window) | {
        "iterations": iterations(analysis.iteration_summary, rows),
        **{name: records(analysis.tables[name]) for name in _BY_ITERATION},
    }


_BY_ITERATION = ("overlap_by_iteration", "idle_by_iteration")


def launches(analysis: Analysis) -> Row:
    """Return how launches reached the devices: all of them, by call, by kernel, and over time.

    Where no launch can be followed to its execution, the figures of all are None, and `reason`
    says why.
    """
    table = analysis.tables["launch_totals"]
    empty: Row = dict.fromkeys(name.partition(".")[0] for name in table.schema.names)
    total = next(iter(records(table)), empty)
    del total["name"]  # all
    return total | {
        "reason": None if len(table) else unfollowed(analysis),
        "api": records(ordered(analysis.tables["launches"])),
        "by_kernel": records(ordered(analysis.tables["launches_by_kernel"])),
        "queue_depth": records(analysis.tables["queue_depth"]),
        "stretches": records(analysis.tables["launch_stretches"]),
    }


def unfollowed(analysis: Analysis) -> str:
    """Return why no launch can be followed from its call to its execution."""
    what = analysis.capture
    if what.serialised is not None:
        return what.serialised
    for name, words in (("kernels", "no kernels were"), ("api_calls", "no CUDA calls were")):
        if name not in what.recorded:
            return f"{words} recorded"
    return "no execution in the window belongs to a recorded launch call"


def ranges_document(view: RangeView, rows: Table) -> Row:
    """Return what ``kernelscope ranges --format json`` holds: the chosen rows, and the lint."""
    return _head(view.capture, view.window) | {
        "kernel_ns": view.kernel_ns,
        rows.schema.name: records(rows),
        "unattributed": unattributed(view.capture, view.unattributed),
        "findings": records(view.findings),
    }


def _head(what: Capture, window: Window) -> Row:
    return {
        "schema_version": SCHEMA_VERSION,
        "capture": capture(what),
        "window": {
            "start_ns": window.start_ns,
            "end_ns": window.end_ns,
            "duration_ns": window.duration_ns,
            "chosen_by": window.chosen_by,
        },
    }


def iterations(summary: IterationSummary, rows: Table) -> Row:
    """Return how the iterations were found, which are steady, and a row for each."""
    found = asdict(summary)
    for name in ("warmup", "outliers", "notes"):
        found[name] = list(found[name])
    found["also_in"] = [
        {"process_id": process, "thread_id": thread} for process, thread in summary.also_in
    ]
    return found | {"rows": records(rows)}


def unattributed(what: Capture, table: Table) -> Row | None:
    """Return the work that lies in no range at all, with reasons, and that of each domain.

    None where no ranges were recorded: that no range holds a kernel then says nothing of it.
    """
    if "ranges" not in what.recorded:
        return None
    rows = records(table)
    nowhere = [row for row in rows if row["domain"] is None]
    return {
        "kernels": sum(row["kernels"] for row in nowhere),
        "total_ns": sum(row["total_ns"] for row in nowhere),
        "opaque_ns": sum(row["opaque_ns"] for row in nowhere),
        "reasons": [{k: v for k, v in row.items() if k != "domain"} for row in nowhere],
        "by_domain": [row for row in rows if row["domain"] is not None],
    }


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
        "cpu_cores": what.cpu_cores,
        "serialised": what.serialised,
        "recorded": list(what.recorded),
        "not_recorded": [
            {"table": each.table, "how_to_record": each.how_to_record or None}
            for each in what.not_recorded
        ],
    }


def records(table: Table) -> list[Row]:
    """Return the rows of `table` with dotted columns nested, None where missing.

    Paths are lists of raw names. A list whose parts are all missing (the grid of a graph
    launch) is None itself.
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
            yield group, _values(table, group)
            continue
        parts = [member.partition(".")[2] for member in members]
        rows = zip(*(plain(table, member) for member in members), strict=True)
        if all(part.isdigit() for part in parts):
            yield group, [None if row.count(None) == len(row) else list(row) for row in rows]
        else:
            yield group, [dict(zip(parts, row, strict=True)) for row in rows]


def _values(table: Table, name: str) -> list[Any]:
    if table.schema.column(name).unit != "path":
        return plain(table, name)
    split = [*(path.split(SEPARATOR) for path in table.categories(name)), None]
    return [split[code] for code in table[name].tolist()]  # −1, missing, is the last place


def _place(parents: list[Row], key: str, children: Table, under: str) -> None:
    """Put into each new row of `parents` those of `children` that share its `key`."""
    families: dict[Any, list[Row]] = {}
    for child in records(ordered(children)):
        families.setdefault(child.pop(key), []).append(child)
    for parent in parents:
        parent[under] = families.get(parent[key], [])
