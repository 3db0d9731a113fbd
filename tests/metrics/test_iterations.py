"""The table and the summary of iterations, by hand and against slow counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.device_time import measure
from kernelscope.metrics.iteration_results import STATES
from kernelscope.metrics.iterations import Iterations, iterations
from kernelscope.metrics.mark_iterations import mark_iterations
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics.training import every, merged, ranges, trace


def of(built: Trace, **options: Any) -> Iterations:
    return iterations(built, whole(built), **options)


def test_one_iteration_by_hand() -> None:
    """Steps of 100 ns, ranges of 60; launches at +10 and +90; kernels 2 ns later, 30 ns long."""
    steps = every("step {}", 100, 60, 6)
    launches = [at + 100 * i for i in range(6) for at in (10, 50)]
    found = of(trace(ranges(*steps), launches, duration=70))
    first, second, *_, last = found.rows.records()
    # kernels of step 0 run 12–82 and 52–122: busy 12–100, 22 ns of the second spill over
    assert first == {
        "index": 0,
        "label": "step 0",
        "start_ns": 0,
        "period_ns": 100,
        "range_ns": 60,
        "outside_ns": 40,
        "busy_in_window_ns": 88,
        "kernel_in_window_ns": 88,
        "attributed_ns": 140,
        "spill_ns": 22,
        "opaque_ns": 0,
        "launches": 2,
        "kernels": 2,
        "state": "steady",
    }
    assert second["busy_in_window_ns"] == 100
    assert (last["period_ns"], last["outside_ns"], last["state"]) == (60, 0, "last")
    assert found.summary.steady.count == 5
    assert found.summary.steady.median_ns == 100


def test_warmup_outliers_and_throughput() -> None:
    """Periods 900, 100 × 20, 500, 100 × 20; the last step is in no statistic."""
    periods = [900, *[100] * 20, 500, *[100] * 20]
    starts = np.cumsum([0, *periods]).tolist()
    steps = [(f"step {i}", at, at + 60) for i, at in enumerate(starts)]
    built = trace(ranges(*steps), [at + 10 for at in starts])
    summary = of(built, batch_size=8, ranks=4).summary
    assert (summary.family, summary.domain, summary.source) == ("step #", "", "nvtx")
    assert summary.count == 43
    assert summary.warmup == (0,)
    assert summary.outliers == (21,)
    assert summary.steady.count == 40
    # 41 iterations after warm-up, the outlier among them, took 4,500 ns
    assert summary.throughput_per_s == pytest.approx(41 * 8 * 4 / 4500e-9)
    assert of(built).summary.throughput_per_s is None
    assert summary.notes == ("41 iterations after warm-up; the TBD benchmark samples at least 50.",)


def test_one_iteration_after_warmup_is_one() -> None:
    steps = [(f"step {i}", at, at + 60) for i, at in enumerate((0, 100))]
    summary = of(trace(ranges(*steps), [10, 110]), pattern="step *").summary
    assert "1 iteration after warm-up; the TBD benchmark samples at least 50." in summary.notes


def test_kernels_of_another_process_are_not_the_iterations() -> None:
    steps = every("step {}", 100, 60, 10)
    own = trace(ranges(*steps), [100 * i + 10 for i in range(10)])
    other = trace((), [100 * i + 50 for i in range(10)], process=2, duration=40)
    rows = of(merged(own, other)).rows
    assert rows["kernels"].tolist() == [1] * 10
    assert rows["busy_in_window_ns"].tolist() == [3] * 10


def test_given_attribution_counts() -> None:
    steps = every("step {}", 100, 60, 6)
    built = trace(ranges(*steps), [100 * i + 10 for i in range(6)])
    owner = np.array([0, 0, 0, 5, -1, -1], dtype=np.int32)
    rows = of(built, owners=(owner, np.empty(0, dtype=np.int32))).rows
    assert rows["kernels"].tolist() == [3, 0, 0, 0, 0, 1]
    assert rows["spill_ns"].tolist() == [6, 0, 0, 0, 0, 0]


def test_without_markers_the_kernel_sequence_is_cut() -> None:
    built = trace((), [10 * i for i in range(60)], names=list("abcdef" * 10))
    found = of(built, batch_size=8)
    assert found.summary.family == "repeating unit of 6 kernels"
    assert found.summary.source == "kernel_sequence"
    assert found.summary.domain is None
    assert found.summary.throughput_per_s is None  # of a layer, perhaps
    assert found.rows["kernels"].tolist() == [6] * 10
    assert found.rows.values("range_ns") == found.rows.values("label") == [None] * 10
    assert any("cannot be told apart" in note for note in found.summary.notes)


@pytest.mark.parametrize("names", ["abcdefghij", "aaaaaaaaaaaaaaaa"])
def test_none_says_why(names: str) -> None:
    built = trace((), [10 * i for i in range(len(names))], names=list(names))
    found = of(built)
    assert len(found.rows) == 0
    assert found.summary.family is None
    assert found.summary.steady.median_ns is None
    assert len(found.summary.notes) == 2


def test_cross_check() -> None:
    steps = every("step {}", 60, 50, 10)
    built = trace(ranges(*steps), [10 * i for i in range(60)], names=list("abcdef" * 10))
    check = of(built, cross_check=True).summary.kernel_sequence
    assert check is not None
    assert (check.name, check.count, check.agrees) == ("repeating unit of 6 kernels", 10, True)
    assert of(built).summary.kernel_sequence is None


def test_iterations_of_a_window_are_those_that_start_in_it() -> None:
    steps = every("step {}", 100, 60, 10, begin=-5)
    built = trace(ranges(*steps), [100 * i + 10 for i in range(10)])
    assert of(built).rows["index"].tolist() == list(range(10))
    some = iterations(built, Window(295, 495, "--between"))
    assert some.rows["index"].tolist() == [3, 4]
    assert some.summary.count == 2
    assert some.summary.steady.count == 2


def test_the_users_name_goes_before_what_would_be_found() -> None:
    rows = ranges(*every("step {}", 100, 60, 10), *every("part {}", 50, 20, 20))
    built = trace(rows, [10 * i for i in range(100)])
    found = of(built, pattern="part *").summary
    assert (found.family, found.source, found.count) == ("part #", "user", 20)
    with pytest.raises(SelectionError):
        mark_iterations(built, "nothing *")
    with pytest.raises(NotRecordedError):
        mark_iterations(trace((), [1, 2, 3]), "step *")


def test_nothing_at_all() -> None:
    built = trace()
    assert len(of(built).rows) == 0


@st.composite
def run(draw: st.DrawFn) -> Trace:
    cuts = sorted(draw(st.sets(st.integers(0, 300), min_size=2, max_size=24)))
    steps = [
        (f"step {i}", a, b) for i, (a, b) in enumerate(zip(cuts[::2], cuts[1::2], strict=False))
    ]
    launches = sorted(draw(st.lists(st.integers(0, 300), min_size=1, max_size=40)))
    return trace(ranges(*steps), launches, duration=draw(st.integers(0, 30)))


@given(run())
def test_figures_agree_with_slow_counting(built: Trace) -> None:
    found = of(built, pattern="step *")
    kernels = list(
        zip(built.kernels["start_ns"].tolist(), built.kernels["end_ns"].tolist(), strict=True)
    )
    calls = built.api_calls["start_ns"].tolist()
    for row in found.rows.records():
        low, high = row["start_ns"], row["start_ns"] + row["period_ns"]
        busy = sum(any(a <= t < b for a, b in kernels) for t in range(low, high))
        mine = [k for k, at in zip(kernels, calls, strict=True) if low <= at < high]
        assert row["busy_in_window_ns"] == row["kernel_in_window_ns"] == busy
        assert row["kernels"] == row["launches"] == len(mine)
        assert row["attributed_ns"] == sum(b - a for a, b in mine)
        assert row["spill_ns"] == sum(max(b - max(a, high), 0) for a, b in mine)


@given(run())
def test_the_devices_accounts_say_the_same(built: Trace) -> None:
    there = iterations(built, whole(built), pattern="step *", measured=measure(built))
    assert there.rows.records() == of(built, pattern="step *").rows.records()


@given(run(), st.data())
def test_opaque_graphs_are_work_of_the_iteration_that_launched_them(
    built: Trace, data: st.DataObject
) -> None:
    """Kernels that were traced as graphs change which column their time is in, nothing else."""
    opaque = np.array([data.draw(st.booleans()) for _ in range(len(built.kernels))], dtype=bool)
    rows = [row | {"name": None} for row in built.kernels.take(opaque).records()]
    hidden = built.with_tables(
        kernels=built.kernels.take(~opaque), graphs=build.table(schema.GRAPHS, rows)
    )
    seen, found = (of(each, pattern="step *").rows for each in (built, hidden))
    same = ("busy_in_window_ns", "kernel_in_window_ns", "attributed_ns", "spill_ns", "launches")
    for name in same:
        assert found[name].tolist() == seen[name].tolist()
    calls = built.api_calls["start_ns"].tolist()
    for row in found.records():
        low, high = row["start_ns"], row["start_ns"] + row["period_ns"]
        mine = [at for at, each in zip(calls, opaque, strict=True) if each and low <= at < high]
        kernels = [at for at, each in zip(calls, ~opaque, strict=True) if each and low <= at < high]
        time = built.kernels["end_ns"] - built.kernels["start_ns"]
        assert row["kernels"] == len(kernels)
        assert row["opaque_ns"] == sum(int(time[calls.index(at)]) for at in mine)


def test_a_step_that_is_one_opaque_graph_is_an_iteration_all_the_same() -> None:
    """With graphs traced as one unit there may be no kernel at all."""
    steps = every("step {}", 100, 60, 8)
    built = trace(ranges(*steps), [100 * i + 10 for i in range(8)], duration=95)
    rows = [row | {"name": None} for row in built.kernels.records()]
    hidden = built.with_tables(
        kernels=Table.empty(schema.KERNELS), graphs=build.table(schema.GRAPHS, rows)
    )
    found = of(hidden)
    assert (found.summary.family, found.summary.source) == ("step #", "nvtx")
    assert found.rows["kernels"].tolist() == [0] * 8
    assert found.rows["opaque_ns"].tolist() == found.rows["attributed_ns"].tolist() == [95] * 8
    assert found.rows["spill_ns"].tolist() == [7] * 7 + [47]
    assert found.rows["busy_in_window_ns"].tolist() == [88] + [95] * 6 + [55]


@given(run())
def test_periods_sum_to_the_span_and_states_partition(built: Trace) -> None:
    found = of(built, pattern="step *")
    rows = found.rows
    end = rows["start_ns"][-1] + rows["range_ns"][-1]
    assert rows["period_ns"].sum() == end - rows["start_ns"][0]
    states = rows.values("state")
    assert states.count("last") == 1
    assert sum(states.count(state) for state in STATES) == len(rows) == found.summary.count
    assert states.count("steady") == found.summary.steady.count
    assert states.count("warmup") == len(found.summary.warmup)
    assert states.count("outlier") == len(found.summary.outliers)
