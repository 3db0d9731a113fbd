"""The sections of the report that say why time is lost: findings, idle, host, launches, copies."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kernelscope.metrics.analysis import Analysis
from kernelscope.metrics.communication_calls import REASONS
from kernelscope.metrics.idle_results import CAUSE_NAMES
from kernelscope.metrics.overlap_results import CPU_SOURCES, WAIT_NAMES
from kernelscope.report import text, text_communication, text_host
from kernelscope.report.layout import Page
from kernelscope.report.words import CAUSES, cause_in_words
from tests.report.analyses import (
    CAPTURE,
    analysis,
    beside,
    device,
    eventful,
    finding,
    launched,
    typical,
)


def section(what: Analysis, title: str, width: int = 100, top: int = 10) -> list[str]:
    """Return the lines of one section, without its heading."""
    lines = text.render(what, Page(width, top)).splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(title)), None)
    if start is None:
        return []
    start = next(i for i in range(start, len(lines)) if lines[i].startswith("──")) + 1
    ends = (i for i in range(start, len(lines)) if lines[i].startswith("──"))
    end = next((i - 2 for i in ends), len(lines))
    return [line for line in lines[start:end] if line]


def test_a_finding_says_bound_evidence_place_advice_and_command() -> None:
    assert section(eventful(), "Findings") == [
        "1  The title of synchronizations",
        "   Saves at most 3.000 µs of the 10.00 µs window, 30.0 %.",
        "   The evidence of synchronizations, 42 calls. On GPU 1, the longest stretch 2.000 µs at "
        "0.000006 s.",
        "   Try: mend it.",
        "   Next: kernelscope analyze runs/train.sqlite --between 5ns,9ns",
        "2  The title of profiler_overhead",
        "   It costs nothing in a run without the profiler, but spoils this picture.",
        "   The evidence of profiler_overhead, 42 calls. On GPU 0, the longest stretch 2.000 µs at",
        "   0.000006 s.",
        "   Try: mend it.",
        "   Next: kernelscope analyze runs/train.sqlite",
    ]


def test_a_bound_of_an_iteration_names_the_iteration() -> None:
    one = finding("a", 2000, per="iteration", saving_share=0.25, advice="look: why?")
    out = section(analysis(devices=[device()], findings=[one]), "Findings")
    assert out[1] == "   Saves at most 2.000 µs of a 8.000 µs iteration, 25.0 %."
    assert out[2].startswith("   The evidence of a, 42 calls. The longest stretch")
    assert "   Try: look: why?" in out

    whole = finding("a", 2000, per="iteration", saving_share=1.0)
    out = section(analysis(devices=[device()], findings=[whole]), "Findings")
    assert out[1] == "   Saves at most 2.000 µs of an iteration, 100 %."


def test_bounds_overlap_is_said_once_and_only_of_several() -> None:
    assert text.render(eventful(), Page(100)).count("bounds overlap") == 1
    one = analysis(devices=[device()], findings=[finding("a", 2000)])
    assert "bounds overlap" not in text.render(one, Page(100))


def test_at_most_seven_findings() -> None:
    rows = [finding(f"f{rank}", 9000 - rank) for rank in range(9)]
    out = section(analysis(devices=[device()], findings=rows), "Findings")
    assert sum("Saves at most" in line for line in out) == 7
    assert out[-1] == "… 2 more findings (--format markdown --table findings)"


def test_no_finding_says_what_was_looked_for() -> None:
    said = " ".join(section(typical(), "Findings"))
    assert said.startswith("No findings. As far as the capture tells, none of these could save 2 %")
    assert "pageable copies" in said


def test_nothing_is_judged_that_was_serialised_or_did_not_run() -> None:
    serialised = replace(CAPTURE, serialised="kernels ran one by one")
    for what in (analysis(serialised, devices=[device()]), analysis()):
        for title in ("Findings", "Why the GPU", "CPU and GPU", "Launches", "Communication"):
            assert section(what, title) == []


def test_a_command_that_does_not_fit_has_a_word_for_the_file() -> None:
    command = f"kernelscope analyze '{'runs of mine/' * 9}x.sqlite' --table transfers"
    capture = replace(CAPTURE, file=f"{'runs of mine/' * 9}x.sqlite")
    rows = [finding("a", 2000, next=command)]
    out = section(analysis(capture, devices=[device()], findings=rows), "Findings")
    assert out[-1] == "   Next: kernelscope analyze FILE --table transfers"


def test_causes_by_share_and_how_long_the_pauses_are() -> None:
    out = section(eventful(), "Why the GPUs")
    assert out[0].startswith("GPU 0: 2 gaps, 3.000 µs in all (30.0 % of the window)")
    assert out[2].split() == ["share", "total", "pauses", "largest", "why"]
    assert [line.split()[0] for line in out[3:5]] == ["60.0", "40.0"]
    assert any(line.endswith("host asleep") for line in out)
    assert "… 1 more cause (<0.1 % of idle time)" in out
    assert "Pauses (and their share of idle time) up to 10 µs: 2 (100 %)." in out
    assert "Longest gaps: 2.000 µs from 0.000006 s." in out
    assert any(
        line.endswith("host in the launching call: cudaLaunchKernel (loading code)") for line in out
    )


def test_every_cause_is_shown_where_every_row_is_asked_for() -> None:
    out = section(eventful(), "Why the GPUs", top=0)
    assert any(line.endswith("between activities of one graph") for line in out)
    assert not any("more cause" in line for line in out)


def test_pauses_of_many_gpus_are_not_described_one_by_one() -> None:
    what = analysis(
        devices=[device(index) for index in range(5)],
        gaps=[{"device": 0, "start_ns": 1, "end_ns": 2, "duration_ns": 1}],
    )
    out = section(what, "Why the GPUs")
    assert sum(line.startswith("GPU #") for line in out) == 5
    assert not any(line.startswith("Longest") for line in out)
    assert out[-1].startswith("How long the pauses are: --format csv")


def test_there_are_words_for_all_that_metrics_can_say() -> None:
    assert CAUSES.keys() == set(CAUSE_NAMES)
    assert len(set(CAUSES.values())) == len(CAUSES)
    assert text_host._SOURCES.keys() == set(CPU_SOURCES)
    assert text_host._WAITS.keys() == set(WAIT_NAMES)
    assert text_communication._WHY.keys() == set(REASONS) - {""}


@pytest.mark.parametrize(
    ("cause", "detail", "said"),
    [
        ("launch_latency", "", "launch latency"),
        ("host: off_core", "thread asleep, nothing recorded", "host asleep"),
        (
            "host: off_core",
            "thread asleep, nothing recorded; another driving thread: step #",
            "host asleep; another driving thread: step #",
        ),
        ("host: code", "scheduling not recorded", "host runs other code, or sleeps"),
        (
            "in_call",
            "cudaMemcpy (blocked: copy)",
            "host in the launching call: cudaMemcpy (held up copying)",
        ),
        ("dependency", "stream wait", "waits for another activity: stream wait"),
        ("a new cause", "x", "a new cause: x"),
    ],
)
def test_causes_in_words(cause: str, detail: str, said: str) -> None:
    assert cause_in_words(cause, detail) == said


def test_states_are_exact_ranges_or_bounds() -> None:
    out = section(eventful(), "CPU and GPU")
    assert [re.split("  +", line.strip()) for line in out[:3]] == [
        ["both", "GPU only", "CPU only", "neither", "on"],
        ["10.0 to 25.0 %", "25.0 to 40.0 %", "5.0 to 7.0 %", "43.0 to 45.0 %", "GPU 0, process 42"],
        ["10.0 %", "40.0 %", "5.0 %", "45.0 %", "GPU 1, process 43"],
    ]
    said = " ".join(out[3:])
    assert "both and CPU only are lower bounds" in said
    assert "throughout its NVTX ranges" in said
    assert "Process 42 waits, and does nothing else: 2.000 µs in synchronisations, 900 ns" in said
    assert "CPU utilization (as in the TBD benchmark) 5.0 % of 8 cores, by the recorded" in said
    assert "processes: 4.000 µs" in said

    alone = section(analysis(devices=[device()], overlap=[beside(42, "api_calls")]), "CPU and GPU")
    assert re.split("  +", alone[1]) == ["≥ 10.0 %", "≤ 40.0 %", "≥ 5.0 %", "≤ 45.0 %", "GPU 0"]
    assert "NVTX" not in " ".join(alone)


def test_states_that_are_not_known_say_why() -> None:
    states = dict.fromkeys(("both_ns", "gpu_only_ns", "cpu_only_ns", "neither_ns"))
    row = beside(42, None, **states, reason="no CUDA call of the process was recorded")
    cpu = {"scheduled_ns": 0, "reason": "thread scheduling was not recorded"}
    out = section(analysis(devices=[device()], overlap=[row], cpu=[cpu]), "CPU and GPU")

    assert out == [
        "GPU 0: not known: no CUDA call of the process was recorded.",
        "CPU utilization is not known: thread scheduling was not recorded.",
    ]


def test_launches_in_three_lines() -> None:
    assert " ".join(section(eventful(), "Launches")) == (
        "A call takes the host 5.000 µs (median; 95 %: 10.00 µs), 20.00 µs in all; the launch then "
        "waits 700 ns (median; 95 %: 1.400 µs) in the queue; 25.0 % start before their call "
        "returns. From call to start: 6.000 µs (median; 95 %: 12.00 µs). "
        "Launches waiting, on average: 1.5 for GPU 0 (at most 3; none for 50.0 % of the window). "
        "1 launch-bound stretch, 2.000 µs in all, 1.500 µs of it waiting for launches."
    )


def test_one_launch_has_no_distribution() -> None:
    one = launched(calls=1, overlapping=0, **{"queue_ns.median": None, "latency_ns.median": None})
    out = section(analysis(launch_totals=[{"name": "all", **one}], devices=[device()]), "Launches")
    assert out == ["A call takes the host 5.000 µs, 20.00 µs in all."]


def test_copies_say_whom_they_hold_up_and_what_hides_them() -> None:
    out = section(eventful(), "Copies", width=120)
    assert "host waits" in out[0]
    assert "8.500 µs" in out[1]  # of both calls
    assert "800 ns" in out[1]
    assert "Migrations of unified memory, by cause:" in out
    assert out[-1].endswith("unified HtoD: page fault")

    plain = section(typical(), "Copies", width=120)
    assert "host waits" not in plain[0]
    assert "exposed" not in plain[0]


def test_a_narrow_page_keeps_whom_copies_hold_up() -> None:
    assert "host waits" in section(eventful(), "Copies", width=60)[0]


def test_communication_by_kind_with_the_reason_for_what_is_missing() -> None:
    out = section(eventful(), "Communication")
    assert out[0].split() == [
        "total", "exposed", "overlapped", "calls", "size", "bus", "rate", "kind",
    ]  # fmt: skip
    assert out[1].endswith("all-reduce  [NCCL, RCCL]  on GPU 0")
    assert "≥ 3.200 GB/s" in out[1]
    assert out[2].endswith("–             –  unknown  [user]  on GPU 1")
    assert out[3].startswith("Sizes and rates not known: no NVTX range of NCCL or PyTorch holds")
    assert out[-1] == "Rates are lower bounds: a kernel spins until its peers are ready."


def test_sections_without_data_are_left_out() -> None:
    out = text.render(typical(), Page(100))
    for title in ("\nCommunication", "\nLaunches", "\nCPU and GPU"):
        assert title not in out
