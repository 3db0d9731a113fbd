"""What kernelscope's own annotations say: version 1 of their scheme, the reader's side.

``docs/annotation-scheme.md`` defines it; :mod:`kernelscope.annotation` writes it. In the domain
``kernelscope`` a range's category says what part it plays, and its message may end in a block:
``conv1 {ks1 path=net.conv1; in=float32[64,3,32,32]; flops=1000}``. A block of another version is
left in the name: what it says is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Array, Categorical, ColumnData, distinct, missing_value

DOMAIN = "kernelscope"
CAPTURE = "capture"

ROLES: Mapping[int, str] = {
    1: "iteration", 2: "data loading", 3: "phase", 4: "function", 5: CAPTURE,
}  # fmt: skip
"""Categories of the domain; any other is the program's own."""

_MESSAGE = re.compile(r"(.*) \{ks1 ([^{}]*)\}", re.DOTALL)
_TENSOR = re.compile(r"(\w+)(\[[0-9,]*\])")
_ESCAPE = re.compile(r"%([0-9A-F]{2})")
_WHOLE = re.compile(r"[0-9]{1,18}")
"""What int64 surely holds."""

_MISSING = missing_value(np.dtype(np.int64))


def annotated_columns(
    domain: Categorical, text: Categorical, category: Array | None
) -> dict[str, ColumnData]:
    """Return the columns of `ranges` that the domain ``kernelscope`` fills, its names among them.

    Parameters
    ----------
    domain, text : Categorical, shape (n,)
        Domain and message of NVTX events.
    category : ndarray of int, shape (n,), optional
        Their categories.

    Returns
    -------
    dict
        Columns of shape (n,); none where no event is of the domain, at no cost.
    """
    if DOMAIN not in domain.categories:
        return {}
    mine = domain.codes == domain.categories.index(DOMAIN)
    rows = np.flatnonzero(mine)
    codes = text.codes[rows]
    used = [code for code in distinct(codes).tolist() if code >= 0]
    said = {code: _parsed(text.categories[code]) for code in used}

    def texts(of: Callable[[Mapping[str, str]], str | None]) -> Categorical:
        known = {code: of(fields) for code, (_, fields) in said.items()}
        return _spread(known, codes, rows, len(mine), ())

    def numbers(field: str) -> npt.NDArray[np.int64]:
        table = np.full(len(text.categories) + 1, _MISSING)
        for code, (_, fields) in said.items():
            if _WHOLE.fullmatch(fields.get(field, "")):
                table[code] = int(fields[field])
        found = np.full(len(mine), _MISSING)
        found[rows] = table[codes]
        return found

    name = _spread({code: name for code, (name, _) in said.items()}, codes, rows, len(mine), text)
    return {
        "name": name,
        "role": _roles(texts(lambda fields: fields.get("role")), rows, category),
        "module_path": texts(lambda fields: fields.get("path")),
        "input_shapes": texts(lambda fields: _tensors(fields, 2)),
        "input_dtypes": texts(lambda fields: _tensors(fields, 1)),
        "flops_model": numbers("flops"),
        "batch_size": numbers("batch"),
    }


def of_the_program(said: Mapping[str, ColumnData]) -> npt.NDArray[np.bool_] | None:
    """Return which events are not the capture's own range, shape (n,); None where all are not.

    That range says when a profiler shall record, not what the program does: it would lie around
    everything that was recorded.
    """
    role = said.get("role")
    if not isinstance(role, Categorical) or CAPTURE not in role.categories:
        return None
    return np.asarray(role.codes != role.categories.index(CAPTURE))


def _parsed(message: str) -> tuple[str, dict[str, str]]:
    """Return a range's name and the fields of its block."""
    match = _MESSAGE.fullmatch(message)
    if match is None:
        return message, {}
    pairs = (part.partition("=") for part in match[2].split("; "))
    return match[1], {
        key: _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
        for key, separator, value in pairs
        if separator
    }


def _tensors(fields: Mapping[str, str], part: int) -> str | None:
    """Return the dtypes (1) or shapes (2) of a range's inputs; None where one is not understood."""
    found = [_TENSOR.fullmatch(each) for each in fields.get("in", "").split(" ")]
    return " ".join(each[part] for each in found if each) if all(found) else None


def _spread(
    texts: Mapping[int, str | None],
    codes: Array,
    rows: Array,
    count: int,
    others: Categorical | tuple[()],
) -> Categorical:
    """Return a column of `count` rows that holds ``texts[code]`` in `rows`, else the `others`."""
    seen: dict[str, int] = {}
    column = np.full(count, -1, dtype=np.int32)
    if isinstance(others, Categorical):
        seen = {text: code for code, text in enumerate(others.categories)}
        column = others.codes.astype(np.int32)
    table = np.full(max(texts, default=0) + 2, -1, dtype=np.int32)
    for code, text in texts.items():
        table[code] = -1 if text is None else seen.setdefault(text, len(seen))
    column[rows] = table[codes]
    return Categorical(column, tuple(seen))


def _roles(said: Categorical, rows: Array, category: Array | None) -> Categorical:
    """Return the role that a block says, else the one that the category stands for."""
    seen = {text: code for code, text in enumerate(said.categories)}
    codes = said.codes
    if category is not None and len(rows):
        of = category[rows]
        for number, role in ROLES.items():
            here = rows[of == number]
            if len(here):
                silent = here[codes[here] < 0]
                codes[silent] = seen.setdefault(role, len(seen))
    return Categorical(codes, tuple(seen))
