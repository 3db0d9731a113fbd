"""Tables: what may go in, and how they look as records, frames and parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.analysis import analyze
from kernelscope.schema import Column, TableSchema, integer, real, text
from kernelscope.trace import (
    Array,
    Capture,
    Categorical,
    ColumnData,
    Table,
    Trace,
    distinct,
    is_missing,
    quantiles,
)
from tests import build


def test_absent_optional_columns_are_missing_and_take_no_memory() -> None:
    table = build.kernels((0, 5), (7, 9))
    bare = Table.make(
        schema.KERNELS,
        {name: table.columns[name] for name in ("start_ns", "end_ns", "device_id", "name")},
    )
    assert is_missing(bare["stream_id"]).all()
    assert bare["stream_id"].strides == (0,)
    assert bare.values("short_name") == [None, None]


def test_a_required_column_must_be_there() -> None:
    with pytest.raises(ValueError, match=r"kernels: column 'end_ns' is lacking"):
        Table.make(schema.KERNELS, {"start_ns": np.array([1])})


def test_unknown_columns_and_unequal_lengths_are_mistakes() -> None:
    with pytest.raises(ValueError, match="unknown columns"):
        Table.make(schema.PROCESSES, {"pid": np.array([1])})
    with pytest.raises(ValueError, match="different lengths"):
        Table.make(schema.PROCESSES, {"process_id": np.array([1]), "name": Categorical.of([])})


def test_a_column_of_the_wrong_kind_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"processes.process_id holds float64"):
        Table.make(schema.PROCESSES, {"process_id": np.array([1.0])})


def test_times_and_bytes_are_stored_wide_so_that_sums_cannot_overflow() -> None:
    narrow = np.array([5, np.iinfo(np.int32).min], dtype=np.int32)
    table = Table.make(
        schema.COPIES,
        {
            "start_ns": np.array([1, 2], dtype=np.int32),
            "end_ns": np.array([3, 4], dtype=np.int32),
            "device_id": np.zeros(2, dtype=np.int32),
            "kind": Categorical.of(["HtoD", "HtoD"]),
            "bytes": narrow,
        },
    )
    assert table["start_ns"].dtype == table["bytes"].dtype == np.int64
    assert table["device_id"].dtype == np.int32
    assert table.values("bytes") == [5, None]


def test_tables_cannot_be_changed() -> None:
    table = build.kernels((0, 5))
    with pytest.raises(ValueError, match="read-only"):
        table["start_ns"][0] = 3


def test_a_frame_has_categories_and_nullable_integers() -> None:
    frame = build.joined(
        build.kernels((0, 5, "a"), stream_id=None), build.kernels((7, 9, "b"), stream_id=3)
    ).df
    assert frame["name"].dtype == "category"
    assert str(frame["stream_id"].dtype) == "Int64"
    assert frame["stream_id"].isna().tolist() == [True, False]
    assert frame["start_ns"].dtype == np.int64
    assert frame["name"].tolist() == ["a", "b"]


def test_what_a_notebook_shows_of_a_trace_is_short() -> None:
    trace = build.trace(kernels=build.kernels((0, 5), (7, 9)))
    assert repr(trace.kernels) == "<Table kernels: 2 rows, 25 columns; .df is a DataFrame>"
    assert repr(trace) == f"<Trace {trace.capture.file!r}: 2 kernels>"
    assert repr(analyze(trace)).startswith(f"<Analysis {trace.capture.file!r}: window 9 ns; tables")


def test_a_path_is_no_trace() -> None:
    with pytest.raises(TypeError, match=r"what kernelscope\.read returns, not 'trace\.sqlite'"):
        analyze("trace.sqlite")  # type: ignore[arg-type]


def test_every_canonical_table_makes_an_empty_frame() -> None:
    trace = Trace(Capture("none", "test"))
    assert list(trace.tables) == [table.name for table in schema.CANONICAL]
    for name, table in trace.tables.items():
        assert list(table.df.columns) == list(table.schema.names), name
        assert len(table.df) == 0


def test_part_of_a_table_keeps_its_texts() -> None:
    table = build.kernels((0, 5, "a"), (7, 9, "b"))
    assert table.take(np.array([1])).texts("name") == ["b"]
    assert table.take(np.array([False, True])).records()[0]["start_ns"] == 7


def test_a_table_of_records_is_the_table_that_they_are_of() -> None:
    shape = TableSchema(
        "made",
        "Is it the same?",
        (
            text("name", "a text", optional=True),
            integer("count", "count", "a number", optional=True),
            real("share", "ratio", "a share", optional=True),
            Column("there", "bool", "", "whether"),
        ),
    )
    rows: list[dict[str, Any]] = [
        {"name": "one", "count": -1, "share": 0.5, "there": True},
        {"name": None, "count": None, "share": None, "there": False},
    ]
    made = Table.of_records(shape, rows)
    assert made.records() == rows
    assert Table.of_records(shape, [rows[0], {}]).records() == rows
    assert len(Table.of_records(shape, [])) == 0


def test_rows_that_hold_a_text_are_found_by_asking_once_for_each_text() -> None:
    asked = []

    def wanted(name: str) -> bool:
        asked.append(name)
        return name == "b"

    table = build.kernels((0, 1, "a"), (1, 2, "b"), (2, 3, "b"), (3, 4, "c"))
    assert table.holds("name", wanted).tolist() == [False, True, True, False]
    assert asked == ["a", "b", "c"]
    nameless = Table.make(table.schema, {**table.columns, "name": Categorical.constant(None, 4)})
    assert not nameless.holds("name", lambda _: True).any()


def test_distinct_values_are_sorted() -> None:
    assert distinct(np.array([3, 1, 3, 2])).tolist() == [1, 2, 3]
    assert distinct(np.array([7, 7])).tolist() == [7]
    assert distinct(np.array([], dtype=np.int64)).tolist() == []


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=40), st.lists(st.floats(0, 1), max_size=5)
)
def test_quantiles_are_those_of_numpy_to_the_last_bit(
    values: list[int], shares: list[float]
) -> None:
    shares += [0.0, 0.05, 0.5, 0.95, 1.0]
    for column in (np.array(values), np.array(values) / 7):
        assert quantiles(column, shares) == np.quantile(column, shares).tolist()


def test_column_descriptions_say_unit_and_meaning() -> None:
    for table in schema.CANONICAL:
        assert table.meaning.endswith("?")
        for column in table.columns:
            assert column.meaning, f"{table.name}.{column.name}"
            assert column.unit, f"{table.name}.{column.name}"
            assert ("_ns" in column.name) == (column.unit == "ns")
    with pytest.raises(KeyError, match="no column 'durations'"):
        schema.KERNELS.column("durations")


@pytest.mark.parametrize("rows", [np.array([True, False, True]), np.array([2, 0])])
def test_absent_columns_take_no_memory_even_when_rows_are_taken(rows: Array) -> None:
    table = Table.make(schema.RANGES, {"start_ns": np.arange(3), **_flags(3)})
    taken = table.take(rows)
    assert len(taken) == 2
    for name in ("category", "message_bytes", "payload_float"):
        assert table[name].strides == taken[name].strides == (0,)
        assert taken.values(name) == [None, None]
    assert table["message_bytes"].dtype == np.int64


def _flags(rows: int) -> dict[str, ColumnData]:
    return {
        "end_ns": np.arange(rows),
        "domain": Categorical.constant("", rows),
        "name": Categorical.constant("x", rows),
        "style": Categorical.constant("push_pop", rows),
        "closed": np.ones(rows, dtype=np.bool_),
    }
