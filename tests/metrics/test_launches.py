"""The join of work to its launch: within a process, to the innermost call."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.launches import launch_rows
from kernelscope.trace import Table
from tests import build


def events(rows: list[tuple[int, int | None, int]], what: str) -> Table:
    make = build.kernels if what == "kernel" else build.api_calls
    return build.joined(
        *(make((start, start + 1), process_id=process, correlation_id=correlation)
          for process, correlation, start in rows)
    )  # fmt: skip


def test_two_processes_with_the_same_correlation_ids_do_not_mix() -> None:
    """The join on correlation id alone would find twice as many pairs (USER_PAINS R1, R2)."""
    calls = events([(1, 5, 0), (2, 5, 3)], "call")
    work = events([(2, 5, 10), (1, 5, 11)], "kernel")
    assert launch_rows(work, calls).tolist() == [1, 0]


def test_a_graph_launch_is_the_launch_of_all_its_nodes() -> None:
    calls = events([(1, 9, 0)], "call")
    assert launch_rows(events([(1, 9, 5), (1, 9, 6)], "kernel"), calls).tolist() == [0, 0]


def test_of_nested_calls_the_innermost_launched_it() -> None:
    calls = build.api_calls((10, 20), (0, 30), correlation_id=4)
    assert launch_rows(build.kernels((50, 60), correlation_id=4), calls).tolist() == [0]


def test_wrappers_launch_nothing() -> None:
    calls = build.joined(
        build.api_calls((0, 30), correlation_id=4),
        build.api_calls((1, 29), correlation_id=4, kind="wrapper"),
    )
    proper = calls_without_wrappers(calls)
    assert len(proper) == 1
    assert launch_rows(build.kernels((50, 60), correlation_id=4), proper).tolist() == [0]


def test_missing_ids_join_nothing() -> None:
    calls = events([(1, None, 0), (1, 3, 1)], "call")
    work = events([(1, None, 5), (1, 3, 6), (1, 4, 7)], "kernel")
    assert launch_rows(work, calls).tolist() == [-1, 1, -1]
    assert launch_rows(work.take(np.array([0])), calls).tolist() == [-1]


IDS = st.one_of(st.none(), st.integers(0, 6), st.just(2**32 - 1), st.just(-1))
ROWS = st.lists(st.tuples(st.integers(1, 3), IDS, st.integers(0, 9)), min_size=1, max_size=30)


@given(ROWS, ROWS)
def test_the_join_agrees_with_plain_loops(
    work: list[tuple[int, int | None, int]], calls: list[tuple[int, int | None, int]]
) -> None:
    calls = [(process, correlation, start * 100 + row)
             for row, (process, correlation, start) in enumerate(calls)]  # fmt: skip
    got = launch_rows(events(work, "kernel"), events(calls, "call")).tolist()
    for (process, correlation, _), row in zip(work, got, strict=True):
        matching = [
            (start, index)
            for index, (owner, id_, start) in enumerate(calls)
            if correlation is not None and (owner, id_) == (process, correlation)
        ]
        assert row == (max(matching)[1] if matching else -1)
