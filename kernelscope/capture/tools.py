"""Where the vendor's profilers are, which version each is, and which options it knows.

Options come and go with versions: nsys 2020.4 says ``--stop-on-range-end``, later ones
``--capture-range-end``. So the tool itself is asked, and a command is built of what it lists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelscope.errors import ToolError

NSYS, NCU = "nsys", "ncu"

NAMES: Mapping[str, str] = {NSYS: "Nsight Systems", NCU: "Nsight Compute"}
"""Command → what people call it."""

_VARIABLE = {NSYS: "KERNELSCOPE_NSYS", NCU: "KERNELSCOPE_NCU"}
"""Command → the environment variable that names it, whatever PATH holds."""

_FOLDERS = {
    NSYS: (
        "/opt/nvidia/nsight-systems/*/bin",
        "/opt/nvidia/nsight-systems/*/target-linux-x64",
        "/opt/nvidia/nsight-systems-cli/*/bin",
        "/usr/local/cuda*/bin",
        "/usr/lib/nsight-systems/bin",
    ),
    NCU: (
        "/opt/nvidia/nsight-compute/*",
        "/usr/local/cuda*/bin",
        "/usr/lib/nsight-compute",
    ),
}
"""Where installers put it when they do not extend PATH."""

_OPTION = re.compile(r"(?:^|[\s,\[])(--[a-z][a-z0-9-]+)", re.MULTILINE)
_LISTED = re.compile(r"^\s+(?:-\w(?:,| \[) ?)?--[a-z]", re.MULTILINE)
_EITHER = re.compile(r"--([a-z-]+)-\[include\|exclude\]")
_VERSION = re.compile(r"\b(20\d\d)\.(\d+)(?:\.(\d+))?")
_PATIENCE_S = 60

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Tool:
    """A profiler that is installed.

    Attributes
    ----------
    name : str
        `NSYS` or `NCU`.
    path : Path
        The executable.
    version : tuple of three int, or None
        Year, release and patch; None where its output does not say.
    """

    name: str
    path: Path
    version: Version | None

    def __str__(self) -> str:
        said = "of unknown version" if self.version is None else dotted(self.version)
        return f"{NAMES[self.name]} {said} ({self.path})"


def dotted(version: Version) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


def find_tool(name: str, environ: Mapping[str, str] | None = None) -> Tool | None:
    """Find a profiler: named by the environment, on PATH, or where installers put it.

    Parameters
    ----------
    name : str
        `NSYS` or `NCU`.
    environ : mapping of str to str, optional
        The environment; the process's own by default.

    Returns
    -------
    Tool or None
        None where there is none.

    Raises
    ------
    ToolError
        If ``KERNELSCOPE_NSYS`` (``KERNELSCOPE_NCU``) names no executable.
    """
    environ = os.environ if environ is None else environ
    path = _path(name, environ)
    return None if path is None else Tool(name, path, parsed_version(_said(path, ["--version"])))


def need_tool(name: str, environ: Mapping[str, str] | None = None) -> Tool:
    """Find a profiler, or raise :class:`ToolError` that says where to get it."""
    found = find_tool(name, environ)
    if found is None:
        raise ToolError(
            f"{NAMES[name]} ({name}) is neither on PATH nor where installers put it.",
            f"Install {NAMES[name]} (https://developer.nvidia.com), or name it: "
            f"export {_VARIABLE[name]}=/path/to/{name}",
        )
    return found


def _path(name: str, environ: Mapping[str, str]) -> Path | None:
    named = environ.get(_VARIABLE[name])
    if named:
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise ToolError(
                f"{_VARIABLE[name]} is {named!r}, which is no executable file.",
                f"Unset it, or name the {name} of {NAMES[name]}.",
            )
        return Path(found)
    found = shutil.which(name, path=environ.get("PATH"))
    if found is not None:
        return Path(found)
    installed = [
        path for folder in _FOLDERS[name] for path in Path("/").glob(f"{folder[1:]}/{name}")
    ]
    usable = [path for path in installed if path.is_file() and os.access(path, os.X_OK)]
    return max(usable, key=lambda path: parsed_version(str(path)) or (0, 0, 0), default=None)


def importer_of(nsys: Path) -> Path | None:
    """Find what makes a report of a ``.qdstrm`` file, beside an nsys; None where there is none.

    Debian's nsys lies in another folder than its importer, does not find it, and leaves the
    recording as it came in (seen with 2022.4.2).
    """
    folders = nsys.resolve().parents[1:4]
    patterns = ("host-linux-*/QdstrmImporter", "nsight-systems/host-linux-*/QdstrmImporter")
    found = (path for folder in folders for each in patterns for path in folder.glob(each))
    return next((path for path in found if os.access(path, os.X_OK)), None)


def parsed_version(text: str) -> Version | None:
    """Return the first version in a text, such as ``2022.4.2``; None where there is none."""
    found = _VERSION.search(text)
    if found is None:
        return None
    year, release, patch = found.groups()
    return int(year), int(release), int(patch or 0)


def options_of(tool: Tool, *command: str) -> frozenset[str]:
    """Return the long options that a tool lists in its help.

    Parameters
    ----------
    tool : Tool
        The tool, which is run.
    *command : str
        Its subcommand, ``profile`` of nsys.

    Raises
    ------
    ToolError
        If it lists none: then it is not the tool that it is taken for, or does not run here.
    """
    said = _said(tool.path, [*command, "--help"])
    found = listed_options(said)
    if not found:
        words = " ".join([tool.name, *command, "--help"])
        first = next((line.strip() for line in said.splitlines() if line.strip()), "nothing")
        raise ToolError(
            f"{tool.path} does not work: {words} lists no options. It said: {first[:200]}",
            f"Try it by hand: {tool.path} --version",
        )
    return found


def listed_options(text: str) -> frozenset[str]:
    """Return the long options that begin a paragraph of a help text."""
    found: set[str] = set()
    for line in text.splitlines():
        if _LISTED.match(line):
            head = line[:40]
            found |= {f"--{one}-{way}" for one in _EITHER.findall(head) for way in _WAYS}
            found |= {option for option in _OPTION.findall(head) if not option.endswith("-")}
    return frozenset(found)


_WAYS = ("include", "exclude")


def _said(path: Path, arguments: Sequence[str]) -> str:
    """Return what a tool prints, on either stream; what went wrong where it cannot be run."""
    try:
        done = subprocess.run(
            [path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"nothing for {_PATIENCE_S} s"
    except OSError as error:
        return str(error.strerror or error)
    return f"{done.stdout}\n{done.stderr}"
