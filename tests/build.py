"""Traces from five rows: pleasant defaults, so that a test states only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelscope import schema
from kernelscope.schema import TableSchema
from kernelscope.trace import Capture, Table, Trace

A100: dict[str, Any] = {
    "device_id": 0,
    "identifies": False,
    "name": "NVIDIA A100-SXM4-40GB",
    "compute_major": 8,
    "compute_minor": 0,
    "sm_count": 108,
    "max_blocks_per_sm": 32,
    "max_warps_per_sm": 64,
    "max_registers_per_sm": 65536,
    "max_shared_bytes_per_sm": 167936,
    "threads_per_warp": 32,
}


def table(table_schema: TableSchema, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Make a table of dictionaries; what a row does not say is missing."""
    return Table.of_records(table_schema, rows)


def kernels(*rows: tuple[int, int] | tuple[int, int, str], **common: Any) -> Table:
    """Kernels ``(start, end)`` or ``(start, end, name)`` of process 1 on device 0, stream 7."""
    return table(schema.KERNELS, [_event(row, "name", "kernel", common) for row in rows])


def copies(*rows: tuple[int, int] | tuple[int, int, str], **common: Any) -> Table:
    """Copies ``(start, end)`` or ``(start, end, kind)`` of process 1 on device 0, stream 7."""
    return table(schema.COPIES, [_event(row, "kind", "HtoD", common) for row in rows])


def api_calls(*rows: tuple[int, int] | tuple[int, int, str], **common: Any) -> Table:
    """Runtime calls ``(start, end)`` or ``(start, end, name)`` of process 1, thread 1."""
    base = {"thread_id": 1, "kind": "runtime", **common}
    return table(schema.API_CALLS, [_event(row, "name", "cudaLaunchKernel", base) for row in rows])


def devices(*rows: Mapping[str, Any]) -> Table:
    """Devices, each an A100 unless the row says otherwise."""
    return table(schema.DEVICES, [{**A100, **row} for row in rows])


def joined(*tables: Table) -> Table:
    """The rows of several tables of one schema."""
    return table(tables[0].schema, [row for each in tables for row in each.records()])


def trace(**tables: Table) -> Trace:
    """A trace of the given tables."""
    return Trace(Capture("built", "test", recorded=tuple(tables)), **tables)


def _event(
    row: tuple[Any, ...], text: str, default: str, common: Mapping[str, Any]
) -> dict[str, Any]:
    base = {"process_id": 1, "device_id": 0, "context_id": 1, "stream_id": 7, text: default}
    start, end, *rest = row
    named = {text: rest[0]} if rest else {}
    return {**base, **common, "start_ns": start, "end_ns": end, **named}
