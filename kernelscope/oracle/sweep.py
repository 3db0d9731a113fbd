"""Device time, by walking from one moment at which something changes to the next.

Written to be checked by eye: plain loops over plain tuples, nothing shared with
:mod:`kernelscope.metrics`, which these answers are there to test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

CLASSES: tuple[str, ...] = (
    "compute_and_communication",
    "compute_and_copy",
    "compute_only",
    "opaque_graph",
    "communication_only",
    "copy_only",
    "memset_only",
    "idle",
)
"""What a nanosecond of a device can be; see METRICS: the first that holds."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Something on a device: `what` is ``compute``, ``communication``, ``graph``, ``copy`` …"""

    start: int
    end: int
    what: str
    process: int
    device: int
    context: int
    stream: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of time in which the same activities are running throughout."""

    start: int
    end: int
    running: tuple[Activity, ...]

    @property
    def length(self) -> int:
        """How long the stretch is, ns."""
        return self.end - self.start

    def count(self, *kinds: str) -> int:
        """Return how many activities of these kinds are running."""
        return sum(1 for activity in self.running if activity.what in kinds)


def inside(activities: Iterable[Activity], start: int, end: int) -> list[Activity]:
    """Return what lies in the window ``[start, end)``, uncut.

    An activity without length is in the window if it starts there; its very end counts too.
    """
    return [
        each
        for each in activities
        if (each.start < end and each.end > start)
        or (each.start == each.end and start <= each.start <= end)
    ]


def pieces(activities: Sequence[Activity], start: int, end: int) -> list[Piece]:
    """Cut the window wherever an activity begins or ends."""
    moments = {start, end}
    for each in activities:
        moments.update(time for time in (each.start, each.end) if start < time < end)
    waiting = sorted(activities, key=lambda each: each.start, reverse=True)
    running: list[Activity] = []
    found: list[Piece] = []
    ordered = sorted(moments)
    for begin, stop in pairwise(ordered):
        while waiting and waiting[-1].start <= begin:
            running.append(waiting.pop())
        running = [each for each in running if each.end > begin]
        found.append(Piece(begin, stop, tuple(running)))
    return found


def class_of(piece: Piece) -> str:
    """Return which of :data:`CLASSES` a stretch of device time is."""
    compute, communication = piece.count("compute"), piece.count("communication")
    copy, memset = piece.count("copy"), piece.count("memset")
    answers = {
        "compute_and_communication": compute and communication,
        "compute_and_copy": compute and (copy or memset),
        "compute_only": compute,
        "opaque_graph": piece.count("graph"),
        "communication_only": communication,
        "copy_only": copy,
        "memset_only": memset,
        "idle": 1,
    }
    return next(name for name in CLASSES if answers[name])


def partition(cut: Sequence[Piece]) -> dict[str, int]:
    """Return how much time each class has, ns; together that is the window."""
    totals = dict.fromkeys(CLASSES, 0)
    for piece in cut:
        totals[class_of(piece)] += piece.length
    return totals


def time_with(cut: Sequence[Piece], *kinds: str) -> int:
    """Return how long at least one activity of these kinds was running, ns."""
    return sum(piece.length for piece in cut if piece.count(*kinds))


def concurrency(cut: Sequence[Piece]) -> dict[str, int]:
    """Return how long one, two, and three or more kernels were running at once, ns."""
    counts = [(piece.count("compute", "communication"), piece.length) for piece in cut]
    return {
        "one_ns": sum(length for count, length in counts if count == 1),
        "two_ns": sum(length for count, length in counts if count == 2),
        "three_or_more_ns": sum(length for count, length in counts if count >= 3),
    }


def gaps(activities: Sequence[Activity]) -> list[tuple[int, int]]:
    """Return the stretches between two activities in which nothing was running.

    An activity without length ends one gap and begins the next.
    """
    found: list[tuple[int, int]] = []
    latest: int | None = None
    for each in sorted(activities, key=lambda each: (each.start, each.end)):
        if latest is not None and each.start > latest:
            found.append((latest, each.start))
        latest = each.end if latest is None else max(latest, each.end)
    return found
