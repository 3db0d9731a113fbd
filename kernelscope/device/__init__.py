"""GPUs: what they are, what a multiprocessor holds, and what they can do at most."""

from __future__ import annotations

from kernelscope.device.gpus import Device, Peak, devices, find_device
from kernelscope.device.limits import SmLimits, sm_limits

__all__ = ["Device", "Peak", "SmLimits", "devices", "find_device", "sm_limits"]
