"""The command line of Nsight Systems, for whichever version is installed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelscope.annotation.scheme import DOMAIN
from kernelscope.capture.tools import Version
from kernelscope.errors import ToolError

WHOLE, CUDA, NVTX = "whole", "cuda", "nvtx"
CAPTURES = (WHOLE, CUDA, NVTX)
"""What to record: all of the run; between cudaProfilerStart and Stop; inside the NVTX range that
``kernelscope.iterations(…, profile=…)`` opens."""

GRAPHS = ("node", "graph")
CAPTURE_RANGE = "capture"
"""Name of the NVTX range that opens a capture, in the domain of our annotations."""

REPORTS = (".nsys-rep", ".qdrep")
"""What the report is called, from 2021.4 on, and before."""

UNFINISHED = ".qdstrm"
"""What is left where nsys does not find the importer that makes the report."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What nsys shall record.

    Attributes
    ----------
    trace : str
        What to trace, as ``--trace`` takes it.
    capture : str
        One of `CAPTURES`.
    graphs : str
        Whether CUDA graphs are recorded node by node, so that their kernels are seen, or whole.
    gpu_metrics : bool
        Whether GPUs are sampled, which needs a permission.
    extra : tuple of str
        Further options, as the user gave them. They replace ours of the same name, since nsys
        takes an option once only.
    scheduling : bool
        Whether the scheduling of threads is recorded.
    """

    trace: str = "cuda,nvtx,osrt"
    capture: str = WHOLE
    graphs: str = "node"
    gpu_metrics: bool = False
    extra: tuple[str, ...] = ()
    scheduling: bool = True


def scheduling_hangs(nsys: Version | None, kernel: str) -> bool:
    """Return whether this nsys is known not to end when it records scheduling.

    Tried on Linux 6.18: nsys 2022.4.2 with ``--cpuctxsw=process-tree`` waits for ever behind the
    end of the program; 2020.4.3 and 2023.4.4 do not, nor does any without. Which versions and
    kernels between share that is not known, so only what was seen is avoided, from Linux 6 on.

    Parameters
    ----------
    nsys : tuple of three int or None
        Its version.
    kernel : str
        The release of the operating system, as ``platform.release()`` says it.
    """
    major = kernel.partition(".")[0]
    return nsys == (2022, 4, 2) and major.isdigit() and int(major) >= 6


def profile_command(
    nsys: Path, options: Collection[str], wanted: Recording, output: Path, program: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the command that records a program, and what this nsys cannot do of what is wanted.

    Parameters
    ----------
    nsys : Path
        The executable.
    options : collection of str
        The options that it lists, as :func:`kernelscope.capture.tools.options_of` returns them.
    wanted : Recording
        What to record.
    output : Path
        The report without its suffix.
    program : sequence of str
        The program and its arguments.

    Raises
    ------
    ToolError
        If this nsys cannot do what was asked for at all.
    """
    command = [f"--trace={wanted.trace}"]
    lacks: list[str] = []
    # Samples of the CPU cost overhead and serve no figure of ours; scheduling does (overlap).
    threads = "process-tree" if wanted.scheduling else "none"
    for option in ("--sample=none", f"--cpuctxsw={threads}"):
        if _name(option) in options:
            command.append(option)
        else:
            lacks.append(f"it has no {_name(option)}")
    command += _graphs(options, wanted, lacks)
    command += _capture(options, wanted)
    if wanted.gpu_metrics:
        known = [name for name in _GPU_METRICS if name in options]
        if not known:
            raise ToolError(
                "This nsys does not sample GPU metrics: it has no --gpu-metrics-devices.",
                "Leave --gpu-metrics out, or use nsys 2021.2 or newer.",
            )
        command.append(f"{known[0]}=all")
    theirs = {_name(option) for option in wanted.extra}
    if "--output" in theirs:
        raise ToolError(
            "--nsys-option=--output: where the report goes is not nsys's to choose here.",
            "Name the folder: kernelscope profile --output FOLDER",
        )
    ours = [option for option in command if _name(option) not in theirs]
    made = [str(nsys), "profile", *ours, *wanted.extra, f"--output={output}"]
    return [*made, *program], lacks


_GPU_METRICS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""Newer versions, then older ones."""


def _name(option: str) -> str:
    return option.partition("=")[0]


def _graphs(options: Collection[str], wanted: Recording, lacks: list[str]) -> list[str]:
    if "--cuda-graph-trace" in options and "cuda" in wanted.trace.split(","):
        return [f"--cuda-graph-trace={wanted.graphs}"]
    if wanted.graphs == "graph":
        lacks.append("it has no --cuda-graph-trace, and records graphs node by node")
    return []


def _capture(options: Collection[str], wanted: Recording) -> list[str]:
    if wanted.capture == WHOLE:
        return []
    if "--capture-range" not in options:
        raise ToolError(
            "This nsys has no --capture-range.", "Record the whole run: leave --capture out."
        )
    found = ["--capture-range=cudaProfilerApi"]
    if wanted.capture == NVTX:
        found = ["--capture-range=nvtx", f"--nvtx-capture={CAPTURE_RANGE}@{DOMAIN}"]
    # By default the program is ended when the range ends.
    if "--capture-range-end" in options:
        return [*found, "--capture-range-end=stop"]
    if "--stop-on-range-end" in options:
        return [*found, "--stop-on-range-end=true", "--kill=none"]
    return found


def export_command(
    nsys: Path, report: Path, database: Path, options: Collection[str] = ()
) -> list[str]:
    """Return the command that turns a report into the SQLite file that kernelscope reads.

    Where nsys can, NCCL's payloads come along: they hold the bytes and ranks of its calls.
    """
    blobs = ["--include-blobs=true"] if "--include-blobs" in options else []
    return [str(nsys), "export", "--type=sqlite", *blobs, f"--output={database}", str(report)]
