"""The database: a table per result, keys, meanings, and what Datasette reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelscope.metrics.analysis import TABLES
from kernelscope.report import to_sqlite
from tests.report.analyses import FILL, SGEMM, typical


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    to_sqlite.write(typical(), tmp_path / "out.db")
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        yield connection


def test_a_table_per_result_and_what_explains_them(database: sqlite3.Connection) -> None:
    found = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}

    assert {each.name for each in TABLES} <= found
    assert {"capture", "window", "not_recorded", "metadata"} <= found


def test_rows_are_whole_and_in_the_order_of_a_report(database: sqlite3.Connection) -> None:
    rows = database.execute(
        "SELECT name, total_ns, std_ns, quantiles_ns_p5 FROM kernels"
    ).fetchall()

    assert rows == [
        (FILL, 6000, 1414.213562373095, 1100.0),
        (SGEMM, 4000, 1414.213562373095, 1100.0),
    ]
    assert database.execute("SELECT bytes FROM copies WHERE kind = 'memset'").fetchall() == [
        (None,)
    ]


def test_keys(database: sqlite3.Connection) -> None:
    primary = [row[1] for row in database.execute("PRAGMA table_info(kernels)") if row[5]]
    foreign = database.execute("PRAGMA foreign_key_list(gaps)").fetchall()

    assert primary == ["name"]
    assert [(row[3], row[2], row[4]) for row in foreign] == [("device", "devices", "index")]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_every_column_has_unit_and_meaning(database: sqlite3.Connection) -> None:
    for table in TABLES:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table.name})")]
        described = database.execute(
            'SELECT "column" FROM metadata WHERE "table" = ? AND meaning <> \'\' '
            "AND (\"column\" = '' OR unit <> '')",
            (table.name,),
        )
        assert {"", *columns} == {name for (name,) in described}


def test_the_window_and_the_capture(database: sqlite3.Connection) -> None:
    assert database.execute("SELECT * FROM window").fetchall() == [
        (1000, 11_000, 10_000, "first to last CUDA activity")
    ]
    assert database.execute("SELECT profiler_version, recorded FROM capture").fetchall() == [
        ("2025.3.1.90", "kernels, api_calls, copies, devices")
    ]
    assert database.execute("SELECT * FROM not_recorded").fetchall() == [
        ("ranges", "nsys profile --trace=cuda,nvtx")
    ]


def test_datasette_description() -> None:
    made = json.loads(to_sqlite.datasette_metadata("out", "train.sqlite"))
    kernels = made["databases"]["out"]["tables"]["kernels"]

    assert kernels["description"] == "Which kernels take the device's time?"
    assert kernels["columns"]["total_ns"] == "sum of durations inside the window (ns)"
