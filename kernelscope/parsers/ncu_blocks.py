r"""The blocks of a report of Nsight Compute: is it whole, who wrote it, and how did it count?

A ``.ncu-rep`` is ``NVR\0`` and a header, then blocks: the length of a block's description, the
description, and as many bytes of payload as it says. Descriptions are protocol buffers, whose
messages NVIDIA publishes with the tool (``extras/FileFormat/ProfilerReport.proto``). The results
themselves are left to NVIDIA's own package.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

MAGIC = b"NVR\x00"

_RESULTS, _SESSION, _PAYLOAD, _PROCESS = 2, 3, 5, 6  # fields of BlockHeader
_CREATED, _KEY_VALUE, _COMMAND = 2, 8, 11  # fields of ReportSessionDetails
_VERSION_KEY = b"Nsight Compute Target"
_OPTIONS = {
    "clock_control": "--clock-control",
    "cache_control": "--cache-control",
    "replay_mode": "--replay-mode",
}
_UNIX_S = range(946_684_800, 4_102_444_800)


class BrokenBlockError(ValueError):
    """The bytes are no whole sequence of blocks."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the blocks of a report say.

    Attributes
    ----------
    processes : tuple of (int or None, str or None)
        Id and program of the process of each result, in order.
    tool_version, started_at : str or None
        As recorded; the time in ISO 8601, UTC.
    command : tuple of str
        The words of the command line; empty where it is not recorded.
    """

    processes: tuple[tuple[int | None, str | None], ...]
    tool_version: str | None
    started_at: str | None
    command: tuple[str, ...]

    def options(self) -> dict[str, str]:
        """Return the options of the command line that say how was counted, where it names them."""
        found = {}
        for column, option in _OPTIONS.items():
            for word, following in zip(self.command, [*self.command[1:], ""], strict=False):
                if word == option and following:
                    found[column] = following
                elif word.startswith(f"{option}="):
                    found[column] = word.partition("=")[2]
        return found


def read(file: BinaryIO) -> Report:
    """Return what the blocks of a report say; their payloads are passed over.

    Parameters
    ----------
    file : binary file
        The report, open to be read.

    Raises
    ------
    BrokenBlockError
        If the report is cut off or damaged.
    """
    processes: list[tuple[int | None, str | None]] = []
    version = started = None
    command: tuple[str, ...] = ()
    for block in _blocks(file):
        fields = dict(block)
        process = _process(fields.get(_PROCESS))
        results = fields.get(_RESULTS, 0)
        processes += [process] * (results if isinstance(results, int) else 0)
        session = fields.get(_SESSION)
        if not isinstance(session, bytes):
            continue
        for number, value in _fields(session):
            if number == _CREATED and isinstance(value, int) and value in _UNIX_S:
                started = datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            elif number == _KEY_VALUE and isinstance(value, bytes) and _VERSION_KEY in value:
                version = _version(value)
            elif number == _COMMAND and isinstance(value, bytes):
                command = _words(value)
    return Report(tuple(processes), version, started, command)


def _blocks(file: BinaryIO) -> Iterator[list[tuple[int, int | bytes]]]:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise BrokenBlockError("it does not begin as one")
    _description(file, size)
    while file.tell() < size:
        fields = list(_fields(_description(file, size)))
        payload = dict(fields).get(_PAYLOAD, 0)
        end = file.tell() + (payload if isinstance(payload, int) else 0)
        if end > size:
            raise BrokenBlockError(f"a block ends at byte {end:,}")
        file.seek(end)
        yield fields


def _description(file: BinaryIO, size: int) -> bytes:
    """Return the bytes whose length stands where the file is."""
    length = int.from_bytes(file.read(4), "little")
    end = file.tell() + length
    if end > size:
        raise BrokenBlockError(f"a block ends at byte {end:,}")
    found = file.read(length)
    if len(found) < length or not length:
        raise BrokenBlockError("a block has no description")
    return found


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Iterate over the fields of a protocol buffer: number, and integer or bytes."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if wire == 2:
            length, place = _varint(message, place)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise BrokenBlockError("a description is damaged")
        if place + length > len(message):
            raise BrokenBlockError("a description is damaged")
        yield number, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message) and shift < 64:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise BrokenBlockError("a description is damaged")


def _process(message: int | bytes | None) -> tuple[int | None, str | None]:
    if not isinstance(message, bytes):
        return None, None
    fields = dict(_fields(message))
    number, program = fields.get(1), fields.get(3)
    name = None
    if isinstance(program, bytes) and program:
        name = re.split(r"[/\\]", program.decode("utf-8", "replace"))[-1]
    return (number if isinstance(number, int) else None), name


def _version(message: bytes) -> str | None:
    value = dict(_fields(message)).get(2)
    return value.decode("utf-8", "replace").split(" ")[0] if isinstance(value, bytes) else None


def _words(command: bytes) -> tuple[str, ...]:
    text = command.decode("utf-8", "replace")
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote that is never closed
        return tuple(text.split())
