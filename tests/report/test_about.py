"""What a file holds: processes that did something, tables, remedies, read paths."""

from __future__ import annotations

from dataclasses import replace

from kernelscope import schema
from kernelscope.report import about, to_json
from kernelscope.report.layout import Page
from kernelscope.trace import NotRecorded, Trace
from tests import build


def five_rows() -> Trace:
    made = build.trace(
        kernels=build.kernels((10, 20), (30, 40)),
        api_calls=build.joined(build.api_calls((0, 5)), build.api_calls((1, 5), thread_id=2)),
        devices=build.devices({"memory_bytes": 40 * 2**30, "clock_hz": 1_410_000_000}),
        processes=build.table(
            schema.PROCESSES, [{"process_id": 1, "name": "python"}, {"process_id": 2}]
        ),
    )
    capture = replace(
        made.capture,
        not_recorded=(NotRecorded("ranges", "nsys profile --trace=cuda,nvtx"),),
        warnings=("A column was cut away.",),
        read_paths={"CUPTI_ACTIVITY_KIND_KERNEL": "columnar", "StringIds": "sqlite3"},
    )
    return replace(made, capture=capture)


def test_the_facts() -> None:
    facts = about.about(five_rows())

    assert facts["processes"] == [
        {
            "process_id": 1,
            "name": "python",
            "threads_that_call_cuda": 2,
            "kernels": 2,
            "copies": 0,
            "api_calls": 2,
            "ranges": 0,
        }
    ]
    assert facts["other_processes"] == 1
    assert {"table": "kernels", "recorded": True, "rows": 2} in facts["tables"]
    assert {"table": "ranges", "recorded": False, "rows": 0} in facts["tables"]
    assert facts["read_paths"]["StringIds"] == "sqlite3"
    to_json.render(facts)


def test_the_text() -> None:
    out = about.render(five_rows(), Page(100))

    assert "NVIDIA A100-SXM4-40GB (CUDA 0): compute 8.0, 108 SMs, 1.410 GHz, 40.00 GiB\n" in out
    assert "1 other process was seen, without any." in out
    assert "- not recorded: NVTX ranges (nsys profile --trace=cuda,nvtx)\n" in out
    assert "! A column was cut away.\n" in out
    assert "columnar: CUPTI_ACTIVITY_KIND_KERNEL\n" in out


def test_a_file_with_nothing_reads_well() -> None:
    out = about.render(build.trace(), Page(60))

    assert "No GPU is described in this capture." in out
    assert max(map(len, out.splitlines())) <= 60


def test_what_other_files_hold_is_named_with_what_records_it() -> None:
    out = about.render(five_rows(), Page(200))

    assert "- not here: operating-system calls (Nsight Systems records them: nsys profile" in out
    assert "- not here: thread scheduling (" in out
    assert "- not here: records of CUDA events (" in out
    assert "- not here: hardware counters of kernels (Nsight Compute, or nvprof" in out

    made = five_rows()
    recorded = replace(made.capture, recorded=(*made.capture.recorded, "on_core", "os_calls"))
    out = about.render(replace(made, capture=recorded), Page(200))
    assert "not here: thread scheduling" not in out
    assert "not here: operating-system calls" not in out


def test_cores_and_what_the_profiler_did_to_the_run() -> None:
    made = five_rows()
    capture = replace(made.capture, cpu_cores=64, serialised="the profiler ran kernels one by one")
    made = replace(made, capture=capture)

    out = about.render(made, Page(100))
    assert "64 processor cores\n" in out
    assert "! The profiler ran kernels one by one.\n" in out
    facts = about.about(made)["capture"]
    assert (facts["cpu_cores"], facts["serialised"]) == (64, capture.serialised)


def test_counters_say_how_many_metrics_they_are() -> None:
    rows = [{"metric": name, "value": 1.0} for name in ("ipc", "ipc", "dram_read_bytes")]
    made = replace(five_rows(), counters=build.table(schema.COUNTERS, rows))

    assert "3  hardware counters of kernels: 2 metrics\n" in about.render(made, Page(100))
