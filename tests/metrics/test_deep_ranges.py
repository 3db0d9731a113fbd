"""Ranges that are never closed nest without end: time and memory must not grow with the square."""

from __future__ import annotations

from kernelscope.metrics.range_paths import DEEPEST, SEPARATOR
from kernelscope.metrics.ranges import ranges
from tests import build


def test_a_deep_path_keeps_its_inner_names() -> None:
    depth = 200
    rows = [
        {"start_ns": place, "end_ns": 1000, "process_id": 1, "thread_id": 1, "domain": "",
         "style": "push_pop", "name": f"step {place}", "closed": False}
        for place in range(depth)
    ]  # fmt: skip
    trace = build.trace(ranges=build.table(build.trace().ranges.schema, rows))
    paths = {row["name"]: row["path"].split(SEPARATOR) for row in ranges(trace).records()}
    assert paths["step 0"] == ["step 0"]
    assert paths[f"step {DEEPEST - 1}"] == [f"step {i}" for i in range(DEEPEST)]
    last = paths[f"step {depth - 1}"]
    assert last[0] == "…"
    assert last[1:] == [f"step {i}" for i in range(depth - DEEPEST, depth)]
