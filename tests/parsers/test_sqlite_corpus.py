"""Both ways of reading SQLite give equal arrays on other people's traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import needs_corpus, nsys_traces, nvprof_traces
from tests.parsers.tables import check_file

pytestmark = needs_corpus


def _is_sqlite(path: Path) -> bool:
    return path.read_bytes()[:16] == b"SQLite format 3\0"


@pytest.mark.parametrize("path", nsys_traces(), ids=lambda path: path.name)
def test_nsys_exports_read_alike_and_their_events_by_columns(path: Path) -> None:
    how = check_file(path, plainly=False)
    events = {t: h for t, h in how.items() if t.startswith(("CUPTI_ACTIVITY", "NVTX_EVENTS"))}
    assert set(events.values()) <= {"columnar"}


@pytest.mark.parametrize(
    "path", [path for path in nvprof_traces() if _is_sqlite(path)], ids=lambda path: path.name
)
def test_nvprof_files_read_alike(path: Path) -> None:
    check_file(path, plainly=False)


def test_one_export_against_plain_sqlite3() -> None:
    smallest = min(nsys_traces(), key=lambda path: path.stat().st_size)
    check_file(smallest)
    check_file(next(path for path in nsys_traces() if "cupy" in path.name))
