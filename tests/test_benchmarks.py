"""The benchmarks run, write their data and print them again; what they find is not tested here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.machine import short_cpu
from benchmarks.measuring import ChildError, Sample, compiled_modules, run
from benchmarks.results import Results, load
from benchmarks.rounds import Series
from benchmarks.targets import power, verdicts
from benchmarks.workloads import START_UPS, WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
KERNELS = 2_000


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/run.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("benchmarks")
    output = folder / "results.json"
    done = _run(
        *("--kernels", "2e3", "--repeats", "1"), *("--files", str(folder), "--output", str(output))
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, output


@pytest.fixture(scope="module")
def data(measured: tuple[str, Path]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(measured[1].read_text(encoding="utf-8"))
    return loaded


def test_the_data_say_where_they_come_from(data: dict[str, Any]) -> None:
    assert data["schema_version"] == 1
    assert data["machine"]["cpu"]
    assert data["machine"]["memory_bytes"] > 0
    assert data["versions"]["numpy"]
    assert data["kernelscope"]["version"]


def test_the_exports_are_described_and_kept(
    data: dict[str, Any], measured: tuple[str, Path]
) -> None:
    files = {each["name"]: each for each in data["exports"]}

    assert {name: each["kernels"] for name, each in files.items()} == {
        f"training_{KERNELS}": KERNELS,
        f"operators_{KERNELS}": KERNELS,
        f"plain_{KERNELS}": KERNELS,
    }
    assert (
        files[f"operators_{KERNELS}"]["ranges"] == files[f"training_{KERNELS}"]["ranges"] + KERNELS
    )
    for name, each in files.items():
        assert (measured[1].parent / f"{name}.sqlite").stat().st_size == each["bytes"]


def test_every_workload_was_sampled_or_says_why_not(data: dict[str, Any]) -> None:
    expected = {(each.name, None) for each in START_UPS} | {
        (each.name, f"{kind}_{KERNELS}") for each in WORKLOADS for kind in each.kinds
    }

    assert {(each["workload"], each["export"]) for each in data["series"]} == expected
    for series in data["series"]:
        assert series["absent"] or (series["warmups"] and series["samples"])
        for sample in series["samples"]:
            assert sample["cpu_s"] > 0
            assert sample["wall_s"] > 0
            assert sample["max_rss_bytes"] > 1_000_000


def test_the_columns_are_read_from_the_pages(data: dict[str, Any]) -> None:
    (series,) = (each for each in data["series"] if each["workload"] == "read_columns")

    assert [sample["said"]["how"] for sample in series["samples"]] == ["columnar"]


def test_every_target_has_its_verdict(data: dict[str, Any]) -> None:
    found = {each["title"]: each for each in data["targets"]}

    assert found["kernelscope --help, imports of NumPy"]["met"] is True
    assert found["kernelscope --help, wall time over python -c pass"]["value"] > 0
    assert found["analyze, 10⁴ kernels, CPU"]["met"] is None


def test_the_table_is_printed_and_can_be_printed_again(measured: tuple[str, Path]) -> None:
    table, output = measured

    assert "2,000 kernels" in table
    assert "kernelscope analyze --format json" in table
    assert "not measured" in table
    assert _run("--show", str(output)).stdout == table


def test_data_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema_version": 0}', encoding="utf-8")

    done = _run("--show", str(tmp_path / "old.json"))

    assert done.returncode == 2
    assert "schema version 0" in done.stderr


def test_committed_results_can_be_shown() -> None:
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        assert load(path).series


def test_a_child_that_fails_says_what_it_wrote() -> None:
    with pytest.raises(ChildError, match=r"exit code 3\nno luck"):
        run([sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"])


def test_children_keep_compiled_modules_for_the_time_of_a_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    seen = "import json, sys; print(json.dumps([sys.dont_write_bytecode, sys.pycache_prefix]))"
    child = [sys.executable, "-c", seen]

    with compiled_modules():
        inside = run(child, lambda said: {"seen": said}).said["seen"]
    outside = run(child, lambda said: {"seen": said}).said["seen"]

    assert inside[0] is False
    assert inside[1]
    assert not Path(inside[1]).exists()
    assert outside == [True, None]


def test_a_child_is_measured() -> None:
    sample = run(
        [sys.executable, "-c", "b = bytes([1]) * 60_000_000; print('{\"a\": 1}')"],
        dict,
    )

    assert sample.max_rss_bytes > 50_000_000
    assert sample.cpu_s > 0
    assert sample.said == {"a": 1}


def test_ratios_are_formed_round_by_round() -> None:
    def series(workload: str, size: int, *cpu: float) -> Series:
        stages = [{"statement": {"cpu_s": each, "wall_s": each}} for each in cpu]
        samples = [Sample(each, 1.0, 0, stage) for each, stage in zip(cpu, stages, strict=True)]
        return Series(workload, f"plain_{size}", [], samples)

    found = _verdicts(
        series("device_report", 10**6, 2.0, 2.5, 8.0),
        series("analyze", 10**6, 2.0, 5.0, 12.0),
        series("sqlite_group_by", 10**6, 1.0, 1.0, 2.0),
        series("analyze", 10**7, 20.0, 55.0),
    )

    report = "report of kernels and devices / SQLite's GROUP BY, 10⁶"
    assert found[report] == ([2.0, 2.5, 4.0], 2.5, True)
    assert found["analyze / SQLite's GROUP BY, 10⁶"] == ([2.0, 5.0, 6.0], 5.0, False)
    assert found["analyze, growth from 10⁶ to 10⁷"] == ([10.0, 11.0], 10.5, True)
    assert found["reading / SQLite's sum, 10⁶"] == ([], None, None)


def _verdicts(*series: Series) -> dict[str, tuple[list[float], float | None, bool | None]]:
    results = Results("2025-01-01", {}, {}, {}, 3, False, (), series)
    return {each.title: (each.values, each.value, each.met) for each in verdicts(results)}


def test_sizes_are_written_as_people_write_them() -> None:
    assert [power(n) for n in (2_000, 10_000, 10**6, 10**7)] == ["2,000", "10⁴", "10⁶", "10⁷"]


def test_a_cpu_names_a_file() -> None:
    assert short_cpu("Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz") == "intel-xeon-platinum-8480c"
    assert short_cpu("AMD EPYC 9654 96-Core Processor") == "amd-epyc-9654"
