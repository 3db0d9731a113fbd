"""What a CUDA call does, told by its name: the one list by which waiting and idle are explained.

Runtime and driver calls alike. A call of no class (events, queries, contexts) is work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

CALL_CLASSES: tuple[tuple[str, str], ...] = (
    # cudaDeviceSynchronize, cuCtxSynchronize, cudaStreamSynchronize, cudaEventSynchronize, …
    ("synchronization", r"cu(da)?(Device|Ctx|Stream|Event|Thread)Synchronize\w*"),
    # cudaLaunchKernel(ExC), cudaLaunchCooperativeKernel(MultiDevice), cuLaunchGrid(Async),
    # cudaGraphLaunch, cuLaunchHostFunc, …
    ("launch", r"cu(da)?(Launch|GraphLaunch)\w*"),
    # cudaMemcpy(2D)(Async), cuMemcpyHtoD(Async)_v2, cudaMemPrefetchAsync, cudaMemset(Async), …
    ("copy", r"cu(da)?(Memcpy|MemPrefetch|MemcpyBatch)\w*"),
    ("memset", r"cu(da)?Memset\w*"),
    # cudaMalloc(Async|Host|Managed|Pitch), cuMemAlloc_v2, cudaHostAlloc, cudaHostRegister,
    # virtual memory: cuMemCreate, cuMemMap, cuMemAddressReserve, cuMemSetAccess
    (
        "allocation",
        r"cu(da)?(Malloc|MemAlloc|HostAlloc|MemHostAlloc|HostRegister|MemHostRegister|ArrayCreate"
        r"|Array3DCreate|MemCreate|MemMap|MemAddressReserve|MemSetAccess|MemPoolCreate)\w*",
    ),
    (
        "free",
        r"cu(da)?(Free|MemFree|HostUnregister|MemHostUnregister|ArrayDestroy|MemUnmap|MemRelease"
        r"|MemAddressFree|MemPoolDestroy|MemPoolTrimTo)\w*",
    ),
    # Loading code, at once or when it is first asked for, and linking or compiling PTX
    (
        "module",
        r"cu(da)?(ModuleLoad|ModuleUnload|ModuleGetFunction|ModuleGetGlobal|LibraryLoad"
        r"|LibraryUnload|LibraryGet(Kernel|Module|Global|Managed|UnifiedFunction)|Link(Create"
        r"|Add|Complete|Destroy)|KernelGetFunction|FuncLoad|FuncGetAttribute|GetFuncBySymbol"
        r"|FuncSetAttribute|KernelSetAttribute|KernelGetAttribute)\w*",
    ),
)
"""(class, pattern of the call's whole name); the first that matches."""

OTHER = "other"
"""The class of calls of no class."""

NAMES: tuple[str, ...] = (*(name for name, _ in CALL_CLASSES), OTHER)
"""Every class; its place is its code."""

_PATTERNS = tuple(re.compile(pattern) for _, pattern in CALL_CLASSES)


def class_of(name: str) -> str:
    """Return the class of a CUDA call, without its ABI version suffix."""
    for (kind, _), pattern in zip(CALL_CLASSES, _PATTERNS, strict=True):
        if pattern.fullmatch(name):
            return kind
    return OTHER


def call_classes(names: Sequence[str]) -> npt.NDArray[np.int8]:
    """Return the class of each of n distinct names as its place in `NAMES`, shape (n,)."""
    return np.array([NAMES.index(class_of(name)) for name in names], dtype=np.int8)
