"""Columns as a profiler recorded them, and how they grow while a table is read.

Both readers of SQLite files (`btree` and the ``sqlite3`` module) feed the same builders, so that
the same values give the same arrays whichever path read them:

* text if any value is text, else float64 if any is REAL, else int32 where every value fits and
  int64 where not;
* where no row has a value, the declared type decides (`TEXT`, `REAL`, else int32);
* texts are numbered in the order of their first appearance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Categorical

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric column as recorded.

    Attributes
    ----------
    values : ndarray of int32, int64 or float64, shape (n,)
        int32 where every value fits, float64 where any value is REAL. 0 where NULL. A column of
        one repeated value may be a broadcast array, which takes no memory and is read-only.
    null : ndarray of bool, shape (n,), or None
        Where the column is NULL; None where it never is.
    """

    values: Array
    null: Mask | None = None


RawColumn = Numbers | Categorical
"""What one column reads as: a column of numbers, or of text (NULL has code −1)."""


class MixedKindsError(Exception):
    """A column holds both text and numbers."""


def affinity(declared: str) -> str:
    """Return what SQLite makes of a declared type: TEXT, REAL or, for all others, ''.

    Only these two change what a reader must do: REAL columns hold small whole numbers as
    integers, and a column without values is text where it is declared so.
    See https://www.sqlite.org/datatype3.html, section 3.1.
    """
    upper = declared.upper()
    if "INT" in upper:
        return ""
    if any(word in upper for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in upper:
        return ""
    return "REAL" if any(word in upper for word in ("REAL", "FLOA", "DOUB")) else ""


def fits_int32(values: Array) -> bool:
    """Whether all integers fit in int32 and none is the one that stands for *missing*."""
    if values.dtype.itemsize < 4 or not values.size:
        return True
    if values.dtype.itemsize == 4:
        return bool(values.min() > _INT32.min)
    return bool(values.min() > _INT32.min and values.max() <= _INT32.max)


class NumberBuilder:
    """Numbers that grow piece by piece in one array, as narrow as they allow.

    As long as every row is the same (all NULL, or one value), nothing is stored at all.

    Parameters
    ----------
    capacity : int
        How many rows to make room for; the room doubles when it does not suffice.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows = 0
        self._same: int | None = None  # what every row is, as long as `_values` is None
        self._values: Array | None = None
        self._null: Mask | None = None

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return self._rows

    @property
    def only_null(self) -> bool:
        """Whether no row has a value yet."""
        return self._values is None and (self._rows == 0 or self._same is None)

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type so far; None where there is no value yet."""
        if self._values is not None:
            return self._values.dtype
        return None if self.only_null else np.dtype(np.int64)

    def repeat(self, value: int | None, rows: int) -> None:
        """Add `rows` times one integer, or NULL."""
        if self._values is None and (self._rows == 0 or self._same == value):
            self._same = value
            self._rows += rows
            return
        piece = np.broadcast_to(np.int64(value or 0), (rows,))
        null = np.ones(rows, np.bool_) if value is None else None
        dtype = np.int32 if self._values is None else self._values.dtype
        self._store(piece, null, self._wide_enough(piece, np.dtype(dtype)))

    def add(self, values: Array, null: Mask | None = None) -> None:
        """Add integers or floats; `values` must be 0 where `null`."""
        if not len(values):
            return
        if null is None and self._continues(values):
            self.repeat(int(values[0]), len(values))
            return
        if values.dtype.kind == "f":
            self._store(values, null, np.dtype(np.float64))
            return
        dtype = np.dtype(np.int32) if self._values is None else self._values.dtype
        self._store(values, null, self._wide_enough(values, dtype))

    def done(self, declared: str) -> RawColumn:
        """Return the column; `declared` (an :func:`affinity`) decides where there is no value."""
        null = None if self._null is None else self._null[: self._rows]
        if self._values is not None:
            return Numbers(self._values[: self._rows], null)
        if not self.only_null:
            same = np.int64(self._same or 0)
            narrow = np.int32(same) if fits_int32(np.array([same])) else same
            return Numbers(np.broadcast_to(narrow, (self._rows,)))
        if declared == "TEXT":
            return Categorical.constant(None, self._rows)
        zero: Any = np.float64(0) if declared == "REAL" else np.int32(0)
        no_value = np.broadcast_to(np.bool_(True), (self._rows,)) if self._rows else None
        return Numbers(np.broadcast_to(zero, (self._rows,)), no_value)

    def _continues(self, values: Array) -> bool:
        """Whether `values` are one integer, the same as every row before them."""
        if self._values is not None or values.dtype.kind == "f":
            return False
        first = values[0]
        return (self._rows == 0 or self._same == first) and bool((values == first).all())

    def _wide_enough(self, values: Array, dtype: np.dtype[Any]) -> np.dtype[Any]:
        small = dtype != np.int32 or fits_int32(values)
        return dtype if small else np.dtype(np.int64)

    def _store(self, values: Array, null: Mask | None, dtype: np.dtype[Any]) -> None:
        start, stop = self._rows, self._rows + len(values)
        room = self._room(stop, dtype)
        room[start:stop] = values
        if null is not None and null.any():
            if self._null is None:
                self._null = np.zeros(self._capacity, np.bool_)
            self._null[start:stop] = null
        self._rows = stop

    def _room(self, rows: int, dtype: np.dtype[Any]) -> Array:
        """Return the array with room for `rows` values of `dtype`, what it held kept."""
        if self._values is None and self._rows and self._same is not None:
            dtype = self._wide_enough(np.array([self._same], np.int64), dtype)
        grown = rows > self._capacity
        if grown:
            self._capacity = max(rows, 2 * self._capacity)
        if self._values is None or grown or self._values.dtype != dtype:
            old, self._values = self._values, np.empty(self._capacity, dtype)
            if old is not None:
                self._values[: self._rows] = old[: self._rows]
            else:
                self._values[: self._rows] = self._same or 0
                if self._rows and self._same is None:
                    self._null = np.zeros(self._capacity, np.bool_)
                    self._null[: self._rows] = True
        if grown and self._null is not None:
            wider = np.zeros(self._capacity, np.bool_)
            wider[: self._rows] = self._null[: self._rows]
            self._null = wider
        return self._values


class Texts(dict[bytes | None, int]):
    """The distinct texts of a column: their bytes → code, numbered as they first appear."""

    def __init__(self) -> None:
        super().__init__({None: -1})
        self._codes: dict[str, int] = {}

    def __missing__(self, raw: bytes | None) -> int:
        # Two byte strings can decode to one text: \xff as a byte, and written out as an escape.
        text = (raw or b"").decode("utf-8", "backslashreplace")
        code = self[raw] = self._codes.setdefault(text, len(self._codes))
        return code

    @property
    def categories(self) -> tuple[str, ...]:
        """The distinct texts, by code."""
        return tuple(self._codes)


class TextBuilder:
    """Dictionary codes that grow piece by piece in one array.

    Parameters
    ----------
    capacity : int
        How many rows to make room for; the room doubles when it does not suffice.
    null_rows : int
        How many NULL rows came before the first text.
    """

    def __init__(self, capacity: int, null_rows: int) -> None:
        self.texts = Texts()
        self._codes = np.empty(max(capacity, null_rows), np.int32)
        self._codes[:null_rows] = -1
        self._rows = null_rows

    def add(self, codes: Array | int, rows: int) -> None:
        """Add the codes of `rows` texts, or one code for them all."""
        stop = self._rows + rows
        if stop > len(self._codes):
            wider = np.empty(max(stop, 2 * len(self._codes)), np.int32)
            wider[: self._rows] = self._codes[: self._rows]
            self._codes = wider
        self._codes[self._rows : stop] = codes
        self._rows = stop

    def done(self) -> RawColumn:
        """Return the column."""
        return Categorical(self._codes[: self._rows], self.texts.categories)


class ColumnBuilder:
    """A column of numbers or text, whichever the first value turns out to be.

    Parameters
    ----------
    capacity : int
        How many rows to make room for.
    declared : str
        The column's :func:`affinity`.
    """

    def __init__(self, capacity: int, declared: str) -> None:
        self._capacity = capacity
        self._declared = declared
        self._numbers = NumberBuilder(capacity)
        self._text: TextBuilder | None = None

    def nulls(self, rows: int) -> None:
        """Add NULL rows."""
        if self._text is None:
            self._numbers.repeat(None, rows)
        else:
            self._text.add(-1, rows)

    def numbers(self) -> NumberBuilder:
        """Return where numbers go.

        Raises
        ------
        MixedKindsError
            If the column already has text.
        """
        if self._text is not None:
            raise MixedKindsError
        return self._numbers

    def text(self) -> TextBuilder:
        """Return where text goes.

        Raises
        ------
        MixedKindsError
            If the column already has numbers.
        """
        if self._text is None:
            if not self._numbers.only_null:
                raise MixedKindsError
            self._text = TextBuilder(self._capacity, self._numbers.rows)
        return self._text

    def done(self) -> RawColumn:
        """Return the column."""
        return self._numbers.done(self._declared) if self._text is None else self._text.done()
