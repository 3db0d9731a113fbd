"""What of the profilers, the GPU and the annotations works on this machine.

A check never fails itself: what it cannot find out is ``unknown``, with the reason. A machine that
only analyzes traces lacks most of this, which is no failure.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelscope import units
from kernelscope._version import __version__
from kernelscope.capture.nvtx_versions import heard, package_version, why_unheard
from kernelscope.capture.running import free_bytes
from kernelscope.capture.tools import NCU, NSYS, find_tool, options_of
from kernelscope.errors import ToolError

OK, WARNING, FAILED, MISSING, UNKNOWN = "ok", "warning", "failed", "missing", "unknown"

ROOT = Path("/")
"""Where files of the system are looked for; tests look elsewhere."""

_PATIENCE_S = 20
_ENOUGH_BYTES = 5 << 30
_DRIVER = "libcuda.so.1"
_CUPTI = ("libcupti.so", "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.2")


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one thing.

    Attributes
    ----------
    name : str
        What was looked at.
    status : str
        ``ok``, ``warning``, ``failed``, ``missing`` or ``unknown``.
    found : str
        What there is.
    next : str
        What it means and what to do; empty where there is nothing to do.
    """

    name: str
    status: str
    found: str
    next: str = ""


def checked() -> list[Check]:
    """Return what every check of `CHECKS` says, in their order."""
    return [_safe(name, check) for name, check in CHECKS.items()]


def _safe(name: str, check: Callable[[], tuple[str, str, str]]) -> Check:
    try:
        return Check(name, *check())
    except ToolError as error:
        return Check(name, FAILED, error.message, error.hint)
    except Exception as error:  # noqa: BLE001 - a broken environment must not break the doctor
        return Check(name, UNKNOWN, f"{type(error).__name__}: {error}")


def python() -> tuple[str, str, str]:
    """Which kernelscope runs on which Python?"""
    return (
        OK,
        f"kernelscope {__version__}, Python {platform.python_version()} ({sys.executable})",
        "",
    )


def nsys() -> tuple[str, str, str]:
    """Is Nsight Systems there, and does it run?"""
    tool = find_tool(NSYS)
    if tool is None:
        return MISSING, "not found", (
            "Traces of other machines can be analyzed; to record here, install Nsight Systems or "
            "set KERNELSCOPE_NSYS."
        )  # fmt: skip
    options_of(tool, "profile")
    return OK, str(tool), ""


def ncu() -> tuple[str, str, str]:
    """Is Nsight Compute there, and does it run?"""
    tool = find_tool(NCU)
    if tool is None:
        return MISSING, "not found", (
            "Only counting needs it (profile --counters): install Nsight Compute or set "
            "KERNELSCOPE_NCU."
        )  # fmt: skip
    options_of(tool)
    return OK, str(tool), ""


def nvtx() -> tuple[str, str, str]:
    """Will annotations be recorded?"""
    try:
        installed = version("nvtx")
    except PackageNotFoundError:
        return FAILED, "not installed", "pip install nvtx"
    tool, number = find_tool(NSYS), package_version(installed)
    if tool is None:
        return OK, f"nvtx {installed}", ""
    if number is not None and heard(number, tool) is False:
        return FAILED, f"nvtx {installed}", why_unheard(number, tool)
    if heard(number, tool) is None:
        return UNKNOWN, f"nvtx {installed}", (
            "Whether this nsys hears it is not known: see the self-test."
        )  # fmt: skip
    return OK, f"nvtx {installed}, heard by this nsys", ""


def driver() -> tuple[str, str, str]:
    """Is there a CUDA driver, and for which CUDA?"""
    try:
        library = ctypes.CDLL(_DRIVER)
    except OSError:
        return MISSING, f"no {_DRIVER}", "Nothing runs on a GPU here; traces can be analyzed."
    number = ctypes.c_int(0)
    code = library.cuDriverGetVersion(ctypes.byref(number))
    if code:
        return FAILED, f"cuDriverGetVersion returns {code}", "Reinstall the driver, or reboot."
    text = f"for CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    recorded = ROOT / "proc/driver/nvidia/version"
    if recorded.is_file():
        first = recorded.read_text(encoding="utf-8", errors="replace").splitlines()[0]
        text = f"{' '.join(first.removeprefix('NVRM version:').split())}, {text}"
    return OK, text, ""


def gpus() -> tuple[str, str, str]:
    """Which GPUs are there?"""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return MISSING, "no nvidia-smi", "Nothing runs on a GPU here; traces can be analyzed."
    done = subprocess.run(
        [smi, "--query-gpu=name,compute_cap,memory.total", "--format=csv,noheader"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        timeout=_PATIENCE_S, check=False,
    )  # fmt: skip
    rows = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not rows:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        return FAILED, f"nvidia-smi says: {said[0][:200]}", "Is the driver loaded? Try nvidia-smi."
    return OK, "; ".join(rows), ""


def cupti() -> tuple[str, str, str]:
    """Is CUPTI there, which CUDA programs that profile themselves need?"""
    for name in _CUPTI:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return OK, name, ""
    return MISSING, "no libcupti.so that the loader finds", (
        "nsys and ncu bring their own; only programs that profile themselves (PyTorch's profiler) "
        "need it."
    )  # fmt: skip


def counters() -> tuple[str, str, str]:
    """May hardware counters be read (profile --counters, --gpu-metrics)?"""
    told = ROOT / "proc/driver/nvidia/params"
    if not told.is_file():
        return UNKNOWN, "no NVIDIA driver to ask", ""
    lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
    values = dict(line.partition(":")[::2] for line in lines)
    only = values.get("RmProfilingAdminOnly", "").strip()
    if only == "0":
        return OK, "for every user", ""
    if not only:
        return UNKNOWN, "the driver does not say", ""
    if _administrator():
        return OK, "for administrators, as this user is", ""
    return WARNING, "for administrators only (ERR_NVGPUCTRPERM)", (
        "Ask for: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or run "
        "with CAP_SYS_ADMIN."
    )  # fmt: skip


def _administrator() -> bool:
    if getattr(os, "geteuid", lambda: 1)() == 0:
        return True
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    held = next((line.split()[1] for line in status if line.startswith("CapEff:")), "0")
    return bool(int(held, 16) >> 21 & 1)  # CAP_SYS_ADMIN


def scheduling() -> tuple[str, str, str]:
    """May nsys record when threads are on a core (--cpuctxsw)?"""
    told = ROOT / "proc/sys/kernel/perf_event_paranoid"
    if not told.is_file():
        return UNKNOWN, "the kernel does not say (perf_event_paranoid)", ""
    level = int(told.read_text(encoding="ascii").strip())
    if level <= 2 or _administrator():
        return OK, f"perf_event_paranoid is {level}", ""
    return WARNING, f"perf_event_paranoid is {level}", (
        "nsys records no thread scheduling then, and CPU time is taken from CUDA calls only: "
        "sudo sysctl kernel.perf_event_paranoid=2"
    )  # fmt: skip


def room() -> tuple[str, str, str]:
    """Is there room for what nsys writes while it records?"""
    folder = Path(tempfile.gettempdir())
    free = free_bytes(folder)
    if free is None:
        return UNKNOWN, f"{folder}: nobody says", ""
    text = f"{units.size(free)} in {folder}"
    if free < _ENOUGH_BYTES:
        return WARNING, text, "nsys writes there first: set TMPDIR to where there is more."
    return OK, text, ""


def packages() -> tuple[str, str, str]:
    """Which optional packages are there?"""
    here = {}
    for name in _OPTIONAL:
        try:
            here[name] = version(name)
        except PackageNotFoundError:
            continue
    absent = [f"{name} ({what})" for name, what in _OPTIONAL.items() if name not in here]
    found = ", ".join(f"{name} {number}" for name, number in here.items()) or "none"
    return OK, found, f"not installed: {', '.join(absent)}" if absent else ""


_OPTIONAL: Mapping[str, str] = {
    "ncu-report": "reads .ncu-rep: pip install 'kernelscope[ncu]'",
}
"""Package → what it is for."""

CHECKS: Mapping[str, Callable[[], tuple[str, str, str]]] = {
    "version": python,
    "nsys": nsys,
    "ncu": ncu,
    "nvtx": nvtx,
    "driver": driver,
    "GPUs": gpus,
    "CUPTI": cupti,
    "counters": counters,
    "scheduling": scheduling,
    "room": room,
    "packages": packages,
}
"""Name of each check → the function; a new one is one line."""
