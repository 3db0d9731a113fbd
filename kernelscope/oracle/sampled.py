"""A run whose GPU counters were sampled: what each sample speaks of is known by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelscope.oracle.gpus import A100, RTX3080
from kernelscope.oracle.plan import Plan, Setup
from kernelscope.oracle.run import Run

ACTIVE = "SMs Active [Throughput %]"
ISSUE = "SM Issue [Throughput %]"
TENSOR = "Tensor Active [Throughput %]"
READ = "DRAM Read Bandwidth [Throughput %]"
CLOCK = "GPC Clock Frequency [MHz]"
WARPS = "Compute Warps in Flight [Avg]"
BAR1 = "PCIe Read Requests to BAR1 [Requests]"

PERIOD = 10_000

_FACTS: dict[str, Any] = {
    "period_ns": PERIOD,
    "by_kernel": {
        # name: {metric: (samples, mean)}; null under 5 samples
        "gemm": {ISSUE: (6, 0.625), TENSOR: (6, 0.8), ACTIVE: (6, 1.0)},
        "softmax": {ISSUE: (4, None)},
    },
    "window": {
        # what the samples of the first GPU come to over the 180 µs that they cover
        "covered_ns": 180_000,
        "samples": 18,
    },
    "lost_ns": 60_000,
}


def sampled() -> Plan:
    """Ten-microsecond samples of two GPUs while one kernel, then another, then both run.

    The A100 (CUDA ordinal 0, and number 1 of the profiler) runs ``gemm`` alone in six samples;
    then ``gemm`` and ``softmax`` overlap in four; ``softmax`` is alone in four, too few for a
    mean. The sample behind a gap of 60 µs speaks of nothing, and four more find the GPU idle. The
    RTX 3080 is idle but for a microsecond, and its samples show 1 %.
    """
    gpus = (
        replace(A100, id=1, bus="0000:c1:00.0", uuid="aaaaaaaa-0000-0000-0000-000000000001"),
        replace(RTX3080, id=0, bus="0000:03:00.0", uuid="bbbbbbbb-0000-0000-0000-000000000002"),
    )
    run = Run(setup=Setup(gpus=gpus, facts=_FACTS))
    t = 1_000_000
    run = (
        run.range(t - 20_000, t - 11_000, "forward")
        .kernel(t, t + 100_000, "gemm", call=(t - 19_000, t - 18_000))
        .on(stream=8)
        .kernel(t + 60_000, t + 140_000, "softmax", call=(t - 17_000, t - 16_000))
        .range(t - 9_000, t - 1_000, "tail")
        .on(stream=7)
        .copy(t + 250_000, t + 250_100, "DtoH", bytes=4_096, call=(t - 8_000, t - 7_000))
        .on(device=1)
        .kernel(t + 1_000, t + 2_000, "elsewhere", call=(t - 6_000, t - 5_000))
    )
    issue = [60, 60, 60, 60, 67, 68, 90, 90, 90, 90, 20, 20, 20, 20]
    tensor = [80] * 6 + [40] * 4 + [0] * 4
    times = [t + PERIOD * i for i in range(1, 15)]
    # 60 µs without a sample, then four of an idle GPU.
    later = [t + 140_000 + 60_000 + PERIOD * i for i in range(5)]
    run = run.samples(t, _values(0, 0, 0))
    for time, one, two in zip(times, issue, tensor, strict=True):
        run = run.samples(time, _values(100, one, two))
    for time in later:
        run = run.samples(time, _values(0, 0, 0))
    for time in (t, *times, *later):
        run = run.samples(time, {ACTIVE: 1}, gpu=1)
    return run.plan()


def _values(active: int, issue: int, tensor: int) -> dict[str, int]:
    return {
        ACTIVE: active,
        ISSUE: issue,
        TENSOR: tensor,
        READ: tensor // 2,
        CLOCK: 1_410_000_000,
        WARPS: 4_000_000,
        BAR1: issue,
    }
