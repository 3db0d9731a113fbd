"""Which launch shape of a trace was counted as which? Names as strictly as they can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.counted_series import Shape
from kernelscope.metrics.counted_work import Group
from kernelscope.metrics.grouping import grouped
from kernelscope.metrics.intervals import sums_by
from kernelscope.metrics.kernel_spelling import SPELLINGS, spelled
from kernelscope.metrics.window import Window, clipped_durations, starts_inside
from kernelscope.parsers.counter_set import SHAPE
from kernelscope.trace import Table, missing_value, widened

Int64s = npt.NDArray[np.int64]

WITHOUT_SHAPE = "without shape"
MISSING = int(missing_value(np.dtype(np.int64)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shapes:
    """The kernels of a trace by name and launch shape, g of them.

    Attributes
    ----------
    of_kernel : ndarray of int32, shape (n,)
        The group of each kernel.
    names : list of str
        Of each group.
    shapes : list of tuple
        Grid and block of each; None where neither was recorded.
    executions : ndarray of int64, shape (g,)
        In the whole trace.
    started, total_ns : ndarray of int64, shape (g,)
        Executions that start in the window, and the time of all inside it.
    """

    of_kernel: npt.NDArray[np.int32]
    names: list[str]
    shapes: list[Shape]
    executions: Int64s
    started: Int64s
    total_ns: Int64s


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match:
    """A group of the trace, what was counted of it, and how the names agree."""

    place: int
    group: Group
    by: str


def shapes_of(kernels: Table, window: Window) -> Shapes:
    """Return kernels by name and launch shape, and what of them lies in a window."""
    if not len(kernels):
        nothing = np.empty(0, dtype=np.int64)
        return Shapes(nothing.astype(np.int32), [], [], nothing, nothing, nothing)
    of_kernel, (code, *shape) = grouped([kernels["name"], *(kernels[part] for part in SHAPE)])
    count = len(code)
    names = kernels.categories("name")
    columns = [widened(column).tolist() for column in shape]
    shapes: list[Shape] = [None if row[0] == MISSING else row for row in zip(*columns, strict=True)]
    inside = starts_inside(kernels, window)
    return Shapes(
        of_kernel,
        [names[each] if each >= 0 else "" for each in code.tolist()],
        shapes,
        np.bincount(of_kernel, minlength=count).astype(np.int64),
        np.bincount(of_kernel[inside], minlength=count).astype(np.int64),
        sums_by(of_kernel, clipped_durations(kernels, window), count),
    )


def matches(shapes: Shapes, groups: Sequence[Group]) -> Iterator[Match]:
    """Yield which group of the trace was counted as which group, the strictest spelling first.

    A looser spelling counts only where one of the two sides says no more than it (a base name that
    ncu was told to print: two instances of a template are two kernels), and where one group of
    either side is left that it fits.
    """
    here, there = set(range(len(shapes.names))), set(range(len(groups)))
    spell = _Spelled()
    for by, spelling in SPELLINGS:
        mine = _only(
            {i: (spell(spelling, shapes.names[i]), shapes.shapes[i]) for i in sorted(here)}
        )
        theirs = _only(
            {i: (spell(spelling, groups[i].name), groups[i].shape) for i in sorted(there)}
        )
        for key, number in theirs.items():
            if key not in mine or key[1] is None:
                continue
            place = mine[key]
            if _fit(spell, spelling, shapes.names[place], groups[number].name):
                yield Match(place, groups[number], by)
                here.remove(place)
                there.remove(number)
    yield from _without_shape(shapes, groups, here, there)


def _fit(spell: _Spelled, spelling: Callable[[str], str], one: str, other: str | None) -> bool:
    """Return whether names that agree in a loose spelling may be one: one of them is no longer."""
    if spelling in (str, spelled):
        return True
    loose = spell(spelling, one)
    return loose in (spell(spelled, one), spell(spelled, other))


def _without_shape(
    shapes: Shapes, groups: Sequence[Group], here: set[int], there: set[int]
) -> Iterator[Match]:
    """Yield matches with groups whose source does not say in which shape the kernel ran.

    A name of the trace then stands for all its launch shapes.
    """
    spell = _Spelled()
    left = [number for number in sorted(there) if groups[number].shape is None]
    for _, spelling in SPELLINGS:
        names: dict[str, set[str]] = defaultdict(set)
        for place in here:
            names[spell(spelling, shapes.names[place])].add(shapes.names[place])
        for key, number in _only(
            {each: spell(spelling, groups[each].name) for each in left}
        ).items():
            found = names.get(key, set())
            name = next(iter(found)) if len(found) == 1 else None
            if name is None or not _fit(spell, spelling, name, groups[number].name):
                continue
            for place in [each for each in sorted(here) if shapes.names[each] == name]:
                yield Match(place, groups[number], WITHOUT_SHAPE)
                here.remove(place)
            left.remove(number)


class _Spelled(dict[tuple[Callable[[str], str], str], str]):
    """Names by spelling: a name that ran in many shapes is spelled once."""

    def __call__(self, spelling: Callable[[str], str], name: str | None) -> str:
        return self[spelling, name or ""]

    def __missing__(self, key: tuple[Callable[[str], str], str]) -> str:
        spelling, name = key
        self[key] = spelling(name)
        return self[key]


def _only(keys: Mapping[int, Any]) -> dict[Any, int]:
    """Return the numbers whose key no other has, by key."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in keys.items():
        found[key].append(number)
    return {each: same[0] for each, same in found.items() if len(same) == 1}
