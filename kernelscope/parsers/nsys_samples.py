"""Samples of the GPUs' own counters, as ``nsys profile --gpu-metrics-devices`` records them.

Three generations of the export, of which the later two are read:

- Up to 2023.3 a row of ``GENERIC_EVENTS`` holds all counters of a sample as JSON, beside events of
  every other kind. Scale and completeness of that text are not documented: a warning says that
  samples are there and were not read, and that exporting the report again brings them.
- ``GPU_METRICS(timestamp, typeId, metricId, value)``, named by ``TARGET_INFO_GPU_METRICS(typeId,
  sourceId, typeName, metricId, metricName)``: "metricId … not assumed to be stable".
- The newest have ``rawTimestamp`` beside ``timestamp``: the profiler's own clock, not wanted here.

`value` is an INTEGER in all. There may be 10⁸ rows, so they are read when they are asked for.

Sources: "SQLite Schema Reference" of the Nsight Systems User Guide, as public copies of it hold it
(2024 and 2026); the low byte of ``typeId`` as NVIDIA's own recipe gpu_metric_util_map takes it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernelscope import schema
from kernelscope.errors import DamagedFileError
from kernelscope.parsers import nsys_names as names
from kernelscope.parsers.convert import coded, integers
from kernelscope.parsers.nsys_export import Export
from kernelscope.parsers.quarantine import LATEST_NS
from kernelscope.parsers.sqlite import Numbers, RawColumn, SqliteFile
from kernelscope.trace import Array, Categorical, Table, is_missing, missing_value

PROBLEMS = ("no_time", "time_outside", "no_number", "negative", "above_peak")
"""Why a sample is in no figure; its value is a count or a share, and there are none below zero."""

_PERCENT = "%]"
_WANTED = ("timestamp", "typeId", "metricId", "value")
_SPELLED = ("SM Active", "SMs Active", "GR Active")
"""Counters of every set: a description of generic events that names one is of GPU samples."""


def gpu_samples_table(export: Export) -> Table:
    """Return the samples, which are read when any of their columns is first asked for."""
    if names.GPU_METRICS not in export.file.tables:
        return Table.empty(schema.GPU_SAMPLES)
    file, named = export.file, _metric_names(export)
    return Table.later(schema.GPU_SAMPLES, lambda: _read(file, named))


def samples_lacking(export: Export) -> tuple[str, ...]:
    """Say where GPUs were to be sampled, and the export holds no sample that can be read."""
    if names.GPU_METRIC_NAMES in export.file.tables:
        if not _metric_names(export) or export.file.has_rows(names.GPU_METRICS):
            return ()
        return (
            "GPU metrics were to be sampled, and the export holds no sample: the user may not "
            "read the counters (ERR_NVGPUCTRPERM: sampling needs root, or the driver's setting "
            "NVreg_RestrictProfilingToAdminUsers=0), or another program held them.",
        )
    if not {names.GENERIC_EVENTS, names.GENERIC_TYPES} <= set(export.file.tables):
        return ()
    described = export.read(names.GENERIC_TYPES, ("data",)).columns.get("data")
    texts = described.categories if isinstance(described, Categorical) else ()
    if not any(name in text for text in texts for name in _SPELLED):
        return ()
    return (
        "GPU metrics were sampled, but this export holds them as JSON in GENERIC_EVENTS, as "
        "Nsight Systems up to 2023.3 wrote them: they were not read. Export the report again with "
        "Nsight Systems 2023.4 or newer.",
    )


def _metric_names(export: Export) -> dict[tuple[int, int], str]:
    """Return (typeId, metricId) → the counter's name; ids of two GPUs may differ."""
    read = export.read(names.GPU_METRIC_NAMES, ("typeId", "metricId", "metricName"))
    kinds, ids = (integers(read.columns.get(name)) for name in ("typeId", "metricId"))
    called = read.columns.get("metricName")
    if kinds is None or ids is None or not isinstance(called, Categorical):
        return {}
    rows = zip(kinds.tolist(), ids.tolist(), called.codes.tolist(), strict=True)
    return {(kind, number): called.categories[code] for kind, number, code in rows if code >= 0}


def _read(file: SqliteFile, named: Mapping[tuple[int, int], str]) -> Table:
    if file.stamp is not None and not file.stamp.holds(file.path):
        raise DamagedFileError(
            f"{file.path} changed after it was opened: its GPU samples cannot be read any more.",
            "Read the file again.",
        )
    read = file.read(names.GPU_METRICS, _WANTED)
    if not read.rows:
        return Table.empty(schema.GPU_SAMPLES)
    time, kind, number, value = (_column(read.columns.get(name), read.rows) for name in _WANTED)
    metric = _metrics(kind, number, named)
    return Table.make(
        schema.GPU_SAMPLES,
        {
            "time_ns": time,
            "source": coded(kind, lambda each: f"{each & ((1 << 64) - 1):#018x}"),
            "gpu_id": _gpu(kind),
            "metric": metric,
            "value": value,
            "problem": _problem(time, value, metric),
        },
    )


def _column(raw: RawColumn | None, rows: int) -> Array:
    """Return a column of whole numbers; one that is absent, and fractions, are missing."""
    if isinstance(raw, Numbers) and raw.values.dtype.kind == "f":
        whole = np.floor(raw.values) == raw.values
        raw = Numbers(raw.values, ~whole if raw.null is None else raw.null | ~whole)
    values = integers(raw)
    if values is None:
        return np.broadcast_to(np.int32(missing_value(np.dtype(np.int32))), (rows,))
    return values


def _gpu(kind: Array) -> Array:
    """Return the GPU of each sample, one stored number where it is the same for all."""
    if kind.min() == kind.max():
        return np.broadcast_to(_gpu_of(kind[:1]), kind.shape)
    return _gpu_of(kind)


def _gpu_of(kind: Array) -> Array:
    gpu = (kind & names.GPU_ID_MASK).astype(np.int32)
    gpu[is_missing(kind)] = missing_value(gpu.dtype)
    return gpu


def _metrics(kind: Array, number: Array, named: Mapping[tuple[int, int], str]) -> Categorical:
    """Return the name of each sample's counter, ``metric N`` where nothing names it."""
    if kind.min() == kind.max():
        only = int(kind[0])
        return coded(_filled(number), lambda each: named.get((only, each), f"metric {each}"))
    kinds = np.unique(kind)
    width = max(int(number.max()) + 1, 1)
    place = np.searchsorted(kinds, kind)
    place *= width
    place += np.maximum(number, 0)

    def called(each: int) -> str:
        which, metric = divmod(each, width)
        return named.get((int(kinds[which]), metric), f"metric {metric}")

    return coded(place, called)


def _filled(number: Array) -> Array:
    """Return ids with 0 where there is none: such a sample has no value either."""
    return np.maximum(number, 0) if number.min() < 0 else number


def _problem(time: Array, value: Array, metric: Categorical) -> Categorical:
    """Return why each sample is in no figure; one shared *missing* where all are sound."""
    share = np.array([*(text.endswith(_PERCENT) for text in metric.categories), False])
    rules: list[npt.NDArray[np.bool_]] = []
    lowest, highest = int(value.min()), int(value.max())
    above = highest > names.MOST_PERCENT and share.any()
    rules.append((value > names.MOST_PERCENT) & share[metric.codes] if above else _NONE)
    rules.append(value < 0 if lowest < 0 else _NONE)
    rules.append(is_missing(value) if lowest < 0 else _NONE)
    outside = int(time.min()) < -LATEST_NS or int(time.max()) > LATEST_NS
    rules.append((time < -LATEST_NS) | (time > LATEST_NS) if outside else _NONE)
    rules.append(is_missing(time) if outside or time.dtype == np.int32 else _NONE)
    found = [
        (code, rows) for code, rows in zip(reversed(range(5)), rules, strict=True) if rows.any()
    ]
    if not found:
        return Categorical.constant(None, len(time))
    codes = np.full(len(time), -1, dtype=np.int32)
    for code, rows in found:  # the last that holds is the reason
        codes[rows] = code
    return Categorical(codes, PROBLEMS)


_NONE = np.zeros(1, dtype=np.bool_)
