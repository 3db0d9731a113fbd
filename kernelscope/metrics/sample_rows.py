"""Rows of sampled metrics: a mean per GPU, metric and owner, whatever the owners are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelscope.metrics import sample_results as results
from kernelscope.metrics.device_identity import Identity
from kernelscope.metrics.intervals import Int64s, sums_by
from kernelscope.metrics.sample_names import MEMORY, ORDER
from kernelscope.metrics.sample_series import Series
from kernelscope.metrics.sample_shares import Means, Shares, means, totals
from kernelscope.schema import TableSchema
from kernelscope.trace import Array, Categorical, ColumnData, Table, Trace, missing_value

_MISSING = missing_value(np.dtype(np.int64))

REASONS = ("scale_unknown", "fewer_than_5_samples")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sampled:
    """The samples of a trace and the devices that they are of.

    Attributes
    ----------
    trace : Trace
        Everything that was recorded.
    identity : Identity
        Of the trace.
    series : tuple of Series
        One for each source.
    devices : tuple of int or None
        The physical device of each; None where it is none of those used, or not told.
    """

    trace: Trace
    identity: Identity
    series: tuple[Series, ...]
    devices: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scope:
    """Whose means are wanted: owners of samples, and the time that each had.

    Attributes
    ----------
    given : Shares
        Which samples count for whom.
    taken_ns : ndarray of int64, shape (owners,)
        The denominator of the coverage.
    """

    given: Shares
    taken_ns: Int64s


@dataclass(slots=True)
class _Rows:
    """The columns of a table while its rows are found, series by series and metric by metric."""

    parts: dict[str, list[Array]] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    roles: dict[str, int] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)

    def add(self, **columns: Array) -> None:
        for name, values in columns.items():
            self.parts.setdefault(name, []).append(values)


def table_of(  # noqa: PLR0913 - what the tables differ in
    table_schema: TableSchema,
    found: Sampled,
    scope_of: Callable[[Series, int | None], Scope | None],
    keys: Mapping[str, ColumnData],
    *,
    every: bool = False,
    longest_first: bool = False,
) -> Table:
    """Return the rows of every series, metric and owner with samples; of all with `every`.

    They come by owner, those of whose time the samples speak most first with `longest_first`;
    then by GPU and metric.
    """
    rows = _Rows()
    for series, device in zip(found.series, found.devices, strict=True):
        scope = scope_of(series, device)
        if scope is None:
            continue
        for metric in _metrics(series, every=every):
            number = means(series, metric, totals(series, metric), scope.given)
            owner = np.flatnonzero(number.samples >= (0 if every else 1))
            if len(owner):
                _append(rows, found, (series, device, metric), (owner, number, scope))
    return _made(table_schema, rows, keys, longest_first=longest_first)


def _metrics(series: Series, *, every: bool) -> list[int]:
    """Return the metrics of a series to show, those with a role first, as reports order them."""
    place = {role: i for i, role in enumerate(ORDER)}
    roles = [each.role for each in series.meanings]
    shown = [i for i, role in enumerate(roles) if every or role is not None]
    return sorted(shown, key=lambda i: (place.get(roles[i] or "", len(place)), series.metrics[i]))


def _append(
    rows: _Rows,
    found: Sampled,
    which: tuple[Series, int | None, int],
    figures: tuple[Array, Means, Scope],
) -> None:
    (series, device, metric), (owner, number, scope) = which, figures
    meant = series.meanings[metric]
    few = number.samples[owner] < results.FEWEST_SAMPLES
    unknown = meant.unit is None
    value = np.where(few | unknown, np.nan, number.mean[owner] * meant.scale)
    peak = _peak(found.identity, device) if meant.role in MEMORY else None
    taken, covered = scope.taken_ns[owner], number.covered_ns[owner]
    coverage = np.full(len(owner), np.nan)
    np.divide(covered, taken, out=coverage, where=taken > 0)

    def same(number: int | None) -> Array:
        return np.full(len(owner), _MISSING if number is None else number, dtype=np.int64)

    rows.add(
        owner=owner,
        device=same(device),
        gpu_id=same(series.gpu_id),
        metric=same(_code(rows.metrics, series.metrics[metric])),
        role=same(_code(rows.roles, meant.role)),
        unit=same(_code(rows.units, meant.unit)),
        value=value,
        bytes_per_s=value * (np.nan if peak is None else peak),
        samples=number.samples[owner],
        covered_ns=covered,
        coverage_ratio=coverage,
        missing_because=np.where(few, 1, same(0 if unknown else -1)),
    )


def _code(codes: dict[str, int], text: str | None) -> int:
    return -1 if text is None else codes.setdefault(text, len(codes))


def _peak(identity: Identity, device: int | None) -> int | None:
    """Return the peak bandwidth of a device's memory, as the capture states it."""
    stated = {
        described.get("memory_bytes_per_s")
        for described, index in zip(identity.described, identity.index, strict=True)
        if index == device
    } - {None}
    return stated.pop() if len(stated) == 1 else None


_TEXTS: Sequence[tuple[str, str]] = (("metric", "metrics"), ("role", "roles"), ("unit", "units"))


def _made(
    table_schema: TableSchema, rows: _Rows, keys: Mapping[str, ColumnData], *, longest_first: bool
) -> Table:
    if not rows.parts:
        return Table.empty(table_schema)
    columns: dict[str, Any] = {name: np.concatenate(each) for name, each in rows.parts.items()}
    order = np.argsort(columns["owner"], kind="stable")
    if longest_first:
        covered = sums_by(columns["owner"], columns["covered_ns"], int(columns["owner"].max()) + 1)
        order = order[np.argsort(-covered[columns["owner"][order]], kind="stable")]
    columns = {name: values[order] for name, values in columns.items()}
    owner = columns.pop("owner")
    for name, kept in _TEXTS:
        columns[name] = Categorical(columns[name].astype(np.int32), tuple(getattr(rows, kept)))
    why = columns["missing_because"].astype(np.int32)
    columns["missing_because"] = Categorical(why, REASONS)
    for name, data in keys.items():
        if isinstance(data, Categorical):
            columns[name] = Categorical(data.codes[owner], data.categories)
        else:
            columns[name] = data[owner]
    return Table.make(table_schema, columns)
