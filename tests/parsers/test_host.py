"""Operating-system calls and scheduling records of an Nsight Systems export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlite_utils
from hypothesis import given
from hypothesis import strategies as st

import kernelscope
from kernelscope.trace import Trace

PROCESS, THREAD, OTHER = 77, 5, 6


def tid(thread: int) -> int:
    return (1 << 48) | (PROCESS << 24) | thread


def export(path: Path, **tables: list[dict[str, Any]]) -> Trace:
    database = sqlite_utils.Database(path)
    strings = [{"id": 1, "value": "read"}, {"id": 2, "value": "profiling finished"}]
    database.table("StringIds").insert_all(strings)
    database.table("META_DATA_EXPORT").insert_all(
        [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.0"}]
    )
    for name, rows in tables.items():
        database.table(name).insert_all(rows)
    database.close()
    return kernelscope.read(path)


def switches(*records: tuple[int, int, int]) -> list[dict[str, int]]:
    return [
        {"start": start, "cpu": 3, "isSchedIn": into, "globalTid": tid(thread)}
        for start, into, thread in records
    ]


def stretches(trace: Trace) -> list[tuple[int, int, int]]:
    rows = trace.on_core.records()
    return [(row["thread_id"], row["start_ns"], row["end_ns"]) for row in rows]


def test_only_rows_of_the_calls_own_class_are_calls(tmp_path: Path) -> None:
    row = {"start": 10, "end": 30, "globalTid": tid(THREAD), "nameId": 1, "eventClass": 27}
    mark = {"start": 40, "end": 40, "globalTid": tid(THREAD), "nameId": 2, "eventClass": 31}
    trace = export(tmp_path / "a.sqlite", OSRT_API=[row, mark])
    assert trace.os_calls.records() == [
        {"start_ns": 10, "end_ns": 30, "process_id": PROCESS, "thread_id": THREAD, "name": "read"}
    ]


def test_a_thread_runs_from_being_switched_in_to_being_switched_out(tmp_path: Path) -> None:
    records = switches((10, 1, THREAD), (15, 1, OTHER), (20, 0, THREAD), (30, 0, OTHER))
    trace = export(tmp_path / "a.sqlite", SCHED_EVENTS=records)
    assert stretches(trace) == [(THREAD, 10, 20), (OTHER, 15, 30)]
    assert trace.on_core.values("cpu") == [3, 3]


def test_stretches_open_at_an_end_reach_to_the_first_or_last_record(tmp_path: Path) -> None:
    records = switches((10, 1, THREAD), (15, 0, OTHER), (20, 0, THREAD), (40, 1, THREAD))
    trace = export(tmp_path / "a.sqlite", SCHED_EVENTS=[*records, *switches((50, 1, OTHER))])
    assert stretches(trace) == [
        (THREAD, 10, 20), (THREAD, 40, 50), (OTHER, 10, 15), (OTHER, 50, 50),
    ]  # fmt: skip


def test_the_number_of_cores_is_read_and_nothing_else_of_its_table(tmp_path: Path) -> None:
    system = [{"name": "CpuCores", "value": "16"}, {"name": "Environment", "value": "SECRET=1"}]
    trace = export(
        tmp_path / "a.sqlite", TARGET_INFO_SYSTEM_ENV=system, SCHED_EVENTS=switches((1, 1, 5))
    )
    assert trace.capture.cpu_cores == 16
    assert "TARGET_INFO_SYSTEM_ENV" not in trace.capture.read_paths


def slow(records: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Follow each thread's records one by one."""
    first, last = min(r[0] for r in records), max(r[0] for r in records)
    found = []
    for thread in sorted({r[2] for r in records}):
        since: int | None = None
        seen = False
        for time, into, _ in sorted((r for r in records if r[2] == thread), key=lambda r: r[0]):
            if into:
                since = time if since is None else since
            elif since is not None or not seen:
                found.append((thread, first if since is None else since, time))
                since = None
            seen = True
        if since is not None:
            found.append((thread, since, last))
    return found


@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=14
    )
)
def test_any_records_agree_with_following_each_thread(
    tmp_path_factory: Any, records: list[tuple[int, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("sched") / "a.sqlite"
    assert stretches(export(path, SCHED_EVENTS=switches(*records))) == slow(records)
