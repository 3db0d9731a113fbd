"""Small traces with ranges, calls and kernels, for tests that know the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelscope import schema
from kernelscope.metrics.iteration_family import IterationFamily, fold
from kernelscope.trace import Table, Trace
from tests import build


def pushed(*rows: tuple[int, int, str], **common: Any) -> Table:
    """Push/pop ranges ``(start, end, name)`` of process 1, thread 1, in the default domain."""
    base = {"process_id": 1, "thread_id": 1, "domain": "", "style": "push_pop", "closed": True}
    return build.table(
        schema.RANGES,
        [
            base | common | {"start_ns": start, "end_ns": end, "name": name}
            for start, end, name in rows
        ],
    )


def launches(*rows: tuple[int, int], first_id: int = 1, **common: Any) -> Table:
    """Launch calls ``(start, end)`` of process 1, thread 1, with ids from `first_id` on."""
    calls = [
        build.api_calls(row, correlation_id=first_id + i, **common) for i, row in enumerate(rows)
    ]
    return build.joined(*calls)


def kernels(*rows: tuple[int, int, int], **common: Any) -> Table:
    """Kernels ``(start, end, correlation id)`` of process 1."""
    return build.joined(
        *(
            build.kernels((start, end), correlation_id=identity, **common)
            for start, end, identity in rows
        )
    )


def family_of(trace: Trace, rows: Sequence[int]) -> IterationFamily:
    """Return the iterations that some rows of ``trace.ranges`` mark."""
    ranges, chosen = trace.ranges, np.array(rows, dtype=np.int64)
    start, end = ranges["start_ns"][chosen], ranges["end_ns"][chosen]
    return IterationFamily(
        process_id=int(ranges["process_id"][chosen[0]]),
        thread_id=int(ranges["thread_id"][chosen[0]]),
        domain=str(ranges.texts("domain")[rows[0]]),
        folded_name=fold(str(ranges.texts("name")[rows[0]])),
        rows=chosen,
        starts=start.astype(np.int64),
        range_ends=end.astype(np.int64),
        ends=np.append(start[1:], end[-1:]).astype(np.int64),
    )


def named(trace: Trace, folded_name: str) -> IterationFamily:
    """Return the iterations of one folded name in the default domain."""
    ranges = trace.ranges
    rows = [
        row
        for row, (name, domain) in enumerate(
            zip(ranges.texts("name"), ranges.texts("domain"), strict=True)
        )
        if not domain and fold(name or "") == folded_name
    ]
    return family_of(trace, rows)
