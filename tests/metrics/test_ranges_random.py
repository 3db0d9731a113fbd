"""The attribution of thousands of small random traces agrees with plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.metrics.attribution import REASONS, Attributed, attribute
from kernelscope.metrics.inheritance import HOW
from kernelscope.metrics.iteration_family import IterationFamily, fold
from kernelscope.metrics.nesting import nesting
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.ranges import range_instances, ranges, ranges_by_name, unattributed
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Trace
from tests import build
from tests.metrics.slow_ranges import Row, Slow

TIMES = st.integers(0, 24)
PROCESSES, THREADS = st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2])


@st.composite
def interval(draw: st.DrawFn) -> dict[str, int]:
    low, high = sorted((draw(TIMES), draw(TIMES)))
    return {"start_ns": low, "end_ns": high}


@st.composite
def range_row(draw: st.DrawFn) -> Row:
    style = draw(st.sampled_from(["push_pop", "push_pop", "push_pop", "start_end"]))
    crossed = style == "start_end" and draw(st.booleans())
    return draw(interval()) | {
        "process_id": draw(PROCESSES),
        "thread_id": draw(THREADS),
        "end_thread_id": 9 if crossed else None,
        "domain": draw(st.sampled_from(["", "", "DALI", "NCCL"])),
        "name": draw(st.sampled_from(["step 1", "step 2", "step 3", "forward", "op"])),
        "style": style,
        "closed": True,
    }


@st.composite
def steps(draw: st.DrawFn, process: int, thread: int) -> list[Row]:
    """Up to three steps one after another, as a program opens them."""
    times = sorted(draw(st.lists(TIMES, min_size=2, max_size=6, unique=True)))
    common = {"process_id": process, "thread_id": thread, "domain": "", "style": "push_pop"}
    common |= {"closed": True}
    return [
        common | {"start_ns": low, "end_ns": high, "end_thread_id": None, "name": f"step {low}"}
        for low, high in zip(times[::2], times[1::2], strict=False)
    ]


@st.composite
def call_row(draw: st.DrawFn) -> Row:
    return draw(interval()) | {
        "process_id": draw(PROCESSES),
        "thread_id": draw(THREADS),
        "correlation_id": draw(st.integers(0, 7)),
        "name": draw(st.sampled_from(["cudaLaunchKernel", "cudaGraphLaunch"])),
        "kind": draw(st.sampled_from(["runtime", "runtime", "runtime", "wrapper"])),
    }


@st.composite
def work_row(draw: st.DrawFn) -> Row:
    return draw(interval()) | {
        "process_id": draw(PROCESSES),
        "device_id": 0,
        "correlation_id": draw(st.one_of(st.none(), st.integers(0, 7))),
        "name": "k",
        "kind": "HtoD",
    }


@st.composite
def cases(draw: st.DrawFn) -> Slow:
    """A random trace, with iterations where it has any and nsys's rule is not asked for."""
    strict, iterates = draw(st.sampled_from([(True, False), (False, False), (False, True)]))
    rows = draw(st.lists(range_row(), max_size=8))
    annotators = [(1, draw(THREADS))]
    annotators += [(2, draw(THREADS))] if draw(st.booleans()) else []
    opened = [row for each in annotators for row in draw(steps(*each))] if iterates else []
    slow = Slow(
        ranges=[*rows, *opened],
        api_calls=draw(st.lists(call_row(), min_size=1, max_size=7)),
        kernels=draw(st.lists(work_row(), max_size=6)),
        copies=draw(st.lists(work_row(), max_size=3)),
        graphs=draw(st.lists(work_row(), max_size=2)),
        strict=strict,
    )
    for _, row in slow.all_work():
        if draw(st.integers(0, 3)):  # most have a launch
            call = draw(st.sampled_from(slow.api_calls))
            row |= {key: call[key] for key in ("process_id", "correlation_id")}
    for _, row in slow.all_work():
        row["end_ns"] = max(row["end_ns"], row["start_ns"] + 1)
    if not slow.strict:
        slow.process_ranges, slow.phases = draw(st.booleans()), draw(st.booleans())
        families = [_steps(slow, *each) for each in annotators] if iterates else [[]]
        slow.family = families[0] or None
        slow.twins = [each for each in families[1:] if each and slow.family]
    low, high = sorted((draw(TIMES), draw(TIMES)))
    slow.window = (low, high + 1) if draw(st.booleans()) else (-1, 100)
    return slow


def _steps(slow: Slow, process: int, thread: int) -> list[int]:
    """Choose iterations: steps on the stack of one thread that do not overlap."""
    rows = [
        row
        for row, item in enumerate(slow.ranges)
        if slow.on_stack[row]
        and (item["process_id"], item["thread_id"], item["domain"]) == (process, thread, "")
        and fold(item["name"]) == "step #"
    ]
    chosen: list[int] = []
    for row in sorted(rows, key=lambda each: slow.ranges[each]["start_ns"]):
        if not chosen or slow.ranges[chosen[-1]]["end_ns"] <= slow.ranges[row]["start_ns"]:
            chosen.append(row)
    return chosen


def fast(slow: Slow) -> tuple[Trace, Window, dict[str, Any]]:
    def rows(table: schema.TableSchema, items: list[Row]) -> Any:
        return build.table(table, [{k: v for k, v in i.items() if k in table.names} for i in items])

    trace = build.trace(
        ranges=rows(schema.RANGES, slow.ranges),
        api_calls=rows(schema.API_CALLS, slow.api_calls),
        kernels=rows(schema.KERNELS, slow.kernels),
        copies=rows(schema.COPIES, slow.copies),
        graphs=rows(schema.GRAPHS, slow.graphs),
    )
    rules: dict[str, Any] = {"strict": slow.strict, "process_ranges": slow.process_ranges}
    if slow.family is not None:
        twins = tuple(_family(slow, rows) for rows in slow.twins)
        rules |= {"phases": slow.phases, "family": _family(slow, slow.family, twins)}
    everything = whole(trace)
    if slow.window == (everything.start_ns, everything.end_ns):
        slow.window = (-1, 100)  # the window of the whole trace has a test of its own
    return trace, Window(*slow.window, "test"), rules


def _family(
    slow: Slow, rows: list[int], twins: tuple[IterationFamily, ...] = ()
) -> IterationFamily:
    start, range_end, end = (
        np.array(each, dtype=np.int64) for each in zip(*slow.periods(rows), strict=True)
    )
    whose = slow.annotator(rows)
    numbers = np.array(rows, dtype=np.int64)
    return IterationFamily(*whose, "", "step #", numbers, start, range_end, end, twins)


@settings(deadline=None, max_examples=600)
@given(cases())
def test_nesting_agrees(slow: Slow) -> None:
    trace, _, _ = fast(slow)
    nest = nesting(trace.ranges)
    everything = range(len(slow.ranges))
    assert nest.crossing.tolist() == slow.crossing
    assert nest.on_stack.tolist() == slow.on_stack
    assert nest.parent.tolist() == slow.parent
    assert nest.depth.tolist() == [len(slow.chain(slow.parent[row])) for row in everything]
    for stack in nest.stacks:
        domain = trace.ranges.categories("domain")[stack.domain]
        call: Row = {"process_id": stack.process_id, "thread_id": stack.thread_id}
        times = np.arange(-1, 26)
        moments = [call | {"start_ns": time, "end_ns": time} for time in times.tolist()]
        then = Slow(slow.ranges, moments, [], [])
        assert stack.at(times).tolist() == [then.innermost(i, domain) for i in range(len(moments))]


@settings(deadline=None, max_examples=600)
@given(cases())
def test_attribution_agrees(slow: Slow) -> None:
    trace, _, rules = fast(slow)
    found = attribute(trace, **rules)
    for items, mine in ((slow.kernels, found.kernels), (slow.copies, found.copies)):
        launches = [slow.launch(item) for item in items]
        assert mine.launch.tolist() == launches
        assert _plain(mine) == [
            slow.belongs(number)[:3] + slow.belongs(number)[4:]
            if number >= 0
            else ("none", -1, -1, "no_launch_row")
            for number in launches
        ]
        for domain, rows in found.enclosed.innermost.items():
            ours = np.append(rows, -1)[mine.call].tolist()
            assert ours == [
                slow.innermost(number, domain) if number >= 0 else -1 for number in launches
            ]


def _plain(mine: Attributed) -> list[tuple[str, int, int, str]]:
    return [
        (HOW[how], iteration, phase, REASONS[reason])
        for how, iteration, phase, reason in zip(
            mine.how.tolist(),
            mine.iteration.tolist(),
            mine.phase.tolist(),
            mine.reason.tolist(),
            strict=True,
        )
    ]


@settings(deadline=None, max_examples=600)
@given(cases())
def test_tables_agree(slow: Slow) -> None:
    trace, window, rules = fast(slow)
    found = attribute(trace, **rules)
    by_path = {
        (tuple(row["path"].split(SEPARATOR)), row["domain"], row["style"], row["process_id"]): row
        for row in ranges(trace, window, attribution=found).records()
    }
    by_name = {
        (row["name"], row["domain"], row["style"], row["process_id"]): row
        for row in ranges_by_name(trace, window, attribution=found).records()
    }
    for ours, theirs in ((by_path, slow.table(False)), (by_name, slow.table(True))):
        for key, row in theirs.items():
            expected = _figures(row)
            if any(expected[name] for name in ("instances", "host_ns", "kernel_ns", "busy_ns")):
                assert {name: ours[key][name] for name in expected} == expected
            else:
                assert key not in ours
        assert ours.keys() <= theirs.keys()
    own = slow.self_kernel_ns()
    for key, row in by_path.items():
        assert row["self_kernel_ns"] == (own[key] if row["style"] == "push_pop" else None)


def _figures(row: Row) -> dict[str, int]:
    return {
        "instances": row["instances"],
        "host_ns": row["host_ns"],
        "kernels": row.get("kernels", 0),
        "kernel_ns": row.get("kernel_ns", 0),
        "opaque_ns": row.get("opaque_ns", 0),
        "inherited_kernel_ns": row.get("inherited_ns", 0),
        "busy_ns": len(row["busy"]),
        **{f"attribution.{how}": row.get(how, 0) for how in HOW[1:]},
    }


INSTANCE_FIGURES = ("launches", "operations", "kernels", "kernel_ns")


@settings(deadline=None, max_examples=600)
@given(cases())
def test_projections_and_the_rest_agree(slow: Slow) -> None:
    trace, window, rules = fast(slow)
    found = attribute(trace, **rules)
    projections = [slow.projection(row) for row in range(len(slow.ranges))]
    instances = range_instances(trace, window, attribution=found).records()
    assert [{key: row[key] for key in INSTANCE_FIGURES} for row in instances] == [
        slow.instance(row) for row in range(len(slow.ranges))
    ]
    assert [
        None
        if row["projected_start_ns"] is None
        else (row["projected_start_ns"], row["projected_end_ns"])
        for row in instances
    ] == projections
    for row in ranges(trace, window, attribution=found).records():
        key = (tuple(row["path"].split(SEPARATOR)), row["domain"], row["style"], row["process_id"])
        mine = [p for i, p in enumerate(projections) if p and slow.path(i) == key]
        assert row["projected_ns"] == sum(end - start for start, end in mine)
        union = {time for start, end in mine for time in range(start, end)}
        assert row["projected_union_ns"] == len(union)
    left = slow.unattributed()
    table = unattributed(trace, window, attribution=found).records()
    for row in table:
        for figure in ("kernels", "total_ns", "opaque_ns"):
            assert row[figure] == left.pop((row["domain"], row["reason"], figure), 0)
    assert not left


@settings(deadline=None, max_examples=500)
@given(cases())
def test_every_nanosecond_belongs_somewhere(slow: Slow) -> None:
    """Σ self kernel time of a domain's push/pop paths + its unattributed = all kernel time."""
    trace, window, rules = fast(slow)
    found = attribute(trace, **rules)
    table = ranges(trace, window, attribution=found).records()
    left = unattributed(trace, window, attribution=found).records()
    total = sum(len(slow.inside(kernel)) for kernel in slow.kernels)
    for domain in found.enclosed.innermost:
        own = sum(row["self_kernel_ns"] or 0 for row in table if row["domain"] == domain)
        assert own + sum(row["total_ns"] for row in left if row["domain"] == domain) == total


def test_the_window_of_a_whole_trace_cuts_no_range_off() -> None:
    trace = build.trace(
        ranges=build.table(
            schema.RANGES,
            [
                {"start_ns": 0, "end_ns": 90, "process_id": 1, "thread_id": 1, "domain": "",
                 "name": "all", "style": "push_pop", "closed": True}
            ],
        ),
        kernels=build.kernels((10, 20)),
    )  # fmt: skip
    for window in (None, whole(trace)):
        (row,) = ranges(trace, window).records()
        assert (row["instances"], row["host_ns"]) == (1, 90)
    assert not len(ranges(trace, Window(91, 99, "test")))
