"""Kernels of CUDA graphs: where they were captured, and where the graph was launched."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.analysis import analyze
from kernelscope.metrics.attribution import attribute
from kernelscope.metrics.graph_kernels import graph_kernels, original_nodes
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.range_results import GRAPH_KERNELS
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests import build
from tests.metrics.scenes import kernels, launches, named, pushed
from tests.metrics.slow_ranges import Slow

Row = dict[str, Any]


def nodes(*rows: tuple[int, int, int | None], **common: Any) -> Table:
    """Graph nodes ``(time, id, id of the original)`` made by process 1, thread 1."""
    base = {"process_id": 1, "thread_id": 1, **common}
    return build.table(
        schema.GRAPH_NODES,
        [
            base
            | {
                "start_ns": time,
                "end_ns": time,
                "graph_node_id": node,
                "original_graph_node_id": original,
            }
            for time, node, original in rows
        ],
    )


def found(trace: Trace, **more: Any) -> list[tuple[str | None, str | None, str, int, int]]:
    def plain(path: str | None) -> str | None:
        return None if path is None else path.replace(SEPARATOR, " > ")

    return [
        (plain(row["path"]), plain(row["capture_path"]), row["name"], row["kernels"],
         row["total_ns"])
        for row in graph_kernels(trace, folded=False, **more).records()
    ]  # fmt: skip


CAPTURE = pushed((0, 50, "capture"), (10, 20, "layer 0"), (20, 30, "layer 1"))


def test_a_replay_knows_the_layers_that_it_was_captured_in() -> None:
    trace = build.trace(
        ranges=build.joined(CAPTURE, pushed((100, 120, "step 1"), (200, 220, "step 2"))),
        graph_nodes=nodes((12, 1, None), (22, 2, None), (60, 11, 1), (61, 12, 2)),
        api_calls=launches((105, 106), (205, 206)),
        kernels=build.joined(
            kernels((110, 114, 1), (210, 214, 2), graph_node_id=11, name="a"),
            kernels((114, 120, 1), (214, 220, 2), graph_node_id=12, name="b"),
            kernels((300, 309, 2), name="eager"),
        ),
    )
    assert found(trace) == [
        ("step 1", "capture > layer 1", "b", 1, 6),
        ("step 2", "capture > layer 1", "b", 1, 6),
        ("step 1", "capture > layer 0", "a", 1, 4),
        ("step 2", "capture > layer 0", "a", 1, 4),
    ]
    assert found(trace, window=Window(212, 400, "test")) == [
        ("step 2", "capture > layer 1", "b", 1, 6),
        ("step 2", "capture > layer 0", "a", 0, 2),
    ]


def test_graphs_of_two_processes_that_number_their_nodes_alike() -> None:
    trace = build.trace(
        ranges=build.joined(CAPTURE, pushed((0, 50, "other"), process_id=2)),
        graph_nodes=build.joined(
            nodes((12, 1, None), (60, 11, 1)), nodes((12, 1, None), (60, 11, 1), process_id=2)
        ),
        kernels=build.joined(
            kernels((110, 114, 1), graph_node_id=11),
            kernels((110, 113, 1), graph_node_id=11, process_id=2),
            kernels((110, 112, 1), graph_node_id=11, process_id=3),
        ),
    )
    assert [row[:2] for row in found(trace)] == [
        (None, "capture > layer 0"),
        (None, "other"),
        (None, None),
    ]


def test_clones_of_clones_lost_originals_and_circles() -> None:
    made = nodes(
        (10, 1, None), (60, 2, 1), (61, 3, 2), (62, 4, 99), (63, 5, 6), (64, 6, 5), (65, 7, 7),
        (66, 8, 4), (67, 9, 5),
    )  # fmt: skip
    assert original_nodes(made).tolist() == [0, 0, 0, -1, -1, -1, 6, -1, -1, -1]
    assert original_nodes(Table.empty(schema.GRAPH_NODES)).tolist() == [-1]
    chain = nodes(*((time, time, time - 1 if time > 1 else None) for time in range(1, 1_001)))
    assert set(original_nodes(chain).tolist()) == {0, -1}


def test_of_several_rows_of_one_node_the_earliest_tells_when_it_was_made() -> None:
    trace = build.trace(
        ranges=CAPTURE,
        graph_nodes=nodes((25, 1, None), (12, 1, None)),
        kernels=kernels((110, 114, 1), graph_node_id=1),
    )
    assert found(trace)[0][1] == "capture > layer 0"


def test_a_node_that_appears_as_the_capture_ends_does_not_tell_its_range() -> None:
    """It would name the range around the end for every kernel of the graph."""
    ends = build.api_calls((40, 45, "cudaStreamEndCapture"), correlation_id=9)
    trace = build.trace(
        ranges=CAPTURE,
        graph_nodes=nodes((12, 1, None), (41, 2, None), (45, 3, None)),
        api_calls=ends,
        kernels=build.joined(
            kernels((110, 115, 1), graph_node_id=1),
            kernels((115, 119, 1), graph_node_id=2),
            kernels((119, 122, 1), graph_node_id=3),
        ),
    )
    assert [row[1] for row in found(trace)] == ["capture > layer 0", None, "capture"]


def test_a_librarys_range_does_not_hide_the_programs() -> None:
    trace = build.trace(
        ranges=build.joined(
            CAPTURE, pushed((12, 16, "ncclAllReduce"), (40, 99, "ncclGroupEnd"), domain="NCCL")
        ),
        graph_nodes=nodes((13, 1, None), (60, 2, None)),
        kernels=build.joined(
            kernels((110, 114, 1), graph_node_id=1), kernels((114, 115, 1), graph_node_id=2)
        ),
    )
    assert [row[1] for row in found(trace)] == ["capture > layer 0", "ncclGroupEnd"]


def test_a_launch_by_another_thread_takes_what_it_inherits() -> None:
    trace = build.trace(
        ranges=pushed((0, 50, "step 1"), (5, 45, "forward")),
        api_calls=launches((10, 11), thread_id=2),
        kernels=kernels((60, 64, 1), graph_node_id=5),
    )
    assert found(trace)[0][:2] == (None, None)
    inherited = attribute(trace, family=named(trace, "step #"))
    assert found(trace, attribution=inherited)[0][:2] == ("step 1 > forward", None)


def test_without_graph_kernels_there_is_nothing_to_say() -> None:
    trace = build.trace(ranges=CAPTURE, kernels=kernels((110, 114, 1)))
    assert graph_kernels(trace).schema == GRAPH_KERNELS
    assert not len(analyze(trace).graph_kernels)
    bare = build.trace(kernels=kernels((110, 114, 1), graph_node_id=3))
    assert found(bare) == [(None, None, "kernel", 1, 4)]


# ---- against plain loops -------------------------------------------------------------------

IDS, TIMES = st.integers(1, 6), st.integers(0, 24)
PLACES = st.sampled_from([(1, 1), (1, 1), (1, 2), (2, 1)])


@st.composite
def placed(draw: st.DrawFn) -> Row:
    process, thread = draw(PLACES)
    low, high = sorted((draw(TIMES), draw(TIMES)))
    return {"process_id": process, "thread_id": thread, "start_ns": low, "end_ns": high}


@st.composite
def traces(draw: st.DrawFn) -> tuple[Slow, list[Row]]:
    def rows(most: int, **columns: st.SearchStrategy[Any]) -> list[Row]:
        drawn = st.builds(lambda base, more: base | more, placed(), st.fixed_dictionaries(columns))
        return draw(st.lists(drawn, max_size=most))

    ranges = rows(
        6,
        name=st.sampled_from("abc"),
        domain=st.sampled_from(["", "", "mine", "NCCL"]),
        style=st.just("push_pop"),
        end_thread_id=st.none(),
        closed=st.just(True),
    )
    calls = rows(
        4,
        name=st.just("cudaGraphLaunch"),
        kind=st.just("runtime"),
        correlation_id=st.integers(1, 3),
    )
    work = rows(
        5,
        name=st.sampled_from("xy"),
        device_id=st.just(0),
        correlation_id=st.integers(1, 3),
        graph_node_id=st.one_of(st.none(), IDS),
    )
    made = rows(6, graph_node_id=IDS, original_graph_node_id=st.one_of(st.none(), IDS))
    return Slow(ranges, calls, work, [], window=(0, 100)), made


def original(made: list[Row], process: int, node: int) -> Row | None:
    """Walk from clone to original, and give up on coming by a second time."""
    seen: set[int] = set()
    while node not in seen:
        seen.add(node)
        rows = [row for row in made if (row["process_id"], row["graph_node_id"]) == (process, node)]
        if not rows:
            return None
        first = min(rows, key=lambda row: row["start_ns"])
        if first["original_graph_node_id"] in {None, node}:
            return first
        node = first["original_graph_node_id"]
    return None


def innermost(slow: Slow, place: Row) -> str | None:
    """Path of the range opened last at a moment of a thread; a library's if there is no other."""
    moment = Slow(slow.ranges, [place | {"end_ns": place["start_ns"]}], [], [])
    for library in (False, True):
        domains = ["NCCL"] if library else ["", "mine"]
        rows = [row for row in (moment.innermost(0, each) for each in domains) if row >= 0]
        if rows:
            return SEPARATOR.join(slow.path(slow.last_opened(rows))[0])
    return None


@settings(deadline=None, max_examples=500)
@given(traces())
def test_agrees_with_walking_from_clone_to_clone(case: tuple[Slow, list[Row]]) -> None:
    slow, made = case
    kept = {"ranges": slow.ranges, "api_calls": slow.api_calls, "kernels": slow.kernels}
    tables = {
        each.name: build.table(each, rows)
        for each, rows in (
            (schema.RANGES, kept["ranges"]),
            (schema.API_CALLS, kept["api_calls"]),
            (schema.KERNELS, kept["kernels"]),
            (schema.GRAPH_NODES, made),
        )
    }
    counts: Counter[tuple[Any, ...]] = Counter()
    times: Counter[tuple[Any, ...]] = Counter()
    for kernel in slow.kernels:
        if kernel["graph_node_id"] is None:
            continue
        call, node = (
            slow.launch(kernel),
            original(made, kernel["process_id"], kernel["graph_node_id"]),
        )
        key = (
            innermost(slow, slow.api_calls[call]) if call >= 0 else None,
            innermost(slow, node) if node else None,
            kernel["name"],
        )
        counts[key] += 1
        times[key] += kernel["end_ns"] - kernel["start_ns"]
    rows = graph_kernels(build.trace(**tables), Window(0, 100, "test"), folded=False).records()
    ours = {(row["path"], row["capture_path"], row["name"]): row for row in rows}
    assert {key: row["kernels"] for key, row in ours.items()} == counts
    assert {key: row["total_ns"] for key, row in ours.items()} == dict(times)
