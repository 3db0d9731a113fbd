"""Windows of iterations and of ranges."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.iteration_window import window_of_iterations, window_of_range
from kernelscope.metrics.mark_iterations import Marked, mark_iterations
from tests.metrics.training import every, ranges, trace

PERIODS = [900, *[100] * 20, 500, *[100] * 20]
STARTS = np.cumsum([0, *PERIODS]).tolist()
STEPS = [(f"step {i}", at, at + 60) for i, at in enumerate(STARTS)]
INSIDE = [("forward", at + 5, at + 20) for at in STARTS]
TRACE = trace(
    [*ranges(*STEPS, *INSIDE), *ranges(("forward", 0, 3), thread_id=8)], [at + 10 for at in STARTS]
)
MARKED = mark_iterations(TRACE)


def span(marked: Marked, wanted: str) -> tuple[int, int, str]:
    window = window_of_iterations(marked, wanted)
    return window.start_ns, window.end_ns, window.chosen_by


def test_steady() -> None:
    chosen_by = "steady iterations 1 to 41 of 43, 'step #', 1 outliers among them"
    assert span(MARKED, "steady") == (900, STARTS[42], chosen_by)


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("0", 0, 0), ("12", 12, 12), ("10:20", 10, 19), ("40:", 40, 42), (":3", 0, 2),
        (":", 0, 42), ("10:44", 10, 42), ("0:99999", 0, 42), ("42:43", 42, 42), (":99999", 0, 42),
    ],
)  # fmt: skip
def test_by_number(wanted: str, first: int, last: int) -> None:
    end = STARTS[last + 1] if last < 42 else STARTS[42] + 60
    start, found, chosen_by = span(MARKED, wanted)
    assert (start, found) == (STARTS[first], end)
    assert "of 43, 'step #'" in chosen_by


@pytest.mark.parametrize("wanted", ["43", "20:10", "43:", "43:99999", "99:100", "5:5", ":0"])
def test_numbers_that_do_not_exist(wanted: str) -> None:
    with pytest.raises(SelectionError, match="numbered from 0 to 42"):
        window_of_iterations(MARKED, wanted)


def test_what_says_nothing() -> None:
    with pytest.raises(SelectionError, match="slice such as 10:20"):
        window_of_iterations(MARKED, "the good ones")
    with pytest.raises(NotRecordedError, match="no iterations"):
        window_of_iterations(mark_iterations(trace()), "steady")


def test_the_only_iteration_is_not_known_to_be_steady() -> None:
    one = mark_iterations(trace(ranges(("run", 0, 100)), [5, 10]), "run")
    assert span(one, "0")[:2] == (0, 100)
    with pytest.raises(SelectionError, match="None of the 1 iterations"):
        window_of_iterations(one, "steady")


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [
        ("step 3", STARTS[3], STARTS[3] + 60),
        ("step #", 0, STARTS[42] + 60),
        ("step 1?", STARTS[10], STARTS[19] + 60),
        ("step #[3]", STARTS[3], STARTS[3] + 60),
        ("forward", 0, STARTS[42] + 20),
        ("forward[0]", 0, 3),
        ("step 3/forward", STARTS[3] + 5, STARTS[3] + 20),
        ("step #/forward[1]", STARTS[1] + 5, STARTS[1] + 20),
    ],
)
def test_ranges(wanted: str, start: int, end: int) -> None:
    window = window_of_range(TRACE, wanted)
    assert (window.start_ns, window.end_ns) == (start, end)
    assert repr(wanted) in window.chosen_by


def test_ranges_that_do_not_exist() -> None:
    with pytest.raises(SelectionError, match="Did you mean 'forward'"):
        window_of_range(TRACE, "forwards")
    with pytest.raises(SelectionError, match="It has 43"):
        window_of_range(TRACE, "step #[43]")
    with pytest.raises(SelectionError, match="lies inside"):
        window_of_range(TRACE, "forward/step 3")
    with pytest.raises(NotRecordedError):
        window_of_range(trace(), "forward")
    with pytest.raises(SelectionError, match="no duration"):
        window_of_range(trace(ranges(("mark", 5, 5))), "mark")


def test_names_with_slashes_and_brackets_are_found_as_they_stand() -> None:
    built = trace(ranges(*every("/layer{}/Conv", 10, 5, 3), ("copy[1]", 100, 110)))
    assert window_of_range(built, "/layer1/Conv").start_ns == 10
    assert window_of_range(built, "copy[1]").start_ns == 100
