"""What an activity can be shown to have waited for."""

from __future__ import annotations

import pytest

from kernelscope import schema
from kernelscope.metrics.idle import (
    explain,
    idle_pieces,
)
from kernelscope.trace import Table
from tests import build
from tests.metrics.pauses import (
    LAUNCH,
    US,
    calls,
    kernels,
    pieces,
)

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_a_stream_that_waited_for_an_event_of_another() -> None:
    place = {"process_id": 1, "context_id": 1}
    wait = {**place, "stream_id": 8, "kind": "stream_wait_event", "event_id": 3}
    trace = build.trace(
        kernels=build.joined(
            kernels((100, 110, 3)),
            kernels((60, 195, 1), device_id=1),
            kernels((200, 210, 2), stream_id=8),
        ),
        api_calls=calls(
            (0, 1, LAUNCH, 3),
            (2, 3, LAUNCH, 1),
            (4, 5, "cudaEventRecord", 10),
            (6, 7, "cudaStreamWaitEvent", 11),
            (8, 9, LAUNCH, 2),
        ),
        syncs=build.table(schema.SYNCS, [{**wait, "start_ns": 6 * US, "end_ns": 7 * US}]),
        event_records=build.table(
            schema.EVENT_RECORDS, [{**place, "stream_id": 7, "correlation_id": 10, "event_id": 3}]
        ),
    )
    assert (110, 200, "dependency", "stream wait") in pieces(trace)
    for absent in ("syncs", "event_records"):
        without = trace.with_tables(**{absent: Table.empty(getattr(schema, absent.upper()))})
        assert (110, 200, "unexplained", "") in pieces(without)


def test_an_event_of_its_own_stream_releases_nothing() -> None:
    place = {"process_id": 1, "context_id": 1, "stream_id": 7}
    wait = {**place, "kind": "stream_wait_event", "event_id": 3}
    trace = build.trace(
        kernels=kernels((100, 110, 1), (117, 120, 2)),
        api_calls=calls(
            (0, 1, LAUNCH, 1), (4, 5, "cudaEventRecord", 10), (6, 7, "cudaStreamWaitEvent", 11),
            (8, 9, LAUNCH, 2),
        ),
        syncs=build.table(schema.SYNCS, [{**wait, "start_ns": 6 * US, "end_ns": 7 * US}]),
        event_records=build.table(
            schema.EVENT_RECORDS, [{**place, "correlation_id": 10, "event_id": 3}]
        ),
    )  # fmt: skip
    assert pieces(trace)[1:] == [(110, 117, "unexplained", "")]


def test_a_stream_wait_is_named_before_a_peer() -> None:
    place = {"process_id": 1, "context_id": 1}
    wait = {**place, "stream_id": 8, "kind": "stream_wait_event", "event_id": 3}
    trace = build.trace(
        kernels=build.joined(
            kernels((100, 110, 3)),
            kernels((60, 195, 1), device_id=1, name=NCCL),
            kernels((200, 210, 2), stream_id=8, name=NCCL),
        ),
        api_calls=calls(
            (0, 1, LAUNCH, 3), (2, 3, LAUNCH, 1), (4, 5, "cudaEventRecord", 10),
            (6, 7, "cudaStreamWaitEvent", 11), (8, 9, LAUNCH, 2),
        ),
        syncs=build.table(schema.SYNCS, [{**wait, "start_ns": 6 * US, "end_ns": 7 * US}]),
        event_records=build.table(
            schema.EVENT_RECORDS, [{**place, "stream_id": 7, "correlation_id": 10, "event_id": 3}]
        ),
    )  # fmt: skip
    assert (110, 200, "dependency", "stream wait") in pieces(trace)
    without = trace.with_tables(syncs=Table.empty(schema.SYNCS))
    assert (110, 200, "dependency", "peer") in pieces(without)


@pytest.mark.parametrize(
    ("end", "cause"), [(190, "dependency"), (189.9, "unexplained"), (205, "unexplained")]
)
def test_communication_that_waited_for_its_peer(end: float, cause: str) -> None:
    trace = build.trace(
        kernels=build.joined(
            kernels((100, 110, 1)),
            kernels((60, end, 2), device_id=1, name=NCCL),
            kernels((200, 210, 3), name=NCCL),
        ),
        api_calls=calls(*((i, i + 1, LAUNCH, i) for i in (1, 2, 3))),
    )
    table = idle_pieces(explain(trace)).records()
    mine = [r for r in table if r["device"] == 0 and r["start_ns"] == 110 * US]
    assert [(r["cause"], r["detail"]) for r in mine] == [(cause, "peer" * (cause == "dependency"))]


def test_a_peer_copy_that_waited_for_one_on_the_device_at_its_other_end() -> None:
    def at(start: float, end: float, device: int, other: int, number: int) -> Table:
        return build.copies(
            (round(start * US), round(end * US), "PtoP"),
            device_id=device, dst_device_id=other, correlation_id=number,
        )  # fmt: skip

    trace = build.trace(
        kernels=build.joined(kernels((100, 110, 1)), kernels((5, 6, 9), device_id=2)),
        copies=build.joined(at(60, 195, 1, 2, 2), at(200, 210, 0, 1, 3), at(300, 310, 0, 2, 4)),
        api_calls=calls(*((i, i + 1, "cudaMemcpyPeerAsync", i) for i in (1, 2, 3, 4, 9))),
    )
    table = idle_pieces(explain(trace)).records()
    mine = {r["start_ns"] // US: r["cause"] for r in table if r["device"] == 0}
    assert (mine[110], mine[210]) == ("dependency", "unexplained")


def test_a_migration_that_ended_the_busy_time() -> None:
    trace = build.trace(
        kernels=kernels((10, 20, 1), (200, 210, 2)),
        copies=build.copies((15 * US, 60 * US, "unified HtoD")),
        api_calls=calls((0, 1, LAUNCH, 1), (2, 3, LAUNCH, 2)),
    )
    assert pieces(trace)[1:] == [(60, 200, "dependency", "migration")]
