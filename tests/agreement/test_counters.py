"""Counters agree with what the vendors' tools, and other people's studies, print of them.

Units are turned in these tests by tables of their own, and texts read by `csv` and `float`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope.parsers.counter_set import SHAPE
from tests.agreement.test_nvprof import METRIC_RUNS, bare
from tests.corpus import (
    CORPUS,
    counter_files,
    each,
    needs_corpus,
    opened,
    oracle_folder,
)  # fmt: skip

TO_CANONICAL: dict[str, tuple[str | None, float]] = {
    "": (None, 1), "%": ("ratio", 0.01), "usecond": ("ns", 1e3), "msecond": ("ns", 1e6),
    "ns": ("ns", 1), "byte": ("bytes", 1), "Kbyte": ("bytes", 1e3), "Mbyte": ("bytes", 1e6),
    "Gbyte": ("bytes", 1e9), "byte/block": ("bytes/block", 1), "Kbyte/block": ("bytes/block", 1e3),
    "byte/second": ("bytes/s", 1), "byte/s": ("bytes/s", 1), "Mbyte/second": ("bytes/s", 1e6),
    "Gbyte/second": ("bytes/s", 1e9), "Tbyte/second": ("bytes/s", 1e12), "hz": ("Hz", 1),
    "cycle/nsecond": ("Hz", 1e9), "cycle/usecond": ("Hz", 1e6), "sector/second": ("1/s", 1),
    "cycle/s": ("Hz", 1), "sector/s": ("1/s", 1), "nsecond": ("ns", 1), "cycle/second": ("Hz", 1),
    "sector/nsecond": ("1/s", 1e9), "inst/cycle": ("1/cycle", 1),
    "register/thread": ("1/thread", 1), "%/": ("ratio", 0.01),
    "%/register": ("ratio/register", 0.01), "%/byte": ("ratio/byte", 0.01),
    "%/Kbyte": ("ratio/byte", 10),  # scaled by ncu as if the bytes stood above the line
    **dict.fromkeys(
        ("block", "cycle", "cluster", "inst", "pass", "request", "sample", "sector", "SM", "thread",
         "warp"),
        ("count", 1),
    ),
}  # fmt: skip
"""What ncu prints → our unit, and how many of it that is."""

STUDIES = oracle_folder("nersc-dl-profiling")
NCU_ORACLES = oracle_folder("ncu")


def reports() -> list[Path]:
    return counter_files("ncu", ".ncu-rep")


def ncu_oracle(report: Path, what: str) -> Path:
    [path] = [p for p in NCU_ORACLES.iterdir() if p.name.startswith(f"{report.stem}.{what}")]
    return path


def by_metric(counted: ks.CounterSet) -> dict[tuple[int, str], dict[str, Any]]:
    rows = counted.counters.records()
    found = {(row["execution"], row["metric"]): row for row in rows}
    assert len(found) == len(rows)
    return found


@each(reports())
def test_reports_hold_what_ncu_report_says(trace_file: Path) -> None:
    counted = ks.read_counters(trace_file)
    ours = by_metric(counted)
    actions = json.loads(opened(ncu_oracle(trace_file, "ncu_report.json")))
    executions = counted.executions.records()

    compared = 0
    assert [row["kernel_name"] for row in executions] == [action["name"] for action in actions]
    for number, action in enumerate(actions):
        for metric, (value, unit) in action["metrics"].items():
            row = ours[number, metric]
            compared += 1
            if isinstance(value, str):
                assert (row["value_text"], row["value"]) == (value, None)
            elif value is None:
                assert (row["problem"], row["value"]) == ("no_value", None)
            else:
                name, times = TO_CANONICAL[unit]
                assert row["unit"] == name, (metric, unit)
                assert row["value"] == pytest.approx(value * times, rel=1e-14), metric
                assert row["rounding"] == 0
                if isinstance(value, int) and unit != "%":
                    assert row["value_int"] == value * times
    assert compared == len(ours)


@each(reports())
def test_texts_of_a_report_hold_what_it_holds_to_the_last_printed_digit(trace_file: Path) -> None:
    exact = by_metric(ks.read_counters(trace_file))
    printed = by_metric(ks.read_counters(ncu_oracle(trace_file, "raw.csv")))

    # What is called "breakdown:" or "regex:" lists other metrics, and is printed nowhere.
    exact = {key: row for key, row in exact.items() if ":" not in key[1]}
    assert set(exact) - set(printed) == set()
    assert all(metric.startswith("nvlink__") for _, metric in set(printed) - set(exact))
    compared = 0
    for key, row in exact.items():
        other = printed[key]
        for column in ("kernel_name", "process_id", "device_id", "context_id", "stream_id", *SHAPE):
            assert row[column] == other[column], (key, column)
        if row["value"] is None or other["value"] is None:
            # What a text writes as "no data" or not at all, the package leaves out.
            assert (row["value"], other["value"]) == (None, None), key
            continue
        compared += 1
        # The package leaves out what is counted where a text says "request" or "sector".
        # The package leaves out what is counted where a text says "request", or the reverse.
        assert other["unit"] == row["unit"] or {row["unit"], other["unit"]} == {None, "count"}, key
        # Numbers of 17 digits that were printed with 6 decimals carry the error of a double, too.
        close = other["rounding"] * 1.0001 + abs(row["value"]) * 1e-15
        value = max(row["value"], 0) if other["value"] == 0 else row["value"]  # −7e-6 %
        assert abs(other["value"] - value) <= close, (key, row["value"], other)
    assert compared > 0.5 * len(exact)


def csv_files() -> list[Path]:
    oracles = sorted(NCU_ORACLES.iterdir()) if CORPUS else []
    small = oracle_folder("instruction-roofline") / "multi_kernels"
    published = sorted(small.glob("*.csv")) if CORPUS else []
    texts = [path for path in oracles if ".csv" in path.name]
    return [*texts, *counter_files("ncu", ".csv"), *published]


def expected_values(path: Path) -> list[tuple[Any, ...]]:
    """(execution or None, metric, unit as printed, number as printed), one cell after the other."""
    rows = list(csv.reader(io.StringIO(opened(path))))
    header = rows[0]
    if "Metric Name" not in header:
        first = header.index("CC") + 1
        return [
            (int(row[0]), header[i], rows[1][i], row[i])
            for row in rows[2:]
            for i in range(first, len(header))
        ]
    found = []
    for row in rows[1:]:
        cells = dict(zip(header, row, strict=False))
        if cells["Metric Name"]:
            number = int(cells["ID"]) if "ID" in cells else None
            found += [
                (number, cells["Metric Name"], cells["Metric Unit"], cells[column])
                for column in ("Metric Value", "Minimum", "Maximum", "Average")
                if column in cells
            ]
    return found


@each(csv_files())
def test_texts_of_ncu_are_read_cell_by_cell(trace_file: Path) -> None:
    ours = ks.read_counters(trace_file).counters.records()
    theirs = expected_values(trace_file)

    numbers = 0
    assert len(ours) == len(theirs)
    for row, (execution, metric, unit, cell) in zip(ours, theirs, strict=True):
        assert (row["execution"], row["metric"]) == (execution, metric)
        try:
            value = float(cell.replace(",", ""))
        except ValueError:
            assert row["value"] is None
            assert row["value_text"] == (None if cell in ("", "no data", "n/a") else cell)
            continue
        name, times = TO_CANONICAL[unit]
        assert row["unit"] == name
        assert row["value"] == pytest.approx(value * times, rel=1e-14)
        assert (row["unit_recorded"] or "") == unit
        numbers += 1
    assert numbers > 0.5 * len(ours)


def test_a_label_of_two_sections_stays_two_counters() -> None:
    if CORPUS is None:
        pytest.skip(f"no corpus: {NCU_ORACLES}")
    [path] = [p for p in NCU_ORACLES.iterdir() if p.name.startswith("ncu2024.3.2_hpc_H100.details")]
    rows = ks.read_counters(path).by_kernel().records()
    throughputs = {
        (row["section"], row["unit"]) for row in rows if row["metric"] == "Memory Throughput"
    }
    assert throughputs == {
        ("GPU Speed Of Light Throughput", "ratio"), ("Memory Workload Analysis", "bytes/s"),
    }  # fmt: skip


def printed_by_nvprof(trace_file: Path, report: str) -> ks.CounterSet:
    texts = [
        oracle_folder("nvprof") / f"{trace_file.stem}.{report}.csv{end}" for end in ("", ".gz")
    ]
    [text] = [path for path in texts if path.is_file()]
    return ks.read_counters(text)


@each(METRIC_RUNS)
def test_a_text_of_nvprof_holds_what_the_database_holds(trace_file: Path) -> None:
    stored, printed = ks.read_counters(trace_file), printed_by_nvprof(trace_file, "print-gpu-trace")
    key = ("correlation_id", "metric", "instance")
    exact = {tuple(row[name] for name in key): row for row in stored.counters.records()}
    rows = {tuple(row[name] for name in key): row for row in printed.counters.records()}

    assert rows.keys() == exact.keys()
    assert len(rows) == len(printed.counters)
    for name, row in rows.items():
        same(row, exact[name])
        for column in ("context_id", "stream_id", "device_id"):
            assert row[column] == exact[name][column]


def same(printed: dict[str, Any], exact: dict[str, Any]) -> None:
    assert printed["unit"] == exact["unit"], printed
    allowed = printed["rounding"] * 1.0001 + abs(exact["value"]) * 1e-12
    assert abs(printed["value"] - exact["value"]) <= allowed, (printed, exact)
    if printed["value_int"] is not None:
        assert printed["value_int"] == exact["value_int"]


@each(METRIC_RUNS)
def test_a_summary_of_nvprof_is_what_the_database_makes(trace_file: Path) -> None:
    def by_name(counted: ks.CounterSet) -> dict[tuple[str, str], dict[str, Any]]:
        rows = counted.by_kernel().records()
        found = {(bare(row["kernel_name"]), row["metric"]): row for row in rows}
        assert len(found) == len(rows)
        return found

    database = ks.read_counters(trace_file)
    stored, printed = by_name(database), by_name(printed_by_nvprof(trace_file, "summary"))
    in_time = over_time(database)

    assert printed.keys() == stored.keys()
    for key, row in printed.items():
        exact = stored[key]
        assert row["executions"] == exact["executions"], key
        assert row["unit"] == exact["unit"]
        for column in ("min", "max", "mean"):
            if row[column] is None or (exact["unit"] == "level" and column == "mean"):
                continue  # nvprof prints no extremes of what every SM counts
            if exact["unit"] == "bytes/s" and column == "mean":
                assert row["mean"] == pytest.approx(in_time[key], rel=4e-5), key
                continue
            assert abs(row[column] - exact[column]) <= precision(exact, row[column], column), key


def over_time(counted: ks.CounterSet) -> dict[tuple[str, str], float]:
    """What nvprof calls the average of a rate: all that was moved, over all the time it took."""
    lasted = {row["correlation_id"]: row["duration_ns"] for row in counted.executions.records()}
    moved: dict[tuple[str, str], float] = defaultdict(float)
    time: dict[tuple[str, str], float] = defaultdict(float)
    for row in counted.counters.records():
        key = bare(row["kernel_name"]), row["metric"]
        moved[key] += row["value"] * lasted[row["correlation_id"]]
        time[key] += lasted[row["correlation_id"]]
    return {key: moved[key] / time[key] for key in moved}


def precision(exact: dict[str, Any], printed: float, column: str) -> float:
    """Six decimals of the printed unit; means of whole numbers are cut off."""
    if exact["unit"] == "ratio":
        return 1.001e-8
    if exact["unit"] == "bytes/s":
        return 1.001e-6 * max(p for p in (1, 2**10, 2**20, 2**30, 2**40) if p <= max(printed, 1))
    return 1.0 if column == "mean" and exact["unit"] != "1" else 1.001e-6


def configurations() -> list[Path]:
    return sorted((STUDIES / "raw").iterdir()) if CORPUS else []


def expected_table(configuration: Path) -> Path:
    """PT-fp32-O0-Adam-fw-733726 → mlperf-deepcam/fp32-O0-Adam-fw.csv."""
    framework, _, rest = configuration.name.partition("-")
    folder = {"PT": "mlperf-deepcam", "TF": "climate-seg-benchmark"}[framework]
    return STUDIES / "expected" / folder / f"{rest.rpartition('-')[0]}.csv"


@each(configurations())
def test_twelve_replays_make_the_published_table(trace_file: Path) -> None:
    replays = ks.read_counters(*sorted(trace_file.glob("*.csv.gz")))
    ours: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in replays.by_kernel().records():
        ours[row["kernel_name"]][row["metric"]] = row
    table = list(csv.DictReader(io.StringIO(opened(expected_table(trace_file)))))
    raw = [name for name in table[0] if "__" in name]

    assert len(raw) == len(replays.sources) == 12
    assert set(replays.sources.values("metrics")) == {1}
    assert {row["Kernel Name"] for row in table} == set(ours)
    for row in table:
        for metric in raw:
            counted = ours[row["Kernel Name"]][metric]
            # They sum rates, too, which we do not: the mean times the executions is their sum.
            total = counted["mean"] * counted["executions"]
            assert total == pytest.approx(float(row[metric]), rel=1e-12, abs=1e-9), metric
            assert counted["executions"] == int(row["Count"])
            assert counted["runs"] == 1
            if not metric.endswith(".per_second"):
                assert counted["total"] == pytest.approx(total, rel=1e-12)
            else:
                assert counted["total"] is None


@each(configurations())
def test_totals_of_the_study(trace_file: Path) -> None:
    """`golden_totals.json`: launches, FLOPs of both kinds and bytes of three levels."""
    golden = json.loads((STUDIES / "golden_totals.json").read_text())
    expected = golden[expected_table(trace_file).stem]
    rows = ks.read_counters(*sorted(trace_file.glob("*.csv.gz"))).by_kernel().records()
    total: dict[str, float] = defaultdict(float)
    launches: dict[str, int] = defaultdict(int)
    for row in rows:
        launches[row["metric"]] += row["executions"]
        total[row["metric"]] += row["total"] or 0

    def flops(op: str) -> float:
        return total[f"sm__sass_thread_inst_executed_op_{op}_pred_on.sum"]

    assert set(launches.values()) == {expected["launches"]}
    assert len({row["kernel_name"] for row in rows}) == expected["kernels"]
    assert total["dram__bytes.sum"] == expected["dram_bytes"]
    assert total["lts__t_bytes.sum"] == expected["l2_bytes"]
    assert total["l1tex__t_bytes.sum"] == expected["l1_bytes"]
    cores = sum(flops(f"{p}add") + flops(f"{p}mul") + 2 * flops(f"{p}fma") for p in "fh")
    assert cores == expected["flops_cuda_core"]
    assert 512 * total["sm__inst_executed_pipe_tensor.sum"] == expected["flops_tensor"]  # V100


@needs_corpus
def test_the_instruction_roofline_of_a_transpose() -> None:
    """One replay each for times, events and metrics: intensity and rate of the published script."""
    folder = oracle_folder("instruction-roofline") / "hierarchical"
    counted = ks.read_counters(*sorted(folder.glob("*_transpose.csv")))
    rows = {row["metric"]: row for row in counted.by_kernel().records()}

    assert len(counted.sources) == 3
    assert {row["kernel_name"] for row in counted.executions.records()} == {
        "transposeNaive(float*, float*, int, int)"
    }
    assert rows["Time"]["mean"] == 26_445
    assert (rows["Time"]["min"], rows["Time"]["max"]) == (25_983, 27_104)
    # ms and us stand in one row of that table.
    assert rows["Time"]["total"] == pytest.approx(2_670_947)
    assert rows["thread_inst_executed"]["mean"] == 16_777_216
    assert rows["gld_transactions"]["total"] == 101 * 131_072
    assert math.isclose(rows["dram_read_transactions"]["mean"], 136_549)
