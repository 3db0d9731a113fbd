"""Annotations where no tool listens: they do nothing, cost nothing, and are as strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.annotation import Range
from kernelscope.annotation.nvtx_calls import number

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_stands_between_the_loop_and_its_loader() -> None:
    loader = iter([1, 2])

    assert iter(ks.iterations(loader, batch_size=4)) is loader


def test_a_function_stays_itself() -> None:
    def step() -> None: ...

    assert ks.annotate(step) is step
    assert ks.annotate("name", payload=1)(step) is step


def test_ranges_are_one_object_that_hides_no_exception() -> None:
    assert ks.phase("a") is ks.phase("b", payload=3)
    with pytest.raises(KeyError), ks.phase("a"):
        raise KeyError
    with pytest.raises(KeyError), ks.start_range("a"):
        raise KeyError
    ks.start_range("a").end()
    assert isinstance(ks.phase("a"), Range)


def test_the_length_is_the_loaders() -> None:
    assert len(ks.iterations([1, 2, 3])) == 3
    with pytest.raises(TypeError, match="list_iterator"):
        len(ks.iterations(iter([1])))


@pytest.mark.parametrize("profile", [range(0), range(0, 10, 2), range(3, 10), range(9, 5, -1)])
def test_a_profile_that_cannot_be(profile: range) -> None:
    with pytest.raises(ValueError, match=r"range\(20, 30\)"):
        ks.iterations([1], profile=profile, start=5)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(3, 3), (True, 1), (np.int32(-4), -4), (np.float32(0.5), 0.5), (2.5, 2.5), (None, None)],
)
def test_payloads(payload: Any, expected: float | None) -> None:
    found = number(payload)

    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("payload", "error"), [("3", TypeError), ([1], TypeError), (1 << 63, ValueError)]
)
def test_payloads_that_are_none(payload: Any, error: type[Exception]) -> None:
    for call in (ks.phase, ks.mark, ks.start_range, lambda *a, **k: ks.annotate(*a, **k)(number)):
        with pytest.raises(error):
            call("name", payload=payload)


def test_what_cannot_be_annotated() -> None:
    with pytest.raises(TypeError, match="Range'> is none"):
        ks.annotate(Range)
    with pytest.raises(TypeError, match="right above a def"):
        ks.annotate(staticmethod(number))


def test_the_package_imports_nothing_else_of_the_project() -> None:
    program = """
import sys
before = set(sys.modules)
import kernelscope.annotation
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(n for n in sys.modules if n.startswith("kernelscope")))
print(*sorted(new - set(sys.stdlib_module_names) - {"kernelscope"}))
print("asyncio" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours, foreign, asyncio = done.stdout.split("\n")[:3]

    assert all(
        name in ("kernelscope", "kernelscope._version") or name.startswith("kernelscope.annotation")
        for name in ours.split()
    )
    assert foreign == ""
    assert asyncio == "False"
