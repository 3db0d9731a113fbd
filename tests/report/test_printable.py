"""What a trace's maker named things never steers the reader's terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope import schema
from kernelscope.report import about, text, to_json, to_markdown
from kernelscope.report.document import document
from kernelscope.report.layout import Page
from kernelscope.report.printable import json_text, printable
from kernelscope.trace import Trace
from tests import build
from tests.report.analyses import CAPTURE, analysis, device, kernel, summary

NASTY = "a\x1b[31mb\x9b2Jc\0d\u202ee\nf\tg\rh\x7fi\u2066j\u200fk\udcffl"
STEERING = re.compile(
    "[\0-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\udc80-\udcff]"
)


@pytest.mark.parametrize(
    ("raw", "spelled"),
    [
        ("void f<int>(T*) 汉字 é", "void f<int>(T*) 汉字 é"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b\x7f\0", r"\x9b\x7f\x00"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\u202e\u2066\u200e", r"\u202e\u2066\u200e"),
        ("o\udcff.db", r"o\xff.db"),
        ("\ud800", r"\ud800"),
    ],
)
def test_controls_are_spelled_out(raw: str, spelled: str) -> None:
    assert printable(raw) == spelled


@given(st.text(st.characters()))
def test_what_is_printable_can_be_shown_and_stays(raw: str) -> None:
    shown = printable(raw)

    assert not STEERING.search(shown)
    assert printable(shown) == shown
    shown.encode()


@given(st.text(st.characters()))
def test_json_keeps_values_and_can_be_shown(raw: str) -> None:
    made = json_text(json.dumps(raw, ensure_ascii=False))

    assert json.loads(made) == raw
    assert not re.search("[\0-\x1f\x7f-\x9f]", made)
    made.encode()


def test_json_escapes_only_what_it_must() -> None:
    assert to_json.render({"name": "é\x9b汉"}) == '{\n  "name": "é\\u009b汉"\n}\n'


@pytest.fixture
def nasty_trace() -> Trace:
    made = build.trace(
        kernels=build.kernels((10, 20, NASTY)),
        devices=build.devices({"name": NASTY, "chip": NASTY, "bus": NASTY}),
        processes=build.table(schema.PROCESSES, [{"process_id": 1, "name": NASTY}]),
    )
    capture = replace(
        made.capture,
        file=NASTY,
        profiler_version=NASTY,
        schema=NASTY,
        started_at=NASTY,
        warnings=(NASTY,),
        read_paths={NASTY: NASTY},
    )
    return replace(made, capture=capture)


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_report_steers_the_terminal(nasty_trace: Trace, width: int, unicode: bool) -> None:
    what = analysis(
        replace(CAPTURE, file=NASTY, profiler_version=NASTY, started_at=NASTY),
        devices=[device(name=NASTY), device(1, name=NASTY)],
        kernels=[kernel(NASTY), kernel(NASTY + "2")],
        copies=[{"kind": NASTY, "src_memory": NASTY, "operations": 1, **summary()}],
        api_calls=[{"name": NASTY, "calls": 1, **summary()}],
        health=[{"code": NASTY, "severity": "warning", "count": 1, "message": NASTY}],
        checks=[{"name": NASTY, "expected": 1, "actual": 2, "ok": False}],
        capture_cost=[{"name": NASTY, "events": 1, "total_ns": 1}],
    )
    page = Page(width)

    for shown in (
        text.render(what, page, unicode=unicode),
        about.render(nasty_trace, page, unicode=unicode),
        to_markdown.render(what.kernels),
    ):
        assert not STEERING.search(shown)
        assert r"\x1b" in shown


def test_json_of_a_nasty_trace_can_be_encoded_and_read(nasty_trace: Trace) -> None:
    shown = to_json.render(about.about(nasty_trace))

    assert not STEERING.search(
        shown.replace("\u202e", "").replace("\u2066", "").replace("\u200f", "")
    )
    assert json.loads(shown)["processes"][0]["name"] == NASTY
    to_json.render(document(analysis(kernels=[kernel(NASTY)]))).encode()


def test_a_markdown_cell_stays_one_line() -> None:
    made = to_markdown.render(analysis(kernels=[kernel("a|b\nc ![x](http://x)")]).kernels)

    assert r"| a\|b\\nc !\[x](http://x) |" in made
