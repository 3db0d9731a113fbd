"""Nsight Systems' own report files: exported through `nsys`, where it is at hand."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelscope.errors import DamagedFileError, NeedsExportError


@contextmanager
def exported(report: Path) -> Iterator[Path]:
    """Yield a temporary SQLite export of a ``.nsys-rep`` or ``.qdrep`` report.

    Raises
    ------
    NeedsExportError
        If ``nsys`` is not on PATH; the hint is the command to run where it is.
    DamagedFileError
        If ``nsys`` cannot export the report; the message holds what it printed.
    """
    command = ["nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "--output"]
    nsys = shutil.which("nsys")
    if nsys is None:
        there = shlex.join([*command, str(report.with_suffix(".sqlite")), str(report)])
        raise NeedsExportError(
            f"{report} is an Nsight Systems report, and there is no nsys on PATH to export it.",
            f"Where Nsight Systems is installed, run: {there}",
        )
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        database = Path(folder) / f"{report.stem}.sqlite"
        done = subprocess.run(
            [nsys, *command[1:], str(database), str(report)],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode or not database.exists():
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
            raise DamagedFileError(
                f"nsys could not export {report} (exit code {done.returncode}); it said: {said[0]}",
                "Use the nsys version that recorded the report, or a newer one.",
            )
        yield database
