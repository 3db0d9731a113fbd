"""Windows, processes and devices that a user chooses."""

from __future__ import annotations

import pytest

import kernelscope as ks
from kernelscope.errors import NotRecordedError, SelectionError
from kernelscope.metrics.selection import select, window_between
from kernelscope.metrics.window import whole
from kernelscope.trace import Trace
from tests import build


def two_processes() -> Trace:
    return build.trace(
        kernels=build.joined(
            build.kernels((100, 110), process_id=1, device_id=0),
            build.kernels((120, 140), process_id=2, device_id=1),
        ),
        api_calls=build.joined(
            build.api_calls((90, 95), process_id=1), build.api_calls((80, 85), process_id=2)
        ),
    )


def test_the_window_is_from_the_first_to_the_last_activity() -> None:
    window = whole(two_processes())
    assert (window.start_ns, window.end_ns) == (80, 140)


def test_a_trace_without_activity_has_an_empty_window_that_says_so() -> None:
    window = whole(build.trace())
    assert window.duration_ns == 0
    assert "no CUDA activity" in window.chosen_by


def test_a_process_has_its_own_window() -> None:
    mine = select(two_processes(), processes=[1])
    assert len(mine.kernels) == len(mine.api_calls) == 1
    assert (whole(mine).start_ns, whole(mine).end_ns) == (90, 110)


def test_a_device_keeps_the_host_calls() -> None:
    mine = select(two_processes(), devices=[1])
    assert (len(mine.kernels), len(mine.api_calls)) == (1, 2)


def test_what_does_not_exist_is_answered_with_what_does() -> None:
    with pytest.raises(SelectionError, match=r"no process 7.*\n.*process 1, 2"):
        select(two_processes(), processes=[7])
    with pytest.raises(SelectionError, match=r"no device 3.*\n.*device 0, 1"):
        select(two_processes(), devices=[3])


def test_a_process_cannot_be_chosen_where_none_was_recorded() -> None:
    trace = build.trace(kernels=build.kernels((0, 1), process_id=None))
    with pytest.raises(NotRecordedError):
        select(trace, processes=[1])


def test_open_ends_are_those_of_the_trace() -> None:
    trace = two_processes()
    assert window_between(trace, (None, 130)).start_ns == 80
    assert window_between(trace, (100, None)).end_ns == 140


@pytest.mark.parametrize("between", [(100, 100), (110, 90), (200, 300), (0, 80)])
def test_an_empty_window_is_refused(between: tuple[int, int]) -> None:
    with pytest.raises(SelectionError):
        window_between(two_processes(), between)


@pytest.mark.parametrize(
    ("between", "says"),
    [
        ((200, None), "after 200 ns"),
        ((None, 10), "before 10 ns"),
        ((200, 300), "between 200 ns and 300 ns"),
    ],
)
def test_where_nothing_was_recorded_is_said_in_the_users_terms(
    between: tuple[int | None, int | None], says: str
) -> None:
    with pytest.raises(SelectionError, match=f"Nothing was recorded {says}.*\n.*80 ns and 140 ns"):
        window_between(two_processes(), between)


def test_a_trace_of_nothing_has_no_window() -> None:
    with pytest.raises(SelectionError, match="Nothing was recorded at all"):
        window_between(build.trace(), (None, None))


def test_the_whole_of_a_trace_is_not_changed_by_looking_at_a_part() -> None:
    trace = two_processes()
    ks.analyze(trace, processes=[1], between=(95, 105))
    assert len(trace.kernels) == 2


def test_threads_of_the_host_are_those_of_the_chosen_processes() -> None:
    trace = two_processes()

    assert ks.analyze(trace).host_threads.values("process_id") == [1, 2]
    assert ks.analyze(trace, processes=[2]).host_threads.values("process_id") == [2]
    assert ks.analyze(trace, devices=[1]).host_threads.values("process_id") == [1, 2]
