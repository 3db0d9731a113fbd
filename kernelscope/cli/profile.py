"""``kernelscope profile``: record a program, count its kernels, and analyze what was recorded."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelscope.cli.formats import Request, render
from kernelscope.cli.output import emit

if TYPE_CHECKING:
    from kernelscope.capture.manifest import Manifest
    from kernelscope.capture.profiling import Plan
    from kernelscope.metrics.analysis import Analysis
    from kernelscope.trace import Trace

_CAPTURES = ("whole", "cuda", "nvtx")
_GRAPHS = ("node", "graph")


@click.command("profile")
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENT]...")
@click.option(
    "--output",
    "-o",
    metavar="FOLDER",
    help="Where everything goes; profile-DATE-TIME by default. %q{NAME} stands for a variable of "
    "the environment, %h for the host, %p for the process: one folder for each rank.",
)
@click.option(
    "--capture",
    type=click.Choice(_CAPTURES),
    default="whole",
    show_default=True,
    help="What to record: all of it; between cudaProfilerStart and Stop; or the NVTX range that "
    "kernelscope.iterations(…, profile=range(20, 30)) opens, which does both.",
)
@click.option(
    "--trace",
    metavar="LIST",
    default="cuda,nvtx,osrt",
    show_default=True,
    help="What nsys traces. Add cublas, cudnn or mpi for their calls.",
)
@click.option(
    "--graphs",
    type=click.Choice(_GRAPHS),
    default="node",
    show_default=True,
    help="CUDA graphs: their kernels one by one, or each graph as one opaque unit, at less cost.",
)
@click.option(
    "--gpu-metrics", is_flag=True, help="Sample the GPUs' own counters; needs permission."
)
@click.option(
    "--counters",
    "counting",
    is_flag=True,
    help="Run the program a second time under ncu, and count FLOPs and bytes of the kernels that "
    "take most time. Communication kernels are left out; clocks and caches are left alone.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="N",
    help="With --counters: count at most so many launches.",
)
@click.option(
    "--nsys-option",
    "extra",
    multiple=True,
    metavar="OPTION",
    help="Passed on to nsys profile, such as --nsys-option=--sample=process-tree. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print the commands, and run nothing.")
@click.option("--no-analyze", is_flag=True, help="Record and export only.")
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    program: tuple[str, ...],
    output: str | None,
    capture: str,
    trace: str,
    graphs: str,
    gpu_metrics: bool,
    counting: bool,
    launches: int,
    extra: tuple[str, ...],
    dry_run: bool,
    no_analyze: bool,
) -> int:
    """Record a program with Nsight Systems, and say where its time goes.

    Runs PROGRAM under nsys, exports the trace to SQLite, with --counters runs it again under ncu,
    and analyzes. Everything lands in one folder: the report, the export, the counters, the
    analysis, and manifest.json, which says what was run, with which versions, and how it ended.

    The exit code is that of the program where that fails; what was recorded is analyzed anyway.

    \b
    Examples:
      kernelscope profile -- python train.py --epochs 1
      kernelscope profile --capture cuda --counters -- python train.py
      srun kernelscope profile -o run/rank%q{SLURM_PROCID} -- python train.py
      kernelscope profile --dry-run -- python train.py
    """  # noqa: D301 - click wants the control character
    from kernelscope.capture import profiling  # noqa: PLC0415 - not for --help
    from kernelscope.capture.nsys_command import Recording  # noqa: PLC0415

    folder = profiling.named_folder(output or f"profile-{datetime.now():%Y%m%d-%H%M%S}")
    recording = Recording(trace, capture, graphs, gpu_metrics, extra)
    plan = profiling.planned(folder, program, recording, counting=counting)
    if dry_run:
        emit(_commands(plan, analyzing=not no_analyze), None)
        return 0
    so_far = profiling.prepared(plan)
    for note in so_far.notes:
        _say(f"! {note}")
    so_far = profiling.recorded(plan, so_far, _say)
    database = profiling.need_trace(plan, so_far)
    for step in so_far.steps:
        if step.status != "done":
            _say(f"! {step.name} {step.status} ({step.note or 'ended early'}); going on.")
    if counting or not no_analyze:
        so_far = _analyzed(
            plan, so_far, database, counting=counting, most=launches, quiet=no_analyze
        )
    _say(f"Everything is in {folder}.")
    return profiling.exit_code(so_far)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _commands(plan: Plan, *, analyzing: bool) -> str:
    """Return the commands of a plan, one a line, as a shell takes them."""
    from kernelscope.capture import nsys_command, profiling  # noqa: PLC0415 - not for --help
    from kernelscope.capture.ncu_command import REPORT, print_command  # noqa: PLC0415

    report = plan.folder / f"{profiling.TRACE}{nsys_command.REPORTS[0]}"
    lines = [f"# {note}" for note in plan.notes]
    lines += ["# 1. record", shlex.join(plan.record)]
    lines += ["# 2. export", shlex.join(plan.export(report))]
    counters = ""
    if plan.ncu is not None:
        table = plan.folder / f"{profiling.COUNTERS}.csv"
        counters = f" --counters {shlex.quote(str(table))}"
        lines += [
            "# 3. count: the names, and which launches, follow from the first run",
            shlex.join(plan.count(None)[0]),
            shlex.join(print_command(plan.ncu.path, plan.folder / f"{profiling.COUNTERS}{REPORT}"))
            + f" > {shlex.quote(str(table))}",
        ]
    if analyzing:
        lines += ["# analyze", f"kernelscope analyze {shlex.quote(str(plan.database))}{counters}"]
    return "\n".join(lines) + "\n"


def _analyzed(  # noqa: PLR0913 - what was asked for
    plan: Plan, so_far: Manifest, database: Path, *, counting: bool, most: int, quiet: bool
) -> Manifest:
    """Analyze the trace, count if asked to, and leave the report in the folder."""
    from dataclasses import replace  # noqa: PLC0415 - not for --help

    from kernelscope.capture import manifest, profiling  # noqa: PLC0415
    from kernelscope.errors import KernelscopeError  # noqa: PLC0415
    from kernelscope.metrics.analysis import analyze  # noqa: PLC0415
    from kernelscope.parsers import read  # noqa: PLC0415

    step = manifest.Step("analyze", (), manifest.DONE, None, manifest.now())
    try:
        trace = read(str(database))
        analysis = analyze(trace)
        if len(trace.kernels) == 0 and "cuda" in plan.recording.trace.split(","):
            _say(_NO_KERNEL)
        interrupted = any(step.status == manifest.INTERRUPTED for step in so_far.steps)
        if counting and not interrupted:
            so_far, analysis = _counted(plan, so_far, trace, analysis, most)
        if not quiet:
            _reported(plan, analysis)
    except KernelscopeError as error:
        profiling.noted(so_far, replace(step, status=manifest.FAILED, note=error.message), _say)
        raise
    return profiling.noted(so_far, step, _say)


_NO_KERNEL = (
    "! No kernel was recorded. Does the program use the GPU in the part that --capture chooses, "
    "and does nvidia-smi show one?"
)


def _counted(
    plan: Plan, so_far: Manifest, trace: Trace, analysis: Analysis, most: int
) -> tuple[Manifest, Analysis]:
    """Run the program again, and return the analysis with what was counted, if anything was."""
    from dataclasses import replace  # noqa: PLC0415 - not for --help

    from kernelscope.capture import profiling  # noqa: PLC0415
    from kernelscope.capture.ncu_command import what_to_count  # noqa: PLC0415
    from kernelscope.capture.nsys_command import CUDA, NVTX  # noqa: PLC0415
    from kernelscope.errors import KernelscopeError  # noqa: PLC0415
    from kernelscope.metrics.analysis import analyze  # noqa: PLC0415
    from kernelscope.parsers.counter_formats import read_counters  # noqa: PLC0415

    try:
        captured = plan.recording.capture in (CUDA, NVTX)
        wanted = what_to_count(trace, analysis, captured=captured, most=most)
        said = (
            f"Counted are launches of {len(wanted.functions)} kernels, which make up "
            f"{wanted.covers:.0%} of the computing time: at most {wanted.launches}, after "
            f"{wanted.skip}."
        )
        _say(said)
        so_far = replace(so_far, notes=(*so_far.notes, said))
        so_far = profiling.counted(plan, so_far, wanted, _say)
        table = plan.folder / f"{profiling.COUNTERS}.csv"
        if table.exists() and table.stat().st_size:
            return so_far, analyze(trace, counters=read_counters(str(table)))
        _say("! Nothing was counted; the report is without it. ncu said why above.")
    except KernelscopeError as error:  # the trace is worth its report without counters
        _say(f"! {error.message}\n  {error.hint}")
        so_far = replace(so_far, notes=(*so_far.notes, error.message))
    return so_far, analysis


def _reported(plan: Plan, analysis: Analysis) -> None:
    emit(render(analysis, Request("text"), None) or "", None)
    for format_name, name in (("text", "report.txt"), ("json", "analysis.json")):
        target = plan.folder / name
        emit(render(analysis, Request(format_name, str(target)), target) or "", target)
