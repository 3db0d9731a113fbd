"""How paths are written, and found again; and the order of rows that tie."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.errors import SelectionError
from kernelscope.metrics.range_paths import SEPARATOR, names_in, written
from kernelscope.metrics.range_view import matching
from kernelscope.metrics.ranges import ranges, ranges_by_name
from kernelscope.report.rows import plain
from kernelscope.report.text_steps import folded
from kernelscope.trace import Table
from tests import build
from tests.metrics.scenes import kernels, launches, pushed

NAMES = st.text(st.sampled_from(" >\\/a"), max_size=6)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(names: list[str]) -> None:
    assert names_in(written(names)) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["step 1", "forward"], "step 1 > forward"),
        (["std::vector<int>", "a->b"], "std::vector<int> > a->b"),
        (["a > b"], r"a \> b"),
        (["a", ">", "b >"], r"a > \> > b \>"),
        ([r"a \> b", r"c\d"], r"a \\> b > c\d"),
    ],
)
def test_only_what_could_be_taken_for_a_separator_is_escaped(names: list[str], text: str) -> None:
    assert written(names) == text


def ambiguous() -> Table:
    """A range called ``a > b``, and a range ``b`` inside a range ``a``."""
    trace = build.trace(
        ranges=pushed((0, 10, "a > b"), (20, 30, "a"), (21, 29, "b"), (40, 50, "x/y")),
        api_calls=launches((1, 2), (22, 23)),
        kernels=kernels((100, 103, 1), (110, 115, 2)),
    )
    return ranges(trace)


def paths(table: Table) -> list[str]:
    return [str(text).replace(SEPARATOR, "|") for text in table.texts("path")]


def test_a_name_is_not_taken_for_a_path() -> None:
    table = ambiguous()
    assert plain(table, "path") == ["a", "a > b", r"a \> b", "x/y"]
    assert paths(matching(table, path="a > b")) == ["a|b"]
    assert paths(matching(table, path=r"a \> b")) == ["a > b"]
    assert paths(matching(table, path="a/b")) == ["a|b"]
    assert paths(matching(table, path="x/y")) == ["x/y"]
    assert paths(matching(table, path="a")) == ["a", "a|b"]
    for path in plain(table, "path"):
        assert path in plain(matching(table, path=path), "path")


def test_a_name_may_be_typed_as_it_is_where_nothing_else_is_meant() -> None:
    table = ambiguous()
    alone = table.take(np.array([path != "a|b" for path in paths(table)]))
    assert paths(matching(alone, path="a > b")) == ["a > b"]
    with pytest.raises(SelectionError, match="No range lies at 'a > c'"):
        matching(alone, path="a > c")


def test_a_unit_separator_in_a_name_makes_no_path_of_it() -> None:
    trace = build.trace(ranges=pushed((0, 10, f"a{SEPARATOR}b")))
    assert plain(ranges(trace), "path") == ["a\N{SYMBOL FOR UNIT SEPARATOR}b"]


def test_rows_that_tie_come_by_path_domain_style_and_process() -> None:
    """Whatever the order in which they were recorded."""
    tables = [
        pushed((10 * place, 10 * place + 5, name), domain=domain, process_id=process)
        for place, (name, domain, process) in enumerate(
            (name, domain, process)
            for name in ("b", "a", "c 2", "c 1")
            for domain in ("", "mine")
            for process in (2, 1)
        )
    ]
    expected = [
        (name, domain, process)
        for name in ("a", "b", "c 1", "c 2")
        for domain in ("", "mine")
        for process in (1, 2)
    ]
    for seed in range(5):
        random.Random(seed).shuffle(tables)
        trace = build.trace(ranges=build.joined(*tables))
        for table in (ranges(trace), ranges_by_name(trace)):
            keys = (table.texts("name"), table.texts("domain"), table["process_id"].tolist())
            assert list(zip(*keys, strict=True)) == expected
        rows = folded(ranges(trace))
        found = [(*row["path"], row["domain"], row["process_id"]) for row in rows]
        folds = [(name, domain, process) for name, domain, process in expected if name < "c"]
        assert found[:4] == [("c #", domain, process) for _, domain, process in expected[:4]]
        assert found[4:] == folds
