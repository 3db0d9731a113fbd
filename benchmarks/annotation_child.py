"""What annotations cost, in a process of its own: ``python -m benchmarks.annotation_child LOOPS``.

Prints one line of JSON: nanoseconds a loop of each case, and by how much memory grew over a
million iterations. A loop is a Python ``for`` around the case; its own cost is in every figure.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nvtx

import kernelscope as ks
from kernelscope.annotation import nvtx_calls

MANY = 1_000_000


def entered(held: AbstractContextManager[Any]) -> Callable[[int], None]:
    """Return a loop that enters and leaves one object."""

    def loop(count: int) -> None:
        for _ in range(count):
            with held:
                pass

    return loop


def _phase_by_name(count: int) -> None:
    for _ in range(count):
        with ks.phase("forward"):
            pass


def _nvtx_each_time(count: int) -> None:
    for _ in range(count):
        with nvtx.annotate("forward", domain="peer"):
            pass


def _plain() -> None:
    pass


_annotated = ks.annotate("called")(_plain)


def _function(count: int) -> None:
    for _ in range(count):
        _annotated()


def _bare_loop(count: int) -> None:
    for _ in range(count):
        pass


def _iterations(count: int) -> None:
    for _ in ks.iterations(range(count), batch_size=64):
        pass


def _iterations_with_profile(count: int) -> None:
    for _ in ks.iterations(range(count), batch_size=64, profile=range(1 << 60, 1 << 61)):
        pass


CASES: dict[str, Callable[[int], None]] = {
    "bare_loop": _bare_loop,
    "nullcontext": entered(contextlib.nullcontext()),
    "reused_phase": entered(ks.phase("forward")),
    "phase_by_name": _phase_by_name,
    "annotated_function": _function,
    "iterations": _iterations,
    "iterations_with_profile": _iterations_with_profile,
    "nvtx_annotate_reused": entered(nvtx.annotate("forward", domain="peer")),
    "nvtx_annotate_each_time": _nvtx_each_time,
}
"""What is timed; the two of `nvtx` are there to compare."""


def timed(loops: int) -> dict[str, float]:
    """Return nanoseconds a loop of each case: the best of three, one case after the other."""
    found: dict[str, float] = {}
    for name, case in CASES.items():
        times = []
        for _ in range(3):
            began = time.perf_counter_ns()
            case(loops)
            times.append(time.perf_counter_ns() - began)
        found[name] = min(times) / loops
    return found


def growth(count: int) -> int:
    """Return by how many bytes memory grows over that many annotated iterations."""
    _iterations(1000)
    before = _resident()
    for number in ks.iterations(range(count), batch_size=64):
        with ks.phase("forward"):
            if number % 100 == 0:
                ks.mark("mark", payload=number)
    return _resident() - before


def _resident() -> int:
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a peak: it shows growth as well


def _rounds(loops: int, count: int) -> Iterator[dict[str, float]]:
    timed(max(loops // 10, 1))  # a warm-up
    for _ in range(count):
        yield timed(loops)


if __name__ == "__main__":
    given, rounds = map(int, sys.argv[1:])
    print(
        json.dumps(
            {
                "nvtx": version("nvtx"),
                "tool_listens": nvtx_calls.domain() is not None,
                "rounds": list(_rounds(given, rounds)),
                "growth_bytes": growth(min(MANY, 10 * given)),
            }
        )
    )
