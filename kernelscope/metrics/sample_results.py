"""What the sampled counters of GPUs show: in all, per iteration, per range and per kernel name."""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

FEWEST_SAMPLES = 5
"""Under so many samples there is no mean (METRICS, *Work*)."""

_GPU: tuple[Column, ...] = (
    integer(
        "device",
        "id",
        "the GPU's row in devices; missing where the sampled GPU is none of them, or several",
        optional=True,
    ),
    integer("gpu_id", "id", "the profiler's own number of the GPU", optional=True),
)
_FIGURES: tuple[Column, ...] = (
    text("metric", "the counter's name and unit, as the profiler spells them"),
    text(
        "role",
        "what it tells: sm_active (residency), sm_issue, tensor_active, dram_read, nvlink_rx, "
        "gpc_clock, …; missing for counters of other things",
        optional=True,
    ),
    real(
        "value",
        "see unit",
        "the mean over the samples that count, weighted by their time; of counts, the rate",
    ),
    text("unit", "ratio (of the peak), Hz, 1/s or bytes/s; missing where not known", optional=True),
    real(
        "bytes_per_s",
        "bytes/s",
        "of device memory: value × the peak bandwidth that the capture states of the GPU",
    ),
    integer("samples", "count", "samples that count"),
    integer("covered_ns", "ns", "time that they speak of"),
)


def _coverage(of: str) -> Column:
    return real("coverage_ratio", "ratio", f"covered_ns over {of}")


_MISSING_BECAUSE = text(
    "missing_because",
    "why there is no value: fewer_than_5_samples, scale_unknown",
    optional=True,
)

GPU_METRICS = TableSchema(
    "gpu_metrics",
    "What did the GPUs' own counters show in the window?",
    (*_GPU, *_FIGURES, _coverage("the window"), _MISSING_BECAUSE),
)

GPU_METRICS_BY_ITERATION = TableSchema(
    "gpu_metrics_by_iteration",
    "What did the GPUs' own counters show in each training iteration?",
    (
        integer("iteration", "id", "the iteration's number, as in iterations"),
        *_GPU,
        *_FIGURES,
        _coverage("the iteration's period"),
        _MISSING_BECAUSE,
    ),
)

GPU_METRICS_BY_RANGE = TableSchema(
    "gpu_metrics_by_range",
    "What did the GPUs' own counters show while the work of each NVTX range was on the GPU?",
    (
        Column(
            "path",
            "category",
            "path",
            "names of the ranges from the outermost inwards, digits folded: step 1 is step #",
        ),
        text("domain", "NVTX domain; empty for the default domain"),
        text("style", "push_pop or start_end"),
        integer("process_id", "id", "whose range it is", optional=True),
        *_GPU,
        *_FIGURES,
        _coverage("the union of the ranges' projections on that GPU"),
        _MISSING_BECAUSE,
    ),
)

GPU_METRICS_BY_KERNEL = TableSchema(
    "gpu_metrics_by_kernel",
    "What did the GPUs' own counters show while nothing but one kernel ran?",
    (
        text("name", "the kernel's name"),
        *_GPU,
        *_FIGURES,
        _coverage("the kernel's total time on that GPU"),
        _MISSING_BECAUSE,
    ),
)

TABLES: tuple[TableSchema, ...] = (
    GPU_METRICS,
    GPU_METRICS_BY_ITERATION,
    GPU_METRICS_BY_RANGE,
    GPU_METRICS_BY_KERNEL,
)
