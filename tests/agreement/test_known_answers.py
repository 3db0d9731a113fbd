"""Analyses of known-answer traces equal the answers that were computed from their plans.

The answers come from plain loops over the plan; the analysis reads the file that was written of
it. Every scene is written in every generation of exports that can hold it, and random runs with
ties, straddling and missing rows beside them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.metrics.graph_kernels import graph_kernels
from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.ranges import ranges
from kernelscope.report.document import document

ROOT = Path(__file__).resolve().parents[2]

LISTS = (
    "kernels", "launch_shapes", "api_calls", "copies", "copies_by_kind", "devices",
    "device_processes", "streams", "capture_cost",
)  # fmt: skip


def differences(ours: Any, expected: Any, where: str) -> Iterator[str]:
    """Yield every place where `ours` lacks or contradicts what is `expected`."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if not isinstance(ours, dict) or key not in ours:
                yield f"{where}.{key} is not there"
            else:
                yield from differences(ours[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        if not isinstance(ours, list) or len(ours) != len(expected):
            yield f"{where}: {ours!r} has another length than {expected!r}"
        else:
            for place, (one, two) in enumerate(zip(ours, expected, strict=True)):
                yield from differences(one, two, f"{where}[{place}]")
    elif isinstance(expected, float) and isinstance(ours, float):
        if not math.isclose(ours, expected, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{where}: {ours!r} is not {expected!r}"
    elif ours != expected or isinstance(ours, bool) != isinstance(expected, bool):
        yield f"{where}: {ours!r} is not {expected!r}"


def keyed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put rows, and the devices inside them, into one order, whatever they were sorted by."""
    return sorted((_sorted_inside(row) for row in rows), key=_identity)


def _gaps(rows: list[dict[str, Any]], devices: list[dict[str, Any]]) -> list[Any]:
    """Return gaps with the (process, ordinal) pairs of their GPU in place of its row number."""
    pairs = [json.dumps(keyed(device["device_ids"])) for device in devices]
    columns = ("process_id", "device_id", "start_ns", "end_ns", "duration_ns")
    return sorted(
        [pairs[row["device"]], *(-1 if row[column] is None else row[column] for column in columns)]
        for row in rows
    )


def _sorted_inside(row: dict[str, Any]) -> dict[str, Any]:
    inside = {key: keyed(row[key]) for key in ("by_device", "device_ids") if key in row}
    memories = {key: str(row[key]).lower() for key in ("src_memory", "dst_memory")
                if row.get(key) is not None}  # fmt: skip
    known = {"physical_id": row["physical_id"] is not None} if "physical_id" in row else {}
    return row | inside | memories | known


IDENTITY = (
    "name", "kind", "src_memory", "dst_memory", "grid", "block", "device_ids",
    "process_id", "device_id", "context_id", "stream_id",
)  # fmt: skip


def _identity(row: dict[str, Any]) -> str:
    return json.dumps([row.get(key) for key in IDENTITY])


def assert_answers(path: Path, expected: dict[str, Any]) -> None:
    """Assert that the analysis of `path` says what is expected, and that its checks hold."""
    analysis = ks.analyze(ks.read(path))
    ours = document(analysis)
    found = list(differences(ours["window"], expected["window"], "window"))
    for name in LISTS:
        found += differences(keyed(ours[name]), keyed(expected[name]), name)
    trace = ks.read(path)
    both = [*ks.metrics.gaps(trace).records(), *ks.metrics.gaps(trace, per="process").records()]
    found += differences(
        _gaps(both, ours["devices"]), _gaps(expected["gaps"], expected["devices"]), "gaps"
    )
    found += _range_differences(trace, expected)
    assert not found, "\n".join(found[:20])
    assert analysis.ok


def _range_differences(trace: ks.Trace, expected: dict[str, Any]) -> Iterator[str]:
    """Compare what ranges hold by themselves, nothing inherited; and where graphs come from."""
    if "ranges" not in expected:
        return
    names = np.array(trace.ranges.texts("name"))
    unclosed = set(names[~trace.ranges["closed"]].tolist())  # old exports do not say when
    ours: dict[str, dict[str, Any]] = {}
    for row in ranges(trace).records():
        key = [row["path"].split(SEPARATOR), row["domain"], row["style"], row["process_id"]]
        ours[json.dumps(key)] = row
    for row in expected["ranges"]:
        key = [row[name] for name in ("path", "domain", "style", "process_id")]
        figures = {name: row[name] for name in ("instances", "host_ns")} | row["direct"]
        del figures["self_kernels"]
        if row["style"] != "push_pop":
            del figures["self_kernel_ns"]
        if row["name"] in unclosed:
            del figures["host_ns"]
        yield from differences(ours.get(json.dumps(key)), figures, f"ranges {key}")
    captured = [
        row | {name: row[name] and row[name].split(SEPARATOR) for name in ("path", "capture_path")}
        for row in graph_kernels(trace, folded=False).records()
    ]
    captured.sort(key=lambda row: str([row["path"], row["capture_path"], row["name"]]))
    yield from differences(captured, expected["graph_kernels"], "graph_kernels")


@pytest.mark.parametrize("sample", sorted(path.stem for path in ROOT.glob("traces/*.sqlite")))
def test_sample_traces(sample: str) -> None:
    answers = json.loads((ROOT / "traces" / f"{sample}.answers.json").read_text(encoding="utf-8"))
    assert_answers(ROOT / "traces" / f"{sample}.sqlite", answers)


@pytest.mark.parametrize("scene", oracle.SCENES)
def test_scenes_in_every_generation(tmp_path: Path, scene: str) -> None:
    plan = oracle.SCENES[scene]()
    for generation in oracle.generations(plan):
        path = oracle.write(plan, tmp_path / f"{generation}.sqlite", generation=generation)
        assert_answers(path, oracle.answers(plan, generation=generation))


@pytest.mark.parametrize("seed", range(60))
def test_random_runs(tmp_path: Path, seed: int) -> None:
    plan = oracle.random_run(seed)
    generation = tuple(oracle.GENERATIONS)[seed % len(oracle.GENERATIONS)]
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation)
    assert_answers(path, oracle.answers(plan, generation=generation))


@pytest.mark.parametrize("seed", range(40))
def test_random_runs_with_graphs(tmp_path: Path, seed: int) -> None:
    plan = oracle.random_run(seed, graphs=True, peers=True)
    generation = ("2022.4", "2025.5")[seed % 2]
    path = oracle.write(plan, tmp_path / "run.sqlite", generation=generation)
    assert_answers(path, oracle.answers(plan, generation=generation))
