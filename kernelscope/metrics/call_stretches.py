"""Stretches of launching calls that nothing tells apart: what is known per stretch, not per call.

Ranges hold calls in runs, and most runs are long: between two places where any range begins or
ends, what is true of one call is true of all. A figure is summed once per stretch, and everything
that asks of ranges then works on as many stretches as there are ends of runs, not on as many
numbers as there are launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.launching import Launching
from kernelscope.metrics.runs import Runs

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretches:
    """All m calls cut into k stretches, each of one thread, in order.

    Attributes
    ----------
    number : ndarray of int32, shape (m + 1,)
        The stretch of each call; k behind the last.
    first : ndarray of int64, shape (k + 1,)
        The first call of each; m behind the last.
    """

    number: Int32s
    first: Int64s

    def __len__(self) -> int:
        return len(self.first) - 1

    def lengths(self) -> Int64s:
        """Return how many calls are in each stretch."""
        return np.diff(self.first)

    def of_calls(self, call: Int32s) -> Int32s:
        """Return the stretch of each of some calls; −1 where the call is −1."""
        if not len(call) or int(call.min()) >= 0:
            return self.number[call]
        return np.where(call < 0, np.int32(-1), self.number[call]).astype(np.int32, copy=False)

    def of_runs(self, runs: Runs) -> Runs:
        """Return runs of calls as runs of stretches; both must begin and end alike."""
        return Runs(
            runs.owner,
            self.number[runs.first].astype(np.int64),
            self.number[runs.last].astype(np.int64),
        )

    def at(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what each stretch has in `values`, which are the same for all calls of one."""
        return values[self.first[:-1]]


def stretches(
    calls: Launching, runs: Sequence[Runs], told_apart: Sequence[npt.NDArray[Any]] = ()
) -> Stretches:
    """Cut calls wherever a thread or a run begins or ends, or what tells them apart changes.

    Parameters
    ----------
    calls : Launching
        The calls.
    runs : sequence of Runs
        Runs of these calls.
    told_apart : sequence of ndarray, shape (m,)
        Properties that a stretch must have as a whole.
    """
    count = len(calls)
    new = np.zeros(count + 1, dtype=np.bool_)
    new[[0, count, *(part.start for part in calls.threads.values())]] = True
    for each in runs:
        new[each.first] = True
        new[each.last] = True
    for values in told_apart:
        new[1:-1] |= values[1:] != values[:-1]
    first = np.flatnonzero(new)
    number = np.cumsum(new, dtype=np.int32)
    number -= np.int32(1)
    return Stretches(number, first)
