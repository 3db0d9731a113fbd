"""What the ranges of the domain ``kernelscope`` say: version 1 of the scheme, the writer's side.

``docs/annotation-scheme.md`` is the definition. The parsers hold the reader's side on their own,
and a round trip in the tests holds the two together.

Plain numbers (an iteration's number) are NVTX's numeric payload. What else is known of a range is
text that is registered once, as part of its message: ``name {ks1 field=value; …}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

DOMAIN = "kernelscope"
VERSION = 1

ITERATION, DATA, PHASE, FUNCTION, CAPTURE = (
    "iteration", "data loading", "phase", "function", "capture",
)  # fmt: skip
ROLES = (ITERATION, DATA, PHASE, FUNCTION, CAPTURE)
"""The domain's first categories, numbered from 1 in this order. The order never changes."""

COLORS = {
    ITERATION: 0xFF2F6FAB, DATA: 0xFFE08A1E, PHASE: 0xFF4C9F50, FUNCTION: 0xFF8E5EA2,
    CAPTURE: 0xFF7F7F7F,
}  # fmt: skip
"""What the roles look like on a timeline, as ARGB."""

_BLOCK = re.compile(r" \{ks\d+ [^{}]*\}$")
_RESERVED = re.compile(r"[%;{}\x00-\x1f\x7f]")


def message(name: str, **fields: str | int | None) -> str:
    """Return a range's message: its name, and what is known of it in a block behind it.

    Parameters
    ----------
    name : str
        What the range is called.
    **fields
        The block's fields in order; those that are None are left out.
    """
    said = "; ".join(
        f"{key}={_escaped(value)}" for key, value in fields.items() if value is not None
    )
    # A name that looks as if it had a block gets one, so that it is not taken for it.
    return f"{name} {{ks{VERSION} {said}}}" if said or _BLOCK.search(name) else name


def described(tensors: Iterable[Any]) -> str:
    """Return shapes and dtypes as ``float32[64,3,224,224] int64[64]``.

    Parameters
    ----------
    tensors : iterable
        Anything with ``shape`` and ``dtype`` (NumPy, PyTorch, CuPy, JAX), or pairs of the two.
    """
    return " ".join(_tensor(each) for each in tensors)


def _tensor(value: Any) -> str:
    shape, dtype = value if isinstance(value, tuple) else (value.shape, value.dtype)
    # str() of a dtype is torch.float32, float32 or <class 'numpy.float32'>
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return f"{name.rpartition('.')[2]}[{','.join(str(int(extent)) for extent in shape)}]"


def _escaped(value: str | int) -> str:
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", str(value))
