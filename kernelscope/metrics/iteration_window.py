"""The window of some iterations, or of some NVTX ranges."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from kernelscope.errors import NotRecordedError, SelectionError, nearest
from kernelscope.metrics.find_iterations import matching
from kernelscope.metrics.iteration_family import IterationFamily, fold
from kernelscope.metrics.launch_times import ids
from kernelscope.metrics.mark_iterations import Marked
from kernelscope.metrics.range_names import occurring
from kernelscope.metrics.window import Window
from kernelscope.trace import Table, Trace

_SLICE = re.compile(r"(\d*):(\d*)")
_INSTANCE = re.compile(r"(.+)\[(\d+)\]")


def window_of_iterations(marked: Marked, wanted: str) -> Window:
    """Return the window of the steady iterations, of one, or of several in a row.

    Parameters
    ----------
    marked : Marked
        The iterations of the trace.
    wanted : str
        ``steady``; the number of one iteration, from 0, ``12``; or a slice, ``10:20``, which
        holds the iterations from 10 up to, but not including, 20 (``10:`` and ``:20`` leave an
        end open, and what reaches past the last one ends there, as in Python).

    Returns
    -------
    Window
        One stretch of time, from the first start to the last end: outliers between steady
        iterations lie in it, and `chosen_by` says how many.

    Raises
    ------
    NotRecordedError
        If the trace has no iterations; the hint says why.
    SelectionError
        If there are no such iterations.
    """
    family = marked.family
    if family is None:
        raise NotRecordedError("The trace has no iterations.", " ".join(marked.notes))
    name, count = family.folded_name, len(family.starts)
    if wanted == "steady":
        return _steady(marked, family)
    first, behind = _numbers(wanted, count)
    if first >= behind or behind > count:
        raise SelectionError(
            f"There are no iterations {wanted!r} of {name!r}.",
            f"They are numbered from 0 to {count - 1}; 10:20 holds 10 up to, not including, 20.",
        )
    what = f"iteration {first}" if behind == first + 1 else f"iterations {first} to {behind - 1}"
    chosen_by = f"{what} of {count}, {name!r}"
    return Window(int(family.starts[first]), int(family.ends[behind - 1]), chosen_by)


def _steady(marked: Marked, family: IterationFamily) -> Window:
    steady = marked.where("steady")
    count = len(family.starts)
    if not len(steady):
        raise SelectionError(
            f"None of the {count} iterations of {family.folded_name!r} is known to be steady.",
            "Choose iterations by number, for example 0:10.",
        )
    first, last = int(steady[0]), int(steady[-1])
    others = last - first + 1 - len(steady)
    inside = f", {others} outliers among them" if others else ""
    chosen_by = f"steady iterations {first} to {last} of {count}, {family.folded_name!r}{inside}"
    return Window(int(family.starts[first]), int(family.ends[last]), chosen_by)


def _numbers(wanted: str, count: int) -> tuple[int, int]:
    if wanted.isdecimal():
        return int(wanted), int(wanted) + 1
    found = _SLICE.fullmatch(wanted)
    if found is None:
        raise SelectionError(
            f"{wanted!r} does not say which iterations.",
            "Say steady, a number such as 12, or a slice such as 10:20.",
        )
    return int(found[1] or 0), min(int(found[2] or count), count)


def window_of_range(trace: Trace, wanted: str) -> Window:
    """Return the window from the first start to the last end of the NVTX ranges of a name.

    Parameters
    ----------
    trace : Trace
        The trace.
    wanted : str
        A name, exactly, as a glob, or with digits folded (``forward``, ``step *``); one instance
        of it by number, from 0 in order of start, ``forward[3]``; or a path of names, each
        inside the one before on its thread: ``step 12/forward``.

    Raises
    ------
    NotRecordedError
        If the trace holds no NVTX ranges.
    SelectionError
        If there is no such range, with the nearest names.
    """
    rows = _rows_of(trace, wanted)
    ranges = trace.ranges
    start, end = int(ranges["start_ns"][rows].min()), int(ranges["end_ns"][rows].max())
    if start == end:
        raise SelectionError(f"The range {wanted!r} has no duration.", "Name a longer one.")
    many = f", first start to last end of {len(rows)} instances" if len(rows) > 1 else ""
    return Window(start, end, f"range {wanted!r}{many}")


def _rows_of(trace: Trace, wanted: str) -> npt.NDArray[np.intp]:
    """Return the ranges called `wanted`, in order of start."""
    instance = _INSTANCE.fullmatch(wanted)
    # An index comes before a glob, in which [3] would be a class of characters; a name that
    # really ends so comes before both.
    if instance is None or _is_a_name(trace, wanted):
        try:
            return _in_order(trace.ranges, matching(trace, wanted).rows)
        except SelectionError:
            if "/" not in wanted:
                raise
            return _inside(trace, wanted)
    rows = _rows_of(trace, instance[1])
    number = int(instance[2])
    if number >= len(rows):
        raise SelectionError(
            f"There is no instance {number} of the range {instance[1]!r}.",
            f"It has {len(rows)}, numbered from 0.",
        )
    return rows[number : number + 1]


def _is_a_name(trace: Trace, wanted: str) -> bool:
    """Return whether a range is called `wanted`, letter by letter or with digits folded."""
    names = trace.ranges.categories("name")
    return any(
        wanted in (names[code], fold(names[code]))
        for code in np.flatnonzero(occurring(trace.ranges)).tolist()
    )


def _inside(trace: Trace, path: str) -> npt.NDArray[np.intp]:
    """Return the ranges of the last name of a path that lie inside the names before it."""
    outer_path, _, name = path.rpartition("/")
    ranges = trace.ranges
    outer, inner = _rows_of(trace, outer_path), _rows_of(trace, name)
    kept = np.zeros(len(inner), dtype=np.bool_)
    owners = _threads(ranges, outer)
    for owner in {tuple(each) for each in owners.tolist()}:
        around = outer[(owners == owner).all(axis=1)]
        mine = (_threads(ranges, inner) == owner).all(axis=1)
        kept |= mine & _held(ranges, inner, around)
    if not kept.any():
        names = ranges.categories("name")
        known = {fold(names[code]) for code in np.flatnonzero(occurring(ranges)).tolist()}
        raise SelectionError(
            f"No range {name!r} lies inside {outer_path!r} on its thread.", nearest(name, known)
        )
    return inner[kept]


def _held(
    ranges: Table, inner: npt.NDArray[np.intp], outer: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Return which of `inner` lie inside one of `outer`; both in order of start."""
    starts = ranges["start_ns"][outer].astype(np.int64)
    reach = np.maximum.accumulate(ranges["end_ns"][outer].astype(np.int64))
    place = np.searchsorted(starts, ranges["start_ns"][inner], side="right") - 1
    return np.asarray((place >= 0) & (ranges["end_ns"][inner] <= reach[np.maximum(place, 0)]))


def _threads(ranges: Table, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    return np.stack([ids(ranges[name][rows]) for name in ("process_id", "thread_id")], axis=1)


def _in_order(ranges: Table, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return rows[np.argsort(ranges["start_ns"][rows], kind="stable")]
