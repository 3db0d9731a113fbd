"""A database whose last changes still lie in a write-ahead log beside it.

SQLite cannot read such a pair without leaving a trace: to find its way in the log it makes an
index of it beside the file (``-shm``), and whoever closes the file last may write the log into
it. Without the index, or with the log ignored, what was written last is missing. So the two are
copied to a temporary folder, where SQLite brings the log into the copy, and the copy is read:
nothing beside the original changes, and its folder may be read-only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kernelscope.errors import DamagedFileError, TraceFileError
from kernelscope.parsers.btree_pages import WAL, Stamp, pending_write


@contextmanager
def settled(path: Path) -> Iterator[Path]:
    """Yield the file to read: itself or, where a write-ahead log holds changes, a copy with them.

    Parameters
    ----------
    path : Path
        An SQLite file.

    Raises
    ------
    DamagedFileError
        If another program writes the file or the log meanwhile.
    TraceFileError
        If there is no room for the copy; the hint says how to do without.
    """
    if pending_write(path) != WAL:
        yield path
        return
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - 6 ms, for logs only

    with TemporaryDirectory(prefix="kernelscope-") as folder:
        copy = Path(folder) / path.name
        try:
            _copy(path, copy)
        except OSError as error:
            raise TraceFileError(
                f"{path} has changes in a write-ahead log beside it, and no copy could be made to "
                f"bring them in: {error.strerror}.",
                f'Set TMPDIR to a folder with room, or run: sqlite3 {path} "PRAGMA '
                'wal_checkpoint(TRUNCATE)"',
            ) from error
        # Where SQLite cannot, whoever reads the copy finds out why, and says so. Its message may
        # quote a damaged schema, which need not be text.
        cannot = sqlite3.Error, UnicodeDecodeError
        with suppress(*cannot), closing(sqlite3.connect(copy)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield copy


def _copy(path: Path, target: Path) -> None:
    import shutil  # noqa: PLC0415

    source = path.resolve()  # a log lies beside the file itself, not beside a link to it
    log = source.with_name(f"{source.name}-wal")
    before = Stamp.of(source), Stamp.of(log)
    shutil.copyfile(source, target)
    shutil.copyfile(log, target.with_name(f"{target.name}-wal"))
    if before != (Stamp.of(source), Stamp.of(log)):
        raise DamagedFileError(
            f"{path} changed while it was read: another program writes it.",
            "Wait until it is written, and try again.",
        )
