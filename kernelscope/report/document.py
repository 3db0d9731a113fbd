"""An analysis as one plain dictionary: the JSON that scripts rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.iteration_results import IterationSummary
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.sample_results import TABLES as SAMPLED
from kernelscope.metrics.window import Window
from kernelscope.report.json_rows import grouped_names, parts_of
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
_EXTENDED = ("kernels", "devices")
"""Those whose rows other tables' rows are put into."""
_CAUSES_FIRST = ("overlap", "overlap_by_iteration", "host_threads")
_CAUSES_LAST = (
    "idle",
    "gap_spectrum",
    "idle_by_iteration",
    "transfers",
    "migrations",
    "communication",
    "communication_by_device",
    "work",
    "work_by_shape",
    "counter_coverage",
    "utilization_by_iteration",
    "precision",
    "findings",
)


def document(analysis: Analysis, rows: Callable[[Table], list[Any]] | None = None) -> Row:
    """Return `analysis` as dictionaries, lists, numbers, texts and None, ready for JSON.

    Dotted columns become dictionaries (``quantiles_ns.p5``) and numbered ones lists
    (``grid.0``); what is missing is None. Times are integers in ns, statistics floats.

    Parameters
    ----------
    analysis : Analysis
        What :func:`kernelscope.analyze` returned.
    rows : callable, optional
        What makes the rows of most tables; by default :func:`records`. A table that becomes
        part of another's rows is always records.
    """
    rows = rows or records
    result = _head(analysis.capture, analysis.window)
    counted = analysis.tables["work_by_shape"]
    extended = (*_EXTENDED, "launch_shapes") if len(counted) else _EXTENDED
    for name in _LISTS:
        make = records if name in extended else rows
        result[name] = make(ordered(analysis.tables[name]))
    _place(result["kernels"], "name", analysis.tables["kernels_by_device"], "by_device")
    _add_work(result["kernels"], analysis.tables["work"])
    if len(counted):
        _add_bounds(result["kernels"], analysis, "", ("name",))
        _add_work(result["launch_shapes"], counted, _SHAPE)
        _add_bounds(result["launch_shapes"], analysis, "_by_shape", _SHAPE)
    _place(result["devices"], "index", analysis.tables["device_ordinals"], "device_ids")
    _place(result["devices"], "index", analysis.tables["peaks"], "peaks", "device")
    used = {row.pop("device"): row for row in records(analysis.tables["device_utilization"])}
    for device in result["devices"]:
        index = device.pop("index")  # its place in the list
        if used:
            device["utilization"] = used.get(index)
    result["utilization"] = next(iter(used.values())) if len(used) == 1 else None
    steps = rows(analysis.tables["iterations"])
    result["iterations"] = iterations(analysis.iteration_summary, steps)
    result["ranges"] = rows(analysis.tables["ranges"])
    result["ranges_by_name"] = rows(analysis.tables["ranges_by_name"])
    result["unattributed"] = unattributed(analysis.capture, analysis.tables["unattributed"])
    result["graph_kernels"] = rows(ordered(analysis.tables["graph_kernels"]))
    for name in _CAUSES_FIRST:
        result[name] = rows(ordered(analysis.tables[name]))
    result["cpu"] = next(iter(records(analysis.tables["cpu"])), None)
    result["launches"] = launches(analysis)
    for name in _CAUSES_LAST:
        result[name] = rows(ordered(analysis.tables[name]))
    if len(analysis.tables["gpu_metrics"]):  # few captures sample them
        for schema in SAMPLED:
            result[schema.name] = rows(analysis.tables[schema.name])
    return result


def iterations_document(analysis: Analysis) -> Row:
    """Return what ``kernelscope iterations --format json`` holds."""
    rows = records(analysis.tables["iterations"])
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


def iterations(summary: IterationSummary, rows: list[Any]) -> Row:
    """Return how the iterations were found, which are steady, and a row for each."""
    found = asdict(summary)
    for name in ("warmup", "outliers", "notes"):
        found[name] = list(found[name])
    found["also_in"] = [
        {"process_id": process, "thread_id": thread} for process, thread in summary.also_in
    ]
    return found | {"rows": rows}


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
    for group, members in grouped_names(table).items():
        if members == [group]:
            yield group, _values(table, group)
            continue
        parts, numbered = parts_of(members)
        rows = zip(*(plain(table, member) for member in members), strict=True)
        if numbered:
            yield group, [None if row.count(None) == len(row) else list(row) for row in rows]
        else:
            yield group, [dict(zip(parts, row, strict=True)) for row in rows]


def _values(table: Table, name: str) -> list[Any]:
    if table.schema.column(name).unit != "path":
        return plain(table, name)
    split = [*(path.split(SEPARATOR) for path in table.categories(name)), None]
    return [split[code] for code in table[name].tolist()]  # −1, missing, is the last place


def _place(
    parents: list[Row], key: str, children: Table, under: str, theirs: str | None = None
) -> None:
    """Put into each new row of `parents` those of `children` whose `theirs` is its `key`."""
    families: dict[Any, list[Row]] = {}
    for child in records(ordered(children)):
        families.setdefault(child.pop(theirs or key), []).append(child)
    for parent in parents:
        parent[under] = families.get(parent[key], [])


def _add_work(parents: list[Row], work: Table, key: Sequence[str] = ("name",)) -> None:
    """Put into each row the work that was counted: FLOPs by pipe, bytes by level.

    None where nothing was counted of it; keys are absent where there are no counters at all.
    """
    if not len(work):
        return
    found: dict[str, dict[str, Row]] = {}
    for row in records(work):
        kind, _, what = row["quantity"].rpartition("_")
        if what in _WORK:
            figures = {name: row[name] for name in ("value", "low", "high")}
            found.setdefault(repr([row[name] for name in key]), {}).setdefault(what, {})[kind] = (
                figures
            )
    for parent in parents:
        mine = found.get(repr([parent[name] for name in key]), {})
        for what, name in _WORK.items():
            parent[name] = mine.get(what)
        parent["work_source"] = "counters" if mine else None


def _add_bounds(parents: list[Row], analysis: Analysis, which: str, key: Sequence[str]) -> None:
    """Put into each row what bounds the kernel, and how much of each pipe and memory it uses."""

    def of(row: Row) -> str:
        return repr([row[name] for name in key])

    used: dict[str, dict[str, Row]] = {}
    for row in records(analysis.tables[f"pipe_utilization{which}"]):
        figures = {name: row[name] for name in _USED} | {"peak": row["peak_per_s"]}
        used.setdefault(of(row), {})[row["resource"]] = figures
    bounds = {of(row): row for row in records(analysis.tables[f"bounds{which}"])}
    for parent in parents:
        found = bounds.get(of(parent), {})
        shares = used.get(of(parent), {})
        parent["utilization"] = {
            name: figures for name, figures in shares.items() if name not in _MEMORIES
        } or None
        parent["bandwidth_utilization"] = {
            name: shares[name] for name in _MEMORIES if name in shares
        } or None
        parent |= {name: found.get(name) for name in _BOUND}


_SHAPE = ("name", "grid", "block")
_MEMORIES = ("dram", "l2")
_USED = ("value", "low", "high", "source", "clock_basis", "coverage", "diagnosis")
_BOUND = (
    "intensity", "ridge", "roofline_side", "roof_share", "bound", "bound_reason", "bound_evidence",
    "bound_margin", "launch_limited",
)  # fmt: skip
"""Columns of `bounds` that stand in the row of a kernel."""

_WORK = {"flops": "flops_executed", "bytes": "bytes"}
"""What a quantity's name ends with → its key in a row."""
