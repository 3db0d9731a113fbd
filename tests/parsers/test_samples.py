"""Samples of GPU counters as exports of several generations hold them."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.errors import DamagedFileError
from kernelscope.oracle.sampled import ACTIVE, CLOCK

MADE = oracle.SCENES["sampled"]()
VALUES = len(MADE.samples)


def written(folder: Path, generation: str = "2025.5", **more: Any) -> Path:
    return oracle.write(MADE, folder / "run.sqlite", generation=generation, **more)


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


def test_samples_are_read_as_written(tmp_path: Path) -> None:
    rows = ks.read(written(tmp_path)).gpu_samples.records()

    assert len(rows) == VALUES
    assert rows[0] == {
        "time_ns": 1_000_000,
        "source": "0x0001000000000001",
        "gpu_id": 1,
        "metric": ACTIVE,
        "value": 0,
        "problem": None,
    }
    assert {row["gpu_id"] for row in rows} == {0, 1}
    assert {row["value"] for row in rows if row["metric"] == CLOCK} == {1_410_000_000}


def test_samples_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    trace = ks.read(written(tmp_path))

    assert not trace.gpu_samples.at_hand
    assert "gpu_samples" in trace.capture.recorded
    assert "read when" in repr(trace.gpu_samples)
    assert "gpu_samples" not in repr(trace)
    assert "read when" in repr(trace.gpu_samples)

    assert len(trace.gpu_samples) == VALUES
    assert f"{VALUES} gpu_samples" in repr(trace)


def test_a_pickled_trace_takes_its_samples_along(tmp_path: Path) -> None:
    path = written(tmp_path)
    pickled = pickle.dumps(ks.read(path))
    path.unlink()

    assert len(pickle.loads(pickled).gpu_samples) == VALUES


def test_a_file_that_changed_or_went_away_has_no_samples_any_more(tmp_path: Path) -> None:
    path = written(tmp_path)
    trace, other = ks.read(path), ks.read(path)
    changed(path, "DELETE FROM GPU_METRICS WHERE metricId = 1")
    with pytest.raises(DamagedFileError, match="changed after it was opened"):
        len(trace.gpu_samples)
    path.unlink()
    with pytest.raises(DamagedFileError, match="Read the file again"):
        other.gpu_samples.records()


def test_a_file_with_a_log_beside_it_is_read_whole_at_once(tmp_path: Path) -> None:
    """Its samples are in a temporary copy, which is gone when they are asked for."""
    path = written(tmp_path)
    database = sqlite3.connect(path)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("INSERT INTO GPU_METRICS VALUES (5000000, 281474976710657, 0, 55)")
        database.commit()
        trace = ks.read(path)
    finally:
        database.close()

    assert len(trace.gpu_samples) == VALUES + 1


def test_the_newest_exports_have_a_second_clock(tmp_path: Path) -> None:
    path = changed(
        written(tmp_path),
        "CREATE TABLE newer (rawTimestamp INTEGER NOT NULL, timestamp INTEGER NOT NULL, "
        "typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL)",
        "INSERT INTO newer SELECT timestamp + 77, * FROM GPU_METRICS",
        "DROP TABLE GPU_METRICS",
        "ALTER TABLE newer RENAME TO GPU_METRICS",
    )

    assert ks.read(path).gpu_samples.records()[0]["time_ns"] == 1_000_000
    assert len(ks.analyze(ks.read(path)).gpu_metrics_by_kernel)


def test_older_exports_say_that_their_samples_are_not_read(tmp_path: Path) -> None:
    trace = ks.read(written(tmp_path, "2022.4"))

    assert not trace.recorded("gpu_samples")
    (said,) = (text for text in trace.capture.warnings if "GPU metrics" in text)
    assert "GENERIC_EVENTS" in said
    assert "not read" in said


def test_other_generic_events_are_no_samples(tmp_path: Path) -> None:
    path = changed(
        written(tmp_path, "2022.4"),
        """UPDATE GENERIC_EVENT_TYPES SET data = '{"Name": "sched_switch"}'""",
    )

    assert not any("GPU metrics" in text for text in ks.read(path).capture.warnings)


@pytest.mark.parametrize("statement", ["DELETE FROM GPU_METRICS", "DROP TABLE GPU_METRICS"])
def test_sampling_without_permission_is_said(tmp_path: Path, statement: str) -> None:
    trace = ks.read(changed(written(tmp_path), statement))

    assert any("ERR_NVGPUCTRPERM" in text for text in trace.capture.warnings)
    assert not len(trace.gpu_samples)
    health = ks.analyze(trace).health.records()
    assert any("ERR_NVGPUCTRPERM" in row["message"] for row in health)


def test_an_export_with_every_table_and_no_samples_misses_nothing(tmp_path: Path) -> None:
    path = oracle.write(oracle.Run().kernel(0, 100).plan(), tmp_path / "run.sqlite", lazy=False)
    trace = ks.read(path)

    assert not any("GPU metrics" in text for text in trace.capture.warnings)
    assert not len(trace.gpu_samples)
    assert not len(ks.analyze(trace).gpu_metrics)


def test_a_capture_without_samples_does_not_miss_them(tmp_path: Path) -> None:
    trace = ks.read(oracle.write(oracle.Run().kernel(0, 100).plan(), tmp_path / "run.sqlite"))

    assert not trace.recorded("gpu_samples")
    assert "gpu_samples" not in {each.table for each in trace.capture.not_recorded}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("NULL, {kind}, 1, 5", "no_time"),
        ("9223372036854775807, {kind}, 1, 5", "time_outside"),
        ("5, {kind}, 1, 0.5", "no_number"),
        ("5, {kind}, 1, -7", "negative"),
        ("5, {kind}, 1, 121", "above_peak"),
        ("5, {kind}, 1, 120", None),
        ("5, {kind}, 4, 1500000000", None),
        ("-5, {kind}, 1, 5", None),
    ],
)
def test_samples_that_cannot_be_true_say_why(
    tmp_path: Path, values: str, problem: str | None
) -> None:
    kind = (1 << 48) + 1
    path = changed(
        written(tmp_path), f"INSERT INTO GPU_METRICS VALUES ({values.format(kind=kind)})"
    )

    rows = ks.read(path).gpu_samples.records()

    assert rows[-1]["problem"] == problem
    assert all(row["problem"] is None for row in rows[:-1])
    assert len(rows) == VALUES + 1


def test_a_metric_without_a_name_keeps_its_number(tmp_path: Path) -> None:
    path = changed(written(tmp_path), "UPDATE GPU_METRICS SET metricId = 99 WHERE metricId = 1")

    assert "metric 99" in ks.read(path).gpu_samples.categories("metric")


def test_metric_numbers_of_two_gpus_may_differ(tmp_path: Path) -> None:
    path = changed(
        written(tmp_path),
        "UPDATE TARGET_INFO_GPU_METRICS SET metricName = 'SM Issue [Throughput %]' "
        "WHERE typeId = 281474976710656 AND metricId = 0",
    )

    rows = ks.read(path).gpu_samples.records()

    assert {row["metric"] for row in rows if row["gpu_id"] == 0} == {"SM Issue [Throughput %]"}
    assert rows[0]["metric"] == ACTIVE
