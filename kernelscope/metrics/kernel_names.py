"""What a kernel's name says: the function behind template arguments, parameters and mangling."""

from __future__ import annotations

import re

LONGEST_HEAD = 8192
"""Characters of a name that are looked at: what a kernel is stands at its start. Of 1,100 names of
real traces the longest part before the parameters has 5,500."""

_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class)\)|<unnamed>|\{anonymous\}")
_CLANG_ANONYMOUS = re.compile(r"_GLOBAL__N_\w*")
_MANGLED = re.compile(r"_ZN?K?(?=L?\d)")
_LENGTH = re.compile(r"L?(\d{1,9})")
_OUTSIDE = re.compile(r"[<(\[]")
_ANGLES = re.compile(r"[<>]")
_RETURNED = re.compile(r">(?:::type)? ([\w:]+)[<(]")


def function_name(name: str) -> str:
    """Return a kernel's qualified name without return type, template arguments and parameters.

    ``void ns::(anonymous namespace)::f<int>(float *)`` is ``ns::f``. Of a mangled name
    (Itanium ABI) the length-prefixed identifiers are read: ``_ZN2ns1fIiEEvPf`` is ``ns::f``.
    """
    mangled = _MANGLED.match(name)
    if mangled:
        return _demangled(name, mangled.end())
    return name_parts(name)[0]


def name_parts(name: str) -> tuple[str, str, str]:
    """Return a name's qualified function, its template arguments and its parameters.

    ``void ns::f<int, g<4>>(float *)`` is ``("ns::f", "int, g<4>", "float *)")``. The name is read
    once from left to right, as far as :data:`LONGEST_HEAD`; brackets need not be balanced.

    Parameters
    ----------
    name : str
        A name that is not mangled.
    """
    text = name[:LONGEST_HEAD]
    if "anonymous" in text or "<unnamed>" in text:
        text = _ANONYMOUS.sub("", text)
    pieces: list[str] = []
    arguments, start = "", 0
    while (found := _OUTSIDE.search(text, start)) and found[0] == "<":
        pieces.append(text[start : found.start()])
        close = _closing(text, found.end())
        arguments, start = text[found.end() : close], close + 1
    end = found.start() if found else len(text)
    pieces.append(text[start:end])
    qualified = _last_word("".join(pieces))
    if "enable_if" in qualified:  # the return type holds a comparison, which is no bracket
        returned = _RETURNED.search(text)
        qualified = returned[1] if returned else qualified
    return qualified, arguments.strip(), text[end + 1 :]


def _closing(text: str, start: int) -> int:
    """Return where the template arguments that begin at `start` end."""
    depth = 1
    for bracket in _ANGLES.finditer(text, start):
        depth += 1 if bracket[0] == "<" else -1
        if not depth:
            return bracket.start()
    return len(text)


def _last_word(text: str) -> str:
    words = text.split()
    plain = _CLANG_ANONYMOUS.sub("", words[-1]) if words else ""
    return "::".join(part for part in plain.split("::") if part)


def _demangled(name: str, position: int) -> str:
    parts: list[str] = []
    while found := _LENGTH.match(name, position):
        position = found.end() + int(found[1])
        parts.append(name[found.end() : position])
        if not name.startswith("_ZN"):
            break
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_"))
