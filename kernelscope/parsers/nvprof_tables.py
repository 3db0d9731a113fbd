"""What the databases of nvprof only number: names of CUDA calls, and of the hardware's metrics.

The tables lie in ``parsers/data``, each with its origin. Ids of calls are only ever appended, so
that one table serves every version; ids of metrics are those of a chip.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from kernelscope.parsers.nsys import api_name

CallKind = Literal["runtime", "driver"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of one chip.

    Attributes
    ----------
    name, description : str
        As nvprof prints them.
    kind : str
        count, bytes, throughput, percent, ratio or level.
    """

    name: str
    description: str
    kind: str


def call_name(kind: CallKind, number: int) -> str:
    """Return the name of the call that CUPTI numbers `number`; the number where it has none."""
    known = _calls()[kind]
    name = known[number] if 0 < number < len(known) else None
    return f"{kind} call {number}" if name is None else api_name(name)


def metrics_of(compute_capability: tuple[int, int] | None) -> Mapping[int, Metric]:
    """Return the metrics of a GPU of a compute capability by id; none where not known."""
    return _metrics().get(compute_capability, {}) if compute_capability else {}


def kind_of_metric(name: str) -> str | None:
    """Return the kind of a metric by its name, which no two chips use for two kinds."""
    return _kinds().get(name)


@cache
def _calls() -> dict[str, list[str | None]]:
    data: dict[str, list[str | None]] = _load("cupti_calls.json")
    return data


@cache
def _kinds() -> dict[str, str]:
    kinds: dict[str, str] = _load("nvprof_metrics.json")["kinds"]
    return kinds


@cache
def _metrics() -> dict[tuple[int, int], dict[int, Metric]]:
    data = _load("nvprof_metrics.json")
    kinds = data["kinds"]
    return {
        (chip["compute_capability"][0], chip["compute_capability"][1]): {
            int(number): Metric(name, description, kinds[name])
            for number, (name, description) in chip["ids"].items()
        }
        for chip in data["chips"].values()
    }


def _load(name: str) -> Any:
    return json.loads((files("kernelscope.parsers") / "data" / name).read_text("utf-8"))
