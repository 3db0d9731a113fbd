"""How findings say their numbers: per iteration where there are iterations, else of the window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelscope import units
from kernelscope.metrics.grouping import group
from kernelscope.metrics.intervals import Pieces, total, unite
from kernelscope.metrics.savable import Seen, bound, within_basis

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


DELAYED = "as long as that delays the host's next launch"
"""How time of the host comes to be time of a device that stands still."""


def most(pieces: Sequence[Pieces], seen: Seen) -> str:
    """Say how much of an iteration, or of the window, pieces take on the device that is named."""
    longest, _ = bound(pieces, seen)
    share = units.ratio(min(1.0, longest / seen.basis.mean_ns))
    if seen.basis.name == "window":
        return f"{units.duration(longest)} ({share} of the window)"
    return f"{units.duration(longest)} per iteration ({share} of it)"


def taking(ns: int, seen: Seen) -> str:
    """Say how much time something takes in the basis, per iteration where there are any."""
    if seen.basis.name == "window":
        return units.duration(ns)
    return f"{units.duration(ns / seen.basis.count)} per iteration"


def often(start: Int64s, noun: str, seen: Seen, nouns: str = "") -> str:
    """Say how many of some moments lie in the basis, per iteration where there are any."""
    starts, ends = seen.basis.periods
    place = np.searchsorted(starts, start, side="right") - 1
    number = int(((place >= 0) & (start < ends[np.maximum(place, 0)])).sum())
    nouns = nouns or f"{noun}s"
    each, rest = divmod(number, seen.basis.count)
    said = f"{number / seen.basis.count:,.1f} {nouns}"
    if not rest:
        said = f"{units.count(each)} {noun if each == 1 else nouns}"
    return said if seen.basis.name == "window" else f"{said} per iteration"


def host_waits(waits: Bools, seen: Seen) -> str:
    """Say for how long the host waits in some of ``seen.waits``: one thread, or several in all."""
    call, start, end = (each[waits] for each in (seen.waits.call, seen.waits.start, seen.waits.end))
    threads = threads_of(call, start, end, seen)
    return in_all(within_basis(start, end, seen.basis), threads, "wait", seen)


def in_all(ns: int, threads: int, what: str, seen: Seen) -> str:
    """Say for how long the host does something: one thread, or several in all."""
    time = taking(ns, seen)
    return f"threads {what} {time} in all" if threads > 1 else f"the host {what}s {time}"


def threads_of(call: Rows, start: Int64s, end: Int64s, seen: Seen) -> int:
    """Return how many threads made those of some calls that go on in the basis, from when to when.

    Parameters
    ----------
    call : ndarray of int, shape (n,)
        Rows of ``seen.launches.api_calls``.
    start, end : ndarray of int64, shape (n,)
        What is looked at of each.
    seen : Seen
        Everything.
    """
    first, last = seen.basis.periods[0].min(), seen.basis.periods[1].max()
    call = call[(start < last) & (end > first)]
    calls = seen.launches.api_calls
    return len(group(calls["process_id"][call], calls["thread_id"][call]).keys)


def either(one: Sequence[Pieces], other: Sequence[Pieces]) -> list[Pieces]:
    """Return, for each device, the time that lies in either."""
    return [unite(a, b) for a, b in zip(one, other, strict=True)]


def nothing(pieces: Sequence[Pieces]) -> bool:
    """Return whether no device has any time."""
    return not any(map(total, pieces))
