"""The rows of a table as JSON text, made a column at a time.

A dictionary per row costs more than everything that an analysis computes, where it has tens of
thousands of rows. Here the encoder takes whole columns, and a row is a template that is filled:
what is the same in all rows is written into it once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.report.rows import plain
from kernelscope.schema import Column
from kernelscope.trace import Table

_MARK: Any = 10**30 + 7
"""More than any integer of a trace; a name that spells it costs time, no more."""

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
"""A value as JSON; ValueError if a number is not finite: JSON knows no NaN, and absent is null."""

_INSIDE = encode(SEPARATOR)[1:-1]
"""What stands between the names of a path once its text is JSON."""
_BETWEEN = '", "'


class JsonRows(list[str]):
    """Rows that are JSON texts already."""


def json_rows(table: Table) -> JsonRows:
    """Return the rows of `table` as JSON: the texts of what :func:`document.records` returns."""
    if not len(table):
        return JsonRows()
    groups = grouped_names(table).items()
    return JsonRows(
        _objects([(name, _group(table, name, each)) for name, each in groups], len(table))
    )


def grouped_names(table: Table) -> dict[str, list[str]]:
    """Return the columns of `table` by what stands before their dot; without one, by name."""
    groups: dict[str, list[str]] = {}
    for name in table.schema.names:
        groups.setdefault(name.partition(".")[0], []).append(name)
    return groups


def parts_of(names: Sequence[str]) -> tuple[list[str], bool]:
    """Return what stands behind the dots of a group's columns, and whether that numbers a list."""
    parts = [name.partition(".")[2] for name in names]
    return parts, all(part.isdigit() for part in parts)


def split(values: list[Any]) -> list[str]:
    """Return each value as JSON, encoded at once: a call for each takes twice as long.

    What is put between them is told from the data by its number.
    """
    joined = [_MARK] * (2 * len(values) - 1)
    joined[::2] = values
    parts = encode(joined)[1:-1].split(f", {_MARK}, ")
    return parts if len(parts) == len(values) else [encode(value) for value in values]


def _objects(members: list[tuple[str, list[str] | str]], rows: int) -> list[str]:
    """Return JSON objects of members, of each its name and the texts of its values."""
    filled = [texts for _, texts in members if not isinstance(texts, str)]
    values = [_escaped(texts) if isinstance(texts, str) else "%s" for _, texts in members]
    slots = [
        f"{_escaped(encode(name))}: {value}"
        for (name, _), value in zip(members, values, strict=True)
    ]
    template = f"{{{', '.join(slots)}}}"
    if not filled:
        return [template % ()] * rows
    return [template % row for row in zip(*filled, strict=True)]


def _escaped(text: str) -> str:
    """Return `text` as it stands in a template."""
    return text.replace("%", "%%")


def _group(table: Table, group: str, names: list[str]) -> list[str] | str:
    """Return the JSON of each row's value, which may have several columns; one text for all."""
    if names == [group]:
        return _column(table, group)
    parts, numbered = parts_of(names)
    each = [_column(table, name) for name in names]
    if numbered:
        rows = zip(*_repeated(each, len(table)), strict=True)
        absent = ("null",) * len(parts)
        texts = ["null" if row == absent else f"[{', '.join(row)}]" for row in rows]
        return texts[0] if all(isinstance(text, str) for text in each) else texts
    objects = _objects(list(zip(parts, each, strict=True)), len(table))
    return objects[0] if all(isinstance(text, str) for text in each) else objects


def _repeated(each: list[list[str] | str], rows: int) -> Iterator[list[str]]:
    for texts in each:
        yield [texts] * rows if isinstance(texts, str) else texts


def _column(table: Table, name: str) -> list[str] | str:
    column, stored = table.schema.column(name), table[name]
    if column.dtype == "category":
        first = int(stored[0])
        if bool((stored == first).all()):
            return "null" if first < 0 else _texts([table.categories(name)[first]], column)[0]
        texts = [*_texts(table.categories(name), column), "null"]
        return [texts[code] for code in stored.tolist()]  # −1, missing, is the last place
    if bool((stored == stored[0]).all()):
        return encode(plain(table.take(np.zeros(1, dtype=np.intp)), name)[0])
    return encode(plain(table, name))[1:-1].split(", ")


def _texts(categories: Sequence[str], column: Column) -> list[str]:
    texts = split(list(categories))
    if column.unit != "path":
        return texts
    return [
        f"[{text.replace(_INSIDE, _BETWEEN)}]"
        if "\\" not in raw
        else encode(raw.split(SEPARATOR))  # `\u001f` could be what a name spells
        for raw, text in zip(categories, texts, strict=True)
    ]
