"""GPU kernel-level performance analysis: numbers that are right, bounded and explained.

>>> import kernelscope as ks
>>> trace = ks.read("trace.sqlite")             # doctest: +SKIP
>>> trace.kernels.df                            # doctest: +SKIP
>>> ks.analyze(trace).kernels.df                # doctest: +SKIP

Names are loaded when they are first used, so that importing kernelscope costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelscope._version import __version__

if TYPE_CHECKING:
    from kernelscope import annotation, errors, metrics
    from kernelscope.annotation.functions import annotate
    from kernelscope.annotation.loop import iterations
    from kernelscope.annotation.ranges import mark, phase, start_range
    from kernelscope.device import Device, Peak, devices, find_device
    from kernelscope.metrics.analysis import Analysis, analyze
    from kernelscope.parsers import read
    from kernelscope.parsers.counter_formats import read_counters
    from kernelscope.parsers.counter_set import CounterSet
    from kernelscope.report.sql import sql
    from kernelscope.trace import Table, Trace

_LAZY = {
    "Analysis": "kernelscope.metrics.analysis",
    "CounterSet": "kernelscope.parsers.counter_set",
    "Table": "kernelscope.trace",
    "Trace": "kernelscope.trace",
    "Device": "kernelscope.device",
    "Peak": "kernelscope.device",
    "analyze": "kernelscope.metrics.analysis",
    "annotate": "kernelscope.annotation.functions",
    "devices": "kernelscope.device",
    "find_device": "kernelscope.device",
    "iterations": "kernelscope.annotation.loop",
    "mark": "kernelscope.annotation.ranges",
    "phase": "kernelscope.annotation.ranges",
    "read": "kernelscope.parsers",
    "read_counters": "kernelscope.parsers.counter_formats",
    "sql": "kernelscope.report.sql",
    "start_range": "kernelscope.annotation.ranges",
}
_MODULES = ("annotation", "errors", "metrics")

__all__ = [
    "Analysis",
    "CounterSet",
    "Device",
    "Peak",
    "Table",
    "Trace",
    "__version__",
    "analyze",
    "annotate",
    "annotation",
    "devices",
    "errors",
    "find_device",
    "iterations",
    "mark",
    "metrics",
    "phase",
    "read",
    "read_counters",
    "sql",
    "start_range",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        # Kept, so that a training loop pays for this once.
        return globals().setdefault(name, getattr(import_module(_LAZY[name]), name))
    if name in _MODULES:
        return import_module(f"kernelscope.{name}")
    raise AttributeError(f"module 'kernelscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
