"""GPUs on a page, in JSON and as tables: the catalogue, one of its GPUs, and those of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.text import Text

from kernelscope import units
from kernelscope.device import Device, Peak
from kernelscope.device.matching import Match
from kernelscope.metrics.device_identity import integers, texts
from kernelscope.report.document import SCHEMA_VERSION, Row
from kernelscope.report.layout import (
    Figures,
    Page,
    definitions,
    grid,
    heading,
    paragraph,
)
from kernelscope.report.text_lists import more
from kernelscope.schema import TableSchema, integer, real, text
from kernelscope.trace import Table

CATALOGUE = TableSchema(
    "catalogue",
    "Which GPUs does the catalogue hold?",
    (
        text("name", "as CUDA reports it"),
        text("chip", "the chip", optional=True),
        text("architecture", "its generation"),
        text("capability", "compute capability"),
        integer("sm_count", "count", "multiprocessors"),
        integer("boost_hz", "Hz", "the clock of lanes at most"),
        integer("tensor_hz", "Hz", "the clock of tensor cores at most"),
        integer("memory_bytes", "bytes", "device memory", optional=True),
        integer("memory_bytes_per_s", "bytes/s", "its rate", optional=True),
        integer("l2_bytes", "bytes", "L2 cache", optional=True),
        real("fp32_per_s", "FLOP/s", "peak of FP32 outside tensor cores"),
        real("fp64_per_s", "FLOP/s", "peak of FP64 outside tensor cores"),
        real("tensor_fp16_fp32_per_s", "FLOP/s", "dense peak of FP16 summed in FP32"),
    ),
)

PEAKS_OF_ONE = TableSchema(
    "peaks",
    "What can the GPU do at most?",
    (
        text("gpu", "the GPU"),
        text("pipe", "fp32, fp64, fp16, bf16; tensor_ with input and accumulate type"),
        text("instruction", "the machine instruction that reaches it"),
        real("per_s", "see unit", "the peak, dense"),
        text("unit", "FLOP/s, or OP/s of integers; an FMA is two"),
        integer("per_clock", "count", "of one multiprocessor, per clock"),
        integer("clock_hz", "Hz", "the clock that it is reckoned at"),
        text("clock_basis", "which clock that is"),
        text(
            "confidence",
            "A several sources agree, or the device says so; B one that fits; C uncertain",
        ),
        real("published_per_s", "see unit", "what is published for the product"),
        text("differs", "why that is another figure, by more than 1 %", optional=True),
        text("sources", "where the rate per clock is from"),
    ),
)

_FIGURES: tuple[tuple[str, str, Any], ...] = (
    ("sm_count", "multiprocessors", units.count),
    ("base_mhz", "base clock", lambda mhz: units.frequency(mhz * 1e6)),
    ("boost_mhz", "boost clock", lambda mhz: units.frequency(mhz * 1e6)),
    ("max_mhz", "maximum clock", lambda mhz: units.frequency(mhz * 1e6)),
    ("tensor_mhz", "clock of tensor cores", lambda mhz: units.frequency(mhz * 1e6)),
    ("memory_gb", "memory", lambda gb: f"{gb:g} GB"),
    ("memory_gb_per_s", "memory bandwidth", lambda gb: units.rate(gb * 1e9)),
    ("l2_mib", "L2 cache", lambda mib: f"{mib:g} MiB"),
    ("l2_bytes_per_clock", "L2 bandwidth", lambda rate: f"{rate:,} bytes per clock"),
    ("tdp_w", "power", lambda watts: f"{watts:g} W"),
    ("link", "link", str),
)


_TRUST = "Trust: A several sources agree, or the device says so; B one that fits; C uncertain."


def listed(devices: Sequence[Device]) -> list[Device]:
    """Return GPUs the newest first: by compute capability, then by what they do."""
    return sorted(devices, key=_newest)


def _newest(device: Device) -> tuple[float, ...]:
    limits = device.limits
    return (-limits.compute_major, -limits.compute_minor, -device.peak("fp32").per_s)


def catalogue(devices: Sequence[Device]) -> Table:
    """Return GPUs as a table."""
    columns: dict[str, Any] = {}
    for column in CATALOGUE.columns:
        values = [
            _peak_of(device, column.name.removesuffix("_per_s"))
            if column.dtype == "float64"
            else getattr(device, column.name)
            for device in devices
        ]
        columns[column.name] = _column(column.dtype, values)
    return Table.make(CATALOGUE, columns)


def peak_table(devices: Sequence[Device]) -> Table:
    """Return the peaks of GPUs as a table."""
    rows = [
        {**asdict(peak), "gpu": device.name, "pipe": peak.key,
         "sources": "; ".join(peak.sources), "differs": peak.differs or None}
        for device in devices
        for peak in device.peaks
    ]  # fmt: skip
    columns = {
        column.name: _column(column.dtype, [row[column.name] for row in rows])
        for column in PEAKS_OF_ONE.columns
    }
    return Table.make(PEAKS_OF_ONE, columns)


def _column(dtype: str, values: list[Any]) -> Any:
    if dtype == "category":
        return texts(values)
    return np.array(values, dtype=np.float64) if dtype == "float64" else integers(values)


def _peak_of(device: Device, key: str) -> float | None:
    return next((peak.per_s for peak in device.peaks if peak.key == key), None)


def document(devices: Sequence[Device]) -> Row:
    """Return GPUs as dictionaries: every figure with its confidence and sources."""
    return {"schema_version": SCHEMA_VERSION, "devices": [_of_device(each) for each in devices]}


def matches_document(file: str, found: Sequence[tuple[Row, Match]]) -> Row:
    """Return what a trace's GPUs were taken for."""
    return {
        "schema_version": SCHEMA_VERSION,
        "file": file,
        "devices": [
            {
                "recorded": {
                    key: value
                    for key, value in row.items()
                    if value is not None and key != "identifies"
                },
                "matched_by": match.matched_by,
                "why": match.why,
                "doubts": list(match.doubts),
                "device": None if match.device is None else _of_device(match.device),
            }
            for row, match in found
        ],
    }


def _of_device(device: Device) -> Row:
    limits = device.limits
    return {
        "name": device.name,
        "also": list(device.also),
        "chip": device.chip,
        "architecture": device.architecture,
        "capability": device.capability,
        "basis": device.basis,
        "note": device.note or None,
        "sm_count": device.sm_count,
        "boost_hz": device.boost_hz,
        "tensor_hz": device.tensor_hz,
        "memory_bytes": device.memory_bytes,
        "memory_bytes_per_s": device.memory_bytes_per_s,
        "l2_bytes": device.l2_bytes,
        "l2_bytes_per_s": device.l2_bytes_per_s,
        "sm_limits": {
            "threads": limits.threads,
            "blocks": limits.blocks,
            "registers": limits.registers,
            "block_registers": limits.block_registers,
            "shared_bytes": limits.shared_bytes,
            "shared_sizes": list(limits.shared_sizes),
            "block_shared_bytes": limits.block_shared_bytes,
            "reserved_shared_bytes": limits.reserved_shared_bytes,
        },
        "peaks": [asdict(peak) | {"sources": list(peak.sources)} for peak in device.peaks],
        "figures": {
            key: {
                "value": figure.value,
                "confidence": figure.confidence,
                "sources": list(figure.sources),
            }
            for key, figure in device.figures.items()
        },
    }


def list_page(devices: Sequence[Device], page: Page) -> list[Text]:
    """Return the catalogue for people."""
    shown = devices[: page.shown(len(devices))]
    figures = [
        Figures("compute", [each.capability for each in shown]),
        Figures("SMs", [units.count(each.sm_count) for each in shown], 2),
        Figures("boost", [units.frequency(each.boost_hz) for each in shown], 4),
        Figures("FP32", [units.operations(_peak_of(each, "fp32")) for each in shown], style="bold"),
        Figures(
            "tensor FP16",
            [units.operations(_peak_of(each, "tensor_fp16_fp32")) for each in shown],
            1,
        ),
        Figures("memory", [units.rate(each.memory_bytes_per_s) for each in shown], 3),
    ]
    return [
        *_first_heading(page, "GPUs of the catalogue", "dense peaks; FP16 summed in FP32"),
        *grid(page, figures, "name", [each.name for each in shown]),
        *more(page, len(shown), len(devices), "GPU", "--top 0 shows all"),
        Text(),
        *paragraph(page, "Next: kernelscope devices NAME shows one with its sources.", style="dim"),
    ]


def device_page(device: Device, page: Page) -> list[Text]:
    """Return one GPU for people: its figures with their sources, and its peaks."""
    about = f"{device.chip or 'chip not known'}, {device.architecture}, compute {device.capability}"
    lines = _first_heading(page, device.name, about)
    if device.also:
        lines += paragraph(page, f"Also called {', '.join(device.also)}.", style="dim")
    if device.note:
        lines += paragraph(page, device.note, mark="! ")
    sources = _sources(device)
    lines += definitions(page, [*_facts(device, sources), *_sm_facts(device)])
    lines += peak_lines(device, page)
    if sources:
        lines += heading(page, "Sources")
        for number, source in enumerate(sources, start=1):
            lines += paragraph(page, source, mark=f"{number:>2} ")
    return lines


def _sources(device: Device) -> list[str]:
    """Return the sources of a GPU's figures, each once."""
    shown = [device.figures[key] for key, *_ in _FIGURES if key in device.figures]
    return list(dict.fromkeys(source for figure in shown for source in figure.sources))


def _facts(device: Device, sources: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for key, words, shown in _FIGURES:
        figure = device.figures.get(key)
        if figure is not None:
            numbers = ", ".join(str(sources.index(each) + 1) for each in figure.sources)
            found.append((words, f"{shown(figure.value)}  {figure.confidence} [{numbers}]"))
    return found


def _sm_facts(device: Device) -> list[tuple[str, str]]:
    limits = device.limits
    sizes = ", ".join(f"{size >> 10}" for size in limits.shared_sizes)
    return [
        (
            "a multiprocessor holds",
            f"{limits.threads:,} threads, {limits.blocks} blocks, {limits.registers:,} registers, "
            f"{sizes} KiB of shared memory",
        ),
        (
            "a block has at most",
            f"{limits.block_registers:,} registers, {limits.block_shared_bytes >> 10} KiB of "
            "shared memory",
        ),
    ]


def peak_lines(device: Device, page: Page) -> list[Text]:
    """Return the peaks of a GPU for people."""
    peaks = device.peaks
    figures = [
        Figures("peak", [units.operations(p.per_s, p.unit) for p in peaks], style="bold"),
        Figures("published", [_published(p) for p in peaks], 2),
        Figures("clock", [units.frequency(p.clock_hz) for p in peaks], 3),
        Figures("per SM", [units.count(p.per_clock) for p in peaks], 4),
        Figures("by", [p.instruction for p in peaks], 1),
        Figures("trust", [p.confidence for p in peaks]),
    ]
    lines = [
        *heading(page, "Peaks", "dense; per SM and clock"),
        *grid(page, figures, "pipe", [pipe_in_words(p) for p in peaks]),
    ]
    for peak in peaks:
        if peak.differs:
            lines += paragraph(page, f"{pipe_in_words(peak)}: {peak.differs}.", mark="* ")
    if device.tensor == "unknown":
        lines += paragraph(page, "Tensor cores: not known.", style="dim")
    bases = dict.fromkeys(f"{p.clock_basis}" for p in peaks)
    said = f"Peak = rate per clock × {device.sm_count} SMs × clock: {', '.join(bases)}. {_TRUST}"
    return [*lines, *paragraph(page, said, style="dim")]


def _first_heading(page: Page, title: str, note: str = "") -> list[Text]:
    return heading(page, title, note)[1:]  # no blank line above a page


def _published(peak: Peak) -> str:
    if peak.published_per_s is None:
        return units.MISSING
    mark = "*" if peak.differs else ""
    return f"{mark}{units.operations(peak.published_per_s, peak.unit)}"


def pipe_in_words(peak: Peak) -> str:
    """Return what people call a pipe: ``FP16 → FP32, tensor cores``."""
    if not peak.tensor:
        return peak.key.upper()
    if peak.input_type == peak.accumulate_type:
        return f"{peak.input_type.upper()}, tensor cores"
    return f"{peak.input_type.upper()} → {peak.accumulate_type.upper()}, tensor cores"


def matches_page(found: Sequence[tuple[Row, Match]], page: Page) -> list[Text]:
    """Return for people what a trace's GPUs were taken for, and why."""
    if not found:
        return [
            *_first_heading(page, "GPUs of the trace"),
            *paragraph(page, "The trace describes no GPU: --gpu NAME says which it was."),
        ]
    lines: list[Text] = []
    for row, match in found:
        ordinal = "" if row["device_id"] is None else f"CUDA {row['device_id']}"
        title = row["name"] or "GPU without a name"
        lines += (heading if lines else _first_heading)(page, title, ordinal)
        named = match.device is not None and match.matched_by != "computed"
        taken = f"Taken for {match.device.name}: " if named and match.device else ""
        lines += paragraph(page, f"{taken}{match.why}.")
        for doubt in match.doubts:
            lines += paragraph(page, f"{doubt}.", mark="! ")
        if match.device is not None:
            memory = units.rate(match.device.memory_bytes_per_s)
            lines += paragraph(page, f"Memory: {memory}.")
            lines += peak_lines(match.device, page)
    return lines
