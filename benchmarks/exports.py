"""The exports that are measured: taken where they lie, else made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child import TABLE
from benchmarks.measuring import run
from benchmarks.workloads import child

KINDS = {
    "plain": "no NVTX ranges",
    "training": "nested ranges: iterations, phases and layers",
    "operators": "and every launch has a range, too",
}
"""Kind of export (:data:`benchmarks.plans.PLANS`) → what it holds."""

LARGEST = {"operators": 1_000_000}
"""Kind of export → the most kernels it is measured with; others have no limit."""

GENERATION = "2025.5"
_RANGES = "NVTX_EVENTS"


@dataclass(frozen=True, slots=True)
class Export:
    """A file to measure on, and how it came to be.

    Attributes
    ----------
    name : str
        In the data.
    kind : str
        See :data:`KINDS`.
    kernels, ranges : int
        Rows of those tables.
    bytes : int
        Size of the file.
    generation : str
        The generation of Nsight Systems whose schema it has.
    """

    name: str
    kind: str
    kernels: int
    ranges: int
    bytes: int
    generation: str

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.sqlite"


def export(folder: Path, kind: str, kernels: int) -> Export:
    """Return the export of `kernels` executions in `folder`; make it if it is not there.

    Raises
    ------
    ValueError
        If a file of that name is another export.
    """
    name = f"{kind}_{kernels}"
    path = folder / f"{name}.sqlite"
    if not path.exists():
        # In a process of its own: it takes memory that the children's peaks would begin with.
        partial = path.with_suffix(".partial")
        run(child("make", kind, str(kernels), GENERATION, str(partial)), dict)
        partial.rename(path)
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        found, ranges = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            if table in tables
            else 0
            for table in (TABLE, _RANGES)
        )
    if found != kernels:
        raise ValueError(f"{path} holds {found:,} kernels; remove it, and it is made again")
    return Export(name, kind, found, ranges, path.stat().st_size, GENERATION)
