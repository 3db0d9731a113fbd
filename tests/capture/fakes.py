"""A fake nsys and a fake ncu: scripts that behave, and misbehave, as the real ones can."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "resnet_training.sqlite"
OPTIONS: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "options.json").read_text(encoding="utf-8")
)
"""Options that versions list in their help, and where that was looked up."""

NSYS = """
    import os, shutil, signal, subprocess, sys, time
    how, arguments = {how!r}, sys.argv[1:]
    if arguments == ["--version"]:
        sys.exit(print({version!r}))
    if arguments[-1:] == ["--help"]:
        sys.exit(print({help!r}))
    output = next(a.partition("=")[2] for a in arguments if a.startswith("--output="))
    if arguments[0] == "export":
        if how == "export fails":
            print("Export failed", file=sys.stderr)
            sys.exit(3)
        if how == "export: disk full":
            open(output, "w").close()
            print("No space left on device", file=sys.stderr)
            sys.exit(1)
        if how == "broken export":
            open(output, "w").write("no database")
            sys.exit(0)
        sys.exit(shutil.copy({sample!r}, output) and 0)
    program = arguments[[a.startswith("--output=") for a in arguments].index(True) + 1:]
    report = output + {suffix!r}
    if how == "fails before":
        print("cannot attach", file=sys.stderr)
        sys.exit(5)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupted":
        signal.signal(signal.SIGINT, lambda *_: None)
        print("recording", flush=True)
        child = subprocess.Popen(program)
        try:
            child.wait(timeout=60)
        finally:
            open(report, "w").write("report")
        sys.exit(130)
    code = subprocess.run(program).returncode
    if how == "no report":
        sys.exit(0)
    if how == "empty report":
        open(report, "w").close()
        sys.exit(0)
    if how in ("no importer", "importer not found"):
        open(output + ".qdstrm", "w").write("raw")
        sys.exit(0)
    open(report, "w").write("report")
    sys.exit(9 if how == "fails after" else code)
"""

NCU = """
    import subprocess, sys
    how, arguments = {how!r}, sys.argv[1:]
    if arguments == ["--version"]:
        sys.exit(print({version!r}))
    if arguments[-1:] == ["--help"]:
        sys.exit(print({help!r}))
    if "--import" in arguments:
        sys.exit(print(open({sample!r}).read()))
    if how == "fails":
        print("ERR_NVGPUCTRPERM", file=sys.stderr)
        sys.exit(1)
    open(arguments[arguments.index("--export") + 1] + ".ncu-rep", "w").write("report")
"""


def help_text(options: Iterable[str]) -> str:
    """A help text that lists options as both tools do."""
    return "\n".join(f"\t{option}=\n\n\t   What it does." for option in options)


IMPORTER = """
    import pathlib, sys
    raw = pathlib.Path(sys.argv[sys.argv.index("-i") + 1])
    sys.exit(raw.with_suffix(".nsys-rep").write_text("report") and 0)
"""


def fake_nsys(
    folder: Path, how: str = "", version: str = "nsys 2022.4.2", sample: Path = SAMPLE,
    says: str | None = None,
) -> Path:  # fmt: skip
    """Write a fake nsys and return it; its exports are copies of `sample`."""
    text = NSYS.format(
        how=how,
        version=says or f"NVIDIA Nsight Systems version {version.split()[1]}.1-df9881f",
        help=help_text(OPTIONS[version]["options"]),
        sample=str(sample),
        suffix=".qdrep" if version == "nsys 2020.4.3" else ".nsys-rep",
    )
    return script(folder / "nsys", text)


def fake_ncu(folder: Path, counted: Path, how: str = "", version: str = "ncu 2022.3.0") -> Path:
    """Write a fake ncu that prints `counted`, and return it."""
    text = NCU.format(
        how=how,
        version=f"Version {version.split()[1]}.0 (build 1)",
        help=help_text(OPTIONS[version]["options"]),
        sample=str(counted),
    )
    return script(folder / "ncu", text)


def script(path: Path, text: str) -> Path:
    """Write an executable Python script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}", encoding="utf-8")
    path.chmod(0o755)
    return path
