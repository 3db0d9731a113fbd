"""What is this file? Everything that is not a readable trace, each with its own message.

The checks read a few kilobytes, in an order that gives the most useful answer: is it there, is
it a file, does it begin as an SQLite database, is it as long as its header says.
"""

from __future__ import annotations

import contextlib
import errno
import shlex
import zlib
from pathlib import Path

from kernelscope.errors import DamagedFileError, NeedsExportError, NotATraceError, TraceFileError

SQLITE_MAGIC = b"SQLite format 3\x00"
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
HEADER_BYTES = 4096

NSYS_REPORTS = (".nsys-rep", ".qdrep")
"""Nsight Systems' own report files, old and new name: `nsys export` turns them into SQLite."""

EXPORT_AGAIN = (
    "Export it again: nsys export --type sqlite --force-overwrite true --output TRACE.sqlite "
    "REPORT.nsys-rep (or copy it again, if it was whole elsewhere)."
)

NVPROF_SUFFIXES = (".nvprof", ".nvvp", ".sql")
"""What people call databases of nvprof and the Visual Profiler; both know other formats, too."""

_DATABASES = (".sqlite", ".nvprof", ".nvvp")

COPY_NVPROF_AGAIN = (
    "Copy it again, if it was whole elsewhere; else run the program under nvprof again, which "
    "writes the database when the program ends."
)

EXPORT_FROM_NVVP = (
    "Record the run again as a database: nvprof --export-profile FILE.nvprof PROGRAM (CUDA 7.5 to "
    "11.8); or with Nsight Systems: nsys profile --trace=cuda,nvtx PROGRAM"
)


def existing_file(path: Path, *, what: str = "trace") -> None:
    """Check that `path` is a file that can be read.

    Parameters
    ----------
    path : Path
        Where it should be.
    what : str
        What it is wanted as: ``trace`` or ``file of counters``.

    Raises
    ------
    TraceFileError
        If it is missing (the hint names the nearest file in its folder), a folder, empty, or
        not readable.
    """
    try:
        if path.is_dir():
            if what != "trace":
                raise NotATraceError(f"{path} is a folder, not a {what}.", "Name the file in it.")
            raise NotATraceError(f"{path} is a folder, not a trace file.", _traces_in(path))
        if path.is_symlink() and not path.exists():
            if _is_loop(path):
                raise TraceFileError(
                    f"{path} is a link to {path.readlink()}, which leads back to itself: a loop of "
                    "links, without a file.",
                    f"Name the {what} itself, or make the link anew: ln -sf FILE LINK",
                )
            raise TraceFileError(f"{path} is a link to {path.readlink()}, which does not exist.")
        if not path.exists():
            raise TraceFileError(f"There is no file {path}.", _nearest_file(path))
        if not path.is_file():
            raise NotATraceError(
                f"{path} is a pipe or a device, not a file.",
                f"A {what} is read in any order: save it to a file first.",
            )
        if path.stat().st_size == 0:
            raise DamagedFileError(
                f"{path} is empty: 0 bytes.", f"The export was interrupted. {EXPORT_AGAIN}"
            )
        with path.open("rb"):
            pass
    except PermissionError as error:
        raise TraceFileError(
            f"{path} cannot be read: permission denied.",
            f"Make it readable: chmod u+r {path}",
        ) from error
    except OSError as error:
        raise TraceFileError(f"{path} cannot be read: {error.strerror}.") from error


def _is_loop(link: Path) -> bool:
    try:
        link.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _traces_in(folder: Path) -> str:
    found = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in _DATABASES)[:5]
    if not found:
        return "Give the path of one file; the folder holds no .sqlite file."
    return f"Give the path of one file in it: {', '.join(found)}, …"


def _nearest_file(path: Path) -> str:
    import difflib  # noqa: PLC0415 - for mistakes only

    folder = path.parent
    if not folder.is_dir():
        return f"Its folder {folder} does not exist either."
    close = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=1)
    return f"Did you mean {folder / close[0]}?" if close else f"Look what there is: ls {folder}"


def is_report(path: Path) -> bool:
    """Return whether `path` is a report that only `nsys` can open: by suffix and by content."""
    if path.suffix.lower() not in NSYS_REPORTS:
        return False
    with path.open("rb") as file:
        head = file.read(len(LFS_POINTER))
    return not head.startswith((SQLITE_MAGIC, LFS_POINTER))


def sqlite_database(path: Path) -> None:
    """Check that `path` begins as an SQLite database and is as long as its header says.

    Raises
    ------
    NotATraceError, NeedsExportError, DamagedFileError
        With what the file is instead, and what to do about it.
    """
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if not head.startswith(SQLITE_MAGIC):
        _refuse(path, head)
    _check_length(path, head)


def _refuse(path: Path, head: bytes) -> None:
    suffix = path.suffix.lower()
    if head.startswith(LFS_POINTER):
        raise NotATraceError(
            f"{path} is a Git LFS pointer: the trace itself was never downloaded.",
            f"Fetch it: git lfs pull --include {shlex.quote(path.name)}",
        )
    if suffix == ".qdstrm":
        raise NeedsExportError(
            f"{path} is a raw Nsight Systems stream (.qdstrm): its import did not finish.",
            "Import it where it was recorded: "
            f"{shlex.join(['QdstrmImporter', '--input-file', str(path)])}, then "
            f"{shlex.join(['nsys', 'export', '--type', 'sqlite', f'{path.stem}.nsys-rep'])}",
        )
    if suffix == ".ncu-rep" or head.startswith(b"NVR\x00"):
        raise NotATraceError(
            f"{path} is an Nsight Compute report, which holds counters and no timeline.",
            "Give the Nsight Systems export of the run, and this beside it: "
            f"kernelscope analyze TRACE --counters {path}. "
            f"What was counted: kernelscope counters {path}",
        )
    if _is_kineto(head):
        raise NotATraceError(
            f"{path} is a trace of the PyTorch profiler (JSON), which kernelscope does not read.",
            "Record the run with Nsight Systems: nsys profile --trace=cuda,nvtx,osrt python "
            "train.py, and export that: nsys export --type=sqlite REPORT.nsys-rep",
        )
    for magic, what, remedy in _OTHER_MAGIC:
        if head.startswith(magic):
            raise NotATraceError(f"{path} is {what}.", remedy)
    if suffix in NVPROF_SUFFIXES or head.startswith(_NVPROF_CSV):
        _refuse_nvprof(path, head)
    if not head.strip(b"\x00"):
        raise DamagedFileError(
            f"{path} begins with zeros: an export that was interrupted.", EXPORT_AGAIN
        )
    if b'"ID","Process ID"' in head or head.startswith(b'"Process ID","Process Name"'):
        raise NotATraceError(
            f"{path} is text that Nsight Compute printed, which holds counters and no timeline.",
            "Give the Nsight Systems export of the run, and this beside it: "
            f"kernelscope analyze TRACE --counters {path}. "
            f"What was counted: kernelscope counters {path}",
        )
    if _is_text(head):
        raise NotATraceError(
            f"{path} is a text file, not an SQLite export.",
            "kernelscope reads what `nsys export --type sqlite` writes.",
        )
    raise NotATraceError(
        f"{path} does not begin as an SQLite database: it is encrypted, or of another format.",
        f"If it is an encrypted database, decrypt it first. Otherwise: {EXPORT_AGAIN}",
    )


_NVPROF_CSV = (b"==", b'"Type","Time(%)"', b'"Device","Kernel","Invocations"')


def _refuse_nvprof(path: Path, head: bytes) -> None:
    """Say what a file of nvprof or the Visual Profiler is that is no database."""
    if not head.strip(b"\x00"):
        return
    if head.lstrip().startswith(b"<?xml"):
        raise NotATraceError(
            f"{path} is a session of the Visual Profiler (XML): its settings and views, without "
            "the events.",
            f"Give the database that it shows, or that it was imported from. {EXPORT_FROM_NVVP}",
        )
    if any(head.startswith(start) for start in _NVPROF_CSV):
        raise NotATraceError(
            f"{path} is text that nvprof printed: summaries, without the single events.",
            f"{EXPORT_FROM_NVVP}. If it holds metrics, kernelscope counters FILE shows them.",
        )
    if not _is_text(head):
        raise NotATraceError(
            f"{path} does not begin as an SQLite database: it is a profile in the older binary "
            "format of the CUDA profilers, which is documented nowhere, or it is encrypted.",
            EXPORT_FROM_NVVP,
        )


_GZIP = b"\x1f\x8b"
_KINETO_KEYS = (b'"schemaVersion"', b'"deviceProperties"', b'"traceEvents"')
_OTHER_MAGIC = (
    (_GZIP, "compressed with gzip", "Decompress it first: gunzip --keep FILE"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "Decompress it first: zstd -d FILE"),
    (b"\xfd7zXZ\x00", "compressed with xz", "Decompress it first: xz -d --keep FILE"),
    (b"PK\x03\x04", "a zip archive", "Unpack it first: unzip FILE"),
    (b"\x89HDF\r\n", "an HDF5 file", "Export as SQLite: nsys export --type sqlite REPORT.nsys-rep"),
    (b"PAR1", "a Parquet file", "Export as SQLite: nsys export --type sqlite REPORT.nsys-rep"),
    (b"ARROW1", "an Arrow file", "Export as SQLite: nsys export --type sqlite REPORT.nsys-rep"),
)


def _is_kineto(head: bytes) -> bool:
    """Return whether a file begins as the PyTorch profiler's JSON, compressed or not."""
    if head.startswith(_GZIP):
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, HEADER_BYTES)
    return head.lstrip().startswith(b"{") and any(key in head for key in _KINETO_KEYS)


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return False
        text = head[: error.start].decode("utf-8")
    return all(c.isprintable() or c in "\n\r\t\f" for c in text)


def _check_length(path: Path, head: bytes) -> None:
    size = path.stat().st_size
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1):
        raise DamagedFileError(
            f"{path} has a damaged SQLite header: page size {page_size}.", EXPORT_AGAIN
        )
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # else the page count is of an older SQLite, and stale
    if counted and size < pages * page_size:
        raise DamagedFileError(
            f"{path} is truncated: its header promises {pages * page_size:,} bytes, the file has "
            f"{size:,}.",
            EXPORT_AGAIN,
        )
