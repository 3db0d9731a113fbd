"""A file that may hold counters: what it begins with, and its text where it is one."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelscope.errors import DamagedFileError
from kernelscope.parsers import sniff

_GZIP = b"\x1f\x8b"
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_MOST_TEXT = 1 << 30
_EMPTY = (
    "What should have written it was interrupted, or never ran. Print or record the counters "
    "again: ncu --csv --page raw --log-file FILE.csv PROGRAM"
)


@dataclass(frozen=True)
class CounterFile:
    """A file to be recognised.

    Attributes
    ----------
    path : Path
        Where it is.
    head : bytes
        Its first bytes.
    """

    path: Path
    head: bytes

    @classmethod
    def open(cls, path: Path) -> CounterFile:
        """Look at the beginning of a file.

        Raises
        ------
        TraceFileError
            If there is none, or it cannot be read.
        """
        cls.check(path)
        with path.open("rb") as file:
            return cls(path, file.read(sniff.HEADER_BYTES))

    @staticmethod
    def check(path: Path) -> None:
        """Check that `path` is a file that can be read.

        Raises
        ------
        TraceFileError
            If it is not; what an empty file lacks is counters, not an export.
        """
        if path.is_file() and path.stat().st_size == 0:
            raise DamagedFileError(f"{path} is empty: 0 bytes.", _EMPTY)
        sniff.existing_file(path, what="file of counters")

    @property
    def is_database(self) -> bool:
        """Whether the file begins as an SQLite database."""
        return self.head.startswith(sniff.SQLITE_MAGIC)

    @cached_property
    def text(self) -> str | None:
        """The whole text, in UTF-8, or as PowerShell writes what a program prints; None if none.

        Raises
        ------
        DamagedFileError
            If it is compressed and cut off, or larger than any such text.
        """
        marked = self.head.startswith(tuple(mark for mark, _ in _MARKS))
        compressed = self.head.startswith(_GZIP)
        if not (marked or compressed) and b"\x00" in self.head:
            return None
        data = self._unpacked() if compressed else self.path.read_bytes()
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                return data.decode(encoding, "replace")
        if b"\x00" in data[: sniff.HEADER_BYTES]:
            return None
        return data.decode("utf-8", "surrogateescape")

    def _unpacked(self) -> bytes:
        try:
            with gzip.open(self.path) as file:
                data = file.read(_MOST_TEXT + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise DamagedFileError(
                f"{self.path} is compressed with gzip, and damaged or cut off: {error}.",
                "Copy it again, if it was whole elsewhere.",
            ) from error
        if len(data) > _MOST_TEXT:
            raise DamagedFileError(
                f"{self.path} unpacks to more than {_MOST_TEXT:,} bytes.",
                "Choose kernels and metrics when printing: ncu --kernel-name … --metrics …",
            )
        return data
