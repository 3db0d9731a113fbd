"""The writer: rows repeat, SQL finds what was planned, each generation keeps its quirks."""

from __future__ import annotations

import doctest
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelscope import oracle
from kernelscope.errors import OutputError, SelectionError
from kernelscope.oracle import run as run_module
from kernelscope.oracle.answers import believable
from kernelscope.oracle.events import Kernel

Rows = list[tuple[Any, ...]]


def query(path: Path, statement: str) -> Rows:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(statement).fetchall()


def tables(path: Path) -> list[str]:
    return [name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE type='table'")]


def content(path: Path) -> dict[str, Rows]:
    return {name: query(path, f"SELECT * FROM {name} ORDER BY rowid") for name in tables(path)}


@pytest.mark.parametrize("scene", sorted(oracle.SCENES))
def test_the_same_scene_gives_the_same_rows(scene: str, tmp_path: Path) -> None:
    for generation in oracle.generations(oracle.SCENES[scene]()):
        made = [
            oracle.write(oracle.SCENES[scene](), tmp_path / name, generation=generation)
            for name in (f"{generation}.sqlite", f"{generation}.again.sqlite")
        ]
        assert content(made[0]) == content(made[1])
        assert query(made[0], "PRAGMA integrity_check") == [("ok",)]


def test_a_generation_without_tables_of_graphs_refuses_them(tmp_path: Path) -> None:
    plan = oracle.SCENES["graphs"]()
    assert oracle.generations(plan) == ("2022.4", "2025.5")
    with pytest.raises(SelectionError, match=r"CUDA graphs(.|\n)*2022\.4, 2025\.5"):
        oracle.write(plan, tmp_path / "run.sqlite", generation="2020.5")
    assert not (tmp_path / "run.sqlite").exists()


def test_graph_nodes_stand_in_the_table_of_their_generation(tmp_path: Path) -> None:
    plan = oracle.SCENES["graphs"]()
    for generation, table in (
        ("2022.4", "CUDA_GRAPH_EVENTS"),
        ("2025.5", "CUDA_GRAPH_NODE_EVENTS"),
    ):
        path = oracle.write(plan, tmp_path / generation, generation=generation)
        counts = f"SELECT count(*), count(originalGraphNodeId) FROM {table}"
        assert query(path, counts) == [(12, 6)]


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
@pytest.mark.parametrize("seed", range(10))
def test_sql_finds_the_planned_kernels(seed: int, generation: str, tmp_path: Path) -> None:
    plan = oracle.random_run(seed)
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation, lazy=False)
    rows = query(
        path,
        "SELECT k.start, k.end, s.value, k.globalPid >> 24 & 0xFFFFFF, deviceId, streamId, gridX "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName",
    )
    planned = [
        (k.start, k.end, k.name, k.process, k.device, k.stream, k.grid_x)
        for k in plan.kernels.rows(Kernel)
    ]
    assert Counter(rows) == Counter(planned)


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_calls_carry_versions_and_join_within_their_process(
    generation: str, tmp_path: Path
) -> None:
    plan = oracle.SCENES["two_processes"]()
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation)
    names = {name for (name,) in query(path, "SELECT value FROM StringIds")}
    assert "cudaLaunchKernel_v7000" in names
    assert "cudaLaunchKernel" not in names
    join = (
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
        "ON r.correlationId = k.correlationId"
    )
    within = f"{join} AND k.globalPid = r.globalTid & ~0xFFFFFF"
    assert query(path, within) == [(len(plan.kernels),)]
    assert query(path, join) == [(2 * len(plan.kernels),)]


def test_units_of_gpu_tables(tmp_path: Path) -> None:
    plan = oracle.SCENES["two_processes"]()
    old = oracle.write(plan, tmp_path / "old.sqlite", generation="2020.5")
    new = oracle.write(plan, tmp_path / "new.sqlite", generation="2022.4")
    columns = "coreClockRate, globalMemoryBandwidth"
    kilo = query(old, f"SELECT DISTINCT {columns} FROM TARGET_INFO_CUDA_GPU")
    assert kilo == [(1_740_000, 760_080_000)]
    base = query(new, "SELECT clockRate, memoryBandwidth FROM TARGET_INFO_GPU")
    assert base == [(1_740_000_000, 760_080_000_000)]


def test_profiler_ids_run_against_ordinals(tmp_path: Path) -> None:
    plan = oracle.SCENES["reversed_devices"]()
    path = oracle.write(plan, tmp_path / "run.sqlite", generation="2025.5")
    gpus = query(path, "SELECT id, cuDevice FROM TARGET_INFO_GPU ORDER BY id")
    assert gpus == [(0, 1), (1, 0)]
    devices = query(path, "SELECT cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE ORDER BY 1")
    assert devices == [(0, 1), (1, 0)]


def test_versions_are_stated_where_the_generation_states_them(tmp_path: Path) -> None:
    plan = oracle.SCENES["lonely_copy"]()
    made = {
        generation: oracle.write(plan, tmp_path / generation, generation=generation)
        for generation in oracle.GENERATIONS
    }
    assert not [name for name in tables(made["2020.5"]) if "META" in name or "ENUM" in name]
    version = "SELECT value FROM {} WHERE name = 'EXPORT_SCHEMA_VERSION'"
    assert query(made["2022.4"], version.format("EXPORT_META_DATA")) == [("3.0.0",)]
    assert query(made["2025.5"], version.format("META_DATA_EXPORT")) == [("3.24.0",)]
    assert "ENUM_CUDA_KRENEL_LAUNCH_TYPE" in tables(made["2022.4"])
    assert "ENUM_CUDA_KERNEL_LAUNCH_TYPE" in tables(made["2025.5"])


def test_lazy_exports_leave_empty_tables_out(tmp_path: Path) -> None:
    plan = oracle.SCENES["lonely_copy"]()
    lazy = oracle.write(plan, tmp_path / "lazy")
    whole = oracle.write(plan, tmp_path / "whole", lazy=False)
    assert "CUPTI_ACTIVITY_KIND_KERNEL" not in tables(lazy)
    assert query(whole, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(0,)]


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_ranges_of_every_kind(generation: str, tmp_path: Path) -> None:
    plan = oracle.SCENES["handover"]()
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation)
    kinds = query(path, "SELECT eventType, count(*) FROM NVTX_EVENTS GROUP BY 1")
    assert kinds == [(59, 19), (60, 1), (75, 1)]
    domain = query(path, "SELECT text, domainId FROM NVTX_EVENTS WHERE eventType = 75")
    assert domain == [("model", 1)]
    by_id = query(
        path,
        "SELECT DISTINCT s.value, n.text, n.domainId FROM NVTX_EVENTS n "
        "JOIN StringIds s ON s.id = n.textId ORDER BY 1",
    )
    assert by_id == [("forward", None, 0), ("layer", None, 1)]
    closed_elsewhere = query(
        path, "SELECT endGlobalTid & 0xFFFFFF FROM NVTX_EVENTS WHERE eventType = 60"
    )
    assert closed_elsewhere == [(1001,)]
    never = query(path, "SELECT end FROM NVTX_EVENTS WHERE text = 'open'")
    assert never == [(None if generation == "2020.5" else plan.end,)]


def test_call_chain_wrappers_have_a_class_and_a_bare_name(tmp_path: Path) -> None:
    run = oracle.Run().kernel(100, 200, call=(40, 50), correlation=5)
    run = run.call(39, 51, "cudaLaunchKernel", 5, kind="wrapper")
    path = oracle.write(run.plan(), tmp_path / "run.sqlite", generation="2022.4")
    rows = query(
        path,
        "SELECT s.value, r.eventClass FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
        "JOIN StringIds s ON s.id = r.nameId",
    )
    assert rows == [("cudaLaunchKernel_v7000", 0), ("cudaLaunchKernel", 67)]


def test_synchronisations_are_told_by_what_is_set(tmp_path: Path) -> None:
    run = oracle.Run().kernel(0, 1).sync(1, 2).sync(2, 3, stream=7).sync(3, 4, event=9)
    run = run.sync(4, 5, stream=13, event=9)
    path = oracle.write(run.plan(), tmp_path / "run.sqlite")
    unset = 4_294_967_295
    rows = query(path, "SELECT streamId, eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    assert rows == [(unset, unset), (7, unset), (unset, 9), (13, 9)]


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    plan = oracle.SCENES["lonely_copy"]()
    path = oracle.write(plan, tmp_path / "run.sqlite")
    with pytest.raises(OutputError, match="exists"):
        oracle.write(plan, path)
    oracle.write(plan, path, overwrite=True)


def test_unknown_generation_and_folder(tmp_path: Path) -> None:
    plan = oracle.SCENES["lonely_copy"]()
    with pytest.raises(SelectionError, match=r"2025\.5"):
        oracle.write(plan, tmp_path / "run.sqlite", generation="2025")
    with pytest.raises(OutputError, match="cannot be written"):
        oracle.write(plan, tmp_path / "nowhere" / "run.sqlite")


def test_importing_needs_numpy_at_most() -> None:
    heavy = "pandas, plotly, click, rich, sqlite_utils, torch"
    code = f"import sys, kernelscope.oracle; print(set(sys.modules) & set('{heavy}'.split(', ')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(oracle).failed == 0
    assert doctest.testmod(run_module).failed == 0


def test_only_times_decide_what_is_believable() -> None:
    assert believable(Kernel(5, 5))
    assert not believable(Kernel(5, 4))
    assert not believable(Kernel(5, 0))
