"""CSV is whole and unrounded, Markdown is for people."""

from __future__ import annotations

import csv
import io

import pytest

from kernelscope.metrics.analysis import TABLES
from kernelscope.report import to_csv, to_markdown
from tests.report.analyses import FILL, SGEMM, analysis, eventful, kernel, typical


def test_csv_of_kernels() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv.render(typical().kernels))))

    assert [row["name"] for row in rows] == [FILL, SGEMM]
    assert rows[1]["total_ns"] == "4000"
    assert rows[1]["std_ns"] == "1414.213562373095"
    assert rows[1]["quantiles_ns.p5"] == "1100.0"


def test_csv_leaves_missing_values_empty_and_writes_flags_as_json_does() -> None:
    lines = to_csv.render(typical().copies_by_kind).splitlines()
    assert lines[2].startswith("memset,2,,10,")

    assert to_csv.render(typical().checks).splitlines()[1] == "partition of GPU 0,10000,10000,true"


@pytest.mark.parametrize("name", [each.name for each in TABLES])
def test_every_table_can_be_written(name: str) -> None:
    for made in (typical(), eventful(), analysis()):
        table = made.tables[name]
        assert len(list(csv.reader(io.StringIO(to_csv.render(table))))) == len(table) + 1
        assert to_markdown.render(table).count("\n|") == len(table) + 2


def test_markdown_has_units_and_a_question() -> None:
    text = to_markdown.render(typical().capture_cost)

    assert text == (
        "### What did profiling itself cost inside the window?\n\n"
        "| name | events | total_ns |\n"
        "| --- | ---: | ---: |\n"
        "| buffer flush | 2 | 700 ns |\n"
    )


def test_markdown_escapes_what_would_change_the_page() -> None:
    text = to_markdown.render(analysis(kernels=[kernel("f<a|b>(int *)")]).kernels)

    assert r"| f\<a\|b>(int \*) |" in text


def test_markdown_says_what_it_leaves_out() -> None:
    text = to_markdown.render(typical().kernels, top=1)

    assert SGEMM.replace("_", r"\_") not in text
    assert "1 more rows are not shown." in text
