from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

BF16 = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"


def test_a_name_is_decoded_for_people(run: Run) -> None:
    out = run("decode", BF16, "mine").out

    lines = [line.split() for line in out.splitlines()]
    assert ["pipe", "BF16"] in lines
    assert ["tile", "128", "×", "128", "×", "32"] in lines
    assert "Unknown is an answer" in " ".join(out.split())


def test_names_are_decoded_for_scripts(run: Run) -> None:
    (row,) = json.loads(run("decode", BF16, "--format", "json").out)["names"]

    assert (row["family"], row["pipe"], row["tile"]) == ("cublas", "BF16", [128, 128, 32])
    assert row["total_ns"] is None


def test_a_mangled_name_is_demangled(run: Run) -> None:
    (row,) = csv.DictReader(io.StringIO(run("decode", "_Z1fIfEvPT_", "--format", "csv").out))

    assert row["name"] == "void f<float>(float*)"


def test_names_come_from_standard_input_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"fusion_1\n\n\xff\nfusion_1\n"))
    monkeypatch.setattr("sys.stdin", stdin)

    rows = json.loads(run("decode", "-", "--format", "json").out)["names"]

    assert [row["family"] for row in rows] == ["xla", None]


def test_coverage_of_a_trace(run: Run, trace_file: Path) -> None:
    said = json.loads(run("decode", "--trace", str(trace_file), "--format", "json").out)

    assert said["coverage"]["family"]["names"] == len(said["names"]) == 2
    assert said["coverage"]["family"]["known_ns"] == 0  # "sgemm" and "relu" may be anybody's
    assert [row["total_ns"] for row in said["names"]] == [2000, 1000]
    out = run("decode", "--trace", str(trace_file)).out
    assert "0 of 2" in out
    assert "Names of no known library" in out


@pytest.mark.parametrize("width", [40, 60, 120])
def test_pages_keep_to_the_width(
    run: Run, trace_file: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    for arguments in (("decode", BF16), ("decode", "--trace", str(trace_file))):
        assert max(map(len, run(*arguments).out.splitlines())) <= width


def test_neither_names_nor_a_trace_is_an_error(run: Run, trace_file: Path) -> None:
    for arguments in (("decode",), ("decode", "f", "--trace", str(trace_file))):
        outcome = run(*arguments)
        assert outcome.code == 2
        assert "--trace" in outcome.err
