from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.grouping import group
from kernelscope.trace import missing_value

VALUES = st.none() | st.integers(0, 3) | st.sampled_from([-7, 2**20, 2**31 - 1])


def column(values: list[int | None], dtype: type[np.integer[Any]]) -> npt.NDArray[Any]:
    missing = missing_value(np.dtype(dtype))
    return np.array([missing if v is None else v for v in values], dtype=dtype)


@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20), st.sampled_from([np.int32, np.int64])
)
def test_groups_are_the_distinct_rows_in_order(
    rows: list[tuple[int | None, ...]],
    dtype: type[np.integer[Any]],
) -> None:
    columns = [column([row[i] for row in rows], dtype) for i in range(3)]
    found = group(*columns)
    ranked = [tuple((v is not None, v or 0) for v in row) for row in rows]
    expected = [rows[ranked.index(rank)] for rank in sorted(set(ranked))]
    assert list(found.keys) == expected
    codes = [0] * len(rows) if found.codes is None else found.codes.tolist()
    assert [found.keys[code] for code in codes] == rows
    for key, members in zip(found.keys, found.rows(), strict=True):
        picked = np.arange(len(rows))[members].tolist()
        assert picked == [i for i, row in enumerate(rows) if row == key]


def test_one_group_needs_no_codes() -> None:
    found = group(np.full(5, 7, np.int32), np.broadcast_to(np.int32(-(2**31)), (5,)))
    assert found.codes is None
    assert found.keys == ((7, None),)
