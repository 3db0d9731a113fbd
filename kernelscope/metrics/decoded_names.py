"""Columns and tables of what kernel names say, decoded once per distinct name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.metrics.decoder_results import DECODED_NAMES, NAME_COLUMNS
from kernelscope.metrics.kernel_decoder import KernelName, decode_all
from kernelscope.metrics.kernels import kernels
from kernelscope.metrics.short_names import short_names
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, absent, missing_value

_TEXTS = {
    "name": "name", "family": "family", "operation": "operation", "pipe": "pipe",
    "pass": "direction", "input_type": "input_type", "accumulate_type": "accumulate_type",
    "output_type": "output_type", "instruction": "instruction", "layout": "layout",
    "architecture": "architecture", "certainty": "certainty", "evidence": "evidence",
}  # fmt: skip
"""Column → field of a KernelName."""

_NUMBERS = {"tile.0": "tile_m", "tile.1": "tile_n", "tile.2": "tile_k", "stages": "stages"}
_ANSWERS = {True: "yes", False: "no", None: None}


def decoded_names(names: Sequence[str]) -> Table:
    """What do names of kernels say of their work?

    Parameters
    ----------
    names : sequence of str, length n
        Names, as C++ or mangled.

    Returns
    -------
    Table
        Under ``decoder_results.DECODED_NAMES``: a row per name in the order given, without
        executions and times.
    """
    found = decode_all(tuple(names))
    columns: dict[str, ColumnData] = {
        column: Categorical.of([getattr(each, field) or None for each in found])
        for column, field in _TEXTS.items()
    }
    columns["short_name"] = Categorical.of(short_names([each.name for each in found]))
    columns["tensor_core"] = Categorical.of([_ANSWERS[each.tensor_core] for each in found])
    columns |= {column: _integers(found, field) for column, field in _NUMBERS.items()}
    for flag in ("split_k", "auxiliary"):
        columns[flag] = np.array([getattr(each, flag) for each in found], dtype=np.bool_)
    for column in ("executions", "total_ns", "share"):
        columns[column] = absent(DECODED_NAMES.column(column), len(found))
    columns["name"] = Categorical.of([each.name for each in found])
    return Table.make(DECODED_NAMES, columns)


def decoded_kernels(trace: Trace) -> Table:
    """What do the names of a trace's kernels say, and how much of its time do they cover?

    Returns
    -------
    Table
        Under ``decoder_results.DECODED_NAMES``: a row per name, longest total first.
    """
    totals = kernels(trace)
    table = decoded_names([name or "" for name in totals.texts("name")])
    measured = {column: totals[column] for column in ("executions", "total_ns", "share")}
    return Table.make(DECODED_NAMES, {**table.columns, **measured})


def _integers(found: Sequence[KernelName], field: str) -> Array:
    missing = missing_value(np.dtype(np.int32))
    most = np.iinfo(np.int32).max
    values = [getattr(each, field) for each in found]
    return np.array(
        [missing if value is None else min(value, most) for value in values], dtype=np.int32
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a trace the decoder knows.

    Attributes
    ----------
    what : str
        ``family``, ``operation`` or ``pipe``.
    names, known_names : int
        Distinct names, and those of which it is known.
    total_ns, known_ns : int
        Their time; 0 where no trace was given.
    """

    what: str
    names: int
    known_names: int
    total_ns: int
    known_ns: int


def coverage(table: Table) -> tuple[Coverage, ...]:
    """Of how many names, and of how much time, are family, operation and pipe known?

    Parameters
    ----------
    table : Table
        Under ``decoder_results.DECODED_NAMES``.
    """
    times = [value or 0 for value in table.values("total_ns")]
    said: list[Coverage] = []
    for column in NAME_COLUMNS:
        known = [value is not None for value in table.texts(column.name)]
        known_ns = sum(ns for ns, is_known in zip(times, known, strict=True) if is_known)
        said.append(Coverage(column.name, len(known), sum(known), sum(times), known_ns))
    return tuple(said)


def document(table: Table) -> dict[str, Any]:
    """Return the shares of :func:`coverage` as JSON holds them."""
    return {
        each.what: {
            "names": each.names,
            "known_names": each.known_names,
            "total_ns": each.total_ns,
            "known_ns": each.known_ns,
        }
        for each in coverage(table)
    }
