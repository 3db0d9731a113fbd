"""Which NVTX ranges mark the training iterations: found by score, or named by the user."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from kernelscope.errors import NotRecordedError, SelectionError, nearest
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.range_families import Candidate, candidates
from kernelscope.metrics.range_names import (
    FoldedNames,
    fold_all,
    name_rank,
    occurring,
    users_names,
)
from kernelscope.trace import Table, Trace, median

MIN_SCORE = 0.3
"""A family that scores less is not taken for the iterations."""
MIN_INSTANCES = 5
"""Fewer ranges of one name are not taken for iterations, unless the user names them."""
TIE = 0.05
"""Scores that differ by at most this share are tied: the outermost wins."""
NESTED_SHARE = 0.9
"""One family is inside another if this share of its instances, and of the other's, agree."""
TYPICAL_SHARE = 0.5
"""Of tied families side by side, those that typically span less than this share of the longest
give way: validation steps between training steps are as regular, but fill little of the run."""

NEVER_ITERATIONS = frozenset({"data loading"})
"""Roles of annotated ranges: waiting for a batch recurs as evenly as the iterations do."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The family that would be next."""

    name: str
    domain: str
    process_id: int | None
    thread_id: int | None
    score: float
    instances: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Found:
    """The chosen family, and what it was chosen over.

    Attributes
    ----------
    family : IterationFamily
        The chosen ranges, with those of other processes that carry them as `twins`.
    score : float
        Its coverage of the device's active span × the regularity of its launches.
    runner_up : RunnerUp or None
        The best of the others; families inside the chosen one are among them.
    also_in : tuple of (process, thread)
        Where else ranges of the same domain and folded name pass for iterations: other ranks.
    """

    family: IterationFamily
    score: float
    runner_up: RunnerUp | None
    also_in: tuple[tuple[int | None, int | None], ...]


def find(trace: Trace, launches: LaunchTimes | None = None) -> Found | None:
    """Which ranges mark the training iterations?

    Parameters
    ----------
    trace : Trace
        The whole trace.
    launches : LaunchTimes, optional
        Of the same trace, where the caller has them already.

    Returns
    -------
    Found or None
        None where no family of at least `MIN_INSTANCES` ranges that do not overlap, of no
        library, scores at least `MIN_SCORE`.

    Notes
    -----
    A candidate is the ranges of one (process, thread, domain, name with digits folded). Its
    score is Σ periods / (first to last device activity) × (1 − MAD / median of the process's
    launches per period), the periods clipped to the device activity. Within `TIE` of the best
    the outermost wins. Where one family repeats in every instance of another, the one whose
    name says so wins (step, iter, iteration, batch; a microbatch gives way to a batch), else
    the outer: steps, not epochs, and not layers, however many were captured.

    Ranges that kernelscope's own annotations call iterations come before all others, and those
    that they call data loading are never candidates.
    """
    if not len(trace.ranges):
        return None
    names = users_names(trace.ranges)
    launches = launches or launch_times(trace)
    for chosen in _by_role(trace.ranges, names):
        found = candidates(trace, launches, chosen, least=MIN_INSTANCES, least_score=MIN_SCORE)
        if found:
            return _result(found, _Twins(trace, launches, chosen, MIN_INSTANCES))
    return None


def _by_role(ranges: Table, names: FoldedNames) -> Iterator[FoldedNames]:
    """Yield the ranges that are annotated as iterations, if any are, then all that may be some."""
    roles = ranges.categories("role")
    if "iteration" in roles:
        said = ranges["role"] == roles.index("iteration")
        yield FoldedNames(np.where(said, names.codes, np.int32(-1)), names.folded)
    never = [code for code, role in enumerate(roles) if role in NEVER_ITERATIONS]
    if not never:
        yield names
        return
    other = np.isin(ranges["role"], never)
    yield FoldedNames(np.where(other, np.int32(-1), names.codes), names.folded)


def named(trace: Trace, pattern: str, launches: LaunchTimes | None = None) -> Found:
    """Which ranges are the iterations that the user named?

    Parameters
    ----------
    trace : Trace
        The whole trace.
    pattern : str
        Name of the ranges, exactly or as a glob (``step *``), or with digits folded
        (``step #``). Any number of instances will do, and a library's ranges, too.
    launches : LaunchTimes, optional
        Of the same trace, where the caller has them already.

    Raises
    ------
    NotRecordedError
        If the trace holds no NVTX ranges.
    SelectionError
        If no range is called so, with the nearest names; or if the ranges overlap.
    """
    names = matching(trace, pattern)
    launches = launches or launch_times(trace)
    found = candidates(trace, launches, names, least=1, least_score=0.0)
    if not found:
        raise SelectionError(
            f"The ranges called {pattern!r} overlap each other on their thread.",
            "Iterations follow one another; name a range that is not opened inside itself.",
        )
    return _result(found, _Twins(trace, launches, names, 1))


def matching(trace: Trace, pattern: str) -> FoldedNames:
    """Return the ranges whose name is `pattern`, exactly, as a glob, or with digits folded.

    Raises
    ------
    NotRecordedError
        If the trace holds no NVTX ranges.
    SelectionError
        If no range is called so.
    """
    ranges = trace.ranges
    if not len(ranges):
        raise NotRecordedError(
            f"The trace holds no NVTX ranges, so none is called {pattern!r}.",
            "Annotate the program, and record them: nsys profile --trace=cuda,nvtx",
        )
    names = ranges.categories("name")
    there = np.flatnonzero(occurring(ranges)).tolist()
    texts = dict(zip(there, fold_all([names[code] for code in there]), strict=True))
    glob = re.compile(fnmatch.translate(pattern))
    number: dict[str, int] = {}
    of_name = np.full(len(names) + 1, -1, dtype=np.int32)
    for code, text in texts.items():
        if pattern in (names[code], text) or glob.match(names[code]):
            of_name[code] = number.setdefault(text, len(number))
    if not number:
        known = set(texts.values()) - {""}
        raise SelectionError(f"No NVTX range is called {pattern!r}.", nearest(pattern, known))
    return FoldedNames(of_name[ranges["name"]], tuple(number))


@dataclass(frozen=True, slots=True)
class _Twins:
    """Where the chosen family is looked for once more: in the other processes."""

    trace: Trace
    launches: LaunchTimes
    names: FoldedNames
    least: int

    def of(self, family: IterationFamily) -> tuple[IterationFamily, ...]:
        """Return the family of each other process, in order of process.

        A process need not score for that: a rank that begins late or is cut off early carries
        the iterations all the same. Of several threads of a process that one stands for it that
        would be chosen: one that launches, with the best score.
        """
        processes = self.trace.ranges["process_id"]
        if family.process_id is None or processes.min() == processes.max():
            return ()
        code = self.names.folded.index(family.folded_name)
        codes = np.where(self.names.codes == code, self.names.codes, np.int32(-1))
        alike = FoldedNames(codes, self.names.folded)
        found = candidates(self.trace, self.launches, alike, least=self.least, least_score=0.0)
        found.sort(key=lambda each: not each.launches_itself)
        best: dict[int, IterationFamily] = {}
        for each in (other.family for other in found):
            if each.domain == family.domain and each.process_id is not None:
                best.setdefault(each.process_id, each)
        return tuple(best[process] for process in sorted(best) if process != family.process_id)


def _result(found: Sequence[Candidate], twins_of: _Twins) -> Found:
    """Choose among candidates; the best score comes first."""
    winner = _by_nesting(found, _start(found))
    same = _identity(winner)
    twins = [each for each in found if _identity(each) == same and each is not winner]
    rest = [each for each in found if _identity(each) != same]
    also = tuple((each.family.process_id, each.family.thread_id) for each in twins)
    family = replace(winner.family, twins=twins_of.of(winner.family))
    return Found(family, winner.score, _runner_up(rest), also)


def _by_nesting(found: Sequence[Candidate], winner: Candidate) -> Candidate:
    """Go from `winner` to the families around and inside it, as long as one is preferable."""

    @cache
    def rank(place: int) -> int:
        """Return what a name says, or the name of a range that occurs once in each instance."""
        each = found[place]
        return max(
            name_rank(other.family.folded_name)
            for other in found
            if other is each or repeats_in(other, each) == 1
        )

    at = list(found).index(winner)
    visited = {at}
    while True:
        better = (
            place
            for place, other in enumerate(found)
            if place not in visited
            and (
                (repeats_in(found[at], other) and rank(place) >= rank(at))
                or (repeats_in(other, found[at]) > 1 and rank(place) > rank(at))
            )
        )
        following = next(better, None)
        if following is None:
            return found[at]
        at = following
        visited.add(at)


def _identity(candidate: Candidate) -> tuple[str, str]:
    return candidate.family.domain, candidate.family.folded_name


def _runner_up(rest: Sequence[Candidate]) -> RunnerUp | None:
    if not rest:
        return None
    family = rest[0].family
    return RunnerUp(
        family.folded_name,
        family.domain,
        family.process_id,
        family.thread_id,
        rest[0].score,
        len(family.starts),
    )


def _start(found: Sequence[Candidate]) -> Candidate:
    """Return the outermost of the best scores; side by side, the one that begins first.

    A thread that launches nothing (it loads data for a later batch) gives way to one that does.
    """
    tied = [each for each in found if each.score >= (1 - TIE) * found[0].score]
    tied = [each for each in tied if each.launches_itself] or tied
    longest = max(each.typical_span for each in tied)
    tied = [each for each in tied if each.typical_span >= TYPICAL_SHARE * longest]
    outermost = [
        each
        for each in tied
        if not any(other is not each and repeats_in(each, other) for other in tied)
    ]
    return min(outermost or tied, key=lambda each: (int(each.family.starts[0]), -each.score))


def repeats_in(inner: Candidate, outer: Candidate) -> int:
    """Return how often `inner` occurs in an instance of `outer`, at the median; 0 if it does not.

    Both must be of one thread, and nearly every instance of both must take part: `NESTED_SHARE`
    of the inner ones lie inside an outer one, and of the outer ones hold at least one. Of two
    that hold each other, the one open longer, or opened first, is the outer one.
    """
    one, around = inner.family, outer.family
    if (one.process_id, one.thread_id) != (around.process_id, around.thread_id):
        return 0
    if len(one.starts) < NESTED_SHARE * len(around.starts) or _order(inner) <= _order(outer):
        return 0
    place = np.searchsorted(around.starts, one.starts, side="right") - 1
    held = (place >= 0) & (one.range_ends <= around.range_ends[np.maximum(place, 0)])
    if int(held.sum()) < NESTED_SHARE * len(held):
        return 0
    per_outer = np.bincount(place[held], minlength=len(around.starts))
    if int((per_outer > 0).sum()) < NESTED_SHARE * len(per_outer):
        return 0
    return max(int(median(per_outer)), 1)


def _order(candidate: Candidate) -> tuple[int, int]:
    """Return what is less for a family that can lie around another one."""
    family = candidate.family
    return -int((family.range_ends - family.starts).sum()), int(family.rows[0])
