"""What a query can name: the list of tables, and the columns of one of them."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kernelscope import units
from kernelscope.errors import SelectionError, nearest
from kernelscope.report.layout import Page, definitions, heading, paragraph
from kernelscope.report.sql_functions import FUNCTIONS
from kernelscope.report.sql_tables import Kind, Relation, column_name, relations
from kernelscope.schema import Column
from kernelscope.trace import Trace

_HEADINGS: dict[Kind, tuple[str, str]] = {
    "trace": ("The trace", "a row per event"),
    "context": ("The trace in context", ""),
    "result": ("The analysis", "what kernelscope analyze reports"),
}
_TYPES = {"int64": "integer", "float64": "real", "category": "text", "bool": "0 or 1"}


def listing(trace: Trace | None, page: Page) -> list[Text]:
    """Return which tables there are, and what each answers; their rows, where a trace is given."""
    made: list[Text] = []
    for kind, (title, note) in _HEADINGS.items():
        made += heading(page, title, note)
        made += definitions(
            page,
            [(each.name, _said(each, trace)) for each in relations().values() if each.kind == kind],
        )
    made += heading(page, "Functions", "beside SQLite's own")
    made += definitions(page, list(FUNCTIONS.items()))
    hint = (
        "Next: kernelscope sql --describe TABLE lists its columns; kernelscope sql FILE "
        '"SELECT count(*) FROM kernels" asks.'
    )
    return [*made, Text(), *paragraph(page, hint, style="dim")]


def description(name: str, page: Page) -> list[Text]:
    """Return the columns of a table, each with type, unit and meaning.

    Raises
    ------
    SelectionError
        If there is no such table.
    """
    found = relation(name)
    rows = [
        (column_name(each.name), f"{each.meaning} ({_kind(each)})") for each in found.schema.columns
    ]
    return [*heading(page, found.name, ""), *paragraph(page, found.schema.meaning),
            Text(), *definitions(page, rows)]  # fmt: skip


def relation(name: str) -> Relation:
    """Return the table called `name`.

    Raises
    ------
    SelectionError
        If there is none.
    """
    found = relations().get(name)
    if found is None:
        raise SelectionError(f"There is no table {name!r}.", nearest(name, relations()))
    return found


def document(trace: Trace | None, name: str | None = None) -> dict[str, Any]:
    """Return the tables, or the one called `name`, with their columns, ready for JSON."""
    chosen = [relation(name)] if name else list(relations().values())
    return {
        "tables": [
            {
                "table": each.name,
                "kind": each.kind,
                "meaning": each.schema.meaning,
                "rows": _rows(each, trace),
                "columns": [
                    {
                        "column": column_name(column.name),
                        "type": _TYPES[column.dtype],
                        "unit": column.unit,
                        "optional": column.optional,
                        "meaning": column.meaning,
                    }
                    for column in each.schema.columns
                ],
            }
            for each in chosen
        ]
    }


def _rows(each: Relation, trace: Trace | None) -> int | None:
    """Return how many rows a table of the trace has; None where that is not known."""
    return None if trace is None or each.kind != "trace" else len(trace.tables[each.name])


def _said(each: Relation, trace: Trace | None) -> str:
    """Return a table's meaning, and its rows."""
    meaning, rows = each.schema.meaning, _rows(each, trace)
    if trace is None or rows is None:
        return meaning
    if not rows and not trace.recorded(each.name):
        return f"{meaning} Not recorded."
    return f"{meaning} {units.quantity(rows, 'row')}."


def _kind(column: Column) -> str:
    """Return type and unit of a column, and whether values may be missing: ``integer, ns``."""
    parts = [_TYPES[column.dtype]]
    parts += ["here with ' > ' between the names"] if column.unit == "path" else []
    parts += [column.unit] if column.unit not in ("text", "flag", "path", "1") else []
    return ", ".join([*parts, "or NULL"] if column.optional else parts)
