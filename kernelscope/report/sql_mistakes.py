"""What is wrong with an SQL query, in words, with the nearest names where one does not exist."""

from __future__ import annotations

import re
import sqlite3

from kernelscope.errors import KernelscopeError, QueryError, SelectionError, nearest
from kernelscope.report.sql_tables import relations

ONLY_READS = "A query can only read the tables: begin with SELECT, WITH, VALUES or EXPLAIN."
_HELP = "kernelscope sql FILE lists the tables, --describe TABLE the columns of one."


def mistake(connection: sqlite3.Connection, error: Exception, query: str) -> KernelscopeError:
    """Return the error to raise in the place of SQLite's.

    Parameters
    ----------
    connection : Connection
        Which knows its functions.
    error : Exception
        What SQLite says.
    query : str
        Of what.
    """
    what, _, name = str(error).partition(": ")
    if what.startswith("no such "):
        return _no_such(connection, what.removeprefix("no such "), name, query)
    if what == "ambiguous column name":
        return QueryError(f"Several tables have a column {name!r}.", f"Say whose: kernels.{name}")
    if "not authorized" in what or "prohibited" in what:
        return QueryError("The query does more than read.", ONLY_READS)
    if "one statement" in what:
        return QueryError("These are several statements.", "Give one query at a time.")
    if what.startswith("user-defined "):  # ours, given a value of another kind
        return QueryError(
            "A function was given what it does not take.",
            "median, quantile and stddev take numbers, is_communication a kernel's name.",
        )
    return QueryError(f"SQLite does not take the query: {error}", f"Its SQL is SQLite's. {_HELP}")


def _no_such(connection: sqlite3.Connection, kind: str, name: str, query: str) -> KernelscopeError:
    if kind == "table":
        hint = f"{nearest(name, relations())} {_HELP}"
    elif kind == "column":
        hint = f"{nearest(name.rpartition('.')[2], _columns_near(query))} {_HELP}"
    elif kind == "function":
        connection.set_authorizer(None)
        there = connection.execute("SELECT DISTINCT name FROM pragma_function_list")
        hint = nearest(name, [row[0] for row in there]).partition("Known:")[0].rstrip()
    else:
        hint = _HELP
    return SelectionError(f"There is no {kind} {name!r}.", hint)


def _columns_near(query: str) -> list[str]:
    """Return the columns of the tables that occur in a query; of all tables, if none does."""
    words = set(re.findall(r"\w+", query))
    named = [each for each in relations().values() if each.name in words]
    return [column for each in named or relations().values() for column in each.columns]
