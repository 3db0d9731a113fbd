"""What the name of an NVTX range says: an iteration, part of one, or a library's own work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.iteration_family import fold
from kernelscope.metrics.library_domains import is_library
from kernelscope.trace import Table

_LIBRARY_RANGE = re.compile(
    # PyTorch: operators and autograd nodes (emit_nvtx), distributed, the compiler
    r"(aten|prims|autograd|torch|torchvision|c10|c10d|at|profiler|FSDP|DDP|quantized|inductor)::"
    r"|(nccl|gloo|mpi|c10d|ucc):"
    r"|DistributedDataParallel\.|FullyShardedDataParallel\.|enumerate\(DataLoader\)"
    r"|Torch-Compiled Region|TorchDynamo|CompiledFunction|## Call "
    # nvFuser: FUSER_PERF_SCOPE names the function
    r"|(nvFuser|GraphCache|Fusion\w*|Executor\w*|KernelExecutor|GpuLower|IrContainer"
    r"|ExpressionEvaluator|TransformReplay|Index)::"
    # libraries that open ranges in the default domain, and PyProf's and DLProf's markers
    r"|(cub|thrust|cudf|rmm|raft|tensorrt_llm)::|cublas[A-Z]|cudnn[A-Z]|nccl[A-Z]|MPI_[A-Z]"
    r"|\[DALI\]|\{'(mod|traceMarker|op)'"
)
_OPERATOR_MARK, _AUTOGRAD_MARK = "op_id = ", "seq = "

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ITERATION_WORDS = frozenset({"step", "iter", "iteration", "batch", "minibatch"})
"""Words that say *this is a training iteration*."""
PART_WORDS = frozenset({"micro", "microbatch", "ubatch", "sub", "substep", "microstep"})
"""Words that say *this is a part of an iteration*: a microbatch gives way to a batch."""
PHASE_WORDS = frozenset(
    {"forward", "fwd", "backward", "bwd", "optimizer", "optim", "opt", "loss", "grad", "zero"}
    | {"data", "load", "loader", "dataloader", "fetch", "prefetch", "augment", "transform"}
    | {"copy", "io", "log", "checkpoint", "save"}
)
"""Words of a phase: ``optimizer step`` is no iteration, whatever its second word says."""
OTHER_WORDS = frozenset(
    {"epoch", "epochs", "layer", "layers", "block", "blocks", "stage", "stages"}
    | {"module", "head", "encoder", "decoder"}
)
"""Words that say *this is something else*, coarser or finer."""

SAYS_ITERATION, SAYS_PART, SAYS_NOTHING, SAYS_OTHER = 2, 1, 0, -1


def name_rank(name: str) -> int:
    """Return how clearly a range's name says that it is a training iteration.

    Returns
    -------
    int
        `SAYS_ITERATION` (step, iter, iteration, batch), `SAYS_PART` (microbatch),
        `SAYS_NOTHING`, or `SAYS_OTHER` (epoch, layer).
    """
    words = {word.lower() for word in _WORDS.findall(name)}
    if words & OTHER_WORDS:
        return SAYS_OTHER
    if words & PHASE_WORDS:
        return SAYS_NOTHING
    if words & PART_WORDS:
        return SAYS_PART
    return SAYS_ITERATION if words & ITERATION_WORDS else SAYS_NOTHING


def is_library_range(name: str) -> bool:
    """Return whether a library opened the range, though in the default domain.

    Operators that PyTorch annotates (``aten::…``, ``…, op_id = 3``, ``…, seq = 7``) are among
    them: they are never iterations.
    """
    annotated = _OPERATOR_MARK in name or _AUTOGRAD_MARK in name
    return annotated or _LIBRARY_RANGE.match(name) is not None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FoldedNames:
    """Some of a trace's ranges, by name with digits folded.

    Attributes
    ----------
    codes : ndarray of int32, shape (ranges,)
        Index into `folded`; −1 for the ranges that are not among them.
    folded : tuple of str
        Distinct names with digits folded.
    """

    codes: npt.NDArray[np.int32]
    folded: tuple[str, ...]

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Rows of the ranges that are among them."""
        return np.flatnonzero(self.codes >= 0)


def users_names(ranges: Table) -> FoldedNames:
    """Return the ranges that the user's program may have opened around its iterations.

    Those without a name are left out, and those of libraries, by domain and by name.

    Notes
    -----
    A trace of annotated operators has as many distinct names as ranges (each holds its own
    ``op_id``), so names are folded all at once, and operators left out before that.
    """
    names = ranges.categories("name")
    wanted = [
        code
        for code, (name, occurs) in enumerate(zip(names, occurring(ranges).tolist(), strict=True))
        if occurs and name and _OPERATOR_MARK not in name and _AUTOGRAD_MARK not in name
    ]
    texts = fold_all([names[code] for code in wanted])
    folded = tuple(dict.fromkeys(texts))
    number = {text: -1 if is_library_range(text) else code for code, text in enumerate(folded)}
    of_name = np.full(len(names) + 1, -1, dtype=np.int32)
    of_name[wanted] = np.fromiter(map(number.__getitem__, texts), np.int32, len(texts))
    codes = of_name[ranges["name"]]
    library = np.array([is_library(domain) for domain in ranges.categories("domain")])
    if library.any():
        codes = np.where(library[ranges["domain"]], np.int32(-1), codes)
    return FoldedNames(codes, folded)


def occurring(ranges: Table) -> npt.NDArray[np.bool_]:
    """Return which of the category names occur in the column ``name``."""
    used = np.zeros(len(ranges.categories("name")) + 1, dtype=np.bool_)
    used[ranges["name"]] = True  # −1 lands on the spare last place
    return used[:-1]


_SEPARATOR, _DIGIT = "\x1e", "\x1f"
_TO_DIGIT = str.maketrans("0123456789", _DIGIT * 10)


def fold_all(names: Sequence[str]) -> list[str]:
    """Fold many names in a few passes over one string; equal to ``fold`` of each."""
    if not names:
        return []
    text = _SEPARATOR.join(names)
    if text.count(_SEPARATOR) != len(names) - 1 or _DIGIT in text:
        return [fold(name) for name in names]
    text = text.translate(_TO_DIGIT)
    while _DIGIT * 2 in text:
        text = text.replace(_DIGIT * 2, _DIGIT)
    return text.replace(_DIGIT, "#").split(_SEPARATOR)
