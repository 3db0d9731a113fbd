"""What the GPUs of a trace can do at most: the denominators of utilization and of rooflines."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelscope.device.matching import Match, match
from kernelscope.metrics.device_identity import Identity, identify, integers, texts
from kernelscope.metrics.health import Finding
from kernelscope.metrics.peak_results import PEAKS
from kernelscope.trace import Table, Trace

MEMORIES = (("dram", "memory_bytes_per_s"), ("l2", "l2_bytes_per_s"))

Row = dict[str, Any]


def peaks(
    trace: Trace,
    identity: Identity | None = None,
    *,
    gpu: str | None = None,
    clock_hz: int | None = None,
) -> Table:
    """What can each GPU do at most?

    As :func:`find_peaks`, without what it found doubtful.
    """
    return find_peaks(trace, identity, gpu=gpu, clock_hz=clock_hz)[0]


def find_peaks(
    trace: Trace,
    identity: Identity | None = None,
    *,
    gpu: str | None = None,
    clock_hz: int | None = None,
) -> tuple[Table, list[Finding]]:
    """Find what each GPU can do at most, and what is doubtful of that.

    Parameters
    ----------
    trace : Trace
        Its devices are read.
    identity : Identity, optional
        Of the same trace, where it was found before.
    gpu : str, optional
        What the user says the GPUs are.
    clock_hz : int, optional
        The clock at which the user wants peaks reckoned.

    Returns
    -------
    table : Table
        Under ``peak_results.PEAKS``: a row for each pipe and memory of each GPU. None of a GPU
        that nobody knows.
    findings : list of Finding
        Why a GPU has none, and what was not plain.

    Raises
    ------
    SelectionError
        If `gpu` is in no catalogue.
    """
    known = identity or identify(trace)
    first: dict[int, dict[str, Any]] = {}
    for index, described in zip(known.index, known.described, strict=True):
        first.setdefault(index, described)
    found = {index: match(first[index], gpu=gpu, clock_hz=clock_hz) for index in sorted(first)}
    rows = [row for index, each in found.items() for row in _rows(index, each)]
    return _table(rows), _findings(found)


def _rows(index: int, found: Match) -> list[Row]:
    device = found.device
    if device is None:
        return []
    common = {"device": index, "gpu": device.name, "matched_by": found.matched_by}
    rows = [
        common
        | {
            "pipe": peak.key,
            "instruction": peak.instruction,
            "input_type": peak.input_type,
            "accumulate_type": peak.accumulate_type,
            "per_s": peak.per_s,
            "unit": peak.unit,
            "clock_hz": peak.clock_hz,
            "clock_basis": peak.clock_basis,
            "confidence": peak.confidence,
        }
        for peak in device.peaks
    ]
    for pipe, attribute in MEMORIES:
        value = getattr(device, attribute)
        if value is not None:
            rows.append(common | {"pipe": pipe, "per_s": float(value), "unit": "bytes/s"})
    return rows


def _table(rows: list[Row]) -> Table:
    columns: dict[str, Any] = {}
    for column in PEAKS.columns:
        values = [row.get(column.name) for row in rows]
        if column.dtype == "category":
            columns[column.name] = texts(values)
        elif column.dtype == "float64":
            columns[column.name] = np.array(values, dtype=np.float64)
        else:
            columns[column.name] = integers(values)
    return Table.make(PEAKS, columns)


def _findings(found: dict[int, Match]) -> list[Finding]:
    unknown = [each.why for each in found.values() if each.device is None]
    doubtful = [
        "; ".join([each.why, *each.doubts])
        for each in found.values()
        if each.device is not None and (each.doubts or each.matched_by in ("specs", "computed"))
    ]
    return [
        Finding(code, "info", said.count(why), f"{words}: {why}.")
        for code, said, words in (
            ("peaks_unknown", unknown, "No peak of the GPU is known"),
            ("peaks_doubtful", doubtful, "The GPU's peaks"),
        )
        for why in dict.fromkeys(said)
    ]
