"""Where results go: checked before the work begins, written when it is done."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

from kernelscope.errors import OutputError

PIPED_WIDTH = 100
NARROWEST, WIDEST = 40, 140

_SQLITE_MAGIC = b"SQLite format 3\0"


def destination(
    path: str | None, source: str | None, *, folder: bool = False, force: bool = False
) -> Path | None:
    """Return where to write, None for standard output, after checking that it can be.

    Parameters
    ----------
    path : str or None
        What ``--output`` says; None and ``-`` are standard output.
    source : str or None
        The trace, which is never overwritten; None if there is none.
    folder : bool
        Whether a folder may be meant.
    force : bool
        Whether a database may be replaced.

    Raises
    ------
    OutputError
        If the result could not be written there.
    """
    if path is None or path == "-":
        return None
    if not path:
        raise OutputError("--output names no file.", "Is a variable of the shell not set?")
    target = Path(path)
    if not target.parent.is_dir():
        raise OutputError(
            f"--output {path}: there is no folder {target.parent}.",
            f"Make it first: mkdir -p {target.parent}",
        )
    if ends_as_folder(path) and target.exists() and not target.is_dir():
        raise OutputError(f"--output {path}: {target} is a file.", "Choose another folder.")
    if (target.is_dir() or ends_as_folder(path)) and not folder:
        raise OutputError(f"--output {path} is a folder.", "Name a file in it.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OutputError(f"--output {path}: writing there is not permitted.")
    protect(target, source, force=force)
    return target


def protect(
    target: Path, source: str | None, *, force: bool, what: str = "the trace itself"
) -> None:
    """Refuse a file that must not be overwritten.

    What is read (`source`, called `what` in the message) never is, and another SQLite database,
    which may be a trace or somebody's results, only by `force`. Other files are replaced, as
    redirection in a shell does it.

    Raises
    ------
    OutputError
        If `target` is such a file.
    """
    if not target.is_file():
        return
    if source is not None and os.path.exists(source) and target.samefile(source):
        raise OutputError(f"--output: {target} is {what}.", "Choose another file.")
    if not force and _is_database(target):
        raise OutputError(
            f"--output: {target} is an SQLite database, perhaps a trace.",
            "Choose another file, or replace it with --force.",
        )


def ends_as_folder(path: str) -> bool:
    """Tell whether `path` names a folder by the slash at its end, whatever is there."""
    return path.endswith(tuple(filter(None, (os.sep, os.altsep))))


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:  # it cannot be read, so nobody knows
        return False


def emit(text: str, target: Path | None) -> None:
    """Write `text` as UTF-8 to `target`, or to standard output where that is None.

    Raises
    ------
    OutputError
        If standard output fails, but for a pipe that its reader closed.
    """
    # Data is UTF-8 whatever the terminal's encoding; the text report is ASCII where it must be.
    data = text.encode("utf-8", "surrogateescape")
    if target is not None:
        target.write_bytes(data)
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader had enough
    except OSError as error:
        raise OutputError(
            f"Standard output took only a part of the result: {error.strerror or error}.",
            "Make room there, or write elsewhere with --output.",
        ) from error


def width() -> int:
    """Return how many columns a report on standard output should take."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        columns = int(wanted)
    elif sys.stdout.isatty():
        from shutil import get_terminal_size  # noqa: PLC0415 - for terminals only

        columns = get_terminal_size().columns
    else:
        columns = PIPED_WIDTH
    return min(max(columns, NARROWEST), WIDEST)


def in_color() -> bool:
    """Return whether standard output shows colours and is asked to (https://no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def in_unicode() -> bool:
    """Return whether standard output takes UTF-8."""
    try:
        return codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    except LookupError:
        return False
