"""SQL over a trace and its analysis, so that anyone can check a number.

The tables lie in an SQLite database in memory. It begins empty: SQLite itself says which tables
and columns a query reads (its authorizer hears of each), and only those are filled in. A query
over three columns of 10⁶ kernels costs two thirds of a second more than the query alone; all 25
columns cost three times that. DuckDB would query NumPy columns where they lie, but is a package of
its own, of 60 MB, can read and write files by itself, and could not be had by a plain install.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelscope.errors import QueryError
from kernelscope.parsers import read
from kernelscope.report.rows import ordered, tuples
from kernelscope.report.sql_functions import add_functions
from kernelscope.report.sql_mistakes import ONLY_READS, mistake
from kernelscope.report.sql_tables import (
    Relation,
    Source,
    column_name,
    contents,
    relations,
    source_of,
)
from kernelscope.schema import DType, TableSchema
from kernelscope.trace import Table, Trace

if TYPE_CHECKING:
    import pandas as pd

_TYPES: dict[DType, str] = {
    "int64": "INTEGER", "float64": "REAL", "category": "TEXT", "bool": "INTEGER",
}  # fmt: skip

_CHUNK = 50_000
"""Rows that are filled in at a time: as Python objects they are ten times as large."""

_STEPS = 20_000
"""Instructions of SQLite's machine, about a millisecond, between two looks at the clock."""

_READS = frozenset(
    (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
)  # fmt: skip
_NO_FUNCTION = frozenset(("load_extension", "fts3_tokenizer"))
_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_BEGINNING = re.compile(rf"{_COMMENTS}(?P<word>[a-z]*)", re.IGNORECASE | re.DOTALL)
_READING = ("SELECT", "WITH", "VALUES", "EXPLAIN")

_QUOTED = re.compile(
    r"""'(?:[^']|'')*' | --[^\n]* | /\*.*?\*/ | "(?P<name>(?:[^"]|"")*)" """, re.VERBOSE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found.

    Attributes
    ----------
    columns : tuple of str
        Their names, each once.
    rows : list of tuple
        Integers, floats, texts, bytes, and None where missing.
    more : bool
        Whether rows were left out because a limit was given.
    tables : tuple of str
        The tables that it read.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    more: bool
    tables: tuple[str, ...]


def sql(source: Trace | str | os.PathLike[str], query: str) -> pd.DataFrame:
    """What does an SQL query over a trace and its analysis find?

    Parameters
    ----------
    source : Trace or path
        A trace, or a file that :func:`kernelscope.read` reads.
    query : str
        One statement that reads, in SQLite's SQL. Canonical tables keep their names
        (``kernels``), result tables are called ``result_…`` (``result_kernels``), and the dots in
        their columns are underscores (``quantiles_ns_p5``). ``kernelscope sql`` lists them all.

    Returns
    -------
    pandas.DataFrame
        Missing integers are <NA>.

    Raises
    ------
    QueryError, SelectionError
        If the query is wrong, or names what does not exist.

    Examples
    --------
    >>> ks.sql(trace, "SELECT name, sum(end_ns - start_ns) AS ns FROM kernels GROUP BY name")
    ... # doctest: +SKIP
    """
    trace = source if isinstance(source, Trace) else read(source)
    return frame(execute(source_of(trace), query))


def execute(
    source: Source, query: str, *, limit: int | None = None, timeout_s: float | None = None
) -> Answer:
    """Run one reading statement.

    Parameters
    ----------
    source : Source
        What is asked.
    query : str
        The statement.
    limit : int, optional
        How many rows are wanted at the most.
    timeout_s : float, optional
        How long the statement may run.

    Raises
    ------
    QueryError
        If it is no statement that reads, or runs too long.
    SelectionError
        If it names a table, column or function that does not exist.
    KeyboardInterrupt
        If it is interrupted while SQLite runs.
    """
    query = _must_read(query)
    with closing(_database(query)) as connection:
        read_ = _columns_read(connection, query)
        for name, columns in read_.items():
            if not relations()[name].definition:
                _fill(connection, relations()[name], columns, contents(name, source))
        connection.execute("PRAGMA query_only = 1")
        connection.set_authorizer(_authorizer({}))
        with _explained(connection, query, timeout_s):
            cursor = connection.execute(query)
            rows = cursor.fetchall() if limit is None else list(islice(cursor, limit + 1))
    more = limit is not None and len(rows) > limit
    names = _unique([each[0] for each in cursor.description or ()])
    return Answer(names, rows[:limit] if more else rows, more, tuple(read_))


def frame(answer: Answer) -> pd.DataFrame:
    """Return what a query found as a pandas DataFrame."""
    import pandas as pd  # noqa: PLC0415 - 300 ms that only those who ask for a frame pay

    columns = list(zip(*answer.rows, strict=True)) or [()] * len(answer.columns)
    return pd.DataFrame(
        {name: _series(list(values)) for name, values in zip(answer.columns, columns, strict=True)}
    )


def _series(values: list[Any]) -> Any:
    import pandas as pd  # noqa: PLC0415 - as above

    kinds = {type(value) for value in values}
    if kinds == {int, type(None)}:
        return pd.array(values, dtype="Int64")
    if kinds == {float, type(None)}:
        return pd.Series(values, dtype="float64")
    return pd.Series(values, dtype=None if values else "object")


def _must_read(query: str) -> str:
    """Return a query that begins like one, a name in double quotes written as a name.

    SQLite takes a mistyped "column" in double quotes for a text, whose sum is 0, and nothing that
    is no Unicode text: a terminal's bytes come as halves of surrogate pairs.
    """
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise QueryError(
            "The query holds bytes that are no text in the encoding of this terminal or file.",
            "Write it in UTF-8, and set a locale that is UTF-8: LC_ALL=C.UTF-8",
        )
    match = _BEGINNING.match(query)
    word = match["word"].upper() if match else ""
    if word not in _READING:
        raise QueryError(
            f"A query does not begin with {word!r}." if word else "There is no query.", ONLY_READS
        )
    return _QUOTED.sub(_as_name, query)


def _as_name(match: re.Match[str]) -> str:
    """Return a name in brackets, which is never a text; other tokens as they are."""
    name = match["name"]
    return match[0] if not name or set('"[]') & set(name) else f"[{name}]"


def _database(query: str) -> sqlite3.Connection:
    """Return a database in memory with every table that `query` could mean, all of them empty."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    add_functions(connection)
    everything = "sqlite_" in query.casefold() or "pragma_" in query.casefold()
    for name in relations() if everything else _mentioned(query):
        connection.execute(_created(name))
    return connection


def _mentioned(query: str) -> Iterator[str]:
    """Yield the tables whose names occur in a query, and those that their views are made of.

    SQLite takes a tenth of a millisecond to make a table, and there are many.
    """
    text, views = query.casefold(), [each for each in relations().values() if each.definition]
    found: set[str] = set()
    left = [name for name in relations() if name in text]
    for name in left:  # grows
        if name not in found:
            found.add(name)
            definition = next((each.definition for each in views if each.name == name), "")
            left += [each for each in relations() if each in definition]
    return (name for name in relations() if name in found)


@cache
def _created(name: str) -> str:
    """Return the statement that makes a table or a view."""
    relation = relations()[name]
    if relation.definition:
        return f'CREATE VIEW "{name}" AS {relation.definition}'
    columns = ", ".join(
        f'"{column_name(each.name)}" {_TYPES[each.dtype]}' for each in relation.schema.columns
    )
    return f'CREATE TABLE "{name}" ({columns})'


def _columns_read(connection: sqlite3.Connection, query: str) -> dict[str, set[str]]:
    """Return which columns of which tables a query reads, as SQLite compiles it."""
    found: dict[str, set[str]] = {}
    connection.set_authorizer(_authorizer(found))
    match = _BEGINNING.match(query)
    explains = match is not None and match["word"].upper() == "EXPLAIN"
    with _explained(connection, query, None):
        connection.execute(query if explains else f"EXPLAIN {query}").close()
    connection.set_authorizer(None)
    return found


def _authorizer(found: dict[str, set[str]]) -> Callable[..., int]:
    """Return what lets a statement read and nothing else, and notes in `found` what it reads."""
    known = relations()

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first is not None and first in known:
            columns = found.setdefault(first, set())
            columns.update({second} if second else ())
        forbidden = action == sqlite3.SQLITE_FUNCTION and second in _NO_FUNCTION
        return sqlite3.SQLITE_OK if action in _READS and not forbidden else sqlite3.SQLITE_DENY

    return authorize


def _fill(
    connection: sqlite3.Connection, relation: Relation, names: set[str], table: Table
) -> None:
    """Insert the named columns of a table; at least one, so that its rows can be counted."""
    table = ordered(table) if relation.kind == "result" else table
    chosen = [each for each in table.schema.columns if column_name(each.name) in names]
    chosen = chosen or [table.schema.columns[0]]
    part = TableSchema(relation.name, "", tuple(chosen))
    narrow = Table(part, {each.name: table.columns[each.name] for each in chosen})
    listed = ", ".join(f'"{column_name(name)}"' for name in part.names)
    marks = ", ".join("?" * len(chosen))
    statement = f'INSERT INTO "{relation.name}" ({listed}) VALUES ({marks})'
    connection.execute("BEGIN")
    for start in range(0, len(table), _CHUNK):
        rows = narrow.take(np.arange(start, min(start + _CHUNK, len(table))))
        connection.executemany(statement, tuples(rows))
    connection.execute("COMMIT")


@contextmanager
def _explained(
    connection: sqlite3.Connection, query: str, timeout_s: float | None
) -> Iterator[None]:
    """Turn SQLite's errors into ours, and stop at a timeout or at Ctrl-C.

    A signal's handler runs when Python does: SQLite calls back often enough.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    connection.set_progress_handler(lambda: end is not None and time.monotonic() > end, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise mistake(connection, error, query) from None
        if end is None or time.monotonic() <= end:
            raise KeyboardInterrupt from None
        raise QueryError(
            f"The query was stopped after {timeout_s:g} s.",
            "Give it more with --timeout, or let it read less: WHERE, LIMIT.",
        ) from None
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise mistake(connection, error, query) from None
    finally:
        connection.set_progress_handler(None, 0)


def _unique(names: list[str]) -> tuple[str, ...]:
    """Return `names` with a number behind those that occurred before: a JSON key stands once."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        number = 1
        while names[place] in seen:
            number += 1
            names[place] = f"{name}_{number}"
        seen.add(names[place])
    return tuple(names)
