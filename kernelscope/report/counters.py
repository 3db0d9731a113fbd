"""The page of ``kernelscope counters``: which kernels were counted, by what, and what came out."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.metrics.short_names import short_names
from kernelscope.parsers.counter_merge import grouped
from kernelscope.parsers.counter_set import SHAPE, CounterSet
from kernelscope.report.document import SCHEMA_VERSION, Row, records
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph, shorten
from kernelscope.report.text import started
from kernelscope.report.text_lists import more
from kernelscope.trace import Table, widened

_WHOLE_BELOW = 1e15
_NO_DECIMALS_FROM = 1e4
_MOST_DOUBTS = 5
_PROPERTIES = ("device__attribute_", "breakdown:", "group:", "regex:")
"""How counters begin that count nothing: limits of the GPU, lists of other counters."""

_PROBLEMS = {
    "no_value": "the source holds none (n/a, nan, no data, an empty cell)",
    "overflow": "the counter overflowed",
    "invalid": "the source calls it invalid",
    "unknown_kind": "nothing tells whether the bytes are a whole number or a fraction",
    "unreadable": "the cell holds digits, and is no number in the style of the others",
}
_CONDITIONS = (
    ("replay_mode", "replay {}"),
    ("passes", "up to {} passes"),
    ("clock_control", "clocks {}"),
    ("cache_control", "caches {}"),
)


def document(counted: CounterSet, table: Table) -> Row:
    """Return what was counted as dictionaries, lists, numbers, texts and None.

    Parameters
    ----------
    counted : CounterSet
        What was read.
    table : Table
        The counters to show: values, or those brought together by kernel.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "warnings": list(counted.warnings),
        "sources": records(counted.sources),
        "executions": records(counted.executions),
        "counters": records(table),
    }


def page_of(
    counted: CounterSet, table: Table, page: Page, *, properties: bool = False
) -> list[Text]:
    """Return the lines of the page.

    Parameters
    ----------
    counted : CounterSet
        What was read.
    table : Table
        The counters to show: values, or those brought together by kernel.
    page : Page
        Width, and the most kernels, and counters of each.
    properties : bool
        Whether to show what is called a counter and is a property of the GPU, too.
    """
    rows, hidden = (table, 0) if properties else _without_properties(table)
    return [
        *_head(counted, page),
        *_kernels(counted, page),
        *_counters(rows, page),
        *_hidden(hidden, page),
        *_doubts(counted, page),
        Text(),
        *paragraph(
            page,
            "Next: --metric 'dram__*' and --kernel '*gemm*' choose; --by shape or execution keeps "
            "apart what --by kernel sums up; --format csv and json hold everything.",
            style="dim",
        ),
    ]


def _without_properties(table: Table) -> tuple[Table, int]:
    """Return the rows that count something, and how many different properties are left out."""
    plain = [not name.startswith(_PROPERTIES) for name in table.categories("metric")]
    kept = np.array([*plain, True], dtype=np.bool_)[table["metric"]]
    return table.take(kept), len(set(table["metric"][~kept].tolist()))


def _hidden(properties: int, page: Page) -> list[Text]:
    if not properties:
        return []
    text = f"{units.quantity(properties, 'property')}".replace("propertys", "properties")
    return paragraph(
        page, f"… and {text} of the GPU: --metric 'device__attribute_*' shows them", style="dim"
    )


def _head(counted: CounterSet, page: Page) -> list[Text]:
    sources = counted.sources.records()
    files = list(dict.fromkeys(row["file"] for row in sources))
    title = files[0] if len(files) == 1 else f"{len(files)} files"
    lines = [Text.assemble(("kernelscope", "bold"), "  ", shorten(title, page.width - 13))]
    gpus = paragraph(page, gpu) if (gpu := _gpus(counted)) else []
    if len(sources) == 1:
        return [*lines, *paragraph(page, _about(sources[0])), *gpus]
    shown = sources[: page.shown(len(sources))]
    figures = [
        Figures("run", [str(row["run"]) for row in shown]),
        Figures("executions", [units.count(row["executions"]) for row in shown]),
        Figures("counters", [units.count(row["metrics"]) for row in shown]),
        Figures("what", [row["format"] for row in shown], 1),
    ]
    folders = {os.path.dirname(file) for file in files}
    names = [row["file"] for row in shown]
    if len(folders) == 1:
        names = [os.path.basename(name) for name in names]
    if any(row["part"] for row in sources):
        names = [f"{name}, part {row['part']}" for name, row in zip(names, shown, strict=True)]
    return [
        *lines,
        *gpus,
        *heading(page, "Runs that were counted", "kept apart"),
        *grid(page, figures, "file", names),
        *more(page, len(shown), len(sources), "run", "--top 0 shows all"),
    ]


def _gpus(counted: CounterSet) -> str:
    """Return the GPUs that counted: name, and compute capability where recorded."""
    found: dict[tuple[Any, ...], None] = {}
    for row in counted.executions.records():
        found[row["device_name"], row["compute_major"], row["compute_minor"]] = None
    named = []
    for name, major, minor in found:
        capability = "" if major is None else f"compute capability {major}.{minor or 0}"
        named.append(", ".join(part for part in (name, capability) if part))
    return "; ".join(filter(None, named))


def _about(source: Row) -> str:
    """Return who counted, when, and under which conditions, as far as it is recorded."""
    version = f" {source['tool_version']}" if source["tool_version"] else ""
    parts = [f"{source['tool']}{version}, {source['format']}"]
    if source["started_at"]:
        parts.append(f"started {started(source['started_at'])}")
    if source["process_name"]:
        parts.append(source["process_name"])
    parts += [text.format(source[name]) for name, text in _CONDITIONS if source[name] is not None]
    return "; ".join(parts)


def _kernels(counted: CounterSet, page: Page) -> list[Text]:
    """Return which kernels were counted, in which shapes, in the order of their launches."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in counted.executions.records():
        found.setdefault((row["kernel_name"], *(row[name] for name in SHAPE)), []).append(row)
    rows = list(found.items())
    executions = sum(row["executions"] for each in found.values() for row in each)
    kernels = len({key[0] for key in found})
    note = f"{units.quantity(executions, 'execution')} of {units.quantity(kernels, 'kernel')}"
    if len(counted.sources) > 1:
        note += f" in {units.count(len(counted.sources))} runs"
    shown = rows[: page.shown(len(rows))]
    times = [units.duration(_mean_ns(each)) for _, each in shown]
    figures = [
        Figures(
            "executions", [units.count(sum(r["executions"] for r in each)) for _, each in shown]
        ),
        *([Figures("while counted", times, 1)] if any(t != units.MISSING for t in times) else []),
        Figures("grid", [_shape(key[1:4]) for key, _ in shown], 3),
        Figures("block", [_shape(key[4:7]) for key, _ in shown], 2),
    ]
    labels = _short(key[0] for key, _ in shown)
    lines = heading(page, "Kernels that were counted", note)
    if not rows:
        return [*lines, *paragraph(page, "None.")]
    return [
        *lines,
        *grid(page, figures, "kernel", [labels[key[0]] for key, _ in shown]),
        *more(page, len(shown), len(rows), "launch shape", "--top 0 shows all"),
    ]


def _mean_ns(rows: Sequence[Row]) -> float | None:
    timed = [row for row in rows if row["duration_ns"] is not None]
    count = sum(row["executions"] for row in timed)
    if not count:
        return None
    return float(sum(row["duration_ns"] * row["executions"] for row in timed) / count)


def _shape(sizes: Sequence[int | None]) -> str:
    if None in sizes:
        return units.MISSING
    kept = [size for size in sizes if size is not None]
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(map(str, kept))


def _short(names: Iterable[str | None]) -> dict[str | None, str]:
    """Return how each kernel is called on the page."""
    distinct = [name for name in dict.fromkeys(names) if name]
    labels: dict[str | None, str] = dict(zip(distinct, short_names(distinct), strict=True))
    return {None: units.MISSING, "": units.MISSING} | labels


def _counters(table: Table, page: Page) -> list[Text]:
    """Return the counters under their kernels, as many of each as the page shows."""
    if not len(table):
        return [*heading(page, "Counters"), *paragraph(page, "None.")]
    single = "execution" in table.schema.names
    by = ("run", "execution") if single else ()
    group, first = grouped([widened(table[name]) for name in (*by, "kernel_name", *SHAPE)])
    chosen = np.argsort(first, kind="stable")[: page.shown(len(first))]
    lines: list[Text] = []
    for title, note, rows in _blocks(table.take(np.isin(group, chosen)), by):
        part = rows[: page.shown(len(rows))]
        lines += heading(page, title, note)
        lines += grid(page, _figures(part), "counter", [_metric(row) for row in part])
        lines += more(page, len(part), len(rows), "counter", "--top 0 shows all")
    what = "execution" if single else "kernel"
    return lines + more(page, len(chosen), len(first), what, "--top 0 shows all")


def _blocks(table: Table, by: Sequence[str]) -> Iterator[tuple[str, str, list[Row]]]:
    """Iterate over kernels, shapes or executions: title, note, and rows of counters."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    single, labels = bool(by), _short(table.texts("kernel_name"))
    for row in table.records():
        key = (*(row[name] for name in by), row["kernel_name"], *(row[name] for name in SHAPE))
        found.setdefault(key, []).append(row)
    for key, rows in found.items():
        name, shape = key[len(by)], key[len(by) + 1 :]
        notes = [f"run {key[0]}"] if single else []
        if single and key[1] is not None:
            notes.append(f"execution {key[1]}")
        if any(size is not None for size in shape):
            notes.append(f"grid {_shape(shape[:3])}, block {_shape(shape[3:])}")
        if not single:
            counts = {row["executions"] for row in rows} - {0}
            notes += [units.quantity(counts.pop(), "execution")] if len(counts) == 1 else []
        yield labels[name], ", ".join(notes), rows


def _figures(rows: Sequence[Row]) -> list[Figures]:
    if "value" in rows[0]:
        values = Figures("value", [_value(row) for row in rows], style="bold")
        statistics = [_statistic(row) for row in rows]
        return [values, Figures("is", statistics, 1)] if any(statistics) else [values]
    columns = [
        Figures(name, [shown(row[name], row["unit"]) for row in rows], room)
        for name, room in (("mean", 0), ("min", 2), ("max", 1), ("total", 3))
    ]
    if len({row["executions"] for row in rows}) > 1:
        columns.insert(0, Figures("executions", [units.count(row["executions"]) for row in rows]))
    elif rows[0]["executions"] == 1:
        columns = [replace(columns[0], header="value")]
    if any(row["without_value"] for row in rows):
        columns.append(
            Figures("without value", [units.count(row["without_value"]) for row in rows])
        )
    return columns


def _value(row: Row) -> str:
    if row["value_text"] is not None:
        return shorten(row["value_text"], 24)
    return row["problem"] or shown(row["value"], row["unit"])


def _statistic(row: Row) -> str:
    return "" if row["statistic"] == "value" else f"{row['statistic']} of {row['executions']:,}"


def _metric(row: Row) -> str:
    instance = row.get("instance")
    name = row["metric"] if instance is None else f"{row['metric']} ({instance})"
    return name if row["section"] is None else f"{name}  ({row['section']})"


def shown(value: float | None, unit: str | None) -> str:
    """Return a counter as text: scaled where its unit has scales, and with its unit.

    Parameters
    ----------
    value : float or None
        In the canonical unit.
    unit : str or None
        As in :data:`kernelscope.schema.COUNTERS`.
    """
    if value is None or not math.isfinite(value):
        return units.MISSING
    scaled = _SCALED.get(unit or "")
    if scaled is not None:
        return scaled(value)
    size = abs(value)
    whole = size < _WHOLE_BELOW and (size >= _NO_DECIMALS_FROM or value.is_integer())
    text = f"{value:,.0f}" if whole else f"{value:,.4g}"
    return text if unit in (None, "count", "1", "level") else f"{text} {unit}"


_SCALED = {
    "ns": units.duration,
    "bytes": units.size,
    "bytes/s": units.rate,
    "Hz": units.frequency,
    "ratio": units.ratio,
}


def _doubts(counted: CounterSet, page: Page) -> list[Text]:
    counters = counted.counters
    problems = counters["problem"]
    counts = np.bincount(problems[problems >= 0], minlength=len(counters.categories("problem")))
    said = [
        f"{units.quantity(int(count), 'value')} missing: {_PROBLEMS.get(name, name)}."
        for name, count in zip(counters.categories("problem"), counts, strict=True)
        if count
    ]
    said += counted.warnings[:_MOST_DOUBTS]
    if len(counted.warnings) > _MOST_DOUBTS:
        said.append(f"{len(counted.warnings) - _MOST_DOUBTS} more warnings: --format json")
    if not said:
        return []
    lines = heading(page, "To know")
    for each in said:
        lines += paragraph(page, each, mark="! ")
    return lines
