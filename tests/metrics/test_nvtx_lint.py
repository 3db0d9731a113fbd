"""What the linter says of ranges that are wrong, and that it is silent of those that are not."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope.metrics.attribution import attribute
from kernelscope.metrics.nvtx_lint import nvtx_findings
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics.scenes import family_of, kernels, launches, pushed


def scene(ranges: Table) -> Trace:
    return build.trace(ranges=ranges, api_calls=launches((4, 5)), kernels=kernels((20, 24, 1)))


def findings(trace: Trace) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in nvtx_findings(trace).records()}


def test_sound_ranges_have_no_findings() -> None:
    assert not len(nvtx_findings(scene(pushed((0, 10, "step 1"), (3, 6, "forward")))))
    assert not len(nvtx_findings(build.trace()))


@pytest.mark.parametrize(
    ("extra", "code", "severity"),
    [
        (pushed((4, 30, "op"), closed=False), "nvtx_unbalanced", "warning"),
        (pushed((4, 30, "op")), "nvtx_crossing", "warning"),
        (
            pushed((4, 30, "op"), style="start_end", end_thread_id=2),
            "nvtx_closed_elsewhere",
            "info",
        ),
        (pushed((4, 4, "op")), "nvtx_no_length", "info"),
        (pushed((0, 10, "op")), "nvtx_same_bounds", "info"),
        (pushed((11, 12, "op")), "nvtx_no_work", "info"),
        (pushed((4, 30, "op"), thread_id=None), "nvtx_unknown_thread", "info"),
    ],
)
def test_each_flaw_is_found(extra: Table, code: str, severity: str) -> None:
    found = findings(scene(build.joined(pushed((0, 10, "step 1")), extra)))[code]
    assert found["severity"] == severity
    assert found["count"] == (2 if code == "nvtx_same_bounds" else 1)
    assert found["share"] == found["count"] / 2
    assert found["example"] in {"op", "step 1"}


def test_a_librarys_ranges_may_launch_nothing() -> None:
    quiet = pushed((11, 12, "ncclCommCount"), domain="NCCL")
    assert not findings(scene(build.joined(pushed((0, 10, "step 1")), quiet)))


def test_names_without_work_are_counted_with_digits_folded() -> None:
    found = findings(scene(pushed((0, 10, "step 1"), (11, 12, "io 1"), (13, 14, "io 2"))))
    assert found["nvtx_no_work"]["count"] == 1
    assert found["nvtx_no_work"]["share"] == 2 / 3
    steps = pushed((0, 10, "step 1"), (11, 12, "step 2"))  # another of the name launched
    assert not findings(scene(steps))


def test_the_share_of_kernel_time_in_no_range() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "step 1")),
        api_calls=launches((4, 5), (12, 13)),
        kernels=kernels((20, 29, 1), (30, 31, 2)),
    )
    found = findings(trace)["nvtx_unattributed"]
    assert (found["count"], found["share"], found["severity"]) == (1, 0.1, "warning")
    assert "between_ranges" in found["message"]


def test_kernels_without_any_ranges() -> None:
    assert findings(scene(pushed()))["nvtx_no_ranges"]["count"] == 1


def test_several_threads_with_the_same_steps() -> None:
    steps = [(100 * i, 100 * i + 60, f"step {i}") for i in range(5)]
    trace = scene(build.joined(pushed(*steps), pushed(*steps, thread_id=2)))
    found = nvtx_findings(trace, attribution=attribute(trace, family=family_of(trace, range(5))))
    assert "nvtx_several_threads" in found.texts("code")


def test_what_no_range_holds_is_told_of_the_window() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "step 1")),
        api_calls=launches((4, 5), (40, 41)),
        kernels=kernels((20, 24, 1), (50, 60, 2)),
    )
    found = nvtx_findings(trace, Window(0, 55, "")).records()
    assert [(row["code"], row["count"], row["share"]) for row in found] == [
        ("nvtx_unattributed", 1, 5 / 9)
    ]
    assert not len(nvtx_findings(trace, Window(0, 30, "")))
