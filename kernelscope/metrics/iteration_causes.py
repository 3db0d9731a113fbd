"""What the GPUs of an iteration waited for, beside how long the iteration took."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.iteration_results import ITERATIONS
from kernelscope.metrics.overlap_results import STATES
from kernelscope.schema import TableSchema, integer, text
from kernelscope.trace import Categorical, ColumnData, Table, is_missing, missing_value

ITERATION_CAUSES = TableSchema(
    "iterations",
    "How long does each training iteration take, and what do its GPUs wait for?",
    (
        *ITERATIONS.columns,
        integer(
            "idle_ns",
            "ns",
            "idle time of the GPUs that the iterations' process uses, in the period, summed over "
            "them; missing of a serialised capture",
            optional=True,
        ),
        text("main_idle_cause", "the cause that most of it has, as in `idle`", optional=True),
        integer("main_idle_ns", "ns", "how much of it has that cause", optional=True),
        *(
            integer(
                f"{state}_ns",
                "ns",
                f"{state}_ns of `overlap_by_iteration`, summed over those GPUs; missing where it "
                "is not known",
                optional=True,
            )
            for state in STATES
        ),
    ),
)

_MISSING = missing_value(np.dtype(np.int64))


def iteration_causes(
    tables: Mapping[str, Table], process: int | None, *, serialised: bool = False
) -> Table:
    """What do the GPUs wait for in each iteration?

    Parameters
    ----------
    tables : mapping of str to Table
        ``iterations``, ``idle_by_iteration``, ``overlap_by_iteration`` and ``device_ordinals`` of
        an analysis.
    process : int or None
        The process whose iterations they are.
    serialised : bool
        Whether the profiler ran kernels one by one, so that idle time is not the program's.

    Returns
    -------
    Table
        Under `ITERATION_CAUSES`: the rows of ``iterations``, in their order.
    """
    rows = tables["iterations"]
    ordinals = tables["device_ordinals"]
    own = ordinals["process_id"]
    mine = is_missing(own) if process is None else own == process
    devices = np.unique(ordinals["index"][mine])
    columns: dict[str, ColumnData] = dict(rows.columns)
    if len(rows) and len(devices) and not serialised:
        columns |= _idle(rows["index"], tables["idle_by_iteration"], devices)
    columns |= _overlap(rows["index"], tables["overlap_by_iteration"])
    return Table.make(ITERATION_CAUSES, columns)


def _idle(
    index: npt.NDArray[np.int64], idle: Table, devices: npt.NDArray[np.int64]
) -> dict[str, ColumnData]:
    """Return idle time, its main cause and that cause's part; `index` ascends."""
    idle = idle.take(np.isin(idle["device"], devices) & np.isin(idle["iteration"], index))
    causes = idle.categories("cause")
    width = max(len(causes), 1)
    place = np.searchsorted(index, idle["iteration"]) * width + idle["cause"]
    total = sums_by(place, idle["total_ns"], len(index) * width).reshape(len(index), width)
    main = np.argmax(total, axis=1)
    most = total[np.arange(len(index)), main]
    code = np.where(most > 0, main, -1).astype(np.int32)
    return {
        "idle_ns": total.sum(axis=1),
        "main_idle_cause": Categorical(code, causes),
        "main_idle_ns": np.where(most > 0, most, _MISSING),
    }


def _overlap(index: npt.NDArray[np.int64], overlap: Table) -> dict[str, ColumnData]:
    """Return the states summed over devices; missing where one of them is."""
    overlap = overlap.take(np.isin(overlap["index"], index))
    place = np.searchsorted(index, overlap["index"])
    columns: dict[str, ColumnData] = {}
    for state in STATES:
        values = overlap[f"{state}_ns"]
        absent = is_missing(values)
        total = sums_by(place, np.where(absent, 0, values), len(index))
        known = np.bincount(place, minlength=len(index)) > 0
        known[place[absent]] = False
        columns[f"{state}_ns"] = np.where(known, total, _MISSING)
    return columns
