"""Raw SQLite columns → canonical columns: the few conversions that every parser needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.sqlite import Numbers, RawColumn
from kernelscope.trace import Array, Categorical, is_missing, missing_value

Int32s = npt.NDArray[np.int32]

DENSE_LIMIT = 1 << 24
"""Ids up to here are looked up in a table; larger or negative ones by sorting."""


def integers(raw: RawColumn | None) -> Array | None:
    """Return a column of integers, NULL as the type's least value; None where absent.

    Text in a column of numbers (some third-party exports) reads as *missing* unless it is a
    number; fractions are truncated.
    """
    if raw is None:
        return None
    numbers = _parsed(raw) if isinstance(raw, Categorical) else raw
    values = numbers.values
    if values.dtype.kind == "f":
        numbers = _truncated(numbers)
        values = numbers.values
    if numbers.null is None:
        return values
    if numbers.null.all():
        return np.broadcast_to(np.int32(missing_value(np.dtype(np.int32))), values.shape)
    return np.where(numbers.null, values.dtype.type(missing_value(values.dtype)), values)


_WHOLE = re.compile(r"-?[0-9]{1,18}")
"""A text that is a number: what int64 surely holds."""

_EXACT = 2.0**62


def _truncated(numbers: Numbers) -> Numbers:
    """Turn fractions into whole numbers; infinities and what int64 cannot hold into NULL."""
    holds = np.abs(numbers.values) < _EXACT  # false for NaN, too
    whole = np.where(holds, numbers.values, 0).astype(np.int64)
    null = ~holds if numbers.null is None else numbers.null | ~holds
    return Numbers(whole, null if null.any() else None)


def _parsed(column: Categorical) -> Numbers:
    parsed = [int(text) if _WHOLE.fullmatch(text) else None for text in column.categories]
    table = np.array([0 if v is None else v for v in parsed] + [0], dtype=np.int64)
    null = np.array([v is None for v in parsed] + [True], dtype=np.bool_)
    return Numbers(table[column.codes], null[column.codes])


def floats(raw: RawColumn | None) -> npt.NDArray[np.float64] | None:
    """Return a column of floats, NULL as NaN; None where absent."""
    if raw is None:
        return None
    numbers = _parsed(raw) if isinstance(raw, Categorical) else raw
    values = numbers.values.astype(np.float64)
    if numbers.null is not None:
        values[numbers.null] = np.nan
    return values


def within(values: Array | None, least: int, most: int) -> Array | None:
    """Return `values` with what lies outside ``[least, most]`` made *missing*."""
    if values is None or not len(values) or (values.min() >= least and values.max() <= most):
        return values
    outside = (values < least) | (values > most)
    return np.where(outside, values.dtype.type(missing_value(values.dtype)), values)


def unset(values: Array | None, *unset_values: int) -> Array | None:
    """Return `values` with the given values (an id that does not apply) made *missing*."""
    if values is None:
        return None
    where = np.zeros(values.shape, dtype=np.bool_)
    for value in unset_values:
        where |= values == value
    if not where.any():
        return values
    return np.where(where, values.dtype.type(missing_value(values.dtype)), values)


def coded(values: Array, name_of: Callable[[int], str | None]) -> Categorical:
    """Turn numbers into text, one call of `name_of` per distinct number.

    Numbers with the same text share a code; None is *missing*, and so is a missing number.
    Codes are in order of number, so that equal files give equal codes.
    """
    if not len(values):
        return Categorical(np.zeros(0, dtype=np.int32), ())
    missing = missing_value(values.dtype)
    seen: dict[str, int] = {}

    def code_of(number: int) -> int:
        text = None if number == missing else name_of(number)
        return -1 if text is None else seen.setdefault(text, len(seen))

    codes = _by_number(values, code_of)
    return Categorical(codes, tuple(seen))


def _by_number(values: Array, code_of: Callable[[int], int]) -> Int32s:
    """Return the code of each value; each distinct one is asked for once, in order."""
    low, high = int(values.min()), int(values.max())
    if low == high:
        return np.broadcast_to(np.int32(code_of(low)), values.shape)
    if low == missing_value(values.dtype) and 0 <= high <= DENSE_LIMIT:
        known = np.flatnonzero(~is_missing(values))
        codes = np.full(values.shape, code_of(low), dtype=np.int32)
        codes[known] = _by_number(values[known], code_of)
        return codes
    if low < 0 or high > DENSE_LIMIT:
        distinct, inverse = np.unique(values, return_inverse=True)
        return np.array([code_of(number) for number in distinct.tolist()], dtype=np.int32)[inverse]
    used = np.zeros(high + 1, dtype=np.bool_)
    used[values] = True
    distinct = np.flatnonzero(used)
    table = np.empty(high + 1, dtype=np.int32)
    table[distinct] = [code_of(number) for number in distinct.tolist()]
    return table[values]


def utc_time(epoch_ns: int) -> str | None:
    """Return Unix time in ns as ISO 8601 in UTC; None where no calendar has it."""
    seconds, rest = divmod(epoch_ns, 1_000_000_000)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def labelled(values: Array | None, labels: Mapping[int, str]) -> Categorical | None:
    """Turn an enumeration into text; a number that has no label keeps itself as ``kind N``."""
    if values is None:
        return None
    return coded(values, lambda number: labels.get(number, f"kind {number}"))


def texts_by_id(ids: RawColumn | None, texts: RawColumn | None) -> dict[int, str]:
    """Return a table of strings by their numbers; empty where a column is absent."""
    numbers = integers(ids)
    if numbers is None or texts is None:
        return {}
    if isinstance(texts, Numbers):
        return {number: str(v) for number, v in zip(numbers.tolist(), texts.values, strict=True)}
    return {
        number: texts.categories[code]
        for number, code in zip(numbers.tolist(), texts.codes.tolist(), strict=True)
        if code >= 0
    }
