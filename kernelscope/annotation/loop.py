"""Ranges around the iterations of a training loop, and around the wait for their data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar

from kernelscope.annotation import nvtx_calls, scheme
from kernelscope.annotation.capturing import open_capture
from kernelscope.annotation.nvtx_calls import Domain
from kernelscope.annotation.ranges import PushedRange, attributes

Batch = TypeVar("Batch")

_PROFILED: set[str] = set()
"""Loops whose iterations were captured: a process does that once for each name."""


class Iterations(Generic[Batch]):
    """A loader whose iterations are annotated; see :func:`iterations`.

    Going over it again continues the count, as epochs do.
    """

    def __init__(
        self,
        loader: Iterable[Batch],
        batch_size: int | Callable[[Batch], int] | None,
        profile: range | None,
        name: str,
        start: int,
    ) -> None:
        self._loader = loader
        self._batch_size = batch_size
        self._profile = profile
        self._name = name
        self._number = start

    def __len__(self) -> int:
        """Return how many batches the loader says it has."""
        if not isinstance(self._loader, Sized):
            raise TypeError(f"object of type {type(self._loader).__name__!r} has no len()")
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        """Return an iterator over the loader: its own, where nothing is to be done."""
        listening = nvtx_calls.domain(scheme.DOMAIN)
        if listening is None:
            return iter(self._loader) if self._captured() else self._counted()
        return self._annotated(listening)

    def _captured(self) -> bool:
        return self._profile is None or self._name in _PROFILED

    def _counted(self) -> Iterator[Batch]:
        """Open and close the capture; no tool listens to ranges."""
        capture = _Capture(self)
        source = iter(self._loader)
        try:
            while True:
                capture.at(self._number)
                try:
                    held = [next(source)]
                except StopIteration:
                    return
                self._number += 1
                yield held.pop()  # a batch may be large: nothing here keeps it alive
        finally:
            capture.close()

    def _annotated(self, listening: Domain) -> Iterator[Batch]:
        wait = _numbered(listening, scheme.DATA, scheme.DATA)
        steps = _Steps(listening, self._name, self._batch_size)
        capture = _Capture(self)
        source = iter(self._loader)
        try:
            while True:
                number = self._number
                capture.at(number)
                wait.attributes.payload = number
                with wait:
                    try:
                        held = [next(source)]
                    except StopIteration:
                        return
                self._number = number + 1
                step = steps.of(held[0])
                step.attributes.payload = number
                with step:
                    yield held.pop()  # a batch may be large: nothing here keeps it alive
        finally:
            capture.close()


class _Steps:
    """The ranges of the iterations, one for each size of a batch."""

    def __init__(self, listening: Domain, name: str, size: Any) -> None:
        self._listening, self._name, self._size = listening, name, size
        self._known: dict[int | None, PushedRange] = {}

    def of(self, batch: Any) -> PushedRange:
        size = self._size(batch) if callable(self._size) else self._size
        if size not in self._known:
            self._known[size] = _numbered(self._listening, scheme.ITERATION, self._name, batch=size)
        return self._known[size]


def _numbered(listening: Domain, role: str, name: str, **fields: int | None) -> PushedRange:
    """Return a range of one loop's own, whose payload is set before each use."""
    return PushedRange(listening, attributes(listening, role, name, payload=0, **fields), name)


class _Capture:
    """Opens the capture before the first chosen iteration, and closes it behind the last one."""

    def __init__(self, loop: Iterations[Any]) -> None:
        chosen = None if loop._captured() else loop._profile
        self._first, self._end = (chosen.start, chosen.stop) if chosen else (-1, -1)
        self._name = loop._name
        self._close: Callable[[], None] | None = None

    def at(self, number: int) -> None:
        """Say which iteration comes next."""
        if number == self._end:
            self.close()
        elif number == self._first and self._name not in _PROFILED:
            _PROFILED.add(self._name)
            self._close = open_capture()

    def close(self) -> None:
        """End the capture, if it is open."""
        if self._close is not None:
            self._close()
            self._close = None


def iterations(
    loader: Iterable[Batch],
    batch_size: int | Callable[[Batch], int] | None = None,
    *,
    profile: range | None = None,
    name: str = scheme.ITERATION,
    start: int = 0,
) -> Iterations[Batch]:
    """Go over a loader with a range around each iteration, and one around each wait for a batch.

    Parameters
    ----------
    loader : iterable
        What gives the batches.
    batch_size : int or callable, optional
        Samples in a batch, or a function of the batch that counts them (``len``).
    profile : range, optional
        Iterations that a profiler shall record, such as ``range(20, 30)``: those before them are
        warm-up. The capture opens before the wait for the first one's batch and closes behind
        the last one, once in a process for each `name`.
    name : str
        What the ranges are called.
    start : int
        Number of the first iteration: where training goes on from a checkpoint.

    Returns
    -------
    Iterations
        Iterable, with the loader's length. Going over it again (an epoch) goes on counting.

    Raises
    ------
    ValueError
        If `profile` is empty, has a step or begins before `start`.

    Examples
    --------
    >>> import kernelscope as ks
    >>> for batch in ks.iterations([1, 2], batch_size=1):
    ...     with ks.phase("forward"):
    ...         print(batch)
    1
    2
    """
    if profile is not None and (profile.step != 1 or not profile or profile.start < start):
        raise ValueError(
            f"profile={profile} must be a range of iterations, none before {start}, step by step: "
            "range(20, 30)."
        )
    return Iterations(loader, batch_size, profile, name, start)
