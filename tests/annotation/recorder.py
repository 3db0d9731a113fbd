"""What a program tells NVTX, recorded by a tool of our own that the real `nvtx` package loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("recorder.c")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of NVTX: `result` is the number that a range was started, or is ended, with."""

    thread: int
    call: str
    domain: str
    message: str
    category: int
    payload: int | float | None
    result: int


def compiled(source: Path, folder: Path, *options: str, name: str | None = None) -> Path:
    """Compile C to a shared library."""
    if sys.platform != "linux":
        pytest.skip("cannot be installed here: the libraries of these tests are for Linux")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here, and these tests compile C")
    library = folder / (name or f"lib{source.stem}.so")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", *options, "-o", library, source],
        check=True,
    )
    return library


def run(
    program: str, *, path: Sequence[Path] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program that may import this project.

    Parameters
    ----------
    program : str
        Python.
    path : sequence of Path
        Folders that Python imports from first: another `nvtx`.
    **environment
        Added to the environment.
    """
    variables = {k: v for k, v in os.environ.items() if not k.startswith("NVTX_")}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, (*path, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=variables | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def recorded(tool: Path, program: str, **more: Any) -> list[Call]:
    """Run a program with the compiled ``recorder.c``; return all calls in their order."""
    output = tool.with_suffix(".calls")
    output.unlink(missing_ok=True)
    run(program, NVTX_INJECTION64_PATH=str(tool), RECORDER_OUTPUT=str(output), **more)
    return [_call(line) for line in output.read_text().splitlines()] if output.exists() else []


def _call(line: str) -> Call:
    thread, call, domain, message, category, kind, payload, result = line.split("\t")
    number = {"int64": int, "uint64": int, "double": float}.get(kind)
    return Call(
        int(thread),
        call,
        bytes.fromhex(domain).decode(),
        bytes.fromhex(message).decode(),
        int(category),
        None if number is None else number(payload),
        int(result),
    )


def events(calls: Sequence[Call]) -> list[tuple[str, str, int | float | None]]:
    """Return what happened without the making of names: (call, message, payload)."""
    made = ("domain", "string", "category")
    return [(c.call, c.message, c.payload) for c in calls if c.call not in made]
