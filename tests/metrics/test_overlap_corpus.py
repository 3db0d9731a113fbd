"""Overlap over real traces: it adds up, and says what walking from change to change says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.metrics.host_threads import host_threads
from kernelscope.metrics.iterations import iterations
from kernelscope.metrics.overlap import host_and_devices, overlap
from kernelscope.metrics.overlap_parts import overlap_by_iteration, overlap_by_range
from kernelscope.metrics.overlap_results import BOUNDS, STATES
from kernelscope.metrics.waiting import WAITS, waiting
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import is_missing
from tests.corpus import each, nsys_traces
from tests.metrics.test_overlap import agrees, four


def _called(*parts: str) -> list[Path]:
    return [path for path in nsys_traces() if any(part in path.stem for part in parts)]


@pytest.mark.slow
@each(nsys_traces())
def test_walking_from_change_to_change_finds_the_same(trace_file: Path) -> None:
    trace = ks.read(trace_file)
    window = whole(trace)
    agrees(trace, window)
    if len(trace.kernels) > 5000:
        return  # a walk takes seconds
    third = window.duration_ns // 3
    agrees(trace, Window(window.start_ns + third, window.end_ns - third, "the middle"))


@each(nsys_traces())
def test_iterations_and_ranges_add_up(trace_file: Path) -> None:
    trace = ks.read(trace_file)
    window = whole(trace)
    found = host_and_devices(trace, window)
    tables = [
        (overlap_by_iteration(trace, iterations(trace, window)), "period_ns"),
        (overlap_by_range(trace, window, found=found), "open_ns"),
        (overlap_by_range(trace, window, by="name", folded=True, found=found), "open_ns"),
    ]
    for table, whole_of in tables:
        for names in (STATES, BOUNDS):
            known = table["cpu_source"] >= 0
            if names is BOUNDS:
                known &= ~is_missing(table["both_high_ns"])
            parts = np.stack([table[f"{name}_ns"][known] for name in names])
            assert (parts >= 0).all()
            assert (parts.sum(axis=0) == table[whole_of][known]).all()


@each(_called("training_dali"))
def test_asynchronous_copies_block_the_host_for_nearly_all_of_the_time(trace_file: Path) -> None:
    trace = ks.read(trace_file)
    waits = waiting(trace)
    main = host_threads(trace).records()[0]["process_id"]  # the first thread of the process
    copies = waits.call[waits.kind == WAITS.index("blocked: copy")]
    length = (trace.api_calls["end_ns"] - trace.api_calls["start_ns"])[copies]
    thread = trace.api_calls["thread_id"][copies]
    names = trace.api_calls.categories("name")
    long = copies[(thread == main) & (length > 10**8)]
    assert {names[code] for code in trace.api_calls["name"][long]} == {"cudaMemcpyAsync"}
    assert len(long) == 31
    time = int((trace.api_calls["end_ns"] - trace.api_calls["start_ns"])[long].sum())
    assert round(time / 1e9, 1) == 35.8
    (row,) = overlap(trace).records()
    assert row["cpu_source"] == "scheduling"
    assert row["waiting.copy_ns"] > 0.96 * sum(four(row))


@each(_called("gtls"))
def test_a_queue_full_of_kernels_and_memsets_blocks_launches(trace_file: Path) -> None:
    trace = ks.read(trace_file)
    waits = waiting(trace)
    names = trace.api_calls.categories("name")
    launches = np.array(["Launch" in name for name in names])[trace.api_calls["name"][waits.call]]
    kinds = waits.kind[launches]
    # At each of 24 exactly 1021 operations were outstanding; 905 at the 25th, of 60 µs.
    assert sorted(kinds.tolist()) == [WAITS.index("blocked: module")] + 24 * [
        WAITS.index("blocked: queue")
    ]
