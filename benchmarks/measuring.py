"""Run a child and say what it took.

A child's peak memory is never reported below that of the process that started it, so nothing
heavy may be imported here, nor by whoever calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Look = Callable[[dict[str, Any]], dict[str, Any]]

_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class ChildError(Exception):
    """A child failed; the message holds what it wrote to stderr."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run of a child took.

    Attributes
    ----------
    cpu_s : float
        User and system time of the process and of the children it waited for, start to exit.
    wall_s : float
        From before its start to after its exit.
    max_rss_bytes : int
        Peak resident memory.
    stages : dict of str to dict
        ``cpu_s`` and ``wall_s`` of the work alone, as a child clocks itself.
    said : dict
        What else the child printed.
    """

    cpu_s: float
    wall_s: float
    max_rss_bytes: int
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)


def run(command: Sequence[str], look: Look | None = None) -> Sample:
    """Run `command` in the root of the checkout to its end.

    Parameters
    ----------
    command : sequence of str
        Path of the program, and its arguments.
    look : callable, optional
        The JSON object that it prints → what of it to keep under ``said``. Without it the output
        is dropped.

    Raises
    ------
    ChildError
        If it exits with another code than 0.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        actions = [
            (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        begin = time.perf_counter()
        child = os.posix_spawn(command[0], list(command), os.environ, file_actions=actions)
        _, status, usage = os.wait4(child, 0)
        wall = time.perf_counter() - begin
        if status:
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            code = os.waitstatus_to_exitcode(status)
            raise ChildError(f"{' '.join(command)}\nexit code {code}\n{text}")
        output.seek(0)
        said = look(json.loads(output.read())) if look else {}
    stages = said.pop("stages", {})
    cpu = usage.ru_utime + usage.ru_stime
    return Sample(cpu, wall, usage.ru_maxrss * _RSS_UNIT, stages, said)


@contextmanager
def compiled_modules() -> Iterator[None]:
    """Let children keep compiled modules in a folder of their own, whatever the environment says.

    pip compiles what it installs. A checkout has nothing compiled at first, and where
    PYTHONDONTWRITEBYTECODE is set, never.
    """
    before = {name: os.environ.pop(name, None) for name in _BYTECODE}
    with tempfile.TemporaryDirectory(prefix="kernelscope-bytecode-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            os.environ |= {name: value for name, value in before.items() if value is not None}


def warm(path: Path) -> None:
    """Read a file to its end, so that it lies in the page cache."""
    with path.open("rb", buffering=0) as file:
        block = bytearray(1 << 20)
        while file.readinto(block):
            pass


_TOUCH = """\
import mmap, sys
size = int(sys.argv[1])
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if hasattr(mmap, "MADV_HUGEPAGE"):
    memory.madvise(mmap.MADV_HUGEPAGE)
for place in range(0, size, mmap.PAGESIZE):
    memory[place] = 1
"""


def touch(size: int) -> None:
    """Write to `size` bytes of memory in a process of its own, and give them back.

    A virtual machine fetches memory from its host when it is first touched, and gives back what
    lies idle for seconds: whoever runs first would pay for that as much again as for its work. In
    huge pages, as kernelscope asks for: memory that comes back in small ones does not count.
    """
    subprocess.run([sys.executable, "-c", _TOUCH, str(size)], check=True)
