"""Communication: what is exposed, what kernels do, and how much they move; known answers."""

from __future__ import annotations

from typing import Any

import pytest

from kernelscope import schema
from kernelscope.errors import SelectionError
from kernelscope.metrics.communication import (
    communication,
    communication_by_device,
    measure_communication,
)
from kernelscope.metrics.communication_health import communication_findings
from kernelscope.metrics.device_time import devices, measure
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace
from tests import build
from tests.build import joined
from tests.metrics.scenes import launches, pushed

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE_SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"

Row = dict[str, Any]


def at(start: int, end: int) -> Window:
    return Window(start, end, "test")


def rows(found: Trace, window: Window | None = None, **options: Any) -> list[Row]:
    time = measure_communication(found, window, **options)
    return communication(found, found=time).records()


def times(row: Row) -> tuple[int, int, int, int, int]:
    return (
        row["calls"],
        row["total_ns"],
        row["busy_ns"],
        row["exposed_ns"],
        row["overlapped_ns"],
    )


# ---- time ------------------------------------------------------------------------------------


def test_exposed_and_overlapped() -> None:
    found = build.trace(
        kernels=joined(
            build.kernels((0, 20), (50, 60)),
            build.kernels((10, 40, ALL_REDUCE), (30, 55, ALL_REDUCE), stream_id=8),
            build.kernels((35, 45, ALL_GATHER), stream_id=9),
        ),
        copies=build.copies((40, 50)),  # a copy hides nothing
    )
    reduce, gather = rows(found)
    assert (reduce["kind"], gather["kind"]) == ("all_reduce", "all_gather")
    assert times(reduce) == (2, 55, 45, 30, 15)
    assert times(gather) == (1, 10, 10, 10, 0)
    (whole,) = communication_by_device(found).records()
    assert times(whole) == (3, 65, 45, 30, 15)
    assert devices(found)["partition.communication_only_ns"].tolist() == [30]
    assert devices(found)["partition.compute_and_communication_ns"].tolist() == [15]


def test_a_window_that_cuts_calls() -> None:
    found = build.trace(kernels=build.kernels((0, 20, ALL_REDUCE), (30, 50, ALL_REDUCE), (35, 90)))
    (row,) = rows(found, at(10, 40))
    assert times(row) == (1, 20, 20, 15, 5)
    assert rows(found, at(21, 29)) == []
    assert rows(found, at(55, 80)) == []


def test_compute_of_another_process_on_the_same_gpu_hides_it() -> None:
    gpu = {"gpu_id": 4, "identifies": True}
    found = build.trace(
        kernels=joined(
            build.kernels((0, 30, ALL_REDUCE)),
            build.kernels((20, 50), process_id=2, device_id=1),
            build.kernels((0, 30, ALL_REDUCE), process_id=2, device_id=0),
        ),
        devices=build.devices(
            {"process_id": 1, "device_id": 0, **gpu},
            {"process_id": 2, "device_id": 1, **gpu},
            {"process_id": 2, "device_id": 0, "gpu_id": 5, "identifies": True},
        ),
    )
    one, two = rows(found)
    assert (one["process_id"], *times(one)) == (1, 1, 30, 30, 20, 10)
    assert (two["process_id"], *times(two)) == (2, 1, 30, 30, 30, 0)
    # A choice of processes does not change what happened on the GPU.
    chosen = found.with_tables(kernels=found.kernels.take(found.kernels["process_id"] == 1))
    time = measure_communication(chosen, measured=measure(found))
    (row,) = communication(chosen, found=time).records()
    assert times(row) == times(one)


def test_graphs_traced_as_one_unit() -> None:
    graph = {"process_id": 1, "device_id": 0, "start_ns": 10, "end_ns": 30}
    found = build.trace(
        kernels=build.kernels((0, 20, ALL_REDUCE), (15, 18)),
        graphs=build.table(schema.GRAPHS, [graph]),
    )
    (row,) = rows(found)
    assert (row["exposed_ns"], row["exposed_without_graphs_ns"]) == (17, 10)
    assert devices(found)["partition.communication_only_ns"].tolist() == [10]


def test_no_communication() -> None:
    found = build.trace(kernels=build.kernels((0, 20)))
    assert rows(found) == []
    assert communication_by_device(found).records() == []
    assert rows(build.trace()) == []


def test_a_users_kernels_count_in_the_partition_as_well() -> None:
    found = build.trace(kernels=build.kernels((0, 20, "my_ring<float>(int)"), (15, 30)))
    time = measure_communication(found, communication=["all_gather=^my_ring"])
    (row,) = communication(found, found=time).records()
    assert (row["library"], row["kind"], row["kind_source"]) == ("user", "all_gather", "name")
    assert times(row) == (1, 20, 20, 15, 5)
    (device,) = devices(found, measured=time.measured).records()
    assert device["partition.communication_only_ns"] == 15


def test_rows_are_sorted_by_time_and_then_by_name() -> None:
    found = build.trace(
        kernels=joined(
            build.kernels((0, 10, ALL_GATHER), (20, 30, ALL_REDUCE), (40, 60, SEND_RECV)),
            build.kernels((0, 10, ALL_GATHER), process_id=2),
        )
    )
    keys = [(row["process_id"], row["kind"]) for row in rows(found)]
    assert keys == [(1, "send_recv"), (1, "all_reduce"), (1, "all_gather"), (2, "all_gather")]


# ---- kinds -----------------------------------------------------------------------------------


def scene(
    kernels: list[tuple[str, int]],
    ranges: list[tuple[int, int, str]],
    pytorch: list[tuple[int, int, str]] | None = None,
    **payloads: list[int | None],
) -> Trace:
    """Kernels (name, time of its launch), 10 ns each; NCCL's ranges with payloads; PyTorch's."""
    calls = launches(*((time, time + 1) for _, time in kernels))
    work = [
        build.kernels((1000 + 20 * i, 1010 + 20 * i, name), correlation_id=i + 1)
        for i, (name, _) in enumerate(kernels)
    ]
    nccl = pushed(*ranges, domain="NCCL").records()
    for column, values in payloads.items():
        for row, value in zip(nccl, values, strict=True):
            row[column] = value
    tables = [build.table(schema.RANGES, nccl), pushed(*(pytorch or []))]
    return build.trace(kernels=joined(*work), api_calls=calls, ranges=joined(*tables))


def kinds(found: Trace) -> list[tuple[str, str | None]]:
    return [(row["kind"], row["kind_source"]) for row in rows(found)]


def test_nccls_range_tells_what_a_generic_kernel_does() -> None:
    assert kinds(scene([(GENERIC, 15)], [(10, 20, "ncclReduceScatter")])) == [
        ("reduce_scatter", "nvtx")
    ]
    assert kinds(scene([(GENERIC, 25)], [(10, 20, "ncclReduceScatter")])) == [("unknown", None)]
    assert kinds(scene([(GENERIC, 15)], [(10, 20, "ncclCommInitRank")])) == [("unknown", None)]


def test_kernels_are_launched_where_a_group_ends() -> None:
    group = [(10, 12, "ncclGroupStart"), (13, 15, "ncclBroadcast"), (20, 30, "ncclGroupEnd")]
    assert kinds(scene([(GENERIC, 25)], group)) == [("broadcast", "nvtx")]
    nested = [
        (1, 2, "ncclGroupStart"),
        (3, 4, "ncclGroupStart"),
        (5, 6, "ncclAllGather"),
        (7, 8, "ncclGroupEnd"),
        (9, 10, "ncclAllGather"),
        (11, 20, "ncclGroupEnd"),
    ]
    assert kinds(scene([(GENERIC, 15)], nested)) == [("all_gather", "nvtx")]


def test_a_group_of_several_kinds_tells_nothing() -> None:
    group = [
        (10, 12, "ncclGroupStart"),
        (13, 15, "ncclAllGather"),
        (16, 18, "ncclReduceScatter"),
        (20, 30, "ncclGroupEnd"),
    ]
    assert kinds(scene([(GENERIC, 25)], group)) == [("unknown", None)]
    # the name is one of them, and stands
    assert kinds(scene([(ALL_GATHER, 25)], group)) == [("all_gather", "name")]


def test_a_capture_that_begins_inside_a_group() -> None:
    ranges = [(1, 9, "ncclGroupEnd"), (10, 20, "ncclAllReduce"), (30, 40, "ncclBroadcast")]
    found = scene([(GENERIC, 5), (GENERIC, 15), (GENERIC, 35)], ranges)
    assert sorted(kinds(found)) == [
        ("all_reduce", "nvtx"),
        ("broadcast", "nvtx"),
        ("unknown", None),
    ]


def test_groups_of_two_threads_do_not_mix() -> None:
    found = scene([(GENERIC, 25)], [(10, 12, "ncclGroupStart"), (20, 30, "ncclGroupEnd")])
    other = pushed((13, 15, "ncclBroadcast"), domain="NCCL", thread_id=2)
    mixed = found.with_tables(ranges=joined(found.ranges, other))
    assert kinds(mixed) == [("unknown", None)]


def test_pytorch_says_what_sends_and_receives_are_for() -> None:
    group = [
        (10, 12, "ncclGroupStart"),
        (13, 15, "ncclSend"),
        (16, 18, "ncclRecv"),
        (20, 30, "ncclGroupEnd"),
    ]
    asked = [(5, 40, "nccl:all_to_all, op_id = 7"), (8, 35, "inner")]
    assert kinds(scene([(SEND_RECV, 25)], group)) == [("send_recv", "name")]
    assert kinds(scene([(SEND_RECV, 25)], group, asked)) == [("all_to_all", "nvtx")]
    together = [(5, 40, "nccl:coalesced, op_id = 7")]
    assert kinds(scene([(SEND_RECV, 25)], group, together)) == [("send_recv", "name")]
    # a name that tells is not overruled
    assert kinds(scene([(ALL_REDUCE, 25)], group, asked)) == [("all_reduce", "name")]


def test_one_row_may_take_its_kind_from_both() -> None:
    found = scene([(ALL_REDUCE, 5), (GENERIC, 15)], [(10, 20, "ncclAllReduce")])
    assert kinds(found) == [("all_reduce", "name and nvtx")]


# ---- bytes and rates -------------------------------------------------------------------------

MIB = 1 << 20


def volume(found: Trace, **options: Any) -> tuple[Any, ...]:
    (row,) = rows(found, **options)
    return row["bytes"], row["bytes_source"], row["bytes_missing_because"]


def rates(found: Trace, **options: Any) -> tuple[Any, ...]:
    (row,) = rows(found, **options)
    assert row["lower_bound"]
    return row["algorithm_bytes_per_s"], row["bus_bytes_per_s"], row["ranks"], row["ranks_source"]


@pytest.mark.parametrize(
    ("kernel", "call", "data", "factor"),
    [
        (ALL_REDUCE, "ncclAllReduce", 1, 2 * 3 / 4),
        (ALL_GATHER, "ncclAllGather", 4, 3 / 4),
        (REDUCE_SCATTER, "ncclReduceScatter", 4, 3 / 4),
        (GENERIC, "ncclBroadcast", 1, 1),
        (GENERIC, "ncclReduce", 1, 1),
        (GENERIC, "ncclAlltoAll", 4, 3 / 4),
        (GENERIC, "ncclGather", 4, 3 / 4),
        (SEND_RECV, "ncclSend", 1, 1),
    ],
)
def test_rates_as_nccl_tests_counts_them(kernel: str, call: str, data: int, factor: float) -> None:
    sizes: dict[str, Any] = {"message_bytes": [MIB], "communicator_ranks": [4]}
    found = scene([(kernel, 15)], [(10, 20, call)], **sizes)
    assert volume(found) == (data * MIB, "nvtx_payload", None)
    algorithm = data * MIB / 10e-9
    assert rates(found) == pytest.approx((algorithm, algorithm * factor, 4, "nvtx_payload"))


def test_the_users_ranks_fill_what_is_not_recorded() -> None:
    found = scene([(ALL_GATHER, 15)], [(10, 20, "ncclAllGather")], message_bytes=[MIB])
    assert volume(found) == (None, None, "ranks_unknown")
    assert rates(found) == (None, None, None, None)
    assert volume(found, ranks=8) == (8 * MIB, "nvtx_payload", None)
    algorithm = 8 * MIB / 10e-9
    assert rates(found, ranks=8) == pytest.approx((algorithm, algorithm * 7 / 8, 8, "user"))
    reduced = scene([(ALL_REDUCE, 15)], [(10, 20, "ncclAllReduce")], message_bytes=[MIB])
    assert rates(reduced) == (pytest.approx(MIB / 10e-9), None, None, None)
    # what is recorded is not overruled
    known: dict[str, Any] = {"message_bytes": [MIB], "communicator_ranks": [4]}
    found = scene([(ALL_GATHER, 15)], [(10, 20, "ncclAllGather")], **known)
    assert volume(found, ranks=8)[0] == 4 * MIB
    with pytest.raises(SelectionError, match="0 ranks"):
        rows(found, ranks=0)


def test_one_rank_alone_moves_nothing_over_a_bus() -> None:
    known: dict[str, Any] = {"message_bytes": [MIB], "communicator_ranks": [1]}
    found = scene([(ALL_REDUCE, 15)], [(10, 20, "ncclAllReduce")], **known)
    assert rates(found)[1] == 0.0


GROUP = [
    (10, 12, "ncclGroupStart"),
    (13, 14, "ncclAllReduce"),
    (15, 16, "ncclAllReduce"),
    (20, 40, "ncclGroupEnd"),
]


def test_a_kernel_moves_what_its_whole_group_does() -> None:
    found = scene([(ALL_REDUCE, 25)], GROUP, message_bytes=[None, 100, 28, None])
    assert volume(found) == (128, "nvtx_payload", None)


def test_a_group_of_mixed_group() -> None:
    two = [(ALL_REDUCE, 25), (ALL_REDUCE, 30)]
    assert volume(scene(two, GROUP, message_bytes=[None, 100, 100, None]))[0] == 200
    unequal = scene(two, GROUP, message_bytes=[None, 100, 28, None])
    assert volume(unequal) == (None, None, "mixed_group")
    three = [*two, (ALL_REDUCE, 35)]
    found = scene(three, GROUP, message_bytes=[None, 100, 100, None])
    assert volume(found) == (None, None, "mixed_group")


def test_a_kernel_that_does_something_else_than_its_range() -> None:
    found = scene([(ALL_GATHER, 15)], [(10, 20, "ncclBroadcast")], message_bytes=[100])
    assert volume(found, ranks=2) == (None, None, "mixed_group")


EXCHANGE = [
    (10, 12, "ncclGroupStart"),
    (13, 14, "ncclSend"),
    (15, 16, "ncclRecv"),
    (17, 18, "ncclSend"),
    (19, 20, "ncclRecv"),
    (22, 40, "ncclGroupEnd"),
]


def test_sends_and_receives_count_the_direction_that_moves_more() -> None:
    sizes: list[int | None] = [None, 100, 7, 20, 8, None]
    found = scene([(SEND_RECV, 25)], EXCHANGE, message_bytes=sizes)
    assert volume(found) == (120, "nvtx_payload", None)
    sizes = [None, 7, 100, 8, 20, None]
    assert volume(scene([(SEND_RECV, 25)], EXCHANGE, message_bytes=sizes))[0] == 120


def test_sends_of_equal_size_in_several_kernels_cannot_be_told_apart() -> None:
    sizes: list[int | None] = [None, 50, 50, 50, 50, None]
    found = scene([(SEND_RECV, time) for time in (23, 25, 27, 29)], EXCHANGE, message_bytes=sizes)
    assert volume(found) == (None, None, "mixed_group")


def test_an_all_to_all_of_sends_has_a_message_for_every_peer() -> None:
    sizes: dict[str, Any] = {
        "message_bytes": [None, 50, 50, 50, 50, None],
        "communicator_ranks": [None, 2, 2, 2, 2, None],
    }
    found = scene([(SEND_RECV, 25)], EXCHANGE, [(5, 50, "nccl:all_to_all")], **sizes)
    assert volume(found) == (100, "nvtx_payload", None)
    assert rates(found)[1] == pytest.approx(100 / 10e-9 / 2)


def test_one_size_that_is_not_known_leaves_no_sum() -> None:
    ranges = [(10, 20, "ncclAllReduce"), (30, 40, "ncclAllReduce")]
    two = [(ALL_REDUCE, 15), (ALL_REDUCE, 35)]
    found = scene(two, ranges, message_bytes=[100, None])
    assert volume(found) == (None, None, "no_size_in_nvtx")
    # but it counts only where it is in the window
    (row,) = rows(found, at(1000, 1015))
    assert (row["bytes"], row["calls"]) == (100, 1)


def test_why_there_are_no_bytes() -> None:
    assert volume(scene([(ALL_REDUCE, 5)], [(10, 20, "ncclAllReduce")])) == (
        None,
        None,
        "no_nvtx_range",
    )
    assert volume(build.trace(kernels=build.kernels((0, 9, ALL_REDUCE))))[2] == "no_nvtx_range"
    assert volume(scene([(ALL_REDUCE, 15)], [(10, 20, "ncclAllReduce")]))[2] == "no_size_in_nvtx"
    assert volume(scene([(GENERIC, 5)], [(10, 20, "ncclAllReduce")]))[2] == "kind_unknown"


def test_calls_that_only_reach_into_the_window_have_no_rate() -> None:
    found = scene([(ALL_REDUCE, 15)], [(10, 20, "ncclAllReduce")], message_bytes=[100])
    (row,) = rows(found, at(1005, 1010))
    assert (row["calls"], row["total_ns"], row["bytes"]) == (0, 5, None)
    assert row["algorithm_bytes_per_s"] is None
    assert row["kind"] == "all_reduce"


@pytest.mark.parametrize(
    ("kernel", "message", "expected"),
    [
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = [[3, 5]]", 60),
        (ALL_REDUCE, "nccl:all_reduce, seq = 9, op_id = 4, sizes = [[7]], input_op_ids = []", 28),
        ("ncclKernel_AllReduce_RING_LL_Sum_half(x)", "nccl:all_reduce, sizes = [[7]]", 14),
        ("ncclAllReduceRingLLKernel_sum_f64(x)", "nccl:all_reduce, sizes = [[7]]", 56),
        ("ncclDevKernel_Reduce_Sum_bf16_TREE_LL(x)", "nccl:reduce, sizes = [[7]]", 14),
        # several tensors, none, a scalar, and shapes that are not closed
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = [[3], [5]]", None),
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = []", None),
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = [[]]", None),
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = [[3, ", None),
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4, sizes = [[3]", None),
        (ALL_REDUCE, "nccl:all_reduce, op_id = 4", None),
        # the name does not say how wide an element is, or the input is one rank's share
        (GENERIC, "nccl:all_reduce, sizes = [[7]]", None),
        (ALL_GATHER, "nccl:_all_gather_base, sizes = [[7]]", None),
        (REDUCE_SCATTER, "nccl:_reduce_scatter_base, sizes = [[7]]", None),
    ],
)
def test_shapes_in_pytorchs_ranges(kernel: str, message: str, expected: int | None) -> None:
    found = scene([(kernel, 15)], [], [(10, 20, message)])
    source = (expected, "nvtx_text", None) if expected else (None, None, "no_size_in_nvtx")
    assert volume(found, ranks=2) == source


def test_shapes_of_a_range_that_launched_mixed_group() -> None:
    message = "nccl:all_reduce, op_id = 4, sizes = [[3, 5]]"
    found = scene([(ALL_REDUCE, 15), (ALL_REDUCE, 17)], [], [(10, 20, message)])
    assert volume(found) == (None, None, "no_size_in_nvtx")


def test_an_argument_is_not_changed() -> None:
    found = scene([(ALL_REDUCE, 25)], GROUP, message_bytes=[None, 100, 28, None])
    before: dict[str, list[Row]] = {name: t.records() for name, t in found.tables.items()}
    rows(found, ranks=4)
    tables: dict[str, Table] = found.tables
    assert {name: table.records() for name, table in tables.items()} == before


def test_what_is_not_known_has_a_reason() -> None:
    ranges = [(10, 20, "ncclAllReduce"), (30, 40, "ncclAllGather")]
    work = [(ALL_REDUCE, 15), (ALL_GATHER, 35), (GENERIC, 50), (ALL_REDUCE, 50)]
    found = measure_communication(scene(work, ranges, message_bytes=[None, 8]))
    told = [(each.code, each.count) for each in communication_findings(found)]
    assert told == [
        ("communication_kind_unknown", 1),
        ("communication_size_unknown", 1),
        ("communication_size_unknown", 1),
        ("communication_size_unknown", 1),
        ("communication_size_unknown", 1),
    ]
    messages = " ".join(each.message for each in communication_findings(found))
    for hint in ("--trace=cuda,nvtx", "--include-blobs=true", "number of ranks", "names"):
        assert hint in messages
    assert communication_findings(measure_communication(build.trace())) == []
