"""In which precision do matrix kernels run, and what would tensor cores save?

By the names of kernels: *unknown* is a result. A kernel whose name says FP32 on CUDA cores (FFMA),
on a GPU that has tensor cores for a type that PyTorch and cuDNN would use instead, could be faster;
the bound on what that saves is all of its time, less what its counted FLOPs would take there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from kernelscope.metrics.ceilings import Ceilings
from kernelscope.metrics.decoder_tables.rows import MATRIX
from kernelscope.metrics.shape_work import ShapeWork
from kernelscope.metrics.utilization_results import PRECISION
from kernelscope.trace import Categorical, Table, missing_value

_PATHS = {"FFMA": ("tensor_tf32_fp32", "tensor_fp16_fp32"), "DFMA": ("tensor_fp64_fp64",),
          "HFMA2": ("tensor_fp16_fp32",)}  # fmt: skip
"""Pipe of CUDA cores → peaks of tensor cores for the same work, least loss of precision first."""

_FLOPS = {"FFMA": "fp32_flops", "DFMA": "fp64_flops", "HFMA2": "fp16_flops"}

_MISSING = missing_value(np.dtype(np.int64))


def precision(work: ShapeWork, ceilings: Ceilings) -> Table:
    """How much time do GEMMs, convolutions, attention and RNNs take on each pipe?

    Parameters
    ----------
    work : ShapeWork
        The launch shapes, and what was counted of them.
    ceilings : Ceilings
        The peaks of the GPUs.

    Returns
    -------
    Table
        Under ``utilization_results.PRECISION``, the longest first.
    """
    shapes = work.shapes
    everything = int(shapes["total_ns"].sum())
    groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    decoded = work.decoded
    for row, code in enumerate(shapes["name"].tolist()):
        name = decoded[code]
        if name.operation in MATRIX and not name.auxiliary:
            groups[name.operation or "", name.pipe].append(row)
    rows = [
        _row(work, ceilings, operation, pipe, places, everything)
        for (operation, pipe), places in groups.items()
    ]
    rows.sort(key=lambda row: (-row["total_ns"], row["operation"], row["pipe"] or ""))
    columns: dict[str, Any] = {}
    for column in PRECISION.columns:
        values = [row[column.name] for row in rows]
        if column.dtype == "category":
            columns[column.name] = Categorical.of(values)
        else:
            columns[column.name] = np.array(values, dtype=column.dtype)
    return Table.make(PRECISION, columns)


def _row(  # noqa: PLR0913, PLR0917 - the parts of a row
    work: ShapeWork,
    ceilings: Ceilings,
    operation: str,
    pipe: str | None,
    places: list[int],
    everything: int,
) -> dict[str, Any]:
    shapes = work.shapes
    total = int(shapes["total_ns"][places].sum())
    peaks = [ceilings.of(path) for path in _PATHS.get(pipe or "", ())]
    path = next((peak for peak in peaks if peak is not None), None)
    saving = _MISSING
    if path is not None:
        saving = max(total - round(_at_peak_ns(work, pipe or "", places, path.high)), 0)
    return {
        "operation": operation,
        "pipe": pipe,
        "kernels": len({int(shapes["name"][row]) for row in places}),
        "executions": int(shapes["executions"][places].sum()),
        "total_ns": total,
        "share": total / everything if everything else np.nan,
        "tensor_path": None if path is None else path.name,
        "saving_bound_ns": saving,
    }


def _at_peak_ns(work: ShapeWork, pipe: str, places: list[int], peak: float) -> float:
    """Return how long the FLOPs that were counted would take at a peak; 0 where none were."""
    amount = work.amounts.get(_FLOPS[pipe])
    if amount is None:
        return 0.0
    return float(np.nansum(amount.low[places]) / peak * 1e9)
