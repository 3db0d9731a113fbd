"""The nvprof parser on databases built in code, of every version."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernelscope as ks
from kernelscope.errors import DamagedFileError, NotATraceError, TraceFileError
from kernelscope.parsers import nvprof_ranges
from kernelscope.trace import Trace
from tests.corpus import CORPUS, needs_corpus
from tests.parsers.nvprof_files import KERNEL, V100, VERSIONS, P, thread_object, write

PID, TID = 4242, 3_940_300_608
SIGNED = TID - (1 << 32)
CALL = {
    "cbid": 211, "start": 900, "end": 950, "processId": PID, "threadId": SIGNED, "correlationId": 7,
}  # fmt: skip

every_version = pytest.mark.parametrize("version", VERSIONS)


def marker(
    at: int, number: int, flags: int, name: str | None = None, **more: Any
) -> dict[str, Any]:
    base = {"timestamp": at, "id": number, "flags": flags, "name": name, "objectKind": 2}
    return {**base, "objectId": thread_object(PID, TID), **more}


def only(trace: Trace, table: str) -> dict[str, Any]:
    [row] = trace.tables[table].records()
    return row


@every_version
def test_a_timeline_of_every_version(tmp_path: Path, version: int) -> None:
    path = write(
        tmp_path / "t.nvprof", version, CONCURRENT_KERNEL=[KERNEL], RUNTIME=[CALL], DEVICE=[V100],
        DRIVER=[{**CALL, "cbid": 307, "start": 910, "end": 940, "correlationId": 8}],
        MEMCPY=[{"copyKind": 1, "srcKind": 2, "dstKind": 3, "bytes": 64, "start": 960, "end": 990}],
        MEMSET=[{"bytes": 32, "start": 991, "end": 995, "memoryKind": 3}],
        OVERHEAD=[{"overheadKind": 0x10000, "objectKind": 1, "start": 800, "end": 810,
                   "objectId": thread_object(PID, 99)}],
        MARKER=[marker(850, 1, 2, "step"), marker(1600, 1, 4)],
        NAME=[{"objectKind": 1, "objectId": thread_object(PID, 5), "name": "train.py"}],
    )  # fmt: skip
    trace = ks.read(path)

    assert (trace.capture.format, trace.capture.schema) == ("nvprof", str(version))
    assert (trace.capture.serialised, trace.capture.warnings) == (None, ())
    kernel = only(trace, "kernels")
    assert (kernel["name"], kernel["process_id"]) == ("add(float*, float*, int)", PID)
    assert (kernel["start_ns"], kernel["end_ns"]) == (200, 700)  # from the first event, at 800
    assert kernel["launch_type"] == (None if version < 11 else "regular")
    assert kernel["shared_carveout_bytes"] is None
    assert kernel["graph_node_id"] is None
    calls = trace.api_calls.records()
    assert [(c["name"], c["kind"]) for c in calls] == [
        ("cudaLaunchKernel", "runtime"), ("cuLaunchKernel", "driver"),
    ]  # fmt: skip
    assert {c["thread_id"] for c in calls} == {TID}
    copy, memset = trace.copies.records()
    assert (copy["kind"], copy["src_memory"], copy["dst_memory"]) == ("HtoD", "pinned", "device")
    assert (memset["kind"], memset["bytes"]) == ("memset", 32)
    assert memset["dst_memory"] == (None if version < 9 else "device")
    cost = only(trace, "overheads")
    assert (cost["name"], cost["process_id"], cost["thread_id"]) == (
        "CUPTI Buffer flush",
        PID,
        None,
    )
    step = only(trace, "ranges")
    assert (step["name"], step["start_ns"], step["end_ns"]) == ("step", 50, 800)
    assert (step["style"], step["thread_id"], step["domain"]) == ("push_pop", TID, "")
    assert only(trace, "processes") == {"process_id": PID, "name": "train.py"}
    device = only(trace, "devices")
    assert device["clock_hz"] == 1_530_000_000
    assert device["memory_bytes_per_s"] == 898_048_000_000
    assert device["uuid"] == "01020304-0506-0708-090a-0b0c0d0e0f10"
    assert ks.analyze(trace).ok


def test_time_counts_from_the_first_event_and_that_moment_is_told(tmp_path: Path) -> None:
    at = 1_583_978_808 * 10**9 + 5
    kernel = KERNEL | {"start": at, "end": at + 9}
    trace = ks.read(write(tmp_path / "t.nvprof", CONCURRENT_KERNEL=[kernel]))

    assert (only(trace, "kernels")["start_ns"], only(trace, "kernels")["end_ns"]) == (0, 9)
    assert trace.capture.started_at == "2020-03-12T02:06:48.000000005Z"
    early = ks.read(write(tmp_path / "u.nvprof", CONCURRENT_KERNEL=[KERNEL]))
    assert early.capture.started_at is None  # since the machine started


def test_a_wrong_time_is_no_first_event(tmp_path: Path) -> None:
    at = 1_583_978_808 * 10**9
    rows = [KERNEL | {"start": at, "end": at + 9}, KERNEL | {"start": 0, "end": at + 5}]
    trace = ks.read(write(tmp_path / "t.nvprof", CONCURRENT_KERNEL=rows))

    assert trace.kernels["start_ns"].tolist() == [0]
    assert only(trace, "quarantine")["end_ns"] == at + 5


class TestMarkers:
    """NVTX ranges, put together from pairs of markers."""

    def read(self, folder: Path, markers: list[dict[str, Any]], **rows: Any) -> Trace:
        path = write(folder / "m.nvvp", 12, RUNTIME=[CALL], MARKER=markers, **rows)
        return ks.read(path)

    def test_instants_are_no_ranges(self, tmp_path: Path) -> None:
        trace = self.read(tmp_path, [marker(1000, 1, 1, "now"), marker(1100, 2, 2, "a"),
                                     marker(1200, 2, 4)])  # fmt: skip
        assert trace.ranges.texts("name") == ["a"]

    def test_an_unclosed_range_ends_with_the_trace(self, tmp_path: Path) -> None:
        trace = self.read(tmp_path, [marker(1000, 1, 2, "open")], CONCURRENT_KERNEL=[KERNEL])
        row = only(trace, "ranges")
        assert (row["closed"], row["end_ns"]) == (False, 1500 - 900)

    def test_a_range_that_was_open_before_is_told_of(self, tmp_path: Path) -> None:
        trace = self.read(tmp_path, [marker(1000, 9, 4)])
        assert len(trace.ranges) == 0
        assert any("1 NVTX ranges were open before" in each for each in trace.capture.warnings)

    def test_objects_domains_and_payloads(self, tmp_path: Path) -> None:
        process: dict[str, Any] = {
            "objectKind": 1,
            "objectId": thread_object(PID, 77),
            "domain": "io",
        }
        trace = self.read(
            tmp_path,
            [marker(1000, 1, 2, "load", **process), marker(1010, 2, 2, None, domain=None),
             marker(1020, 2, 4), marker(1030, 1, 4, **process), marker(1040, 3, 2, "x"),
             marker(1050, 3, 4)],
            MARKER_DATA=[
                {"id": 1, "payloadKind": 1, "payload": struct.pack("<Q", 12), "category": 5},
                {"id": 2, "payloadKind": 0, "payload": struct.pack("<d", 2.5)},
                {"id": 3, "payloadKind": 4, "payload": struct.pack("<q", -3)},
            ],
        )  # fmt: skip
        load, unnamed, signed = trace.ranges.records()
        assert (load["style"], load["thread_id"], load["domain"]) == ("start_end", None, "io")
        assert (load["process_id"], load["category"], load["payload_int"]) == (PID, 5, 12)
        assert (unnamed["name"], unnamed["domain"], unnamed["category"]) == ("", "", None)
        assert (unnamed["payload_int"], unnamed["payload_float"]) == (None, 2.5)
        assert signed["payload_int"] == -3

    def test_what_kernelscopes_annotations_say(self, tmp_path: Path) -> None:
        ours = {"domain": "kernelscope"}
        trace = self.read(
            tmp_path,
            [marker(1000, 1, 2, "iteration {ks1 batch=64}", **ours), marker(1010, 1, 4, **ours),
             marker(1020, 2, 2, "capture", **ours), marker(1030, 2, 4, **ours),
             marker(1040, 3, 2, "iteration {ks1 batch=64}"), marker(1050, 3, 4)],
            MARKER_DATA=[
                {"id": 1, "payloadKind": 4, "payload": struct.pack("<q", 7), "category": 1},
                {"id": 2, "payloadKind": 0, "payload": bytes(8), "category": 5},
                {"id": 3, "payloadKind": 0, "payload": bytes(8), "category": 1},
            ],
        )  # fmt: skip
        said, other = trace.ranges.records()
        assert (said["name"], said["role"], said["batch_size"]) == ("iteration", "iteration", 64)
        assert (said["category"], said["payload_int"]) == (1, 7)
        assert (other["name"], other["role"]) == ("iteration {ks1 batch=64}", None)

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.sampled_from([1, 2, 4]))))
    def test_pairs_are_those_of_a_plain_walk(self, rows: list[tuple[int, int, int]]) -> None:
        ids, time, flags = (
            (np.array(column, np.int64) for column in zip(*rows, strict=True))
            if (rows)
            else (np.empty(0, np.int64),) * 3
        )
        found = nvprof_ranges.paired(flags, time, ids)

        pairs: list[tuple[int, int]] = []
        orphans = 0
        for number in set(ids.tolist()):
            mine = [r for r in range(len(rows)) if ids[r] == number and flags[r] != 1]
            mine.sort(key=lambda r: (time[r], flags[r], r))
            opened = -1
            for row in mine:
                if flags[row] == 2:
                    pairs += [(opened, -1)] if opened >= 0 else []
                    opened = row
                elif opened >= 0:
                    pairs.append((opened, row))
                    opened = -1
                else:
                    orphans += 1
            pairs += [(opened, -1)] if opened >= 0 else []
        assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == sorted(pairs)
        assert found.orphans == orphans


class TestCounters:
    """Metric values: kinds by name, by their values, and flags."""

    def read(self, folder: Path, metrics: list[dict[str, Any]], **rows: Any) -> Trace:
        given_rows = {"KERNEL": [KERNEL], "DEVICE": [V100], "METRIC": metrics} | rows
        return ks.read(write(folder / "c.nvprof", 12, **given_rows))

    def test_values_of_every_kind(self, tmp_path: Path) -> None:
        def whole(number: int, value: int, **more: Any) -> dict[str, Any]:
            return {"id": number, "value": struct.pack("<Q", value), "correlationId": 7, **more}

        def real(number: int, value: float, **more: Any) -> dict[str, Any]:
            return {"id": number, "value": struct.pack("<d", value), "correlationId": 7, **more}

        trace = self.read(
            tmp_path,
            [real(20971523, 83.5), whole(20971674, 2**53 + 1), whole(20971554, 64_773_851_202),
             real(20971638, 0.0), whole(20971576, 7, flags=1), whole(20971577, 7, flags=2),
             whole(99, 12), real(98, 0.5), whole(97, 3), real(97, 2.5), whole(96, 0)],
            METRIC_INSTANCE=[real(20971637, 98.0, instance=3)],
        )  # fmt: skip
        rows = trace.counters.records()
        assert {row["kernel_name"] for row in rows} == {"add(float*, float*, int)"}
        assert {(r["statistic"], r["executions"], r["source"]) for r in rows} == {
            ("value", 1, "nvprof")
        }
        assert [(r["metric"], r["value"], r["value_int"], r["unit"]) for r in rows[:4]] == [
            ("warp_execution_efficiency", 0.835, None, "ratio"),
            ("dram_read_bytes", float(2**53), 2**53 + 1, "bytes"),
            ("dram_read_throughput", 64773851202.0, 64_773_851_202, "bytes/s"),
            ("achieved_occupancy", 0.0, None, "1"),
        ]
        assert [(r["metric"], r["value"], r["problem"]) for r in rows[4:6]] == [
            ("flop_count_sp_fma", None, "overflow"), ("flop_count_sp_mul", None, "invalid"),
        ]  # fmt: skip
        assert [(r["metric"], r["value"], r["value_int"], r["problem"]) for r in rows[6:11]] == [
            ("metric 99", 12.0, 12, None), ("metric 98", 0.5, None, None),
            ("metric 97", None, None, "unknown_kind"), ("metric 97", None, None, "unknown_kind"),
            ("metric 96", 0.0, 0, None),
        ]  # fmt: skip
        assert (rows[11]["metric"], rows[11]["instance"]) == ("sm_efficiency", 3)
        assert any("4 metrics have numbers" in each for each in trace.capture.warnings)

    def test_names_are_those_of_the_kernels_gpu(self, tmp_path: Path) -> None:
        devices = [V100, V100 | {"id": 1, "computeCapabilityMajor": 8, "uuid": bytes(16)}]
        value = {"id": 20971592, "value": struct.pack("<Q", 4)}
        other = KERNEL | {"correlationId": 8, "deviceId": 1, "start": 1600, "end": 1700}
        trace = self.read(
            tmp_path, [value | {"correlationId": n} for n in (7, 8, 9)], DEVICE=devices,
            KERNEL=[KERNEL, other],
        )  # fmt: skip
        rows = trace.counters.records()
        number = "metric 20971592"
        assert [row["metric"] for row in rows] == ["inst_fp_32", number, number]
        assert [row["device_id"] for row in rows] == [0, 1, None]
        assert rows[2]["kernel_name"] is None

    def test_a_value_of_another_size_is_none(self, tmp_path: Path) -> None:
        trace = self.read(tmp_path, [{"id": 5, "value": b"\1\2\3", "correlationId": 7}])
        assert only(trace, "counters")["problem"] == "invalid"

    def test_a_selection_keeps_the_counters_of_its_device(self, tmp_path: Path) -> None:
        value = {"id": 5, "value": struct.pack("<Q", 4)}
        trace = self.read(
            tmp_path, [value | {"correlationId": 7}, value | {"correlationId": 8}],
            KERNEL=[KERNEL, KERNEL | {"correlationId": 8, "deviceId": 1}],
        )  # fmt: skip
        from kernelscope.metrics.selection import select  # noqa: PLC0415 - only here

        assert select(trace, devices=[1]).counters.values("correlation_id") == [8]


def test_kernels_of_both_tables_and_of_the_device_count(tmp_path: Path) -> None:
    moved = [
        KERNEL | {"correlationId": n, "start": 1000 * n, "end": 1000 * n + 1} for n in (1, 2, 3)
    ]
    trace = ks.read(
        write(tmp_path / "b.nvprof", CONCURRENT_KERNEL=moved[:1], KERNEL=moved[1:2],
              CDP_KERNEL=moved[2:])
    )  # fmt: skip
    assert trace.kernels.values("correlation_id") == [1, 2, 3]
    assert trace.capture.serialised is not None
    assert any("both count" in each for each in trace.capture.warnings)


def test_unified_memory_that_moved_is_a_copy(tmp_path: Path) -> None:
    base = {"start": 10, "end": 20, "value": 4096, "processId": PID, "flags": 2}
    host = 0xFFFFFFFF
    trace = ks.read(
        write(
            tmp_path / "u.nvprof",
            UNIFIED_MEMORY_COUNTER=[
                base | {"counterKind": 1, "srcId": host, "dstId": 0},
                base | {"counterKind": 2, "srcId": 1, "dstId": host},
                base | {"counterKind": 8, "srcId": 2, "dstId": 3},
                base | {"counterKind": 4, "srcId": 0, "dstId": 0},
            ],
        )
    )
    assert [
        (row["kind"], row["device_id"], row["bytes"], row["migration_cause"], row["process_id"])
        for row in trace.copies.records()
    ] == [
        ("unified HtoD", 0, 4096, "page fault", PID),
        ("unified DtoH", 1, 4096, "page fault", PID),
        ("unified DtoD", 3, 4096, "page fault", PID),
    ]
    assert trace.copies.values("src_device_id") == [None, None, 2]


def test_peer_copies_and_synchronisations(tmp_path: Path) -> None:
    trace = ks.read(
        write(
            tmp_path / "p.nvprof", RUNTIME=[CALL], CONTEXT=[{"contextId": 4, "deviceId": 2}],
            MEMCPY2=[{"copyKind": 10, "start": 1, "end": 2, "deviceId": 1, "srcDeviceId": 1,
                      "dstDeviceId": 2, "bytes": 8}],
            CUDA_EVENT=[{"contextId": 4, "streamId": 9, "eventId": 5}],
            SYNCHRONIZATION=[
                {"type": 2, "start": 1, "end": 2, "contextId": 4, "streamId": 9, "cudaEventId": 5},
                {"type": 4, "start": 3, "end": 4, "contextId": 5, "streamId": -1,
                 "cudaEventId": 0xFFFFFFFF},
            ],
        )
    )  # fmt: skip
    record = only(trace, "event_records")
    assert (record["device_id"], record["stream_id"], record["event_id"]) == (2, 9, 5)
    copy = only(trace, "copies")
    assert (copy["kind"], copy["src_device_id"], copy["dst_device_id"]) == ("PtoP", 1, 2)
    assert [
        (row["kind"], row["device_id"], row["stream_id"], row["event_id"])
        for row in trace.syncs.records()
    ] == [("stream_wait_event", 2, 9, 5), ("context_synchronize", None, None, None)]


def test_calls_of_several_processes_leave_kernels_without_one(tmp_path: Path) -> None:
    trace = ks.read(
        write(tmp_path / "s.nvprof", CONCURRENT_KERNEL=[KERNEL],
              RUNTIME=[CALL, CALL | {"processId": PID + 1}])
    )  # fmt: skip
    assert only(trace, "kernels")["process_id"] is None
    assert any("several processes" in each for each in trace.capture.warnings)


def test_what_is_not_known_keeps_its_number_or_says_so(tmp_path: Path) -> None:
    trace = ks.read(
        write(tmp_path / "k.nvprof", None, RUNTIME=[CALL | {"cbid": 60000}],
              CONCURRENT_KERNEL=[KERNEL | {"name": None}, KERNEL | {"name": "_Zbroken"}])
    )  # fmt: skip
    assert trace.api_calls.texts("name") == ["runtime call 60000"]
    assert trace.kernels.texts("name") == ["[unnamed]", "_Zbroken"]
    assert any("does not say its version" in each for each in trace.capture.warnings)
    newer = ks.read(write(tmp_path / "n.nvprof", 17, RUNTIME=[CALL]))
    assert any("Version 17" in each for each in newer.capture.warnings)


@pytest.mark.parametrize(
    "table", ["CDP_KERNEL", "MARKER", "MARKER_DATA", "DEVICE", "NAME", "MEMCPY"]
)
def test_any_table_may_be_absent(tmp_path: Path, table: str) -> None:
    path = write(tmp_path / "a.nvprof", leave_out=[table], CONCURRENT_KERNEL=[KERNEL])
    assert len(ks.read(path).kernels) == 1


@every_version
def test_an_empty_shell_is_refused(tmp_path: Path, version: int) -> None:
    path = write(tmp_path / "e.nvvp", version, DEVICE=[V100])
    with pytest.raises(NotATraceError, match="holds no events") as caught:
        ks.read(path)
    assert "nsys profile" in caught.value.hint


REFUSED: dict[str, tuple[bytes, str]] = {
    "session": (b'<?xml version="1.0"?>\n<x/>', "Visual Profiler"),
    "binary": (b"\0\4\0\0\4\0\0\0GeForce GT 630M\xff\xfe" * 50, "older binary format"),
    "printed": (b'"Type","Time(%)","Time","Calls"\n', "that nvprof printed"),
    "text": ("Größe\n".encode(), "text file"),
    "zeros": (bytes(9000), "zeros"),
}


@pytest.mark.parametrize(("content", "says"), REFUSED.values(), ids=REFUSED)
def test_other_files_of_these_names_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.nvprof"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match=says) as caught:
        ks.read(path)
    assert caught.value.hint
    assert str(path) in caught.value.message


def test_a_truncated_database_names_nvprofs_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "d.nvprof", CONCURRENT_KERNEL=[KERNEL] * 500)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(DamagedFileError, match="truncated") as caught:
        ks.read(path)
    assert "nvprof again" in caught.value.hint
    assert "nsys export" not in caught.value.hint
    path.write_bytes(b"")
    with pytest.raises(DamagedFileError, match="0 bytes") as caught:
        ks.read(path)
    assert "nvprof again" in caught.value.hint


def test_a_folder_of_databases_is_listed(tmp_path: Path) -> None:
    write(tmp_path / "run.nvprof", CONCURRENT_KERNEL=[KERNEL])
    with pytest.raises(NotATraceError, match="folder") as caught:
        ks.read(tmp_path)
    assert "run.nvprof" in caught.value.hint


def _damage(whole: bytes, at: list[int], to: list[int]) -> bytes:
    content = bytearray(whole)
    for place, value in zip(at, to, strict=True):
        content[100 + place % (len(content) - 100)] = value
    return bytes(content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    version=st.sampled_from(VERSIONS),
    at=st.lists(st.integers(0, 1 << 20), min_size=30, max_size=30),
    to=st.lists(st.integers(0, 255), min_size=30, max_size=30),
    count=st.integers(1, 30),
)
def test_damage_gives_an_error_or_a_trace(
    tmp_path: Path, version: int, at: list[int], to: list[int], count: int
) -> None:
    path = tmp_path / f"{version}.nvprof"
    if not path.exists():
        write(
            path, version, KERNEL=[KERNEL] * 40, DEVICE=[V100],
            MARKER=[marker(5, 1, 2, "a"), marker(9, 1, 4)],
            METRIC=[{"id": 5, "value": b"12345678", "correlationId": 7}] * 40,
        )  # fmt: skip
    damaged = tmp_path / "damaged.nvprof"
    damaged.write_bytes(_damage(path.read_bytes(), at[:count], to[:count]))
    with contextlib.suppress(TraceFileError):
        trace = ks.read(damaged)
        assert (trace.kernels["end_ns"] >= trace.kernels["start_ns"]).all()
        ks.analyze(trace)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        lambda c, t, col: c.execute(f"UPDATE {t} SET {col} = 'text'"),
        lambda c, t, col: c.execute(f"UPDATE {t} SET {col} = 1.5"),
        lambda c, t, col: c.execute(f"UPDATE {t} SET {col} = x'00'"),
        lambda c, t, col: c.execute(f"UPDATE {t} SET {col} = -9223372036854775807"),
        lambda c, t, col: c.execute(f"ALTER TABLE {t} DROP COLUMN {col}"),
    ],
    ids=["text", "fraction", "bytes", "lowest", "dropped"],
)
def test_any_column_may_be_anything(tmp_path: Path, spoil: Callable[..., object]) -> None:
    rows: dict[str, Any] = {
        "CONCURRENT_KERNEL": [KERNEL], "RUNTIME": [CALL], "DEVICE": [V100],
        "MEMCPY": [{"start": 1, "end": 2}], "MEMCPY2": [{"start": 1, "end": 2}],
        "MARKER": [marker(5, 1, 2, "a"), marker(9, 1, 4)],
        "MARKER_DATA": [{"id": 1, "payload": bytes(8)}],
        "METRIC": [{"id": 5, "value": bytes(8), "correlationId": 7}],
        "METRIC_INSTANCE": [{"id": 5, "value": bytes(8), "correlationId": 7}],
        "UNIFIED_MEMORY_COUNTER": [{"counterKind": 1, "start": 1, "end": 2}],
        "SYNCHRONIZATION": [{"type": 1, "start": 1, "end": 2}],
        "OVERHEAD": [{"objectKind": 1, "start": 1, "end": 2, "objectId": bytes(12)}],
        "NAME": [{"objectKind": 2, "objectId": thread_object(1, 2), "name": "x"}],
        "CONTEXT": [{"contextId": 1}],
    }  # fmt: skip
    whole = write(tmp_path / "w.nvprof", 16, **rows).read_bytes()
    path = tmp_path / "s.nvprof"
    with closing(sqlite3.connect(tmp_path / "w.nvprof")) as database:
        columns = {
            table: [row[1] for row in database.execute(f"PRAGMA table_info({P}{table})")][1:]
            for table in rows
        }
    for table, names in columns.items():
        for name in names:
            path.write_bytes(whole)
            with closing(sqlite3.connect(path)) as database, database:
                spoil(database, P + table, name)
            trace = ks.read(path)
            if table in ("CONCURRENT_KERNEL", "MARKER", "UNIFIED_MEMORY_COUNTER"):
                ks.analyze(trace)


@needs_corpus
def test_the_shells_and_sessions_of_the_corpus_say_what_they_are() -> None:
    assert CORPUS is not None
    folder = CORPUS / "traces" / "nvprof"
    for name, says in {
        "nearlyempty__profile.nvvp": "no events",
        "XML_session__profile.nvvp": "session",
        "LEGACYBIN_hybridmaxflow__prof.nvprof": "older binary format",
        "nvprof_summary_csv_V100S_hierarchical_timing_transpose.csv": "that nvprof printed",
        "nvprof_summary_csv_V100S_hierarchical_metrics_transpose.csv": "that nvprof printed",
    }.items():
        with pytest.raises(NotATraceError, match=says):
            ks.read(folder / name)
