"""Words of a command line that a shell takes as they stand, in text that can be shown anywhere."""

from __future__ import annotations

import re
import shlex

_SPECIAL = {"\\": "\\\\", "'": "\\'"}

_WORD = re.compile(r"""(?:\$'(?:\\.|[^'\\])*' | '[^']*' | "[^"]*" | [^\s'"])+""", re.VERBOSE)


def shell_word(text: str) -> str:
    r"""Return `text` as one word of a command line.

    What is not printable (a line break, bytes of a file name that are no UTF-8) is spelled out in
    ``$'…'``, which bash, zsh and ksh read: ``$'b\xff.sqlite'``.
    """
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_spelled, text))}'"


def shell_path(path: str) -> str:
    """Return a path as one word that is no option."""
    return shell_word(f"./{path}" if path.startswith("-") else path)


def split_words(command: str) -> list[str]:
    """Return the words of a command line as they are written, quotes included."""
    return _WORD.findall(command)


def _spelled(character: str) -> str:
    if character.isprintable():
        return _SPECIAL.get(character, character)
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
