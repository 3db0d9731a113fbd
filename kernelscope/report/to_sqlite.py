"""An analysis as a SQLite database: a table per result, with keys, ready for Datasette."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelscope.metrics.analysis import TABLES, Analysis
from kernelscope.report.document import SCHEMA_VERSION, capture
from kernelscope.report.printable import json_text, printable
from kernelscope.report.rows import ordered, tuples
from kernelscope.report.sql_tables import column_name
from kernelscope.schema import DType, TableSchema
from kernelscope.trace import Table

if TYPE_CHECKING:
    from sqlite_utils import Database

PRIMARY_KEYS: dict[str, str | tuple[str, ...]] = {
    "kernels": "name",
    "api_calls": "name",
    "copies_by_kind": "kind",
    "devices": "index",
}
"""Tables whose rows have a name of their own that is never missing."""

FOREIGN_KEYS: dict[str, list[tuple[str, str, str]]] = {
    "kernels_by_device": [("name", "kernels", "name")],
    "launch_shapes": [("name", "kernels", "name")],
    "copies": [("kind", "copies_by_kind", "kind")],
    "device_ordinals": [("index", "devices", "index")],
    **{
        name: [("device", "devices", "index")]
        for name in (
            "gaps",
            "idle",
            "gap_spectrum",
            "idle_by_iteration",
            "launch_stretches",
            "findings",
            "peaks",
        )
    },
}
"""Links that Datasette shows: column, other table, its column."""

_TYPES: dict[DType, type] = {"int64": int, "float64": float, "category": str, "bool": int}


def write(analysis: Analysis, path: Path) -> None:
    """Write `analysis` to a new database at `path`.

    Beside the result tables stand ``capture`` and ``window`` (one row each), ``not_recorded``,
    and ``metadata``: the question of each table, and the unit and meaning of each column.

    Parameters
    ----------
    analysis : Analysis
        What to write.
    path : Path
        A file that does not exist yet, or an empty one.
    """
    from sqlite_utils import Database  # noqa: PLC0415 - costs 370 ms, only those who ask pay

    database = Database(str(path))
    try:
        # Parents first, so that foreign keys find their table.
        for each in sorted(TABLES, key=lambda schema: schema.name not in PRIMARY_KEYS):
            _write_table(database, ordered(analysis.tables[each.name]))
        _write_capture(database, analysis)
        _write_metadata(database)
    finally:
        database.close()


def datasette_metadata(database: str, title: str) -> str:
    """Return the text of a ``metadata.json`` for Datasette: titles, questions, column meanings.

    Parameters
    ----------
    database : str
        The database's file name without its suffix, as Datasette calls it.
    title : str
        What was analyzed.
    """
    tables = {
        each.name: {
            "description": each.meaning,
            "columns": {
                column_name(column.name): f"{column.meaning} ({column.unit})"
                for column in each.columns
            },
        }
        for each in TABLES
    }
    content = {"title": f"kernelscope: {title}", "databases": {database: {"tables": tables}}}
    return json_text(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def _write_table(database: Database, table: Table) -> None:
    schema = table.schema
    names = [column_name(name) for name in schema.names]
    database.table(schema.name).create(
        {column_name(each.name): _TYPES[each.dtype] for each in schema.columns},
        pk=PRIMARY_KEYS.get(schema.name),
        foreign_keys=FOREIGN_KEYS.get(schema.name, []),
        not_null={column_name(each.name) for each in schema.columns if not each.optional},
    )
    # The gap list may have a million rows: one statement for all, not dictionaries in batches.
    marks = ", ".join("?" * len(names))
    with database.conn:
        database.conn.executemany(f"INSERT INTO [{schema.name}] VALUES ({marks})", tuples(table))


def _write_capture(database: Database, analysis: Analysis) -> None:
    about = capture(analysis.capture)
    not_recorded = about.pop("not_recorded")
    about["recorded"] = ", ".join(about["recorded"])
    about["file"] = printable(about["file"])  # SQLite's text is UTF-8, a file's name need not be
    window = analysis.window
    database.table("capture").insert({**about, "report_schema_version": SCHEMA_VERSION})
    database.table("window").insert(
        {
            "start_ns": window.start_ns,
            "end_ns": window.end_ns,
            "duration_ns": window.duration_ns,
            "chosen_by": window.chosen_by,
        }
    )
    database.table("not_recorded").create({"table": str, "how_to_record": str}, pk="table")
    database.table("not_recorded").insert_all(not_recorded)


def _write_metadata(database: Database) -> None:
    database.table("metadata").create(
        {"table": str, "column": str, "unit": str, "meaning": str}, pk=("table", "column")
    )
    database.table("metadata").insert_all(row for each in TABLES for row in _described(each))


def _described(schema: TableSchema) -> Iterator[dict[str, Any]]:
    yield {"table": schema.name, "column": "", "unit": None, "meaning": schema.meaning}
    for column in schema.columns:
        yield {
            "table": schema.name,
            "column": column_name(column.name),
            "unit": column.unit,
            "meaning": column.meaning,
        }
