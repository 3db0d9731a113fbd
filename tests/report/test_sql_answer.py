"""Rows that a query found: they fit the page, and lose nothing in data formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelscope.report import sql_answer, to_json
from kernelscope.report.layout import Page
from kernelscope.report.sql import Answer
from kernelscope.report.text import printed


def answer(columns: tuple[str, ...], *rows: tuple[Any, ...], more: bool = False) -> Answer:
    return Answer(columns, list(rows), more, ())


def shown(found: Answer, width: int = 100) -> list[str]:
    lines = sql_answer.lines(found, Page(width))
    return printed(lines, width, color=False, unicode=True).splitlines()


def test_numbers_stand_to_the_right_and_texts_to_the_left() -> None:
    found = answer(("name", "ns", "share"), ("sgemm", 12, 0.5), ("a", 1_234, None))

    assert shown(found) == [
        "name     ns  share",
        "sgemm    12    0.5",
        "a      1234      –",
    ]


def test_texts_make_room_and_numbers_never_do() -> None:
    found = answer(("name", "what", "ns"), ("a" * 80, "b" * 30, 123_456_789_012))

    (header, row) = shown(found, 60)
    assert len(row) == 60
    assert row.endswith("123456789012")
    assert "…" in row
    assert header.endswith("ns")


def test_rows_that_fit_no_page_are_shown_below_each_other() -> None:
    columns = tuple(f"column_{number}" for number in range(25))
    found = answer(columns, tuple(range(25)), ("x" * 90, *range(24)))

    lines = shown(found, 60)
    assert lines[0] == "row 1"
    assert lines[1] == "column_0   0"
    assert lines.index("row 2") == 26
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("width", [40, 60, 120])
def test_long_names_of_columns_fit_too(width: int) -> None:
    found = answer(("sum(" + "x" * 200 + ")", "b"), (1, "y" * 200))

    assert max(map(len, shown(found, width))) <= width


def test_names_that_differ_in_the_middle_are_told_apart() -> None:
    names = [f"{'a' * 60}{number}{'b' * 60}" for number in (1, 2)]
    found = answer(("name", "n"), (names[0], 1), (names[1], 2))

    _, one, two = shown(found, 60)
    assert one.split()[0] != two.split()[0]


def test_what_was_left_out_is_said() -> None:
    assert shown(answer(("a",), (1,), more=True))[-1].startswith("… more: only the first 1 row")
    assert shown(answer(("a",))) == ["No rows."]
    assert "Only the first 1 row." in sql_answer.as_markdown(answer(("a",), (1,), more=True))


def test_no_text_steers_the_terminal() -> None:
    found = answer(("a\x1b[2J",), ("b\x9b\u202e",))

    for text in ("\n".join(shown(found)), sql_answer.as_markdown(found)):
        assert not set("\x1b\x9b\u202e") & set(text)


def test_data_formats_keep_values() -> None:
    found = answer(("i", "f", "t", "b", "n"), (2**53 + 1, 0.1, 'x,"y"', b"\xff", None))

    made = json.loads(to_json.render(sql_answer.document(found)))
    assert made["rows"] == [{"i": 2**53 + 1, "f": 0.1, "t": 'x,"y"', "b": "ff", "n": None}]
    assert sql_answer.as_csv(found) == 'i,f,t,b,n\n9007199254740993,0.1,"x,""y""",ff,\n'


def test_what_json_does_not_know_is_null() -> None:
    made = sql_answer.document(answer(("a", "b"), (float("inf"), float("nan"))))

    assert made["rows"] == [{"a": None, "b": None}]


def test_markdown_escapes_what_would_format() -> None:
    text = sql_answer.as_markdown(answer(("na|me", "n"), ("f<int>", 1)))

    assert text == "| na\\|me | n |\n| --- | ---: |\n| f\\<int> | 1 |\n"
