"""The ranges that mark training iterations, and the periods between them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_DIGITS = re.compile("[0-9]+")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IterationFamily:
    """The instances of one range name on one thread, in time order.

    Attributes
    ----------
    process_id, thread_id : int or None
        Whose ranges they are; None where not recorded.
    domain : str
        NVTX domain; empty for the default domain.
    folded_name : str
        The name with digits folded: ``step #``.
    rows : ndarray of int64, shape (m,)
        Row of each instance in ``trace.ranges``.
    starts, range_ends : ndarray of int64, shape (m,)
        When each range began and ended, in ns.
    ends : ndarray of int64, shape (m,)
        When each *period* ended: at the next start; the last ends with its range.
    twins : tuple of IterationFamily
        The same ranges of other processes, one family each: other ranks, whose launches belong
        to their own process's iterations. They have no twins themselves.
    """

    process_id: int | None
    thread_id: int | None
    domain: str
    folded_name: str
    rows: Int64s
    starts: Int64s
    range_ends: Int64s
    ends: Int64s
    twins: tuple[IterationFamily, ...] = ()

    @property
    def of_processes(self) -> tuple[IterationFamily, ...]:
        """Its own process's ranges, then those of the others, one family each."""
        return self, *self.twins


def fold(name: str) -> str:
    """Return a range's name with each run of digits folded: ``step 12`` → ``step #``."""
    return _DIGITS.sub("#", name)
