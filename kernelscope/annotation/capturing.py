"""The part of a run that a profiler records: opened and closed around chosen iterations.

nsys can begin with ``cudaProfilerStart`` (``--capture-range=cudaProfilerApi``) or with an NVTX
range (``--capture-range=nvtx --nvtx-capture=capture@kernelscope``); ncu knows the first
(``--profile-from-start off``). Both are done, so that either may be asked for.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelscope.annotation import nvtx_calls, scheme
from kernelscope.annotation.ranges import OpenRange, attributes

MAPS = Path("/proc/self/maps")

_LIBRARY = re.compile(r"lib(cudart|cuda)(-[0-9a-f]+)?\.so(\.[0-9.]+)?")
"""A CUDA runtime, as wheels may rename it (``libcudart-9335f6a2.so.12.0.107``), or the driver."""

_CALLS = {
    "cudart": ("cudaDeviceSynchronize", "cudaProfilerStart", "cudaProfilerStop"),
    "cuda": ("cuCtxSynchronize", "cuProfilerStart", "cuProfilerStop"),
}


class CaptureWarning(UserWarning):
    """What should be recorded cannot be marked for every profiler."""


def open_capture() -> Callable[[], None]:
    """Begin what a profiler records; return the function that ends it.

    The current device is waited for first, and again at the end, so that the work that the
    recorded iterations launched is recorded, and no work from before.

    Warns
    -----
    CaptureWarning
        If no CUDA library that this process has loaded takes the call: only the NVTX range
        marks the part to be recorded then.
    """
    listening = nvtx_calls.domain(scheme.DOMAIN)
    stop = _started()
    held = (
        OpenRange(listening, attributes(listening, scheme.CAPTURE, "capture"))
        if listening is not None
        else None
    )

    def close() -> None:
        if held is not None:
            held.end()
        stop()

    return close


def _started() -> Callable[[], None]:
    """Start the profiler through the first library that takes it; return what stops it."""
    for library, names in _loaded():
        try:
            wait, start, stop = (getattr(library, name) for name in names)
        except AttributeError:
            continue
        wait()
        if start() == 0:

            def close(wait: Callable[[], int] = wait, stop: Callable[[], int] = stop) -> None:
                wait()
                stop()

            return close
    warnings.warn(
        "No CUDA library that this process has loaded could start the profiler: a capture with "
        "--capture-range=cudaProfilerApi will be empty. Use --capture-range=nvtx "
        "--nvtx-capture=capture@kernelscope, or begin after the first CUDA call.",
        CaptureWarning,
        stacklevel=5,  # the loop over the iterations
    )
    return lambda: None


def _loaded() -> Iterator[tuple[ctypes.CDLL, tuple[str, str, str]]]:
    """Yield the CUDA libraries of this process, runtimes first, and the names of their calls."""
    try:
        maps = MAPS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # not Linux
        return
    found: dict[str, str] = {}
    for line in maps.splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if match := _LIBRARY.fullmatch(path.rpartition("/")[2]):
            found[path] = match[1]
    for path in sorted(found, key=lambda path: (found[path] != "cudart", path)):
        try:
            library = ctypes.CDLL(path)  # it is loaded already: this finds it
        except OSError:
            continue
        yield library, _CALLS[found[path]]
