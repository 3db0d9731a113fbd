"""Named runs, each with one story to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kernelscope.oracle.cupy import cupy_like
from kernelscope.oracle.gpus import A100, RTX3080
from kernelscope.oracle.machine import Machine, Work
from kernelscope.oracle.plan import Device, Plan, Setup, Thread, plan_of
from kernelscope.oracle.resnet import resnet
from kernelscope.oracle.run import Run
from kernelscope.oracle.sampled import sampled

MS = 1_000_000
US = 1_000


def two_processes() -> Plan:
    """Two processes share one GPU: equal correlation ids, overlapping executions.

    A join on the correlation id alone gives each kernel two launches. Both processes call the
    device 0; only exports of 2025 and later say that it is the same GPU.
    """
    work = (
        Work("void step_one<float>(float *, int)", 90 * US, (512, 1, 1), (256, 1, 1), 40),
        Work("void step_two<float>(float *, const float *, int)", 35 * US, (2048, 1, 1)),
        Work("reduce(float *, float *)", 8 * US, (68, 1, 1), (512, 1, 1), 24, 2048),
    )
    machines = []
    for number, process in enumerate((4_001, 4_002)):
        machine = Machine(7 + number, process=process, start=50 * MS + number * 31 * US)
        # Both count calls from the same number, so that ids of the two collide throughout.
        for step in range(30):
            machine.think(process, (120 + 60 * number) * US)
            for each in work:
                machine.think(process, 9 * US)
                machine.launch(process, each, 7 if each is not work[1] else 13)
            if step % 5 == 4:
                machine.copy(process, "DtoH", 65_536, 7)
                machine.synchronize(process, 7)
        machines.append(machine)
    events = [event for machine in machines for event in machine.events]
    setup = Setup(
        gpus=(RTX3080,),
        devices=(Device(4_001, 0, 0), Device(4_002, 0, 0)),
        threads=(Thread(4_001, 4_001, "server"), Thread(4_002, 4_002, "worker")),
    )
    return plan_of(sorted(events, key=lambda event: getattr(event, "start", 0)), setup)


def reversed_devices() -> Plan:
    """Two GPUs whose profiler ids run against their CUDA ordinals, one kernel name on each.

    Device 0 is busy for 300 µs and the A100, device 1 for 100 µs and the RTX 3080. Who joins
    kernels to GPUs by the profiler's id gets both names wrong.
    """
    gpus = (
        replace(A100, id=1, bus="0000:c1:00.0", uuid="aaaaaaaa-0000-0000-0000-000000000001"),
        replace(RTX3080, id=0, bus="0000:03:00.0", uuid="bbbbbbbb-0000-0000-0000-000000000002"),
    )
    run = Run(setup=Setup(gpus=gpus))
    for step in range(10):
        begin = MS + step * 100 * US
        run = (
            run.on(device=0)
            .kernel(begin + 20 * US, begin + 50 * US, "on_zero", call=(begin, begin + 6 * US))
            .on(device=1)
            .kernel(
                begin + 30 * US,
                begin + 40 * US,
                "on_one",
                call=(begin + 8 * US, begin + 14 * US),
            )
        )
    return run.plan()


def windows() -> Plan:
    """Kernels on every side of a window, which the facts name: ``[1000, 2000)``.

    One ends before it, one ends as it starts, one reaches in, two lie inside, one reaches out,
    one starts as it ends, one covers all of it; and one inside has no length.
    """
    run = Run(setup=Setup(facts={"window": [1_000, 2_000]}))
    spans = {
        "before": (100, 900),
        "touches_start": (500, 1_000),
        "reaches_in": (900, 1_100),
        "inside": (1_200, 1_400),
        "reaches_out": (1_900, 2_150),
        "touches_end": (2_000, 2_100),
        "covers": (800, 2_200),
    }
    for stream, (name, (start, end)) in enumerate(spans.items(), start=7):
        run = run.on(stream=stream).kernel(start, end, name, call=(start - 60, start - 50))
    run = run.on(stream=7).kernel(1_500, 1_700, "inside", call=(1_440, 1_450))
    return run.kernel(1_800, 1_800, "no_length", call=(1_740, 1_750)).plan()


def lonely_copy() -> Plan:
    """One copy, no kernel at all: absent is not zero, and a busy device is not a computing one."""
    return Run().copy(10 * US, 30 * US, "HtoD", bytes=500_000, call=(US, 8 * US)).plan()


def overlapping_streams() -> Plan:
    """Three streams at once: sums of durations exceed the time that passes.

    Kernels overlap kernels, copies and a communication kernel; every class of device time occurs
    but that of opaque graphs.
    """
    return (
        Run()
        .on(stream=7)
        .kernel(100, 400, "compute", call=(10, 20))
        .kernel(900, 1_000, "compute", call=(21, 30))
        .on(stream=13)
        .kernel(200, 500, "compute", call=(31, 40))
        .copy(450, 650, "HtoD", bytes=4_096, call=(41, 50))
        .on(stream=14)
        .kernel(300, 350, "other", call=(51, 60))
        .memset(640, 700, call=(61, 70))
        .copy(950, 1_100, "DtoH", bytes=4_096, call=(91, 99))
        .on(stream=20)
        .kernel(380, 800, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=(71, 80))
        .memset(850, 870, call=(81, 90))
        .plan()
    )


def quarantine() -> Plan:
    """Rows that cannot be true: ends before starts, ends of 0; they count nowhere.

    Each bad row would move the window or a sum if it were believed.
    """
    return (
        Run()
        .kernel(10_000, 12_000, "good", call=(9_000, 9_500))
        .kernel(20_000, 15_000, "good", call=(9_600, 9_900))
        .kernel(30_000, 0, "never_ended", call=(10_000, 10_400))
        .copy(13_000, 14_000, "DtoH", bytes=1_024, call=(11_000, 11_500))
        .copy(50_000, 49_000, "DtoH", bytes=1_024)
        .memset(60_000, 0)
        .call(70_000, 60_000, "cudaFree")
        .kernel(5_000, 6_000, "early", call=(8_000, 8_500))
        .plan()
    )


def handover() -> Plan:
    """One iteration loop, work launched by a second thread, ranges of every kind.

    Registered and inline text, two domains, a start/end range closed on another thread, a range
    that never closes, and a launch outside of all ranges.
    """
    run = Run(setup=Setup(iteration_family="step #"))
    for step in range(6):
        t = 10_000 * step + 1_000
        run = (
            run.on(thread=1000, stream=7)
            .range(t, t + 8_000, f"step {step}")
            .range(t + 100, t + 3_000, "forward", registered=True)
            .range(t + 200, t + 1_000, "layer", registered=True, domain="model")
            .kernel(t + 900, t + 1_900, "fwd", call=(t + 300, t + 400))
            .kernel(t + 2_000, t + 2_500, "fwd", call=(t + 1_500, t + 1_600))
            .on(thread=1001)
            .kernel(t + 4_000, t + 7_000, "bwd", call=(t + 3_200, t + 3_300))
            .on(thread=1000)
            .call(t + 3_100, t + 7_500, "cudaStreamSynchronize")
        )
    return (
        run.range(500, 60_000, "whole", style="start_end", end_thread=1001, category=3)
        .kernel(62_000, 63_000, "tail", call=(61_000, 61_100))
        .range(61_500, None, "open")
        .plan()
    )


def migrations() -> Plan:
    """Unified memory moves by itself: copies without a call, on no stream, with a cause."""
    run = Run().kernel(10_000, 90_000, "touches_managed", call=(1_000, 6_000))
    moved: dict[str, Any] = {
        "process": 1000,
        "context": 0,
        "stream": 0,
        "correlation": 0,
        "bytes": 65_536,
    }
    for page in range(8):
        begin = 12_000 + 9_000 * page
        cause, address = "page fault", 0x7F00_0000_0000 + page * 65_536
        run = run.copy(begin, begin + 4_000, "unified HtoD", cause=cause, address=address, **moved)
    return run.copy(
        95_000, 99_000, "unified DtoH", cause="eviction", address=0x7F00_0000_0000, **moved
    ).plan()


def graphs() -> Plan:
    """A training step captured once as a CUDA graph, layer by layer, and replayed as a whole.

    Steps 0 to 3 are traced node by node: every kernel names its node, a clone of the one that
    was made under a layer's range. Steps 4 to 7 are opaque, beside a copy and an eager kernel.
    Step 8 has rows of both kinds, which must not both count.
    """
    run = _captured(Run(), 1_000)
    for step in range(9):
        t = 100_000 + 20_000 * step
        correlation = 1_000 + step
        run = run.range(t, t + 6_000, f"step {step}").call(
            t + 1_000, t + 2_500, "cudaGraphLaunch", correlation
        )
        if step < 4 or step == 8:
            for place in range(6):
                begin = t + 4_000 + 2_000 * place
                run = run.kernel(
                    begin,
                    begin + 1_500 + 100 * place,
                    "gemm" if place % 2 else "relu",
                    correlation=correlation,
                    graph_node=201 + place,
                )
        if step >= 4:
            run = run.graph(t + 4_000, t + 15_500, correlation=correlation, graph=5, executable=6)
    return (
        run.on(stream=13)
        .copy(185_000, 187_000, "HtoD", bytes=4_096, call=(180_500, 180_700))
        .copy(196_500, 197_500, "HtoD", bytes=4_096, call=(180_800, 180_900))
        .on(stream=14)
        .kernel(206_000, 209_000, "eager", call=(200_200, 200_300))
        .graph(270_000, 272_000, call=(260_500, 260_800))
        .graph(300_000, 0)
        .plan()
    )


def _captured(run: Run, begin: int) -> Run:
    """Capture three layers of two kernels each, and clone their nodes into an executable."""
    run = run.range(begin, begin + 50_000, "capture")
    run = run.call(begin + 500, begin + 1_500, "cudaStreamBeginCapture")
    for layer in range(3):
        t = begin + 2_000 + 10_000 * layer
        run = run.range(t, t + 9_000, f"layer {layer}")
        for place in range(2):
            call = t + 1_000 + 4_000 * place
            # Launches while capturing run nothing: they make a node.
            run = run.call(call, call + 2_000, "cudaLaunchKernel")
            run = run.node(call + 500, 101 + 2 * layer + place)
    run = run.call(begin + 40_000, begin + 41_000, "cudaStreamEndCapture")
    run = run.range(begin + 60_000, begin + 80_000, "instantiate")
    run = run.call(begin + 61_000, begin + 79_000, "cudaGraphInstantiate")
    for place in range(6):
        run = run.node(begin + 62_000 + 100 * place, 201 + place, 101 + place)
    return run


SCENES: Mapping[str, Callable[[], Plan]] = {
    "resnet": resnet,
    "two_processes": two_processes,
    "reversed_devices": reversed_devices,
    "windows": windows,
    "lonely_copy": lonely_copy,
    "overlapping_streams": overlapping_streams,
    "quarantine": quarantine,
    "cupy_like": cupy_like,
    "handover": handover,
    "migrations": migrations,
    "graphs": graphs,
    "sampled": sampled,
}
"""Every scene by name."""
