"""SQL over a trace: it holds what the trace holds, changes nothing, and finds what is reported."""

from __future__ import annotations

import math
import signal
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import kernelscope as ks
from kernelscope import oracle
from kernelscope.errors import KernelscopeError, QueryError, SelectionError
from kernelscope.metrics.explanations import Topic, topics
from kernelscope.report import sql
from kernelscope.report.explained import compare
from kernelscope.report.rows import ordered, plain
from kernelscope.report.sql_functions import deviation, interpolated
from kernelscope.report.sql_tables import Source, column_name, relations, source_of
from kernelscope.trace import Table, Trace
from tests.cli.conftest import five_rows
from tests.corpus import each, nsys_traces

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(ROOT.glob("traces/*.sqlite"))
RESNET = ROOT / "traces" / "resnet_training.sqlite"
MOST_BYTES = 1_000_000
"""Of the corpus, files up to this size: every query sweeps the trace anew."""

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def rows(trace: Trace, query: str) -> list[tuple[Any, ...]]:
    return sql.execute(source_of(trace), query).rows


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_table_holds_what_it_is_made_of(sample: Path) -> None:
    source = source_of(ks.read(sample))
    tables = dict(source.trace.tables)
    tables |= {f"result_{name}": ordered(each) for name, each in source.analysis().tables.items()}
    for relation in relations().values():
        answer = sql.execute(source, f'SELECT * FROM "{relation.name}"')
        assert answer.columns == relation.columns
        if relation.name in tables:
            assert answer.rows == as_in_sql(tables[relation.name]), relation.name


def as_in_sql(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*(plain(table, name) for name in table.schema.names), strict=True))


def test_names_of_tables_mean_one_thing() -> None:
    names = list(relations())

    assert len({name.casefold() for name in names}) == len(names)
    for relation in relations().values():
        assert len(set(relation.columns)) == len(relation.columns)
    assert column_name("quantiles_ns.p5") in relations()["result_kernels"].columns


def test_a_query_over_events_needs_no_analysis() -> None:
    def never() -> Any:
        raise AssertionError("the analysis was made")

    trace = five_rows()
    source = Source(trace, never, lambda: source_of(trace).window())

    found = sql.execute(source, "SELECT count(*), max(w.end_ns) FROM kernels, window AS w").rows
    assert found == [(2, 6_000)]


def test_missing_is_null_and_text_is_text() -> None:
    trace = five_rows()

    assert (
        rows(trace, "SELECT typeof(name), typeof(start_ns), correlation_id FROM kernels")
        == [("text", "integer", None)] * 2
    )
    assert rows(trace, "SELECT count(*) FROM copies WHERE bytes IS NULL") == [(1,)]
    assert rows(trace, "SELECT sm_fill IS NULL FROM result_devices") == [(1,)]


def test_a_launch_is_that_of_the_same_process() -> None:
    trace = ks.read(ROOT / "traces" / "two_processes_2020.sqlite")
    query = (
        "SELECT k.start_ns, k.name, max(a.start_ns) FROM kernels AS k LEFT JOIN api_calls AS a "
        "ON a.correlation_id = k.correlation_id AND a.process_id = k.process_id "
        "AND a.kind <> 'wrapper' GROUP BY k.rowid ORDER BY k.rowid"
    )

    launched = "SELECT start_ns, name, call_start_ns FROM kernel_launches ORDER BY rowid"
    assert rows(trace, launched) == rows(trace, query)


def test_a_frame_for_people() -> None:
    frame = ks.sql(str(RESNET), "SELECT name, start_ns, graph_node_id FROM kernels")

    assert len(frame) == 1920
    assert frame["start_ns"].dtype == "int64"
    assert frame["graph_node_id"].isna().all()
    mixed = ks.sql(
        five_rows(), "SELECT 1 AS a, 1.5 AS b, 'x' AS c UNION ALL SELECT NULL, NULL, 'y'"
    )
    assert [str(kind) for kind in mixed.dtypes[:2]] == ["Int64", "float64"]
    assert list(ks.sql(five_rows(), "SELECT 1 AS a, 2 AS a WHERE 0").columns) == ["a", "a_2"]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM kernels", "DROP TABLE kernels", "CREATE TABLE a (b)",
        "PRAGMA user_version = 1",
        "INSERT INTO kernels (name) VALUES ('x')", "UPDATE kernels SET name = 'x'",
        "ATTACH 'out.sqlite' AS a", "VACUUM INTO 'out.sqlite'", "BEGIN", "REINDEX", "ANALYZE",
        "WITH a AS (SELECT 1) DELETE FROM kernels", "EXPLAIN DROP TABLE kernels",
        "WITH a AS (SELECT 1) INSERT INTO kernels (name) SELECT 'x'",
        "SELECT load_extension('x')", "SELECT * FROM pragma_table_info('kernels')",
        "SELECT fts3_tokenizer('simple')", "SELECT 1; DROP TABLE kernels",
        "-- SELECT\nDROP TABLE a",
        "/* SELECT */ ATTACH 'out.sqlite' AS a", "EXPLAIN ATTACH 'out.sqlite' AS a",
        "SELECT writefile('out', 'x')", "SELECT readfile('/etc/passwd')", "", "  ", "-- nothing",
    ],
)  # fmt: skip
def test_a_query_only_reads(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(KernelscopeError) as caught:
        rows(five_rows(), query)

    assert isinstance(caught.value, QueryError | SelectionError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "says", "hint"),
    [
        ("SELECT * FROM kernel", "no table 'kernel'", "Did you mean 'kernels'?"),
        ("SELECT nam FROM kernels", "no column 'nam'", "Did you mean 'name'?"),
        ("SELECT k.start FROM kernels k", "no column 'k.start'", "Did you mean 'start_ns'?"),
        ('SELECT sum("total_nss") FROM result_kernels', "no column 'total_nss'", "'total_ns'"),
        ("SELECT medien(start_ns) FROM kernels", "no function 'medien'", "'median'"),
        ("SELECT name FROM kernels, api_calls", "Several tables", "kernels.name"),
        ("SELECT FROM kernels", 'near "FROM": syntax error', "SQLite"),
        ("SELECT 1; SELECT 2", "several statements", "one query"),
        ("DROP TABLE kernels", "begin with 'DROP'", "only read"),
        ("SELECT median(1, 2)", "wrong number of arguments", "SQLite"),
        ("SELECT median(name) FROM kernels", "does not take", "numbers"),
        ("SELECT quantile(start_ns, name) FROM kernels", "does not take", "numbers"),
        ("SELECT is_communication(start_ns) FROM kernels", "does not take", "name"),
        ("SELECT '\udcff'", "no text", "UTF-8"),
    ],
)
def test_mistakes_are_answered(query: str, says: str, hint: str) -> None:
    with pytest.raises(KernelscopeError) as caught:
        rows(five_rows(), query)

    assert says in caught.value.message
    assert hint in caught.value.hint


def test_texts_may_hold_what_looks_like_names() -> None:
    trace = five_rows()

    query = (
        'SELECT \'a "nam" it\'\'s\', "name" AS "my ""x""" FROM kernels -- "hm"\n'
        "WHERE /* \"what\" */ name = 'sgemm'"
    )
    answer = sql.execute(source_of(trace), query)
    assert answer.rows == [('a "nam" it\'s', "sgemm")]
    assert answer.columns[1] == 'my "x"'


def test_a_limit_stops_early_and_says_so() -> None:
    endless = ENDLESS.replace("count(*)", "x")

    answer = sql.execute(source_of(five_rows()), endless, limit=3)
    assert (answer.rows, answer.more) == ([(1,), (2,), (3,)], True)
    assert not sql.execute(source_of(five_rows()), "VALUES (1), (2)", limit=2).more


def test_a_runaway_query_is_stopped() -> None:
    with pytest.raises(QueryError, match=r"stopped after 0\.1 s"):
        sql.execute(source_of(five_rows()), ENDLESS, timeout_s=0.1)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Windows sends no such signal")
def test_a_query_can_be_interrupted() -> None:
    main = threading.main_thread().ident
    assert main is not None
    # A shell starts what it runs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sql.execute(source_of(five_rows()), ENDLESS, timeout_s=60)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1), st.sampled_from([0, 0.05, 0.5, 0.95, 1]))
def test_functions_are_those_of_numpy(values: list[int], q: float) -> None:
    assert interpolated(list(values), q) == pytest.approx(np.quantile(values, q), rel=1e-12)
    expected = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    assert deviation(list(values)) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_functions_leave_missing_values_out() -> None:
    query = (
        "SELECT median(column1), quantile(column1, 0.5), stddev(column1) "
        "FROM (VALUES (1), (NULL), (3))"
    )
    assert rows(five_rows(), query) == [(2.0, 2.0, math.sqrt(2))]
    assert rows(five_rows(), "SELECT median(NULL), stddev(NULL)") == [(None, None)]
    names = "SELECT is_communication('ncclDevKernel_AllReduce'), is_communication(NULL)"
    assert rows(five_rows(), names) == [(1, 0)]


def queries() -> list[Topic]:
    return [topic for key, topic in topics().items() if key in topic.explanation.sql]


def differences(source: Source) -> dict[str, tuple[str, ...]]:
    """Return what SQL finds otherwise than the analysis, over every number with a query."""
    found = {}
    for topic in queries():
        comparison = compare(topic, source)
        if comparison is not None and comparison.differences:
            found[topic.key] = comparison.differences[:3]
    return found


def test_there_are_queries_and_each_is_of_a_number() -> None:
    named = {key for topic in topics().values() for key in topic.explanation.sql}

    assert len(queries()) > 100
    assert named <= topics().keys()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sql_finds_what_is_reported(sample: Path) -> None:
    assert differences(source_of(ks.read(sample))) == {}


@pytest.mark.parametrize(
    ("sample", "choice"),
    [
        ("resnet_training", {"between": (500_000_123, 700_000_456)}),
        ("resnet_training", {"only": "steady"}),
        ("resnet_training", {"within": "forward"}),
        ("two_processes_2020", {"processes": [4001]}),
        ("reversed_devices_2022", {"devices": [1]}),
    ],
)
def test_sql_finds_it_in_a_part(sample: str, choice: dict[str, Any]) -> None:
    assert differences(source_of(ks.read(ROOT / "traces" / f"{sample}.sqlite"), **choice)) == {}


@pytest.mark.parametrize("seed", range(24))
def test_sql_finds_what_is_reported_of_random_runs(tmp_path: Path, seed: int) -> None:
    """With ties, events of no length, several processes, peer copies and graphs."""
    generation = tuple(oracle.GENERATIONS)[seed % len(oracle.GENERATIONS)]
    path = oracle.write(oracle.random_run(seed), tmp_path / "run.sqlite", generation=generation)
    assert differences(source_of(ks.read(path))) == {}


@pytest.mark.slow
@each([path for path in nsys_traces() if path.stat().st_size <= MOST_BYTES])
def test_sql_finds_what_is_reported_of_real_traces(trace_file: Path) -> None:
    assert differences(source_of(ks.read(trace_file))) == {}


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [
        ("devices", "kernel_ns", lambda values: values + 1),
        ("devices", "window_ns", lambda values: values + 1),
        ("kernels", "median_ns", lambda values: values * (1 + 1e-6)),
        ("api_calls", "calls", lambda values: values - 1),
        ("gaps", "duration_ns", lambda values: values[::-1].copy()),
    ],
)
def test_a_wrong_number_is_found(table: str, column: str, change: Callable[[Any], Any]) -> None:
    source = source_of(ks.read(RESNET))
    true = source.analysis()
    rows_ = true.tables[table]
    false = Table.make(rows_.schema, {**rows_.columns, column: change(rows_[column])})
    analysis = replace(true, tables={**true.tables, table: false})

    comparison = compare(
        topics()[f"{table}.{column}"], Source(source.trace, lambda: analysis, source.window)
    )

    assert comparison is not None
    assert comparison.differences


def test_sqlite_knows_what_is_needed() -> None:
    """Window functions came with 3.25, and the list of functions with 3.30."""
    assert sqlite3.sqlite_version_info >= (3, 30)
