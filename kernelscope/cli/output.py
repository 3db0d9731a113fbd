"""Where results go: checked before the work begins, written when it is done."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
from pathlib import Path

from kernelscope.errors import OutputError

PIPED_WIDTH = 100
NARROWEST, WIDEST = 40, 140


def destination(path: str | None, source: str, *, folder: bool = False) -> Path | None:
    """Return where to write, None for standard output, after checking that it can be.

    Parameters
    ----------
    path : str or None
        What ``--output`` says; None and ``-`` are standard output.
    source : str
        The trace, which is never overwritten.
    folder : bool
        Whether a folder may be meant.

    Raises
    ------
    OutputError
        If the result could not be written there.
    """
    if path is None or path == "-":
        return None
    target = Path(path)
    if not target.parent.is_dir():
        raise OutputError(
            f"--output {path}: there is no folder {target.parent}.",
            f"Make it first: mkdir -p {target.parent}",
        )
    if target.exists() and os.path.exists(source) and target.samefile(source):
        raise OutputError(f"--output {path} is the trace itself.", "Choose another file.")
    if target.is_dir() and not folder:
        raise OutputError(f"--output {path} is a folder.", "Name a file in it.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OutputError(f"--output {path}: writing there is not permitted.")
    return target


def emit(text: str, target: Path | None) -> None:
    """Write `text` as UTF-8 to `target`, or to standard output where that is None."""
    if target is not None:
        target.write_text(text, encoding="utf-8", newline="\n")
        return
    # Data is UTF-8 whatever the terminal's encoding; the text report is ASCII where it must be.
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def width() -> int:
    """Return how many columns a report on standard output should take."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        columns = int(wanted)
    elif sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
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
