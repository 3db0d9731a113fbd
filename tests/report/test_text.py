"""The terminal report: what it says, and that it fits."""

from __future__ import annotations

import re

import pytest

from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.window import Window
from kernelscope.report import text
from kernelscope.report.layout import Page
from kernelscope.trace import Capture, NotRecorded
from tests.report.analyses import CAPTURE, SGEMM, analysis, device, eventful, kernel, typical

NO_CUDA = Capture(
    "trace.sqlite", "nsys", not_recorded=(NotRecorded("kernels", "nsys profile --trace=cuda"),)
)
NOTHING = analysis(NO_CUDA, Window(0, 0, "no CUDA activity recorded"))
CASES = {
    "typical": typical(),
    "nothing": NOTHING,
    "eventful": eventful(),
    "empty window": analysis(CAPTURE, Window(5, 5, "--between")),
    "calls only": analysis(api_calls=[{"name": "cudaFree", "calls": 1, "total_ns": 5}]),
    "broken": analysis(
        devices=[device(name=None, sm_fill=None, gap_count=0, largest_gap_ns=None), device(1)],
        checks=[{"name": "partition of GPU 0", "expected": 10, "actual": 9, "ok": False}],
        kernels=[kernel(f"{'k' * 90}{i}{'k' * 90}", 100 - i) for i in range(30)],
    ),
}


def shown(what: Analysis, width: int = 100, top: int = 10) -> str:
    return text.render(what, Page(width, top))


@pytest.mark.parametrize("width", [40, 60, 100, 120, 140])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_page(case: str, width: int) -> None:
    assert max(map(len, shown(CASES[case], width).splitlines())) <= width


@pytest.mark.parametrize("case", CASES)
def test_no_line_ends_in_blanks(case: str) -> None:
    assert not [line for line in shown(CASES[case]).splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("case", CASES)
def test_the_fallback_is_ascii_and_as_wide(case: str) -> None:
    plain = text.render(CASES[case], Page(100), unicode=False)

    assert plain.isascii()
    assert list(map(len, plain.splitlines())) == list(map(len, shown(CASES[case]).splitlines()))


def test_colours_only_where_asked_and_the_words_stay() -> None:
    colored = text.render(typical(), Page(100), color=True)

    assert "\x1b[" not in shown(typical())
    assert "\x1b[32m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == shown(typical())


def test_the_heading_says_what_and_when() -> None:
    assert shown(typical()).splitlines()[:4] == [
        "kernelscope  runs/train.sqlite",
        "nsys 2025.3.1.90, started 2025-08-04 16:29:32 UTC",
        "1 × NVIDIA A100-SXM4-40GB: at most FP32 19.50 TFLOP/s",
        "window 10.00 µs: first to last CUDA activity (0.000001 s to 0.000011 s of the trace)",
    ]


def test_device_time_at_60_columns() -> None:
    lines = shown(typical(), 60).splitlines()
    start = lines.index(f"Where device time goes{'shares of the window, 10.00 µs'.rjust(38)}")

    assert lines[start + 2 : start + 9] == [
        "GPU 0  NVIDIA A100-SXM4-40GB                     busy 50.0 %",
        "█" * 24 + "░" * 6 + "·" * 30,
        "█ compute only  4.000 µs   40.0 %",
        "░ copy only     1.000 µs   10.0 %",
        "· idle          5.000 µs   50.0 %",
        "Kernels run 40.0 % of the window (one at a time); they fill",
        "at most 75.0 % of the block slots meanwhile.",
    ]


def test_kernels_have_rank_share_and_remainder() -> None:
    lines = shown(typical(), top=1).splitlines()
    start = lines.index(f"Top kernels{'shares of kernel time, 10.00 µs'.rjust(89)}")

    rank, share = lines[start + 3].split()[:2]
    assert (rank, share) == ("1", "60.0")
    assert lines[start + 4] == "… 1 more kernel (40.0 % of kernel time)"


def test_no_two_kernels_look_alike() -> None:
    out = shown(CASES["broken"], 60, top=0)
    start = out.index("Top kernels")
    rows = out[start : out.index("Copies")].splitlines()[3:]
    pairs = [" ".join(pair) for pair in zip(rows[::2], rows[1::2], strict=False)]

    assert len(pairs) == len(set(pairs)) == 30


def test_names_are_short() -> None:
    out = shown(typical(), 140)

    assert "at::native" not in out
    assert "vectorized_elementwise_kernel<FillFunctor<float>>" in out


def test_gaps_of_the_device_largest_first() -> None:
    lines = shown(typical()).splitlines()

    assert any(
        line.startswith(
            "GPU 0: 2 gaps, 3.000 µs in all (30.0 % of the window), the largest 2.000 µs;"
        )
        for line in lines
    )
    assert "Longest gaps: 2.000 µs from 0.000006 s, 1.000 µs from 0.000002 s." in lines
    assert sum("0.000006 s" in line for line in lines) == 1  # a process's own gap is not listed


def test_streams_only_where_there_are_several() -> None:
    assert "\nStreams" in shown(typical())
    assert "\nStreams" not in shown(CASES["calls only"])


def test_health_in_order_and_what_lacks_with_its_remedy() -> None:
    lines = shown(typical()).splitlines()

    assert "✓ the 1 check holds: the sums add up" in lines
    assert "! 3 rows left out." in lines
    assert "- not recorded: NVTX ranges (nsys profile --trace=cuda,nvtx)" in lines
    assert not any("The capture holds no ranges" in line for line in lines)


def test_a_failed_check_stands_out() -> None:
    assert "✗ check failed: partition of GPU 0: expected 10, got 9." in shown(CASES["broken"])


def test_absent_is_not_zero() -> None:
    out = shown(NOTHING)

    assert "No activity on any GPU. Not recorded (nsys profile --trace=cuda)." in out
    assert "window empty: no CUDA activity recorded" in out
    assert "0 %" not in out
    assert "–" not in out


def test_recorded_but_none_in_the_window() -> None:
    assert "Recorded, but none in the window." in shown(CASES["calls only"])


@pytest.mark.parametrize(
    ("iso", "said"),
    [
        ("2025-08-04T16:29:32.242076786Z", "2025-08-04 16:29:32 UTC"),
        ("2025-08-04T16:29:32Z", "2025-08-04 16:29:32 UTC"),
        ("2025-08-04T16:29:32.5+02:00", "2025-08-04 16:29:32+02:00"),
    ],
)
def test_a_start_has_no_fraction(iso: str, said: str) -> None:
    assert text.started(iso) == said


def test_gpus_are_named_by_ordinal_only_where_that_is_unambiguous() -> None:
    devices = [device(0), device(1)]
    one_process = [{"index": i, "process_id": 7, "device_id": 1 - i} for i in (0, 1)]
    two_processes = [{"index": i, "process_id": 7 + i, "device_id": 0} for i in (0, 1)]

    mirrored = shown(analysis(devices=devices, device_ordinals=one_process)).splitlines()
    assert [line[:5] for line in mirrored if "busy" in line] == ["GPU 1", "GPU 0"]

    ambiguous = shown(analysis(devices=devices, device_ordinals=two_processes)).splitlines()
    assert [line[:6] for line in ambiguous if "busy" in line] == ["GPU #0", "GPU #1"]
    assert "device 0 of process 8" in ambiguous


def test_launch_shapes_say_how_full_they_make_the_gpu() -> None:
    report = shown(typical(), width=140)
    section = report[report.index("Launch shapes") :].splitlines()
    assert " ".join(section[2].split()) == (
        "share occupancy limited by waves last wave grid block kernel"
    )
    assert " ".join(section[4].split()).startswith(
        "50.0 % 25.0 % registers 1.50 75.0 % 1×2×4 1×2×4"
    )
    assert "Launch shapes" not in shown(analysis(kernels=[kernel("k")]))


def test_launch_shapes_of_one_kernel_keep_its_name_and_their_grids() -> None:
    shapes = [
        kernel(SGEMM, **{f"{what}.{i}": n for what in ("grid", "block") for i in range(3)},
               occupancy=0.25, limiter="registers")
        for n in (3, 5)
    ]  # fmt: skip
    for width in (60, 120):
        report = shown(analysis(kernels=[kernel(SGEMM)], launch_shapes=shapes), width=width)
        section = report[report.index("Launch shapes") :]
        assert "~2" not in section  # one kernel, not two
        assert "3×3×3" in section
        assert "5×5×5" in section
