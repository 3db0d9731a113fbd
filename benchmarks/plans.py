"""The runs whose exports are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernelscope import oracle
from kernelscope.oracle import Plan
from kernelscope.oracle.plan import MISSING, Column, Events
from kernelscope.trace import Categorical

OPERATORS = 60
"""How many names the ranges around single launches have."""


def plain(kernels: int) -> Plan:
    """Return :func:`kernelscope.oracle.large` without NVTX: what a bare ``nsys profile`` holds."""
    plan = oracle.large(kernels)
    ranges = plan.ranges
    none = {
        name: Categorical(column.codes[:0], ()) if isinstance(column, Categorical) else column[:0]
        for name, column in ranges.columns.items()
    }
    return replace(plan, ranges=Events(ranges.kind, none))


def operators(kernels: int) -> Plan:
    """Return :func:`kernelscope.oracle.large`, and a range around every launch.

    Ranges are then four deep (iteration, phase, layer, operator) in the forward phase, and as
    many as kernels: what PyTorch's ``emit_nvtx`` records.
    """
    plan = oracle.large(kernels)
    return replace(plan, ranges=_joined(plan.ranges, _around_launches(plan)))


PLANS: Mapping[str, Callable[[int], Plan]] = {
    "plain": plain,
    "training": oracle.large,
    "operators": operators,
}
"""Kind of export → the plan of a number of kernels."""


def _around_launches(plan: Plan) -> Events:
    """Return a range around each kernel launch, 100 ns wider than the call on both sides."""
    calls = plan.calls
    launches = calls["name"] == calls.texts("name").categories.index("cudaLaunchKernel")
    rows = int(launches.sum())
    # Where the ranges of the plan have one value, so do these: domain and style.
    columns: dict[str, Column] = {
        name: Categorical(np.zeros(rows, np.int32), column.categories)
        if isinstance(column, Categorical)
        else np.broadcast_to(np.int64(MISSING), (rows,))
        for name, column in plan.ranges.columns.items()
    }
    columns |= {
        "start": calls["start"][launches] - 100,
        "end": calls["end"][launches] + 100,
        "name": Categorical(
            (np.arange(rows) * 7 % OPERATORS).astype(np.int32),
            tuple(f"aten::operator_{n}" for n in range(OPERATORS)),
        ),
        "process": calls["process"][launches],
        "thread": calls["thread"][launches],
        "registered": np.broadcast_to(np.int64(1), (rows,)),
    }
    return Events(plan.ranges.kind, columns)


def _joined(first: Events, second: Events) -> Events:
    """Return the events of both in the order of their starts, the first's before the second's."""
    order = np.argsort(np.concatenate((first["start"], second["start"])), kind="stable")
    columns: dict[str, Column] = {}
    for name, column in first.columns.items():
        if isinstance(column, Categorical):
            columns[name] = _recoded(column, second.texts(name), order)
        else:
            columns[name] = np.concatenate((column, second[name]))[order]
    return Events(first.kind, columns)


def _recoded(first: Categorical, second: Categorical, order: npt.NDArray[np.int64]) -> Categorical:
    """Return two text columns as one, in another order; each text is there once."""
    texts = tuple(dict.fromkeys((*first.categories, *second.categories)))
    place = np.array([texts.index(text) for text in second.categories], dtype=np.int32)
    codes = np.concatenate((first.codes, place[second.codes]))
    return Categorical(codes[order].astype(np.int32), texts)
