"""What sampled GPU counters show, and what they do not."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, Explanation

_INPUTS = ("gpu_samples.time_ns", "gpu_samples.metric", "gpu_samples.value")
_TABLES = ("by_iteration", "by_range", "by_kernel")
_SOURCE = f"{OWN}; what each counter is: Nsight Systems User Guide, GPU Metrics"

_MOMENTS = """WITH moments AS (
  SELECT source, time_ns, lag(time_ns) OVER (PARTITION BY source ORDER BY time_ns) AS before_ns
  FROM (SELECT DISTINCT source, time_ns FROM gpu_samples
    WHERE problem IS NULL OR problem NOT IN ('no_time', 'time_outside'))),
lengths AS (
  SELECT source, time_ns - before_ns AS length,
    row_number() OVER (PARTITION BY source ORDER BY time_ns - before_ns) AS place,
    count(*) OVER (PARTITION BY source) AS n
  FROM moments WHERE before_ns IS NOT NULL),
periods AS (
  SELECT source, avg(length) AS period FROM lengths
  WHERE place IN ((n + 1) / 2, n / 2 + 1) GROUP BY source),
parts AS (
  SELECT m.source, m.time_ns, m.time_ns - m.before_ns AS length,
    min(m.time_ns, w.end_ns) - max(m.before_ns, w.start_ns) AS part
  FROM moments AS m JOIN periods AS p USING (source), window AS w
  WHERE m.time_ns - m.before_ns <= 2 * p.period
    AND m.time_ns > w.start_ns AND m.before_ns < w.end_ns)
SELECT s.gpu_id, s.metric,
  {} AS value
FROM gpu_samples AS s JOIN parts AS p USING (source, time_ns)
WHERE s.problem IS NULL GROUP BY s.gpu_id, s.metric"""

_MEAN = r"""CASE WHEN count(*) < 5 THEN NULL
    WHEN s.metric LIKE '%[Throughput \%]' ESCAPE '\'
      THEN 0.01 * sum(s.value * p.part) / sum(p.part)
    WHEN s.metric LIKE '%[MHz]' THEN 1.0 * sum(s.value * p.part) / sum(p.part)
    WHEN s.metric LIKE '%[Requests]' OR s.metric LIKE '%[Bytes]'
      THEN 1e9 * sum(1.0 * s.value * p.part / p.length) / sum(p.part) END"""


def _also(column: str) -> tuple[str, ...]:
    return tuple(f"gpu_metrics_{table}.{column}" for table in _TABLES)


ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="gpu_metrics.value",
        question="What did a counter of the GPU show, on average?",
        formula="Σ value · time / Σ time over the samples that count: in a window or iteration "
        "all, with the part inside; of a range path those of which ≥ 95 % lie in its projection "
        "on that GPU; of a kernel name those of which ≥ 95 % are covered by it while nothing else "
        "runs. A sample speaks of the time since the one before, at most 2 sampling periods",
        unit="ratio of the counter's own peak, Hz, 1/s or bytes/s: see unit",
        denominator="the time of the samples that count (covered_ns), not the window",
        inputs=_INPUTS,
        source=_SOURCE,
        pitfalls="Null under 5 samples. SMs Active is residency: a warp was there, working or "
        "waiting; what computes is told by SM Issue, Tensor Active and the pipes. Shares are "
        "recorded as whole percentages, and clocks in Hz though the name says MHz. A GPU's "
        "counters see every program on it; links of NVLink that are down may read as full.",
        elsewhere="nsys prints no table of them; recipes average the samples whose times lie in a "
        "range, whatever else ran.",
        sql={"gpu_metrics.value": _MOMENTS.format(_MEAN)},
        also=_also("value"),
    ),
    Explanation(
        key="gpu_metrics.samples",
        question="How many samples does the mean rest on?",
        formula="samples that count (see gpu_metrics.value)",
        unit="count",
        inputs=_INPUTS,
        pitfalls="One that straddles two iterations counts in both, with its part in each.",
        sql={"gpu_metrics.samples": _MOMENTS.format("count(*)")},
        also=_also("samples"),
    ),
    Explanation(
        key="gpu_metrics.covered_ns",
        question="Of how much time do the samples speak?",
        formula="Σ over the samples that count of their time inside",
        inputs=_INPUTS,
        pitfalls="The first sample, and one after a gap of more than 2 sampling periods, speak of "
        "nothing.",
        sql={"gpu_metrics.covered_ns": _MOMENTS.format("sum(p.part)")},
        also=_also("covered_ns"),
    ),
    Explanation(
        key="gpu_metrics.coverage_ratio",
        question="How much of the time do the samples speak of?",
        formula="covered_ns / the window; the iteration's period; the union of the path's "
        "projections on that GPU; the kernel's total time there",
        unit="ratio",
        denominator="the time that the row is about",
        inputs=(*_INPUTS, "kernels.start_ns", "kernels.end_ns"),
        pitfalls="Small for kernels shorter than the sampling period: the mean is then of those "
        "of their executions that ran back to back, and says nothing of the others.",
        also=_also("coverage_ratio"),
    ),
    Explanation(
        key="gpu_metrics.bytes_per_s",
        question="How fast was device memory read or written?",
        formula="value × peak bandwidth of the GPU's memory",
        unit="bytes/s",
        denominator="the time of the samples that count",
        inputs=(*_INPUTS, "devices.memory_bytes_per_s"),
        pitfalls="The peak is the one that the capture states of the GPU; null where it states "
        "none, and for NVLink and PCIe, whose peaks no capture states.",
        numbers=None,
        also=_also("bytes_per_s"),
    ),
)
