"""Family, operation and pipe of kernels, for tables that have a row per name or more."""

from __future__ import annotations

from collections.abc import Sequence

from kernelscope.metrics.kernel_decoder import decode_all
from kernelscope.trace import Array, Categorical

FIELDS = ("family", "operation", "pipe")


def name_columns(names: Sequence[str], codes: Array) -> dict[str, Categorical]:
    """What do the names of these rows say of their work?

    Parameters
    ----------
    names : sequence of str, length k
        The distinct names; each is decoded once.
    codes : ndarray of int32, shape (n,)
        The name of each row, by its index; −1 where missing.

    Returns
    -------
    dict of str to Categorical
        ``family``, ``operation`` and ``pipe``, as ``decoder_results.NAME_COLUMNS`` means them.
    """
    found = decode_all(tuple(names))
    columns: dict[str, Categorical] = {}
    for field in FIELDS:
        of_name = Categorical.of([*(getattr(each, field) for each in found), None])
        columns[field] = Categorical(of_name.codes[codes], of_name.categories)
    return columns
