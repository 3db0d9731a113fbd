"""Which ranges are the iterations: known answers, and a slow and obvious score."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.find_iterations import MIN_SCORE, Found, find, named
from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.range_families import candidates
from kernelscope.metrics.range_names import (
    SAYS_ITERATION,
    SAYS_NOTHING,
    SAYS_OTHER,
    SAYS_PART,
    fold_all,
    is_library_range,
    name_rank,
    users_names,
)
from kernelscope.trace import Trace
from tests.build import table
from tests.metrics.training import Range, every, merged, ranges, trace

LAUNCHES = list(range(0, 10_000, 10))
"""A launch each 10 ns: ten in each period of 100."""


def chosen(found: Found | None) -> tuple[str, int] | None:
    return None if found is None else (found.family.folded_name, len(found.family.starts))


def name_of(*rows: Range, launches: list[int] | None = None) -> tuple[str, int] | None:
    return chosen(find(trace(ranges(*rows), LAUNCHES if launches is None else launches)))


STEPS = every("step {}", 100, 80, 100)
LAYERS = [layer for i in range(100) for layer in every("layer {}", 20, 18, 4, begin=i * 100)]
EPOCHS = every("epoch {}", 1000, 999, 10)


def test_steps_alone() -> None:
    assert name_of(*STEPS) == ("step #", 100)


def test_steps_around_layers() -> None:
    assert name_of(*STEPS, *LAYERS) == ("step #", 100)


def test_steps_inside_epochs() -> None:
    assert name_of(*STEPS, *EPOCHS) == ("step #", 100)


def test_steps_between_epochs_and_layers() -> None:
    assert name_of(*STEPS, *LAYERS, *EPOCHS) == ("step #", 100)


@pytest.mark.parametrize("steps", [5, 10, 100])
def test_steps_not_layers_however_many_were_captured(steps: int) -> None:
    rows = [*STEPS[:steps], *LAYERS[: 4 * steps]]
    assert name_of(*rows, launches=list(range(0, steps * 100, 10))) == ("step #", steps)


def test_irregular_steps_win_over_regular_layers() -> None:
    """Steps of many lengths score less than their layers, and are the iterations nevertheless."""
    steps, layers, at = [], [], 0
    for i in range(60):
        count = (4, 7, 10)[i % 3]
        layers += every("layer {}", 20, 18, count, begin=at)
        steps.append((f"step {i}", at, at + 20 * count))
        at += 20 * count
    found = find(trace(ranges(*steps, *layers), list(range(0, at, 10))))
    assert chosen(found) == ("step #", 60)
    assert found is not None
    assert found.runner_up is not None
    assert found.runner_up.name == "layer #"
    assert found.runner_up.score > 1.2 * found.score


def test_without_names_that_say_so_the_outer_wins() -> None:
    outer = every("outer {}", 1000, 990, 10)
    inner = [each for i in range(10) for each in every("inner {}", 100, 90, 9, begin=i * 1000)]
    assert name_of(*outer, *inner) == ("outer #", 10)


def test_the_name_that_says_so_wins_inside_a_nameless_one() -> None:
    outer = every("chunk {}", 1000, 990, 10)
    inner = [each for i in range(10) for each in every("train_step", 100, 90, 9, begin=i * 1000)]
    assert name_of(*outer, *inner) == ("train_step", 90)


def test_a_microbatch_gives_way_to_a_batch() -> None:
    micro = [m for i in range(100) for m in every("microbatch {}", 25, 20, 3, begin=i * 100)]
    assert name_of(*every("batch {}", 100, 80, 100), *micro) == ("batch #", 100)


def test_microbatches_inside_epochs_are_all_there_is() -> None:
    micro = every("micro_batch", 100, 80, 100)
    assert name_of(*EPOCHS, *micro) == ("micro_batch", 100)


def test_an_optimizer_step_is_part_of_an_iteration() -> None:
    train = every("train {}", 100, 90, 100)
    optimizer = every("optimizer step", 100, 10, 100, begin=70)
    assert name_of(*train, *optimizer) == ("train #", 100)


def test_ranges_of_the_same_extent_are_those_opened_first() -> None:
    spans = every("{}", 100, 80, 100)
    rows = [(f"{name} {i}", a, b) for i, (_, a, b) in enumerate(spans) for name in ("x", "y")]
    assert name_of(*rows) == ("x #", 100)


def test_a_range_around_each_step_is_as_good_as_the_step() -> None:
    """The outermost of tied families, though only the inner one's name says *step*."""
    chunks = every("chunk {}", 200, 190, 50)
    around = [w for i in range(50) for w in every("work", 100, 88, 2, begin=200 * i)]
    steps = [s for i in range(50) for s in every("step", 100, 80, 2, begin=200 * i + 2)]
    assert name_of(*chunks, *around, *steps) == ("work", 100)


def test_phases_side_by_side_begin_with_the_first() -> None:
    phases = [
        *every("data", 100, 30, 100),
        *every("forward", 100, 30, 100, begin=30),
        *every("step", 100, 30, 100, begin=60),
    ]
    assert name_of(*phases) == ("data", 100)


def test_validation_steps_between_training_steps_give_way() -> None:
    """They are as regular, and span nearly as much of the run; but most of it is not theirs."""
    rows: list[Range] = []
    for epoch in range(40):
        rows += every("validation_step", 20, 18, 5, begin=epoch * 1000)
        rows += every("training_step", 100, 90, 9, begin=epoch * 1000 + 100)
    found = find(trace(ranges(*rows), list(range(0, 40_000, 10))))
    assert chosen(found) == ("training_step", 360)


def test_library_ranges_that_repeat_more_often() -> None:
    rows = [
        *ranges(*STEPS),
        *ranges(*every("cub::DeviceReduce::Sum", 10, 8, 1000), domain="CCCL"),
        *ranges(*every("ncclAllReduce", 50, 5, 200)),
        *ranges(*every("nvFuser::Manager::runCudaFusionGroup", 50, 5, 200)),
        *ranges(*every("aten::mul, seq = {0}, op_id = {0}", 10, 5, 1000), thread_id=2),
        *ranges(*every("FSDP::pre_forward (blocks.{})", 25, 5, 400), thread_id=3),
    ]
    found = find(trace(rows, LAUNCHES))
    assert chosen(found) == ("step #", 100)
    assert found is not None
    assert found.runner_up is None


def test_libraries_alone_are_no_iterations() -> None:
    rows = [
        *ranges(*every("[DALI][Executor] Run", 100, 80, 100), domain="DALI"),
        *ranges(*every("aten::add", 10, 8, 1000)),
        *ranges(*every("MmBackward, seq = {}", 10, 8, 1000), thread_id=2),
    ]
    assert find(trace(rows, LAUNCHES)) is None


def test_a_thread_that_launches_nothing_gives_way() -> None:
    rows = [
        *ranges(*every("load batch", 100, 50, 100), thread_id=9),
        *ranges(*every("train", 100, 80, 99, begin=50)),
    ]
    assert chosen(find(trace(rows, LAUNCHES))) == ("train", 99)


def test_none_where_nothing_repeats() -> None:
    assert name_of(("setup", 0, 3000), ("run", 3000, 9000), ("close", 9000, 10_000)) is None
    assert name_of() is None
    assert find(trace((), LAUNCHES)) is None


def test_fewer_than_five_are_none_unless_named() -> None:
    four = trace(ranges(*every("step {}", 2500, 2000, 4)), LAUNCHES)
    assert find(four) is None
    assert chosen(named(four, "step *")) == ("step #", 4)


def test_a_single_one_by_name() -> None:
    one = trace(ranges(("step 7", 100, 900)), LAUNCHES)
    assert find(one) is None
    found = named(one, "step 7")
    assert chosen(found) == ("step #", 1)
    assert found.family.ends.tolist() == found.family.range_ends.tolist() == [900]


def test_ranges_inside_ranges_of_their_name_are_none() -> None:
    recursive = [*every("step {}", 100, 80, 100), ("step 7", 710, 720)]
    assert name_of(*recursive) is None
    with pytest.raises(SelectionError, match="overlap"):
        named(trace(ranges(*recursive), LAUNCHES), "step *")


def test_a_range_that_was_never_closed_ends_with_the_next() -> None:
    rows = ranges(*STEPS)
    rows[3] |= {"end_ns": 10_000, "closed": False}
    found = find(trace(rows, LAUNCHES))
    assert chosen(found) == ("step #", 100)
    assert found is not None
    assert found.family.range_ends[3] == 400


def test_no_device_activity_is_none() -> None:
    assert name_of(*STEPS, launches=[]) is None
    assert chosen(named(trace(ranges(*STEPS)), "step *")) == ("step #", 100)


def test_short_stretch_of_the_run_is_none() -> None:
    short = every("step {}", 20, 15, 100)  # 2,000 of 10,000 ns
    assert name_of(*short) is None


def test_each_rank_has_its_own_steps() -> None:
    ranks = merged(
        trace(ranges(*STEPS), LAUNCHES),
        trace(ranges(*STEPS, process_id=2), LAUNCHES, process=2),
    )
    found = find(ranks)
    assert chosen(found) == ("step #", 100)
    assert found is not None
    assert found.also_in == ((2, 1),)
    assert found.runner_up is None
    (twin,) = found.family.twins
    assert (twin.process_id, twin.thread_id, twin.folded_name) == (2, 1, "step #")
    assert ranks.ranges["process_id"][twin.rows].tolist() == [2] * 100
    assert twin.starts.tolist() == found.family.starts.tolist()
    assert not twin.twins


def test_a_rank_that_begins_late_carries_the_steps_all_the_same() -> None:
    ranks = merged(
        trace(ranges(*STEPS), LAUNCHES),
        trace(ranges(*STEPS[-10:], process_id=2), LAUNCHES, process=2),
        trace(ranges(*STEPS[-4:], process_id=3), LAUNCHES, process=3),
    )
    for found, expected in ((find(ranks), [2]), (named(ranks, "step #"), [2, 3])):
        assert found is not None
        assert [twin.process_id for twin in found.family.twins] == expected
        assert not found.also_in or expected == [2, 3]


def test_of_the_threads_of_a_twin_one_stands_for_it() -> None:
    ranks = merged(
        trace(ranges(*STEPS), LAUNCHES),
        trace(ranges(*STEPS, process_id=2, thread_id=7), process=2),
        trace(ranges(*STEPS[:90], process_id=2), LAUNCHES, process=2),
        trace(ranges(*STEPS, process_id=3, domain="mine"), LAUNCHES, process=3),
    )
    found = find(ranks)
    assert found is not None
    assert [(twin.process_id, twin.thread_id) for twin in found.family.twins] == [(2, 1)]


def test_order_of_the_table_does_not_matter() -> None:
    rows = ranges(*STEPS, *LAYERS, *EPOCHS)
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    one, other = find(trace(rows, LAUNCHES)), find(trace(shuffled, LAUNCHES))
    assert one is not None
    assert other is not None
    assert one.family.starts.tolist() == other.family.starts.tolist()
    assert [shuffled[i]["name"] for i in other.family.rows] == [name for name, _, _ in STEPS]


@pytest.mark.parametrize(("pattern", "count"), [("step *", 100), ("step 1?", 10), ("step #", 100)])
def test_named_by_glob_or_folded(pattern: str, count: int) -> None:
    found = named(trace(ranges(*STEPS, *LAYERS), LAUNCHES), pattern)
    assert chosen(found) == ("step #", count)


def test_a_name_with_brackets_is_found_as_it_stands() -> None:
    rows = ranges(*every("[DALI][Executor] Run", 100, 80, 100), domain="DALI")
    assert chosen(named(trace(rows, LAUNCHES), "[DALI][Executor] Run")) == (
        "[DALI][Executor] Run",
        100,
    )


def test_a_name_that_does_not_exist_says_what_does() -> None:
    with pytest.raises(SelectionError, match=r"Did you mean 'step #'\?"):
        named(trace(ranges(*STEPS), LAUNCHES), "stop #")
    with pytest.raises(NotRecordedError, match="nsys profile"):
        named(trace((), LAUNCHES), "step *")


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("step #", SAYS_ITERATION),
        ("Step # to #", SAYS_ITERATION),
        ("train_step", SAYS_ITERATION),
        ("TrainIteration", SAYS_ITERATION),
        ("ITER#", SAYS_ITERATION),
        ("mini-batch", SAYS_ITERATION),
        ("microbatch #", SAYS_PART),
        ("micro_batch #", SAYS_PART),
        ("optimizer.step", SAYS_NOTHING),
        ("forward step", SAYS_NOTHING),
        ("load batch #", SAYS_NOTHING),
        ("stepping stone", SAYS_NOTHING),
        ("epoch #", SAYS_OTHER),
        ("layer_#:conv", SAYS_OTHER),
        ("train", SAYS_NOTHING),
    ],
)
def test_what_a_name_says(name: str, rank: int) -> None:
    assert name_rank(name) == rank


def test_operators_are_library_ranges() -> None:
    for name in ("aten::mul", "MmBackward0, seq = 7", "x, op_id = 3", "{'mod': 'torch'}"):
        assert is_library_range(name)
    for name in ("step 3", "train::step", "forward", "attention"):
        assert not is_library_range(name)


@given(st.lists(st.text(alphabet="ab12#\x1e\x1f 0٣", max_size=6), max_size=6))
def test_folding_all_at_once_is_folding_each(names: list[str]) -> None:
    assert fold_all(names) == [fold(name) for name in names]


def slow_scores(built: Trace) -> dict[tuple[Any, ...], float]:
    """Score every family with loops over events, as METRICS defines it."""
    families: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for row in built.ranges.records():
        key = (row["process_id"], row["thread_id"], re.sub("[0-9]+", "#", row["name"]))
        families.setdefault(key, []).append((row["start_ns"], row["end_ns"]))
    kernels = built.kernels.records()
    if not kernels:
        return {}
    first, last = min(k["start_ns"] for k in kernels), max(k["end_ns"] for k in kernels)
    launched = {(k["process_id"], k["correlation_id"]) for k in kernels}
    scores = {}
    for key, spans in families.items():
        spans.sort()
        if len(spans) < 5 or any(end > start for (_, end), (start, _) in pairwise(spans)):
            continue
        edges = [start for start, _ in spans] + [spans[-1][1]]
        calls = [
            c["start_ns"]
            for c in built.api_calls.records()
            if c["process_id"] == key[0] and (c["process_id"], c["correlation_id"]) in launched
        ]
        counts = [sum(a <= c < b for c in calls) for a, b in pairwise(edges)][:-1]
        middle = median(counts)
        spread = median(abs(count - middle) for count in counts)
        covered = sum(max(min(b, last) - max(a, first), 0) for a, b in pairwise(edges))
        regular = max(1 - spread / middle, 0) if middle else 0
        scores[key] = covered / (last - first) * regular
    return {key: score for key, score in scores.items() if score >= MIN_SCORE}


def fast_scores(built: Trace) -> dict[tuple[Any, ...], float]:
    found = candidates(
        built,
        launch_times(built),
        users_names(built.ranges),
        least=5,
        least_score=MIN_SCORE,
    )
    return {
        (each.family.process_id, each.family.thread_id, each.family.folded_name): each.score
        for each in found
    }


@st.composite
def runs(draw: st.DrawFn) -> Trace:
    """A few families of ranges on a few threads, with launches at random."""
    rows: list[dict[str, Any]] = []
    for process, thread, name in draw(
        st.lists(
            st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from(["a {}", "b", "c"])),
            min_size=1,
            max_size=4,
            unique=True,
        )
    ):
        cuts = sorted(draw(st.lists(st.integers(0, 400), min_size=8, max_size=40)))
        spans = list(zip(cuts[::2], cuts[1::2], strict=False))
        named_spans = [(name.format(i), start, end) for i, (start, end) in enumerate(spans)]
        rows += ranges(*named_spans, process_id=process, thread_id=thread)
    launches = sorted(draw(st.lists(st.integers(0, 400), min_size=1, max_size=60)))
    other = sorted(draw(st.lists(st.integers(0, 400), max_size=30)))
    return merged(trace(rows, launches), trace((), other, process=2))


@given(runs())
def test_scores_agree_with_the_slow_ones(built: Trace) -> None:
    slow, fast = slow_scores(built), fast_scores(built)
    assert fast.keys() == slow.keys()
    for key, score in slow.items():
        assert fast[key] == pytest.approx(score)


@given(runs())
def test_periods_are_a_partition_of_their_span(built: Trace) -> None:
    found = find(built)
    if found is not None:
        family = found.family
        assert family.starts[1:].tolist() == family.ends[:-1].tolist()
        assert (family.ends - family.starts).sum() == family.range_ends[-1] - family.starts[0]


@given(runs(), st.integers(2, 1000), st.integers(0, 10**12))
def test_scaling_and_shifting_time_changes_nothing(built: Trace, factor: int, shift: int) -> None:
    def moved(name: str) -> list[dict[str, Any]]:
        times = ("start_ns", "end_ns")
        return [
            row | {time: row[time] * factor + shift for time in times}
            for row in built.tables[name].records()
        ]

    names = ("ranges", "kernels", "api_calls")
    other = built.with_tables(**{n: table(built.tables[n].schema, moved(n)) for n in names})
    one, two = find(built), find(other)
    assert chosen(one) == chosen(two)
    if one is not None and two is not None:
        assert two.score == pytest.approx(one.score)
        assert (two.family.starts == one.family.starts * factor + shift).all()
