"""Runs one command of a profile, in the foreground, and survives what may happen to it.

The command shares our terminal and process group, so a Ctrl-C reaches the profiler and the
program as well: both get the time to write what they have. A second one ends them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO

from kernelscope.capture.manifest import DONE, FAILED, INTERRUPTED, Step, now

_PATIENCE_S = 10.0
"""How long a command that was told to end has for it."""


def run(
    name: str,
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    output: Path | None = None,
    say: Callable[[str], None] = print,
) -> Step:
    """Run a command to its end, whatever happens.

    Parameters
    ----------
    name : str
        What the step is called.
    command : sequence of str
        What to run.
    environ : mapping of str to str, optional
        Its environment; ours by default.
    output : Path, optional
        Where its standard output goes; ours by default.
    say : callable
        Takes a line for people.

    Returns
    -------
    Step
        How it ended. Nothing is raised: what cannot be started has failed.
    """
    begun, started = time.monotonic(), now()
    step = Step(name, tuple(map(str, command)), started_at=started)
    stops: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def stop(number: int, _frame: FrameType | None) -> None:
        stops.append(number)
        if child is None:
            return
        if len(stops) == 1 and number == signal.SIGINT:
            say("Interrupted: waiting for what was recorded to be written (Ctrl-C again: give up).")
            return
        with suppress(ProcessLookupError):
            child.terminate()

    before = {number: signal.getsignal(number) for number in _STOPS}
    try:
        for number in _STOPS:
            signal.signal(number, stop)
        with _opened(output) as file:
            child = subprocess.Popen(
                step.command, env=None if environ is None else dict(environ), stdout=file
            )
            code = _waited(child, stops)
    except OSError as error:
        said = f"{step.command[0]}: {error.strerror or error}"
        return replace(step, status=FAILED, seconds=time.monotonic() - begun, note=said)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    status = INTERRUPTED if stops else DONE if code == 0 else FAILED
    return replace(
        step, status=status, exit_code=code, seconds=time.monotonic() - begun, note=_ended(code)
    )


_STOPS = (signal.SIGINT, signal.SIGTERM)


def _opened(path: Path | None) -> AbstractContextManager[IO[bytes] | None]:
    return nullcontext() if path is None else path.open("wb")


def _waited(child: subprocess.Popen[bytes], stops: list[int]) -> int:
    """Wait for a command; one that was told to end twice, and does not, is killed."""
    told: float | None = None
    while True:
        try:
            return child.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            if len(stops) < 2:
                continue
            told = told or time.monotonic()
            if time.monotonic() - told > _PATIENCE_S:
                child.kill()


def ended(running: subprocess.Popen[str]) -> None:
    """Kill a command that leads a session of its own, with everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _ended(code: int) -> str:
    """Say how a command ended, where that was not well."""
    if code == 0:
        return ""
    if code < 0:
        with suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
        return f"ended by signal {-code}"
    return f"exit code {code}"


def free_bytes(folder: Path) -> int | None:
    """Return how much room there is beside a folder; None where nobody says."""
    try:
        found = os.statvfs(folder)
    except (AttributeError, OSError):  # Windows has no statvfs
        return None
    return found.f_bavail * found.f_frsize
