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
from kernelscope.capture.nsys_command import REPORTS, export_command
from kernelscope.capture.nvtx_versions import heard, package_version, why_unheard
from kernelscope.capture.running import ended
from kernelscope.capture.tools import NSYS, Tool, find_tool
from kernelscope.errors import KernelscopeError, ToolError
from kernelscope.parsers import read

PROGRAM = """\
import kernelscope as ks

for batch in ks.iterations(range(3), batch_size=1):
    with ks.phase("forward"):
        pass
handle = ks.start_range("self-test")
handle.end()
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
    except (KernelscopeError, OSError) as error:
        return Check(NAME, FAILED, str(error).splitlines()[0])


def _tried(tool: Tool, folder: Path, environ: Mapping[str, str]) -> Check:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    output = folder / "trace"
    command = [
        str(tool.path), "profile", "--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none",
        f"--output={output}",
sys.executable, str(program),
    ]  # fmt: skip
    said = _run(command, folder, environ)
    report = next((path for end in REPORTS if (path := output.with_suffix(end)).exists()), None)
    if report is None:
        return Check(NAME, FAILED, f"nsys wrote no report; it said: {_last(said)}", _BY_HAND)
    database = output.with_suffix(".sqlite")
    said = _run(export_command(tool.path, report, database), folder, environ)
    if not database.exists():
        return Check(NAME, FAILED, f"nsys exported nothing; it said: {_last(said)}", _BY_HAND)
    return judged(_arrived(database), tool)


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
