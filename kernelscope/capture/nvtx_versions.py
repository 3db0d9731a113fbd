"""Which versions of the ``nvtx`` package a version of Nsight Systems records."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from kernelscope.capture.tools import Tool, Version, dotted

FIRST_UNHEARD: Version = (0, 2, 12)
"""From here on ``nvtx`` asks the tool for a table of functions that older tools do not fill in."""

LAST_DEAF: Version = (2023, 4, 4)
"""Tried with Debian's packages: nsys 2022.4.2 and 2023.4.4 record the ranges of nvtx 0.2.11, and
none of 0.2.12, 0.2.13 and 0.2.17. Later versions of nsys were not at hand."""

_ASK = "from importlib.metadata import version; print(version('nvtx'))"


def heard(nvtx: Version | None, nsys: Tool) -> bool | None:
    """Return whether ranges of the ``nvtx`` package are recorded; None where nobody tried."""
    if nvtx is None or nsys.version is None:
        return None
    if nvtx < FIRST_UNHEARD:
        return True
    return False if nsys.version <= LAST_DEAF else None


def why_unheard(nvtx: Version, nsys: Tool) -> str:
    """Say that ranges are not recorded, and what to do."""
    tool = "this nsys" if nsys.version is None else f"nsys {dotted(nsys.version)}"
    return (
        f"{tool} records no range of nvtx {dotted(nvtx)}: it hears versions before "
        f"{dotted(FIRST_UNHEARD)}. Use a newer nsys, or: pip install 'nvtx<{dotted(FIRST_UNHEARD)}'"
    )


def nvtx_of(program: Sequence[str]) -> Version | None:
    """Return the version of ``nvtx`` that a program's Python would import; None where unknown.

    Parameters
    ----------
    program : sequence of str
        The command. Only where it begins with a Python interpreter can that be asked.
    """
    name = program[0].rsplit("/", 1)[-1] if program else ""
    if not name.startswith("python"):
        return None
    try:
        done = subprocess.run(
            [program[0], "-c", _ASK], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return package_version(done.stdout) if done.returncode == 0 else None


def package_version(text: str) -> Version | None:
    """Return ``0.2.11`` as a tuple; None for what is no version of three numbers."""
    parts = text.strip().split(".")[:3]
    if len(parts) < 3 or not all(part.isdigit() for part in parts):
        return None
    major, minor, patch = map(int, parts)
    return major, minor, patch
