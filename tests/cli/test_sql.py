"""``kernelscope sql``: lists, descriptions, queries, formats, and what is wrong with them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelscope import parsers
from kernelscope.cli import COMPLETION_VARIABLE
from kernelscope.report.sql_tables import relations
from tests.cli.conftest import Run
from tests.corpus import each, nsys_traces

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "resnet_training.sqlite"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
WIDE = (
    "SELECT * FROM kernels LIMIT 3",
    "SELECT name, count(*) AS n, avg(end_ns - start_ns) FROM kernels GROUP BY name",
    "SELECT name, call_name, call_start_ns FROM kernel_launches LIMIT 5",
    "SELECT * FROM result_devices",
    "SELECT path, name, kernel_ns FROM result_ranges",
)


def test_tables_are_listed_with_their_rows(run: Run, trace_file: Path) -> None:
    out = run("sql", trace_file).out

    for name in relations():
        assert f"\n{name} " in out or f"\n{name}\n" in out
    assert "Which kernels ran on the device, one row per execution? 2 rows." in out
    assert "NVTX ranges did the program open? Not recorded." in " ".join(out.split())


def test_tables_are_listed_without_a_trace(run: Run) -> None:
    outcome = run("sql")

    assert outcome.code == 0
    assert "result_kernels" in outcome.out
    assert "rows." not in outcome.out


def test_a_table_is_described(run: Run) -> None:
    out = run("sql", "--describe", "result_kernels").out

    assert "quantiles_ns_p5   5 % of durations are at most this (real, ns, or NULL)" in out


def test_the_guide_is_for_scripts_too(run: Run, trace_file: Path) -> None:
    made = json.loads(run("sql", trace_file, "--format", "json").out)
    by_name = {table["table"]: table for table in made["tables"]}

    assert by_name.keys() == relations().keys()
    assert by_name["kernels"]["rows"] == 2
    assert by_name["kernels"]["columns"][0] == {
        "column": "start_ns", "type": "integer", "unit": "ns", "optional": False,
        "meaning": "when it began",
    }  # fmt: skip
    one = json.loads(run("sql", "--describe", "window", "--format", "json").out)
    assert [table["table"] for table in one["tables"]] == ["window"]


def test_a_query_is_answered(run: Run, trace_file: Path) -> None:
    outcome = run("sql", trace_file, "SELECT name, end_ns - start_ns AS ns FROM kernels")

    assert outcome.out.splitlines() == ["name     ns", "sgemm  2000", "relu   1000"]
    assert outcome.err == ""


def test_a_query_may_begin_with_a_comment(run: Run, trace_file: Path) -> None:
    outcome = run("sql", trace_file, "-- how many\nSELECT count(*) FROM kernels", "--format", "csv")
    assert outcome.out.splitlines()[1:] == ["2"]


def test_a_query_comes_from_standard_input(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT count(*) AS n\nFROM kernels;\n"))

    assert run("sql", trace_file, "-", "--format", "csv").out == "n\n2\n"


def test_numbers_are_those_of_analyze(run: Run) -> None:
    whole = json.loads(run("analyze", SAMPLE, "--format", "json").out)
    query = (
        "SELECT name, sum(end_ns - start_ns) AS total_ns FROM kernels GROUP BY name "
        "ORDER BY total_ns DESC, name"
    )
    ours = json.loads(run("sql", SAMPLE, query, "--format", "json").out)

    expected = [{"name": row["name"], "total_ns": row["total_ns"]} for row in whole["kernels"]]
    assert ours["rows"] == expected


def test_results_speak_of_the_chosen_window(run: Run) -> None:
    query = "SELECT busy_ns, w.duration_ns FROM result_devices, window AS w"
    chosen = ("--between", "500ms,600ms", "--format", "json")
    ours = json.loads(run("sql", SAMPLE, query, *chosen).out)["rows"][0]
    whole = json.loads(run("analyze", SAMPLE, *chosen).out)

    assert ours["busy_ns"] == whole["devices"][0]["busy_ns"]
    assert ours["duration_ns"] == 100_000_000


def test_text_is_cut_and_data_is_not(run: Run) -> None:
    query = "SELECT name FROM kernels"

    text = run("sql", SAMPLE, query, "--top", "3").out.splitlines()
    assert len(text) == 5
    assert text[-1] == "… more: only the first 3 rows (--top 0 shows all)"
    assert len(run("sql", SAMPLE, query, "--top", "0").out.splitlines()) == 1921
    assert len(run("sql", SAMPLE, query, "--top", "3", "--format", "csv").out.splitlines()) == 1921
    assert (
        len(run("sql", SAMPLE, query, "--top", "3", "--format", "markdown").out.splitlines()) == 7
    )


def test_output_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"

    args = ("SELECT count(*) AS n FROM kernels", "--format", "csv", "-o", target)
    assert run("sql", SAMPLE, *args).out == ""
    assert target.read_text() == "n\n1920\n"
    assert run("sql", SAMPLE, "SELECT 1", "-o", SAMPLE).code == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("SELECT nam FROM kernels",), "Did you mean 'name'?"),
        (("SELECT * FROM kernel",), "Did you mean 'kernels'?"),
        (("DROP TABLE kernels",), "can only read"),
        (("WITH a AS (SELECT 1) DELETE FROM kernels",), "can only read"),
        (("SELECT 1", "--describe", "kernels"), "takes no QUERY"),
        (("--describe", "kernel"), "Did you mean 'kernels'?"),
        (("--format", "csv"), "text or json"),
        ((ENDLESS, "--timeout", "0.1"), "stopped after 0.1 s"),
        (("SELECT 1", "--timeout", "0"), "--timeout"),
        (("SELECT 'a\x1b",), "\\x1b"),
    ],
)
def test_mistakes_are_answered(
    run: Run, trace_file: Path, args: tuple[str, ...], says: str
) -> None:
    outcome = run("sql", trace_file, *args)

    assert outcome.code == 2
    assert says in outcome.err
    assert "\x1b" not in outcome.err


def test_what_was_not_recorded_is_not_taken_for_nothing(run: Run, trace_file: Path) -> None:
    outcome = run("sql", trace_file, "SELECT count(*) AS n FROM ranges", "--format", "csv")

    assert outcome.out == "n\n0\n"
    assert "not recorded: nsys profile --trace=cuda,nvtx" in outcome.err
    assert run("sql", trace_file, "SELECT count(*) FROM kernels").err == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no such signal")
def test_a_query_can_be_interrupted() -> None:
    code = (
        "import signal, sys\n"
        "from kernelscope import parsers\n"
        "from tests.cli.conftest import five_rows\n"
        "parsers.read = lambda file: five_rows()\n"
        "from kernelscope.cli import main\n"
        "signal.setitimer(signal.ITIMER_REAL, 1.5)\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        f"sys.exit(main(['sql', 'trace.sqlite', {ENDLESS!r}, '--timeout', '60']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("words", "offered"),
    [("sql --describe result_k", "result_kernels"), ("explain devices.k", "devices.kernel_ns")],
)
def test_names_are_completed(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str, offered: str
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"kernelscope {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))

    assert offered in run().out


@each(nsys_traces())
@pytest.mark.parametrize("width", [60, 120])
def test_every_trace_fits_the_page(
    run: Run, monkeypatch: pytest.MonkeyPatch, trace_file: Path, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    trace = parsers.read(str(trace_file))
    monkeypatch.setattr(parsers, "read", lambda _: trace)
    for args in ((), *((query,) for query in WIDE)):
        outcome = run("sql", trace_file, *args)
        assert outcome.code == 0
        assert max(map(len, outcome.out.splitlines())) <= width


def test_a_plain_terminal_gets_plain_text(
    run: Run, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.cli.printing.in_unicode", lambda: False)

    assert run("sql", trace_file).out.isascii()
    assert run("explain", "devices.kernel_ns").out.replace("?", "").isascii()


def test_a_description_needs_no_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "read", lambda _: pytest.fail("read"))

    assert run("sql", "--describe", "kernels").code == 0
