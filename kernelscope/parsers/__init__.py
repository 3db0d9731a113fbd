"""A profiler's file → Trace; one module a format.

:func:`read` is the way in. A new format is a module with ``NAME``, ``DESCRIPTION``,
``recognises(file)`` (cheap, never raises) and ``parse(file)``, and a line in :data:`PARSERS`.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import ModuleType

from kernelscope.errors import DamagedFileError, NotATraceError, TraceFileError
from kernelscope.parsers import nsys, sniff
from kernelscope.parsers.sqlite import SqliteFile
from kernelscope.trace import Trace

PARSERS: tuple[ModuleType, ...] = (nsys,)
"""Every format that kernelscope reads, in the order in which they are tried."""


def read(path: str | PathLike[str]) -> Trace:
    """Read a trace file into canonical tables.

    Parameters
    ----------
    path : path-like
        An SQLite export of Nsight Systems; a ``.nsys-rep`` or ``.qdrep`` report is exported
        first, where ``nsys`` is on PATH.

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
    sniff.existing_file(file)
    return _parse_report(file) if sniff.is_report(file) else _parse(file)


def _parse_report(report: Path) -> Trace:
    from kernelscope.parsers.nsys_report import exported  # noqa: PLC0415 - it runs a program

    with exported(report) as database:
        try:
            trace = _parse(database)
        except TraceFileError as error:
            told = error.message.replace(str(database), f"what nsys exported of {report}")
            raise type(error)(told, error.hint) from error
    return replace(trace, capture=replace(trace.capture, file=str(report)))


def _parse(path: Path) -> Trace:
    sniff.sqlite_database(path)
    try:
        file = SqliteFile.open(path)
        for parser in PARSERS:
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
    if "StringTable" in file.tables and "CUPTI_ACTIVITY_KIND_KERNEL" in file.tables:
        return NotATraceError(
            f"{path} is an nvprof database, which this version does not read yet.",
            "Record the run with Nsight Systems: nsys profile --trace=cuda,nvtx …",
        )
    known = ", ".join(parser.DESCRIPTION for parser in PARSERS)
    return NotATraceError(
        f"{path} is an SQLite database, but of no profiler that kernelscope knows; its tables: "
        f"{shown}.",
        f"kernelscope reads: {known}.",
    )
