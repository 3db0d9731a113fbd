"""What each communication kernel does, and how many bytes it moves, from its name and NVTX."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelscope.errors import SelectionError
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.collective_ranges import (
    MISSING,
    NO_KIND,
    Batches,
    batches,
    nccl_range,
    pytorch_range,
)
from kernelscope.metrics.communication_names import KINDS, UNKNOWN, Known, recognise
from kernelscope.trace import Array, Table, Trace, distinct

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

REASONS: tuple[str, ...] = (
    "",
    "no_nvtx_range",
    "no_size_in_nvtx",
    "mixed_group",
    "kind_unknown",
    "ranks_unknown",
)
"""Why the size of a call is not known; index 0 where it is.

- ``no_nvtx_range``: no range of NCCL or of PyTorch's process groups holds the launch;
- ``no_size_in_nvtx``: the range carries none: NCCL's structured payloads are in the recorded
  report, and ``nsys export --include-blobs=true`` writes them;
- ``mixed_group``: the operations of one group ran in several kernels and were not all of one
  size, or are not what the kernel does;
- ``kind_unknown``: neither name nor NVTX tells what the kernel does, and with it what its
  message counts;
- ``ranks_unknown``: the message is one rank's share, and the number of ranks is not known.
"""

NAME, NVTX, PAYLOAD, TEXT, USER = 1, 2, 1, 2, 2
"""Bits that say where a figure comes from: of a kind, of bytes, of ranks."""

SHARE_OF_A_RANK: frozenset[str] = frozenset(
    {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}
)
"""Collectives whose NCCL call counts what one rank gives or gets of an array n times as large."""

BUS_FACTORS: dict[str, Callable[[Floats], Floats]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(SHARE_OF_A_RANK, lambda n: (n - 1) / n),
}
"""Bytes on a link per byte of data, by number of ranks; 1 for the others (broadcast, reduce,
send_recv). Source: nccl-tests, doc/PERFORMANCE.md."""

_ONE = frozenset({"broadcast", "reduce", "send_recv"})

_ELEMENT_BYTES: dict[str, int] = {
    "i8": 1, "int8_t": 1, "u8": 1, "uint8_t": 1, "f8e4m3": 1, "f8e5m2": 1,
    "f16": 2, "half": 2, "bf16": 2, "b16": 2, "__nv_bfloat16": 2, "rccl_bfloat16": 2,
    "i32": 4, "int32_t": 4, "u32": 4, "uint32_t": 4, "f32": 4, "float": 4,
    "i64": 8, "int64_t": 8, "u64": 8, "uint64_t": 8, "f64": 8, "double": 8,
}  # fmt: skip
_REDUCING = re.compile(
    r"nccl\w*Kernel_(?:AllReduce|Reduce)_(?:[A-Z0-9]+_)*?(?:Sum|Prod|MinMax|Min|Max|PreMulSum"
    r"|SumPostDiv)_(\w+?)(?:_(?:RING|TREE)_\w+)?\b"
    r"|nccl(?:AllReduce|Reduce)\w*Kernel_[a-z]+_(\w+)\b"
)
"""NCCL's kernels that reduce a whole array name its element type: _Sum_f32_RING_LL,
_RING_LL_Sum_float, _sum_f16. Types of equal size share kernels, of different size never."""
_SIZES = re.compile(r", sizes = (\[[\[\]0-9, ]*\])")
"""What PyTorch's ``emit_nvtx(record_shapes=True)`` adds: the shapes of the operator's inputs."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calls:
    """The c executions of communication kernels, in the order of ``trace.kernels``.

    Attributes
    ----------
    rows : ndarray of int, shape (c,)
        Rows of ``trace.kernels``.
    libraries : tuple of str
        The distinct libraries.
    library : ndarray of int32, shape (c,)
        Index into `libraries`.
    kind : ndarray of int8, shape (c,)
        Index into `KINDS`.
    kind_source : ndarray of int8, shape (c,)
        `NAME` or `NVTX`; 0 where the kind is unknown.
    bytes : ndarray of int64, shape (c,)
        Size of the data as nccl-tests counts it; missing where not known.
    whole : ndarray of bool, shape (c,)
        Whether the message is all of the data even where NCCL counts one rank's share: an
        all-to-all made of sends has one for every peer.
    bytes_source : ndarray of int8, shape (c,)
        `PAYLOAD` or `TEXT`; 0 where missing.
    reason : ndarray of int8, shape (c,)
        Index into `REASONS`.
    ranks : ndarray of int64, shape (c,)
        Ranks of the communicator; missing where not known.
    ranks_source : ndarray of int8, shape (c,)
        `PAYLOAD` or `USER`; 0 where missing.
    """

    rows: npt.NDArray[np.intp]
    libraries: tuple[str, ...]
    library: Int32s
    kind: Int8s
    kind_source: Int8s
    bytes: Int64s
    whole: Bools
    bytes_source: Int8s
    reason: Int8s
    ranks: Int64s
    ranks_source: Int8s

    def bus_factor(self) -> Floats:
        """Return how many bytes a link carries per byte of data, shape (c,); NaN if unknown."""
        factor = np.full(len(self.rows), np.nan)
        n = np.where(self.ranks == MISSING, np.nan, self.ranks)
        for code, name in enumerate(KINDS):
            mine = self.kind == code
            if name in BUS_FACTORS:
                factor[mine] = BUS_FACTORS[name](n[mine])
            elif name in _ONE:
                factor[mine] = 1.0
        return factor


def communication_calls(
    trace: Trace,
    *,
    attribution: Attribution | None = None,
    ranks: int | None = None,
    communication: Sequence[str] = (),
) -> Calls:
    """What does each communication kernel do, and how much does it move?

    The kernel's name says what it does, as far as it can; where it cannot, or names sends and
    receives of which a collective may be made, the ranges around the launch decide: PyTorch's
    first, which name what the program asked for, then NCCL's own.

    Parameters
    ----------
    trace : Trace
        Its kernels, calls and ranges are read.
    attribution : Attribution, optional
        Of the same trace, where it was made before.
    ranks : int, optional
        Ranks of every communicator of which the trace does not tell; at least 1.
    communication : sequence of str
        Further kernels; see :func:`kernelscope.metrics.communication_names.user_pattern`.

    Raises
    ------
    SelectionError
        If a pattern cannot be read, or there are no ranks.
    """
    if ranks is not None and ranks < 1:
        raise SelectionError(f"A communicator of {ranks} ranks cannot be.", "Give 1 or more.")
    known = recognise(trace.kernels.categories("name"), communication)
    calls, name_kind = _from_names(trace.kernels, known)
    if len(calls.rows) and len(trace.ranges):
        calls = _with_ranges(calls, name_kind, attribution or attribute(trace))
    return _sized(calls, ranks)


def _from_names(kernels: Table, known: Sequence[Known | None]) -> tuple[Calls, Int8s]:
    """Return the calls with what their names say, and that as an index into `KINDS`."""
    talks = np.array([each is not None for each in known], dtype=np.bool_)
    rows = np.flatnonzero(talks[kernels["name"]]) if talks.any() else np.empty(0, dtype=np.intp)
    libraries = tuple(dict.fromkeys(each.library for each in known if each is not None))
    library = [-1 if each is None else libraries.index(each.library) for each in known]
    kinds = [NO_KIND if each is None else KINDS.index(each.kind) for each in known]
    code = kernels["name"][rows]
    kind = np.array(kinds, dtype=np.int8)[code] if len(rows) else np.empty(0, dtype=np.int8)
    count = len(rows)
    nothing = np.zeros(count, dtype=np.int8)
    calls = Calls(
        rows=rows,
        libraries=libraries,
        library=np.array(library, dtype=np.int32)[code] if count else np.empty(0, dtype=np.int32),
        kind=kind,
        kind_source=np.where(kind == KINDS.index(UNKNOWN), 0, NAME).astype(np.int8),
        bytes=np.full(count, MISSING),
        whole=np.zeros(count, dtype=np.bool_),
        bytes_source=nothing,
        reason=np.full(count, REASONS.index("no_nvtx_range"), dtype=np.int8),
        ranks=np.full(count, MISSING),
        ranks_source=nothing,
    )
    return calls, kind


def _with_ranges(calls: Calls, name_kind: Int8s, attribution: Attribution) -> Calls:
    around = attribution.enclosed
    trace = around.trace
    call = attribution.kernels.call[calls.rows]
    together = batches(trace.ranges)
    in_nccl = nccl_range(around, call)
    batch = np.append(together.of_range, np.int32(-1))[in_nccl]
    row, asked = pytorch_range(around, call)
    said = np.append(together.kind, np.int8(NO_KIND))[batch]
    open_kinds = [KINDS.index(name) for name in (UNKNOWN, "send_recv")]
    kind, source = name_kind.copy(), calls.kind_source.copy()
    for better in (said, asked):  # the last word is PyTorch's
        use = np.isin(name_kind, open_kinds) & (better != NO_KIND)
        kind[use], source[use] = better[use], NVTX
    agreeing = kind == name_kind
    source[agreeing] = calls.kind_source[agreeing]
    found = replace(calls, kind=kind, kind_source=source)
    return _texts(_payloads(found, together, batch), trace, row)


def _payloads(calls: Calls, together: Batches, batch: Int32s) -> Calls:
    """Add message sizes and ranks from NCCL's structured payloads."""
    inside = batch >= 0
    kernels = np.append(np.bincount(batch[inside], minlength=len(together.kind)), 0)[batch]

    def of_batch(values: Int64s) -> Int64s:
        return np.append(values, MISSING)[batch]

    operations = of_batch(together.operations)
    said = np.append(together.kind, np.int8(NO_KIND))[batch]
    p2p, all_to_all = KINDS.index("send_recv"), KINDS.index("all_to_all")
    fits = (said == calls.kind) | ((said == p2p) & (calls.kind == all_to_all))
    single = of_batch(together.each_bytes)
    per_kernel = (operations == kernels) & (single != MISSING) & (said != p2p)
    size = np.where(kernels == 1, of_batch(together.message_bytes), MISSING)
    size = np.where((kernels > 1) & per_kernel, single, size)
    size[~fits] = MISSING
    crowded = inside & ((kernels > 1) | ((operations > 0) & ~fits))
    ranks = of_batch(together.ranks)
    return replace(
        calls,
        bytes=size,
        whole=said == p2p,
        bytes_source=np.where(size == MISSING, 0, PAYLOAD).astype(np.int8),
        reason=_reasons(calls, inside, crowded, size),
        ranks=ranks,
        ranks_source=np.where(ranks == MISSING, 0, PAYLOAD).astype(np.int8),
    )


def _reasons(calls: Calls, inside: Bools, crowded: Bools, size: Int64s) -> Int8s:
    """Return why the size of each call is not known."""
    reason = np.full(len(calls.rows), REASONS.index("no_size_in_nvtx"), dtype=np.int8)
    reason[crowded] = REASONS.index("mixed_group")
    reason[~inside] = REASONS.index("no_nvtx_range")
    reason[calls.kind == KINDS.index(UNKNOWN)] = REASONS.index("kind_unknown")
    reason[size != MISSING] = 0
    return reason


def _texts(calls: Calls, trace: Trace, row: Int32s) -> Calls:
    """Add sizes from the shapes in PyTorch's ranges, where the kernel names the element type.

    Only for collectives whose input is the whole array, and where the range launched this one
    communication kernel.
    """
    if not (row >= 0).any():
        return calls
    alone = np.bincount(row[row >= 0], minlength=len(trace.ranges)) == 1
    whole = np.isin(calls.kind, [KINDS.index("all_reduce"), KINDS.index("reduce")])
    use = np.flatnonzero((calls.bytes == MISSING) & (row >= 0) & whole)
    use = use[alone[row[use]]]
    names = trace.kernels.categories("name")
    width = _looked_up(trace.kernels["name"][calls.rows[use]], names, _element_bytes)
    count = _looked_up(trace.ranges["name"][row[use]], trace.ranges.categories("name"), _elements)
    known = (width != MISSING) & (count != MISSING)
    use = use[known]
    size, source, reason = calls.bytes.copy(), calls.bytes_source.copy(), calls.reason.copy()
    size[use] = width[known] * count[known]
    source[use], reason[use] = TEXT, 0
    without = np.flatnonzero((row >= 0) & (reason == REASONS.index("no_nvtx_range")))
    reason[without] = REASONS.index("no_size_in_nvtx")
    return replace(calls, bytes=size, bytes_source=source, reason=reason)


def _looked_up(codes: Array, texts: Sequence[str], read: Callable[[str], int]) -> Int64s:
    """Return what `read` makes of each text, read once a distinct text."""
    present = distinct(codes)
    values = np.array([read(texts[code]) for code in present.tolist()], dtype=np.int64)
    return values[np.searchsorted(present, codes)] if len(present) else values


def _element_bytes(kernel: str) -> int:
    found = _REDUCING.search(kernel)
    return _ELEMENT_BYTES.get((found[1] or found[2]), MISSING) if found else MISSING


def _elements(message: str) -> int:
    """Return the number of elements of the one tensor of which a message gives the shape."""
    found = _SIZES.search(message)
    try:
        shapes = ast.literal_eval(found[1]) if found else []
    except (SyntaxError, ValueError):
        return MISSING
    # An input that is no tensor has the shape [], as a scalar has; a shape of numbers is a
    # list without an inner one in old versions.
    if len(shapes) != 1 or not isinstance(shapes[0], list) or not shapes[0]:
        return MISSING
    if not all(isinstance(side, int) for side in shapes[0]):
        return MISSING
    count = 1
    for side in shapes[0]:
        count *= side
    return count if count < 1 << 56 else MISSING


def _sized(calls: Calls, ranks: int | None) -> Calls:
    """Fill in the user's ranks, and make data of messages: n shares of them where they are one."""
    known, source = calls.ranks, calls.ranks_source
    if ranks is not None:
        known = np.where(known == MISSING, ranks, known)
        source = np.where(calls.ranks == MISSING, USER, source).astype(np.int8)
    shared = np.isin(calls.kind, [KINDS.index(name) for name in SHARE_OF_A_RANK])
    shared &= (calls.bytes != MISSING) & ~calls.whole
    lacking = shared & (known == MISSING)
    size, reason = calls.bytes.copy(), calls.reason.copy()
    size[shared & ~lacking] *= known[shared & ~lacking]
    size[lacking], reason[lacking] = MISSING, REASONS.index("ranks_unknown")
    return replace(
        calls,
        bytes=size,
        bytes_source=np.where(size == MISSING, 0, calls.bytes_source).astype(np.int8),
        reason=reason,
        ranks=known,
        ranks_source=source,
    )
