"""A profiler's file → Trace; one module a format.

:func:`read` is the way in. A new format is a module with ``NAME``, ``DESCRIPTION``,
``recognises(file)`` (cheap, never raises) and ``parse(file)``, and its name in :data:`PARSERS`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType

from kernelscope.errors import DamagedFileError, NotATraceError, TraceFileError
from kernelscope.parsers import sniff
from kernelscope.parsers.btree_pages import Stamp, pending_write
from kernelscope.parsers.sqlite import SqliteFile
from kernelscope.parsers.sqlite_log import settled
from kernelscope.trace import Trace

PARSERS = ("nsys", "nvprof")
"""Every format that kernelscope reads, in the order in which they are tried: modules here."""


def parsers() -> Iterator[ModuleType]:
    """Yield the modules of :data:`PARSERS`, each imported only when those before it gave up."""
    for name in PARSERS:
        yield import_module(f"{__name__}.{name}")


def read(path: str | PathLike[str]) -> Trace:
    """Read a trace file into canonical tables.

    Parameters
    ----------
    path : path-like
        An SQLite export of Nsight Systems; a ``.nsys-rep`` or ``.qdrep`` report is exported
        first, where ``nsys`` is on PATH. Or a database of nvprof or the Visual Profiler.

    Returns
    -------
    Trace
        Valid: events with unbelievable times stand in ``trace.quarantine`` only.

    Raises
    ------
    TraceFileError
        If there is no such file, or it is not a trace, damaged, or must be exported first.
        The message says what the file is and what to do.

    Examples
    --------
    >>> import kernelscope as ks
    >>> trace = ks.read("trace.sqlite")             # doctest: +SKIP
    >>> trace.kernels.df                            # doctest: +SKIP
    """
    if not os.fspath(path):
        raise TraceFileError("No file was named: the path is empty.")
    file = Path(path)
    if file.suffix.lower() in sniff.NVPROF_SUFFIXES:
        return _parse_nvprof(file)
    sniff.existing_file(file)
    return _parse_report(file) if sniff.is_report(file) else _parse(file)


def _parse_nvprof(path: Path) -> Trace:
    """Parse what is called a database of nvprof: damage then has another remedy."""
    try:
        sniff.existing_file(path)
        return _parse(path)
    except DamagedFileError as error:
        told = error.hint.replace(sniff.EXPORT_AGAIN, sniff.COPY_NVPROF_AGAIN)
        raise DamagedFileError(error.message, told) from error


def _parse_report(report: Path) -> Trace:
    from kernelscope.parsers.nsys_report import exported  # noqa: PLC0415 - it runs a program

    with exported(report) as database:
        trace = _in_place_of(_parse, database, f"what nsys exported of {report}")
    return replace(trace, capture=replace(trace.capture, file=str(report)))


def _in_place_of(parse: Callable[[Path], Trace], path: Path, called: str) -> Trace:
    """Parse a temporary file; errors call it what people know it by."""
    try:
        trace = parse(path)
        len(trace.gpu_samples)  # read when asked for, but the file will be gone by then
    except TraceFileError as error:
        told = error.message.replace(str(path), called)
        raise type(error)(told, error.hint) from error
    return trace


def _parse(path: Path) -> Trace:
    sniff.sqlite_database(path)
    with settled(path) as database:
        if database == path:
            return _parse_settled(path)
        trace = _in_place_of(_parse_settled, database, str(path))
    said = (
        "Another program has not finished writing the file, or was stopped: what it last wrote lay "
        "in a write-ahead log beside it, and was read from a copy with the log brought in."
    )
    capture = trace.capture
    return replace(
        trace, capture=replace(capture, file=str(path), warnings=(*capture.warnings, said))
    )


def _parse_settled(path: Path) -> Trace:
    stamp, log = Stamp.of(path), pending_write(path)
    try:
        trace = _parse_database(path)
    except (TraceFileError, OSError) as error:
        if not stamp.holds(path):
            raise _changed(path) from error
        raise
    # Each table is read whole or not at all, but two of them may be of two files.
    if not stamp.holds(path) or pending_write(path) != log:
        raise _changed(path)
    return trace


def _changed(path: Path) -> DamagedFileError:
    return DamagedFileError(
        f"{path} changed while it was read: another program writes it, or replaced it.",
        "Wait until it is written, and try again.",
    )


def _parse_database(path: Path) -> Trace:
    try:
        file = SqliteFile.open(path)
        for parser in parsers():
            if parser.recognises(file):
                trace: Trace = parser.parse(file)
                return trace
    except sqlite3.Error as error:
        raise DamagedFileError(
            f"{path} is a damaged SQLite database: {error}.", sniff.EXPORT_AGAIN
        ) from error
    raise _unknown(path, file)


def _unknown(path: Path, file: SqliteFile) -> NotATraceError:
    tables = sorted(file.tables)
    shown = ", ".join(tables[:5]) + (", …" if len(tables) > 5 else "")
    if not tables:
        return NotATraceError(f"{path} is an SQLite database without tables.", sniff.EXPORT_AGAIN)
    known = ", ".join(parser.DESCRIPTION for parser in parsers())
    return NotATraceError(
        f"{path} is an SQLite database, but of no profiler that kernelscope knows; its tables: "
        f"{shown}.",
        f"kernelscope reads: {known}.",
    )
