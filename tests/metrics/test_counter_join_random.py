"""Joins with counters agree with plain loops, on small random traces and runs."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.counter_join import join_counters
from kernelscope.metrics.window import Window
from kernelscope.parsers.counter_set import CounterSet
from kernelscope.trace import Trace
from tests import build
from tests.metrics.slow_counter_join import RECIPES, Execution, Ran, slow_join

METRICS = tuple(dict.fromkeys(metric for terms in RECIPES.values() for _, metric in terms))
NAMES = st.sampled_from(["a", "b"])
GRIDS = st.sampled_from([1, 2])
VALUES = st.sampled_from([0.0, 100.0, 101.0, 300.0, 100.0, 100.0, None])


@st.composite
def launched(draw: st.DrawFn) -> list[Ran]:
    """Kernels of two processes, launched in another order than they ran."""
    rows = draw(
        st.lists(
            st.tuples(NAMES, GRIDS, st.sampled_from([1, 1, 2]), st.integers(1, 15)),
            min_size=1,
            max_size=8,
        )
    )
    turns = draw(st.permutations(range(len(rows))))
    return [
        Ran(name, grid, process, 20 * i, 20 * i + length, -1000 + 10 * turn)
        for i, ((name, grid, process, length), turn) in enumerate(zip(rows, turns, strict=True))
    ]


@st.composite
def counted(draw: st.DrawFn) -> list[list[Execution]]:
    """One run that counted everything, or two that counted some metrics each, or the same."""
    whole = draw(st.lists(st.tuples(NAMES, GRIDS), min_size=1, max_size=8))
    runs = []
    for _ in range(draw(st.integers(1, 2))):
        metrics = draw(st.sampled_from([METRICS, METRICS, METRICS[:3], METRICS[3:], METRICS[:2]]))
        some = whole if draw(st.booleans()) else whole[:-1] or whole
        runs.append(
            [Execution(*each, {metric: draw(VALUES) for metric in metrics}) for each in some]
        )
    return runs


SHAPE = {"grid_y": 1, "grid_z": 1, "block_x": 64, "block_y": 1, "block_z": 1}


def trace_of(kernels: list[Ran]) -> Trace:
    calls = [
        {"start_ns": k.called, "end_ns": k.called + 5, "process_id": k.process, "thread_id": 1,
         "correlation_id": i, "name": "cudaLaunchKernel", "kind": "runtime"}
        for i, k in enumerate(kernels)
    ]  # fmt: skip
    rows = [
        {"start_ns": k.start, "end_ns": k.end, "name": k.name, "process_id": k.process,
         "device_id": 0, "stream_id": 7, "correlation_id": i, "grid_x": k.grid, **SHAPE}
        for i, k in enumerate(kernels)
    ]  # fmt: skip
    return build.trace(
        kernels=build.table(schema.KERNELS, rows),
        api_calls=build.table(schema.API_CALLS, sorted(calls, key=itemgetter("start_ns"))),
    )


def set_of(runs: list[list[Execution]]) -> CounterSet:
    counters: list[dict[str, Any]] = []
    executions: list[dict[str, Any]] = []
    for run, rows in enumerate(runs):
        for number, each in enumerate(rows):
            common = {"run": run, "execution": number, "executions": 1, "kernel_name": each.name,
                      "grid_x": each.grid, **SHAPE}  # fmt: skip
            executions.append(common)
            counters += [
                {**common, "metric": metric, "value": value, "statistic": "value",
                 "source": "nvprof", "rounding": 0.0,
                 "problem": "no_value" if value is None else None}
                for metric, value in each.values.items()
            ]  # fmt: skip
    sources = [{"run": run, "tool": "nvprof", "file": f"{run}"} for run in range(len(runs))]
    return CounterSet(
        build.table(schema.COUNTERS, counters),
        build.table(schema.COUNTED_EXECUTIONS, executions),
        build.table(schema.COUNTER_SOURCES, sources),
    )


@settings(deadline=None, max_examples=400)
@given(launched(), counted(), st.integers(0, 60), st.integers(61, 200))
def test_joins_agree_with_plain_loops(
    kernels: list[Ran], runs: list[list[Execution]], low: int, high: int
) -> None:
    expected = slow_join(kernels, runs, low, high)
    try:
        found = join_counters(trace_of(kernels), Window(low, high, "test"), set_of(runs))
    except (NotRecordedError, SelectionError):
        assert not expected
        return
    ours = {(row["name"], row["quantity"]): row for row in found.work.records()}

    assert set(ours) == set(expected)
    for key, row in expected.items():
        mine = {name: ours[key][name] for name in row}
        assert set(mine.pop("how").split("; ")) == row.pop("how")
        assert mine == pytest.approx(row)
