"""The Nsight Systems parser: generations, units, identities, text, and what is not there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.parsers.sqlite import Read, SqliteFile
from kernelscope.trace import Trace
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces

GIB = 1 << 30


@lru_cache(maxsize=4)
def real(stem: str) -> Trace:
    assert CORPUS is not None
    return ks.read(CORPUS / "traces" / "nsys" / f"{stem}.sqlite")


def devices(trace: Trace) -> dict[Any, dict[str, Any]]:
    return {row["device_id"]: row for row in trace.devices.records()}


@needs_corpus
@pytest.mark.parametrize(
    ("stem", "clock_hz", "bytes_per_s", "gib"),
    [
        ("2020.3.4_V100x2_b_2419k", 1_380_000_000, None, 31.7),  # bandwidth 0, memory in MiB
        ("2020.5.1_RTX3080_openacc_fluid", 1_740_000_000, 760_080_000_000, 9.8),
        ("2022.4.2_A100_training_baseline", 1_410_000_000, 1_555_200_000_000, 39.4),
        ("2025.3.1_T4_cupy_power_iteration_nvtx", 1_590_000_000, 320_064_000_000, 14.7),
    ],
)
def test_units_are_right_in_every_generation(
    stem: str, clock_hz: int, bytes_per_s: int | None, gib: float
) -> None:
    gpu = devices(real(stem))[0]
    assert gpu["clock_hz"] == clock_hz
    assert gpu["memory_bytes_per_s"] == bytes_per_s
    assert gpu["memory_bytes"] / GIB == pytest.approx(gib, abs=0.1)


@needs_corpus
def test_gpus_are_joined_by_cuda_ordinal_and_not_by_id() -> None:
    ids = {o: row["gpu_id"] for o, row in devices(real("2023.1.2_A100x8_mixq_bench2")).items()}
    assert ids == {0: 2, 1: 3, 2: 1, 3: 0, 4: 6, 5: 7, 6: 5, 7: 4}


@needs_corpus
def test_adapters_that_cuda_does_not_see_have_no_ordinal() -> None:
    rows = real("2022.1.1_win_GTX1060_concurrent_s1").devices.records()
    ordinals = {row["name"]: row["device_id"] for row in rows}
    assert ordinals == {
        "GeForce GTX 1060 with Max-Q Design": 0,
        "Intel(R) HD Graphics 630": None,
        "Microsoft Basic Render Driver": None,
    }


@needs_corpus
def test_two_processes_are_told_apart_where_their_correlation_ids_collide() -> None:
    trace = real("2026.2.1_2gpu_nccl_mfu_before")
    rows = trace.kernels.df
    assert rows.groupby("process_id").size().to_dict() == {144: 1993, 145: 2017}
    health = {row["code"]: row["count"] for row in ks.metrics.health(trace).records()}
    assert health["kernels_without_launch"] == 4010 - 3986  # USER_PAINS R2


@needs_corpus
def test_migrations_are_kinds_of_their_own() -> None:
    rows = ks.metrics.copies_by_kind(real("2023.3.1_A100x4_perlmutter_1k")).records()
    assert {row["kind"]: row["operations"] for row in rows} == {
        "unified HtoD": 2048,
        "unified DtoH": 12288,
    }


@needs_corpus
def test_domains_have_their_names() -> None:
    ranges = real("2022.2.1_A100_saxpy_mpi_callchains").ranges
    assert set(ranges.texts("domain")) == {"", "MPI"}


def test_a_domain_without_a_name_is_not_the_default_one(tmp_path: Path) -> None:
    run = oracle.Run().range(0, 10, "step").range(2, 5, "solve", domain="linalg")
    path = oracle.write(run.plan(), tmp_path / "t.sqlite", generation="2025.5")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE NVTX_EVENTS SET text = NULL, textId = NULL WHERE eventType = 75")
    db.close()
    assert ks.read(path).ranges.texts("domain") == ["", "domain 1"]


@pytest.mark.parametrize("number", [1, 2**31, 2**63 - 1, -5])
def test_a_domain_may_have_any_number(tmp_path: Path, number: int) -> None:
    run = oracle.Run().range(0, 10, "step").range(2, 5, "solve", domain="linalg")
    path = oracle.write(run.plan(), tmp_path / "t.sqlite", generation="2025.5")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE NVTX_EVENTS SET domainId = ? WHERE domainId = 1", [number])
    db.close()
    assert ks.read(path).ranges.texts("domain") == ["", "linalg"]


@needs_corpus
def test_a_trimmed_export_reads_what_is_left() -> None:
    trace = real("2026.1.1_H100_healthy_1pct_trimmed")
    assert trace.kernels.values("registers_per_thread")[0] is None
    assert devices(trace)[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert set(trace.api_calls.texts("kind")) == {"runtime"}
    assert {each.table for each in trace.capture.not_recorded} >= {"ranges", "syncs"}


@each(nsys_traces())
def test_synchronisations_are_classified_as_their_calls_are(trace_file: Path) -> None:
    """What is set in a row, and not ``syncType``, tells what waited for what."""
    trace = ks.read(trace_file)
    calls = {
        (row["process_id"], row["correlation_id"]): row["name"]
        for row in trace.api_calls.records()
        if row["kind"] != "wrapper"
    }
    expected = {
        "cudaStreamSynchronize": "stream_synchronize",
        "cuStreamSynchronize": "stream_synchronize",
        "cudaDeviceSynchronize": "context_synchronize",
        "cudaEventSynchronize": "event_synchronize",
        "cudaStreamWaitEvent": "stream_wait_event",
    }
    for row in trace.syncs.records():
        name = calls.get((row["process_id"], row["correlation_id"]), "")
        assert expected.get(name, row["kind"]) == row["kind"], row


def written(tmp_path: Path, *statements: str, generation: str = "2025.5") -> Path:
    plan = oracle.Run().kernel(100, 200, "gemm", call=(40, 50)).plan()
    path = oracle.write(plan, tmp_path / "t.sqlite", generation=generation)
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    return path


def test_text_that_is_not_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "UPDATE StringIds SET value = CAST(X'6765ff6d6d' AS TEXT) WHERE value = 'gemm'",
    )
    assert ks.read(path).kernels.texts("name") == [r"ge\xffmm"]


def test_unknown_tables_and_columns_are_ignored(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "CREATE TABLE EXTRAP_RESOURCES (a, b)",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN kernel_name TEXT DEFAULT 'x'",
    )
    assert len(ks.read(path).kernels) == 1


def test_a_newer_version_is_read_with_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "UPDATE META_DATA_EXPORT SET value = '2031.4.1.1' WHERE name = 'EXPORT_PRODUCT_VERSION'",
    )
    trace = ks.read(path)
    assert "newer than 2026.2" in trace.capture.warnings[0]
    assert "capture_doubt" in ks.metrics.health(trace).texts("code")


def test_a_name_without_a_string_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 99999")
    assert ks.read(path).kernels.texts("name") == ["[string 99999]"]


def test_the_environment_of_the_profiled_process_stays_in_the_file(tmp_path: Path) -> None:
    trace = ks.read(written(tmp_path))
    assert "never-show-this" in (tmp_path / "t.sqlite").read_bytes().decode("latin-1")
    assert "never-show-this" not in repr(trace.capture)


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
@pytest.mark.parametrize("lazy", [True, False])
def test_a_table_without_rows_is_recorded_and_an_absent_one_is_not(
    tmp_path: Path, generation: str, lazy: bool
) -> None:
    plan = oracle.Run().kernel(100, 200, "gemm", call=(40, 50)).plan()
    path = oracle.write(plan, tmp_path / "t.sqlite", generation=generation, lazy=lazy)
    trace = ks.read(path)
    assert len(trace.copies) == 0
    assert trace.recorded("copies") is not lazy


def relaxed(table: str) -> list[str]:
    """Statements after which any value may stand in any column of `table`."""
    return [
        f"CREATE TABLE loose AS SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE loose RENAME TO {table}",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("deviceId = NULL", "it names no device"),
        ("deviceId = 'gpu'", "it names no device"),
        ("start = NULL", "no start or end recorded"),
        ('"end" = 1000000000000000000', "it lasts longer than 104 days"),
        ("start = -9200000000000000000", "its time is one that no clock shows"),
        ('"end" = 50', "its end lies before its start"),
    ],
)
def test_kernels_that_cannot_be_are_quarantined(tmp_path: Path, change: str, reason: str) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = written(tmp_path, *relaxed(kernel), f"UPDATE {kernel} SET {change}")
    trace = ks.read(path)
    assert len(trace.kernels) == 0
    assert trace.quarantine.texts("reason") == [reason]
    assert ks.analyze(trace).ok


@pytest.mark.parametrize("value", ["'--5'", "'²'", "1e300", "9e999", "-7", "0", "NULL", "X'00'"])
@pytest.mark.parametrize("column", ["gridX", "blockZ", "registersPerThread", "streamId"])
def test_numbers_that_cannot_be_are_missing(tmp_path: Path, column: str, value: str) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = written(tmp_path, *relaxed(kernel), f"UPDATE {kernel} SET {column} = {value}")
    analysis = ks.analyze(ks.read(path))
    assert analysis.kernels.values("total_ns") == [100]
    (fill,) = analysis.devices.values("sm_fill")
    assert fill is None or 0 <= fill <= 1


@pytest.mark.parametrize("value", ["'many'", "9e999", "-1", "9223372036854775807"])
def test_sizes_that_cannot_be_are_missing(tmp_path: Path, value: str) -> None:
    plan = oracle.Run().copy(100, 200, "HtoD", call=(40, 50)).plan()
    path = oracle.write(plan, tmp_path / "t.sqlite", generation="2025.5")
    with sqlite3.connect(path) as db:
        for statement in relaxed("CUPTI_ACTIVITY_KIND_MEMCPY"):
            db.execute(statement)
        db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = {value}")
    db.close()
    (row,) = ks.metrics.copies(ks.read(path)).records()
    assert row["bytes"] is None
    assert row["bytes_per_s"] is None
    assert row["total_ns"] == 100


@pytest.mark.parametrize("column", ["smCount", "clockRate", "name", "uuid", "cuDevice", "id"])
@pytest.mark.parametrize("value", ["'x'", "1.5", "NULL", "-3", "X'ff'"])
def test_gpu_facts_of_the_wrong_kind_are_missing(tmp_path: Path, column: str, value: str) -> None:
    gpu = "TARGET_INFO_GPU"
    path = written(tmp_path, *relaxed(gpu), f"UPDATE {gpu} SET {column} = {value}")
    assert len(ks.analyze(ks.read(path)).devices) == 1


@pytest.mark.parametrize("value", ["'x'", "1.5", "9e999", "NULL", "-3", "X'ff'"])
def test_processes_of_no_number_keep_their_events(tmp_path: Path, value: str) -> None:
    table = "PROCESSES"
    path = written(tmp_path, *relaxed(table), f"UPDATE {table} SET globalPid = {value}")
    assert ks.analyze(ks.read(path)).kernels.values("total_ns") == [100]


def test_an_export_without_devices_says_what_was_assumed(tmp_path: Path) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = written(tmp_path, f"ALTER TABLE {kernel} DROP COLUMN deviceId")
    trace = ks.read(path)
    assert "taken to be on device 0" in trace.capture.warnings[0]


def test_what_was_traced_and_saw_nothing_needs_no_advice(tmp_path: Path) -> None:
    advice = {e.table: e.how_to_record for e in ks.read(written(tmp_path)).capture.not_recorded}
    assert advice["copies"] == ""


def test_every_table_that_was_read_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "UPDATE StringIds SET value = X'00' WHERE value = 'gemm'")
    seen = set()
    read = SqliteFile.read

    def watched(self: SqliteFile, table: str, wanted: Sequence[str]) -> Read:
        result = read(self, table, wanted)
        if result.how != "absent":
            seen.add(table)
        return result

    monkeypatch.setattr(SqliteFile, "read", watched)
    paths = ks.read(path).capture.read_paths
    assert set(paths) == seen
    assert {"StringIds", "META_DATA_CAPTURE", "PROCESSES"} < seen
    assert paths["META_DATA_CAPTURE"] == "columnar"
    assert paths["StringIds"].startswith("sqlite3: ")
