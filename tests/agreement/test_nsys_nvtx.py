"""NVTX attribution in strict mode agrees with `nsys stats`, and differs only where said."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np

import kernelscope as ks
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.enclosing import held_calls
from kernelscope.metrics.nesting import nesting
from kernelscope.metrics.ranges import range_instances, ranges_by_name
from kernelscope.trace import Categorical, Table, Trace
from tests.agreement.close import assert_close
from tests.corpus import each, nsys_traces_with, oracle

STYLES = {"push_pop": "PushPop", "start_end": "StartEnd"}


@lru_cache(maxsize=2)
def read(path: Path) -> Trace:
    return ks.read(path)


@lru_cache(maxsize=2)
def strict(path: Path) -> Attribution:
    return attribute(read(path), strict=True)


def full_names(ranges: Table) -> list[str]:
    """Return `domain:text` as nsys prints it; a domain that nobody named is not printed."""
    return [
        f"{domain}:{name}" if domain and not domain.startswith("domain ") else name or ""
        for domain, name in zip(ranges.texts("domain"), ranges.texts("name"), strict=True)
    ]


def assert_durations(durations: list[int], row: dict[str, str], prefix: str = "") -> None:
    columns = {
        "Avg (ns)": mean(durations),
        "Med (ns)": median(durations),
        "StdDev (ns)": stdev(durations) if len(durations) > 1 else 0.0,
    }
    for column, value in columns.items():
        assert_close(float(value), row[f"{prefix}{column}"], f"{row} {column}")
    assert min(durations) == int(row[f"{prefix}Min (ns)"])
    assert max(durations) == int(row[f"{prefix}Max (ns)"])


@each(nsys_traces_with("nvtx_sum"))
def test_ranges_on_the_host(trace_file: Path) -> None:
    """`nvtx_sum`, `nvtx_pushpop_sum`: the ranges themselves."""
    ranges = read(trace_file).ranges
    durations: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, style, time in zip(
        full_names(ranges),
        ranges.texts("style"),
        (ranges["end_ns"] - ranges["start_ns"]).tolist(),
        strict=True,
    ):
        durations[name, STYLES[style or ""]].append(time)
    printed = oracle(trace_file.stem, "nvtx_sum")
    assert len(printed) == len(durations)
    for row in printed:
        mine = durations[row["Range"], row["Style"]]
        assert (len(mine), sum(mine)) == (int(row["Instances"]), int(row["Total Time (ns)"]))
        assert_durations(mine, row)
    pushed = [row for row in printed if row["Style"] == "PushPop"]
    for row, other in zip(pushed, oracle(trace_file.stem, "nvtx_pushpop_sum"), strict=True):
        assert {key: row[key] for key in other if key != "Time (%)"} == {
            key: other[key] for key in other if key != "Time (%)"
        }


def range_ids(path: Path) -> list[int]:
    """Return nsys's id of each of our ranges: the row of the export's table."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        query = "SELECT rowid FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71) ORDER BY rowid"
        ids = [row[0] for row in database.execute(query)]
    assert len(ids) == len(read(path).ranges)
    return ids


def across_domains(ranges: Table) -> Table:
    """Return the ranges as if they were of one domain, as nsys nests them."""
    one = Categorical.constant("", len(ranges))
    return Table(ranges.schema, dict(ranges.columns) | {"domain": one})


def twins(ranges: Table) -> set[int]:
    """Return the rows of ranges that share thread, start and end with another.

    nsys makes each the other's parent, and leaves both and all inside them out of
    `nvtx_pushpop_trace`; we keep them, and say so (`nvtx_same_bounds`).
    """
    keys = list(
        zip(*(ranges[key].tolist() for key in ("thread_id", "start_ns", "end_ns")), strict=True)
    )
    shared = Counter(keys)
    return {row for row, key in enumerate(keys) if shared[key] > 1}


def ancestors(row: int, parent: list[int]) -> Iterator[int]:
    while row >= 0:
        yield row
        row = parent[row]


@each(nsys_traces_with("nvtx_pushpop_trace"))
def test_nesting(trace_file: Path) -> None:
    """`nvtx_pushpop_trace`: levels, parents, children, and the whole stack of each range."""
    ranges, ids = read(trace_file).ranges, range_ids(trace_file)
    nest = nesting(across_domains(ranges))
    assert not nest.crossing.any()
    parent, depth = nest.parent.tolist(), nest.depth.tolist()
    children = Counter(parent)
    time = (ranges["end_ns"] - ranges["start_ns"]).tolist()
    inside: Counter[int] = Counter()
    for row, outer in enumerate(parent):
        inside[outer] += time[row]
    assert not twins(ranges)  # nsys loses those, but no recorded trace has any
    printed = {int(row["RangeId"]): row for row in oracle(trace_file.stem, "nvtx_pushpop_trace")}
    names = full_names(ranges)
    assert len(printed) == len(ids)
    for row, identity in enumerate(ids):
        theirs = printed[identity]
        assert theirs["Name"] == names[row]
        assert int(theirs["Lvl"]) == depth[row]
        assert theirs["ParentId"] == (str(ids[parent[row]]) if parent[row] >= 0 else "")
        assert int(theirs["NumChild"]) == children[row]
        assert int(theirs["DurChild (ns)"]) == inside[row]
        stack = [ids[each] for each in ancestors(row, parent)][::-1]
        assert theirs["RangeStack"] == "".join(f":{each}" for each in stack)


def ranges_of_calls(attribution: Attribution) -> dict[int, list[int]]:
    """Return, by number of launching call, the rows of all ranges that hold the whole call."""
    around = attribution.enclosed
    rows = np.flatnonzero(around.nesting.on_stack).astype(np.int32)
    found: dict[int, list[int]] = defaultdict(list)
    stacked = held_calls(around.trace.ranges, rows, around.calls, strict=True, process_ranges=False)
    for ranges, slices in (*around.held, *stacked):
        which, calls = slices.pairs()
        for row, call in zip(ranges[which].tolist(), calls.tolist(), strict=True):
            found[call].append(row)
    return found


Pairs = list[tuple[int, int]]


def kernels_by_range(trace_file: Path) -> dict[tuple[str, ...], Pairs]:
    """Return (range row, kernel row) by the columns that `nvtx_kern_sum` groups by.

    A kernel whose launch no range holds stands under an empty range, with row −1.
    """
    trace, mine = read(trace_file), strict(trace_file).kernels
    names, styles = full_names(trace.ranges), trace.ranges.texts("style")
    kernels, holding = trace.kernels.texts("name"), ranges_of_calls(strict(trace_file))
    threads = trace.api_calls["thread_id"].tolist()
    processes = trace.api_calls["process_id"].tolist()
    groups: dict[tuple[str, ...], Pairs] = defaultdict(list)
    for kernel, (call, launch) in enumerate(
        zip(mine.call.tolist(), mine.launch.tolist(), strict=True)
    ):
        where = (str(processes[launch]), str(threads[launch])) if launch >= 0 else ("", "")
        name = kernels[kernel] or ""
        rows = holding.get(call, []) if call >= 0 else []
        for row in rows:
            groups[names[row], STYLES[styles[row] or ""], *where, name].append((row, kernel))
        if not rows:
            groups["", "", *where, name].append((-1, kernel))
    return groups


KERNEL_KEY = ("NVTX Range", "Style", "PID", "TID", "Kernel Name")


@each(nsys_traces_with("nvtx_kern_sum"))
def test_kernels_of_ranges(trace_file: Path) -> None:
    """`nvtx_kern_sum`: kernels in every range that holds their launch.

    nsys adds a kernel's time once per range of the row that holds it, and per API row of its
    launch, wrappers included; `Kern Inst` counts the kernel once.
    """
    kernels = read(trace_file).kernels
    time = (kernels["end_ns"] - kernels["start_ns"]).tolist()
    groups, rows_of_launch = kernels_by_range(trace_file), api_rows_of_launches(trace_file)
    printed = oracle(trace_file.stem, "nvtx_kern_sum")
    assert len(printed) == len(groups)
    counted_twice = False
    for row in printed:
        pairs = groups[tuple(row[column] for column in KERNEL_KEY)]
        distinct = {kernel for _, kernel in pairs}
        assert int(row["NVTX Inst"]) == len({each for each, _ in pairs if each >= 0})
        assert int(row["Kern Inst"]) == len(distinct)
        durations = [time[kernel] for _, kernel in pairs for _ in range(rows_of_launch[kernel])]
        assert int(row["Total Time (ns)"]) == sum(durations)
        assert_durations(durations, row)
        counted_twice |= len(durations) > len(distinct)
    assert counted_twice == (trace_file.stem in COUNTED_TWICE)
    without_launch = [row for row in printed if not row["PID"]]
    assert sum(int(row["Kern Inst"]) for row in without_launch) == int(
        (strict(trace_file).kernels.call < 0).sum()
    )
    assert all(not row["NVTX Range"] for row in without_launch)


COUNTED_TWICE = {
    "2022.1.3_dlprof_modified_kernelcols_RTX2070S",  # nested ranges of one name
    "2022.2.1_A100_saxpy_mpi_callchains",  # each launch stands twice: call and wrapper
}
"""Traces in which `Total Time` of `nvtx_kern_sum` exceeds the kernels' own."""


def api_rows_of_launches(trace_file: Path) -> list[int]:
    """Return how many API rows, wrappers included, each kernel's launch has; at least one."""
    trace = read(trace_file)
    rows = Counter(identities(trace.api_calls))
    return [max(rows[key], 1) for key in identities(trace.kernels)]


def identities(events: Table) -> list[tuple[int, int]]:
    return list(zip(events["process_id"].tolist(), events["correlation_id"].tolist(), strict=True))


@each(nsys_traces_with("nvtx_kern_sum"))
def test_a_kernel_counts_once_in_a_name(trace_file: Path) -> None:
    """`ranges_by_name` has the distinct kernels of all rows of a name, each once."""
    trace = read(trace_file)
    time = (trace.kernels["end_ns"] - trace.kernels["start_ns"]).tolist()
    distinct: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for (name, style, process, *_), pairs in kernels_by_range(trace_file).items():
        if name:
            distinct[name, style, process].update(kernel for _, kernel in pairs)
    table = ranges_by_name(trace, attribution=strict(trace_file))
    names = full_names(table)
    for name, row in zip(names, table.records(), strict=True):
        kernels = distinct.pop((name, STYLES[row["style"]], str(row["process_id"])), set())
        assert row["kernels"] == len(kernels)
        assert row["kernel_ns"] == sum(time[kernel] for kernel in kernels)
    assert not distinct


@each(nsys_traces_with("nvtx_gpu_proj_trace"))
def test_projections(trace_file: Path) -> None:
    """`nvtx_gpu_proj_trace`: what each range put on the device, and when.

    A graph launch is one operation there, as in our `launches`; the row without a name holds
    all work that no range holds.
    """
    trace, ids = read(trace_file), range_ids(trace_file)
    instances = range_instances(trace, attribution=strict(trace_file)).records()
    nest = nesting(across_domains(trace.ranges))
    parent = nest.parent.tolist()
    names = full_names(trace.ranges)
    printed = oracle(trace_file.stem, "nvtx_gpu_proj_trace")
    phantom = [row for row in printed if not row["RangeId"]]
    theirs = {int(row["RangeId"]): row for row in printed if row["RangeId"]}
    assert len(theirs) + len(phantom) == len(printed)
    children = Counter(
        outer for outer, mine in zip(parent, instances, strict=True) if mine["launches"]
    )
    for row, (identity, mine) in enumerate(zip(ids, instances, strict=True)):
        if not mine["launches"]:
            assert identity not in theirs
            continue
        other = theirs.pop(identity)
        start, end = mine["projected_start_ns"], mine["projected_end_ns"]
        assert other["Name"] == names[row]
        assert int(other["Projected Start (ns)"]) == start
        assert int(other["Projected Duration (ns)"]) == end - start
        assert int(other["Orig Start (ns)"]) == mine["start_ns"]
        assert int(other["NumGPUOps"]) == mine["launches"]
        assert int(other["Lvl"]) == nest.depth[row]
        assert int(other["NumChild"]) == children[row]
        assert other["ParentId"] == (str(ids[parent[row]]) if parent[row] >= 0 else "")
    assert not theirs
    assert_phantom(trace_file, phantom)


def assert_phantom(trace_file: Path, phantom: list[dict[str, str]]) -> None:
    """All work that was launched, but in no range, stands in one row without a name."""
    trace, attribution = read(trace_file), strict(trace_file)
    outside = ~attribution.enclosed.ranged
    if not outside.any():
        assert not phantom
        return
    starts: list[int] = []
    ends: list[int] = []
    for work, call in (
        (trace.kernels, attribution.kernels.call),
        (trace.copies, attribution.copies.call),
    ):
        mine = (call >= 0) & outside[call]
        starts += work["start_ns"][mine].tolist()
        ends += work["end_ns"][mine].tolist()
    (row,) = phantom
    assert int(row["NumGPUOps"]) == int(outside.sum())
    assert int(row["Projected Start (ns)"]) == min(starts)
    assert int(row["Projected Duration (ns)"]) == max(ends) - min(starts)


@each(nsys_traces_with("nvtx_gpu_proj_sum"))
def test_projections_by_name(trace_file: Path) -> None:
    """`nvtx_gpu_proj_sum`: instances without device work are left out."""
    trace = read(trace_file)
    names = full_names(trace.ranges)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for place, mine in enumerate(range_instances(trace, attribution=strict(trace_file)).records()):
        if mine["launches"]:
            groups[names[place], STYLES[mine["style"]]].append(mine)
    printed = oracle(trace_file.stem, "nvtx_gpu_proj_sum")
    assert len(printed) == len(groups)
    for row in printed:
        some = groups[row["Range"], row["Style"]]
        projected = [each["projected_end_ns"] - each["projected_start_ns"] for each in some]
        assert int(row["Range Instances"]) == len(some)
        assert int(row["Total Proj Time (ns)"]) == sum(projected)
        assert int(row["Total Range Time (ns)"]) == sum(
            each["end_ns"] - each["start_ns"] for each in some
        )
        assert int(row["Total GPU Ops"]) == sum(each["launches"] for each in some)
        assert_durations(projected, row, "Proj ")


@each(nsys_traces_with("cuda_gpu_kern_sum_nvtx-name"))
def test_innermost_range_of_kernels(trace_file: Path) -> None:
    """`cuda_gpu_kern_sum:nvtx-name`: the latest of the ranges that hold the launch."""
    trace, attribution = read(trace_file), strict(trace_file)
    start = trace.ranges["start_ns"]
    latest = np.full(len(attribution.enclosed.calls) + 1, -1)
    for rows in attribution.enclosed.innermost.values():
        better = (rows >= 0) & ((latest[:-1] < 0) | (start[rows] > start[latest[:-1]]))
        latest[:-1][better] = rows[better]
    for call, holders in ranges_of_calls(attribution).items():
        assert start[latest[call]] == max(start[holder] for holder in holders)
    names, kernels = trace.ranges.texts("name"), trace.kernels.texts("name")
    groups: dict[str, list[int]] = defaultdict(list)
    time = (trace.kernels["end_ns"] - trace.kernels["start_ns"]).tolist()
    for kernel, row in enumerate(latest[attribution.kernels.call].tolist()):
        name = kernels[kernel] or ""
        groups[f"{names[row]}/{name}" if row >= 0 else name].append(time[kernel])
    printed = oracle(trace_file.stem, "cuda_gpu_kern_sum_nvtx-name")
    assert len(printed) == len(groups)
    for row in printed:
        durations = groups[row["Name"]]
        assert int(row["Instances"]) == len(durations)
        assert int(row["Total Time (ns)"]) == sum(durations)
        assert_durations(durations, row)
