from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.device_gaps import gaps
from kernelscope.metrics.device_time import checks, device_processes, devices, measure
from kernelscope.metrics.results import PARTITION_CLASSES
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests.build import copies, joined, kernels, trace
from tests.build import devices as described

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SHAPE: dict[str, Any] = {
    **{f"grid_{axis}": 1 for axis in "xyz"},
    **{f"block_{axis}": 1 for axis in "xyz"},
    "block_x": 256,
    "registers_per_thread": 32,
    "static_shared_bytes": 0,
    "dynamic_shared_bytes": 0,
}


def parts(table: Table, row: int = 0) -> dict[str, int]:
    found = {name: int(table[f"partition.{name}_ns"][row]) for name in PARTITION_CLASSES}
    return {name: ns for name, ns in found.items() if ns}


def at(start: int, end: int) -> Window:
    return Window(start, end, "test")


def test_each_class_of_device_time() -> None:
    found = trace(
        kernels=kernels((0, 20), (10, 40, NCCL), (60, 70)),
        copies=copies((15, 50), (65, 90, "memset"), (95, 100, "DtoH"), (98, 110, "memset")),
    )
    assert parts(devices(found)) == {
        "compute_only": 10 + 5,
        "compute_and_communication": 10,
        "communication_only": 20,
        "copy_only": 10 + 5,
        "compute_and_copy": 5,
        "memset_only": 20 + 10,
        "idle": 10 + 5,
    }
    row = devices(found).records()[0]
    assert (row["window_ns"], row["busy_ns"], row["kernel_ns"], row["compute_ns"]) == (
        110,
        95,
        50,
        30,
    )


def test_a_window_that_cuts_kernels() -> None:
    found = trace(kernels=kernels((0, 20), (30, 50), (60, 80), (90, 95)))
    row = devices(found, at(10, 70)).records()[0]
    assert parts(devices(found, at(10, 70))) == {"compute_only": 40, "idle": 20}
    assert (row["leading_ns"], row["trailing_ns"], row["gap_count"]) == (0, 0, 2)
    row = devices(found, at(22, 85)).records()[0]
    assert (row["leading_ns"], row["trailing_ns"], row["largest_gap_ns"]) == (8, 5, 10)


def test_a_copy_alone_on_the_device() -> None:
    found = trace(copies=copies((10, 30)))
    assert parts(devices(found, at(0, 50))) == {"copy_only": 20, "idle": 30}
    assert devices(found).records()[0]["kernel_ns"] == 0


@pytest.mark.parametrize("kind", ["DtoD", "PtoP", "unified HtoD", "unified DtoH", "something new"])
def test_copies_and_migrations_occupy_the_device(kind: str) -> None:
    found = trace(kernels=kernels((0, 10)), copies=copies((20, 30, kind)))
    assert parts(devices(found)) == {"compute_only": 10, "copy_only": 10, "idle": 10}


def test_a_copy_between_host_memories_does_not() -> None:
    found = trace(kernels=kernels((0, 10), (40, 50)), copies=copies((20, 30, "HtoH")))
    assert parts(devices(found)) == {"compute_only": 20, "idle": 30}
    assert gaps(found)["duration_ns"].tolist() == [30]


def test_overlapping_streams() -> None:
    found = trace(
        kernels=joined(
            kernels((0, 30), (40, 50)),
            kernels((10, 25), stream_id=8),
            kernels((20, 45), stream_id=9, context_id=2),
        )
    )
    row = devices(found).records()[0]
    assert row["busy_ns"] == row["compute_ns"] == 50
    assert [row[f"concurrency.{n}_ns"] for n in ("one", "two", "three_or_more")] == [25, 20, 5]


def test_idle_throughout() -> None:
    found = trace(
        kernels=joined(kernels((0, 10), (90, 100)), kernels((40, 60), device_id=1)),
    )
    row = devices(found, at(20, 30)).records()[0]
    assert (row["leading_ns"], row["trailing_ns"], row["gap_count"]) == (10, 0, 0)
    assert row["largest_gap_ns"] is None
    assert (row["idle_ns"], row["busy_ns"], row["sm_fill"]) == (10, 0, None)


def test_kernels_without_length_take_no_time_but_end_a_gap() -> None:
    found = trace(kernels=kernels((0, 10), (15, 15), (20, 30), (35, 35)))
    row = devices(found).records()[0]
    assert (row["busy_ns"], row["idle_ns"], row["gap_count"], row["trailing_ns"]) == (20, 15, 3, 0)
    assert gaps(found)["start_ns"].tolist() == [10, 15, 30]


def test_two_processes_on_one_device() -> None:
    rows = described(
        {"process_id": 1, "device_id": 0, "gpu_id": 4, "identifies": True},
        {"process_id": 2, "device_id": 1, "gpu_id": 4, "identifies": True},
    )
    found = trace(
        kernels=joined(
            kernels((0, 30), (50, 60)),
            kernels((20, 40), (80, 100, NCCL), process_id=2, device_id=1),
        ),
        copies=copies((52, 58)),
        devices=rows,
    )
    device = devices(found)
    assert len(device) == 1
    assert parts(device) == {
        "compute_only": 44,
        "compute_and_copy": 6,
        "communication_only": 20,
        "idle": 30,
    }
    assert device["concurrency.two_ns"].tolist() == [10]
    processes = device_processes(found)
    assert processes["busy_ns"].tolist() == [40, 40]
    assert processes["other_process_ns"].tolist() == [30, 30]
    assert processes["leading_ns"].tolist() == [0, 20]
    assert gaps(found)["duration_ns"].tolist() == [20, 10]
    per_process = gaps(found, per="process").records()
    assert [(r["process_id"], r["device_id"], r["duration_ns"]) for r in per_process] == [
        (2, 1, 40),
        (1, 0, 20),
    ]


def test_a_peer_copy_marks_the_other_device() -> None:
    found = trace(
        kernels=joined(kernels((0, 10)), kernels((0, 10), (40, 50), device_id=1)),
        copies=copies((5, 25, "PtoP"), src_device_id=0, dst_device_id=1),
    )
    table = devices(found)
    assert table["busy_ns"].tolist() == [25, 35]
    assert parts(table, 1) == {
        "compute_and_copy": 5,
        "compute_only": 15,
        "copy_only": 15,
        "idle": 15,
    }
    processes = device_processes(found)
    assert processes["busy_ns"].tolist() == [25, 20]
    assert processes["other_process_ns"].tolist() == [0, 0]  # it was this process's own copy
    assert gaps(found)["duration_ns"].tolist() == [15]
    assert gaps(found, per="process")["duration_ns"].tolist() == [30]


def test_a_peer_copy_to_a_device_of_another_process() -> None:
    rows = described(
        *(
            {"process_id": p, "device_id": d, "gpu_id": g, "identifies": True}
            for p, d, g in [(1, 0, 0), (1, 1, 1), (2, 0, 1)]
        )
    )
    found = trace(
        kernels=joined(kernels((0, 10)), kernels((0, 10), process_id=2)),
        copies=copies((20, 30, "PtoP"), dst_device_id=1),
        devices=rows,
    )
    assert devices(found)["busy_ns"].tolist() == [20, 20]
    processes = device_processes(found)
    assert processes["busy_ns"].tolist() == [20, 10]
    assert processes["other_process_ns"].tolist() == [0, 10]


def test_a_peer_that_is_not_identified_is_not_guessed() -> None:
    found = trace(
        kernels=joined(kernels((0, 10)), kernels((0, 10), process_id=2, device_id=1)),
        copies=copies((20, 30, "PtoP"), dst_device_id=1),
    )
    assert devices(found)["busy_ns"].tolist() == [20, 10]


def test_a_user_names_communication_kernels() -> None:
    found = trace(kernels=kernels((0, 10), (20, 30, "my_ring_kernel(int)")))
    time = measure(found, communication=["^my_ring"])
    assert parts(devices(found, measured=time)) == {
        "compute_only": 10,
        "communication_only": 10,
        "idle": 10,
    }


def test_sm_fill_is_weighted_by_duration_inside_the_window() -> None:
    found = trace(
        kernels=joined(
            kernels((0, 30), **{**SHAPE, "grid_x": 432}),  # 8 blocks an SM: 864 slots
            kernels((30, 40), **{**SHAPE, "grid_x": 54, "grid_y": 100}),
            kernels((40, 900)),  # no launch shape: no value, and no weight
        ),
        devices=described({}),
    )
    assert devices(found)["sm_fill"].tolist() == [pytest.approx((30 * 0.5 + 10 * 1.0) / 40)]
    assert devices(found, at(20, 40))["sm_fill"].tolist() == [pytest.approx(0.75)]
    assert np.isnan(devices(found, at(100, 200))["sm_fill"][0])


def test_sm_fill_needs_the_devices_limits() -> None:
    some = kernels((0, 30), **SHAPE)
    for lacking in ("sm_count", "max_warps_per_sm", "compute_major", "max_shared_bytes_per_sm"):
        found = trace(kernels=some, devices=described({lacking: None}))
        assert np.isnan(devices(found)["sm_fill"][0])
    assert np.isnan(devices(trace(kernels=some))["sm_fill"][0])


def test_sm_fill_of_many_distinct_shapes() -> None:
    random = np.random.default_rng(1)
    rows = [
        {**SHAPE, "grid_x": int(x), "registers_per_thread": int(r), "dynamic_shared_bytes": int(s)}
        for x, r, s in zip(
            random.integers(1, 2**30, 300),
            random.integers(1, 128, 300),
            random.integers(0, 2**15, 300),
            strict=True,
        )
    ]
    single = [kernels((10 * i, 10 * i + 1 + i % 9), **row) for i, row in enumerate(rows)]
    limits = described({})
    each = [devices(trace(kernels=k, devices=limits))["sm_fill"][0] for k in single]
    weights = [1 + i % 9 for i in range(len(rows))]
    expected = np.average(each, weights=weights)
    found = devices(trace(kernels=joined(*single), devices=limits))["sm_fill"]
    assert found.tolist() == [pytest.approx(expected)]


def test_nothing_recorded() -> None:
    empty = trace()
    assert len(devices(empty)) == len(device_processes(empty)) == len(gaps(empty)) == 0
    assert len(checks(measure(empty))) == 0


def test_an_unknown_view_of_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="'device' or 'process'"):
        gaps(trace(), per="stream")  # type: ignore[arg-type]


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 12),
        st.sampled_from(["gemm", NCCL, "HtoD", "memset", "HtoH", "PtoP"]),
        st.integers(1, 2),  # process
        st.integers(0, 1),  # device
    ),
    max_size=12,
)
Event = tuple[int, int, str, int, int]
GPU = {(1, 0): 0, (1, 1): 1, (2, 0): 1, (2, 1): 0}


def build(events: list[Event]) -> Trace:
    made: dict[str, list[Table]] = {"kernels": [kernels()], "copies": [copies()]}
    for start, length, what, process, device in events:
        make, key = (kernels, "kernels") if what in ("gemm", NCCL) else (copies, "copies")
        ids: dict[str, Any] = {"process_id": process, "device_id": device}
        if what == "PtoP":
            ids |= {"src_device_id": device, "dst_device_id": 1 - device}
        made[key].append(make((start, start + length, what), **ids))
    rows = [
        {"process_id": p, "device_id": d, "gpu_id": gpu, "identifies": True}
        for (p, d), gpu in GPU.items()
    ]
    return trace(
        kernels=joined(*made["kernels"]), copies=joined(*made["copies"]), devices=described(*rows)
    )


def classified(running: set[str]) -> str:
    compute, talk = "gemm" in running, NCCL in running
    copy, memset = bool(running & {"HtoD", "PtoP"}), "memset" in running
    if compute:
        if talk:
            return "compute_and_communication"
        return "compute_and_copy" if copy or memset else "compute_only"
    if talk:
        return "communication_only"
    return "copy_only" if copy else "memset_only" if memset else "idle"


def slow_partition(events: list[Event], gpu: int, window: Window) -> dict[str, int]:
    found: dict[str, int] = {}
    for t in range(window.start_ns, window.end_ns):
        running = {
            what
            for start, length, what, process, device in events
            if start <= t < start + length
            and (
                GPU[process, device] == gpu or (what == "PtoP" and GPU[process, 1 - device] == gpu)
            )
        }
        name = classified(running)
        found[name] = found.get(name, 0) + 1
    return found


@given(EVENTS, st.integers(-3, 30), st.integers(1, 40))
def test_the_partition_is_a_sweep_over_every_nanosecond(
    events: list[Event], start: int, length: int
) -> None:
    window = at(start, start + length)
    time = measure(build(events), window)
    table = devices(build(events), measured=time)
    used = sorted({GPU[p, d] for _, _, what, p, d in events if what != "HtoH"})
    assert table.texts("physical_id") == [str(gpu) for gpu in used]
    for row, gpu in enumerate(used):
        assert parts(table, row) == slow_partition(events, gpu, window)
    result = checks(time)
    assert bool(result["ok"].all()), result.records()
    assert len(result) == 2 * (len(used) + len(time.lanes))


@given(EVENTS, st.integers(-3, 30), st.integers(1, 40))
def test_time_of_others_is_a_sweep_too(events: list[Event], start: int, length: int) -> None:
    window = at(start, start + length)
    for row in device_processes(build(events), window).records():
        gpu = GPU[row["process_id"], row["device_id"]]
        expected = 0
        for t in range(window.start_ns, window.end_ns):
            on = {
                process
                for s, n, what, process, device in events
                if s <= t < s + n
                and what != "HtoH"
                and (
                    GPU[process, device] == gpu
                    or (what == "PtoP" and GPU[process, 1 - device] == gpu)
                )
            }
            expected += bool(on) and row["process_id"] not in on
        assert row["other_process_ns"] == expected


@given(EVENTS)
def test_gaps_and_edges_sum_to_idle(events: list[Event]) -> None:
    found = build(events)
    table = devices(found)
    listed = gaps(found)
    for row in table.records():
        mine = listed["device"] == row["index"]
        pauses = listed["duration_ns"][mine]
        assert int(pauses.sum()) + row["leading_ns"] + row["trailing_ns"] == row["idle_ns"]
        assert len(pauses) == row["gap_count"]
    order = list(zip((-listed["duration_ns"]).tolist(), listed["start_ns"].tolist(), strict=True))
    assert order == sorted(order)
