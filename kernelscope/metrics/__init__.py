"""Trace → table; one module per question.

Every metric takes a :class:`kernelscope.trace.Trace` and, where it speaks of a stretch of time, a
:class:`~kernelscope.metrics.window.Window` (the whole trace by default), changes nothing, and
returns a :class:`kernelscope.trace.Table`.

>>> import kernelscope as ks
>>> ks.metrics.gaps(ks.read("trace.sqlite")).df             # doctest: +SKIP
"""

from __future__ import annotations

from kernelscope.metrics.analysis import METRICS, Analysis, analyze
from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.copies import copies, copies_by_kind
from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_identity import device_ordinals
from kernelscope.metrics.device_peaks import peaks
from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.device_time import device_processes, devices
from kernelscope.metrics.health import capture_cost, health
from kernelscope.metrics.kernels import kernels, kernels_by_device, launch_shapes
from kernelscope.metrics.launch_occupancy import execution_occupancy
from kernelscope.metrics.window import Window, whole

__all__ = [
    "METRICS",
    "Analysis",
    "Window",
    "analyze",
    "api_calls",
    "capture_cost",
    "copies",
    "copies_by_kind",
    "device_ordinals",
    "device_processes",
    "devices",
    "execution_occupancy",
    "gaps",
    "health",
    "kernels",
    "kernels_by_device",
    "launch_shapes",
    "peaks",
    "streams",
    "whole",
]
