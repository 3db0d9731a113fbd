"""NVTX ranges around training iterations, their phases and functions.

>>> import kernelscope as ks
>>> for batch in ks.iterations(loader, batch_size=64, profile=range(20, 30)):  # doctest: +SKIP
...     with ks.phase("forward"):
...         loss = model(batch)

Where no tool listens, ranges cost next to nothing. The package imports the standard library and
`nvtx` alone, and `nvtx` when the first range is made. What the ranges say, a trace's reader finds
in ``docs/annotation-scheme.md``.
"""

from __future__ import annotations

from kernelscope.annotation.capturing import CaptureWarning
from kernelscope.annotation.functions import annotate
from kernelscope.annotation.loop import Iterations, iterations
from kernelscope.annotation.ranges import (
    NestingWarning,
    OpenRange,
    Range,
    mark,
    phase,
    start_range,
)

__all__ = [
    "CaptureWarning",
    "Iterations",
    "NestingWarning",
    "OpenRange",
    "Range",
    "annotate",
    "iterations",
    "mark",
    "phase",
    "start_range",
]
