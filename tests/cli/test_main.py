"""What holds for every command: help, imports, exit codes, closed pipes, errors on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kernelscope import __file__ as package
from kernelscope import parsers
from kernelscope._version import __version__
from kernelscope.cli import COMMANDS, cli
from tests.cli.conftest import Run

HEAVY = ("numpy", "pandas", "rich", "plotly", "sqlite_utils", "sqlite3")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(run: Run, name: str) -> None:
    outcome = run(name, "--help")

    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: kernelscope {name}")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert all(each.help for each in options)


def test_examples_keep_their_lines(run: Run) -> None:
    lines = run("analyze", "--help").out.splitlines()

    assert "    kernelscope analyze trace.sqlite --format json --output trace.json" in lines


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_not_cut(run: Run, name: str) -> None:
    (line,) = [line for line in run("--help").out.splitlines() if line.startswith(f"  {name} ")]

    assert not line.endswith("...")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_documents_every_command(name: str) -> None:
    readme = Path(package).parents[1] / "README.md"

    assert f"kernelscope {name}" in readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["analyze", "--help"]])
def test_help_imports_click_alone(args: list[str]) -> None:
    code = (
        "import sys\nfrom kernelscope.cli import main\n"
        f"code = main({args!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"


def test_version(run: Run) -> None:
    assert run("--version").out == f"kernelscope, version {__version__}\n"


def test_no_arguments_show_the_help(run: Run) -> None:
    outcome = run()

    assert "Commands:" in outcome.out + outcome.err


def test_an_unknown_command_names_the_nearest(run: Run) -> None:
    outcome = run("analyse", "x")

    assert outcome.code == 2
    assert "Did you mean 'analyze'?" in outcome.err
    assert outcome.out == ""


def test_bad_input_is_code_2_with_what_where_and_what_next(run: Run, tmp_path: Path) -> None:
    outcome = run("analyze", tmp_path / "nothing.sqlite")

    assert outcome.code == 2
    assert outcome.out == ""
    first, second = outcome.err.splitlines()[:2]
    assert first.startswith("Error: ")
    assert "nothing.sqlite" in first
    assert second


def test_the_systems_errors_name_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: str) -> None:
        raise PermissionError(13, "Permission denied", "secret.sqlite")

    monkeypatch.setattr(parsers, "read", unreadable)

    outcome = run("info", "secret.sqlite")
    assert (outcome.code, outcome.err) == (2, "Error: secret.sqlite: Permission denied\n")


def test_interrupted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parsers, "read", interrupted)

    outcome = run("info", "trace.sqlite")
    assert (outcome.code, outcome.err) == (130, "Interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE convention")
@pytest.mark.parametrize("args", [["analyze", "trace.sqlite", "--format", "json"], ["--help"]])
def test_a_closed_pipe_is_quiet(args: list[str]) -> None:
    code = (
        "import sys, os\n"
        "from kernelscope import parsers\n"
        "from tests.cli.conftest import five_rows\n"
        "parsers.read = lambda file: five_rows()\n"
        "os.read(0, 1)\n"  # waits until the reader has gone
        "from kernelscope.cli import main\n"
        f"sys.exit(main({args!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(package).parents[1],
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.close()
    errors = process.stderr.read()
    process.stderr.close()

    assert process.wait() == 141
    assert errors == b""


@pytest.mark.skipif(os.name == "nt", reason="the shell is POSIX's")
@pytest.mark.parametrize(
    ("args", "closed", "code"),
    [
        ("analyze traces/resnet_training.sqlite", ">&-", 0),
        ("info traces/resnet_training.sqlite", ">&-", 0),
        ("completion bash", ">&-", 0),
        ("analyze traces/resnet_training.sqlite", "<&- >&- 2>&-", 0),
        ("analyze nothing.sqlite", ">&- 2>&-", 2),
    ],
)
def test_closed_streams_are_quiet(args: str, closed: str, code: int) -> None:
    done = subprocess.run(
        f"{sys.executable} -m kernelscope {args} {closed}",
        shell=True, capture_output=True, text=True, check=False, cwd=Path(package).parents[1],
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE convention")
@pytest.mark.parametrize("args", [["info", "nothing.sqlite"], ["analyse"]])
def test_a_pipe_that_takes_no_error_either(args: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "kernelscope", *args]
    done = subprocess.run(
        command, stdout=write_end, stderr=write_end, check=False, cwd=Path(package).parents[1]
    )
    os.close(write_end)

    assert done.returncode == 141


@pytest.mark.parametrize("args", [["analyze", "x", "{name}"], ["{name}"], ["info", "{name}"]])
def test_no_message_steers_the_terminal(run: Run, args: list[str]) -> None:
    outcome = run(*(each.format(name="a\x1bb\x9bc\u202ed\re") for each in args))

    assert outcome.code == 2
    assert not set("\x1b\x9b\u202e\r") & set(outcome.err)
    assert "\\x1b" in outcome.err


def test_clicks_own_lines_stay(run: Run) -> None:
    assert "Choose from:\n\tbash,\n\tzsh" in run("completion").err


def test_pipes_of_a_shell() -> None:
    """``| head -1`` prints a line, and nobody complains."""
    command = f"{sys.executable} -m kernelscope --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("Usage: kernelscope")
    assert done.stderr == ""
