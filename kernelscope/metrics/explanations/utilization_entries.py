"""Utilization, bounds and precision: work against what the GPU can do."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, Explanation

_INPUTS = (
    "kernels.name", "kernels.start_ns", "kernels.end_ns", "kernels.grid_x", "counters.metric",
    "counters.value", "devices.sm_count", "devices.clock_hz",
)  # fmt: skip
_TBD = "TBD (Zhu et al., IISWC 2018), equation 2"
_ROOFLINE = "the roofline model (Williams et al. 2009; Yang et al. 2020)"

ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="pipe_utilization.value",
        question="How much of a pipe or memory does a kernel use?",
        formula="Σ work / Σ (peak · time), over the launch shapes that were counted",
        unit="ratio",
        denominator="the dense peak of that pipe and type (table peaks), the time in this trace",
        inputs=_INPUTS,
        source=_ROOFLINE,
        pitfalls="FLOPs of tensor cores are never measured against the FP32 peak, nor the other "
        "way round. Where nothing tells the type of tensor operands, low and high are of the "
        "peaks that may be meant. A value above 1 is not shown; diagnosis says what may be wrong.",
        elsewhere="ncu and nvprof call pipe activity utilization: cycles in which a pipe is busy.",
    ),
    Explanation(
        key="device_utilization.fp32",
        question="How much of its FP32 peak does a GPU use while it is active?",
        formula="Σ FP32 FLOPs / (FP32 peak · active time)",
        unit="ratio",
        denominator="time with at least one kernel or graph on the GPU",
        inputs=_INPUTS,
        source=_TBD,
        pitfalls="Missing where less than 90 % of the active time is of kernels that were counted; "
        "fp32_low takes the others as doing nothing, fp32_high as working at the peak of the SMs "
        "that their grids reach. TBD itself published pipe activity, in steps of ten points.",
    ),
    Explanation(
        key="device_utilization.ideal_compute_ratio",
        question="How much of its active time would the GPU need at the peaks of all pipes?",
        formula="Σ over pipes of FLOPs / peak, over the active time",
        unit="ratio",
        denominator="time with at least one kernel or graph on the GPU",
        inputs=_INPUTS,
        source=OWN,
        pitfalls="Equals fp32 where nothing else computes. Missing where a pipe was not counted.",
    ),
    Explanation(
        key="bounds.bound",
        question="What bounds this kernel?",
        formula="communication by its name; else the pipe or memory level used to 60 % or more, "
        "whichever is larger by 0.10, else balanced; both known and below 60 %: latency; else "
        "cannot_tell",
        unit="text",
        inputs=_INPUTS,
        source=f"{OWN}; ncu's speed of light uses 60 % as well",
        pitfalls="Given only where it holds for all values between the bounds. roofline_side says "
        "on which side of the ridge the intensity lies, which is not what bounds the kernel.",
    ),
    Explanation(
        key="bounds.roof_share",
        question="How close to the roof is this kernel?",
        formula="FLOP/s / min(peak, intensity · bandwidth) = max(compute, DRAM utilization)",
        unit="ratio",
        denominator="what the roofline of DRAM allows at the kernel's intensity",
        inputs=_INPUTS,
        source=_ROOFLINE,
    ),
    Explanation(
        key="bounds.launch_limited",
        question="How many of the executions did the GPU wait for longer than they took?",
        formula="executions whose pause before, of cause host or launch latency, is longer than "
        "they are / executions",
        unit="ratio",
        denominator="executions that start in the window",
        inputs=("kernels.start_ns", "kernels.end_ns", "api_calls.start_ns", "api_calls.end_ns"),
        source=OWN,
        pitfalls="Making such a kernel faster makes the GPU wait longer.",
    ),
    Explanation(
        key="precision.saving_bound_ns",
        question="How much could matrix kernels on CUDA cores save on tensor cores, at most?",
        formula="total_ns − (counted FLOPs / peak of tensor_path)",
        unit="ns",
        inputs=_INPUTS,
        source=OWN,
        pitfalls="An upper bound: no kernel reaches the peak, and results lose precision.",
    ),
)
