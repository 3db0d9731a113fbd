"""The bound on what mending saves: against one look at every nanosecond, and against a cure."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelscope.metrics import finding_rules
from kernelscope.metrics.findings import SAME_SHARE
from kernelscope.metrics.idle_results import HOST
from kernelscope.metrics.intervals import Pieces
from kernelscope.metrics.savable import (
    LAUNCHING,
    LEAST_SHARE,
    Seen,
    bound,
    idle_before,
    ran,
    spared,
    within_basis,
)
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import whole
from kernelscope.trace import Trace
from tests.metrics.finding_scenes import (
    MS,
    SYNC,
    US,
    Step,
    alloc,
    code,
    copy,
    finish,
    found,
    launch,
    load,
    module,
    run,
    seen_of,
)
from tests.metrics.test_idle_random import launched, scattered

LENGTH = 300_000
Moments = np.ndarray[Any, np.dtype[np.bool_]]


def moments(pieces: Pieces) -> Moments:
    """Which nanoseconds lie in pieces; they must not overlap."""
    every = np.zeros(LENGTH, dtype=np.bool_)
    for start, end in zip(*(each.tolist() for each in pieces), strict=True):
        assert not every[start:end].any()
        every[start:end] = True
    return every


def covered(rows: list[tuple[int, int]]) -> Moments:
    every = np.zeros(LENGTH, dtype=np.bool_)
    for start, end in rows:
        every[start:end] = True
    return every


def options_of(draw: st.DrawFn, trace: Trace) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if draw(st.booleans()):
        chosen["processes"] = [draw(st.sampled_from(trace.kernels.values("process_id")))]
    if draw(st.booleans()):
        left = select(trace, chosen.get("processes", ())).kernels
        chosen["devices"] = [draw(st.sampled_from(left.values("device_id")))]
    everything = whole(select(trace, chosen.get("processes", ()), chosen.get("devices", ())))
    if draw(st.booleans()) and everything.duration_ns > 2:
        start = draw(st.integers(everything.start_ns, everything.end_ns - 2))
        chosen["between"] = (start, draw(st.integers(start + 1, everything.end_ns)))
    return chosen


@st.composite
def looked_at(draw: st.DrawFn) -> Seen:
    trace = draw((scattered() | launched()).filter(lambda t: len(t.kernels) > 0))
    return seen_of(trace, **options_of(draw, trace))


def labelled(seen: Seen) -> list[tuple[int, int, int, str, dict[str, Any] | None, int]]:
    """(device, start, end, cause, activity that ends the pause, its call) of every idle stretch."""
    explained, trace = seen.explained, seen.everything
    rows = [*trace.kernels.records(), *trace.copies.records(), *trace.graphs.records()]
    found = []
    for i in range(len(explained.pieces.start)):
        gap = explained.pieces.gap[i]
        ending = int(explained.gaps.deciding[gap])
        found.append((
            int(explained.gaps.device[gap]),
            int(explained.pieces.start[i]),
            int(explained.pieces.end[i]),
            explained.labels[explained.pieces.label[i]][0],
            rows[ending] if ending >= 0 else None,
            int(explained.gaps.call[gap]),
        ))  # fmt: skip
    return found


def is_own(seen: Seen, row: dict[str, Any] | None) -> bool:
    """Whether an activity of the whole trace is among those that were chosen."""
    chosen = [*seen.trace.kernels.records(), *seen.trace.copies.records()]
    return row in [*chosen, *seen.trace.graphs.records()]


def cold_start(seen: Seen, device: int, process: int) -> list[tuple[int, int]]:
    """When a device waits for a process to launch the first that it does."""
    calls = seen.every_call.records()
    return [
        (start, min(end, calls[call]["end_ns"]))
        for number, start, end, cause, _ending, call in labelled(seen)
        if number == device and cause == "before_first" and call >= 0
        and calls[call]["process_id"] == process
    ]  # fmt: skip


def began(seen: Seen, device: int) -> int:
    """When a device ran its first kernel; where it has none, anything."""
    identity, trace = seen.measured.identity, seen.everything
    starts = [
        row["start_ns"]
        for row in (*trace.kernels.records(), *trace.graphs.records())
        if identity.device_of((row["process_id"], row["device_id"])) == device
    ]
    leading = [row[2] for row in labelled(seen) if row[0] == device and row[3] == "before_first"]
    return min(starts or leading, default=0)


INTERVALS = st.lists(st.tuples(st.integers(0, 150_000), st.integers(0, 40_000)), max_size=5)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(looked_at(), st.lists(INTERVALS, min_size=2, max_size=2))
def test_spared_idle_time_is_what_going_through_every_nanosecond_finds(
    seen: Seen, spent: list[list[tuple[int, int]]]
) -> None:
    rows = [(a, a + b, 1 + i) for i, each in enumerate(spent) for a, b in each]
    got = spared(seen, *np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    basis = moments(seen.basis.periods)
    calls = seen.every_call.records()
    for device in seen.devices:
        saved = 0
        every = np.zeros(LENGTH, dtype=np.bool_)
        for process in (1, 2):
            ticks = (covered([row[:2] for row in rows if row[2] == process]) & basis).cumsum()
            late = covered([
                (start, end) for number, start, end, cause, ending, call in labelled(seen)
                if number == device and is_own(seen, ending)
                and (cause.startswith(HOST) or cause in LAUNCHING)
                and calls[call]["process_id"] == process
            ]) & basis  # fmt: skip
            every |= late
            late |= covered(cold_start(seen, device, process)) & basis
            sooner = 0
            for moment in np.flatnonzero(late).tolist():
                if sooner < ticks[moment]:
                    sooner += 1
                    saved += moment >= began(seen, device)
        assert int(moments(got[device]).sum()) == saved
        assert not (moments(got[device]) & ~every).any()


@FEW
@given(looked_at(), st.randoms(use_true_random=False))
def test_idle_time_before_kernels_and_their_own_time(seen: Seen, random: Any) -> None:
    kernels = seen.everything.kernels
    records = kernels.records()
    rows = np.array([random.random() < 0.5 for _ in records], dtype=np.bool_)
    causes = ("launch_latency", "kernel_to_kernel", f"{HOST}code")
    before, running = idle_before(seen, rows, causes), ran(seen, kernels, rows)
    for device in seen.devices:
        expected = covered([
            (start, end) for number, start, end, cause, ending, _ in labelled(seen)
            if number == device and cause in causes and is_own(seen, ending)
            and ending in [r for r, wanted in zip(records, rows, strict=True) if wanted]
            and cause not in ("before_first", "after_last")
        ])  # fmt: skip
        assert (moments(before[device]) <= expected).all()
        lanes = seen.measured.identity
        own = [
            (max(row["start_ns"], seen.window.start_ns), min(row["end_ns"], seen.window.end_ns))
            for row, wanted in zip(records, rows, strict=True)
            if wanted and lanes.device_of((row["process_id"], row["device_id"])) == device
        ]
        assert (moments(running[device]) == covered(own)).all()


@FEW
@given(looked_at())
def test_every_bound_is_the_rules_time_per_period_and_no_longer_than_one(seen: Seen) -> None:
    basis = moments(seen.basis.periods)
    for rule in finding_rules.RULES:
        what = rule(seen) if seen.chosen and seen.window.duration_ns else None
        if what is None or what.savable is None:
            continue
        saving, device = bound(what.savable, seen)
        each = {d: int((moments(what.savable[d]) & basis).sum()) for d in seen.chosen}
        assert device in seen.chosen
        assert each[device] == max(each.values())
        assert saving == -(-each[device] // seen.basis.count) <= np.ceil(seen.basis.mean_ns)


@FEW
@given(
    looked_at(), st.lists(st.tuples(st.integers(0, 150_000), st.integers(0, 40_000)), max_size=5)
)
def test_time_within_the_basis_counts_every_interval(
    seen: Seen, rows: list[tuple[int, int]]
) -> None:
    start, end = np.array([(a, a + b) for a, b in rows], dtype=np.int64).reshape(-1, 2).T
    basis = moments(seen.basis.periods)
    expected = sum(int((covered([(a, a + b)]) & basis).sum()) for a, b in rows)
    assert within_basis(start, end, seen.basis) == expected


LENGTHS = st.sampled_from([1, 3, 20, 60, 150, 400]).map(lambda us: us * US)
STEPS = st.one_of(
    LENGTHS.map(launch), LENGTHS.map(launch), LENGTHS.map(code), st.just(SYNC), LENGTHS.map(load),
    LENGTHS.map(alloc), LENGTHS.map(module), LENGTHS.map(copy),
    LENGTHS.map(lambda length: launch(20 * US, length)),
)  # fmt: skip
PROGRAMS = st.lists(STEPS, min_size=2, max_size=30).map(
    lambda steps: [launch(20 * US), *steps, launch(20 * US)]
)


def without(program: list[Step], code: str) -> list[Step]:
    """The program with one cause mended, better than anybody could."""
    if code == "pageable_copies":
        return [Step("pinned", 0, 1) if step.what == "copy" else step for step in program]
    if code == "module_loading":
        program = [launch(s.work) if s.what == "launch" and s.length > 50 * US else s
                   for s in program]  # fmt: skip
    what = {"synchronizations": "sync", "allocations": "alloc", "data_loading": "load",
            "module_loading": "module"}[code]  # fmt: skip
    return [step for step in program if step.what != what]


@pytest.mark.parametrize(
    "code_", ["synchronizations", "allocations", "data_loading", "module_loading",
              "pageable_copies"],
)  # fmt: skip
@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS)
def test_a_cure_saves_no_more_than_the_bound(code_: str, program: list[Step]) -> None:
    trace = run(program)
    row = found(trace).get(code_)
    saved = finish(program) - finish(without(program, code_))
    least = LEAST_SHARE * whole(trace).duration_ns
    assert saved <= (least if row is None else row["saving_bound_ns"])


@pytest.mark.parametrize(
    "code_", ["synchronizations", "allocations", "data_loading", "module_loading"]
)
@settings(max_examples=150, deadline=None)
@given(start=st.lists(STEPS, max_size=8), program=PROGRAMS)
def test_behind_its_start_up_a_cure_saves_no_more_than_the_bound(
    code_: str, start: list[Step], program: list[Step]
) -> None:
    """What comes before the first kernel may have been as slow as it likes."""
    program = [step for step in start if step.what != "launch"] + program
    trace = run(program)
    row = found(trace).get(code_)
    cured = without(program, code_)
    saved = finish(program) - first_kernel(program) - (finish(cured) - first_kernel(cured))
    least = LEAST_SHARE * whole(trace).duration_ns
    assert saved <= (least if row is None else row["saving_bound_ns"])


def first_kernel(program: list[Step]) -> int:
    return int(run(program).kernels["start_ns"].min())


@settings(max_examples=50, deadline=None)
@given(program=PROGRAMS)
def test_bounds_are_no_longer_than_the_window_and_ranked(program: list[Step]) -> None:
    trace = run(program)
    rows = list(found(trace).values())
    bounds = [row["saving_bound_ns"] for row in rows if row["code"] != "data_loading"]
    assert bounds == sorted(bounds, reverse=True)
    for row, behind in pairwise(rows):  # the one may stand before what saves the same pauses
        one, other = row["saving_bound_ns"], behind["saving_bound_ns"]
        assert one >= other or (
            (row["code"], behind["code"]) == ("data_loading", "pageable_copies")
            and one >= SAME_SHARE * other
        )
    for row in rows:
        assert row["saving_bound_ns"] >= LEAST_SHARE * whole(trace).duration_ns
        assert row["saving_share"] <= 1
        assert row["evidence"].count(" ") > 3
        assert any(letter.isdigit() for letter in row["evidence"])


def test_a_sync_that_ends_long_before_still_costs_what_it_took() -> None:
    """The host is 100 µs late at the end because it waited 100 µs at the beginning."""
    steps = [launch(100 * US), SYNC, launch(300 * US), code(250 * US), launch(20 * US),
             code(200 * US), launch(20 * US)]  # fmt: skip
    row = found(run(steps))["synchronizations"]
    saved = finish(steps) - finish([step for step in steps if step is not SYNC])
    assert 0 < saved <= row["saving_bound_ns"] <= 105 * US
    assert row["saving_bound_ns"] - saved < 10 * US
    assert row["saving_bound_ns"] < MS
