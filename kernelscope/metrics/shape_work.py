"""The launch shapes of a trace with the work that was counted of each, as whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.kernel_decoder import KernelName, decode_all
from kernelscope.trace import Array, Table, is_missing, widened

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GRID = ("grid.0", "grid.1", "grid.2")
SHAPE = (*GRID, "block.0", "block.1", "block.2")

COLD = "cold_cache"


@dataclass(frozen=True, slots=True, eq=False)
class Amount:
    """How much of one quantity the executions of each launch shape took, arrays of shape (g,).

    Attributes
    ----------
    value, low, high : ndarray of float64
        Over the executions that start in the window; NaN where not known, or nothing bounds it.
    counted : ndarray of bool
        Whether anything is known of it.
    cold : ndarray of bool
        Whether caches were emptied before it was counted.
    formulas : mapping of int to str
        Row → the counters that it was made of.
    """

    value: Floats
    low: Floats
    high: Floats
    counted: Bools
    cold: Bools
    formulas: Mapping[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class ShapeWork:
    """Launch shapes and their work: g rows, in the order of the table ``launch_shapes``.

    Attributes
    ----------
    shapes : Table
        Under ``results.LAUNCH_SHAPES``.
    decoded : tuple of KernelName
        What each distinct name says, by ``shapes``' code of it.
    time_s : ndarray of float64, shape (g,)
        Time of the executions inside the window.
    reach : ndarray of float64, shape (g,)
        The share of the GPU's SMs that a grid can occupy at most; 1 where it is not known.
    amounts : mapping of str to Amount
        By quantity, as in ``work_results.WORK``.
    """

    shapes: Table
    decoded: tuple[KernelName, ...]
    time_s: Floats
    reach: Floats
    amounts: Mapping[str, Amount]

    def __len__(self) -> int:
        return len(self.shapes)

    def name_of(self, row: int) -> KernelName:
        """Return what the name of a launch shape says."""
        return self.decoded[int(self.shapes["name"][row])]


def shape_work(
    shapes: Table, work_by_shape: Table, *, sm_count: int | None, l2_bytes: int | None
) -> ShapeWork:
    """Lay the work that was counted on the launch shapes of a trace.

    Parameters
    ----------
    shapes : Table
        Under ``results.LAUNCH_SHAPES``.
    work_by_shape : Table
        Under ``work_results.WORK_BY_SHAPE``, of the same window.
    sm_count, l2_bytes : int or None
        Of the smallest GPU, and of the largest cache.

    Notes
    -----
    A run that empties the caches before each kernel moves more bytes from DRAM than this one, but
    no more than fit into L2: so many, once an execution, may have been there already. That bounds
    what is otherwise bounded above only.
    """
    blocks = np.ones(len(shapes))
    for name in GRID:
        column = shapes[name]
        blocks *= np.where(is_missing(column), np.nan, column)
    reach = np.ones(len(shapes))
    if sm_count:
        reach = np.where(np.isnan(blocks), 1.0, np.minimum(blocks / sm_count, 1.0))
    amounts = _amounts(shapes, work_by_shape, l2_bytes) if len(work_by_shape) else {}
    return ShapeWork(
        shapes,
        decode_all(shapes.categories("name")),
        shapes["total_ns"] / 1e9,
        reach,
        amounts,
    )


def _amounts(shapes: Table, work: Table, l2_bytes: int | None) -> dict[str, Amount]:
    place = _places(shapes, work)
    quantities, caveats = work.categories("quantity"), work.categories("caveat")
    is_cold = np.array([*(COLD in each for each in caveats), False])[work["caveat"]]
    found = {}
    for code, quantity in enumerate(quantities):
        rows = np.flatnonzero((work["quantity"] == code) & (place >= 0))
        if not len(rows):
            continue
        at = place[rows]
        value, low, high = (
            _spread(work[name][rows], at, len(shapes)) for name in ("value", "low", "high")
        )
        counted, cold = np.zeros((2, len(shapes)), dtype=np.bool_)
        counted[at], cold[at] = True, is_cold[rows]
        if l2_bytes is not None and quantity.startswith("dram"):
            least = np.maximum(value - shapes["executions"] * float(l2_bytes), 0.0)
            low = np.where(cold & np.isnan(low), least, low)
        texts = work.categories("counters")
        codes = work["counters"][rows].tolist()
        formulas = {
            row: texts[code] for row, code in zip(at.tolist(), codes, strict=True) if code >= 0
        }
        found[quantity] = Amount(value, low, high, counted, cold, formulas)
    return found


def _spread(values: Floats, at: Array, count: int) -> Floats:
    column = np.full(count, np.nan)
    column[at] = values
    return column


def _places(shapes: Table, work: Table) -> npt.NDArray[np.int64]:
    """Return the row of `shapes` of each row of `work`; −1 where it has none."""
    names = {text: code for code, text in enumerate(shapes.categories("name"))}
    rows = {key: row for row, key in enumerate(_keys(shapes, shapes["name"].tolist()))}
    codes = [names.get(text, -1) for text in work.categories("name")]
    mine = [codes[code] for code in work["name"].tolist()]
    return np.array([rows.get(key, -1) for key in _keys(work, mine)], dtype=np.int64)


def _keys(table: Table, codes: Sequence[int]) -> list[tuple[int, ...]]:
    return list(zip(codes, *(widened(table[name]).tolist() for name in SHAPE), strict=True))


def rows_of_kernels(kernels: Table, shapes: Table) -> npt.NDArray[np.int64]:
    """Return the launch shape of each kernel: its row in `shapes`, −1 for none.

    Parameters
    ----------
    kernels : Table
        Under ``schema.KERNELS``, n rows.
    shapes : Table
        Under ``results.LAUNCH_SHAPES``, of the same trace.
    """
    if not len(kernels):
        return np.empty(0, dtype=np.int64)
    groups, (code, *shape) = grouped([kernels["name"], *(kernels[name] for name in _COLUMNS)])
    names = {text: code for code, text in enumerate(shapes.categories("name"))}
    codes = [names.get(text, -1) for text in kernels.categories("name")]
    rows = {key: row for row, key in enumerate(_keys(shapes, shapes["name"].tolist()))}
    columns = (widened(column).tolist() for column in shape)
    keys = zip([codes[each] for each in code.tolist()], *columns, strict=True)
    return np.array([rows.get(key, -1) for key in keys], dtype=np.int64)[groups]


_COLUMNS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
