"""Events whose times cannot be true leave the tables, and are listed."""

from __future__ import annotations

from kernelscope.parsers.quarantine import quarantined
from kernelscope.trace import Table
from tests import build

EPOCH = 1_600_000_000_000_000_000


def listed(**tables: Table) -> tuple[dict[str, Table], list[tuple[object, ...]]]:
    sound, left_out = quarantined(tables)
    columns = ("table", "row", "start_ns", "end_ns", "name", "reason")
    return sound, [tuple(row[c] for c in columns) for row in left_out.records()]


def test_an_end_before_the_start_is_left_out() -> None:
    sound, left_out = listed(kernels=build.kernels((10, 20), (30, 25, "bad"), (40, 50)))
    assert sound["kernels"]["start_ns"].tolist() == [10, 40]
    assert left_out == [("kernels", 1, 30, 25, "bad", "its end lies before its start")]


def test_an_end_of_zero_is_left_out() -> None:
    _, left_out = listed(copies=build.copies((10, 0), (-5, 0), (0, 0)))
    assert [(row, reason) for _, row, _, _, _, reason in left_out] == [
        (0, "its end is 0"),
        (1, "its end is 0"),
        (2, "its end is 0"),
    ]


def test_a_trace_may_begin_at_zero() -> None:
    sound, left_out = listed(
        kernels=build.kernels((0, 5), (6, 9)), api_calls=build.api_calls((-3, 1))
    )
    assert left_out == []
    assert len(sound["kernels"]) == 2


def test_a_zero_beside_events_of_another_epoch_is_left_out() -> None:
    rows = build.kernels((0, EPOCH + 1), (EPOCH, EPOCH + 2))
    sound, left_out = listed(kernels=rows, api_calls=build.api_calls((EPOCH, EPOCH + 1)))
    assert len(sound["kernels"]) == 1
    assert left_out[0][-1] == "its start is 0 beside events of another epoch"


def test_an_event_without_times_is_left_out() -> None:
    _, left_out = listed(kernels=build.kernels((None, 5), (3, None), (1, 2)))  # type: ignore[arg-type]
    assert [reason for *_, reason in left_out] == ["no start or end recorded"] * 2
    assert left_out[0][2] is None


def test_sound_tables_pass_unchanged() -> None:
    table = build.kernels((1, 2))
    sound, left_out = quarantined({"kernels": table})
    assert sound["kernels"] is table
    assert len(left_out) == 0
