"""What the name of an NVTX range says: an iteration, part of one, or a library's own work."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelscope.trace import Categorical

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
_OPERATOR_MARKS = ("op_id = ", "seq = ")

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ITERATION_WORDS = frozenset({"step", "iter", "iteration", "batch", "minibatch"})
"""Words that say *this is a training iteration*."""
PART_WORDS = frozenset({"micro", "microbatch", "ubatch", "sub", "substep", "microstep"})
"""Words that say *this is a part of an iteration*: a microbatch gives way to a batch."""
PHASE_WORDS = frozenset(
    "forward fwd backward bwd optimizer optim opt loss grad zero data load loader dataloader "
    "copy fetch prefetch augment transform io log checkpoint save".split()
)
"""Words of a phase: ``optimizer step`` is no iteration, whatever its second word says."""
OTHER_WORDS = frozenset(
    "epoch epochs layer layers block blocks stage stages module head encoder decoder".split()
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
    return any(mark in name for mark in _OPERATOR_MARKS) or bool(_LIBRARY_RANGE.match(name))


def folded_codes(names: Categorical) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the folded name of each range that may be an iteration.

    Parameters
    ----------
    names : Categorical, n rows
        The column ``ranges.name``.

    Returns
    -------
    codes : ndarray of int32, shape (n,)
        Index into `folded`; −1 where the range has no name or is a library's own.
    folded : tuple of str
        Distinct names with digits folded.

    Notes
    -----
    A trace of annotated operators has as many distinct names as ranges (each holds its own
    ``op_id``), so names are folded all at once, and operators left out before that.
    """
    used = np.zeros(len(names.categories) + 1, dtype=np.bool_)
    used[names.codes] = True  # −1 lands on the spare last place
    wanted = [
        code
        for code, (name, occurs) in enumerate(zip(names.categories, used.tolist(), strict=False))
        if occurs and name and "op_id = " not in name and "seq = " not in name
    ]
    texts = _fold_all([names.categories[code] for code in wanted])
    folded = tuple(dict.fromkeys(texts))
    number = {text: place for place, text in enumerate(folded)}
    of_name = np.full(len(used), -1, dtype=np.int32)
    of_name[wanted] = np.fromiter(map(number.__getitem__, texts), np.int32, len(texts))
    own = np.array([is_library_range(text) for text in folded] + [True], dtype=np.bool_)
    codes = of_name[names.codes]
    return np.where(own[codes], np.int32(-1), codes), folded


_SEPARATOR, _DIGIT = "\x1e", "\x1f"
_TO_DIGIT = str.maketrans("0123456789", _DIGIT * 10)


def _fold_all(names: Sequence[str]) -> list[str]:
    """Fold many names in a few passes over one string; equal to ``fold`` of each."""
    if not names:
        return []
    text = _SEPARATOR.join(names)
    if text.count(_SEPARATOR) != len(names) - 1 or _DIGIT in text:
        return [re.sub("[0-9]+", "#", name) for name in names]
    text = text.translate(_TO_DIGIT)
    while _DIGIT * 2 in text:
        text = text.replace(_DIGIT * 2, _DIGIT)
    return text.replace(_DIGIT, "#").split(_SEPARATOR)
