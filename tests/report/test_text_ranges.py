"""The lines of a tree, and names that tell rows apart."""

from __future__ import annotations

from typing import Any

from kernelscope.metrics.range_paths import SEPARATOR
from kernelscope.metrics.range_results import RANGES, UNATTRIBUTED
from kernelscope.metrics.range_view import RangeView, matching
from kernelscope.report.layout import Page
from kernelscope.report.text_ranges import page_of, stems
from kernelscope.report.text_steps import folded, labels, outside
from kernelscope.trace import Table
from tests.build import table
from tests.report.analyses import CAPTURE, WINDOW

NOTHING = Table.empty(UNATTRIBUTED)


def test_the_lines_of_a_tree_end_where_their_level_does() -> None:
    names = ["step", "forward", "layer", "loss", "optimizer", "other", "deep", "deeper"]
    depths = [0, 1, 2, 2, 1, 0, 1, 2]
    drawn = [stem + name for stem, name in zip(stems(depths), names, strict=True)]
    assert drawn == [
        "step",
        "├─ forward",
        "│  ├─ layer",
        "│  └─ loss",
        "└─ optimizer",
        "other",
        "└─ deep",
        "   └─ deeper",
    ]


def test_a_part_of_a_tree_may_begin_deep() -> None:
    assert stems([2, 3, 1]) == ["│  └─ ", "│     └─ ", "└─ "]
    assert stems([]) == []


def drawn(table: Table, width: int = 60, top: int = 0) -> list[str]:
    """The lines of a tree from its header on."""
    view = RangeView(CAPTURE, WINDOW, 10_000, table, NOTHING, NOTHING)
    lines = [line.plain for line in page_of(view, table, Page(width, top), tree=True)]
    return lines[next(i for i, line in enumerate(lines) if line.startswith("range")) :]


def row(*path: str, kernel_ns: int = 0, **more: Any) -> dict[str, Any]:
    """A push/pop range of the default domain."""
    where = {"path": SEPARATOR.join(path), "name": path[-1], "domain": "", "style": "push_pop"}
    figures = dict.fromkeys(
        ("instances", "host_ns", "projected_ns", "busy_ns", "kernel_ns", "self_kernel_ns"),
        kernel_ns,
    )
    kinds = {f"attribution.{how}": 0 for how in ("direct", "inherited", "graph", "concurrent")}
    return {
        **where,
        "process_id": 42,
        "depth": len(path) - 1,
        **figures,
        **kinds,
        "opaque_ns": 0,
        **more,
    }


def test_time_in_opaque_graphs_has_a_column_where_there_is_any() -> None:
    known = table(RANGES, [row("a", kernel_ns=5_000, opaque_ns=0)])
    assert "opaque" not in drawn(known, width=120)[0]
    hidden = table(RANGES, [row("a", kernel_ns=5_000), row("b", opaque_ns=7_000)])
    header, _, second = drawn(hidden, width=120)[:3]
    assert "opaque" in header
    assert "7.000 µs" in second


def test_a_tree_stands_beside_its_figures_at_any_width() -> None:
    names = [f"level {chr(97 + i)} of a deep stack of calls" for i in range(26)]
    rows = table(RANGES, [row(*names[: i + 1], kernel_ns=100) for i in range(26)])
    for width in (40, 60, 100, 120):
        lines = drawn(rows, width)
        assert max(map(len, lines)) <= width
        assert len(lines) == 27
        assert "…" in lines[-1]


def test_the_same_path_of_two_domains_is_two_trees() -> None:
    rows = [row("a"), row("a", "b"), row("a", domain="D"), row("a", "c", domain="D")]
    lines = drawn(table(RANGES, rows))
    assert [line.split("  ")[0] for line in lines[1:]] == ["a", "└─ b", "a", "└─ c"]
    assert lines[3].startswith("a  [D]")


def test_a_name_that_begins_like_another_is_not_inside_it() -> None:
    lines = drawn(table(RANGES, [row("a"), row("a b")]))
    assert [line[:3] for line in lines[1:]] == ["a  ", "a b"]


def test_ranges_that_overlap_are_not_summed() -> None:
    rows = [row("req 1", kernel_ns=5), row("req 2", kernel_ns=5), row("r 1", kernel_ns=3)]
    rows += [row("r 2", kernel_ns=3)]
    for each in rows[:2]:
        each["style"] = "start_end"
    found = {" ".join(each["path"]): each["kernel_ns"] for each in folded(table(RANGES, rows))}
    assert found == {"req 1": 5, "req 2": 5, "r #": 6}


def test_a_style_that_is_not_usual_is_said() -> None:
    assert labels(["a", "b"], ["", ""], [1, 1], ["push_pop", "start_end"]) == [
        "a",
        "b  [start/end]",
    ]


def test_a_path_of_names_that_hold_its_separators() -> None:
    rows = table(RANGES, [row("a"), row("a", "x/y"), row("[D][E] Run"), row("b")])
    for path, names in (("a/x/y", ["x/y"]), ("[D][E] Run", ["[D][E] Run"]), ("a", ["a", "x/y"])):
        assert matching(rows, path=path).texts("name") == names


def test_names_say_domain_and_process_where_they_must() -> None:
    assert labels(["a", ""], ["", "NCCL"], [1, 1]) == ["a", "(no name)  [NCCL]"]
    assert labels(["a", "a"], ["", ""], [1, 2]) == ["a  [process 1]", "a  [process 2]"]


def test_opaque_graphs_in_no_range_are_told_of() -> None:
    left = table(
        UNATTRIBUTED,
        [
            {"reason": "between_ranges", "kernels": 2, "total_ns": 5_000, "opaque_ns": 0},
            {"reason": "no_range_on_thread", "kernels": 0, "total_ns": 0, "opaque_ns": 7_000},
        ],
    )
    lines = [line.plain for line in outside(left, 10_000, Page(100, 0))]
    assert lines == [
        "- in no range: 50.0 % of kernel time, 2 kernels, launched between ranges",
        "- in no range: 7.000 µs in opaque CUDA graphs, launched by a thread without ranges",
    ]
    assert len(outside(left, 0, Page(100, 0))) == 1
