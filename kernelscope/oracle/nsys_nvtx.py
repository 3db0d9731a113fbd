"""NVTX ranges and their domains, as an export holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.oracle import nsys_enums
from kernelscope.oracle.nsys_columns import Content, Source, enum, records, take, thread_ids
from kernelscope.oracle.nsys_ids import Strings, global_id, global_ids
from kernelscope.oracle.plan import MISSING, Events, Plan
from kernelscope.trace import Categorical


def contents(plan: Plan, generation: str, strings: Strings) -> tuple[Content, ...]:
    """Return the rows that name the domains, and the ranges."""
    ranges = plan.ranges
    domains = domain_ids(ranges)
    created = [
        {
            "start": start - 1_000,
            "eventType": nsys_enums.DOMAIN_TYPE,
            "text": name,
            "globalTid": global_id(process, thread),
            "domainId": number,
        }
        for (process, name), (number, start, thread) in domains.items()
        if name
    ]
    # 2022 and later write the end of the recording where a range was never closed.
    never = MISSING if generation == "2020.5" else plan.end
    registered, texts = ranges["registered"], ranges.texts("name")
    inline = np.array([*texts.categories, ""], dtype=object)
    by_id = np.zeros(len(texts.categories) + 1, dtype=np.int64)
    for code in np.unique(texts.codes[registered != 0]).tolist():
        by_id[code] = strings.id(texts.categories[code])
    nothing = np.array(None, dtype=object)
    codes, end, style = texts.codes, ranges["end"], ranges.texts("style")
    content: dict[str, Source] = {
        "start": take(ranges["start"]),
        "end": lambda part: np.where(end[part] == MISSING, never, end[part]),
        "eventType": enum(style, nsys_enums.RANGE_TYPES),
        "rangeId": lambda part: np.where(
            _is(style, "start_end", part), np.arange(part.start + 1, part.stop + 1), MISSING
        ),
        "category": take(ranges["category"]),
        "color": take(ranges["color"]),
        "text": lambda part: np.where(registered[part] != 0, nothing, inline[codes[part]]),
        "globalTid": thread_ids(ranges),
        "endGlobalTid": _end_threads(ranges),
        "textId": lambda part: np.where(registered[part] != 0, by_id[codes[part]], MISSING),
        "domainId": _domain_column(ranges, domains),
        "int64Value": take(ranges["payload"]),
    }
    return (records(created), Content(len(ranges), content))


def domain_ids(ranges: Events) -> dict[tuple[int, str], tuple[int, int, int]]:
    """Number the NVTX domains of every process in the order of their first range.

    Returns
    -------
    dict
        (process, domain) → (number, start of its first range, that range's thread); the default
        domain is ``""`` and has number 0.
    """
    domain = ranges.texts("domain")
    pairs = (ranges["process"].astype(np.int64) << 16) | domain.codes
    _, first = np.unique(pairs, return_index=True)
    found: dict[tuple[int, str], tuple[int, int, int]] = {}
    counts: dict[int, int] = {}
    for row in sorted(first.tolist()):
        process, name = int(ranges["process"][row]), domain.categories[domain.codes[row]]
        if name:
            counts[process] = counts.get(process, 0) + 1
        number = counts[process] if name else 0
        found[process, name] = (number, int(ranges["start"][row]), int(ranges["thread"][row]))
    return found


def _domain_column(
    ranges: Events, domains: Mapping[tuple[int, str], tuple[int, int, int]]
) -> Source:
    names = ranges.texts("domain")
    keys = sorted(
        ((process << 16) | names.categories.index(name), number)
        for (process, name), (number, _, _) in domains.items()
    )
    packed = np.array([key for key, _ in keys], dtype=np.int64)
    numbers = np.array([number for _, number in keys], dtype=np.int64)
    processes = ranges["process"]
    return lambda part: numbers[
        np.searchsorted(packed, (processes[part].astype(np.int64) << 16) | names.codes[part])
    ]


def _is(column: Categorical, text: str, part: slice) -> npt.NDArray[Any]:
    code = column.categories.index(text) if text in column.categories else -2
    return np.asarray(column.codes[part] == code)


def _end_threads(ranges: Events) -> Source:
    processes, threads = ranges["process"], ranges["end_thread"]
    return lambda part: np.where(
        threads[part] == MISSING, MISSING, global_ids(processes[part], threads[part])
    )
