"""What belongs to what, in traces small enough to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.metrics import range_work
from kernelscope.metrics.attribution import REASONS, Attributed, attribute
from kernelscope.metrics.inheritance import HOW
from kernelscope.metrics.mark_iterations import mark_iterations
from kernelscope.metrics.nesting import least_between, nesting
from kernelscope.metrics.range_checks import range_checks
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.ranges import (
    range_instances,
    range_tree,
    ranges,
    ranges_by_name,
    unattributed,
)
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics.scenes import family_of, kernels, launches, named, pushed


def how(mine: Attributed) -> list[str]:
    return [HOW[code] for code in mine.how.tolist()]


def why(mine: Attributed) -> list[str]:
    return [REASONS[code] for code in mine.reason.tolist()]


def by_path(table: Table) -> dict[str, dict[str, Any]]:
    return {row["path"].replace(SEPARATOR, " > "): row for row in table.records()}


# ---- directly ------------------------------------------------------------------------------


def test_a_launch_belongs_to_the_ranges_open_where_it_begins() -> None:
    """Half-open: a call at a range's end is outside; one that outlasts the range is inside."""
    trace = build.trace(
        ranges=pushed((0, 10, "a"), (4, 8, "b")),
        api_calls=launches((4, 6), (7, 12), (8, 9), (10, 11)),
        kernels=kernels((20, 21, 1), (21, 23, 2), (23, 27, 3), (27, 35, 4)),
    )
    found = attribute(trace)
    assert found.enclosed.innermost[""].tolist() == [1, 1, 0, -1]
    assert how(found.kernels) == ["direct", "direct", "direct", "none"]
    assert why(found.kernels)[3] == "between_ranges"
    strict = attribute(trace, strict=True)  # nsys: the second call outlasts both ranges
    assert strict.enclosed.innermost[""].tolist() == [1, -1, 0, -1]


def test_ties_end_before_they_start_and_the_longer_range_is_outside() -> None:
    table = pushed((5, 9, "short"), (5, 12, "long"), (9, 12, "next"), (5, 9, "twin"), (7, 7, "no"))
    nest = nesting(table)
    assert nest.parent.tolist() == [1, -1, 1, 0, 3]
    assert nest.depth.tolist() == [1, 0, 1, 2, 3]
    (stack,) = nest.stacks
    assert stack.at(np.array([4, 5, 8, 9, 11, 12])).tolist() == [-1, 3, 3, 2, 2, -1]


def test_of_two_ranges_that_cross_the_later_is_an_interval() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "outer"), (2, 14, "late"), (3, 6, "inner")),
        api_calls=launches((4, 5), (12, 13)),
        kernels=kernels((20, 22, 1), (22, 26, 2)),
    )
    assert attribute(trace).enclosed.nesting.crossing.tolist() == [False, True, False]
    rows = by_path(ranges(trace))
    assert rows["late"]["style"] == "crossing"
    assert (rows["late"]["kernels"], rows["late"]["kernel_ns"]) == (2, 6)
    assert rows["late"]["self_kernel_ns"] is None
    assert rows["outer > inner"]["self_kernel_ns"] == 2
    (left,) = unattributed(trace).records()  # in a range, if in none of the stack
    assert (left["domain"], left["total_ns"]) == ("", 4)


def test_nesting_deeper_than_sixteen_bits() -> None:
    depth = 70_000
    start = np.arange(depth)
    one = pushed((0, 1, "x"))
    rows = np.zeros(depth, dtype=np.intp)
    deep = Table(
        one.schema, dict(one.take(rows).columns) | {"start_ns": start, "end_ns": 2 * depth - start}
    )
    nest = nesting(deep)
    assert nest.depth.tolist() == list(range(depth))
    assert nest.parent[-1] == depth - 2


def test_least_of_slices() -> None:
    values = np.array([5, 3, 8, 1, 9, 2])
    first, last = np.array([0, 0, 2, 4, 3, 6]), np.array([6, 2, 3, 6, 3, 6])
    assert least_between(values, first, last, 99).tolist() == [1, 3, 8, 2, 99, 99]


def test_a_range_opened_here_and_closed_there() -> None:
    """A start/end range holds its opening thread's launches; nsys leaves it out."""
    trace = build.trace(
        ranges=pushed((0, 10, "request"), style="start_end", end_thread_id=2),
        api_calls=build.joined(
            launches((1, 2)),
            launches((3, 4), thread_id=2, first_id=2),
            launches((3, 4), process_id=2, first_id=3),
        ),
        kernels=build.joined(kernels((20, 21, 1), (21, 23, 2)), kernels((23, 27, 3), process_id=2)),
    )
    assert how(attribute(trace).kernels) == ["direct", "none", "none"]
    assert why(attribute(trace).kernels)[1:] == ["no_range_on_thread", "no_range_on_thread"]
    assert how(attribute(trace, strict=True).kernels) == ["none"] * 3
    wide = attribute(trace, process_ranges=True)
    assert how(wide.kernels) == ["direct", "direct", "none"]
    (row,) = ranges(trace, attribution=wide).records()
    assert (row["kernels"], row["kernel_ns"], row["busy_ns"]) == (2, 3, 3)


def test_overlapping_start_end_ranges_hold_a_kernel_each_and_their_name_once() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "request"), (5, 15, "request"), (7, 8, "other"), style="start_end"),
        api_calls=launches((7, 8)),
        kernels=kernels((20, 24, 1)),
    )
    assert [row["kernels"] for row in range_instances(trace).records()] == [1, 1, 1]
    rows = by_path(ranges(trace))
    assert {name: (row["kernels"], row["kernel_ns"]) for name, row in rows.items()} == {
        "request": (1, 4),
        "other": (1, 4),
    }
    assert rows["request"]["projected_ns"] == 8  # of each instance
    assert rows["request"]["projected_union_ns"] == 4


def test_a_kernel_in_two_nested_ranges_of_one_name_counts_once() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "op"), (1, 9, "op"), (2, 8, "x"), (3, 7, "op")),
        api_calls=launches((4, 5)),
        kernels=kernels((20, 24, 1)),
    )
    rows = {row["name"]: row for row in ranges_by_name(trace).records()}
    assert (rows["op"]["instances"], rows["op"]["kernels"], rows["op"]["kernel_ns"]) == (3, 1, 4)
    assert by_path(ranges(trace))["op > op > x > op"]["self_kernel_ns"] == 4


def test_two_processes_with_equal_names_and_colliding_ids() -> None:
    """USER_PAINS R1: 10 kernels × 2 ms each; joined on the id alone they come out twice."""
    millisecond = 1_000_000
    tables: dict[str, list[Table]] = {"ranges": [], "api_calls": [], "kernels": []}
    for process in (1, 2):
        common = {"process_id": process}
        times = [(5 * i * millisecond, (5 * i + 1) * millisecond) for i in range(10)]
        tables["ranges"].append(pushed((0, 50 * millisecond, "step"), **common))
        tables["api_calls"].append(launches(*times, **common))
        tables["kernels"].append(
            kernels(
                *((start, start + 2 * millisecond, i + 1) for i, (start, _) in enumerate(times)),
                **common,
            )
        )
    trace = build.trace(**{name: build.joined(*parts) for name, parts in tables.items()})
    for table in (ranges(trace), ranges_by_name(trace)):
        assert [
            (row["process_id"], row["kernels"], row["kernel_ns"]) for row in table.records()
        ] == [(1, 10, 20 * millisecond), (2, 10, 20 * millisecond)]
    for table in (*ks.analyze(trace).tables.values(), range_instances(trace)):
        assert len(table.df) == len(table)


def test_nodes_of_a_graph_belong_to_the_ranges_of_its_launch() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "replay")),
        api_calls=launches((1, 2), name="cudaGraphLaunch"),
        kernels=build.joined(
            *(kernels((20 + i, 22 + i, 1), graph_node_id=i + 1) for i in range(3))
        ),
        copies=build.copies((30, 35), correlation_id=1),
    )
    found = attribute(trace)
    assert how(found.kernels) == ["graph"] * 3
    assert how(found.copies) == ["graph"]
    (row,) = ranges(trace).records()
    assert (row["kernels"], row["attribution.graph"], row["attribution.direct"]) == (3, 3, 0)
    (one,) = range_instances(trace, attribution=attribute(trace, strict=True)).records()
    assert (one["launches"], one["operations"]) == (1, 4)  # nsys's NumGPUOps is the former
    assert (row["projected_ns"], row["busy_ns"], row["kernel_ns"]) == (15, 9, 6)


def test_what_is_not_known_is_not_matched() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "a"), thread_id=None),
        api_calls=launches((1, 2), thread_id=None),
        kernels=build.joined(kernels((20, 21, 1)), kernels((21, 22, 9))),
    )
    assert why(attribute(trace).kernels) == ["unknown_thread", "no_launch_row"]
    (row,) = ranges(trace).records()
    assert (row["instances"], row["kernels"]) == (1, 0)


def test_kernel_time_adds_up_where_the_threads_of_ranges_are_not_known() -> None:
    trace = build.trace(
        ranges=pushed((0, 100, "step"), thread_id=None, domain="model"),
        api_calls=launches((10, 20)),
        kernels=kernels((30, 60, 1)),
    )
    (outside,) = (row for row in unattributed(trace).records() if row["domain"] == "model")
    assert (outside["reason"], outside["total_ns"]) == ("no_range_on_thread", 30)
    checks = range_checks(trace, Window(0, 100, ""), ranges(trace), unattributed(trace))
    assert checks.values("ok") == [True]


def test_nsys_knows_no_iterations() -> None:
    trace = build.trace(ranges=pushed((0, 10, "step 1")))
    with pytest.raises(ValueError, match="nsys"):
        attribute(trace, strict=True, family=family_of(trace, [0]))
    with pytest.raises(ValueError, match="nsys"):
        attribute(trace, strict=True, process_ranges=True)


def test_nothing_gives_empty_tables() -> None:
    trace = build.trace()
    for table in (ranges(trace), ranges_by_name(trace), range_instances(trace)):
        assert not len(table)
    assert not len(unattributed(trace))
    assert not len(range_tree(ranges(trace)))


# ---- inherited -----------------------------------------------------------------------------


def training() -> Trace:
    """An epoch of three steps with forward and optimizer; backward on thread 2, DALI on 3.

    Per step (of 100 ns): forward launches 1 kernel in a layer, thread 2 launches one inside an
    NCCL range and one outside any, while the main thread waits in no call; thread 3 launches
    under DALI; and between two steps the main thread launches one more.
    """
    steps = [100 * i for i in range(3)]
    main = [(0, 400, "epoch 0")]
    for t in steps:
        number = t // 100
        main += [
            (t + 10, t + 80, f"step {number}"),
            (t + 20, t + 40, "forward"),
            (t + 22, t + 30, "layer 1"),
            (t + 60, t + 70, "optimizer"),
        ]
    tables = [
        pushed(*main),
        pushed(*((t + 45, t + 50, "ncclAllReduce") for t in steps), thread_id=2, domain="NCCL"),
        pushed(*((t + 12, t + 58, "[DALI] RunGPU") for t in steps), thread_id=3, domain="DALI"),
    ]
    calls, work = [], []
    offsets = ((25, 1), (46, 2), (62, 2), (26, 3), (90, 1))
    for t in steps:
        for offset, thread in offsets:
            identity = t + offset
            start = t + offset
            calls.append(launches((start, start + 2), thread_id=thread, first_id=identity))
            work.append(kernels((1000 + start, 1000 + start + offset, identity)))
    return build.trace(
        ranges=build.joined(*tables),
        api_calls=build.joined(*calls),
        kernels=build.joined(*work),
    )


def test_launches_of_other_threads_inherit_the_step() -> None:
    """Steps inside an epoch, around a layer, beside library ranges."""
    trace = training()
    found = attribute(trace, family=named(trace, "step #"))
    one_step = ["direct", "inherited", "inherited", "concurrent", "inherited"]
    assert how(found.kernels) == [*one_step * 2, *one_step[:4], "none"]
    assert why(found.kernels)[-1] == "outside_iterations"
    assert found.kernels.iteration.tolist() == [0] * 5 + [1] * 5 + [2] * 4 + [-1]
    names = [*trace.ranges.texts("name"), None]
    phases = [names[row] for row in found.kernels.phase.tolist()]
    assert phases == [
        *["forward", None, "optimizer", None, None] * 2,
        "forward",
        None,
        "optimizer",
        None,
        None,
    ]


def test_what_a_step_inherits_its_epoch_has_once() -> None:
    trace = training()
    rows = by_path(
        ranges(trace, attribution=attribute(trace, family=named(trace, "step #")), folded=True)
    )
    step, epoch = rows["epoch # > step #"], rows["epoch #"]
    assert step["kernels"] == 14
    assert {key: step[f"attribution.{key}"] for key in HOW[1:]} == {
        "direct": 3,
        "inherited": 8,
        "graph": 0,
        "concurrent": 3,
    }
    # The epoch holds the main thread's launches itself, those between its steps, too.
    assert epoch["kernels"] == 15
    assert (epoch["attribution.direct"], epoch["attribution.inherited"]) == (6, 6)
    assert step["inherited_kernel_ns"] == 3 * (46 + 62 + 26) + 2 * 90
    assert rows["epoch # > step # > optimizer"]["attribution.inherited"] == 3
    assert rows["epoch # > step # > forward > layer #"]["self_kernel_ns"] == 3 * 25
    # Work of the library's own domain stays there besides.
    assert rows["ncclAllReduce"]["kernels"] == 3
    own = sum(row["self_kernel_ns"] for row in rows.values() if row["domain"] == "")
    assert own == epoch["kernel_ns"]


@pytest.mark.parametrize("steps", ["start_end", "crossing"])
def test_kernel_time_adds_up_where_iterations_have_no_place_in_a_stack(steps: str) -> None:
    """What inherits them is outside the push/pop ranges of their domain, and counted there."""
    style = "push_pop" if steps == "crossing" else steps
    cross = [(100 * i - 5, 100 * i + 5, "data") for i in range(1, 7)]
    trace = build.trace(
        ranges=build.joined(
            pushed(*((100 * i, 100 * i + 90, f"step {i}") for i in range(1, 7)), style=style),
            pushed(*cross),
        ),
        api_calls=launches(*((100 * i + 20, 100 * i + 30) for i in range(1, 7)), thread_id=2),
        kernels=kernels(*((100 * i + 40, 100 * i + 60, i) for i in range(1, 7))),
    )
    found = attribute(trace, family=named(trace, "step #"))
    (step,) = (row for row in ranges(trace, attribution=found, folded=True).records()
               if row["name"] == "step #")  # fmt: skip
    assert (step["style"], step["kernel_ns"], step["self_kernel_ns"]) == (steps, 120, None)
    outside = unattributed(trace, attribution=found)
    assert [(row["domain"], row["total_ns"]) for row in outside.records()] == [("", 120)]
    checks = range_checks(trace, Window(0, 700, ""), ranges(trace, attribution=found), outside)
    assert checks.values("ok") == [True]


def test_without_inheritance_other_threads_are_unattributed() -> None:
    trace = training()
    (row,) = [row for row in unattributed(trace).records() if row["domain"] is None]
    assert (row["kernels"], row["total_ns"]) == (3, 3 * 62)
    assert row["reason"] == "between_ranges"
    inherited = unattributed(trace, attribution=attribute(trace, family=named(trace, "step #")))
    assert not [row for row in inherited.records() if row["domain"] is None]


def test_a_phase_is_not_inherited_while_its_thread_calls_cuda() -> None:
    """Then it is not waiting for the other thread, whose launch may be anybody's."""
    trace = build.trace(
        ranges=pushed((0, 50, "step 1"), (5, 45, "forward")),
        api_calls=build.joined(
            launches((10, 20)),
            launches((15, 16), thread_id=2, first_id=2),
            launches((20, 21), thread_id=2, first_id=3),
        ),
        kernels=kernels((60, 61, 1), (61, 62, 2), (62, 63, 3)),
    )
    family = named(trace, "step #")
    assert attribute(trace, family=family).kernels.phase.tolist() == [1, -1, 1]
    assert attribute(trace, family=family, phases=False).kernels.phase.tolist() == [1, -1, -1]
    assert attribute(trace, family=family).kernels.iteration.tolist() == [0, 0, 0]


def test_a_phase_that_both_threads_name_counts_a_kernel_once() -> None:
    """Thread 2 lies in a range of its own called like the phase that it inherits."""
    trace = build.trace(
        ranges=build.joined(
            pushed((0, 50, "step 1"), (5, 45, "backward")), pushed((8, 20, "backward"), thread_id=2)
        ),
        api_calls=launches((10, 11), thread_id=2),
        kernels=kernels((60, 64, 1)),
    )
    found = attribute(trace, family=named(trace, "step #"))
    rows = {row["name"]: row for row in ranges_by_name(trace, attribution=found).records()}
    assert (rows["backward"]["kernels"], rows["backward"]["kernel_ns"]) == (1, 4)
    assert rows["backward"]["attribution.direct"] == 1
    paths = by_path(ranges(trace, attribution=found))
    assert paths["backward"]["attribution.direct"] == 1
    assert paths["step 1 > backward"]["attribution.inherited"] == 1
    assert (paths["backward"]["self_kernel_ns"], paths["step 1"]["self_kernel_ns"]) == (4, 0)


def test_a_pipeline_on_the_annotating_thread_does_not_make_its_other_launches_concurrent() -> None:
    trace = build.trace(
        ranges=build.joined(
            pushed((0, 10, "step 1"), (50, 60, "step 2")), pushed((20, 30, "RunGPU"), domain="DALI")
        ),
        api_calls=launches((21, 22), (23, 24), (40, 41)),
        kernels=kernels((70, 71, 1), (71, 72, 2), (72, 73, 3)),
    )
    found = attribute(trace, family=named(trace, "step #"))
    assert how(found.kernels) == ["concurrent", "concurrent", "inherited"]


def test_several_annotating_threads() -> None:
    """Where two threads carry the steps, a third belongs to neither; each keeps its own."""
    steps = [(100 * i, 100 * i + 60, f"step {i}") for i in range(5)]
    trace = build.trace(
        ranges=build.joined(pushed(*steps), pushed(*steps, thread_id=2)),
        api_calls=build.joined(
            launches((10, 11), (80, 81)),
            launches((10, 11), thread_id=2, first_id=3),
            launches((10, 11), thread_id=3, first_id=4),
            launches((10, 11), process_id=2, first_id=5),
        ),
        kernels=build.joined(
            kernels((200, 201, 1), (201, 202, 2), (202, 203, 3), (203, 204, 4)),
            kernels((204, 205, 5), process_id=2),
        ),
    )
    found = attribute(trace, family=family_of(trace, range(5)))
    assert how(found.kernels) == ["direct", "inherited", "none", "none", "none"]
    assert why(found.kernels)[2:] == [
        "several_annotating_threads",
        "several_annotating_threads",
        "another_process",
    ]
    four = family_of(trace, range(5))
    fewer = trace.with_tables(ranges=trace.ranges.take(np.arange(9)))  # four steps on thread 2
    assert how(attribute(fewer, family=four).kernels)[3] == "inherited"


def two_ranks(annotators: tuple[int, int]) -> Trace:
    """Two processes of five steps, each in an epoch, the first's 30 ns later.

    Per step of 100 ns and process, the annotating thread launches a kernel of 4 ns in forward and
    one of 8 ns after the step, another thread one of 16 ns while forward is open.
    """
    tables: dict[str, list[Table]] = {"ranges": [], "api_calls": [], "kernels": []}
    for process, annotator, late in ((1, annotators[0], 30), (2, annotators[1], 0)):
        whose = {"process_id": process, "thread_id": annotator}
        opened = [(late, late + 500, "epoch 0")]
        for step in range(5):
            at = 100 * step + late
            opened += [(at, at + 60, f"step {step}"), (at + 10, at + 50, "forward")]
            for number, (offset, thread) in enumerate(
                ((20, annotator), (80, annotator), (40, 3 - annotator))
            ):
                call, identity = at + offset, 3 * step + number + 1
                common = {"process_id": process}
                tables["api_calls"].append(
                    launches((call, call + 2), thread_id=thread, first_id=identity, **common)
                )
                length = 4 << number
                tables["kernels"].append(kernels((call + 5, call + 5 + length, identity), **common))
        tables["ranges"].append(pushed(*opened, **whose))
    return build.trace(**{name: build.joined(*parts) for name, parts in tables.items()})


@pytest.mark.parametrize("annotators", [(1, 1), (2, 2), (1, 2)])
def test_each_of_two_ranks_inherits_its_own_steps(annotators: tuple[int, int]) -> None:
    trace = two_ranks(annotators)
    marked = mark_iterations(trace)
    assert marked.family is not None
    found = attribute(trace, family=marked.family)
    # The last step ends with its range: what is launched behind it belongs to none.
    assert (
        how(found.kernels)
        == (["direct", "inherited", "inherited"] * 4 + ["direct", "none", "inherited"]) * 2
    )
    assert why(found.kernels)[13] == why(found.kernels)[28] == "outside_iterations"
    steps = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, -1, 4]
    assert found.kernels.iteration.tolist() == [*steps, *[-1] * 15]
    table = ranges(trace, attribution=found, folded=True).records()
    for name, kernel_ns, inherited_ns, self_ns in (
        ("epoch #", 140, 80, 40),
        ("step #", 132, 112, 0),
        ("forward", 100, 80, 100),
    ):
        mine = [row for row in table if row["name"] == name]
        assert [row["process_id"] for row in mine] == [1, 2]
        figures = ("kernel_ns", "inherited_kernel_ns", "self_kernel_ns")
        for row in mine:
            assert tuple(row[key] for key in figures) == (kernel_ns, inherited_ns, self_ns)
    left = unattributed(trace, attribution=found).records()
    own = sum(row["self_kernel_ns"] for row in table)
    assert own + sum(row["total_ns"] for row in left if row["domain"] == "") == 2 * 140
    # No instance counts a launch twice that lies in it and inherits it, too.
    instances = range_instances(trace, attribution=found).records()
    epochs = [row["launches"] for row in instances if row["name"] == "epoch 0"]
    assert epochs == [15, 15]


def test_threads_that_follow_each_other_do_not_share_what_they_inherit() -> None:
    """Calls are numbered by thread: here the last of one and the first of the next inherit."""
    opened = [(0, 500, "epoch")]
    opened += [(100 * i, 100 * i + 60, f"step {i}") for i in range(5)]
    trace = build.trace(
        ranges=pushed(*opened, thread_id=2),
        api_calls=build.joined(
            launches((440, 441), thread_id=1), launches((80, 81), thread_id=2, first_id=2)
        ),
        kernels=kernels((600, 601, 1), (601, 603, 2)),
    )
    found = attribute(trace, family=family_of(trace, range(1, 6)))
    assert how(found.kernels) == ["inherited", "inherited"]
    rows = {row["name"]: row for row in range_instances(trace, attribution=found).records()}
    assert [(rows[name]["launches"], rows[name]["kernel_ns"]) for name in ("epoch", "step 0")] == [
        (2, 3),
        (1, 2),
    ]


def test_a_rank_alone_has_the_figures_it_has_beside_another() -> None:
    trace = two_ranks((1, 2))
    both = ranges(trace, attribution=attribute(trace, family=mark_iterations(trace).family))
    for process in (1, 2):
        alone = select(trace, processes=[process])
        family = mark_iterations(alone).family
        rows = ranges(alone, attribution=attribute(alone, family=family)).records()
        assert rows == [row for row in both.records() if row["process_id"] == process]


def test_several_annotating_threads_of_the_other_rank() -> None:
    """They take nothing from the first; their own launches between steps are theirs."""
    trace = two_ranks((1, 1))
    more = pushed(
        *((100 * i, 100 * i + 60, f"step {i}") for i in range(5)), process_id=2, thread_id=9
    )
    trace = trace.with_tables(ranges=build.joined(trace.ranges, more))
    found = attribute(trace, family=mark_iterations(trace).family)
    assert how(found.kernels)[:3] == ["direct", "inherited", "inherited"]
    assert how(found.kernels)[15:18] == ["direct", "inherited", "none"]
    assert why(found.kernels)[17] == "several_annotating_threads"


# ---- tables --------------------------------------------------------------------------------


def test_the_tree_puts_what_is_inside_behind_what_encloses_it() -> None:
    trace = training()
    tree = range_tree(ranges(trace, folded=True))
    assert [(row["depth"], row["name"]) for row in tree.records()] == [
        (0, "epoch #"),
        (1, "step #"),
        (2, "forward"),
        (3, "layer #"),
        (2, "optimizer"),
        (0, "ncclAllReduce"),
        (0, "[DALI] RunGPU"),
    ]


def test_a_window_clips_times_and_counts_what_starts_in_it() -> None:
    trace = build.trace(
        ranges=pushed((0, 10, "a"), (20, 30, "a")),
        api_calls=launches((1, 2), (21, 22)),
        kernels=kernels((5, 15, 1), (25, 45, 2)),
    )
    (row,) = ranges(trace, Window(8, 28, "--between")).records()
    assert (row["instances"], row["host_ns"]) == (1, 2 + 8)
    assert (row["kernels"], row["kernel_ns"], row["busy_ns"]) == (1, 7 + 3, 10)
    assert row["projected_ns"] == 7 + 3


def test_memory_is_bounded_by_taking_groups_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = training()
    found = attribute(trace, family=named(trace, "step #"))
    tables = [function(trace, attribution=found).records() for function in (ranges, ranges_by_name)]
    monkeypatch.setattr(range_work, "PAIRS_AT_ONCE", 2)
    assert tables == [
        function(trace, attribution=found).records() for function in (ranges, ranges_by_name)
    ]
