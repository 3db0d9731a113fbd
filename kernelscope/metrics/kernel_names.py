"""What a kernel's name says: the function behind template arguments, parameters and mangling."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|_GLOBAL__N_\w*|\{anonymous\}")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_MANGLED = re.compile(r"_ZN?K?(?=L?\d)")
_LENGTH = re.compile(r"L?(\d+)")


def function_name(name: str) -> str:
    """Return a kernel's qualified name without return type, template arguments and parameters.

    ``void ns::(anonymous namespace)::f<int>(float *)`` is ``ns::f``. Of a mangled name
    (Itanium ABI) the length-prefixed identifiers are read: ``_ZN2ns1fIiEEvPf`` is ``ns::f``.
    """
    mangled = _MANGLED.match(name)
    if mangled:
        return _demangled(name, mangled.end())
    plain = _ANONYMOUS.sub("", name)
    while (shorter := _ARGUMENTS.sub("", plain)) != plain:
        plain = shorter
    plain = re.split(r"[(<\[]", plain, maxsplit=1)[0].strip()
    words = plain.split(" ")
    return "::".join(part for part in words[-1].split("::") if part)


def _demangled(name: str, position: int) -> str:
    parts: list[str] = []
    while found := _LENGTH.match(name, position):
        position = found.end() + int(found[1])
        parts.append(name[found.end() : position])
        if not name.startswith("_ZN"):
            break
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_"))
