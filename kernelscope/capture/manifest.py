"""What a folder of results holds, and how it came about: ``manifest.json``."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelscope._version import __version__
from kernelscope.capture.tools import Tool, dotted

NAME = "manifest.json"

DONE, FAILED, INTERRUPTED, SKIPPED, RUNNING = "done", "failed", "interrupted", "skipped", "running"

_TOLD = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE",
    "MASTER_ADDR", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
    "SLURM_NODELIST",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "CUDA_LAUNCH_BLOCKING",
    "NVTX_INJECTION64_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
)  # fmt: skip
"""Variables of the environment that change what a run does, or say which of several it was."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a profile.

    Attributes
    ----------
    name : str
        ``record``, ``import``, ``export``, ``count``, ``print``, ``analyze``.
    command : tuple of str
        What was run; empty for what kernelscope does itself.
    status : str
        ``done``, ``failed``, ``interrupted``, ``skipped`` or, where nothing came after it,
        ``running``.
    exit_code : int or None
        Of the command; negative for a signal.
    started_at : str
        UTC, ISO 8601.
    seconds : float or None
        How long it took.
    note : str
        What there is to say of it.
    """

    name: str
    command: tuple[str, ...] = ()
    status: str = RUNNING
    exit_code: int | None = None
    started_at: str = ""
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that there is to tell of one folder."""

    folder: Path
    program: tuple[str, ...]
    tools: Mapping[str, Tool] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return what is written."""
        present = sorted(path for path in self.folder.iterdir() if path.is_file())
        return {
            "manifest_version": 1,
            "kernelscope": __version__,
            "written_at": now(),
            "host": platform.node(),
            "folder": str(self.folder.resolve()),
            "working_directory": os.getcwd(),
            "program": list(self.program),
            "environment": {name: os.environ[name] for name in _TOLD if name in os.environ},
            "tools": {
                name: {
                    "path": str(tool.path),
                    "version": None if tool.version is None else dotted(tool.version),
                }
                for name, tool in self.tools.items()
            },
            "steps": [
                {**asdict(step), "command_line": shlex.join(step.command)} for step in self.steps
            ],
            "notes": list(self.notes),
            "files": [
                {"name": path.name, "bytes": path.stat().st_size}
                for path in present
                if path.name != NAME
            ],
        }


def write(manifest: Manifest) -> str | None:
    """Write ``manifest.json`` into its folder, whole or not at all; return what went wrong."""
    path = manifest.folder / NAME
    unfinished = path.with_suffix(".json.part")
    try:
        text = json.dumps(manifest.as_json(), indent=2, ensure_ascii=False)
        unfinished.write_text(f"{text}\n", encoding="utf-8", errors="surrogateescape")
        unfinished.replace(path)
    except OSError as error:
        return f"{path} could not be written: {error.strerror or error}"
    return None


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def files(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return the files of a folder with one of these suffixes that hold anything."""
    found = [path for path in folder.iterdir() if path.suffix in suffixes]
    return sorted(path for path in found if path.is_file() and path.stat().st_size)
