"""The reader's speed, as a ratio to SQLite's own scan in the same process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelscope.parsers.sqlite import SqliteFile
from tests.parsers.tables import make

WANTED = [
    "start",
    "end",
    "deviceId",
    "streamId",
    "correlationId",
    "globalPid",
    "demangledName",
    "gridX",
]
ROWS = 1_000_000


def fastest(run: Callable[[], Any]) -> float:
    """CPU seconds of the best of seven runs."""
    seconds = []
    for _ in range(7):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


@pytest.mark.slow
def test_eight_columns_of_a_million_kernels_cost_three_scans_of_sqlite(tmp_path: Path) -> None:
    columns = [*WANTED, "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"]
    path = make(
        tmp_path / "million.sqlite",
        f"CREATE TABLE KERNEL ({', '.join(f'{name} INTEGER' for name in columns)})",
        f"""WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
        INSERT INTO KERNEL SELECT 1000000000 + i * 7001, 1000000000 + i * 7001 + i % 5003, i % 2,
        7 + i % 4, i * 3, 281479271677952, i % 401, 1 + i % 3001, 1, 1, 32 * (1 + i % 8), 1, 1,
        16 + i % 200 FROM n""",
    )
    file = SqliteFile.open(path)
    assert file.read("KERNEL", WANTED).how == "columnar"
    with closing(sqlite3.connect(path)) as db:
        scan = fastest(lambda: db.execute("SELECT sum(end - start) FROM KERNEL").fetchall())
    read = fastest(lambda: file.read("KERNEL", WANTED))
    assert read <= 3 * scan, f"{read:.3f} s against {scan:.3f} s"
