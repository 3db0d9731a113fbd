"""The lines of a tree, and names that tell rows apart."""

from __future__ import annotations

from kernelscope.report.text_ranges import stems
from kernelscope.report.text_steps import labels


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


def test_names_say_domain_and_process_where_they_must() -> None:
    assert labels(["a", ""], ["", "NCCL"], [1, 1]) == ["a", "(no name)  [NCCL]"]
    assert labels(["a", "a"], ["", ""], [1, 2]) == ["a  [process 1]", "a  [process 2]"]
