"""The calls of the `nvtx` package that annotations make, in one shape for all its versions.

nvtx 0.2.11 has module functions that take attributes and a domain's handle; from 0.2.12 on domains
have methods, and a domain that no tool listens to is a stand-in. Some versions cache attributes for
ever, one object for each payload; here they are made anew, so that a million iterations leave
nothing behind.
"""

from __future__ import annotations

import ctypes
import operator
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from kernelscope.annotation.scheme import DOMAIN, ROLES

Payload = int | float


class Stack(threading.local):
    """The push/pop ranges that a thread has open in one domain, outermost first."""

    def __init__(self) -> None:
        self.open: list[Any] = []


class Domain:
    """An NVTX domain that a tool may be listening to.

    Attributes
    ----------
    push, start, mark : callable
        Take event attributes; `start` returns what `end` takes.
    pop, end : callable
        Close the thread's innermost range; close a started one.
    stack : Stack
        The push/pop ranges that are open on the calling thread.
    """

    __slots__ = ("_attributes", "_domain", "end", "mark", "name", "pop", "push", "stack", "start")

    def __init__(self, name: str, domain: Any, calls: Any) -> None:
        self.name = name
        self.stack = Stack()
        self._domain = domain
        make = type(domain).get_event_attributes
        self._attributes: Callable[..., Any] = getattr(make, "__wrapped__", make)
        self.push: Callable[[Any], object]
        self.pop: Callable[[], object]
        self.start: Callable[[Any], Any]
        self.end: Callable[[Any], object]
        self.mark: Callable[[Any], object]
        if hasattr(domain, "push_range"):
            self.push, self.pop = domain.push_range, domain.pop_range
            self.start, self.end, self.mark = domain.start_range, domain.end_range, domain.mark
        else:
            handle = domain.handle
            push, start, mark = calls.push_range, calls.start_range, calls.mark
            self.push = lambda attributes: push(attributes, handle)
            self.pop = partial(calls.pop_range, handle)
            self.start = lambda attributes: start(attributes, handle)
            self.end = calls.end_range
            self.mark = lambda attributes: mark(attributes, handle)
        if name == DOMAIN:
            for role in ROLES:
                domain.get_category_id(role)

    def attributes(
        self,
        message: str,
        *,
        category: str | int | None = None,
        color: int | None = None,
        payload: Payload | None = None,
    ) -> Any:
        """Return new event attributes; their ``payload`` may be set again and again."""
        return self._attributes(self._domain, message, color, category, payload)


_KNOWN: dict[str, Domain | None] = {}
_LOCK = threading.Lock()


def domain(name: str = DOMAIN) -> Domain | None:
    """Return an NVTX domain; None where no tool listens to it.

    Parameters
    ----------
    name : str
        The domain's name; ``""`` is NVTX's default domain.
    """
    if name in _KNOWN:
        return _KNOWN[name]
    with _LOCK:
        if name not in _KNOWN:
            _KNOWN[name] = _opened(name)
        return _KNOWN[name]


def _opened(name: str) -> Domain | None:
    nvtx = import_module("nvtx.nvtx")
    if not nvtx.enabled():  # NVTX_DISABLE is set
        return None
    found = nvtx.get_domain(name or None)
    if not hasattr(found, "handle"):  # the stand-in for a domain that nobody listens to
        return None
    if not hasattr(found, "push_range") and _is_null(nvtx.get_domain(DOMAIN).handle):
        return None
    return Domain(name, found, import_module("nvtx._lib"))


def _is_null(handle: Any) -> bool:
    """Whether the handle of a domain is a null pointer: what NVTX gives where no tool listens.

    nvtx 0.2.11 has no way to ask. Its extension type holds a name and, last, the pointer; of any
    other layout nothing is assumed, and the calls are made.
    """
    pointer, size = ctypes.sizeof(ctypes.c_void_p), type(handle).__basicsize__
    if sys.implementation.name != "cpython" or size != object.__basicsize__ + 2 * pointer:
        return False
    return ctypes.c_void_p.from_address(id(handle) + size - pointer).value is None


def number(payload: Any) -> Payload | None:
    """Return a payload as the int or float that NVTX takes.

    Raises
    ------
    TypeError
        If it is neither, nor NumPy's or PyTorch's equivalent.
    ValueError
        If it is an integer that 64 bits do not hold.
    """
    if payload is None or type(payload) is float:
        return payload
    try:
        whole = operator.index(payload)
    except TypeError:
        pass
    else:
        if not -(1 << 63) <= whole < 1 << 63:
            raise ValueError(f"The payload {whole} does not fit into 64 bits, signed.")
        return whole
    if hasattr(payload, "__float__") and not isinstance(payload, str):
        return float(payload)
    raise TypeError(f"A payload is a number, not a {type(payload).__name__}.")
