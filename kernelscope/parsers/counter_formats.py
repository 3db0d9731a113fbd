"""Counter files → CounterSet; one module a format, as for traces.

:func:`read_counters` is the way in. A new format is a module with ``NAME``, ``DESCRIPTION``,
``recognises(file)`` (cheap, never raises) and ``parse(file)``, and a line in :data:`FORMATS`.
"""

from __future__ import annotations

import re
import shlex
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType

from kernelscope.errors import DamagedFileError, NotATraceError, TraceFileError
from kernelscope.parsers import ncu_csv, ncu_reports, nvprof_csv, nvprof_runs, sniff
from kernelscope.parsers.counter_file import CounterFile
from kernelscope.parsers.counter_set import CounterSet, joined

FORMATS: tuple[ModuleType, ...] = (nvprof_runs, ncu_reports, ncu_csv, nvprof_csv)
"""Every format of counters, in the order in which they are tried."""

_WITH_ZEROS = re.compile(rb'==PROF==|"Process ID",|"Device","(?:Kernel|Context)",')
"""What a text of ncu or nvprof holds; a file in which zero bytes stand between is none."""


def read_counters(*paths: str | PathLike[str]) -> CounterSet:
    """Read what the hardware counted, from one file or several.

    Parameters
    ----------
    *paths : path-like
        Reports of Nsight Compute (``.ncu-rep``, with the extra ``kernelscope[ncu]``), CSV that
        ``ncu`` or ``nvprof`` printed, with whatever the program printed around it, or databases of
        nvprof that hold metrics. Each is a run of its own: replays that counted one metric each
        are kept apart, and brought together by :meth:`CounterSet.by_kernel`.

    Returns
    -------
    CounterSet
        Values in canonical units, and the executions that they are of.

    Raises
    ------
    TraceFileError
        If a file is missing, damaged, or holds no counters; the message says what it is instead,
        or what must be installed to read it.
    NotRecordedError
        If it is a trace that recorded none.

    Examples
    --------
    >>> import kernelscope as ks
    >>> counted = ks.read_counters("flops.csv", "bytes.csv")    # doctest: +SKIP
    >>> counted.by_kernel().df                                  # doctest: +SKIP
    """
    if not paths or not all(map(fspath, paths)):
        raise TraceFileError("No file was named.")
    seen: dict[Path, Path] = {}
    twice = []
    for path in map(Path, paths):
        CounterFile.check(path)  # a link to nothing resolves to nothing
        if path.resolve() in seen:
            twice.append(f"{path} was named twice, and is read once.")
        seen.setdefault(path.resolve(), path)
    whole = joined([_parse(path) for path in seen.values()])
    return CounterSet(whole.counters, whole.executions, whole.sources, (*whole.warnings, *twice))


def _parse(path: Path) -> CounterSet:
    file = CounterFile.open(path)
    for parser in FORMATS:
        if parser.recognises(file):
            found: CounterSet = parser.parse(file)
            return found
    raise _unknown(path, file)


def _unknown(path: Path, file: CounterFile) -> TraceFileError:
    known = f"kernelscope counters reads: {'; '.join(each.DESCRIPTION for each in FORMATS)}."
    if file.head.startswith(sniff.LFS_POINTER):
        sniff.sqlite_database(path)  # says what the pointer is, and how to fetch the file
    if path.suffix.lower() == ".ncu-rep":
        return NotATraceError(
            f"{path} does not begin as a report of Nsight Compute.", ncu_reports.AGAIN
        )
    if sniff.is_report(path):
        return NotATraceError(
            f"{path} is a report of Nsight Systems, which holds times and no counters of kernels.",
            f"kernelscope analyze {path} reads it; for counters run the program under ncu.",
        )
    if file.text is not None and not path.name.lower().endswith(sniff.NVPROF_SUFFIXES):
        return NotATraceError(f"{path} is a text without a table of ncu or nvprof.", known)
    if _WITH_ZEROS.search(file.head.replace(b"\x00", b"")):
        return DamagedFileError(
            f"{path} is text that ncu or nvprof printed, with zero bytes in it: it is damaged, or "
            "UTF-16 without a mark that says so.",
            f"Print it again, or convert it: iconv -f UTF-16LE -t UTF-8 {shlex.quote(str(path))}",
        )
    try:
        sniff.sqlite_database(path)
    except TraceFileError as error:
        return type(error)(error.message, known)
    return NotATraceError(f"{path} holds no counters that kernelscope knows.", known)
