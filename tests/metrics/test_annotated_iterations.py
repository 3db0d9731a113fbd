"""What annotated iterations say of themselves is used: numbers, batch sizes, and who they are."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope import schema
from kernelscope.metrics.find_iterations import find
from kernelscope.metrics.iterations import iterations
from kernelscope.metrics.window import whole
from kernelscope.trace import Trace
from tests import build

COUNT = 8


def training(wait: int, step: int, **said: Any) -> Trace:
    """Iterations from 20 on that wait `wait` ns for data and take `step` ns; a launch in each."""
    ranges: list[dict[str, Any]] = []
    for n in range(COUNT):
        start = n * (wait + step)
        common = {"payload_int": 20 + n, "domain": "kernelscope"}
        ranges += [
            {"start_ns": start, "end_ns": start + wait, "name": "data loading",
             "role": "data loading", **common},
            {"start_ns": start + wait, "end_ns": start + wait + step, "name": "iteration",
             "role": "iteration", **common, **said},
        ]  # fmt: skip
    launched = [n * (wait + step) + wait + 1 for n in range(COUNT)]
    rows = [{"process_id": 1, "thread_id": 1, "correlation_id": 1 + n} for n in range(COUNT)]
    calls = [
        {**row, "start_ns": at, "end_ns": at + 1, "kind": "runtime", "name": "cudaLaunchKernel"}
        for row, at in zip(rows, launched, strict=True)
    ]
    executions = [
        {**row, "start_ns": at + 1, "end_ns": at + 5, "device_id": 0, "name": "kernel"}
        for row, at in zip(rows, launched, strict=True)
    ]
    here = {"process_id": 1, "thread_id": 1, "style": "push_pop", "closed": True}
    return build.trace(
        kernels=build.table(schema.KERNELS, executions),
        api_calls=build.table(schema.API_CALLS, calls),
        ranges=build.table(schema.RANGES, [{**row, **here} for row in ranges]),
    )


@pytest.mark.parametrize(("wait", "step"), [(10, 1000), (1000, 10), (100, 100)])
def test_waiting_for_data_is_never_the_iteration(wait: int, step: int) -> None:
    found = find(training(wait, step))

    assert found is not None
    assert found.family.folded_name == "iteration"
    assert len(found.family.starts) == COUNT


def test_labels_have_the_numbers() -> None:
    trace = training(10, 100, batch_size=4)
    found = iterations(trace, whole(trace))

    assert found.rows.values("label") == [f"iteration {20 + n}" for n in range(COUNT)]


def test_the_batch_size_that_they_say() -> None:
    trace = training(10, 90, batch_size=4)
    said = iterations(trace, whole(trace)).summary.throughput_per_s
    given = iterations(trace, whole(trace), batch_size=7, ranks=2).summary.throughput_per_s

    assert said == pytest.approx(4 / 100e-9)
    assert given == pytest.approx(14 / 100e-9)


def test_no_batch_size() -> None:
    cases: list[dict[str, Any]] = [{}, {"batch_size": 0}]
    for said in cases:
        trace = training(10, 90, **said)
        assert iterations(trace, whole(trace)).summary.throughput_per_s is None
