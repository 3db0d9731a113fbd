"""The device's busy time with groups of calls is that of a set of nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope.metrics.busy_time import busy_by_group, busy_time
from kernelscope.metrics.call_stretches import stretches
from kernelscope.metrics.call_work import DeviceEvents
from kernelscope.metrics.grouping import Key
from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import Runs, calls_of_groups

GROUPS = 3


@st.composite
def launched(draw: st.DrawFn) -> tuple[Launching, list[tuple[int, int, int]]]:
    """Calls of a few threads of two processes, and executions (call, start, end) of theirs."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    bounds = np.cumsum([0, *sizes]).tolist()
    threads: dict[Key, slice] = {
        (1 + number // 2, number): slice(*bounds[number : number + 2])
        for number in range(len(sizes))
    }
    times = [sorted(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))) for n in sizes]
    start = np.array([time for each in times for time in each], dtype=np.int64)
    rows = np.arange(len(start), dtype=np.int32)
    nothing = np.empty(0, dtype=np.int32)
    calls = Launching(rows, start, start + 1, rows < 0, threads, *[nothing] * 6)
    event = st.tuples(st.integers(0, len(start) - 1), st.integers(0, 20), st.integers(0, 6))
    events = draw(st.lists(event, max_size=12))
    return calls, [(call, first, first + length) for call, first, length in events]


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[Launching, list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """As above, with runs (group, first, last) of calls; each group is of one process."""
    calls, events = draw(launched())
    runs = []
    for group in range(GROUPS):
        process = draw(st.sampled_from([key[0] for key in calls.threads]))
        mine = [part for key, part in calls.threads.items() if key[0] == process]
        low, high = mine[0].start, mine[-1].stop
        for _ in range(draw(st.integers(0, 3))):
            first = draw(st.integers(low, high - 1))
            runs.append((group, first, draw(st.integers(first + 1, high))))
    return calls, events, runs


@settings(deadline=None, max_examples=1000)
@given(cases(), st.sampled_from([1, 3, 1000]))
def test_busy_time_agrees_with_a_set_of_nanoseconds(
    case: tuple[Launching, list[tuple[int, int, int]], list[tuple[int, int, int]]], at_once: int
) -> None:
    calls, events, rows = case
    call, start, end = np.array(events, dtype=np.int64).reshape(-1, 3).T
    owner, first, last = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    parts = stretches(calls, [Runs(owner, first, last)])
    busy = busy_time(calls, DeviceEvents(call.astype(np.int32), start, end), parts)
    held = parts.of_runs(Runs(owner, first, last))
    runs = calls_of_groups(held, (), np.arange(GROUPS), len(parts)).all
    expected = []
    for group in range(GROUPS):
        mine = {each for g, low, high in rows if g == group for each in range(low, high)}
        covered = {t for each, low, high in events if each in mine for t in range(low, high)}
        expected.append(len(covered))
    assert busy_by_group(busy, runs, GROUPS, at_once).tolist() == expected
