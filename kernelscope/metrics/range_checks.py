"""Whether attributed and unattributed kernel time add up to all of it, domain by domain."""

from __future__ import annotations

import numpy as np

from kernelscope.metrics import results
from kernelscope.metrics.window import Window, clipped_durations
from kernelscope.trace import Categorical, Table, Trace


def range_checks(trace: Trace, window: Window, ranges: Table, unattributed: Table) -> Table:
    """Does each kernel's time belong to one range of a domain, or to none?

    Parameters
    ----------
    trace, window
        What was analyzed.
    ranges, unattributed : Table
        What :func:`kernelscope.metrics.ranges` and ``unattributed`` made of it.

    Returns
    -------
    Table
        Under ``results.CHECKS``: for each domain with push/pop ranges, Σ self kernel time over
        their paths + unattributed kernel time = all kernel time in the window.
    """
    everything = int(clipped_durations(trace.kernels, window).sum())
    domain, style = ranges.texts("domain"), ranges.texts("style")
    own = ranges["self_kernel_ns"].tolist()
    outside_domain, outside = unattributed.texts("domain"), unattributed["total_ns"].tolist()
    nested = [place for place, text in enumerate(style) if text == "push_pop"]
    domains = sorted({domain[place] or "" for place in nested})
    actual = [
        sum(own[place] for place in nested if domain[place] == name)
        + sum(time for where, time in zip(outside_domain, outside, strict=True) if where == name)
        for name in domains
    ]
    return Table.make(
        results.CHECKS,
        {
            "name": Categorical.of(
                [
                    f"NVTX domain {name or 'default'!r}: self + unattributed = kernel time"
                    for name in domains
                ]
            ),
            "expected": np.full(len(domains), everything, dtype=np.int64),
            "actual": np.array(actual, dtype=np.int64),
            "ok": np.array([each == everything for each in actual], dtype=np.bool_),
        },
    )
