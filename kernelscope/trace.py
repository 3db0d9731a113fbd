"""Tables of NumPy columns under a schema, and the frozen Trace that holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelscope import schema, units
from kernelscope.schema import Column, TableSchema

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of repeated text: one small integer per row, and the texts once.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        Index into `categories`; −1 where missing.
    categories : tuple of str
        The distinct texts. Not every one need occur.
    """

    codes: npt.NDArray[np.int32]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Categorical:
        """Encode a short sequence of texts; None becomes missing."""
        seen: dict[str, int] = {}
        codes = [-1 if v is None else seen.setdefault(v, len(seen)) for v in values]
        return cls(np.array(codes, dtype=np.int32), tuple(seen))

    @classmethod
    def constant(cls, value: str | None, rows: int) -> Categorical:
        """Return `rows` times one text, without storing it more than once."""
        code = np.int32(-1 if value is None else 0)
        return cls(np.broadcast_to(code, (rows,)), () if value is None else (value,))


ColumnData = Array | Categorical


def missing_value(dtype: np.dtype[Any]) -> int:
    """Return the integer that stands for *missing* in a column stored as `dtype`."""
    return int(np.iinfo(dtype).min)


_MISSING = missing_value(np.dtype(np.int64))


def is_missing(values: Array) -> npt.NDArray[np.bool_]:
    """Return where a stored numeric column has no value.

    Parameters
    ----------
    values : ndarray of int or float, shape (n,)
        A column as :class:`Table` stores it: the type's least integer, or NaN, is *missing*.
    """
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "i":
        return np.asarray(values == missing_value(values.dtype))
    return np.zeros(values.shape, dtype=np.bool_)


def distinct(values: Array) -> Array:
    """Return the sorted distinct values of one column; cheap where there is but one.

    (`numpy.unique` costs 50 ms the first time: it imports ``numpy.ma``.)
    """
    if not len(values):
        return values
    if values.min() == values.max():
        return values[:1]
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def median(values: Array) -> float:
    """Return the median, of an even number the mean of the middle two.

    (`numpy.median` imports ``numpy.ma``, as `numpy.unique` does.)
    """
    middle = len(values) // 2
    parted = np.partition(values, middle)
    above = float(parted[middle])
    return above if len(values) % 2 else (float(parted[:middle].max()) + above) / 2


def quantiles(values: Array, shares: Sequence[float]) -> list[float]:
    """Return quantiles by linear interpolation at (n − 1)·q, to the bit those of `numpy.quantile`.

    (Which imports ``numpy.ma``, as `numpy.unique` does.)

    Parameters
    ----------
    values : ndarray of int or float, shape (n,)
        At least one, no NaN.
    shares : sequence of float
        From 0 to 1.
    """
    ordered, found = np.sort(values), []
    for share in shares:
        place = (len(ordered) - 1) * share
        below = int(place)
        low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
        step, part = high - low, place - below
        found.append(float(low + step * part if part < 0.5 else high - step * (1 - part)))
    return found


def absent(column: Column, rows: int) -> ColumnData:
    """Return a column of `rows` missing values that takes no memory."""
    if column.dtype == "category":
        return Categorical.constant(None, rows)
    if column.dtype == "float64":
        return np.broadcast_to(np.float64(np.nan), (rows,))
    if column.dtype == "bool":
        raise ValueError(f"column {column.name!r} is a flag and cannot be missing")
    if column.unit in _ALWAYS_WIDE:
        return np.broadcast_to(np.int64(missing_value(np.dtype(np.int64))), (rows,))
    return np.broadcast_to(np.int32(missing_value(np.dtype(np.int32))), (rows,))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Columns under a schema; light, immutable, and quick to make.

    Attributes
    ----------
    schema : TableSchema
        Names, dtypes, units and meanings.
    columns : mapping of str to ndarray or Categorical
        Every column of the schema, each of shape (n,), read-only. Ids and counts may be stored
        as int32, times and bytes never; their type's least value is *missing* (see
        :func:`is_missing`).
    """

    schema: TableSchema
    columns: Mapping[str, ColumnData]

    @classmethod
    def make(cls, table_schema: TableSchema, columns: Mapping[str, ColumnData]) -> Table:
        """Check `columns` against the schema and freeze them; absent optional ones are missing.

        Raises
        ------
        ValueError
            If a column is unknown, lacking, of the wrong kind or of another length. This is a
            mistake in a parser or metric, never in a trace.
        """
        unknown = set(columns) - set(table_schema.names)
        if unknown:
            raise ValueError(f"{table_schema.name}: unknown columns {sorted(unknown)}")
        lengths = {_length(data) for data in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"{table_schema.name}: columns of different lengths {lengths}")
        rows = lengths.pop() if lengths else 0
        done: dict[str, ColumnData] = {}
        for column in table_schema.columns:
            data = columns.get(column.name)
            if data is None:
                if not column.optional and rows:
                    raise ValueError(f"{table_schema.name}: column {column.name!r} is lacking")
                data = absent(column, rows) if column.dtype != "bool" else np.zeros(rows, np.bool_)
            done[column.name] = _checked(table_schema, column, data)
        return cls(table_schema, done)

    @classmethod
    def of_records(cls, table_schema: TableSchema, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Return the table of rows as :meth:`records` gives them, for small ones.

        None, and what a row does not name, is missing; of a flag it is false.
        """
        columns: dict[str, ColumnData] = {}
        for column in table_schema.columns:
            values = [row.get(column.name) for row in rows]
            columns[column.name] = (
                Categorical.of(values)
                if column.dtype == "category"
                else np.array([_stored(v, column) for v in values], dtype=column.dtype)
            )
        return cls.make(table_schema, columns)

    @classmethod
    def later(cls, table_schema: TableSchema, load: Callable[[], Table]) -> Table:
        """Return a table that `load` makes when any of its columns is first asked for.

        For what is large and seldom wanted. `load` may raise what reading a file raises.
        """
        return cls(table_schema, _Later(table_schema, load))

    @property
    def at_hand(self) -> bool:
        """Whether the columns are in memory; False for a table that would be read first."""
        return not isinstance(self.columns, _Later) or self.columns.made is not None

    @classmethod
    def empty(cls, table_schema: TableSchema) -> Table:
        """Return the table with no rows."""
        return cls.make(table_schema, {})

    def __len__(self) -> int:
        return _length(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        if not self.at_hand:
            return f"<Table {self.schema.name}: read when it is asked for; .df is a DataFrame>"
        rows, columns = (
            units.quantity(len(self), "row"),
            units.quantity(len(self.columns), "column"),
        )
        return f"<Table {self.schema.name}: {rows}, {columns}; .df is a DataFrame>"

    def __getitem__(self, name: str) -> Array:
        """Return a numeric column as stored, or the codes of a text column."""
        data = self._data(name)
        return data.codes if isinstance(data, Categorical) else data

    def _data(self, name: str) -> ColumnData:
        self.schema.column(name)
        return self.columns[name]

    def categories(self, name: str) -> tuple[str, ...]:
        """Return the distinct texts of a text column; its codes are ``table[name]``."""
        data = self._data(name)
        if not isinstance(data, Categorical):
            raise TypeError(f"{self.schema.name}.{name} is not a text column")
        return data.categories

    def holds(self, name: str, wanted: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        """Return in which rows a text column has a wanted text, shape (n,).

        Each distinct text is asked once; a missing one is not wanted.
        """
        verdicts = [bool(wanted(text)) for text in self.categories(name)]
        if not any(verdicts):
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(np.array([*verdicts, False])[self[name]])  # a code of −1 reads the last

    def texts(self, name: str) -> list[str | None]:
        """Return a text column row by row; for small tables."""
        categories = self.categories(name)
        return [None if code < 0 else categories[code] for code in self[name].tolist()]

    def values(self, name: str) -> list[Any]:
        """Return any column as plain Python values, None where missing."""
        column = self.schema.column(name)
        if column.dtype == "category":
            return self.texts(name)
        data = self[name]
        plain: list[Any] = data.tolist()
        if column.optional:
            for index in np.flatnonzero(is_missing(data)).tolist():
                plain[index] = None
        return plain

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values, None where missing."""
        names = self.schema.names
        return [
            dict(zip(names, row, strict=True))
            for row in zip(*(self.values(name) for name in names), strict=True)
        ]

    def take(self, rows: Array) -> Table:
        """Return the table of the rows that a mask or an index array picks."""
        if rows.dtype == np.bool_:
            if rows.all() and len(rows) == len(self):
                return self
            rows = np.flatnonzero(rows)  # a mask picks more slowly than places do
        return Table(
            self.schema,
            {
                name: Categorical(_picked(data.codes, rows), data.categories)
                if isinstance(data, Categorical)
                else _picked(data, rows)
                for name, data in self.columns.items()
            },
        )

    @property
    def df(self) -> pd.DataFrame:
        """The table as a pandas DataFrame: texts as categories, missing integers as <NA>."""
        import pandas as pd  # noqa: PLC0415 - 300 ms that only those who ask for a frame pay

        frame: dict[str, Any] = {}
        for column in self.schema.columns:
            data = self.columns[column.name]
            if isinstance(data, Categorical):
                frame[column.name] = pd.Categorical.from_codes(
                    data.codes, categories=pd.Index(list(data.categories), dtype="str")
                )
            elif column.dtype == "int64" and column.optional:
                mask = is_missing(data)
                wide = data.astype(np.int64)
                wide[mask] = 0
                frame[column.name] = pd.arrays.IntegerArray(wide, mask)
            else:
                frame[column.name] = data.astype(column.dtype)
        return pd.DataFrame(frame)


def _stored(value: Any, column: Column) -> Any:
    """Return a plain value as a numeric column stores it."""
    if value is not None:
        return value
    return {"bool": False, "float64": np.nan}.get(column.dtype, _MISSING)


class _Later(Mapping[str, ColumnData]):
    """Columns that are made when one of them is first asked for."""

    def __init__(self, table_schema: TableSchema, load: Callable[[], Table]) -> None:
        self.schema, self.load = table_schema, load
        self.made: Mapping[str, ColumnData] | None = None

    def __getitem__(self, name: str) -> ColumnData:
        if self.made is None:
            self.made = self.load().columns
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)

    def __len__(self) -> int:
        return len(self.schema.names)

    def __reduce__(self) -> tuple[type[dict[str, ColumnData]], tuple[dict[str, ColumnData]]]:
        return dict, (dict(self.items()),)  # whoever unpickles it may not have the file


def _length(data: ColumnData) -> int:
    return len(data.codes) if isinstance(data, Categorical) else len(data)


def _picked(array: Array, rows: Array) -> Array:
    """Return some rows; of a column that holds one value throughout, without making a copy."""
    if not len(array) or array.strides[0]:
        return _frozen(array[rows])
    return np.broadcast_to(array[0], rows.shape)


def _frozen(array: Array) -> Array:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


_KINDS = {"int64": "i", "float64": "f", "bool": "b"}

_ALWAYS_WIDE = ("ns", "bytes")
"""Units of which sums are taken: stored as int64, so that no difference or sum can overflow."""


def widened(values: Array) -> npt.NDArray[np.int64]:
    """Return stored integers as int64, what is missing still missing."""
    if values.dtype == np.int64:
        return values
    if len(values) and values.strides == (0,):  # one value, broadcast to all rows
        return np.broadcast_to(widened(values[:1].copy()), values.shape)
    wide = values.astype(np.int64)
    wide[is_missing(values)] = missing_value(wide.dtype)
    return wide


def _checked(table_schema: TableSchema, column: Column, data: ColumnData) -> ColumnData:
    where = f"{table_schema.name}.{column.name}"
    if isinstance(data, Categorical):
        if column.dtype != "category":
            raise ValueError(f"{where} holds text, the schema says {column.dtype}")
        return Categorical(_frozen(data.codes), data.categories)
    if column.dtype == "category" or data.dtype.kind != _KINDS[column.dtype]:
        raise ValueError(f"{where} holds {data.dtype}, the schema says {column.dtype}")
    wide = column.dtype == "int64" and column.unit in _ALWAYS_WIDE
    return _frozen(widened(data) if wide else data)


def stacked(first: Table, second: Table) -> Table:
    """Return the rows of one table below those of another of the same schema."""
    columns = {
        name: _below(first.columns[name], second.columns[name]) for name in first.schema.names
    }
    return Table.make(first.schema, columns)


def _below(first: ColumnData, second: ColumnData) -> ColumnData:
    """Return one column below another."""
    if isinstance(first, Categorical) and isinstance(second, Categorical):
        seen = {text: code for code, text in enumerate(first.categories)}
        moved = [seen.setdefault(text, len(seen)) for text in second.categories]
        table = np.array([*moved, -1], dtype=np.int32)
        return Categorical(np.concatenate([first.codes, table[second.codes]]), tuple(seen))
    if isinstance(first, Categorical) or isinstance(second, Categorical):
        raise TypeError("a column of text cannot be stacked on a column of numbers")
    return np.concatenate([_as(first, second), _as(second, first)])


def _as(values: Array, other: Array) -> Array:
    """Widen `values` to the type of `other` where that is wider, keeping *missing* missing."""
    wide: np.dtype[Any] = np.promote_types(values.dtype, other.dtype)
    if wide == values.dtype or values.dtype.kind != "i":
        return values
    missing = values == missing_value(values.dtype)
    return np.where(missing, missing_value(wide), values.astype(wide))


@dataclass(frozen=True, slots=True)
class NotRecorded:
    """A table that the capture does not hold, and the profiler flag that would record it.

    `how_to_record` is empty where the capture did trace it, and nothing occurred.
    """

    table: str
    how_to_record: str


@dataclass(frozen=True, slots=True)
class Capture:
    """What the file says about itself.

    Attributes
    ----------
    file : str
        The path as given.
    format : str
        ``nsys`` or ``nvprof``.
    profiler_version, schema : str or None
        As recorded; None where the file does not say.
    started_at : str or None
        Wall-clock time of the trace's zero, ISO 8601 in UTC.
    recorded : tuple of str
        Canonical tables that the capture holds, empty ones included where the export has them.
    not_recorded : tuple of NotRecorded
        The others.
    warnings : tuple of str
        What the parser has doubts about, one sentence each.
    cpu_cores : int or None
        Processor cores of the machine; None where the file does not say.
    read_paths : mapping of str to str
        Profiler table → how it was read.
    serialised : str or None
        Why the kernels of the capture did not run as they do without a profiler, one after the
        other and at other times: partition, overlap, idle and queue times then say nothing of
        the program, and are missing. None for a capture of a run as it is.
    """

    file: str
    format: str
    profiler_version: str | None = None
    schema: str | None = None
    started_at: str | None = None
    recorded: tuple[str, ...] = ()
    not_recorded: tuple[NotRecorded, ...] = ()
    warnings: tuple[str, ...] = ()
    cpu_cores: int | None = None
    read_paths: Mapping[str, str] = field(default_factory=dict)
    serialised: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """A GPU trace: canonical tables, valid when it exists.

    Every event in it has ``end_ns >= start_ns`` and a believable time; the rows that had not
    stand in `quarantine` and in no other table. Tables that the capture did not record are
    empty, and ``capture.recorded`` tells *empty* from *not recorded*.
    """

    capture: Capture
    kernels: Table = Table.empty(schema.KERNELS)
    api_calls: Table = Table.empty(schema.API_CALLS)
    copies: Table = Table.empty(schema.COPIES)
    graphs: Table = Table.empty(schema.GRAPHS)
    graph_nodes: Table = Table.empty(schema.GRAPH_NODES)
    syncs: Table = Table.empty(schema.SYNCS)
    event_records: Table = Table.empty(schema.EVENT_RECORDS)
    ranges: Table = Table.empty(schema.RANGES)
    devices: Table = Table.empty(schema.DEVICES)
    processes: Table = Table.empty(schema.PROCESSES)
    threads: Table = Table.empty(schema.THREADS)
    overheads: Table = Table.empty(schema.OVERHEADS)
    os_calls: Table = Table.empty(schema.OS_CALLS)
    on_core: Table = Table.empty(schema.ON_CORE)
    counters: Table = Table.empty(schema.COUNTERS)
    gpu_samples: Table = Table.empty(schema.GPU_SAMPLES)
    quarantine: Table = Table.empty(schema.QUARANTINE)

    def __repr__(self) -> str:
        here = {name: each for name, each in self.tables.items() if each.at_hand}
        held = ", ".join(f"{len(each):,} {name}" for name, each in here.items() if len(each))
        return f"<Trace {self.capture.file!r}: {held or 'no rows'}>"

    @property
    def tables(self) -> dict[str, Table]:
        """The canonical tables by name."""
        return {each.name: getattr(self, each.name) for each in schema.CANONICAL}

    def recorded(self, table: str) -> bool:
        """Whether the capture recorded `table`; its rows may still be none."""
        return table in self.capture.recorded

    def with_tables(self, **tables: Table) -> Trace:
        """Return a trace in which the named tables are replaced."""
        fields: dict[str, Any] = dict(tables)
        return replace(self, **fields)
