"""Samples of GPU counters as an export holds them: a row per value, or all of a moment as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np

from kernelscope.oracle.events import Sample
from kernelscope.oracle.nsys_columns import Content, records, take
from kernelscope.oracle.nsys_ids import VM
from kernelscope.oracle.plan import Plan

GENERATIONS = ("2022.4", "2025.5")
"""Those that can hold samples; ``--gpu-metrics-device`` came in 2021."""


def contents(plan: Plan, generation: str) -> dict[str, tuple[Content, ...]]:
    """Return what goes into the tables of samples; nothing in a generation that has none."""
    if generation not in GENERATIONS or not len(plan.samples):
        return {}
    kinds = [VM | gpu.id for gpu in plan.gpus]
    used = [kinds[gpu] for gpu in sorted(set(plan.samples["gpu"].tolist()))]
    return _as_json(plan, kinds, used) if generation == "2022.4" else _as_rows(plan, kinds, used)


def _as_rows(plan: Plan, kinds: list[int], used: list[int]) -> dict[str, tuple[Content, ...]]:
    metric = plan.samples.texts("metric")
    named = [
        {
            "typeId": kind,
            "sourceId": VM,
            "typeName": "GPU Metrics",
            "metricId": number,
            "metricName": name,
        }
        for kind in used
        for number, name in enumerate(metric.categories)
    ]
    values = {
        "timestamp": take(plan.samples["time"]),
        "typeId": take(np.array(kinds, dtype=np.int64)[plan.samples["gpu"]]),
        "metricId": take(metric.codes),
        "value": take(plan.samples["value"]),
    }
    return {
        "TARGET_INFO_GPU_METRICS": (records(named),),
        "GPU_METRICS": (Content(len(plan.samples), values),),
    }


def _as_json(plan: Plan, kinds: list[int], used: list[int]) -> dict[str, tuple[Content, ...]]:
    moments: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for sample in plan.samples.rows(Sample):
        bare = sample.metric.partition(" [")[0].replace("SMs Active", "SM Active")
        moments[sample.time, kinds[sample.gpu]][bare] = str(sample.value)
    fields = sorted({name for values in moments.values() for name in values})
    described: dict[str, Any] = {"Name": "GPU Metrics", "Fields": [{"Name": n} for n in fields]}
    return {
        "GENERIC_EVENT_SOURCES": (records([{"sourceId": VM, "data": '{"Name":"GPU Metrics"}'}]),),
        "GENERIC_EVENT_TYPES": (
            records(
                [{"typeId": kind, "sourceId": VM, "data": json.dumps(described)} for kind in used]
            ),
        ),
        "GENERIC_EVENTS": (
            records(
                [
                    {"rawTimestamp": time, "timestamp": time, "typeId": kind, "data": json.dumps(v)}
                    for (time, kind), v in moments.items()
                ]
            ),
        ),
    }
