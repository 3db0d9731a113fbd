"""A real Nsight Systems records exactly the ranges that a program opened, and we read them all.

Debian's nsys 2022.4.2 needs no GPU for NVTX. It is unpacked into a folder, and never installed:
its dependencies would bring in a CUDA driver library. It hears `nvtx` up to 0.2.11 only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.trace import Table
from tests.annotation.recorder import ROOT, recorded

pytestmark = pytest.mark.slow

PROGRAM = """
    import asyncio, threading, warnings
    import kernelscope as ks
    warnings.simplefilter("ignore", ks.annotation.CaptureWarning)

    @ks.annotate
    def forward():
        with ks.phase("conv", path="net.conv", inputs=[((2, 3), "float32")], flops=10**12):
            pass

    for batch in ks.iterations(range(12), batch_size=64, profile=range(4, 8)):
        forward()
        with ks.phase("own", category="mine", payload=2.5), ks.phase("x", domain="other"):
            pass

    async def task(name):
        with ks.phase(name):
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(task("a"), task("b"))

    asyncio.run(main())
    handle = ks.start_range("from one thread to another")
    thread = threading.Thread(target=handle.end)
    thread.start()
    thread.join()
    ks.mark("end", payload=1)
"""


def captured(libraries: Path, tmp_path: Path, *options: str, path: Sequence[Path] = ()) -> Table:
    """Run the program under nsys, export what it recorded, and return the ranges that are read."""
    system = libraries / "x86_64-linux-gnu"
    host = libraries / "nsight-systems" / "host-linux-x64"
    command = system / "nsight-systems" / "target-linux-x64" / "nsys"
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT))),
        "LD_LIBRARY_PATH": f"{system}{os.pathsep}{host}",
        "TMPDIR": str(tmp_path),
    }

    def run(*arguments: str | Path) -> None:
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    quiet = ("--trace=nvtx,osrt", "--sample=none", "--cpuctxsw=none")
    run(command, "profile", *quiet, *options, "--output=t", sys.executable, "program.py")
    # Unpacked anywhere but in /usr/lib, nsys does not find its own importer.
    if not (tmp_path / "t.nsys-rep").exists():
        run(host / "QdstrmImporter", "-i", "t.qdstrm", "-o", "t.nsys-rep")
    run(command, "export", "--type=sqlite", "--output=t.sqlite", "t.nsys-rep")
    return ks.read(tmp_path / "t.sqlite").ranges


def told(ranges: Table) -> list[tuple[Any, ...]]:
    """Return (domain, name, style, payload) in the order in which the ranges were opened."""
    order = np.argsort(ranges["start_ns"], kind="stable").tolist()
    columns = [ranges.values(n) for n in ("domain", "name", "style", "payload_int")]
    return [tuple(column[row] for column in columns) for row in order]


def test_a_capture_holds_exactly_what_was_opened(
    nsys: Path, audible: list[Path], tool: Path, tmp_path: Path
) -> None:
    opened = [
        (
            call.domain,
            call.message.partition(" {ks1 ")[0],
            "push_pop" if call.call == "push" else "start_end",
            call.payload if isinstance(call.payload, int) else None,
        )
        for call in recorded(tool, PROGRAM)
        if call.call in ("push", "start") and call.message != "capture"
    ]
    ranges = captured(nsys, tmp_path, path=audible)

    assert len(opened) == 12 * 6 + 4
    assert told(ranges) == opened
    assert ranges["closed"].all()
    said = {
        ranges.values(n)[told_at]
        for told_at in np.flatnonzero(np.array(ranges.values("name")) == "conv").tolist()
        for n in ("module_path", "input_shapes", "input_dtypes", "flops_model")
    }
    assert said == {"net.conv", "[2,3]", "float32", 10**12}
    elsewhere = [t for t in ranges.values("end_thread_id") if t is not None]
    assert len(elsewhere) == 1


def test_the_nvtx_capture_range_records_the_chosen_iterations(
    nsys: Path, audible: list[Path], tmp_path: Path
) -> None:
    options = (
        "--capture-range=nvtx", "--nvtx-capture=capture@kernelscope", "--capture-range-end=stop",
    )  # fmt: skip
    ranges = captured(nsys, tmp_path, *options, path=audible)
    numbers = [payload for _, name, _, payload in told(ranges) if name == "iteration"]

    assert numbers == [4, 5, 6, 7]
    assert len(ranges) == 4 * 6
    assert set(ranges.values("role")) == {"iteration", "data loading", "phase", "function", None}


def test_newer_nvtx_is_not_heard_by_it(nsys: Path, tmp_path: Path) -> None:
    assert len(captured(nsys, tmp_path)) == 0
