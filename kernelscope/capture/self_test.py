"""A self-test: annotate, record, export, read, and count the ranges that arrived."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelscope.annotation.scheme import DOMAIN
from kernelscope.capture.checks import FAILED, MISSING, OK, UNKNOWN, Check
from kernelscope.capture.nsys_command import REPORTS, UNFINISHED, export_command
from kernelscope.capture.nvtx_versions import heard, package_version, why_unheard
from kernelscope.capture.running import ended
from kernelscope.capture.tools import NSYS, Tool, find_tool, importer_of
from kernelscope.errors import KernelscopeError, ToolError
from kernelscope.parsers import read

PROGRAM = """\
from pathlib import Path
import kernelscope as ks

for batch in ks.iterations(range(3), batch_size=1):
    with ks.phase("forward"):
        pass
handle = ks.start_range("self-test")
handle.end()
Path(__file__).with_name("ended").touch()
"""

EXPECTED: Mapping[str, int] = {"iteration": 3, "data loading": 4, "forward": 3, "self-test": 1}
"""Name of the ranges → how many `PROGRAM` opens. (The end of the data is waited for, too.)"""

NAME = "self-test"
_PATIENCE_S = 60


def self_test(environ: Mapping[str, str] | None = None) -> Check:
    """Record a small program with the nsys that is there, and count the ranges that arrive.

    Parameters
    ----------
    environ : mapping of str to str, optional
        The environment of both; the process's own by default.
    """
    environ = os.environ if environ is None else environ
    try:
        tool = find_tool(NSYS, environ)
        if tool is None:
            return Check(NAME, MISSING, "not tried: there is no nsys")
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
            return _tried(tool, Path(folder), environ)
    except KernelscopeError as error:
        return Check(NAME, FAILED, error.message, error.hint)
    except OSError as error:
        return Check(NAME, FAILED, f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - a broken environment must not break the doctor
        return Check(NAME, UNKNOWN, f"{type(error).__name__}: {error}")


def _tried(tool: Tool, folder: Path, environ: Mapping[str, str]) -> Check:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    run = [sys.executable, str(program)]
    output = folder / "trace"
    said = _run(
        [str(tool.path), "profile", "--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none",
         f"--output={output}", *run],
        folder, environ,
    )  # fmt: skip
    report = _report(output, tool, environ)
    if report is None:
        return Check(NAME, FAILED, f"nsys wrote no report; it said: {_last(said)}", _BY_HAND)
    if not (folder / "ended").exists():
        return _unended(run, folder, environ)
    database = output.with_suffix(".sqlite")
    said = _run(export_command(tool.path, report, database), folder, environ)
    if not database.exists():
        return Check(NAME, FAILED, f"nsys exported nothing; it said: {_last(said)}", _BY_HAND)
    return judged(_arrived(database), tool)


def _report(output: Path, tool: Tool, environ: Mapping[str, str]) -> Path | None:
    """Return the report, made of what an nsys left that does not find its importer; or None."""
    raw, importer = output.with_suffix(UNFINISHED), importer_of(tool.path)
    reports = [output.with_suffix(end) for end in REPORTS]
    if raw.exists() and importer is not None and not any(map(Path.exists, reports)):
        _run([str(importer), "-i", str(raw)], output.parent, environ)
    return next((path for path in reports if path.exists()), None)


def _unended(run: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Check:
    """Say why the program did not reach its end: that ranges are missing is no fault of nvtx's."""
    said = _run(run, folder, environ)
    if (folder / "ended").exists():
        return Check(NAME, FAILED, "the program ends well without nsys only", _BY_HAND)
    return Check(NAME, FAILED, f"the program fails, without nsys too: {_last(said)}", _IMPORTABLE)


_IMPORTABLE = (
    "A program that annotates must find kernelscope and nvtx from any folder: python -m pip "
    "install kernelscope, for this Python."
)
_BY_HAND = "Try it by hand: kernelscope profile --trace nvtx -- python program.py"


def _run(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    with subprocess.Popen(
        command, cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    ) as running:  # fmt: skip
        try:
            return running.communicate(timeout=_PATIENCE_S)[0]
        except subprocess.TimeoutExpired as error:
            ended(running)
            raise ToolError(f"{command[0]} did not end within {_PATIENCE_S} s.") from error


def _last(said: str) -> str:
    lines = [line.strip() for line in said.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing"


def _arrived(database: Path) -> Counter[str]:
    ranges = read(str(database)).ranges
    rows = zip(ranges.texts("name"), ranges.texts("domain"), strict=True)
    return Counter(name or "" for name, domain in rows if domain == DOMAIN)


def judged(arrived: Mapping[str, int], tool: Tool) -> Check:
    """Say whether the ranges that arrived are those that were opened."""
    total, expected = sum(arrived.values()), sum(EXPECTED.values())
    if dict(arrived) == dict(EXPECTED):
        return Check(NAME, OK, f"{total} of {expected} ranges arrived")
    if total:
        wrong = ", ".join(
            f"{name} {arrived.get(name, 0)} of {number}"
            for name, number in EXPECTED.items()
            if arrived.get(name, 0) != number
        )
        return Check(NAME, FAILED, f"{total} of {expected} ranges arrived: {wrong}", _BY_HAND)
    try:
        number = package_version(version("nvtx"))
    except PackageNotFoundError:
        return Check(NAME, FAILED, f"0 of {expected} ranges arrived", "pip install nvtx")
    known = number is not None and heard(number, tool) is False
    why = why_unheard(number, tool) if known and number is not None else _NO_REASON
    return Check(NAME, FAILED if known else UNKNOWN, f"0 of {expected} ranges arrived", why)


_NO_REASON = (
    "nsys heard none of them: NVTX_INJECTION64_PATH may name another tool, or this nsys and this "
    "nvtx do not fit each other: pip install 'nvtx<0.2.12' hears older ones."
)
