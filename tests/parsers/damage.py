"""Ways to damage a file, and what reading a damaged one may do."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelscope.errors import TraceFileError
from kernelscope.parsers.sqlite import SqliteFile
from tests.parsers.tables import as_list, expected, plain_rows

Damage = Callable[[random.Random, bytearray, int], None]


def flip_bits(rng: random.Random, data: bytearray, _: int) -> None:
    for _ in range(rng.randint(1, 40)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def scribble(rng: random.Random, data: bytearray, _: int) -> None:
    at = rng.randrange(len(data) - 16)
    data[at : at + 16] = rng.randbytes(16)


def swap_pages(rng: random.Random, data: bytearray, page: int) -> None:
    one, other = (rng.randrange(len(data) // page) * page for _ in range(2))
    kept = data[one : one + page]
    data[one : one + page] = data[other : other + page]
    data[other : other + page] = kept


def clear_page(rng: random.Random, data: bytearray, page: int) -> None:
    at = rng.randrange(len(data) // page) * page
    data[at : at + page] = bytes(page)


def cut(rng: random.Random, data: bytearray, page: int) -> None:
    unit = rng.choice([1, page])
    del data[rng.randrange(len(data)) // unit * unit :]


def change_page_heads(rng: random.Random, data: bytearray, page: int) -> None:
    for _ in range(rng.randint(1, 5)):
        data[rng.randrange(len(data) // page) * page + rng.randrange(60)] = rng.randrange(256)


def change_file_header(rng: random.Random, data: bytearray, _: int) -> None:
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(100)] = rng.randrange(256)


DAMAGES: tuple[Damage, ...] = (
    flip_bits, scribble, swap_pages, clear_page, cut, change_page_heads, change_file_header,
)  # fmt: skip


def check_damaged(path: Path) -> list[str]:
    """Read every table: where plain sqlite3 answers, so do we, and alike.

    Returns
    -------
    list of str
        How each table was read, or the name of the error.
    """
    try:
        file = SqliteFile.open(path)
    except (sqlite3.DatabaseError, TraceFileError) as error:
        return [type(error).__name__]
    return [_check(file, table, columns) for table, columns in file.tables.items() if columns]


def _check(file: SqliteFile, table: str, columns: tuple[str, ...]) -> str:
    truth: list[list[Any]] | None
    try:
        truth = plain_rows(file.path, table, columns)
    except (sqlite3.Error, UnicodeDecodeError):
        truth = None
    try:
        read = file.read(table, columns)
    except TraceFileError as error:
        if truth is not None or not error.hint:
            raise AssertionError(f"{table}: refused, though sqlite3 answers: {error}") from error
        return type(error).__name__
    # A damaged name cannot be asked for in SQL; its column can still be read by its place.
    if truth is None:
        assert any("\\x" in name for name in columns), f"{table}: answered, though sqlite3 refuses"
        return read.how
    for name, values in zip(columns, truth, strict=True):
        assert as_list(read.columns[name]) == expected(values), f"{table}.{name} ({read.how})"
    return read.how
