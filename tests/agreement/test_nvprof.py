"""Every timing and metric value of the corpus's databases agrees with what nvprof 11.8 prints.

nvprof's demangler is older, and wrong in places (``at::cuda::detail<unsigned char, float>``), so
that names are compared without template arguments and parameters, and by all the figures beside
them. It divides averages as integers.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.copies import copies_by_kind
from kernelscope.metrics.kernel_names import function_name
from kernelscope.metrics.kernels import kernels
from kernelscope.trace import Trace
from tests.corpus import each, needs_corpus, nvprof_oracle, nvprof_traces

TIMELINES = [
    path for path in nvprof_traces() if "timeline" in path.name or path.name[:4] in ("V100", "nccl")
]
METRIC_RUNS = [path for path in nvprof_traces() if re.match("GTX|TITANV.*analysis", path.name)]

BINARY = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


@dataclass
class Printed:
    """One table of a report: what stands above it, its columns, their units, its rows."""

    title: str
    header: list[str]
    units: list[str]
    rows: list[list[str]]


def printed(stem: str, report: str) -> list[Printed]:
    found: list[Printed] = []
    titles: dict[int, str] = {}
    for line in nvprof_oracle(stem, report):
        text = ",".join(line)
        if text.startswith("========"):
            text = text.removeprefix("========")
            depth = len(text) - len(text.lstrip())
            titles = {d: t for d, t in titles.items() if d < depth} | {depth: text.strip()}
            if "PC SAMPLING" in text:
                break  # source-level results follow
        elif line and line[0] in ("Type", "Start", "Device"):
            found.append(Printed(" / ".join(titles.values()), line, [], []))
        elif line and len(line) == len(found[-1].header):
            bare_units = not found[-1].rows and line[0] in ("", "ns")
            if bare_units:
                found[-1].units.extend(line)
            else:
                found[-1].rows.append(line)
    return found


def bare(name: str) -> str:
    return name if name.startswith("[CUDA") else function_name(name)


def without_revision(call: str) -> str:
    return re.sub(r"_v\d+$", "", call)


def summed(rows: list[dict[str, Any]], name: str) -> tuple[Any, ...]:
    [counter] = {"executions", "operations", "calls"} & set(rows[0])
    calls = sum(row[counter] for row in rows)
    total = sum(row["total_ns"] for row in rows)
    return (
        name, calls, total, total // calls, min(row["min_ns"] for row in rows),
        max(row["max_ns"] for row in rows),
    )  # fmt: skip


def only(stem: str, report: str, title: str) -> tuple[list[str], list[str], list[list[str]]]:
    [table] = [each for each in printed(stem, report) if each.title == title]
    return table.header, table.units, table.rows


def printed_summary(stem: str, report: str, kind: str) -> Counter[tuple[Any, ...]]:
    header, units, rows = only(stem, report, "Profiling result:")
    assert header == ["Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]
    assert [units[i] for i in (2, 4, 5, 6)] == ["ns"] * 4
    return Counter(
        (bare(row[7]), *(int(float(cell)) for cell in (row[3], row[2], *row[4:7])))
        for row in rows
        if row[0] == kind
    )


def our_activities(trace: Trace) -> Counter[tuple[Any, ...]]:
    found = [summed([row], bare(row["name"])) for row in kernels(trace).records()]
    for row in copies_by_kind(trace).records():
        label = "[CUDA memset]" if row["kind"] == "memset" else f"[CUDA memcpy {row['kind']}]"
        found.append(summed([row], label))
    return Counter(found)


def our_calls(trace: Trace) -> Counter[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in api_calls(trace).records():
        groups[without_revision(row["name"])].append(row)
    return Counter(summed(rows, name) for name, rows in groups.items())


@pytest.mark.parametrize("report", ["summary", "print-gpu-summary"])
@each(TIMELINES)
def test_gpu_activities_agree(trace_file: Path, report: str) -> None:
    expected = printed_summary(trace_file.stem, report, "GPU activities")
    assert our_activities(ks.read(trace_file)) == expected
    assert expected


@pytest.mark.parametrize("report", ["summary", "print-api-summary"])
@each(TIMELINES)
def test_api_calls_agree(trace_file: Path, report: str) -> None:
    expected = printed_summary(trace_file.stem, report, "API calls")
    assert our_calls(ks.read(trace_file)) == expected
    assert expected


@each(TIMELINES)
def test_every_api_call_agrees(trace_file: Path) -> None:
    header, units, rows = only(trace_file.stem, "print-api-trace", "Profiling result:")
    assert (header[:3], units[:2]) == (["Start", "Duration", "Name"], ["ns", "ns"])
    trace = ks.read(trace_file)
    calls = trace.api_calls
    first = min(int(table["start_ns"].min()) for table in (calls, trace.ranges) if len(table))
    ours = Counter(
        (
            row["start_ns"] - first, row["end_ns"] - row["start_ns"],
            without_revision(row["name"]), row["correlation_id"],
        )
        for row in calls.records()
    )  # fmt: skip
    assert ours == Counter(
        (int(float(start)), int(float(length)), name, int(correlation))
        for start, length, name, correlation in rows
        if length
    )
    markers = Counter((int(float(row[0])), row[2]) for row in rows if not row[1])
    assert markers == Counter(
        (time - first, f"[Range {what}] {row['name']} (Domain: {row['domain'] or '<unnamed>'})")
        for row in trace.ranges.records()
        for what, time in (("start", row["start_ns"]), ("end", row["end_ns"]))
    )


TOLD_APART = 256
"""nvprof takes ranges that begin with the same so many characters for one."""


@needs_corpus
def test_ranges_and_the_work_in_them_agree() -> None:
    [path] = [path for path in TIMELINES if path.name.startswith("V100")]
    trace = ks.read(path)
    host: Counter[tuple[Any, ...]] = Counter()
    work: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for table in printed(path.stem, "summary"):
        if not table.title.startswith("NVTX result: /"):
            continue
        name = table.title.split("Range ", 1)[1].strip('"')
        for row in table.rows:
            figures = [int(float(cell)) for cell in (row[3], row[2], *row[4:7])]
            if row[0] == "Range:":
                thread = re.search(r"id = (\d+)", table.title)
                assert thread is not None
                host[int(thread[1]), name[:TOLD_APART], *figures] += 1
            elif row[0] == "GPU activities" and not row[7].startswith("[CUDA"):
                work[name][0] += figures[0]
                work[name][1] += figures[1]
    groups = defaultdict(list)
    for each_range in trace.ranges.records():
        length = each_range["end_ns"] - each_range["start_ns"]
        groups[each_range["thread_id"], each_range["name"][:TOLD_APART]].append(
            {"calls": 1, "total_ns": length, "min_ns": length, "max_ns": length}
        )
    assert host == Counter((t, *summed(rows, name)) for (t, name), rows in groups.items())
    ours = {
        row["name"]: [row["kernels"], row["kernel_ns"]]
        for row in ks.analyze(trace).ranges_by_name.records()
        if len(row["name"]) < TOLD_APART
    }
    assert ours == {name: work[name] for name in ours}
    assert sum(kernels for kernels, _ in ours.values()) > 100


def shown(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value / BINARY[unit]:.6f}"


@each(TIMELINES)
def test_every_activity_agrees(trace_file: Path) -> None:
    header, units, rows = only(trace_file.stem, "print-gpu-trace", "Profiling result:")
    unit = dict(zip(header, units, strict=True))
    trace = ks.read(trace_file)
    tables_ = (trace.kernels, trace.copies)
    first = min(int(table["start_ns"].min()) for table in tables_ if len(table))
    names = {row["device_id"]: row["name"] for row in trace.devices.records()}
    expected = Counter(tuple(_comparable(dict(zip(header, r, strict=True)))) for r in rows)

    def common(row: dict[str, Any]) -> tuple[Any, ...]:
        device = f"{names[row['device_id']]} ({row['device_id']})"
        return (
            row["start_ns"] - first, row["end_ns"] - row["start_ns"], device,
            str(row["context_id"]), str(row["stream_id"]), row["correlation_id"],
        )  # fmt: skip

    ours: Counter[tuple[Any, ...]] = Counter()
    for row in trace.kernels.records():
        shape = (str(row[f"{part}_{axis}"]) for part in ("grid", "block") for axis in "xyz")
        memory = (
            shown(row["static_shared_bytes"], unit["Static SMem"]),
            shown(row["dynamic_shared_bytes"], unit["Dynamic SMem"]),
        )
        registers = str(row["registers_per_thread"])
        ours[(*common(row), bare(row["name"]), *shape, registers, *memory, "", "", "")] += 1
    for row in trace.copies.records():
        kind = "memset" if row["kind"] == "memset" else f"memcpy {row['kind']}"
        ends = [row["src_memory"], row["dst_memory"]]
        if kind == "memset":  # nvprof prints the memory that is set as the source
            ends.reverse()
        memories = ("" if end is None else end.capitalize() for end in ends)
        size = shown(row["bytes"], unit["Size"])
        ours[(*common(row), f"[CUDA {kind}]", *[""] * 9, size, *memories)] += 1
    assert ours == expected


def _comparable(row: dict[str, str]) -> list[Any]:
    launch = [f"{part} {axis}" for part in ("Grid", "Block") for axis in "XYZ"]
    launch += ["Registers Per Thread", "Static SMem", "Dynamic SMem"]
    return [
        int(float(row["Start"])), int(float(row["Duration"])), row["Device"], row["Context"],
        row["Stream"], int(row["Correlation_ID"]), bare(row["Name"]),
        *(row[name] if row[name] == "" or "SMem" not in name else f"{float(row[name]):.6f}"
          for name in launch),
        "" if row["Size"] == "" else f"{float(row['Size']):.6f}",
        row["SrcMemType"], row["DstMemType"],
    ]  # fmt: skip


def as_printed(row: dict[str, Any], unit: str) -> str:
    """A counter as nvprof prints it, in the unit of its column."""
    if row["unit"] == "level":
        level = row["value_int"]
        words = ["Idle", "Low", "Low", "Low", "Mid", "Mid", "Mid", "High", "High", "High", "Max"]
        return f"{words[level]} ({level})"
    if unit.endswith("B/s"):
        return f"{row['value'] / BINARY[unit.removesuffix('/s')]:.6f}"
    if row["value_int"] is not None:
        return str(row["value_int"])
    return f"{row['value'] * (100 if unit == '%' else 1):.6f}"


@each(METRIC_RUNS)
def test_every_metric_value_agrees(trace_file: Path) -> None:
    header, units, rows = only(trace_file.stem, "print-gpu-trace", "Profiling result:")
    unit = dict(zip(header, units, strict=True))
    counters = ks.read(trace_file).counters
    ours: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in counters.records():
        metric = row["metric"] + ("" if row["instance"] is None else f" ({row['instance']})")
        ours[row["correlation_id"], metric] = row
    compared = 0
    for line in rows:
        cells = dict(zip(header, line, strict=True))
        for metric in header[5:]:
            row = ours[int(cells["Correlation_ID"]), metric]
            assert as_printed(row, unit[metric]) == cells[metric], (metric, row)
            assert row["problem"] is None
            assert (bare(cells["Kernel"]), cells["Context"], cells["Stream"]) == (
                bare(row["kernel_name"]), str(row["context_id"]), str(row["stream_id"]),
            )  # fmt: skip
            assert (unit[metric] == "%") == (row["unit"] == "ratio")
            compared += 1
    assert compared == len(counters) == len(ours)


@each(METRIC_RUNS)
def test_summaries_of_metrics_agree(trace_file: Path) -> None:
    header, _, rows = only(trace_file.stem, "summary", "Metric result:")
    assert header[-3:] == ["Min", "Max", "Avg"]
    groups = defaultdict(list)
    for row in ks.read(trace_file).counters.records():
        if row["instance"] is None:
            groups[bare(row["kernel_name"]), row["metric"]].append(row)
    compared = 0
    for _, kernel, invocations, metric, _, least, most, _ in rows:
        if "instances" in metric:
            continue
        ours = groups[bare(kernel), metric]
        assert len(ours) == int(invocations)
        low, high = (end(ours, key=lambda row: row["value"]) for end in (min, max))
        for row, cell in ((low, least), (high, most)):
            number, unit = re.fullmatch(r"([\d.]+|\w+ \(\d+\))(.*)", cell).groups()  # type: ignore[union-attr]
            assert as_printed(row, unit) == number, (metric, row)
        compared += 1
    assert compared == len(groups)


@needs_corpus
def test_a_fermi_gpu_has_numbered_metrics() -> None:
    [path] = [path for path in nvprof_traces() if path.name.startswith("GT520M")]
    trace = ks.read(path)
    rows = trace.counters.records()

    assert len(rows) == 648
    assert all(row["metric"] == f"metric {row['metric_id']}" for row in rows)
    assert all(row["unit"] is None for row in rows)
    # Nothing says of which kind these are; all their values together do.
    assert all(row["problem"] is None for row in rows)
    first = next(r for r in rows if r["metric_id"] == 109)
    [value] = struct.unpack("<d", bytes.fromhex("59a8252376215840"))  # as it stands in the file
    assert (first["instance"], first["value"]) == (0, value)
    assert trace.kernels.texts("name")[0] == "paso_e_cholesky(double*, double*, unsigned long)"
    assert trace.devices.records()[0]["memory_bytes_per_s"] == 12_800_000_000


@each([*METRIC_RUNS])
def test_the_kinds_of_known_metrics_are_those_that_their_values_tell(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ks.read(trace_file).counters
    monkeypatch.setattr("kernelscope.parsers.nvprof_counters.metrics_of", lambda _: {})
    told = ks.read(trace_file).counters

    # Nothing but its name tells that a double is a percentage, which is a hundred times a ratio.
    times = {unit: 100 if unit == "ratio" else 1 for unit in known.categories("unit")}
    assert told.values("value") == pytest.approx(
        [row["value"] * times[row["unit"]] for row in known.records()], rel=1e-15
    )
    assert set(told.texts("problem")) == {None}
