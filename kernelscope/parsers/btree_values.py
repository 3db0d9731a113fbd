"""Values of a chunk of rows as bytes: what lies side by side is fetched together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from kernelscope.parsers.btree_pages import Bytes
from kernelscope.parsers.btree_records import Cells, Field, fetch

_TOGETHER = 128  # bytes of a row that are fetched at once, or a few more
_LARGEST = 8


class Values:
    """The values of a chunk's fields, as bytes.

    To fetch a hundred bytes of each row costs little more than to fetch one, so fields that lie
    at one distance from each other in all rows are fetched together.

    Parameters
    ----------
    cells : Cells
        The chunk.
    wanted : iterable of Field
        Those that will be asked for.
    """

    def __init__(self, cells: Cells, wanted: Iterable[Field]) -> None:
        self._cells = cells
        self._offsets: dict[tuple[int, int], list[int]] = {}
        self._blocks: dict[tuple[int, int], Bytes] = {}
        for field in wanted:
            self._offsets.setdefault(_neighbours(field), []).append(field.offset)

    def numbers(self, field: Field, size: int, *, kind: str = "i") -> npt.NDArray[Any]:
        """Return big-endian numbers of `size` bytes from where a field begins, not yet copied."""
        where = _neighbours(field)
        first, last = min(self._offsets[where]), max(self._offsets[where]) + _LARGEST
        if where not in self._blocks:
            inside = field.before is self._cells.record and last <= self._cells.head.shape[1]
            self._blocks[where] = (
                self._cells.head[:, first:last]
                if inside
                else fetch(self._cells.data, field.before + first, last - first)
            )
        numbers = self._blocks[where][:, field.offset - first :][:, :size]
        return numbers.view(f">{kind}{size}")[:, 0]


def _neighbours(field: Field) -> tuple[int, int]:
    """Return what the fields share that are fetched together."""
    return id(field.before), field.offset // _TOGETHER
