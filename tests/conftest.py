"""What holds for every test: a fixed terminal, Hypothesis profiles, honest skips."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator

import hypothesis
import pytest

pytest_plugins = ["pytester", "tests.real_nsys", "tests.skips"]

# A shared machine makes any deadline a coin toss; in CI a run must also be repeatable.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
_IN_CI = bool(os.environ.get("CI") or os.environ.get("KERNELSCOPE_CI"))
hypothesis.settings.load_profile("ci" if _IN_CI else "here")


@pytest.fixture(scope="session", autouse=True)
def _fixed_terminal() -> Iterator[None]:
    """Pin what a command line makes its output depend on: 100 columns, no colour."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.setenv("LINES", "40")
        patch.setenv("NO_COLOR", "1")
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            patch.delenv(name, raising=False)
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := _why_no_gpu()):
        pytest.skip(f"no GPU: {reason}")


@functools.cache
def _why_no_gpu() -> str:
    """Return why no CUDA device can be used; empty where one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "the CUDA driver library is not here"
    if code := driver.cuInit(0):
        return f"cuInit returned {code}"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value else "the CUDA driver sees no device"
