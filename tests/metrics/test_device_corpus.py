"""Device time on real traces: sums, a slow sweep, and the vendor's own list of gaps.

Columns are read with plain SQL, apart from any parser of kernelscope, so that a mistake there
cannot hide one here.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope import schema
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.device_time import checks, devices, measure
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Categorical, ColumnData, Table, Trace, missing_value
from tests.build import trace
from tests.corpus import each, nsys_traces, nsys_traces_with, oracle

each_trace = each(nsys_traces(), "path")

KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "unified HtoD"}
KINDS |= {12: "unified DtoH", 13: "unified DtoD"}
IDS = {"start_ns": "start", "end_ns": '"end"', "device_id": "deviceId"}
OPTIONAL = {"context_id": "contextId", "stream_id": "streamId"}
SHAPE = {f"grid_{a}": f"grid{a.upper()}" for a in "xyz"}
SHAPE |= {f"block_{a}": f"block{a.upper()}" for a in "xyz"}
SHAPE |= {
    "registers_per_thread": "registersPerThread",
    "static_shared_bytes": "staticSharedMemory",
    "dynamic_shared_bytes": "dynamicSharedMemory",
}
GPU = {
    "device_id": "cuDevice",
    "sm_count": "smCount",
    "compute_major": "computeMajor",
    "compute_minor": "computeMinor",
    "max_blocks_per_sm": "maxBlocksPerSm",
    "max_warps_per_sm": "maxWarpsPerSm",
    "max_registers_per_sm": "maxRegistersPerSm",
    "max_shared_bytes_per_sm": "maxShmemPerSm",
}


class Reader:
    """Just enough of a database: columns by name, missing where the table lacks them."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)

    def columns(self, table: str) -> set[str]:
        return {row[1] for row in self.db.execute(f'pragma table_info("{table}")')}

    def read(self, table: str, wanted: dict[str, str]) -> dict[str, ColumnData]:
        have = self.columns(table)
        usable = {k: v for k, v in wanted.items() if v.strip('"') in have}
        usable |= {"process_id": "globalPid / 0x1000000 % 0x1000000"} if "globalPid" in have else {}
        if not usable:
            return {}
        rows = self.db.execute(f"select {', '.join(usable.values())} from {table}").fetchall()
        if not rows:
            return {}
        lacking = missing_value(np.dtype(np.int64))
        return {
            name: np.array([lacking if v is None else v for v in values], dtype=np.int64)
            for name, values in zip(usable, zip(*rows, strict=True), strict=True)
        }

    def texts(self, table: str, column: str, texts: dict[int, str]) -> Categorical:
        rows = self.db.execute(f"select {column} from {table}")
        return Categorical.of([texts[value] for (value,) in rows])


def read(path: Path) -> Trace:
    reader = Reader(path)
    try:
        return traced(reader)
    finally:
        reader.db.close()


def traced(reader: Reader) -> Trace:
    found: dict[str, Table] = {}
    columns = reader.read("CUPTI_ACTIVITY_KIND_KERNEL", IDS | OPTIONAL | SHAPE)
    if columns:
        texts = dict(reader.db.execute("select id, value from StringIds"))
        columns["name"] = reader.texts("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", texts)
        found["kernels"] = Table.make(schema.KERNELS, columns)
    copies = reader.read("CUPTI_ACTIVITY_KIND_MEMCPY", IDS | OPTIONAL)
    if copies:
        copies["kind"] = reader.texts("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind", KINDS)
    memsets = reader.read("CUPTI_ACTIVITY_KIND_MEMSET", IDS | OPTIONAL)
    if memsets:
        memsets["kind"] = Categorical.constant("memset", len(np.asarray(memsets["start_ns"])))
    both = [columns for columns in (copies, memsets) if columns]
    if both:
        found["copies"] = Table.make(schema.COPIES, concatenated(both))
    gpus = reader.read("TARGET_INFO_GPU", GPU)
    if "device_id" in gpus:
        rows = len(np.asarray(gpus["device_id"]))
        gpus["identifies"] = np.zeros(rows, dtype=np.bool_)
        found["devices"] = Table.make(schema.DEVICES, gpus)
    return trace(**found)


def concatenated(tables: list[dict[str, ColumnData]]) -> dict[str, ColumnData]:
    found: dict[str, ColumnData] = {}
    for name in tables[0]:
        parts = [table[name] for table in tables]
        texts = [part for part in parts if isinstance(part, Categorical)]
        if texts:
            found[name] = Categorical.of([c.categories[i] for c in texts for i in c.codes.tolist()])
        else:
            found[name] = np.concatenate([np.asarray(part) for part in parts])
    return found


def windows(found: Trace) -> list[Window]:
    """The whole trace, and cuts through its middle."""
    full = whole(found)
    third, tenth = full.duration_ns // 3, full.duration_ns // 10
    return [
        full,
        Window(full.start_ns + third, full.end_ns - third, "test"),
        Window(full.start_ns - tenth, full.start_ns + tenth, "test"),
        Window(full.end_ns - tenth + 1, full.end_ns + 7, "test"),
    ]


def classified(running: Counter[str]) -> str:
    compute, talk = running["compute"] > 0, running["talk"] > 0
    copy, memset = running["copy"] > 0, running["memset"] > 0
    if compute and talk:
        return "compute_and_communication"
    if compute:
        return "compute_and_copy" if copy or memset else "compute_only"
    if talk:
        return "communication_only"
    return "copy_only" if copy else "memset_only" if memset else "idle"


def slow_partition(events: list[tuple[int, int, str]], window: Window) -> dict[str, int]:
    """Step from one start or end to the next, and ask what runs there."""
    steps: list[tuple[int, str, int]] = [(window.start_ns, "", 0), (window.end_ns, "", 0)]
    for start, end, what in events:
        low, high = max(start, window.start_ns), min(end, window.end_ns)
        if low < high:
            steps += [(low, what, 1), (high, what, -1)]
    steps.sort()
    found: dict[str, int] = dict.fromkeys(PARTITION_CLASSES, 0)
    running: Counter[str] = Counter()
    for (t, what, change), (after, _, _) in pairwise(steps):
        running[what] += change
        found[classified(running)] += after - t
    return found


def events_of(found: Trace, device: int, process: int | None) -> list[tuple[int, int, str]]:
    names = found.kernels.categories("name")
    talks = is_communication(names)
    events = [
        (row[0], row[1], "talk" if talks[row[4]] else "compute")
        for row in rows_of(found.kernels, "name")
        if row[2] == device and row[3] == process
    ]
    kinds = found.copies.categories("kind")
    return events + [
        (row[0], row[1], "memset" if kinds[row[4]] == "memset" else "copy")
        for row in rows_of(found.copies, "kind")
        if row[2] == device and row[3] == process and kinds[row[4]] != "HtoH"
    ]


def rows_of(table: Table, code: str) -> list[tuple[Any, ...]]:
    columns = ("start_ns", "end_ns", "device_id", "process_id")
    plain = [table.values(name) for name in columns]
    return list(zip(*plain, table[code].tolist(), strict=True))


@each_trace
def test_partition(path: Path) -> None:
    found = read(path)
    for window in windows(found):
        time = measure(found, window)
        result = checks(time)
        assert bool(result["ok"].all()), result.records()
        for (process, device), account in zip(time.identity.lanes, time.lanes, strict=True):
            expected = slow_partition(events_of(found, device, process), window)
            assert dict(zip(PARTITION_CLASSES, account.partition, strict=True)) == expected


def _traces_with_gaps() -> list[Path]:
    """An empty list proves nothing: nsys prints one too where it could not run the rule."""
    listed = nsys_traces_with("rule_gpu_gaps")
    return [path for path in listed if oracle(path.stem, "rule_gpu_gaps")]


@each(_traces_with_gaps(), "path")
def test_gaps_are_those_of_the_vendor(path: Path) -> None:
    expected = [
        {column: int(row[column]) for column in ("Duration (ns)", "Start (ns)", "PID", "Device ID")}
        for row in oracle(path.stem, "rule_gpu_gaps")
    ]
    found = gaps(read(path), per="process")
    ours = [
        (row["duration_ns"], row["start_ns"], row["process_id"], row["device_id"])
        for row in found.records()
    ]
    theirs = [
        (row["Duration (ns)"], row["Start (ns)"], row["PID"], row["Device ID"]) for row in expected
    ]
    assert sorted(ours) == sorted(theirs)
    assert [row[0] for row in ours] == [row[0] for row in theirs]


@each_trace
def test_streams_and_fill_stay_in_bounds(path: Path) -> None:
    found = read(path)
    for window in windows(found):
        time = measure(found, window)
        table = devices(found, measured=time)
        fill = table["sm_fill"]
        assert bool(((fill > 0) & (fill <= 1) | np.isnan(fill)).all())
        concurrent = sum(table[f"concurrency.{n}_ns"] for n in ("one", "two", "three_or_more"))
        assert np.array_equal(concurrent, table["kernel_ns"])
        rows = streams(found, window).records()
        for (process, device), account in zip(time.identity.lanes, time.lanes, strict=True):
            mine = [r for r in rows if (r["process_id"], r["device_id"]) == (process, device)]
            busy = int((account.busy[1] - account.busy[0]).sum())
            assert sum(row["exclusive_ns"] for row in mine) <= busy
            assert max(row["busy_ns"] for row in mine) <= busy <= sum(r["busy_ns"] for r in mine)
