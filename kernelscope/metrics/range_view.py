"""The ranges of a trace as `kernelscope ranges` shows them: one table, filtered, with its lint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from kernelscope.errors import NotRecordedError, SelectionError, nearest
from kernelscope.metrics.analysis import chosen_window
from kernelscope.metrics.attribution import attribute
from kernelscope.metrics.mark_iterations import mark_iterations
from kernelscope.metrics.nvtx_lint import nvtx_findings
from kernelscope.metrics.overlap import beside
from kernelscope.metrics.overlap_parts import overlap_by_range
from kernelscope.metrics.range_paths import SEPARATOR, names_in
from kernelscope.metrics.ranges import ranges, ranges_by_name, unattributed
from kernelscope.metrics.selection import select
from kernelscope.metrics.window import Window, clipped_durations
from kernelscope.trace import Capture, Table, Trace


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeView:
    """What :func:`range_view` found.

    Attributes
    ----------
    capture : Capture
        What the file says about itself.
    window : Window
        The interval that every figure speaks of.
    kernel_ns : int
        All kernel time in it: the denominator of shares.
    table : Table
        Under ``range_results.RANGES`` or ``RANGES_BY_NAME``, or the overlap of CPU and GPU under
        ``overlap_results.OVERLAP_BY_PATH`` or ``OVERLAP_BY_NAME``.
    unattributed : Table
        Under ``range_results.UNATTRIBUTED``.
    findings : Table
        Under ``range_results.NVTX_FINDINGS``.
    """

    capture: Capture
    window: Window
    kernel_ns: int
    table: Table
    unattributed: Table
    findings: Table


def range_view(  # noqa: PLR0913 - what the command line offers
    trace: Trace,
    *,
    between: tuple[int | None, int | None] | None = None,
    only: str | None = None,
    within: str | None = None,
    processes: Sequence[int] = (),
    devices: Sequence[int] = (),
    iteration: str | None = None,
    by_name: bool = False,
    folded: bool = True,
    strict: bool = False,
    process_ranges: bool = False,
    overlap: bool = False,
) -> RangeView:
    """Which parts of the program take the device's time?

    Parameters
    ----------
    trace : Trace
        The trace.
    between, only, within, processes, devices, iteration
        As :func:`kernelscope.analyze` takes them.
    by_name : bool
        A row per name, wherever it stands, in place of one per path.
    folded : bool
        Whether digits in names are folded: ``step 1`` and ``step 2`` are ``step #``.
    strict : bool
        Apply the rule of ``nsys stats``: nothing is inherited.
    process_ranges : bool
        Start/end ranges hold the launches of every thread of their process.
    overlap : bool
        What CPU and GPU did while the ranges were open, in place of what ran for them.

    Raises
    ------
    NotRecordedError
        If the trace holds no NVTX ranges.
    SelectionError
        If the window, a process, a device or a range does not exist.
    """
    chosen = select(trace, processes, devices)
    if not len(chosen.ranges):
        raise NotRecordedError(
            "The trace holds no NVTX ranges.",
            "Record with nsys profile --trace=cuda,nvtx, and open ranges in the program.",
        )
    marked = mark_iterations(chosen, iteration)
    window = chosen_window(chosen, marked, between, only, within)
    family = marked.family if marked.from_ranges and not strict else None
    found = attribute(chosen, family=family, strict=strict, process_ranges=process_ranges)
    if overlap:
        table = overlap_by_range(
            chosen,
            window,
            by="name" if by_name else "path",
            folded=folded,
            found=beside(trace, chosen, window),
            nest=found.enclosed.nesting,
        )
    else:
        table = (ranges_by_name if by_name else ranges)(
            chosen, window, attribution=found, folded=folded
        )
    return RangeView(
        trace.capture,
        window,
        int(clipped_durations(chosen.kernels, window).sum()),
        table,
        unattributed(chosen, window, attribution=found),
        nvtx_findings(chosen, window, attribution=found),
    )


def matching(
    table: Table, *, path: str | None = None, match: str | None = None, around: bool = False
) -> Table:
    r"""Return the rows of some paths and names.

    Parameters
    ----------
    table : Table
        Rows of ranges.
    path : str, optional
        A path of names or globs, ``step # > forward`` as reports write it (``\>`` is a ``>`` that
        stands alone in a name) or ``step #/forward``; what lies inside it is kept, too.
    match : str, optional
        A regular expression to be found in the name.
    around : bool
        Whether to keep the ranges around those of that name, as a tree needs.

    Raises
    ------
    SelectionError
        If `match` is no regular expression, or no row is left; the hint names the nearest.
    """
    kept = np.ones(len(table), dtype=np.bool_)
    if path is not None:
        wanted = _parts(path)
        kept &= table.holds("path", lambda text: _begins(text.split(SEPARATOR), wanted))
        # Names may hold a slash; and a name may be typed without the backslash that reports add.
        if " > " not in path or not kept.any():
            kept |= table.holds("path", lambda text: _is_named(text, path))
    if match is not None:
        try:
            pattern = re.compile(match)
        except re.error as error:
            raise SelectionError(f"--match {match!r} is no regular expression: {error}.") from None
        kept &= table.holds("name", lambda text: pattern.search(text) is not None)
    if not kept.any() and len(table):
        names = {name for name in table.texts("name") if name}
        if match is not None:
            raise SelectionError(f"No range matches {match!r}.", nearest(match, names))
        parts = _parts(path or "")
        lost = next((part for part in parts if part not in names), parts[-1])
        raise SelectionError(f"No range lies at {path!r}.", nearest(lost, names))
    return table.take(kept | _around(table, kept) if around and match is not None else kept)


def _parts(path: str) -> list[str]:
    """Return the names of a path as reports print it, or as ``--range`` takes it."""
    parts = [path] if " > " in path else path.split("/")
    return [name.strip() for part in parts for name in names_in(part)]


def _begins(names: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(names) >= len(wanted) and all(
        name == glob or fnmatchcase(name, glob) for name, glob in zip(names, wanted, strict=False)
    )


def _is_named(text: str, path: str) -> bool:
    """Return whether a path, or one around it, is written so, whatever its names hold."""
    names = text.split(SEPARATOR)
    return any(
        between.join(names[:count]) == path
        for count in range(1, len(names) + 1)
        for between in (" > ", "/")
    )


def _around(table: Table, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which rows are ranges around the kept ones."""
    columns = (table.texts("path"), table.texts("domain"), table["process_id"].tolist())
    places = [(text or "", *where) for text, *where in zip(*columns, strict=True)]
    outer = set()
    for row in np.flatnonzero(kept).tolist():
        text, *where = places[row]
        names = text.split(SEPARATOR)
        outer |= {(SEPARATOR.join(names[:count]), *where) for count in range(1, len(names))}
    return np.array([place in outer for place in places], dtype=np.bool_)
