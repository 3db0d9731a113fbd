"""The theoretical occupancy of the launches of a trace: of each execution, and of each shape.

Whatever is asked, it is worked out once for every distinct launch: a million executions have some
hundred of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics import occupancy_results as results
from kernelscope.metrics.device_identity import Identity, identify, lane_of, lanes_of, limits_of
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.occupancy import NONE_FITS, Launches, Limits, occupancy
from kernelscope.metrics.window import Window
from kernelscope.trace import (
    Array,
    Categorical,
    ColumnData,
    Table,
    Trace,
    is_missing,
    missing_value,
)

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
RESOURCES = ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes")
SETTINGS = ("shared_carveout_bytes", "cluster_x", "cluster_y", "cluster_z")
"""What a launch may lack: the SM's most shared memory, and no clusters, are supposed then."""

NOT_RECORDED = "the launch shape, registers or shared memory are not recorded"
NO_LIMITS = "the limits of the GPU are not known (--gpu NAME), or it is older than Kepler"
DOES_NOT_FIT = "it does not fit by these limits, which then are not the GPU's"
DIFFERS = "its executions differ in registers, shared memory, clusters or GPU"
NO_CARVEOUT = "upper bound: how the driver set shared memory is not recorded"
CLUSTERS = "upper bound: how many clusters fit on the GPU at once is not recorded"
_NOTES = ("", NOT_RECORDED, NO_LIMITS, DOES_NOT_FIT, DIFFERS, NO_CARVEOUT, CLUSTERS)
_FIGURES = ("occupancy", "resident_blocks", "waves", "tail_efficiency")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Found:
    """Figures of some launches; arrays of one length."""

    occupancy: npt.NDArray[np.float64]
    resident_blocks: npt.NDArray[np.int64]
    waves: npt.NDArray[np.float64]
    tail_efficiency: npt.NDArray[np.float64]
    limiter: npt.NDArray[np.int64]
    note: npt.NDArray[np.int64]
    limiters: tuple[str, ...]

    def columns(self) -> dict[str, ColumnData]:
        """Return the columns of a result table."""
        notes = np.where(self.note > 0, self.note, -1).astype(np.int32)
        return {
            **{name: getattr(self, name) for name in _FIGURES},
            "limiter": Categorical(self.limiter.astype(np.int32), self.limiters),
            "occupancy_note": Categorical(notes, _NOTES),
        }

    def take(self, rows: Array) -> _Found:
        """Return the figures of these launches, in this order."""
        names = (*_FIGURES, "limiter", "note")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def execution_occupancy(trace: Trace, identity: Identity | None = None) -> Table:
    """How full can each execution make the multiprocessors of its GPU?

    Parameters
    ----------
    trace : Trace
        Its kernels and devices are read.
    identity : Identity, optional
        Of the same trace, where it was found before.

    Returns
    -------
    Table
        Under ``occupancy_results.EXECUTION_OCCUPANCY``: a row for each row of the trace's
        ``kernels``, in their order.
    """
    events = trace.kernels
    if not len(events):
        return Table.empty(results.EXECUTION_OCCUPANCY)
    limits, which = _limits(trace, identity)
    names = (*SHAPE, *RESOURCES, *SETTINGS)
    groups, keys = grouped([*(events[name] for name in names), which])
    found = _figures(dict(zip(names, keys, strict=False)), keys[-1], limits)
    return Table.make(results.EXECUTION_OCCUPANCY, found.take(groups).columns())


def shape_occupancy(
    trace: Trace, window: Window, groups: Array, count: int, identity: Identity | None = None
) -> dict[str, ColumnData]:
    """Return the columns of occupancy for groups of executions of one grid and block.

    Parameters
    ----------
    trace : Trace
        Its kernels and devices are read.
    window : Window
        Where executions of one group differ, those in the window decide.
    groups : ndarray of int, shape (n,)
        The group of each execution; those of one group have the same grid and block.
    count : int
        How many groups there are.
    identity : Identity, optional
        Of the same trace, where it was found before.
    """
    events = trace.kernels
    limits, which = _limits(trace, identity)
    inputs = {name: events[name] for name in (*RESOURCES, *SETTINGS)}
    some = np.zeros(count, dtype=np.int64)
    some[groups] = np.arange(len(events))
    differing = np.zeros(count, dtype=np.bool_)
    for column in (*inputs.values(), which):
        if not _constant(column):
            differing[groups[column != column[some][groups]]] = True
    rows = {name: events[name][some] for name in SHAPE}
    rows |= {name: column[some] for name, column in inputs.items()}
    found = _figures(rows, which[some], limits)
    if bool(differing.any()):
        rows = {name: events[name] for name in SHAPE} | inputs
        _where_alike(found, np.flatnonzero(differing), rows, which, limits, groups, events, window)
    return found.columns()


def _where_alike(  # noqa: PLR0913, PLR0917 - what its caller knows
    found: _Found,
    differing: Array,
    rows: dict[str, Array],
    which: Array,
    limits: Sequence[Limits | None],
    groups: Array,
    events: Table,
    window: Window,
) -> None:
    """Put into `found` what all executions in the window of a differing group agree on."""
    inside = np.zeros(len(found.note), dtype=np.bool_)
    inside[differing] = True
    mine = inside[groups]
    mine &= (events["start_ns"] <= window.end_ns) & (events["end_ns"] >= window.start_ns)
    mine_ = np.flatnonzero(mine)
    if not len(mine_):
        return
    kinds, keys = grouped(
        [groups[mine_], *(column[mine_] for column in rows.values()), which[mine_]]
    )
    del kinds
    each = _figures(dict(zip(rows, keys[1:], strict=False)), keys[-1], limits)
    first = np.unique(keys[0], return_index=True)[1]
    ends = [*first[1:].tolist(), len(keys[0])]
    for group, begin, end in zip(keys[0][first].tolist(), first.tolist(), ends, strict=True):
        _agree(found, group, each, slice(begin, end))


def _agree(found: _Found, group: int, each: _Found, part: slice) -> None:
    """Set the figures of a group to what its launches agree on, figure by figure."""
    alike = True
    for name in _FIGURES:
        values = getattr(each, name)[part]
        same = bool((values == values[0]).all()) or bool(np.isnan(values).all())
        missing: Any = np.nan if values.dtype.kind == "f" else missing_value(values.dtype)
        getattr(found, name)[group] = values[0] if same else missing
        alike &= same
    limiters = {each.limiters[code] if code >= 0 else None for code in each.limiter[part].tolist()}
    name_ = limiters.pop() if len(limiters) == 1 else None
    found.limiter[group] = found.limiters.index(name_) if name_ in found.limiters else -1
    notes = set(each.note[part].tolist())
    found.note[group] = notes.pop() if alike and len(notes) == 1 else _NOTES.index(DIFFERS)


def _constant(column: Array) -> bool:
    return column.strides == (0,) or bool((column == column[0]).all())


def _limits(trace: Trace, identity: Identity | None) -> tuple[list[Limits | None], Array]:
    """Return the different limits of the trace's GPUs, and which of them each execution has."""
    found = identity or identify(trace)
    lanes = lanes_of(trace.kernels)
    described = dict(zip(found.lanes, found.described, strict=True))
    each = [limits_of(described[lane_of(key)]) for key in lanes.keys]
    different = list(dict.fromkeys(each))
    place = np.array([different.index(one) for one in each], dtype=np.int32)
    if lanes.codes is None or len(different) == 1:
        return different, np.broadcast_to(np.int32(0), (len(trace.kernels),))
    return different, place[lanes.codes]


def _figures(rows: dict[str, Array], which: Array, limits: Sequence[Limits | None]) -> _Found:
    """Work out the figures of distinct launches."""
    count = len(which)
    nan = np.full(count, np.nan)
    missing = missing_value(np.dtype(np.int64))
    found = _Found(
        nan, np.full(count, missing, dtype=np.int64), nan.copy(), nan.copy(),
        np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64), (),
    )  # fmt: skip
    recorded = np.ones(count, dtype=np.bool_)
    for name in (*SHAPE, *RESOURCES):
        recorded &= ~is_missing(rows[name])
    found.note[~recorded] = _NOTES.index(NOT_RECORDED)
    limiters: dict[str, int] = {}
    for number, limit in enumerate(limits):
        mine = np.flatnonzero(recorded & (which == number))
        if limit is None:
            found.note[mine] = _NOTES.index(NO_LIMITS)
            continue
        _of_one_gpu(found, {name: column[mine] for name, column in rows.items()}, mine, limit,
                    limiters)  # fmt: skip
    return replace(found, limiters=tuple(limiters))


def _of_one_gpu(
    found: _Found,
    rows: dict[str, Array],
    mine: Array,
    limits: Limits,
    limiters: dict[str, int],
) -> None:
    launches = _launches(rows)
    each = occupancy(limits, launches)
    fits = each.resident_blocks > 0
    found.occupancy[mine] = each.occupancy
    missing = missing_value(np.dtype(np.int64))
    found.resident_blocks[mine] = np.where(fits, each.resident_blocks, missing)
    found.waves[mine] = each.waves
    found.tail_efficiency[mine] = each.tail_efficiency
    found.limiter[mine] = [limiters.setdefault(name, len(limiters)) for name in each.limiter]
    untold = limits.has_carveout & (launches.carveout == 0) & (launches.shared_bytes > 0)
    notes = np.where(untold, _NOTES.index(NO_CARVEOUT), 0)
    notes = np.where(launches.cluster > 1, _NOTES.index(CLUSTERS), notes)
    found.note[mine] = np.where(fits, notes, _NOTES.index(DOES_NOT_FIT))


def _launches(rows: dict[str, Array]) -> Launches:
    wide = {name: column.astype(np.int64) for name, column in rows.items()}

    def product(*names: str) -> npt.NDArray[np.int64]:
        x, y, z = (wide[name] for name in names)
        return np.asarray(x * y * z, dtype=np.int64)

    def known(name: str, otherwise: int) -> npt.NDArray[np.int64]:
        column = wide[name]
        unknown = is_missing(rows[name]) | (column <= 0)
        return np.asarray(np.where(unknown, otherwise, column), dtype=np.int64)

    cluster = known("cluster_x", 1) * known("cluster_y", 1) * known("cluster_z", 1)
    return Launches(
        product(*SHAPE[:3]),
        product(*SHAPE[3:]),
        wide["registers_per_thread"],
        wide["static_shared_bytes"] + wide["dynamic_shared_bytes"],
        known("shared_carveout_bytes", 0),
        np.asarray(cluster, dtype=np.int64),
    )


__all__ = ["NONE_FITS", "execution_occupancy", "shape_occupancy"]
