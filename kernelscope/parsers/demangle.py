"""Mangled C++ names (Itanium ABI, ``_Z…``) as people write them, in bounded time.

nvprof stores kernels under the names that the compiler gave them. LLVM's demangler, through the
`pycxxfilt` package, turns them back; it knows every construct that today's compilers write. It
has no bound of its own: a name of 250 characters whose substitutions double at every step
(``S_IS0_S0_E``) spells half a gigabyte. So the length of the outcome is bounded beforehand, and
a name that could be longer stays as it is, as does one that is not valid: nvprof, too, prints the
mangled name where its demangler gives up.

The rules that the bound rests on are those of https://itanium-cxx-abi.github.io/cxx-abi/abi.html:
``S_``, ``S0_``, … stand for a component that ended before, ``T_``, ``T0_``, … for a template
argument, and ``Dp`` repeats what follows for each member of a pack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

LONGEST_NAME = 4096
"""Longer names stay mangled: the demangler recurses, and its stack is that of the thread."""

LARGEST_BOUND = 1 << 28
"""Names that could be longer than this stay mangled. Of 403 kernels of real traces the largest
bound is 2²⁷, the longest demangled name 5314 characters."""

LONGEST_RESULT = 1 << 16
"""A demangled name that is longer than this is of no use to anybody."""

MOST_OUTPUT = 1 << 27
"""Characters that all names of a file may spell together; the rest stay mangled."""

_SPELLED = 72
"""What one character of a mangled name can spell at most: ``Ss`` is std::basic_string<char, …>
with its traits and its allocator."""

_FOLDED = (
    "pl|mi|ml|dv|rm|eo|an|or|ls|rs|pL|mI|mL|dV|rM|eO|aN|oR|lS|rS|eq|ne|lt|gt|le|ge|aa|oo|cm|ds|"
    "pm|aS"
)
_REFERENCE = re.compile(rf"S([0-9A-Z]*)_|T([0-9A-Z]*)_|(Dp|sp|cv|f[lrLR](?={_FOLDED}))")


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Return each name as C++, or unchanged where it is no mangled name or too costly.

    Parameters
    ----------
    names : iterable of str
        Distinct names.
    """
    result: dict[str, str] = {}
    spelled = 0
    for name in names:
        result[name] = name
        if spelled > MOST_OUTPUT or not name.startswith("_Z") or _demangler() is None:
            continue
        if len(name) > LONGEST_NAME or longest_outcome(name) > LARGEST_BOUND:
            continue
        try:
            text = _demangler().itanium_demangle(name)
        except ValueError:  # not valid, or an embedded NUL
            continue
        spelled += len(text or "")
        if text and len(text) <= LONGEST_RESULT:
            result[name] = text
    return result


def available() -> bool:
    """Return whether the demangler is installed."""
    return _demangler() is not None


@cache
def _demangler() -> Any:
    try:
        return import_module("pycxxfilt")
    except ImportError:
        return None


def longest_outcome(name: str) -> int:
    """Return an upper bound of how many characters a mangled name spells.

    Each reference spells at most what came before it: a substitution contains only
    references to components that ended earlier, which have smaller numbers, and lie before its
    own first mention. The text is not parsed, so that letters of identifiers may be taken for
    references; that makes the bound larger, never smaller.
    """
    own = _SPELLED // 8 * len(name) + _SPELLED * len(_REFERENCE.findall(name))
    total, factor, conversions = own, 1, 0
    components: dict[int, int] = {}
    seen: list[tuple[int, int]] = []
    arguments, after = own, -1
    for match in _REFERENCE.finditer(name):
        component, argument, expansion = match.groups()
        if component is not None:
            number = int(component, 36) + 1 if component else 0
            if number not in components:
                components[number] = own + sum(size for least, size in seen if least < number)
            size = components[number]
            seen.append((number, size))
        elif argument is not None:
            if after < 0 or "I" in name[after : match.start()]:  # other arguments, perhaps
                arguments, after = total, match.start()
            size = arguments
            seen.append((-1, size))
        else:
            size = 0
            conversions += expansion == "cv"
            factor *= 1 if expansion == "cv" else _pack(name)
        total += size
        if total * factor > LARGEST_BOUND << 10:
            break
    return total * factor * (1 + conversions * name.count("T"))


def _pack(name: str) -> int:
    """Return how many members a parameter pack of `name` can have at most."""
    first = name.find("J")
    return 1 if first < 0 else max(1, len(name) - first)
