"""One kernel, several spellings: how the names that two tools write are compared."""

from __future__ import annotations

import re
from collections.abc import Callable

from kernelscope.parsers.demangle import demangled

_ANONYMOUS = ("(anonymousnamespace)", "<unnamed>", "{anonymous}", "`anonymous-namespace'")
_CAST = re.compile(
    r"\((?:bool|(?:un)?signed(?:char|short|int|long|longlong)?|char|short|int|long|longlong)\)"
    r"(?=[-0-9tf])"
)
_SUFFIX = re.compile(r"(?<=[0-9])[uUlL]{1,3}(?![0-9A-Za-z_])")
_TRUTH = re.compile(r"(?<![0-9A-Za-z_])(?:true|false)(?![0-9A-Za-z_])")
_BLANKS = re.compile(r"\s+")


def spelled(name: str) -> str:
    """Return `name` without what tools write differently: blanks, casts, suffixes of numbers.

    ``void f<(int)4, true>(float *)`` and ``f<4, 1>(float*)`` come out alike, and as the mangled
    name does.
    """
    text = demangled([name])[name] if name.startswith("_Z") else name
    text = _BLANKS.sub("", text.removeprefix("void "))
    for each in _ANONYMOUS:
        text = text.replace(each, "@")
    text = _SUFFIX.sub("", _CAST.sub("", text))
    return _TRUTH.sub(lambda found: "1" if found[0] == "true" else "0", text)


def without_parameters(name: str) -> str:
    """Return :func:`spelled` without the list of parameters at its end."""
    text = spelled(name)
    if not text.endswith(")"):
        return text
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if not depth:
            return text[:place] or text
    return text


def base(name: str) -> str:
    """Return the function's own name, without scope and template arguments."""
    text = without_parameters(name)
    head = text.partition("<")[0]
    return head.rpartition("::")[2] or text


SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("exact", str),
    ("spelling", spelled),
    ("without parameters", without_parameters),
    ("base name", base),
)
"""Ways to compare names, the strictest first."""
