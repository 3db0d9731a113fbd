"""What NVTX says of communication kernels: NCCL's own ranges, and PyTorch's around them.

NCCL opens a range for each of its calls, in the domain ``NCCL``. Between ``ncclGroupStart`` and
``ncclGroupEnd`` operations are only collected; the kernels are launched inside the
``ncclGroupEnd`` range. A *batch* is the operations that go to the device together: those of an
outermost group, or one by itself.

PyTorch's process groups name what the program asked for, ``nccl:all_to_all``, which NCCL may
have seen as a group of sends and receives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.communication_names import KINDS
from kernelscope.metrics.enclosing import Enclosed
from kernelscope.metrics.grouping import group
from kernelscope.metrics.intervals import sorting
from kernelscope.trace import Table, distinct, missing_value, widened

Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_KIND = -1
MISSING = missing_value(np.dtype(np.int64))

NCCL_DOMAINS = frozenset({"nccl", "rccl"})
"""In lower case."""

_OPERATIONS: dict[str, str] = {
    "ncclAllReduce": "all_reduce",
    "ncclReduceScatter": "reduce_scatter",
    "ncclReduce": "reduce",
    "ncclAllGather": "all_gather",
    "ncclAllGatherV": "all_gather",
    "ncclBroadcast": "broadcast",
    "ncclBcast": "broadcast",
    "ncclSend": "send_recv",
    "ncclRecv": "send_recv",
    # NCCL 2.28 and RCCL
    "ncclAlltoAll": "all_to_all",
    "ncclAllToAll": "all_to_all",
    "ncclAllToAllv": "all_to_all",
    "ncclGather": "gather",
    "ncclScatter": "scatter",
}
"""NCCL's calls that move data → kind."""

_PYTORCH: dict[str, str] = {
    "all_reduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_reduce_barrier": "barrier",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "_broadcast_oop": "broadcast",
    "reduce": "reduce",
    "_reduce_oop": "reduce",
    "all_gather": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send_recv",
    "recv": "send_recv",
}
"""What stands behind ``nccl:`` in a range of PyTorch's process groups → kind. A group of calls of
any kinds, ``nccl:coalesced``, is not among them."""

_PYTORCH_NAME = re.compile(r"nccl:(\w+)")

_OPEN, _CLOSE, _SEND, _RECV, _OTHER, _NOTHING = range(6)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batches:
    """Operations that NCCL sent to the device together, b batches.

    Attributes
    ----------
    of_range : ndarray of int32, shape (r,)
        The batch of each row of ``trace.ranges``; −1 for none.
    kind : ndarray of int8, shape (b,)
        Index into `KINDS` of what all its operations do; −1 where they differ, or it has none.
    operations : ndarray of int64, shape (b,)
        How many there are.
    message_bytes : ndarray of int64, shape (b,)
        Their messages together; of sends and receives the direction that moves more, since links
        carry both at once. Missing where the size of any was not recorded.
    each_bytes : ndarray of int64, shape (b,)
        The size of every single one, where all are equal; else missing.
    ranks : ndarray of int64, shape (b,)
        Ranks of their communicator; missing where not recorded, or they differ.
    """

    of_range: Int32s
    kind: Int8s
    operations: Int64s
    message_bytes: Int64s
    each_bytes: Int64s
    ranks: Int64s


def batches(ranges: Table) -> Batches:
    """Which NCCL operations went to the device together, and what did they move?"""
    rows = np.flatnonzero(ranges.holds("domain", lambda name: name.lower() in NCCL_DOMAINS))
    role, kind = _roles(ranges, rows)
    some = role != _NOTHING
    rows, role, kind = rows[some], role[some], kind[some]
    batch = np.full(len(rows), -1, dtype=np.int32)
    count = 0
    whose = group(ranges["process_id"][rows], ranges["thread_id"][rows])
    for places in whose.rows():
        mine = np.arange(len(rows))[places]
        mine = mine[sorting(ranges["start_ns"][rows[mine]])]
        begins = _begin(role[mine])
        batch[mine] = count + np.cumsum(begins, dtype=np.int32) - 1
        count += int(begins.sum())
    of_range = np.full(len(ranges), -1, dtype=np.int32)
    of_range[rows] = batch
    moves = role >= _SEND
    return _summed(of_range, ranges, (rows[moves], role[moves], kind[moves]), count)


def _roles(ranges: Table, rows: npt.NDArray[np.intp]) -> tuple[Int8s, Int8s]:
    """Return what each NCCL range is, and the kind of operation."""
    names = ranges.categories("name")
    codes = ranges["name"][rows]
    role = np.full(len(names) + 1, _NOTHING, dtype=np.int8)
    kind = np.full(len(names) + 1, NO_KIND, dtype=np.int8)
    special = {"ncclGroupStart": _OPEN, "ncclGroupEnd": _CLOSE, "ncclSend": _SEND}
    special |= {"ncclRecv": _RECV}
    for code in distinct(codes).tolist():
        text = names[code]
        if text in _OPERATIONS:
            kind[code] = KINDS.index(_OPERATIONS[text])
        role[code] = special.get(text, _OTHER if text in _OPERATIONS else _NOTHING)
    return role[codes], kind[codes]


def _begin(role: Int8s) -> Bools:
    """Return which ranges of a thread, in order of time, begin a batch.

    Those that are in no group do: the capture may have begun within one, so that an end
    without a start leaves the depth at 0.
    """
    depth = np.cumsum((role == _OPEN).astype(np.int64) - (role == _CLOSE))
    depth -= np.minimum(np.minimum.accumulate(depth), 0)
    before = np.concatenate((np.zeros(1, dtype=np.int64), depth[:-1]))
    return np.asarray(before == 0)


def _summed(
    of_range: Int32s,
    ranges: Table,
    moves: tuple[npt.NDArray[np.intp], Int8s, Int8s],
    count: int,
) -> Batches:
    """Return what the operations of each batch have in common, and what they move together."""
    rows, role, kind = moves
    batch = of_range[rows]
    size = widened(ranges["message_bytes"][rows])
    unknown = size == MISSING
    known = np.where(unknown, 0, size)

    def summed(which: Bools) -> Int64s:
        total = np.zeros(count, dtype=np.int64)
        np.add.at(total, batch[which], known[which])
        return total

    lacking = np.bincount(batch[unknown], minlength=count) > 0
    operations = np.bincount(batch, minlength=count).astype(np.int64)
    lacking |= operations == 0
    total = summed(role == _OTHER) + np.maximum(summed(role == _SEND), summed(role == _RECV))
    return Batches(
        of_range=of_range,
        kind=_unanimous(batch, kind, count, NO_KIND).astype(np.int8),
        operations=operations,
        message_bytes=np.where(lacking, MISSING, total),
        each_bytes=_unanimous(batch, size, count, MISSING),
        ranks=_unanimous(batch, widened(ranges["communicator_ranks"][rows]), count, MISSING),
    )


def _unanimous(
    batch: Int32s, values: npt.NDArray[Any], count: int, default: int
) -> npt.NDArray[np.int64]:
    """Return the value that all operations of each batch share, else `default`."""
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, batch, values)
    np.maximum.at(high, batch, values)
    return np.where(low == high, low, default)


def nccl_range(around: Enclosed, call: Int32s) -> Int32s:
    """Return the row of NCCL's innermost range around each of some calls; −1 for none."""
    found = np.full(len(call), -1, dtype=np.int32)
    for domain, innermost in around.innermost.items():
        if domain.lower() in NCCL_DOMAINS:
            found = np.maximum(found, _of_call(innermost, call))
    return found


def pytorch_range(around: Enclosed, call: Int32s) -> tuple[Int32s, Int8s]:
    """Return the row of the innermost ``nccl:…`` range around each call, and its kind."""
    rows = np.full(len(call), -1, dtype=np.int32)
    kind = np.full(len(call), NO_KIND, dtype=np.int8)
    innermost = around.innermost.get("")
    if innermost is None:
        return rows, kind
    ranges, parent = around.trace.ranges, around.nesting.parent
    kinds = _pytorch_kinds(ranges)
    at = _of_call(innermost, call)
    left = np.flatnonzero(at >= 0)
    while len(left):
        found = kinds[ranges["name"][at[left]]]
        hit = left[found != NO_KIND]
        rows[hit], kind[hit] = at[hit], found[found != NO_KIND]
        left = left[found == NO_KIND]
        at[left] = parent[at[left]]
        left = left[at[left] >= 0]
    return rows, kind


def _of_call(values: Int32s, call: Int32s) -> Int32s:
    return np.append(values, np.int32(-1))[call]  # −1: the last place


def _pytorch_kinds(ranges: Table) -> Int8s:
    kind = np.full(len(ranges.categories("name")) + 1, NO_KIND, dtype=np.int8)
    for code, text in enumerate(ranges.categories("name")):
        if text.startswith("nccl:") and (found := _PYTORCH_NAME.match(text)):
            name = _PYTORCH.get(found[1])
            kind[code] = NO_KIND if name is None else KINDS.index(name)
    return kind
