"""The command that a finding names runs as it stands."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernelscope
from kernelscope.metrics.analysis import analyze
from kernelscope.report.layout import Page
from kernelscope.report.text_findings import findings
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


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("name", ["two\nlines.sqlite", "bytes \udcff.sqlite"])
@pytest.mark.parametrize("width", [60, 100])
def test_what_is_printed_can_be_pasted(
    name: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(TRACES / "resnet_training.sqlite", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    page = Page(width)
    lines = [line.plain for line in findings(analyze(kernelscope.read(name)), page)]
    assert max(map(len, lines)) <= width
    start = next(place for place, line in enumerate(lines) if "Next: " in line)
    command = "\n".join(lines[start : start + 3]).partition("Next: ")[2].partition("\n2  ")[0]
    assert command.count(" \\\n") == (width == 60)
    done = subprocess.run(
        ["bash", "-c", f'kernelscope() {{ {sys.executable} -m kernelscope "$@"; }}; {command}'],
        env={**os.environ, "PYTHONPATH": str(TRACES.parent)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"pageable" in done.stdout
