"""Why the GPUs of each iteration stood still, beside how long it took."""

from __future__ import annotations

from typing import Any

import pytest

import kernelscope as ks
from kernelscope.metrics.analysis import TABLES
from kernelscope.metrics.iteration_causes import iteration_causes
from kernelscope.metrics.overlap_results import STATES
from kernelscope.trace import Table
from tests.build import table
from tests.corpus import each, nsys_traces

SCHEMAS = {schema.name: schema for schema in TABLES}


def tables(**rows: list[dict[str, Any]]) -> dict[str, Table]:
    names = ("iterations", "idle_by_iteration", "overlap_by_iteration", "device_ordinals")
    return {name: table(SCHEMAS[name], rows.get(name, [])) for name in names}


def idle(iteration: int, device: int, cause: str, total_ns: int) -> dict[str, Any]:
    return {"iteration": iteration, "device": device, "cause": cause, "total_ns": total_ns}


def test_causes_of_the_process_s_own_devices_are_summed() -> None:
    made = iteration_causes(
        tables(
            iterations=[{"index": 3}, {"index": 4}, {"index": 7}],
            device_ordinals=[
                {"index": 0, "process_id": 42, "device_id": 0},
                {"index": 1, "process_id": 42, "device_id": 1},
                {"index": 2, "process_id": 43, "device_id": 0},
            ],
            idle_by_iteration=[
                idle(3, 0, "launch_latency", 60),
                idle(3, 0, "host: code", 50),
                idle(3, 1, "host: code", 30),
                idle(3, 2, "profiler", 900),
                idle(7, 1, "profiler", 5),
            ],
            overlap_by_iteration=[
                {"index": 3, "process_id": 42, "device_id": device}
                | {f"{state}_ns": 10 * (device + 1) for state in STATES}
                for device in (0, 1)
            ],
        ),
        42,
    )

    assert made.values("idle_ns") == [140, 0, 5]
    assert made.texts("main_idle_cause") == ["host: code", None, "profiler"]
    assert made.values("main_idle_ns") == [80, None, 5]
    assert made.values("both_ns") == [30, None, None]
    assert made.values("index") == [3, 4, 7]


def test_a_state_that_one_device_lacks_is_missing() -> None:
    row = {f"{state}_ns": 10 for state in STATES}
    made = iteration_causes(
        tables(
            iterations=[{"index": 0}],
            overlap_by_iteration=[
                {"index": 0, "device_id": 0, **row},
                {"index": 0, "device_id": 1, **row, "both_ns": None},
            ],
        ),
        None,
    )

    assert (made.values("both_ns"), made.values("neither_ns")) == ([None], [20])


def test_serialised_captures_have_no_idle_time_of_the_program() -> None:
    known = tables(
        iterations=[{"index": 0}], device_ordinals=[{"index": 0, "process_id": 1, "device_id": 0}]
    )

    assert iteration_causes(known, 1).values("idle_ns") == [0]
    assert iteration_causes(known, 1, serialised=True).values("idle_ns") == [None]


@pytest.mark.parametrize("process", [None, 42])
def test_no_iterations(process: int | None) -> None:
    assert len(iteration_causes(tables(), process)) == 0


@each(nsys_traces())
def test_idle_time_of_iterations_is_that_of_their_rows(trace_file: Any) -> None:
    analysis = ks.analyze(ks.read(trace_file))
    process = analysis.iteration_summary.process_id
    made = iteration_causes(analysis.tables, process)

    own = {
        row["index"]
        for row in analysis.tables["device_ordinals"].records()
        if row["process_id"] == process
    }
    expected: dict[int, dict[str, int]] = {index: {} for index in made.values("index")}
    for row in analysis.tables["idle_by_iteration"].records():
        if row["device"] in own:
            causes = expected[row["iteration"]]
            causes[row["cause"]] = causes.get(row["cause"], 0) + row["total_ns"]
    for row in made.records():
        causes = expected[row["index"]]
        assert row["idle_ns"] == (sum(causes.values()) if own else None)
        if causes:
            assert row["main_idle_ns"] == max(causes.values())
            assert causes[row["main_idle_cause"]] == row["main_idle_ns"]
