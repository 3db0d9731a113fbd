"""Tables that no report holds, for queries that go down to single launches and pauses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.metrics.drill_down import DRILL_DOWN
from kernelscope.metrics.launch_calls import launch_calls
from kernelscope.metrics.window import starts_inside
from kernelscope.report.sql import execute
from kernelscope.report.sql_tables import contents, relations, source_of
from kernelscope.trace import Trace
from tests.metrics.test_findings import two_processes

ROOT = Path(__file__).resolve().parents[2]
CHOICES: tuple[dict[str, Any], ...] = (
    {}, {"between": (500_000_123, 700_000_456)}, {"only": "steady"},
)  # fmt: skip


def resnet() -> Trace:
    return ks.read(ROOT / "traces" / "resnet_training.sqlite")


def test_each_is_listed_and_no_table_of_the_analysis() -> None:
    known = relations()
    for name in DRILL_DOWN:
        assert known[f"result_{name}"].kind == "result"
        assert name not in ks.analyze(resnet()).tables


@pytest.mark.parametrize("choice", CHOICES)
def test_stretches_of_idle_time_add_up_to_its_causes(choice: dict[str, Any]) -> None:
    source = source_of(resnet(), **choice)
    pieces = contents("result_idle_pieces", source)
    total = int((pieces["end_ns"] - pieces["start_ns"]).sum())
    assert total == int(source.analysis().idle["total_ns"].sum())
    assert total == int(source.analysis().devices["idle_ns"].sum())


@pytest.mark.parametrize("choice", CHOICES)
def test_launches_are_those_that_start_in_the_window(choice: dict[str, Any]) -> None:
    trace = resnet()
    source = source_of(trace, **choice)
    every = launch_calls(trace)
    expected = every.take(starts_inside(every, source.window()))
    assert contents("result_launch_calls", source).records() == expected.records()
    totals = source.analysis().launch_totals
    assert len(expected) == int(totals["calls"][0])


def test_steps_of_the_queue_have_the_mean_of_the_report() -> None:
    source = source_of(resnet())
    (mean,) = execute(
        source,
        "SELECT 1.0 * sum(depth * (end_ns - start_ns)) / sum(end_ns - start_ns) "
        "FROM result_queue_depth_steps",
    ).rows[0]
    assert mean == pytest.approx(float(source.analysis().queue_depth["mean"][0]), rel=1e-12)


@pytest.mark.parametrize("by", ["path", "name"])
def test_states_of_ranges_add_up_to_the_time_that_they_were_open(by: str) -> None:
    table = contents(f"result_overlap_by_{by}", source_of(resnet()))
    states = sum(table[f"{state}_ns"] for state in ("both", "gpu_only", "cpu_only", "neither"))
    assert len(table) > 3
    assert np.array_equal(states, table["open_ns"])


def test_a_chosen_process_has_its_own_devices_numbered_from_0() -> None:
    source = source_of(two_processes(), processes=[2])
    pieces = contents("result_idle_pieces", source)
    assert set(pieces["device"].tolist()) == {0}
    assert pieces.values("ending_row") == [None] * len(pieces)
    total = int((pieces["end_ns"] - pieces["start_ns"]).sum())
    assert total == int(source.analysis().idle["total_ns"].sum())
    assert len(contents("result_launch_calls", source)) == 2


def test_a_name_that_no_query_says_is_never_made() -> None:
    source = source_of(resnet())
    answer = execute(source, "SELECT count(*) FROM first_executions")
    assert set(answer.tables) == {"kernels", "copies", "graphs", "api_calls"}
    assert execute(source, "SELECT count(*) FROM sqlite_master").rows[0][0] >= len(relations())
