"""Text of a file on a terminal: what would steer the terminal is spelled out.

Kernel, GPU and process names, versions and file names come from whoever made the trace. An escape
sequence in one of them could rewrite the screen, and a bidirectional control could make a line
read as another.
"""

from __future__ import annotations

import re

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # bytes that are no UTF-8, as Python holds them; no output encodes them
)
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")  # JSON itself escapes C0


def printable(text: str) -> str:
    r"""Return `text` with each control character spelled out: ``\n``, ``\x1b``, ``\u202e``.

    A file name's byte that is no UTF-8 becomes ``\xff``.
    """
    return text if text.isprintable() else _STEERING.sub(_spelled, text)


def json_text(text: str) -> str:
    r"""Return JSON `text` with the controls that JSON allows in strings as ``\u009b``.

    It holds the same values, can be encoded, and can be shown on a terminal.
    """
    return text if text.isascii() and "\x7f" not in text else _UNSAFE_IN_JSON.sub(_in_json, text)


def _spelled(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _in_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
