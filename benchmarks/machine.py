"""The machine and the programs that figures come from."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT
from kernelscope import __version__

PACKAGES = ("numpy", "pandas", "click")


def machine() -> dict[str, Any]:
    """Describe the machine: CPU, cores that may be used, memory, system, load before the start."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cores_of_machine": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": _system(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def versions() -> dict[str, str | None]:
    """Return the versions of what is measured; None for what is not here."""
    found: dict[str, str | None] = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        "nsys": _said("nsys", "--version"),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def kernelscope() -> dict[str, str | bool | None]:
    """Return the version of kernelscope, and its commit where the checkout knows it."""
    # Results that lie there uncommitted do not make the code another.
    return {
        "version": __version__,
        "commit": _said("git", "rev-parse", "HEAD"),
        "changed": bool(_said("git", "status", "--short", "--", "kernelscope", "benchmarks/*.py")),
    }


def short_cpu(name: str) -> str:
    """Return the name of a CPU as part of a file name: ``amd-epyc-9654``."""
    plain = re.sub(r"\(\w+\)|\b(cpu|processor|\d+-core)\b|@.*", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    if found:
        return found[1].strip()
    return _said("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()


def _system() -> str:
    """Return the system without what a provider adds to its kernel's version."""
    names = [f"{platform.system()} {platform.release().split('-')[0]}"]
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        names.append(platform.freedesktop_os_release()["PRETTY_NAME"])
    return ", ".join((*names, " ".join(platform.libc_ver()))).rstrip(" ,")


def _said(program: str, *arguments: str) -> str | None:
    """Return what a program prints; None if it is not here, or fails."""
    path = shutil.which(program)
    if path is None:
        return None
    done = subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
