"""Sections of the terminal report about the host: beside the GPU, and how its launches arrive."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.overlap_results import API_CALLS, MIXED, SCHEDULING, WAIT_NAMES
from kernelscope.report.device_names import labels
from kernelscope.report.layout import Figures, Page, grid, heading, paragraph
from kernelscope.report.text_lists import more

STATES = (
    ("both", "both"),
    ("gpu_only", "GPU only"),
    ("cpu_only", "CPU only"),
    ("neither", "neither"),
)
_AT_LEAST = ("both", "cpu_only")

_SOURCES = {
    SCHEDULING: "The host is busy while a thread that calls CUDA is on a core and does not wait.",
    API_CALLS: "Thread scheduling was not recorded: the host counts as busy inside CUDA calls "
    "alone, so that both and CPU only are lower bounds, the others upper ones",
    MIXED: "Thread scheduling was recorded of a part only: elsewhere the host counts as busy "
    "inside CUDA calls alone, so that both and CPU only are lower bounds, the others upper ones",
}

_WAITS = {
    "synchronization": "in synchronisations",
    "copy": "in copies and memsets",
    "allocation": "allocating and freeing",
    "module": "for code to be loaded",
    "queue": "for room in the launch queue",
}


def cpu_and_gpu(analysis: Analysis, page: Page) -> list[Text]:
    """Do CPU and GPU work at the same time, or does one wait for the other?"""
    rows = analysis.tables["overlap"].records()
    window_ns = analysis.window.duration_ns
    if not rows or not window_ns or analysis.capture.serialised is not None:
        return []
    names = _lanes(analysis, rows, processes=True)
    pairs = list(zip(rows, names, strict=True))
    known = [(row, name) for row, name in pairs if row["both_ns"] is not None]
    shown = known[: page.shown(len(known))]
    lines = heading(page, "CPU and GPU", f"shares of the window, {units.duration(window_ns)}")
    if shown:
        figures = [
            Figures(header, [state_share(row, state, window_ns) for row, _ in shown])
            for state, header in STATES
        ]
        lines += grid(page, figures, "" if len(rows) == 1 else "on", [name for _, name in shown])
        lines += more(page, len(shown), len(known), "row")
    for row, name in pairs:
        if row["both_ns"] is None:
            lines += paragraph(page, f"{name}: not known: {row['reason']}.")
    for source in dict.fromkeys(row["cpu_source"] for row, _ in shown):
        lines += paragraph(page, told(source, [row for row, _ in shown]), style="dim")
    return [*lines, *_waits(shown, page), *_utilization(analysis, page)]


def told(source: str, rows: list[dict[str, Any]]) -> str:
    """Say what tells when the host was busy, and where ranges bound it from the other side."""
    text = _SOURCES.get(source, source).removesuffix(".")
    ranged = any(row["cpu_source"] == source and row["both_high_ns"] is not None for row in rows)
    other = "; the other end takes it to be busy throughout its NVTX ranges" if ranged else ""
    return f"{text}{other}."


def _lanes(analysis: Analysis, rows: list[dict[str, Any]], *, processes: bool = False) -> list[str]:
    """Return what to call each pair of process and device.

    Parameters
    ----------
    analysis : Analysis
        Whose devices they are.
    rows : list of dict
        With `process_id` and `device_id`.
    processes : bool
        Whether to name the process wherever there are several; else only where a GPU has several.
    """
    gpus = labels(analysis)
    ordinals = analysis.tables["device_ordinals"].records()
    index = {(row["process_id"], row["device_id"]): row["index"] for row in ordinals}
    names = []
    for row in rows:
        at = index.get((row["process_id"], row["device_id"]), len(gpus))
        names.append(gpus[at] if at < len(gpus) else f"GPU {row['device_id']}")
    several = len({row["process_id"] for row in rows}) > 1
    if len(set(names)) < len(names) or (processes and several):
        owners = [units.MISSING if row["process_id"] is None else row["process_id"] for row in rows]
        return [f"{gpu}, process {owner}" for gpu, owner in zip(names, owners, strict=True)]
    return names


def state_share(row: dict[str, Any], state: str, window_ns: int) -> str:
    """Return the share of a state; a range, or the bound that it is, where it is not exact.

    Parameters
    ----------
    row : dict
        With the columns of states and their bounds, and `cpu_source`.
    state : str
        One of ``overlap_results.STATES``.
    window_ns : int
        What the share is of.
    """
    value = units.ratio(row[f"{state}_ns"] / window_ns)
    if row["cpu_source"] == SCHEDULING:
        return value
    end = "high" if state in _AT_LEAST else "low"
    other = row[f"{state}_{end}_ns"]
    if other is None:
        return f"{'≥' if state in _AT_LEAST else '≤'} {value}"
    low, high = (units.ratio(ns / window_ns) for ns in sorted((row[f"{state}_ns"], other)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _waits(shown: list[tuple[dict[str, Any], str]], page: Page) -> list[Text]:
    """Say what the threads that drive the GPUs waited for, once for each process."""
    rows = {row["process_id"]: row for row, _ in shown}
    lines: list[Text] = []
    for process, row in rows.items():
        times = {name: row[f"waiting.{name}_ns"] or 0 for name in WAIT_NAMES}
        parts = [
            f"{units.duration(ns)} {_WAITS[name]}"
            for name, ns in sorted(times.items(), key=lambda each: -each[1])
            if ns
        ]
        who = (
            "The host"
            if len(rows) == 1
            else f"Process {units.MISSING if process is None else process}"
        )
        if parts:
            lines += paragraph(page, f"{who} waits, and does nothing else: {', '.join(parts)}.")
    return lines


def _utilization(analysis: Analysis, page: Page) -> list[Text]:
    row = next(iter(analysis.tables["cpu"].records()), None)
    if row is None:
        return []
    if row["utilization"] is None:
        return paragraph(page, f"CPU utilization is not known: {row['reason']}.", style="dim")
    return paragraph(
        page,
        f"CPU utilization (as in the TBD benchmark) {units.ratio(row['utilization'])} of "
        f"{units.quantity(row['cores'], 'core')}, by the recorded processes: "
        f"{units.duration(row['on_core_ns'])} of thread time on cores in "
        f"{units.duration(row['scheduled_ns'])}.",
    )


def launches(analysis: Analysis, page: Page) -> list[Text]:
    """How do launches reach the devices?"""
    row = next(iter(analysis.tables["launch_totals"].records()), None)
    if row is None or not row["calls"] or analysis.capture.serialised is not None:
        return []
    lines = heading(page, "Launches", f"{units.quantity(row['calls'], 'launch call')}")
    lines += paragraph(page, _cost(row))
    lines += paragraph(page, _ahead(analysis))
    return lines


def _cost(row: dict[str, Any]) -> str:
    said = (
        f"A call takes the host {_typical(row, 'overhead_ns')}, "
        f"{units.duration(row['total_ns'])} in all"
    )
    if row["queue_ns.median"] is not None:
        said += f"; the launch then waits {_typical(row, 'queue_ns')} in the queue"
    if row["overlapping"]:
        share = units.ratio(row["overlapping"] / row["calls"])
        said += f"; {share} start before their call returns"
    if row["latency_ns.median"] is not None:
        said += f". From call to start: {_typical(row, 'latency_ns')}"
    return f"{said}."


def _typical(row: dict[str, Any], name: str) -> str:
    median, most = (units.duration(row[f"{name}.{each}"]) for each in ("median", "p95"))
    return median if row["calls"] == 1 else f"{median} (median; 95 %: {most})"


def _ahead(analysis: Analysis) -> str:
    """Say how many launches wait for each device, and when it waits for launches."""
    rows = analysis.tables["queue_depth"].records()
    window_ns = analysis.window.duration_ns
    waiting = []
    for row, name in zip(rows, _lanes(analysis, rows), strict=True):
        if row["mean"] is None or not window_ns:
            continue
        none = units.ratio(row["time_ns.depth_0"] / window_ns)
        mean = "<0.1" if 0 < row["mean"] < 0.05 else f"{row['mean']:,.1f}"
        depth = f"at most {units.count(row['max'])}; none for {none} of the window"
        waiting.append(f"{mean} for {name} ({depth})")
    said = [f"Launches waiting, on average: {', '.join(waiting)}"] if waiting else []
    table = analysis.tables["launch_stretches"]
    if len(table):
        number = f"{units.count(len(table))} launch-bound stretch{'' if len(table) == 1 else 'es'}"
        whole, held = (
            units.duration(int(table[name].sum())) for name in ("duration_ns", "waiting_ns")
        )
        said.append(f"{number}, {whole} in all, {held} of it waiting for launches")
    return ". ".join(said) + "." if said else ""
