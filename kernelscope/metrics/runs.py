"""Runs of launching calls: which calls belong to what, without a list of pairs.

Calls are numbered by thread and then by time, so that those that belong to a range follow one
another: two numbers say which, and a difference of running totals is the sum of any of their
figures. What belongs to a *group* of ranges is the union of its ranges' runs, laid out like
intervals of time, so that a call counts once in however many ranges of the group it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.intervals import NO_PIECES, Pieces, subtract, sums_by, union, unite

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs:
    """Calls ``first[i]`` to ``last[i] − 1`` belong to ``owner[i]``; no run is empty.

    Attributes
    ----------
    owner : ndarray of int, shape (r,)
        Row of a range, or number of a group of ranges; one may own several runs.
    first, last : ndarray of int64, shape (r,)
        Numbers of launching calls; `last` is behind the last.
    """

    owner: npt.NDArray[Any]
    first: Int64s
    last: Int64s

    def __len__(self) -> int:
        return len(self.owner)

    def lengths(self) -> Int64s:
        """Return how many calls are in each run."""
        return self.last - self.first

    def sums(self, before: Int64s, owners: int) -> Int64s:
        """Return the sum of a figure over the runs of each owner.

        Parameters
        ----------
        before : ndarray of int64, shape (m + 1,)
            The figure's :func:`running_total` over calls.
        owners : int
            How many owners there are.
        """
        return sums_by(self.owner, before[self.last] - before[self.first], owners)


NO_RUNS = Runs(np.empty(0, dtype=np.intp), *NO_PIECES)


def running_total(values: npt.NDArray[Any]) -> Int64s:
    """Return the sum of the values before each place, and behind the last: shape (n + 1,)."""
    before = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=before[1:])
    return before


def expanded(first: Int64s, last: Int64s) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return every (slice, place) of the slices ``first[i]:last[i]``, one by one."""
    length = last - first
    which = np.repeat(np.arange(len(first)), length)
    place = np.arange(len(which))
    place -= np.repeat(np.cumsum(length) - length - first, length)
    return which, place


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupCalls:
    """The calls of groups of ranges: each call once in a group; runs ascend by group, then call.

    Attributes
    ----------
    direct, inherited : Runs
        Those that lie in a range of the group; the others.
    all : Runs
        Both together.
    """

    direct: Runs
    inherited: Runs
    all: Runs


def calls_of_groups(
    direct: Runs, inherited: Sequence[Runs], code: npt.NDArray[Any], calls: int
) -> GroupCalls:
    """Which calls belong to each group of ranges?

    Parameters
    ----------
    direct, inherited : Runs
        Of ranges.
    code : ndarray of int, shape (n,)
        The group of each range.
    calls : int
        How many calls there are.
    """
    axis = calls + 1  # one more than fits, so that runs of two groups never touch
    held = _on_axis([direct], code, axis)
    given = _on_axis([runs for runs in inherited if len(runs)], code, axis)
    if not len(given[0]):
        return GroupCalls(_off_axis(held, axis), NO_RUNS, _off_axis(held, axis))
    heirs = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.bool_)
    heirs[given[0] // axis] = True
    concerned = heirs[held[0] // axis]
    given = subtract(given, (held[0][concerned], held[1][concerned]))
    both = unite(held, given)
    return GroupCalls(_off_axis(held, axis), _off_axis(given, axis), _off_axis(both, axis))


def united(runs: Runs, calls: int) -> Runs:
    """Unite the runs of each owner, so that they ascend by owner, then call."""
    offset = runs.owner.astype(np.int64) * (calls + 1)
    return _off_axis(union(runs.first + offset, runs.last + offset), calls + 1)


def _on_axis(parts: Sequence[Runs], code: npt.NDArray[Any], axis: int) -> Pieces:
    """Lay the calls of all groups out one behind the other, and unite the runs of each."""
    if not parts:
        return NO_PIECES
    offset = [code[runs.owner].astype(np.int64) * axis for runs in parts]
    starts = [runs.first + base for runs, base in zip(parts, offset, strict=True)]
    ends = [runs.last + base for runs, base in zip(parts, offset, strict=True)]
    return union(np.concatenate(starts), np.concatenate(ends))


def _off_axis(pieces: Pieces, axis: int) -> Runs:
    owner = pieces[0] // axis
    base = owner * axis
    return Runs(owner, pieces[0] - base, pieces[1] - base)
