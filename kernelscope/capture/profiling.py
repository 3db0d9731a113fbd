"""Records a program with nsys, exports it, counts its kernels with ncu: step by step, in a folder.

Every step is written into the manifest before it begins and when it ends; what a step leaves
behind is looked for, whatever its exit code, since a program that fails may still have been
recorded.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelscope.capture import manifest as records
from kernelscope.capture.manifest import DONE, FAILED, INTERRUPTED, Manifest, Step
from kernelscope.capture.ncu_command import (
    REPORT,
    Counting,
    count_command,
    print_command,
)
from kernelscope.capture.nsys_command import (
    REPORTS,
    UNFINISHED,
    WHOLE,
    Recording,
    export_command,
    profile_command,
    scheduling_hangs,
)
from kernelscope.capture.nvtx_versions import heard, nvtx_of, why_unheard
from kernelscope.capture.running import free_bytes, run
from kernelscope.capture.tools import NCU, NSYS, Tool, importer_of, need_tool, options_of
from kernelscope.errors import OutputError, ToolError

TRACE, COUNTERS = "trace", "counters"
LITTLE_ROOM = 1 << 30

_PATTERN = re.compile(r"%(?:q\{(\w+)\}|([hp%]))")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a profile will do.

    Attributes
    ----------
    folder : Path
        Where everything goes.
    program : tuple of str
        The program and its arguments.
    recording : Recording
        What nsys shall record.
    nsys : Tool
        The nsys that does it.
    record : tuple of str
        Its command.
    export_options : frozenset of str
        What its export can do.
    ncu : Tool or None
        What counts afterwards; None where that was not asked for.
    notes : tuple of str
        What there is to know before the run.
    """

    folder: Path
    program: tuple[str, ...]
    recording: Recording
    nsys: Tool
    record: tuple[str, ...]
    export_options: frozenset[str]
    ncu: Tool | None
    notes: tuple[str, ...]

    @property
    def database(self) -> Path:
        """The SQLite export of the trace."""
        return self.folder / f"{TRACE}.sqlite"

    def export(self, report: Path) -> list[str]:
        """Return the command that exports a report."""
        return export_command(self.nsys.path, report, self.database, self.export_options)

    def count(self, wanted: Counting | None) -> tuple[list[str], list[str]]:
        """Return the command that counts, and what its ncu lacks; see ``ncu_command``."""
        assert self.ncu is not None
        return count_command(
            self.ncu.path,
            options_of(self.ncu),
            wanted,
            self.folder / COUNTERS,
            self.program,
            self.recording.capture,
        )


def named_folder(pattern: str) -> Path:
    """Return a folder's name with ``%q{VARIABLE}``, ``%h`` (host) and ``%p`` (process) filled in.

    Raises
    ------
    OutputError
        If a variable is not set: several ranks would share one folder.
    """

    def filled(found: re.Match[str]) -> str:
        variable, letter = found.groups()
        if variable is None:
            return {"h": socket.gethostname(), "p": str(os.getpid()), "%": "%"}[letter]
        value = os.environ.get(variable)
        if value is None:
            raise OutputError(
                f"--output {pattern}: the environment has no {variable}.",
                "Name a variable that differs between ranks: SLURM_PROCID under srun, RANK under "
                "torchrun, OMPI_COMM_WORLD_RANK under mpirun.",
            )
        return value

    return Path(_PATTERN.sub(filled, pattern))


def planned(folder: Path, program: Sequence[str], recording: Recording, *, counting: bool) -> Plan:
    """Find the tools, look at their versions, and build the command that records.

    Raises
    ------
    ToolError
        If a tool is missing, does not work, or cannot do what was asked for.
    """
    nsys = need_tool(NSYS)
    notes: list[str] = []
    if scheduling_hangs(nsys.version, platform.release()):
        recording = replace(recording, scheduling=False)
        notes.append(
            f"{nsys} may not end on Linux {platform.release()} when it records the scheduling of "
            "threads, so it does not: figures of host threads are missing. "
            "--nsys-option=--cpuctxsw=process-tree insists."
        )
    ncu = need_tool(NCU) if counting else None
    record, lacks = profile_command(
        nsys.path, options_of(nsys, "profile"), recording, folder / TRACE, program
    )
    notes += [f"{nsys}: {each}." for each in lacks]
    nvtx = nvtx_of(program) if "nvtx" in recording.trace.split(",") else None
    if nvtx is not None and heard(nvtx, nsys) is False:
        notes.append(f"No annotation will be recorded: {why_unheard(nvtx, nsys)}")
    if nvtx is not None and heard(nvtx, nsys) is None:
        notes.append(
            "Whether this nsys hears this nvtx is not known; kernelscope doctor tries it out."
        )
    can_export = options_of(nsys, "export")
    return Plan(
        folder, tuple(program), recording, nsys, tuple(record), can_export, ncu, tuple(notes)
    )


def prepared(plan: Plan) -> Manifest:
    """Make the folder, and return the manifest of what is to come.

    Raises
    ------
    OutputError
        If the folder holds something already, or cannot be made or written to.
    """
    folder = plan.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OutputError(
                f"--output {folder}: the folder is not empty.",
                "Results of two runs are not mixed: choose another, or move these away.",
            )
    except OSError as error:
        raise OutputError(
            f"--output {folder}: {error.strerror or error}.", "Choose another folder."
        ) from error
    tools = {NSYS: plan.nsys} | ({} if plan.ncu is None else {NCU: plan.ncu})
    notes = list(plan.notes)
    room = free_bytes(folder)
    if room is not None and room < LITTLE_ROOM:
        notes.append(f"{folder} has room for {room >> 20} MiB only: a trace may need more.")
    found = Manifest(folder, plan.program, tools, (), tuple(notes))
    trouble = records.write(found)
    if trouble:
        raise OutputError(trouble, "Choose another folder with --output.")
    return found


def recorded(plan: Plan, so_far: Manifest, say: Say) -> Manifest:
    """Record the program, and export what was recorded."""
    so_far = _done(so_far, "record", plan.record, say)
    raw = records.files(plan.folder, (UNFINISHED,))
    importer = importer_of(plan.nsys.path) if raw else None
    if importer is not None and not records.files(plan.folder, REPORTS):
        so_far = _done(so_far, "import", [str(importer), "-i", str(raw[0])], say)
    found = records.files(plan.folder, REPORTS)
    if not found:
        return so_far
    return _done(so_far, "export", plan.export(found[0]), say)


def counted(plan: Plan, so_far: Manifest, wanted: Counting, say: Say) -> Manifest:
    """Run the program again, and count."""
    command, lacks = plan.count(wanted)
    so_far = replace(so_far, notes=(*so_far.notes, *(f"{plan.ncu}: {each}." for each in lacks)))
    so_far = _done(so_far, "count", command, say)
    found = records.files(plan.folder, (REPORT,))
    if not found or plan.ncu is None:
        return so_far
    table = plan.folder / f"{COUNTERS}.csv"
    return _done(so_far, "print", print_command(plan.ncu.path, found[0]), say, output=table)


def _done(
    so_far: Manifest, name: str, command: Sequence[str], say: Say, output: Path | None = None
) -> Manifest:
    said = f"{shlex.join(command)}{'' if output is None else f' > {shlex.quote(str(output))}'}"
    say(f"[{name}] {said}")
    running = Step(name, tuple(command), started_at=records.now())
    _noted(replace(so_far, steps=(*so_far.steps, running)), say)
    finished = run(name, command, output=output, say=say)
    found = replace(so_far, steps=(*so_far.steps, finished))
    _noted(found, say)
    if finished.status != DONE:
        say(f"[{name}] {finished.status}: {finished.note or 'ended early'}")
    return found


def noted(so_far: Manifest, step: Step, say: Say) -> Manifest:
    """Write down a step that kernelscope took itself."""
    found = replace(so_far, steps=(*so_far.steps, step))
    _noted(found, say)
    return found


def _noted(found: Manifest, say: Say) -> None:
    trouble = records.write(found)
    if trouble:  # a full disk must not end what still runs
        say(f"! {trouble}")


def how_to_go_on(plan: Plan, so_far: Manifest) -> str:
    """Say what is there, and the next command, after a step that did not end well."""
    reports = records.files(plan.folder, REPORTS)
    if plan.database.exists() and plan.database.stat().st_size:
        return f"The trace is there: kernelscope analyze {shlex.quote(str(plan.database))}"
    if reports:
        command = shlex.join(plan.export(reports[0]))
        return f"The report is there. Export it where there is room: {command}"
    unfinished = records.files(plan.folder, (UNFINISHED,))
    if unfinished:
        return (
            f"{unfinished[0]} holds what was recorded, and was not made into a report: open it in "
            "the window of Nsight Systems, or run its QdstrmImporter -i FILE."
        )
    last = so_far.steps[-1] if so_far.steps else None
    if last is not None and last.status == INTERRUPTED:
        return "Nothing was recorded before the interruption. Run the same command again."
    hint = (
        "Did the program reach the part to be recorded (--capture)? "
        if plan.recording.capture != WHOLE
        else ""
    )
    return f"{hint}nsys said why above. Try it by hand: {shlex.join(plan.record)}"


def exit_code(so_far: Manifest) -> int:
    """Return the exit code of the first step that did not end well, as a shell gives it; 0."""
    for step in so_far.steps:
        if step.status in (FAILED, INTERRUPTED):
            code = step.exit_code if step.exit_code is not None else 127
            return 128 - code if code < 0 else code or 1
    return 0


def need_trace(plan: Plan, so_far: Manifest) -> Path:
    """Return the exported trace.

    Raises
    ------
    ToolError
        If there is none; the hint says how to go on.
    """
    if plan.database.exists() and plan.database.stat().st_size:
        return plan.database
    step = next(step for step in so_far.steps[::-1] if step.name != "import")
    why = f" ({step.note})" if step.note else ""
    what = "recorded nothing" if step.name == "record" else "could not be exported"
    raise ToolError(
        f"{plan.folder}: the run {what}{why}."
        if step.name == "record"
        else f"{plan.folder}: the trace {what}{why}.",
        how_to_go_on(plan, so_far),
    )
