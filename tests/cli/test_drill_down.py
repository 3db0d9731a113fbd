"""The command that a finding names runs as it stands."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

import kernelscope
from kernelscope.metrics.analysis import analyze
from tests.cli.conftest import Run
from tests.corpus import each, nsys_traces

TRACES = Path(__file__).resolve().parents[2] / "traces"


def follow(run: Run, path: Path) -> int:
    """Run what every finding of a trace names; return how many there are."""
    rows = analyze(kernelscope.read(path)).findings.records()
    for row in rows:
        program, *arguments = shlex.split(row["next"])
        assert program == "kernelscope"
        outcome = run(*arguments)
        assert (outcome.code, outcome.err) == (0, ""), row["next"]
        assert outcome.out
    return len(rows)


@each(nsys_traces(), "path")
def test_the_next_command_of_real_traces_runs(run: Run, path: Path) -> None:
    follow(run, path)


@pytest.mark.parametrize(
    "name", ["a blank.sqlite", "a 'quote'.sqlite", 'a "double" $HOME;.sqlite', "-dash.sqlite"]
)
def test_any_file_name_will_do(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(TRACES / "resnet_training.sqlite", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert follow(run, Path(name)) > 2
