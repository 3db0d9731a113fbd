from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.device_streams import streams
from kernelscope.metrics.window import Window
from kernelscope.trace import Table
from tests.build import copies, devices, joined, kernels, trace

Event = tuple[int, int, bool, int, int, int]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 12),
        st.booleans(),  # kernel
        st.integers(1, 2),  # process
        st.integers(0, 1),  # device
        st.integers(7, 8),  # stream
    ),
    min_size=1,
    max_size=12,
)


def test_busy_exclusive_and_the_largest_gap() -> None:
    found = trace(
        kernels=joined(kernels((0, 10), (30, 40)), kernels((5, 20), stream_id=8)),
        copies=joined(copies((45, 50)), copies((46, 47, "HtoH"), stream_id=9)),
    )
    first, second = streams(found).records()
    assert (first["stream_id"], first["kernels"], first["busy_ns"]) == (7, 2, 25)
    assert (first["exclusive_ns"], first["largest_gap_ns"]) == (20, 20)
    assert (second["stream_id"], second["kernels"], second["busy_ns"]) == (8, 1, 15)
    assert (second["exclusive_ns"], second["largest_gap_ns"]) == (10, None)


def test_one_stream_is_always_alone() -> None:
    row = streams(trace(kernels=kernels((0, 10), (20, 50))), Window(5, 30, "test")).records()[0]
    assert (row["kernels"], row["busy_ns"], row["exclusive_ns"]) == (1, 15, 15)


def test_nothing_recorded() -> None:
    assert len(streams(trace())) == 0


@given(EVENTS, st.integers(-3, 30), st.integers(1, 40))
def test_streams_against_a_sweep(events: list[Event], start: int, length: int) -> None:
    window = Window(start, start + length, "test")
    gpu = {(1, 0): 0, (1, 1): 1, (2, 0): 1, (2, 1): 0}
    built = trace(
        kernels=joined(kernels(), *(one(event) for event in events if event[2])),
        copies=joined(copies(), *(one(event) for event in events if not event[2])),
        devices=devices(
            *(
                {"process_id": p, "device_id": d, "gpu_id": g, "identifies": True}
                for (p, d), g in gpu.items()
            )
        ),
    )
    rows = streams(built, window).records()
    assert len(rows) == len({event[3:] for event in events})
    for row in rows:
        me = (row["process_id"], row["device_id"], row["stream_id"])
        busy = alone = 0
        for t in range(window.start_ns, window.end_ns):
            on = {
                event[3:]
                for event in events
                if event[0] <= t < event[0] + event[1] and gpu[event[3:5]] == gpu[me[:2]]
            }
            busy += me in on
            alone += on == {me}
        assert (row["busy_ns"], row["exclusive_ns"]) == (busy, alone)
    order = [-row["busy_ns"] for row in rows]
    assert order == sorted(order)


def one(event: Event) -> Table:
    start, length, is_kernel, process, device, stream = event
    make = kernels if is_kernel else copies
    return make((start, start + length), process_id=process, device_id=device, stream_id=stream)
