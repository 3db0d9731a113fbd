"""Communication on real traces: the partition, a slow sweep, and a pair with a story."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.metrics.communication import (
    communication,
    communication_by_device,
    measure_communication,
)
from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.device_time import devices
from kernelscope.metrics.window import Window, whole
from kernelscope.trace import Trace
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces, oracle


def windows(found: Trace) -> list[Window]:
    full = whole(found)
    third = full.duration_ns // 3
    return [full, Window(full.start_ns + third, full.end_ns - third, "test")]


def slow_exposed(found: Trace, window: Window, lane: tuple[int | None, int]) -> tuple[int, int]:
    """Step from one start or end to the next, and ask what runs there: exposed, overlapped."""
    talks = is_communication(found.kernels.categories("name"))
    steps: list[tuple[int, bool, int]] = []
    columns = ("process_id", "device_id", "start_ns", "end_ns")
    plain = [found.kernels.values(name) for name in columns]
    for process, device, start, end, name in zip(
        *plain, found.kernels["name"].tolist(), strict=True
    ):
        low, high = max(start, window.start_ns), min(end, window.end_ns)
        if (process, device) == lane and low < high:
            steps += [(low, bool(talks[name]), 1), (high, bool(talks[name]), -1)]
    running: Counter[bool] = Counter()
    exposed = overlapped = 0
    for (time, which, change), (after, _, _) in pairwise(sorted(steps)):
        running[which] += change
        if running[True]:
            exposed += 0 if running[False] else after - time
            overlapped += after - time if running[False] else 0
    return exposed, overlapped


@each(nsys_traces())
def test_agrees_with_the_partition_and_a_slow_sweep(trace_file: Path) -> None:
    found = ks.read(trace_file)
    for window in windows(found):
        time = measure_communication(found, window)
        kinds = communication(found, found=time).records()
        total = communication_by_device(found, found=time).records()
        accounts = devices(found, measured=time.measured)
        # No GPU of the corpus communicates for two processes.
        alone = accounts["partition.communication_only_ns"].tolist()
        beside = accounts["partition.compute_and_communication_ns"].tolist()
        assert sum(alone) == sum(row["exposed_without_graphs_ns"] for row in total)
        assert sum(beside) == sum(row["overlapped_ns"] for row in total)
        for row in total:
            lane = row["process_id"], row["device_id"]
            place = time.measured.identity.device_of(lane)
            assert place is not None
            assert row["exposed_without_graphs_ns"] == alone[place]
            assert (row["exposed_ns"], row["overlapped_ns"]) == slow_exposed(found, window, lane)
            parts = [r for r in kinds if (r["process_id"], r["device_id"]) == lane]
            for name in ("calls", "total_ns"):
                assert row[name] == sum(part[name] for part in parts)
            for name in ("busy_ns", "exposed_ns", "overlapped_ns"):
                most, least = sum(p[name] for p in parts), max(p[name] for p in parts)
                assert least <= row[name] <= most


@needs_corpus
@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        # calls, total, exposed, overlapped: the larger bucket makes fewer calls, which start
        # later, when less compute is left to hide them.
        ("2022.4.2_A100x4_training_ddp", (472, 292_789_300, 21_799_063, 270_990_237)),
        ("2022.4.2_A100x4_training_ddp_bucketcap", (295, 313_537_817, 49_916_697, 263_621_120)),
    ],
)
def test_a_larger_bucket(stem: str, expected: tuple[int, int, int, int]) -> None:
    assert CORPUS is not None
    (row,) = communication(ks.read(CORPUS / "traces" / "nsys" / f"{stem}.sqlite")).records()
    assert (row["kind"], row["kind_source"]) == ("all_reduce", "name")
    names = ("calls", "total_ns", "exposed_ns", "overlapped_ns")
    assert tuple(row[name] for name in names) == expected
    (vendors,) = (
        each for each in oracle(stem, "cuda_gpu_kern_sum") if each["Name"].startswith("nccl")
    )
    assert (int(vendors["Instances"]), int(vendors["Total Time (ns)"])) == expected[:2]
    # Without blobs the export holds no sizes.
    assert (row["bytes"], row["bytes_missing_because"]) == (None, "no_size_in_nvtx")


@needs_corpus
def test_sends_that_pytorch_makes_of_an_all_to_all() -> None:
    assert CORPUS is not None
    path = CORPUS / "traces" / "nsys" / "2026.2.1_2gpu_nccl_mfu_before.sqlite"
    rows = communication(ks.read(path)).records()
    found = {(row["process_id"], row["kind"]): (row["calls"], row["kind_source"]) for row in rows}
    assert found == {
        (144, "all_to_all"): (32, "nvtx"),
        (145, "all_to_all"): (32, "nvtx"),
        # launched before the cut-out of this trace begins
        (144, "send_recv"): (1, "name"),
        (145, "send_recv"): (1, "name"),
    }
