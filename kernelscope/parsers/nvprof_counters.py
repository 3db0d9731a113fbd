"""Metric values in an nvprof database → the canonical `counters` table.

A value is eight bytes, and nothing in its row says whether they are a double or an unsigned
integer: the kind of the metric does, which is known by name for some chips. Of a metric that is
not known, all its values together tell: as an integer a double is at least 2⁵², which no count
reaches, and a count read as a double lies below 10⁻³⁰⁰. Where neither holds there is no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope import schema
from kernelscope.parsers import nvprof_names as names
from kernelscope.parsers.convert import integers
from kernelscope.parsers.nsys_events import present
from kernelscope.parsers.nvprof_database import Database
from kernelscope.parsers.nvprof_tables import metrics_of
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    absent,
    distinct,
    is_missing,
    missing_value,
    stacked,
    widened,
)

_ABSENT = missing_value(np.dtype(np.int64))
_VALUE_BYTES = 8
_MOST_ID = (1 << 32) - 1  # CUpti_MetricID has 32 bits
_OVERFLOW, _INVALID = 1, 2
_LEAST_DOUBLE = 1 << 52  # the bits of the smallest normal double, as an integer
_SENSIBLE = (1e-30, 1e30)
_DOUBLE, _WHOLE, _UNKNOWN = 0, 1, 2
_NUMBERED = "metric "
_PROBLEMS = ("overflow", "invalid", "unknown_kind")

_OF_KERNEL = (
    "context_id", "stream_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
)  # fmt: skip


def counters_table(database: Database, kernels: Table, devices: Table) -> Table:
    """Return the metric values of every kernel execution, those per SM below the others.

    Parameters
    ----------
    database : Database
        The open database.
    kernels, devices : Table
        The executions that the values are of, by correlation id, and their GPUs.
    """
    parts = [
        part
        for table in (names.METRIC, names.METRIC_INSTANCE)
        if (part := _part(database, table, kernels, devices)) is not None
    ]
    if not parts:
        return Table.empty(schema.COUNTERS)
    return parts[0] if len(parts) == 1 else stacked(parts[0], parts[1])


def _part(database: Database, table: str, kernels: Table, devices: Table) -> Table | None:
    read = database.read(table, ("id", "correlationId", "flags", "instance"))
    numbers = {name: integers(raw) for name, raw in read.columns.items()}
    blobs = database.file.read_bytes(table, "value", _VALUE_BYTES)
    ids = numbers.get("id")
    if not read.rows or ids is None or blobs is None or len(blobs.length) != read.rows:
        return None
    execution = _executions(kernels, numbers.get("correlationId"), read.rows)
    labels = _labels(execution, kernels, devices, widened(ids))
    bits, double = blobs.numbers("<u8"), blobs.numbers("<f8")
    kinds = labels.kinds(bits, double)[labels.place]
    problem = _problems(numbers.get("flags"), blobs.length == _VALUE_BYTES, kinds)
    sound = problem < 0
    value = np.where(kinds == _DOUBLE, double, bits.astype(np.float64))
    value /= np.where(labels.percent, 100.0, 1.0)[labels.place]
    exact = sound & (kinds == _WHOLE) & (bits < 1 << 63)
    columns = _of_executions(kernels, execution) | present(
        {
            "correlation_id": numbers.get("correlationId"),
            "metric": labels.names,
            "metric_id": ids,
            "value": np.where(sound, value, np.nan),
            "value_int": np.where(exact, bits.view(np.int64), _ABSENT),
            "rounding": np.where(sound, 0.0, np.nan),
            "unit": labels.units,
            "statistic": Categorical.constant("value", read.rows),
            "executions": np.broadcast_to(np.int32(1), (read.rows,)),
            "instance": numbers.get("instance"),
            "problem": Categorical(problem, _PROBLEMS),
            "source": Categorical.constant("nvprof", read.rows),
        }
    )
    return Table.make(schema.COUNTERS, columns)


def _executions(kernels: Table, correlation: Array | None, rows: int) -> npt.NDArray[np.int64]:
    """Return the row of `kernels` that each value is of, −1 where there is none."""
    if correlation is None or not len(kernels):
        return np.full(rows, -1, np.int64)
    theirs = widened(kernels["correlation_id"])
    order = np.argsort(theirs, kind="stable")
    wanted = widened(correlation)
    place = np.minimum(np.searchsorted(theirs[order], wanted), len(order) - 1)
    row = order[place]
    return np.where((theirs[row] == wanted) & ~is_missing(wanted), row, -1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Labels:
    """What the metrics are called, and what each of them is.

    `place` numbers the distinct (compute capability, id) pairs of the rows; `known` is the kind
    of each pair, −1 where the values themselves must tell; `percent`, whether it is a percentage.
    """

    names: Categorical
    units: Categorical
    place: npt.NDArray[np.intp]
    known: npt.NDArray[np.int8]
    percent: npt.NDArray[np.bool_]

    def kinds(self, bits: Array, double: Array) -> npt.NDArray[np.int8]:
        """Return the kind of each pair, by its metric or by all its values."""
        count = len(self.known)
        some = bits != 0
        whole = bits < _LEAST_DOUBLE
        with np.errstate(invalid="ignore"):
            size = np.abs(double)
            sensible = (size >= _SENSIBLE[0]) & (size <= _SENSIBLE[1])
        not_whole = np.bincount(self.place[some & ~whole], minlength=count)
        not_double = np.bincount(self.place[some & ~sensible], minlength=count)
        told = np.where(not_whole == 0, _WHOLE, np.where(not_double == 0, _DOUBLE, _UNKNOWN))
        return np.where(self.known >= 0, self.known, told).astype(np.int8)


def _labels(
    execution: npt.NDArray[np.int64], kernels: Table, devices: Table, ids: npt.NDArray[np.int64]
) -> _Labels:
    capabilities, chip = _chips(execution, kernels, devices)
    chips = len(capabilities) + 1  # those, and a GPU that is not known: −1
    keys = np.clip(ids, 0, _MOST_ID) * chips + chip + 1
    seen = distinct(keys)
    place = np.searchsorted(seen, keys)
    pairs = [divmod(key, chips) for key in seen.tolist()]
    metrics = [
        metrics_of(capabilities[code - 1]).get(number) if code else None for number, code in pairs
    ]
    called = [
        f"{_NUMBERED}{number}" if metric is None else metric.name
        for (number, _), metric in zip(pairs, metrics, strict=True)
    ]
    units = [None if metric is None else names.UNITS[metric.kind] for metric in metrics]
    known = [
        -1 if metric is None else _WHOLE if metric.kind in names.WHOLE_KINDS else _DOUBLE
        for metric in metrics
    ]
    percent = [metric is not None and metric.kind == names.PERCENT for metric in metrics]
    return _Labels(
        _spread(called, place),
        _spread(units, place),
        place,
        np.array(known, dtype=np.int8),
        np.array(percent, dtype=np.bool_),
    )


def _spread(texts: list[Any], place: npt.NDArray[np.intp]) -> Categorical:
    short = Categorical.of(texts)
    return Categorical(short.codes[place], short.categories)


def _chips(
    execution: npt.NDArray[np.int64], kernels: Table, devices: Table
) -> tuple[list[tuple[int, int]], npt.NDArray[np.int64]]:
    """Return the compute capabilities of the GPUs, and which of them counted each value.

    A value of no known execution is taken to be of the GPU, where all are of one capability.
    """
    by_device = {
        device: (major, minor)
        for device, major, minor in zip(
            *(devices.values(name) for name in ("device_id", "compute_major", "compute_minor")),
            strict=True,
        )
        if None not in (device, major, minor)
    }
    capabilities = sorted(set(by_device.values()))
    only = 0 if len(capabilities) == 1 else -1
    chip = np.full(len(execution), only, np.int64)
    found = execution >= 0
    if found.any() and len(kernels):
        device = widened(kernels["device_id"])[execution[found]]
        codes = {d: capabilities.index(c) for d, c in by_device.items()}
        seen = distinct(device)
        of_seen = np.array([codes.get(d, -1) for d in seen.tolist()], np.int64)
        chip[found] = of_seen[np.searchsorted(seen, device)]
    return capabilities, chip


def _problems(
    flags: Array | None, whole: npt.NDArray[np.bool_], kinds: npt.NDArray[np.int8]
) -> npt.NDArray[np.int32]:
    problem = np.where(kinds == _UNKNOWN, 2, -1).astype(np.int32)
    problem[~whole] = 1
    if flags is not None:
        problem[(flags & _INVALID) != 0] = 1
        problem[(flags & _OVERFLOW) != 0] = 0
    return problem


def _of_executions(kernels: Table, execution: npt.NDArray[np.int64]) -> dict[str, ColumnData]:
    """Return what is said of the kernels that the values are of."""
    found = execution >= 0
    columns: dict[str, ColumnData] = {}
    for name in ("process_id", "device_id", *_OF_KERNEL):
        column = schema.COUNTERS.column(name)
        if not len(kernels):
            columns[name] = absent(column, len(execution))
            continue
        values = kernels[name]
        columns[name] = np.where(
            found, values[execution], values.dtype.type(missing_value(values.dtype))
        )
    codes = kernels["name"][execution] if len(kernels) else execution
    columns["kernel_name"] = Categorical(
        np.where(found, codes, -1).astype(np.int32), kernels.categories("name")
    )
    return columns


def unnamed_metrics(counters: Table) -> int:
    """Return how many metrics of a table have a number instead of a name."""
    return sum(name.startswith(_NUMBERED) for name in counters.categories("metric"))
