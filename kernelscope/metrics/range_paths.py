"""The path of every range: the names from the outermost range of its stack to itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.nesting import Nesting, style_is
from kernelscope.trace import Categorical, Table

Int32s = npt.NDArray[np.int32]

SEPARATOR = "\x1f"
"""What stands between the names of a path's text: ASCII's own *unit separator*. A name that holds
one, which nobody has seen, has its picture there."""

_PICTURE = "\N{SYMBOL FOR UNIT SEPARATOR}"
_BETWEEN = " > "
_ALONE = re.compile(r"(?<![^ ])(\\*)>(?![^ ])")
_ESCAPED = re.compile(r"(?<![^ ])\\(\\*>)(?![^ ])")

DEEPEST = 64
"""Paths are written out to this many names."""

STYLES = ("push_pop", "start_end", "crossing")
"""``crossing``: a push/pop range that crosses another and has no place in a stack."""


def written(names: Sequence[str]) -> str:
    """Return a path as people and tables read it: its names with ``" > "`` between them.

    Where a name itself holds a ``>`` that stands alone, between blanks or at an end of the name,
    a backslash goes before it, and one more if there are some already. So no two paths are
    written alike, and ``std::vector<int>`` stays what it is.
    """
    return _BETWEEN.join(_ALONE.sub(r"\\\1>", name) for name in names)


def names_in(text: str) -> list[str]:
    """Return the names of a path that :func:`written` wrote."""
    return [_ESCAPED.sub(r"\1", name) for name in text.split(_BETWEEN)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Paths:
    """The distinct paths, a parent before its children.

    Attributes
    ----------
    of_range : ndarray of int32, shape (n,)
        The path of each range.
    parent, name, domain, style, process : ndarray, shape (p,)
        Of each path: its parent (−1 for none), its last name (index into `names`), the code of
        its domain in ``ranges``, index into `STYLES`, and the process as ``ranges`` holds it.
        One name on two processes, or in two domains, makes two paths.
    depth : ndarray of int32, shape (p,)
        How many names stand before the last.
    names : tuple of str
        The distinct names.
    """

    of_range: Int32s
    parent: Int32s
    name: Int32s
    domain: Int32s
    style: Int32s
    process: npt.NDArray[Any]
    depth: Int32s
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.parent)

    def texts(self) -> list[str]:
        """Return each path as text, its names with `SEPARATOR` between them.

        Of a path deeper than `DEEPEST` the outer names are left out: ranges that are never
        closed nest without end, and whole paths of n of them would take n² characters.
        """
        texts: list[str] = []
        names = [name.replace(SEPARATOR, _PICTURE) for name in self.names]
        rows = zip(self.parent.tolist(), self.name.tolist(), self.depth.tolist(), strict=True)
        for row, (parent, name, depth) in enumerate(rows):
            if depth >= DEEPEST:
                texts.append(self._end_of(row))
            elif parent < 0:
                texts.append(names[name])
            else:
                texts.append(f"{texts[parent]}{SEPARATOR}{names[name]}")
        return texts

    def column(self) -> Categorical:
        """Return the texts as a column; paths of several processes or domains may read alike."""
        return Categorical.of(self.texts())

    def _end_of(self, row: int) -> str:
        """Return the last `DEEPEST` names of a path, and that there are more before them."""
        names: list[str] = []
        while len(names) < DEEPEST:
            names.append(self.names[self.name[row]].replace(SEPARATOR, _PICTURE))
            row = int(self.parent[row])
        return SEPARATOR.join(["…", *reversed(names)])


def range_paths(ranges: Table, nest: Nesting, *, folded: bool = False) -> Paths:
    """Which path does each range have?

    Parameters
    ----------
    ranges : Table
        Under ``schema.RANGES``.
    nest : Nesting
        The place of each.
    folded : bool
        Whether digits in names are folded, so that ``step 1`` and ``step 2`` are one path.
    """
    name, names = range_names(ranges, folded=folded)
    style = range_styles(ranges, nest)
    columns = _Named(name, ranges["domain"], style, ranges["process_id"], nest.depth)
    return _distinct_paths(columns, nest.parent, names)


def folded_paths(paths: Paths) -> Paths:
    """Return the paths that are left when digits in names are folded.

    What ``range_paths(…, folded=True)`` returns of the same ranges, found from the distinct paths.
    """
    folded = Categorical.of([fold(text) for text in paths.names])
    name = np.append(folded.codes, np.int32(-1))[paths.name]
    columns = _Named(name, paths.domain, paths.style, paths.process, paths.depth)
    found = _distinct_paths(columns, paths.parent, folded.categories)
    return replace(found, of_range=found.of_range[paths.of_range])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Named:
    """What has a path: ranges, or paths of which several become one; each of shape (n,)."""

    name: Int32s
    domain: Int32s
    style: Int32s
    process: npt.NDArray[Any]
    depth: Int32s


def _distinct_paths(these: _Named, parent_of: npt.NDArray[Any], names: tuple[str, ...]) -> Paths:
    """Return the paths of what stands below `parent_of`, the row of each one's parent."""
    depth = these.depth
    of_row = np.full(len(depth), -1, dtype=np.int32)
    stack, _ = grouped([these.process, these.domain, these.style])
    parents, firsts, known = [], [], 0
    narrow = depth.astype(np.uint16) if depth.max(initial=0) < 1 << 16 else depth
    by_depth = np.argsort(narrow, kind="stable")  # 16 bits are sorted in linear time
    bounds = np.cumsum(np.bincount(depth, minlength=1))
    for rows in np.split(by_depth, bounds[:-1]):
        outer = of_row[parent_of[rows]] if known else stack[rows]
        codes, (parent, _) = grouped([outer, these.name[rows]])
        of_row[rows] = known + codes
        first = np.empty(len(parent), dtype=np.intp)
        first[codes[::-1]] = rows[::-1]  # of several, the last one stays
        parents.append(parent if known else np.full(len(parent), -1))
        firsts.append(first)
        known += len(parent)
    first = np.concatenate(firsts)
    return Paths(
        of_row,
        np.concatenate(parents).astype(np.int32),
        these.name[first],
        these.domain[first],
        these.style[first],
        these.process[first],
        depth[first],
        names,
    )


def range_names(ranges: Table, *, folded: bool) -> tuple[Int32s, tuple[str, ...]]:
    """Return each range's name as a code, and the names; digits folded where asked for."""
    texts = ranges.categories("name")
    if not folded:
        return ranges["name"], texts
    shared = Categorical.of([fold(text) for text in texts])
    return np.append(shared.codes, np.int32(-1))[ranges["name"]], shared.categories


def range_styles(ranges: Table, nest: Nesting) -> Int32s:
    """Return each range's style as an index into `STYLES`."""
    style = np.where(style_is(ranges, "start_end"), 1, 0).astype(np.int32)
    style[nest.crossing] = STYLES.index("crossing")
    return style
