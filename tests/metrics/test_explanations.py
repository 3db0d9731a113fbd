"""Explanations: none lacks, none is of a number that does not exist, and the numbers are those."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import schema
from kernelscope.errors import SelectionError
from kernelscope.metrics.analysis import TABLES, Analysis
from kernelscope.metrics.explanations import (
    PLANNED,
    TOPICS,
    Topic,
    inside,
    names_in,
    place,
    resolve,
    topics,
    worked,
)
from kernelscope.report.document import document
from kernelscope.report.explained import numbers, reported
from tests.corpus import each, nsys_traces

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(ROOT.glob("traces/*.sqlite"))

HEADLINES = (
    "gpu_utilization", "devices.kernel_ns", "devices.busy_ns", "devices.idle_ns",
    "devices.sm_fill", "devices.largest_gap_ns", "kernels.share", "kernels.total_ns",
    "kernels.median_ns", "copies.bytes_per_s", "api_calls.total_ns", "streams.exclusive_ns",
    "iterations.period_ns", "iterations.steady.median_ns", "iterations.throughput_per_s",
    "iterations.score", "ranges.kernel_ns", "ranges.self_kernel_ns", "ranges.projected_ns",
    "ranges.busy_ns", "unattributed.total_ns", "window.duration_ns",
    *(f"devices.partition.{name}_ns" for name in ("compute_only", "copy_only", "idle")),
    *(f"overlap.{state}_ns" for state in ("both", "gpu_only", "cpu_only", "neither")),
    "cpu.utilization", "host_threads.busy_ns", "launches.queue_ns.median",
    "launch_totals.latency_ns.p95", "launches_by_kernel.overhead_ns.mean", "queue_depth.mean",
    "launch_stretches.waiting_ns", "idle.total_ns", "idle_by_iteration.total_ns",
    "gap_spectrum.total_ns", "transfers.bytes_per_s", "transfers.exposed_ns",
    "transfers.blocked_ns", "migrations.total_ns", "communication.exposed_ns",
    "communication_by_device.exposed_ns", "communication.bus_bytes_per_s",
    "launch_shapes.occupancy", "launch_shapes.waves", "launch_shapes.limiter", "peaks.per_s",
    "findings.saving_bound_ns", "ranges.opaque_ns", "iterations.opaque_ns",
)  # fmt: skip

WRITTEN = [(key, entry) for entries in TOPICS.values() for entry in entries
           for key in (entry.key, *entry.also)]  # fmt: skip


def test_every_column_that_users_see_is_explained() -> None:
    columns = {f"{table.name}.{name}" for table in TABLES for name in table.names}

    assert columns <= topics().keys()


def test_no_two_explanations_are_of_one_number() -> None:
    keys = [key for key, _ in WRITTEN]
    keys += [key for entry in PLANNED for key in (entry.key, *entry.also)]

    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("key", HEADLINES)
def test_headlines_are_explained_by_hand(key: str) -> None:
    topic = topics()[key]

    assert topic.written
    assert topic.explanation.formula
    assert topic.explanation.inputs
    assert topic.explanation.source


def test_what_is_explained_exists() -> None:
    """A column, a figure made of columns or by a function, or a fact beside the tables."""
    beside = {"schema_version", "capture", "window", "iterations", "launches"}
    for key, entry in WRITTEN:
        found = place(key)[1] is not None or callable(entry.numbers) or bool(entry.of)
        found |= key == "launches.reason"
        assert found or key.partition(".")[0] in beside, key
        assert not entry.of or entry.of in {table.name for table in TABLES}, key


def test_what_is_planned_shows_once_it_exists() -> None:
    for entry in PLANNED:
        assert (entry.key in topics()) == (place(entry.key)[1] is not None), entry.key


def test_inputs_are_columns_of_the_trace() -> None:
    known = {f"{table.name}.{name}" for table in schema.CANONICAL for name in table.names}
    for key, topic in topics().items():
        assert set(topic.inputs) <= known, key
    for entry in PLANNED:
        assert set(entry.inputs) <= known, entry.key


def test_formulas_name_columns_of_their_rows() -> None:
    for key, topic in topics().items():
        formula = topic.explanation.numbers
        if isinstance(formula, str):
            assert topic.table is not None, key
            own, summed = names_in(formula)
            assert own - {"n", "window_ns"} <= set(topic.table.names), key
            assert summed <= set(topic.table.names), key


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield where every value of a JSON document stands, list positions left out."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from paths(inside, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inside in value:
            yield from paths(inside, path)
    else:
        yield path


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_place_of_the_json_is_explained(sample: Path) -> None:
    analysis = ks.analyze(ks.read(sample), batch_size=64, cross_check=True)
    for path in set(paths(document(analysis))):
        if not inside(path):
            resolve(path)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("devices.concurrency", "devices.concurrency.two_ns"),
        ("kernels.by_device", "kernels_by_device.total_ns"),
        ("launches.api.queue_ns", "launches.queue_ns.p99"),
        ("launches.by_kernel", "launches_by_kernel.total_ns"),
        ("launches.stretches", "launch_stretches.idle_ns"),
    ],
)
def test_a_list_or_group_of_the_json_holds_numbers(name: str, number: str) -> None:
    keys = [topic.key for topic in inside(name)]

    assert number in keys
    assert all(key.startswith(number.rpartition(".")[0]) for key in keys)


@pytest.mark.parametrize("name", ["", "nothing", "devices.kernel_ns", "launch_shapes.grid"])
def test_a_number_holds_no_others(name: str) -> None:
    assert inside(name) == []


@pytest.mark.parametrize(
    ("spelling", "key"),
    [
        ("devices.kernel_ns", "devices.kernel_ns"),
        ("gpu_utilization", "gpu_utilization"),
        ("kernels.by_device.total_ns", "kernels_by_device.total_ns"),
        ("iterations.rows.period_ns", "iterations.period_ns"),
        ("iterations.runner_up.score", "iterations.runner_up"),
        ("result_kernels.quantiles_ns_p5", "kernels.quantiles_ns.p5"),
        ("sm_fill", "devices.sm_fill"),
        ("partition_idle_ns", "devices.partition.idle_ns"),
        ("share", "kernels.share"),
        ("launches.by_kernel.queue_ns.median", "launches_by_kernel.queue_ns.median"),
        ("launches.stretches.waiting_ns", "launch_stretches.waiting_ns"),
        ("launch_shapes.grid", "launch_shapes.grid.0"),
        ("launches.by_kernel.queue_ns.p95", "launches_by_kernel.queue_ns.p95"),
        ("launches.stretches.idle_ns", "launch_stretches.idle_ns"),
        ("capture.serialised", "capture.serialised"),
    ],
)
def test_a_number_goes_by_several_names(spelling: str, key: str) -> None:
    assert resolve(spelling).key == key


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sm_fil", "Did you mean 'sm_fill'?"),
        ("devices.kernal_ns", "Did you mean 'devices.kernel_ns'?"),
        ("gpu_utilisation", "Did you mean 'gpu_utilization'?"),
        ("kernel_ns", "Which one: devices.kernel_ns, ranges.kernel_ns."),
        ("devices.kernel_ns.more", "Did you mean"),
        ("", "Known: "),
    ],
)
def test_a_mistyped_name_is_answered(name: str, says: str) -> None:
    with pytest.raises(SelectionError, match=r"There is no metric|Several") as caught:
        resolve(name)

    assert says in caught.value.hint


@pytest.mark.parametrize(
    ("formula", "text", "value"),
    [
        ("a / b", "6 / 4", 1.5),
        ("a - b - 1", "6 - 4 - 1", 1),
        ("a / sum(a) * 1000", "6 / 24 × 1000", 250.0),
        ("(a + b) / b", "(6 + 4) / 4", 2.5),
        ("part.of_ns + a", "1,234,567 + 6", 1_234_573),
        ("a / none", "6 / –", None),
        ("a / zero", "6 / 0", None),
    ],
)
def test_formulas_are_worked_out(formula: str, text: str, value: float | None) -> None:
    row = {"a": 6, "b": 4, "part.of_ns": 1_234_567, "none": None, "zero": 0}

    made = worked("row", formula, row, {"a": 24})

    assert (made.text, made.value) == (text, value)


def wrong(topic: Topic, analysis: Analysis) -> list[str]:
    """Return the rows in which the formula does not come to what the analysis reports."""
    said = reported(topic, analysis)
    rows, count = numbers(topic, analysis)
    assert count == len(rows)
    if said is None:
        return []
    return [
        f"{row.label}: {row.text} = {row.value}, not {value}"
        for row, value in zip(rows, said, strict=True)
        if row.value != value and not _close(row.value, value)
    ]


def _close(one: Any, other: Any) -> bool:
    both = isinstance(one, float) and isinstance(other, float)
    return both and math.isclose(one, other, rel_tol=1e-12)


def assert_numbers(analysis: Analysis) -> None:
    found = {key: wrong(topic, analysis) for key, topic in topics().items()}

    assert {key: rows[:3] for key, rows in found.items() if rows} == {}
    steady = analysis.iteration_summary.steady
    for name in ("count", "median_ns", "mean_ns", "p5_ns", "p95_ns"):
        (row,), _ = numbers(topics()[f"iterations.steady.{name}"], analysis)
        said = getattr(steady, name)
        assert row.value == said or math.isclose(row.value, said, rel_tol=1e-12), name
    whole = document(analysis)
    for name in ("total_ns", "kernels"):
        (row,), _ = numbers(topics()[f"unattributed.{name}"], analysis)
        assert row.value == (whole["unattributed"] and whole["unattributed"][name])


@each(nsys_traces())
def test_formulas_come_to_what_is_reported(trace_file: Path) -> None:
    assert_numbers(ks.analyze(ks.read(trace_file)))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_formulas_of_samples_come_to_what_is_reported(sample: Path) -> None:
    assert_numbers(ks.analyze(ks.read(sample)))


@pytest.mark.parametrize(
    "choice", [{"between": (500_000_123, 700_000_456)}, {"only": "steady"}, {"within": "forward"}]
)
def test_formulas_hold_in_a_window(choice: dict[str, Any]) -> None:
    assert_numbers(ks.analyze(ks.read(ROOT / "traces" / "resnet_training.sqlite"), **choice))


def test_the_throughput_is_worked_out() -> None:
    trace = ks.read(ROOT / "traces" / "resnet_training.sqlite")
    analysis = ks.analyze(trace, batch_size=64, ranks=2)

    (row,), _ = numbers(topics()["iterations.throughput_per_s"], analysis)

    assert row.value == pytest.approx(analysis.iteration_summary.throughput_per_s, rel=1e-12)
    assert "× 128 samples" in row.text


def test_a_trace_of_nothing_has_numbers_of_nothing() -> None:
    from tests import build  # noqa: PLC0415 - for this test alone

    analysis = ks.analyze(build.trace())
    for topic in topics().values():
        numbers(topic, analysis)
