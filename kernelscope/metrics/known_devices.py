"""What a trace does not say of its GPUs, where the catalogue or the user does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelscope import schema
from kernelscope.metrics.device_identity import integers, texts
from kernelscope.metrics.health import Finding
from kernelscope.trace import ColumnData, Table, Trace, distinct

_LIMITS = (
    "compute_major", "compute_minor", "sm_count", "max_blocks_per_sm", "max_warps_per_sm",
    "max_registers_per_sm", "max_shared_bytes_per_sm", "max_registers_per_block",
    "max_shared_bytes_per_block_optin",
)  # fmt: skip
_NEEDED = _LIMITS[:7]


def with_known_limits(trace: Trace, gpu: str | None = None) -> tuple[Trace, list[Finding]]:
    """Return the trace with the limits of its GPUs where only the catalogue knows them.

    What was recorded stays. A GPU is known by its compute capability, by its name, or by `gpu`;
    its clock and its memory are not filled in, since peaks say whose these are.

    Parameters
    ----------
    trace : Trace
        Its ``devices`` are completed; with `gpu`, devices that kernels ran on are added.
    gpu : str, optional
        What the user says the GPUs are.

    Raises
    ------
    SelectionError
        If `gpu` is in no catalogue.
    """
    rows = trace.devices.records()
    if gpu is not None:
        rows += list(_undescribed(trace, rows))
    lacking = [row for row in rows if row["device_id"] is not None and _lacks(row)]
    taken = [what for row in lacking for what in _complete(row, gpu)]
    if not taken:
        return trace, []
    names = ", ".join(dict.fromkeys(taken))
    note = Finding(
        "limits_from_catalogue",
        "info",
        len(taken),
        f"What an SM holds is not recorded, and is taken from the catalogue for {names}.",
    )
    return trace.with_tables(devices=_table(rows)), [note]


def _lacks(row: dict[str, Any]) -> bool:
    return any(row[name] is None for name in _NEEDED)


def _undescribed(trace: Trace, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each ordinal with kernels of which the capture says nothing."""
    known = {row["device_id"] for row in rows}
    for ordinal in distinct(trace.kernels["device_id"]).tolist():
        if ordinal not in known:
            empty: dict[str, Any] = dict.fromkeys(schema.DEVICES.names)
            yield empty | {"device_id": ordinal, "identifies": False}


def _complete(row: dict[str, Any], gpu: str | None) -> Iterator[str]:
    """Put into `row` what it lacks; yield what it was taken for, if that is known."""
    from kernelscope.device.matching import limits, match  # noqa: PLC0415 - few traces lack them

    device = match(row, gpu=gpu).device
    found = device.limits if device is not None else limits(row)
    if found is None:
        return
    known = {
        "compute_major": found.compute_major,
        "compute_minor": found.compute_minor,
        "sm_count": None if device is None else device.sm_count,
        "max_blocks_per_sm": found.blocks,
        "max_warps_per_sm": found.threads // 32,
        "max_registers_per_sm": found.registers,
        "max_shared_bytes_per_sm": found.shared_bytes,
        "max_registers_per_block": found.block_registers,
        "max_shared_bytes_per_block_optin": found.block_shared_bytes,
        "name": device.name if gpu is not None and device is not None else None,
    }
    row.update({name: value for name, value in known.items() if row[name] is None})
    capability = f"compute capability {found.compute_major}.{found.compute_minor}"
    yield capability if device is None else device.name


def _table(rows: list[dict[str, Any]]) -> Table:
    columns: dict[str, ColumnData] = {}
    for column in schema.DEVICES.columns:
        values = [row[column.name] for row in rows]
        if column.dtype == "category":
            columns[column.name] = texts(values)
        elif column.dtype == "bool":
            columns[column.name] = np.array(values, dtype=np.bool_)
        else:
            columns[column.name] = integers(values)
    return Table.make(schema.DEVICES, columns)
