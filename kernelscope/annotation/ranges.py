"""Ranges that nest on their thread, ranges that do not, and marks.

A range of :func:`phase` is an NVTX push/pop range: it nests on its thread. Inside an asyncio task,
where other tasks run on the same thread before it ends, it is a start/end range instead. Ranges
that are closed out of order (a generator that is suspended inside one does that) are put right
where they can be and are always reported: by a warning, once a name, and by a mark.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from kernelscope.annotation import nvtx_calls, scheme
from kernelscope.annotation.nvtx_calls import Domain, Payload


class NestingWarning(UserWarning):
    """Ranges were not closed in the order in which they were opened, inner ones first."""


class Range:
    """A range that no tool listens to: entering and leaving it does nothing.

    One object may be entered again and again, inside itself, by several threads and tasks.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        """Open the range."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the range, whatever happened inside."""


OFF = Range()

_MODULES = sys.modules

_NOT_OPENED = "was closed on a thread or in a task that did not open it"

_Started = tuple["PushedRange", Any, "_Started | None"]
_STARTED: ContextVar[_Started | None] = ContextVar("kernelscope_started", default=None)
"""The start/end ranges that the running task has open, innermost first."""


class PushedRange(Range):
    """A range that a tool may record: what :class:`Range` is where one listens.

    Attributes
    ----------
    domain : Domain
        The NVTX domain.
    attributes : object
        The event attributes of `nvtx`.
    name : str
        For messages.
    """

    __slots__ = ("attributes", "domain", "name")

    def __init__(self, domain: Domain, attributes: Any, name: str) -> None:
        self.domain = domain
        self.attributes = attributes
        self.name = name

    def __enter__(self) -> Self:
        """Open the range."""
        if "asyncio" in _MODULES and _in_task():
            _STARTED.set((self, self.domain.start(self.attributes), _STARTED.get()))
            return self
        domain = self.domain
        domain.stack.open.append(self)
        domain.push(self.attributes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the range, whatever happened inside."""
        domain = self.domain
        if "asyncio" in _MODULES and _in_task():
            if not self._ended() and not self._popped():
                _report(self, _NOT_OPENED)
            return
        stack = domain.stack.open
        if stack and stack[-1] is self:
            stack.pop()
            domain.pop()
        elif not self._popped() and not self._ended():
            _report(self, _NOT_OPENED)

    def _ended(self) -> bool:
        """End it where the running task started it; start/end ranges need not nest."""
        found = _taken_out(_STARTED.get(), self)
        if found is None:
            return False
        handle, rest = found
        _STARTED.set(rest)
        self.domain.end(handle)
        return True

    def _popped(self) -> bool:
        """Pop it from under the ranges that this thread opened inside it and has not closed."""
        stack = self.domain.stack.open
        if self not in stack:
            return False
        self._close_inside(stack)
        return True

    def _close_inside(self, stack: list[Any]) -> None:
        place = len(stack) - 1 - stack[::-1].index(self)
        inner = stack[place + 1 :]
        del stack[place]
        for _ in range(len(inner) + 1):
            self.domain.pop()
        for each in inner:  # they go on, as ranges of their own
            self.domain.push(each.attributes)
        if inner:
            what = f"was closed before {inner[-1].name!r} inside it, which is in two parts"
            _report(self, what, stacklevel=5)


def _in_task() -> bool:
    """Whether an event loop of asyncio runs on this thread; asyncio is not imported for that."""
    events = _MODULES.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


def _taken_out(started: _Started | None, wanted: PushedRange) -> tuple[Any, _Started | None] | None:
    """Return the number of a started range and what is left without it; None if it is not there."""
    above: list[tuple[PushedRange, Any]] = []
    while started is not None and started[0] is not wanted:
        above.append(started[:2])
        started = started[2]
    if started is None:
        return None
    rest = started[2]
    for each, handle in reversed(above):
        rest = (each, handle, rest)
    return started[1], rest


_REPORTED: set[tuple[str, str]] = set()


def _report(which: PushedRange, what: str, stacklevel: int = 3) -> None:
    """Mark it, and warn of it once a name; the warning points at the end of the ``with`` block."""
    domain = which.domain
    domain.mark(domain.attributes(f"nesting: {which.name!r} {what}"))
    if (domain.name, which.name) not in _REPORTED:
        _REPORTED.add((domain.name, which.name))
        warnings.warn(
            f"The range {which.name!r} {what}. Use kernelscope.start_range where ranges overlap.",
            NestingWarning,
            stacklevel=stacklevel,
        )


class OpenRange:
    """A range that was started and may be ended anywhere: on any thread, in any task.

    Use it as a context manager, or call :meth:`end`.
    """

    __slots__ = ("_domain", "_open")

    def __init__(self, domain: Domain | None, attributes: Any = None) -> None:
        self._domain = domain
        self._open = [] if domain is None else [domain.start(attributes)]

    def end(self) -> None:
        """End the range; once it has ended, nothing happens."""
        try:
            handle = self._open.pop()  # of two threads, one gets it
        except IndexError:
            return
        if self._domain is not None:
            self._domain.end(handle)

    def __enter__(self) -> Self:
        """Return the range, which is open already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the range, whatever happened inside."""
        self.end()


def attributes(
    domain: Domain,
    role: str,
    name: str,
    *,
    category: str | int | None = None,
    payload: Payload | None = None,
    **fields: str | int | None,
) -> Any:
    """Return event attributes that say in the domain `kernelscope` what the scheme has words for.

    In another domain the fields are not said: their words would be taken for the name.
    """
    if domain.name == scheme.DOMAIN:
        if category is not None:
            fields = {"role": role, **fields}
        name = scheme.message(name, **fields)
        category = role if category is None else category
    return domain.attributes(name, category=category, color=scheme.COLORS[role], payload=payload)


_PLAIN: dict[str, Range] = {}
_PLAIN_LIMIT = 4096
"""Phases that are kept for their name: enough for a model, and no leak where names are made up."""


def phase(  # noqa: PLR0913 - all but the first are keywords
    name: str,
    *,
    domain: str = scheme.DOMAIN,
    category: str | int | None = None,
    payload: float | None = None,
    path: str | None = None,
    inputs: Iterable[Any] | None = None,
    flops: int | None = None,
) -> Range:
    """Return a range around a part of an iteration, for ``with``; it may be used again.

    Parameters
    ----------
    name : str
        What it is called: one of few names, since NVTX keeps each for good.
    domain : str
        The NVTX domain; ``""`` is the default domain.
    category : str or int, optional
        The NVTX category, by name or number.
    payload : int or float, optional
        A plain number that belongs to the range.
    path : str, optional
        Where it stands in the model or the program: ``encoder.3.attention``.
    inputs : iterable, optional
        Tensors whose shapes and dtypes are said, or pairs ``(shape, dtype)``.
    flops : int, optional
        FLOPs that the model counts for it (an FMA is two).

    Returns
    -------
    Range
        Inside an asyncio task a start/end range, else a push/pop range.

    Raises
    ------
    TypeError, ValueError
        If `payload` is no number that NVTX takes.

    Notes
    -----
    `path`, `inputs` and `flops` are said in the domain ``kernelscope`` alone, by its payload
    scheme; each distinct text is registered once and kept for good.
    """
    plain = (
        category is None and payload is None and path is None and inputs is None and flops is None
    ) and domain == scheme.DOMAIN
    if plain and name in _PLAIN:
        return _PLAIN[name]
    payload = nvtx_calls.number(payload)
    listening = nvtx_calls.domain(domain)
    if listening is None:
        return OFF
    said = {"path": path, "in": scheme.described(inputs) if inputs else None, "flops": flops}
    made = PushedRange(
        listening,
        attributes(listening, scheme.PHASE, name, category=category, payload=payload, **said),
        name,
    )
    if plain:
        if len(_PLAIN) >= _PLAIN_LIMIT:
            _PLAIN.clear()
        _PLAIN[name] = made
    return made


def start_range(
    name: str,
    *,
    domain: str = scheme.DOMAIN,
    category: str | int | None = None,
    payload: float | None = None,
) -> OpenRange:
    """Start a range that may end on another thread or in another task, and overlap others.

    Parameters
    ----------
    name, domain, category, payload
        As for :func:`phase`.

    Returns
    -------
    OpenRange
        Its ``end()`` ends the range; so does leaving its ``with`` block.
    """
    payload = nvtx_calls.number(payload)
    listening = nvtx_calls.domain(domain)
    if listening is None:
        return OpenRange(None)
    return OpenRange(
        listening,
        attributes(listening, scheme.PHASE, name, category=category, payload=payload),
    )


def mark(
    name: str,
    *,
    domain: str = scheme.DOMAIN,
    category: str | int | None = None,
    payload: float | None = None,
) -> None:
    """Mark a moment: a checkpoint, a new learning rate.

    Parameters
    ----------
    name, domain, category, payload
        As for :func:`phase`.
    """
    payload = nvtx_calls.number(payload)
    listening = nvtx_calls.domain(domain)
    if listening is not None:
        listening.mark(listening.attributes(name, category=category, payload=payload))
