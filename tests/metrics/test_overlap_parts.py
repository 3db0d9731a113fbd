"""Overlap in iterations and in NVTX ranges: known answers, and random traces against a walk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.analysis import analyze
from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.iterations import Iterations, iterations
from kernelscope.metrics.nesting import nesting
from kernelscope.metrics.overlap import host_and_devices
from kernelscope.metrics.overlap_parts import overlap_by_iteration, overlap_by_range
from kernelscope.metrics.overlap_results import BOUNDS, STATES
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.window import Window, whole
from kernelscope.oracle.host_times import states
from kernelscope.trace import Trace
from tests import build
from tests.metrics import test_overlap as common
from tests.metrics import training
from tests.metrics.scenes import pushed
from tests.metrics.slow_overlap import times_of
from tests.metrics.test_overlap import four, on_core

ALL = tuple(f"{name}_ns" for name in (*STATES, *BOUNDS))


def steps(trace: Trace) -> Iterations:
    return iterations(trace, whole(trace), pattern="step #")


def test_each_iteration_is_told_by_its_whole_period() -> None:
    # Six steps of 100; the host works for 30 of each, the device from 20 to 60.
    trace = training.trace(
        training.ranges(*training.every("step {}", 100, 80, 6)),
        [100 * i for i in range(6)],
        latency=20,
        duration=40,
    ).with_tables(on_core=on_core(*((100 * i, 100 * i + 30) for i in range(6))))
    found = overlap_by_iteration(trace, steps(trace))
    rows = found.records()
    assert [row["index"] for row in rows] == list(range(6))
    assert [row["period_ns"] for row in rows] == [100] * 5 + [80]
    assert [four(row) for row in rows] == [(10, 30, 20, 40)] * 5 + [(10, 30, 20, 20)]
    assert {row["cpu_source"] for row in rows} == {"scheduling and api_calls"}  # to 530 of 580


def test_periods_are_clipped_to_a_window_that_was_measured_before() -> None:
    trace = training.trace(
        training.ranges(*training.every("step {}", 100, 80, 6)), [100 * i + 1 for i in range(6)]
    )
    found = host_and_devices(trace, Window(150, 350, "here"))
    rows = overlap_by_iteration(trace, steps(trace), found=found).records()
    assert [row["period_ns"] for row in rows] == [0, 50, 100, 50, 0, 0]


def test_all_figures_of_an_iteration_are_of_its_whole_period() -> None:
    """Of steps of 100 the window ends in the middle of the third one, which starts in it."""
    trace = training.trace(
        training.ranges(*training.every("step {}", 100, 80, 6)),
        [100 * i for i in range(6)],
        latency=20,
        duration=40,
    ).with_tables(on_core=on_core(*((100 * i, 100 * i + 30) for i in range(7))))
    result = analyze(trace, between=(100, 350), iteration="step #")
    everything = analyze(trace, iteration="step #")
    for name, number in (
        ("iterations", "index"),
        ("overlap_by_iteration", "index"),
        ("idle_by_iteration", "iteration"),
    ):
        expected = [row for row in everything.tables[name].records() if row[number] in (1, 2, 3)]
        rows = result.tables[name].records()
        assert rows
        assert rows == expected


def test_without_iterations_or_ranges_there_are_no_rows() -> None:
    trace = build.trace(api_calls=build.api_calls((0, 5)), kernels=build.kernels((6, 9)))
    assert len(overlap_by_iteration(trace, iterations(trace, whole(trace)))) == 0
    assert len(overlap_by_range(trace)) == len(overlap_by_range(trace, by="name")) == 0


def nested() -> Trace:
    return build.trace(
        api_calls=build.joined(
            build.api_calls((0, 10), (90, 100)), build.api_calls((0, 1), process_id=2)
        ),
        kernels=build.joined(build.kernels((20, 60)), build.kernels((50, 70), device_id=1)),
        on_core=on_core((0, 30), (80, 100)),
        ranges=build.joined(
            pushed((0, 50, "step 1"), (10, 40, "forward")),
            pushed((50, 100, "step 2"), (55, 65, "forward")),
            pushed((0, 9, "forward"), process_id=2),
        ),
    )  # fmt: skip


def test_ranges_by_path_tell_what_process_and_device_did_meanwhile() -> None:
    rows = overlap_by_range(nested(), folded=True).records()
    found = {
        (row["path"].replace(SEPARATOR, "/"), row["device_id"]): (
            row["instances"], row["open_ns"], four(row),
        )
        for row in rows
    }  # fmt: skip
    assert found == {
        ("step #", 0): (2, 100, (10, 30, 40, 20)),
        ("step #", 1): (2, 100, (0, 20, 50, 30)),
        # From 10 to 40 the host works until 30; from 55 to 65 it does not.
        ("step #/forward", 0): (2, 40, (10, 15, 10, 5)),
        ("step #/forward", 1): (2, 40, (0, 10, 20, 10)),
    }
    assert [row["open_ns"] for row in rows] == [100, 100, 40, 40]


def test_ranges_by_name_are_of_their_own_process() -> None:
    rows = overlap_by_range(nested(), by="name").records()
    assert {(row["name"], row["process_id"]) for row in rows} == {
        ("step 1", 1), ("step 2", 1), ("forward", 1),
    }  # fmt: skip


def test_ranges_are_clipped_to_the_window() -> None:
    window = Window(20, 60, "here")
    rows = overlap_by_range(nested(), window, by="name").records()
    opened = {row["name"]: (row["instances"], row["open_ns"]) for row in rows}
    # No call lies in the window, so that nobody drives; times of ranges are known all the same.
    assert opened == {"step 1": (0, 30), "step 2": (1, 10), "forward": (1, 25)}
    assert {row["both_ns"] for row in rows} == {None}


NAMED = st.lists(
    st.tuples(common.SPANS, common.WHO, st.sampled_from(["a 1", "a 2", "b"])), max_size=6
)


@pytest.mark.parametrize("folded", [False, True])
@given(common.TRACES, NAMED, common.WINDOWS)
def test_any_ranges_agree_with_walking_their_union(
    folded: bool, trace: Trace, named: Any, place: tuple[int, int] | None
) -> None:
    opened = (pushed((*s, name), process_id=p, thread_id=t) for s, (p, t), name in named)
    trace = trace.with_tables(ranges=build.joined(pushed(), *opened))
    window = common.placed(trace, place)
    times = times_of(trace)
    driving = times.driving((window.start_ns, window.end_ns))
    for row in overlap_by_range(trace, window, by="name", folded=folded).records():
        mine = _union(trace, row, folded=folded)
        expected = dict.fromkeys(ALL, 0)
        for start, end in mine:
            inside = max(start, window.start_ns), min(end, window.end_ns)
            if inside[0] < inside[1]:
                found = states(times, inside, driving).get((row["process_id"], row["device_id"]))
                for name in ALL:
                    expected[name] += 0 if found is None else found[name]
        for name in ALL:
            assert row[name] in (None, expected[name])
        if row["both_ns"] is not None:
            assert sum(four(row)) == row["open_ns"]


def _union(trace: Trace, row: dict[str, Any], *, folded: bool) -> list[tuple[int, int]]:
    """Return when any range of a row was open."""
    crossing = nesting(trace.ranges).crossing.tolist()
    spans = sorted(
        (each["start_ns"], each["end_ns"])
        for each, crosses in zip(trace.ranges.records(), crossing, strict=True)
        if (fold(each["name"]) if folded else each["name"]) == row["name"]
        and each["process_id"] == row["process_id"]
        and crosses == (row["style"] == "crossing")
    )
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
