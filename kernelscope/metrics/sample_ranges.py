"""During which samples was the work of a range path on a GPU?

A sample counts for a path if at least 95 % of it lies in the path's projection on that GPU: the
union, over the ranges of the path, of the time from the first start to the last end of what they
launched there. Unlike a kernel name a range need not be alone: what else ran is in the figure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.attribution import Attribution
from kernelscope.metrics.call_work import NEVER
from kernelscope.metrics.device_identity import Identity
from kernelscope.metrics.intervals import Int64s, Pieces, sums_by, union_by_group
from kernelscope.metrics.range_calls import RangeCalls, calls_of_ranges
from kernelscope.metrics.range_paths import Paths, range_paths
from kernelscope.metrics.range_work import projection
from kernelscope.metrics.sample_kernels import devices_of
from kernelscope.metrics.window import Window


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangesSeen:
    """The ranges whose work is looked for in samples.

    Attributes
    ----------
    attribution : Attribution
        Which calls belong to them.
    paths : Paths
        Their paths, digits folded.
    calls : RangeCalls
        The calls of each.
    """

    attribution: Attribution
    paths: Paths
    calls: RangeCalls

    @classmethod
    def of(cls, attribution: Attribution) -> RangesSeen:
        """Return the ranges of an attribution by folded path, with the calls of each.

        ``step 1 > forward`` alone holds a sample or two, and no mean; ``step # > forward`` does.
        """
        around = attribution.enclosed
        paths = range_paths(around.trace.ranges, around.nesting, folded=True)
        return cls(attribution, paths, calls_of_ranges(attribution))


def projected(
    seen: RangesSeen, identity: Identity, device: int, window: Window
) -> tuple[Pieces, npt.NDArray[np.intp], Int64s]:
    """When was the work of each path on a device, inside the window?

    Returns
    -------
    Pieces
        Those of one path disjoint.
    ndarray of int, shape (k,)
        The path of each.
    ndarray of int64, shape (paths,)
        How long each path has any.
    """
    first, last = _work_of_calls(seen.attribution, identity, device, window)
    found = projection(seen.calls, first, last, len(seen.attribution.enclosed.trace.ranges))
    some = np.flatnonzero(found.exists)
    paths = len(seen.paths)
    start, end, bounds = union_by_group(
        found.first[some], found.last[some], seen.paths.of_range[some], paths
    )
    owner = np.repeat(np.arange(paths), np.diff(bounds))
    return (start, end), owner, sums_by(owner, end - start, paths)


def _work_of_calls(
    attribution: Attribution, identity: Identity, device: int, window: Window
) -> tuple[Int64s, Int64s]:
    """Return the earliest start and the latest end of what each call put on a device."""
    trace, count = attribution.enclosed.trace, len(attribution.enclosed.calls)
    first, last = np.full(count, NEVER), np.full(count, -NEVER)
    for work, call in (
        (trace.kernels, attribution.kernels.call),
        (trace.copies, attribution.copies.call),
        (trace.graphs, attribution.graphs.call),
    ):
        if not len(work):
            continue
        start = np.maximum(work["start_ns"], window.start_ns)
        end = np.minimum(work["end_ns"], window.end_ns)
        rows = np.flatnonzero((devices_of(work, identity) == device) & (call >= 0) & (start < end))
        np.minimum.at(first, call[rows], start[rows])
        np.maximum.at(last, call[rows], end[rows])
    return first, last
