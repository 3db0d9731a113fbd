"""Every error that kernelscope raises on purpose.

::

    KernelscopeError          what went wrong, where, and what to do next
    ├── TraceFileError        the file cannot be read as a trace
    │   ├── NotATraceError    it is something else (a text file, another tool's database, …)
    │   ├── DamagedFileError  it is a trace, but truncated, encrypted or corrupt
    │   └── NeedsExportError  it must be converted first, with the command that does it
    ├── NotRecordedError      the trace is fine, but does not hold what was asked for
    ├── SelectionError        an option names something that the trace does not have
    ├── QueryError            an SQL query is wrong, tries to change something, or takes too long
    ├── OutputError           the result cannot be written where it was asked to go
    └── ToolError             a profiler is not there, does not work, or left nothing

Libraries raise; only the command line prints and sets an exit code.
"""

from __future__ import annotations

from collections.abc import Iterable


class KernelscopeError(Exception):
    """The root of the tree.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    hint : str, optional
        What to do next; printed on a line of its own.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class TraceFileError(KernelscopeError):
    """The file cannot be read as a trace."""


class NotATraceError(TraceFileError):
    """The file is something other than a GPU trace."""


class DamagedFileError(TraceFileError):
    """The file is a trace that is truncated, encrypted or corrupt."""


class NeedsExportError(TraceFileError):
    """The file must be converted first; the hint holds the exact command."""


class NotRecordedError(KernelscopeError):
    """The trace does not hold what was asked for; the hint says how to record it."""


class SelectionError(KernelscopeError):
    """An option names something that does not exist."""


class QueryError(KernelscopeError):
    """An SQL query is wrong, tries to change something, or takes too long."""


class OutputError(KernelscopeError):
    """The result cannot be written where it was asked to go."""


class ToolError(KernelscopeError):
    """A profiler of the vendor is not installed, does not work, or left nothing behind."""


_LONGEST_NAME = 80


def nearest(name: str, known: Iterable[str], limit: int = 5) -> str:
    """Return a hint that names what is closest to a mistyped `name`.

    Parameters
    ----------
    name : str
        What was asked for.
    known : iterable of str
        What there is.
    limit : int
        How many names to list at the most.

    Returns
    -------
    str
        A sentence, e.g. ``Did you mean 'kernels'? Known: kernels, copies.``
    """
    import difflib  # noqa: PLC0415 - for mistakes only

    names = sorted(set(known))
    folded = {each.casefold(): each for each in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=limit)
    start = f"Did you mean {_short(folded[close[0]])!r}? " if close else ""
    shown = names if len(names) <= limit else [folded[each] for each in close] or names[:limit]
    more = ", …" if len(names) > len(shown) else ""
    return f"{start}Known: {', '.join(map(_short, shown))}{more}."


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
