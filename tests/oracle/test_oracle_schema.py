"""Tables and columns against those of real exports."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kernelscope import oracle

CORPUS = Path(os.environ.get("KERNELSCOPE_CORPUS", Path(__file__).resolve().parents[3] / "shared"))
REAL: dict[str, tuple[str, ...]] = {
    "2020.5": ("2020.5.1_RTX3080_openacc_fluid",),
    "2022.4": ("2022.4.2_A100_training_baseline", "2022.4.2_A100x4_training_ddp"),
    "2025.5": ("2025.5.2_RTX3060_vecadd_sampling",),
}
NEIGHBOURS: dict[str, dict[str, str]] = {
    "2020.5": {"OSRT_API": "2021.2.1_QuadroRTX6000_sampling"},
    "2022.4": {"OSRT_API": "2022.2.1_A100_saxpy_mpi_callchains"},
    "2025.5": {
        "NVTX_EVENTS": "2025.3.1_T4_cupy_power_iteration_nvtx",
        "CUPTI_ACTIVITY_KIND_MEMSET": "2026.2.1_2gpu_nccl_mfu_before",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "2026.1.1_RTX4060Ti_4streams",
    },
}
"""Tables that no export of the very generation shows, and one nearby that does."""

Columns = list[tuple[str, str, bool, bool]]

needs_corpus = pytest.mark.skipif(
    not (CORPUS / "traces" / "nsys").is_dir(),
    reason=f"no real exports at {CORPUS}; set KERNELSCOPE_CORPUS",
)


def columns(database: sqlite3.Connection, table: str) -> Columns:
    rows = database.execute(f"PRAGMA table_info({table})")
    return [(name, kind, bool(needed), bool(key)) for _, name, kind, needed, _, key in rows]


def opened(name: str) -> sqlite3.Connection:
    path = CORPUS / "traces" / "nsys" / f"{name}.sqlite"
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


@needs_corpus
@pytest.mark.parametrize(
    ("generation", "real"), [(g, name) for g, names in REAL.items() for name in names]
)
def test_shared_tables_have_the_same_columns(generation: str, real: str, tmp_path: Path) -> None:
    path = oracle.write(
        oracle.SCENES["resnet"](), tmp_path / "run.sqlite", generation=generation, lazy=False
    )
    with closing(sqlite3.connect(path)) as ours, closing(opened(real)) as theirs:
        names = [n for (n,) in ours.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        shared = [name for name in names if columns(theirs, name)]
        assert len(shared) >= 12
        for name in shared:
            assert columns(ours, name) == columns(theirs, name), name
            if name.startswith("ENUM_"):
                made = set(ours.execute(f"SELECT * FROM {name}"))
                assert made <= set(theirs.execute(f"SELECT * FROM {name}")), name


@needs_corpus
@pytest.mark.parametrize(
    ("generation", "table"), [(g, table) for g, tables in NEIGHBOURS.items() for table in tables]
)
def test_other_tables_are_those_of_neighbours(generation: str, table: str, tmp_path: Path) -> None:
    path = oracle.write(
        oracle.SCENES["lonely_copy"](), tmp_path / "run", generation=generation, lazy=False
    )
    with (
        closing(sqlite3.connect(path)) as ours,
        closing(opened(NEIGHBOURS[generation][table])) as theirs,
    ):
        assert columns(ours, table) == columns(theirs, table)
