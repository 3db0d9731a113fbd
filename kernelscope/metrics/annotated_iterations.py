"""What kernelscope's own annotations say of the iterations: their numbers, their batch size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Trace, is_missing

Int64s = npt.NDArray[np.int64]


def batch_size(trace: Trace, rows: Int64s) -> int | None:
    """How many samples does an iteration process, as its range says?

    Parameters
    ----------
    trace : Trace
        The trace.
    rows : ndarray of int64, shape (m,)
        The iterations' ranges.

    Returns
    -------
    int or None
        None where a range does not say, and where two say different sizes.
    """
    if not len(rows):
        return None
    said = trace.ranges["batch_size"][rows]
    same = said[0] > 0 and bool((said == said[0]).all())
    return int(said[0]) if same and not is_missing(said[:1])[0] else None


def labels(trace: Trace, rows: Int64s) -> list[str]:
    """What is each iteration called? Its range's name; an annotated one has its number behind it.

    Parameters
    ----------
    trace, rows
        As for :func:`batch_size`.
    """
    ranges = trace.ranges
    names, roles = ranges.categories("name"), ranges.categories("role")
    texts = [names[code] for code in ranges["name"][rows].tolist()]
    if "iteration" not in roles:
        return texts
    number = ranges["payload_int"][rows]
    annotated = (ranges["role"][rows] == roles.index("iteration")) & ~is_missing(number)
    return [
        f"{text} {number}" if annotated else text
        for text, number, annotated in zip(texts, number.tolist(), annotated.tolist(), strict=True)
    ]
