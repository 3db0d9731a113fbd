"""Why the GPUs stood still, and what mending that can save."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, Explanation

_DEVICE = ("kernels.start_ns", "kernels.end_ns", "copies.start_ns", "copies.end_ns",
           "copies.kind", "graphs.start_ns", "graphs.end_ns")  # fmt: skip
_HOST = ("api_calls.start_ns", "api_calls.end_ns", "api_calls.name", "api_calls.thread_id",
         "api_calls.correlation_id", "kernels.correlation_id")  # fmt: skip
_EVIDENCE = ("ranges.name", "os_calls.name", "on_core.start_ns", "overheads.name",
             "syncs.event_id", "event_records.event_id")  # fmt: skip
_IDLE = "compute + communication + graph + copy + memset = 0"

_PAUSES = f"""WITH pauses AS (
  SELECT device, end_ns - start_ns AS ns FROM device_states WHERE {_IDLE}
  UNION ALL
  SELECT d."index", coalesce(min(k.start_ns) - w.start_ns, w.duration_ns)
  FROM window AS w CROSS JOIN result_devices AS d
    LEFT JOIN device_work AS k ON k.device = d."index" GROUP BY 1
  UNION ALL
  SELECT d."index", coalesce(w.end_ns - max(k.end_ns), 0)
  FROM window AS w CROSS JOIN result_devices AS d
    LEFT JOIN device_work AS k ON k.device = d."index" GROUP BY 1),
steps AS (
  SELECT device, up_to_ns, lag(up_to_ns, 1, 0) OVER (
    PARTITION BY device ORDER BY up_to_ns IS NULL, up_to_ns) AS above
  FROM result_gap_spectrum)
SELECT g.device, g.up_to_ns,
  {{}} AS value
FROM steps AS g LEFT JOIN pauses AS p ON p.device = g.device
  AND p.ns > {{}} AND (p.ns <= g.up_to_ns OR g.up_to_ns IS NULL)
GROUP BY 1, 2"""

ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="idle.total_ns",
        question="How much of the idle time has this cause?",
        formula="Σ of the idle nanoseconds whose first cause that holds is this one, in the "
        "window; a pause ends with the activity that starts first, launched by a call L: what "
        "lies before L is the host's, the rest is the launch's, the queue's or a dependency's",
        denominator="the causes of a device sum to devices.idle_ns",
        inputs=(*_DEVICE, *_HOST, *_EVIDENCE),
        pitfalls="A pause may have several causes, one after the other. What no evidence decides "
        "is unexplained. Causes and thresholds are those of the whole trace, whatever the window.",
        elsewhere="nsys stats' gpu_gaps lists the pauses above 500 ms and no cause; HTA parts idle "
        "time into host wait, kernel wait and other by the stream alone.",
        sql={
            "idle.total_ns": "SELECT device, cause, detail,\n  sum(end_ns - start_ns) AS value\n"
            "FROM result_idle_pieces\nGROUP BY 1, 2, 3"
        },
    ),
    Explanation(
        key="idle.gaps",
        question="In how many pauses does this cause occur?",
        formula="number of pauses, leading and trailing ones included, with any such time",
        unit="count",
        inputs=(*_DEVICE, *_HOST),
        pitfalls="A pause of two causes counts under both.",
        sql={
            "idle.gaps": "SELECT device, cause, detail,\n  count(DISTINCT gap) AS value\n"
            "FROM result_idle_pieces\nGROUP BY 1, 2, 3"
        },
    ),
    Explanation(
        key="idle.largest_ns",
        question="How long was the longest unbroken stretch of this cause?",
        formula="max of the stretches of it",
        inputs=(*_DEVICE, *_HOST),
        sql={
            "idle.largest_ns": "SELECT device, cause, detail,\n  max(end_ns - start_ns) AS value\n"
            "FROM result_idle_pieces\nGROUP BY 1, 2, 3"
        },
    ),
    Explanation(
        key="idle_by_iteration.total_ns",
        question="How much of the iteration's idle time has this cause?",
        formula="Σ of the idle nanoseconds of this cause within the iteration's period",
        denominator="the causes of an iteration and device sum to its idle time in the period",
        inputs=(*_DEVICE, *_HOST),
        pitfalls="Of the whole period, also where the window cuts it.",
    ),
    Explanation(
        key="gap_spectrum.total_ns",
        question="How much idle time lies in pauses of this length?",
        formula="Σ length of the pauses longer than the row before, up to up_to_ns",
        denominator="the rows of a device sum to devices.idle_ns",
        inputs=_DEVICE,
        pitfalls="A million pauses of 2 µs matter as much as one of two seconds. The time before "
        "the first and after the last activity are pauses, too (edge_ns); a pause that the window "
        "cuts is one of what is left.",
        elsewhere="nsys stats' gpu_gaps lists those above 500 ms only, per process.",
        numbers=None,
        sql={"gap_spectrum.total_ns": _PAUSES.format("coalesce(sum(p.ns), 0)", "g.above")},
    ),
    Explanation(
        key="gap_spectrum.gaps",
        question="How many pauses are of this length?",
        formula="number of pauses longer than the row before, up to up_to_ns",
        unit="count",
        inputs=_DEVICE,
        sql={"gap_spectrum.gaps": _PAUSES.format("count(p.ns)", "g.above")},
    ),
    Explanation(
        key="gap_spectrum.cumulative_ns",
        question="How much idle time lies in pauses up to this length?",
        formula="Σ length of the pauses ≤ up_to_ns",
        denominator="devices.idle_ns, which the last row reaches",
        inputs=_DEVICE,
        sql={"gap_spectrum.cumulative_ns": _PAUSES.format("coalesce(sum(p.ns), 0)", "0")},
    ),
    Explanation(
        key="findings.saving_bound_ns",
        question="How much can mending it save of each iteration, at the most?",
        formula="time of the device that goes if the cause goes, inside the iterations after "
        "warm-up, / their number; of the window where there are none; of several devices the most. "
        "Host time that is spared makes every later launch of the process earlier, as far as "
        "pauses are left that wait for a launch: sₙ = min(sₙ₋₁ + pause n, spent in the iterations "
        "before its end). The pauses before a device's first kernel take their part of sₙ and are "
        "left out: the start-up is saved by no mending behind it. Kernels and copies count with "
        "the time that they run, copies and communication with what no other kernel hides; slow "
        "iterations with what they take beyond the median",
        denominator="the mean iteration after warm-up, or the window (saving_share)",
        inputs=(*_DEVICE, *_HOST),
        source=f"{OWN}: below 2 % of the iteration nothing is a finding",
        pitfalls="A bound, not a forecast: something else may take its place. Bounds of several "
        "findings overlap, and must not be added up. Missing for the profiler's own time, which "
        "no run without it has.",
    ),
    Explanation(
        key="findings.saving_share",
        question="Which share of an iteration is that?",
        formula="saving_bound_ns / mean step time after warm-up, or / window",
        unit="ratio",
        denominator="the mean step after warm-up, outliers included, inside the window",
        inputs=_DEVICE,
        pitfalls="Of the mean, which slow iterations pull up; the median step is "
        "iterations.steady.median_ns.",
    ),
)  # fmt: skip
