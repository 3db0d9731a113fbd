"""The data of ``devices.toml``: read once, an entry at a time, and only what is asked for.

A trace names one or two GPUs of the hundred and more that are listed, so that parsing all of them
would cost an analysis more than everything else it does with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

_ENTRY = "\n[[gpu]]\n"
_CAPABILITY = '\n[capability."'
_NAMES = re.compile(r'name = (?P<name>"[^\n]*")\nalso = (?P<also>\[[^\n]*\])\n')
_DROPPED = frozenset({"nvidia", "geforce", "tesla"})
_WORD = re.compile(r"[a-z0-9.]+")
_LEAST_NAME = 3
"""What is shorter stands in names of every kind."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the catalogue.

    Attributes
    ----------
    value : Any
        A number, a text, or a tuple of numbers.
    confidence : str
        A: two or more independent sources agree, or the device itself says so; B: one that fits
        the other figures; C: uncertain.
    sources : tuple of str
        Where it is from, in words.
    """

    value: Any
    confidence: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A GPU of the catalogue, as far as reading it costs nothing.

    Attributes
    ----------
    name : str
        As CUDA reports it.
    also : tuple of str
        Other names; two GPUs may share one.
    text : str
        The entry in TOML.
    """

    name: str
    also: tuple[str, ...]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of it."""
        return (self.name, *self.also)


@cache
def _parts() -> tuple[str, ...]:
    import pkgutil  # noqa: PLC0415 - not for --help; importlib.resources costs ten times as much

    data = pkgutil.get_data("kernelscope.device", "devices.toml")
    if data is None:
        raise FileNotFoundError("devices.toml is missing from the installed package")
    return tuple(data.decode("utf-8").split(_ENTRY))


@cache
def sources() -> Mapping[str, str]:
    """Return the sources in words, by the keys that figures name them with."""
    return dict(_parsed(_parts()[0].partition(_CAPABILITY)[0])["source"])


@cache
def capability_texts() -> Mapping[str, str]:
    """Return what is said of each compute capability, in TOML: its table and those inside."""
    found: dict[str, str] = {}
    for part in _parts()[0].split(_CAPABILITY)[1:]:
        name = part.partition('"')[0]
        found[name] = found.get(name, "") + _CAPABILITY + part
    return found


@cache
def capability(name: str) -> Mapping[str, Any] | None:
    """Return what is known of a compute capability, such as ``8.6``; None where nothing is."""
    text = capability_texts().get(name)
    return None if text is None else _parsed(text)["capability"][name]


@cache
def entries() -> tuple[Entry, ...]:
    """Return every GPU of the catalogue, in its order."""
    return tuple(_entry(part) for part in _parts()[1:])


def _entry(text: str) -> Entry:
    match = _NAMES.match(text)
    if match is None:
        raise ValueError(f"an entry of devices.toml does not begin with its names: {text[:80]!r}")
    # TOML's basic strings, and lists of them, are JSON's where they hold no control characters.
    return Entry(json.loads(match["name"]), tuple(json.loads(match["also"])), text)


@cache
def parsed(entry: Entry) -> Mapping[str, Any]:
    """Return an entry's keys and values."""
    return _parsed(entry.text)


def _parsed(text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - not for --help

    return tomllib.loads(text)


def figure(raw: list[Any]) -> Figure:
    """Return ``[value, confidence, sources]`` of the TOML with its sources in words."""
    value, confidence, keys = raw
    named = sources()
    shown = tuple(value) if isinstance(value, list) else value
    return Figure(shown, confidence, tuple(named[key] for key in keys.split()))


def figures(raw: Mapping[str, Any]) -> dict[str, Figure]:
    """Return those values of a TOML table that are figures."""
    return {key: figure(value) for key, value in raw.items() if key != "also" and _is_figure(value)}


def _is_figure(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and value[1] in ("A", "B", "C")


def plain(name: str) -> str:
    """Return a GPU's name without what is written now one way, now another.

    ``NVIDIA A100-SXM4-80GB`` and ``A100 SXM4 80 GB`` are one name.
    """
    return "".join(word for word in _WORD.findall(name.casefold()) if word not in _DROPPED)


@cache
def _by_name() -> Mapping[str, tuple[Entry, ...]]:
    """Return the GPUs of each name; of several, those whose own name it is first."""
    found: dict[str, dict[Entry, None]] = {}
    for entry in entries():
        found.setdefault(plain(entry.name), {})[entry] = None
    for entry in entries():
        for name in entry.also:
            found.setdefault(plain(name), {})[entry] = None
    return {name: tuple(each) for name, each in found.items()}


def named(name: str) -> tuple[Entry, ...]:
    """Return the GPUs that go by `name`: those whose own name it is first."""
    return _by_name().get(plain(name), ())


def like(name: str) -> tuple[str, ...]:
    """Return the names of GPUs in which `name` stands, as CUDA reports them: ``P100`` in two."""
    wanted = plain(name)
    if len(wanted) < _LEAST_NAME:
        return ()
    return tuple(entry.name for entry in entries() if any(_holds(e, wanted) for e in entry.names))


def _holds(name: str, wanted: str) -> bool:
    """Return whether a word of `name`, and what follows it, begins as `wanted`."""
    words = _WORD.findall(name.casefold())
    return any("".join(words[place:]).startswith(wanted) for place in range(len(words)))
