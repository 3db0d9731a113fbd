"""Idle causes on real traces: sums, the list of gaps, and the stories that the traces tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kernelscope
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_time import devices, measure
from kernelscope.metrics.idle import checks, explain, gap_spectrum, idle, idle_pieces
from kernelscope.metrics.idle_gaps import INTERIOR
from kernelscope.metrics.intervals import overlap, union
from kernelscope.metrics.window import Window, whole
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces

each_trace = each(nsys_traces(), "path")


@each_trace
def test_causes_and_spectrum_add_up_in_any_window(path: Path) -> None:
    trace = kernelscope.read(path)
    explained, everything = explain(trace), whole(trace)
    time = measure(trace)
    assert checks(explained, time)["ok"].all()
    for table in (idle(explained), gap_spectrum(explained)):
        sums = np.zeros(len(time.devices), dtype=np.int64)
        np.add.at(sums, table["device"], table["total_ns"])
        assert sums.tolist() == devices(trace, measured=time)["idle_ns"].tolist()
    random = np.random.default_rng(len(trace.kernels))
    for _ in range(5):
        ends = np.sort(random.integers(everything.start_ns - 999, everything.end_ns + 999, 2))
        window = Window(int(ends[0]), int(ends[1]) + 1, "random")
        found = checks(explain(trace, window), measure(trace, window))
        assert found["ok"].all(), found.records()


@each_trace
def test_pieces_fill_the_gaps_that_device_time_lists(path: Path) -> None:
    trace = kernelscope.read(path)
    explained = explain(trace)
    mine = explained.gaps.place == INTERIOR
    columns = (getattr(explained.gaps, name)[mine].tolist() for name in ("device", "start", "end"))
    found = zip(*columns, strict=True)
    listed = gaps(trace)
    expected = zip(*(listed[n].tolist() for n in ("device", "start_ns", "end_ns")), strict=True)
    assert sorted(found) == sorted(expected)
    table = idle_pieces(explained)
    joint = table["gap"][1:] == table["gap"][:-1]
    assert (table["start_ns"][1:][joint] == table["end_ns"][:-1][joint]).all()
    assert (table["end_ns"] > table["start_ns"]).all()


def of(name: str) -> tuple[kernelscope.Trace, dict[str, int]]:
    """A trace, and its device's idle time by cause."""
    assert CORPUS is not None
    trace = kernelscope.read(CORPUS / "traces" / "nsys" / f"{name}.sqlite")
    by_cause: dict[str, int] = {}
    for row in idle(explain(trace)).records():
        by_cause[row["cause"]] = by_cause.get(row["cause"], 0) + row["total_ns"]
    return trace, by_cause


@needs_corpus
def test_the_profiler_has_a_fifth_of_the_idle_time_of_the_ddp_run() -> None:
    _, by_cause = of("2022.4.2_A100x4_training_ddp")
    assert round(by_cause["profiler"] / sum(by_cause.values()), 2) == 0.19


@needs_corpus
def test_the_baseline_starves_outside_its_steps() -> None:
    trace, by_cause = of("2022.4.2_A100_training_baseline")
    window, total = whole(trace).duration_ns, sum(by_cause.values())
    assert 1 - total / window == pytest.approx(0.17, abs=0.005)
    assert by_cause["host: off_core"] / total > 0.99
    ranges = trace.ranges
    steps = [name.startswith("step ") for name in ranges.categories("name")]
    step = np.array(steps)[ranges["name"]]
    within = union(ranges["start_ns"][step], ranges["end_ns"][step])
    pieces = idle_pieces(explain(trace))
    host = np.array([c.startswith("host: ") for c in pieces.categories("cause")])[pieces["cause"]]
    starved = union(pieces["start_ns"][host], pieces["end_ns"][host])
    waited = int((starved[1] - starved[0]).sum())
    assert overlap(starved, within) / waited < 0.01


@needs_corpus
@pytest.mark.parametrize(
    "name", ["2023.4.4_A100_training_dali", "2023.4.4_A100_training_amp_bf16_fused"]
)
def test_the_device_bound_runs_have_only_ordinary_pauses(name: str) -> None:
    trace, by_cause = of(name)
    assert max(by_cause, key=by_cause.__getitem__) == "kernel_to_kernel"
    assert sum(by_cause.values()) / whole(trace).duration_ns < 0.004


@needs_corpus
def test_migrations_without_a_call_are_said_to_be_migrations() -> None:
    assert CORPUS is not None
    trace = kernelscope.read(CORPUS / "traces" / "nsys" / "2023.3.1_A100x4_perlmutter_1k.sqlite")
    rows = {(r["cause"], r["detail"]): r["gaps"] for r in idle(explain(trace)).records()}
    assert rows["unknown_launch", "migration"] > 14_000
