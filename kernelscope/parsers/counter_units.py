"""Units as profilers spell them → the units of the canonical tables, exactly.

Nsight Compute scales each row of a text by itself, so that ms stand beside us and Kbyte beside
byte; its prefixes are powers of ten. nvprof's KB, MB and GB are powers of two: what it prints as
``60.325350GB/s`` its database holds as 64,773,851,202 B/s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Unit:
    """What a printed number is to be multiplied with, as a quotient of integers: no digit is lost.

    Attributes
    ----------
    name : str or None
        The canonical unit; None where the source names none.
    times, over : int
        value = printed · times / over.
    """

    name: str | None
    times: int = 1
    over: int = 1


_TIMES_NS = {
    "ns": 1, "nsecond": 1, "nanosecond": 1, "us": 10**3, "usecond": 10**3, "microsecond": 10**3,
    "ms": 10**6, "msecond": 10**6, "millisecond": 10**6, "s": 10**9, "sec": 10**9,
    "second": 10**9,
}  # fmt: skip
_SECOND_NS = 10**9
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_THINGS = (
    "block", "cluster", "cta", "cycle", "inst", "instruction", "item", "op", "packet", "pass",
    "register", "request", "sample", "sector", "sm", "tag", "thread", "transaction", "warp",
    "wavefront",
)  # fmt: skip
_PREFIXED = re.compile(
    rf"(?P<prefix>[kmgtp]?)(?P<base>bytes?|hz|{'|'.join(_THINGS)})s?", re.IGNORECASE
)


@cache
def of_ncu(text: str) -> Unit:
    """Return what a unit of Nsight Compute means: ``Kbyte``, ``cycle/nsecond``, ``inst/cycle``, ….

    Things that are counted are ``count``; a quotient of them keeps what it is per: ``1/cycle``. A
    unit that is not known stays as it is. What is per Kbyte is divided by 1000 where a report says
    the same per byte: ncu scales a quotient as if its bytes stood above the line.
    """
    above, slash, below = (part.strip() for part in text.partition("/"))
    top = _numerator(above)
    if top is None:
        return Unit(text or None)
    if not slash or not below:
        return top
    if below.lower() in _TIMES_NS:
        return _per_second(above, top, _TIMES_NS[below.lower()])
    bottom = _numerator(below)
    scale = 1 if bottom is None else bottom.times
    thing = "byte" if bottom is not None and bottom.name == "bytes" else below.lower()
    name = "1" if top.name == "count" else top.name
    return Unit(f"{name}/{thing}", top.times * scale, top.over)


def _per_second(above: str, top: Unit, per_ns: int) -> Unit:
    name = {"count": "1/s", "ns": "1"}.get(top.name or "", f"{top.name}/s")
    if above.lower() in ("cycle", "cycles"):
        name = "Hz"
    if top.name == "ns":
        return Unit(name, top.times, top.over * per_ns)
    return Unit(name, top.times * _SECOND_NS // per_ns, top.over)


def _numerator(text: str) -> Unit | None:
    """Return a unit without a slash; None where it is not known."""
    if text == "%":
        return Unit("ratio", 1, 100)
    if text.lower() in _TIMES_NS:
        return Unit("ns", _TIMES_NS[text.lower()])
    match = _PREFIXED.fullmatch(text)
    if match is None:
        return None
    base = match["base"].lower()
    name = "bytes" if base.startswith("byte") else "Hz" if base == "hz" else "count"
    return Unit(name, _DECIMAL[match["prefix"].lower()])


_NVPROF = re.compile(r"(?P<prefix>[KMGT]?)B(?P<rate>/s)?")


@cache
def of_nvprof(text: str) -> Unit:
    """Return what a unit of nvprof means: ``%``, ``us``, ``MB``, ``GB/s``; others stay."""
    if text == "%":
        return Unit("ratio", 1, 100)
    if text in _TIMES_NS:
        return Unit("ns", _TIMES_NS[text])
    match = _NVPROF.fullmatch(text)
    if match is None:
        return Unit(text or None)
    return Unit("bytes/s" if match["rate"] else "bytes", _BINARY[match["prefix"].lower()])
