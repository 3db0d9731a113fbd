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
    from kernelscope import errors, metrics
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
    "devices": "kernelscope.device",
    "find_device": "kernelscope.device",
    "read": "kernelscope.parsers",
    "read_counters": "kernelscope.parsers.counter_formats",
    "sql": "kernelscope.report.sql",
}
_MODULES = ("errors", "metrics")

__all__ = [
    "Analysis",
    "CounterSet",
    "Device",
    "Peak",
    "Table",
    "Trace",
    "__version__",
    "analyze",
    "devices",
    "errors",
    "find_device",
    "metrics",
    "read",
    "read_counters",
    "sql",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _MODULES:
        return import_module(f"kernelscope.{name}")
    raise AttributeError(f"module 'kernelscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
