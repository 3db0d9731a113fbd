"""Rows written a column at a time read as the rows made one by one."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.report.document import records
from kernelscope.report.json_rows import JsonRows, json_rows
from kernelscope.schema import Column, TableSchema
from kernelscope.trace import Categorical, Table, missing_value

SCHEMA = TableSchema(
    "made_up",
    "For these tests.",
    (
        Column("name", "category", "", "A text.", optional=True),
        Column("path", "category", "path", "Names.", optional=True),
        Column("count", "int64", "", "A number.", optional=True),
        Column("50 %s", "int64", "", "Another, of a name that a template could stumble on."),
        Column("share", "float64", "", "A ratio.", optional=True),
        Column("ok", "bool", "", "A flag."),
        Column("q.low", "int64", "ns", "One of two.", optional=True),
        Column("q.high", "float64", "ns", "The other.", optional=True),
        Column("grid.0", "int64", "", "First of a list.", optional=True),
        Column("grid.1", "int64", "", "Second of a list.", optional=True),
    ),
)
MISSING = int(missing_value(np.dtype(np.int64)))

names = st.sampled_from(
    ["a", "%s", "100 %", '"q"', ", ", "\\u001f", "é汉", "\n", f"{10**30 + 7}", ""]
)
numbers = st.sampled_from([0, 1, -3, 10**15, MISSING])
floats = st.sampled_from([0.0, 0.5, 1e300, math.nan, math.inf])
rows = st.lists(
    st.tuples(
        st.none() | names,
        st.none() | st.lists(names, min_size=1, max_size=3).map(SEPARATOR.join),
        numbers,
        st.integers(-5, 5),
        floats,
        st.booleans(),
        numbers,
        floats,
        numbers,
        numbers,
    ),
    max_size=6,
)


def made(values: list[tuple[Any, ...]]) -> Table:
    columns: dict[str, npt.NDArray[Any] | Categorical] = {}
    for column, data in zip(SCHEMA.columns, zip(*values, strict=True), strict=False):
        if column.dtype == "category":
            columns[column.name] = Categorical.of(list(data))
        else:
            columns[column.name] = np.array(data, dtype=column.dtype)
    return Table.make(SCHEMA, columns)


@given(rows)
def test_rows_read_as_the_records_do(values: list[tuple[Any, ...]]) -> None:
    table = made(values)

    assert [json.loads(row) for row in json_rows(table)] == records(table)


@given(rows.filter(bool), st.integers(1, 3))
def test_rows_that_are_all_alike(values: list[tuple[Any, ...]], times: int) -> None:
    table = made(values[:1] * times)

    assert [json.loads(row) for row in json_rows(table)] == records(table)


def test_no_rows_are_an_empty_list() -> None:
    assert json_rows(Table.empty(SCHEMA)) == JsonRows() == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    (row,) = json_rows(made([("a", "b", 1, 2, value, True, 3, value, 4, 5)]))

    assert (json.loads(row)["share"], json.loads(row)["q"]) == (None, {"low": 3, "high": None})
