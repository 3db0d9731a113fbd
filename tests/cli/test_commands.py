"""The smaller commands: info, demo, completion; and the progress bar."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from kernelscope import oracle
from kernelscope.cli import COMPLETION_VARIABLE, demo
from kernelscope.cli import progress as bars
from tests.cli.conftest import Run


def test_info_for_people_and_for_scripts(run: Run, trace_file: Path) -> None:
    text = run("info", trace_file)
    assert text.code == 0
    assert "NVTX ranges (nsys profile --trace=cuda,nvtx)" in text.out

    made = json.loads(run("info", trace_file, "--format", "json").out)
    assert made["processes"][0]["kernels"] == 2


def test_info_shows_no_environment(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hunter2")

    for args in ([], ["--format", "json"]):
        assert "hunter2" not in run("info", trace_file, *args).out


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, and a demo that is quick to write."""
    monkeypatch.chdir(tmp_path)
    quick = oracle.Run().kernel(100, 200, "gemm", call=(40, 50)).plan()
    monkeypatch.setitem(oracle.SCENES, demo.SCENE, lambda: quick)
    return tmp_path


def test_demo_writes_a_trace_and_analyzes_it(run: Run, here: Path) -> None:
    outcome = run("demo")

    assert outcome.code == 0
    assert "gemm" in outcome.out
    assert "kernelscope analyze kernelscope-demo.sqlite" in outcome.err
    assert (here / "kernelscope-demo.sqlite").is_file()
    assert run("demo").code == 0  # its own file may be made again


def test_demo_replaces_a_named_file_only_by_force(run: Run, here: Path) -> None:
    dear = here / "dear.sqlite"
    dear.write_text("dear")

    assert run("demo", "--output", dear).code == 2
    assert dear.read_text() == "dear"
    assert run("demo", "--output", dear, "--force").code == 0


@pytest.mark.slow
def test_the_demo_itself(run: Run, tmp_path: Path) -> None:
    outcome = run("demo", "--output", tmp_path / "demo.sqlite")

    assert outcome.code == 0
    assert "checks hold" in outcome.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run: Run, shell: str) -> None:
    outcome = run("completion", shell)

    assert outcome.code == 0
    assert COMPLETION_VARIABLE in outcome.out
    assert f"completion {shell}" in run("completion", "--help").out


def test_completion_completes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "kernelscope ana")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "analyze" in run().out

    monkeypatch.setenv("COMP_WORDS", "kernelscope analyze --table launch")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert "launch_shapes" in run().out


def test_no_bar_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with bars.progress(1) as step:
        step("Reading")
        time.sleep(0.01)

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("work_s", "shown"), [(0.0, False), (0.4, True)])
def test_a_bar_on_a_terminal_for_long_work(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    work_s: float,
    shown: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(bars, "DELAY_S", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    with bars.progress(2) as step:
        step("Reading")
        time.sleep(work_s)
        step("Computing")

    captured = capfd.readouterr()
    assert captured.out == ""
    assert ("Reading" in captured.err) == shown
