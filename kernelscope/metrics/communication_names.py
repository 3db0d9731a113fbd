"""Which kernels communicate between GPUs, of which library, and what a name says they do.

A closed list, matched on the *function's* own name, never on its template arguments or
parameters: ``reduce_kernel<…all_reduce…>`` is arithmetic. Communication kernels spin while they
wait for their peers, so they are counted apart from compute.

A name is believed only as far as it can be. NCCL to 2.18 has one kernel for each collective,
operator and type, whatever algorithm runs in it, so that the ``RING_LL`` of its name says
nothing; and every NCCL kernel runs all operations of a group, under the name of one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from kernelscope.errors import SelectionError, nearest
from kernelscope.metrics.kernel_names import function_name

KINDS: tuple[str, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
    "send_recv",
    "barrier",
    "unknown",
)
"""What a communication kernel does; ``unknown`` where neither its name nor NVTX tells."""

UNKNOWN = "unknown"
USER = "user"


@dataclass(frozen=True, slots=True)
class Known:
    """Kernels that communicate.

    Attributes
    ----------
    library : str
        Whose they are.
    pattern : str
        Regular expression that the whole qualified function name matches.
    kind : str
        One of `KINDS`.
    """

    library: str
    pattern: str
    kind: str = UNKNOWN


_NCCL: tuple[tuple[str, str], ...] = (
    ("AllReduce", "all_reduce"),
    ("ReduceScatter", "reduce_scatter"),  # before Reduce
    ("Reduce", "reduce"),
    ("AllGather", "all_gather"),
    ("AllGatherV", "all_gather"),  # NCCL 2.29
    ("Broadcast", "broadcast"),
)

COMMUNICATION: tuple[Known, ...] = (
    # NCCL 2.8 to 2.18 for send and receive, RCCL of those years for everything: it has no other
    # kernel (seen with all-reduce and all-gather in traces of other people).
    Known("NCCL, RCCL", r"ncclKernel_SendRecv_RING_SIMPLE_Sum_i(nt)?8(_t)?|ncclSendRecvKernel_\w+"),
    # NCCL from 2.19: p2p has a kernel of its own, which all-to-all, gather and scatter use, too.
    Known("NCCL, RCCL", r"ncclDevKernel_SendRecv", "send_recv"),
    # NCCL to 2.11: ncclAllReduceRingLLKernel_sum_f32; to 2.18: ncclKernel_AllReduce_RING_LL_
    # Sum_float; then ncclDevKernel_AllReduce_Sum_f32_RING_LL; symmetric memory:
    # ncclSymDevKernel_… (2.27), ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(_profile).
    *(
        Known("NCCL, RCCL", rf"nccl(\w*Kernel_{word}|{word}\w*Kernel)(_\w+)?", kind)
        for word, kind in _NCCL
    ),
    # The rest of them: ncclDevKernel_Generic (NCCL: rare functions; RCCL: _Generic_4 and such for
    # everything), and whatever comes.
    Known("NCCL, RCCL", r"nccl\w*Kernel(_\w+)?"),
    # NCCL in a communicator of one rank: local arithmetic, of whichever reducing collective.
    Known("NCCL, RCCL", r"(.+::)?oneRankReduce"),
    # RCCL before it took NCCL's names: rcclGenericKernel, rcclKernel_…
    Known("RCCL", r"rccl\w*Kernel(_\w+)?"),
    # MSCCL's interpreter in the forks of NCCL: mscclKernel_Sum_float_Simple; algorithms are data
    Known("MSCCL", r"mscclKernel(_\w+)?"),
    # MSCCL++: mscclpp::allreduce::…, and mscclpp::executionKernel<…>, whose algorithms are data
    Known("MSCCL++", r"mscclpp::(.*\W)?all_?[rR]educe\w*(::.+)?", "all_reduce"),
    Known("MSCCL++", r"mscclpp::(.*\W)?all_?[gG]ather\w*(::.+)?", "all_gather"),
    Known("MSCCL++", r"mscclpp::.+"),
    # NVSHMEM's collectives on a stream carry no prefix: barrier_on_stream_kernel_threadgroup,
    # sync_all_on_stream_kernel_block, alltoall_on_stream_kernel<…>, rdxn_on_stream_kernel<…>,
    # fcollect_… (all-gather); older ones with the type inside: alltoall_int_on_stream_kernel.
    # rocSHMEM's have one: rocshmem_alltoall…
    *(
        Known("NVSHMEM", rf"(rocshmem_)?{word}(_\w+)?_on_stream_kernel(_\w+)?", kind)
        for word, kind in (
            (r"(barrier|sync)(_all)?", "barrier"),
            (r"alltoall(32|64)?", "all_to_all"),
            (r"f?collect(32|64)?", "all_gather"),
            (r"(bcast|broadcast)(32|64|mem)?", "broadcast"),
            (r"reducescatter", "reduce_scatter"),
            (r"(rdxn|reduce)", "all_reduce"),
        )
    ),
    # NVSHMEM's own kernels: nvshmemi_proxy_rma_entrypoint, nvshmemi_proxy_quiet_entrypoint,
    # nvshmemi_int_wait_until_on_stream_kernel; and users' kernels named after it
    Known("NVSHMEM", r"(.+::)?nvshmemi_proxy_rma\w*", "send_recv"),
    Known("NVSHMEM", r"(.+::)?(nv|roc)shmem\w*"),
    # PyTorch over NVSHMEM (torch.ops.symm_mem.all_to_all_vdev): allToAllV, allToAllV_2d, and the
    # exchange of split sizes before it
    Known("symmetric memory", r"(.+::)?allToAllV(_2d\w*)?", "all_to_all"),
    Known("symmetric memory", r"(.+::)?exchangeSplitAndOffset(_2d|Kernel)*", "all_to_all"),
    # DeepEP, normal and low latency. Every kernel of these namespaces waits for peers;
    # deep_ep::layout is local arithmetic. The cached notifications and the cleaning are barriers.
    *(
        Known("DeepEP", rf"deep_ep::(legacy::)?(internode|intranode|internode_ll)::{word}", kind)
        for word, kind in (
            (r"(notify_)?dispatch", "all_to_all"),
            (r"combine", "all_to_all"),
            (r"cached_notify\w*|barrier|clean_low_latency_buffer", "barrier"),
            (r"\w+", UNKNOWN),
        )
    ),
    # vLLM, SGLang and aiter: cross_device_reduce_1stage, …_2stage, …_2stage_write_mode; forks:
    # cross_device_reduce_scatter(_2stage), cross_device_all_gather
    Known("custom all-reduce", r"(.+::)?cross_device_reduce_[12]stage\w*", "all_reduce"),
    Known("custom all-reduce", r"(.+::)?cross_device_reduce_scatter\w*", "reduce_scatter"),
    Known("custom all-reduce", r"(.+::)?cross_device_all_gather\w*", "all_gather"),
    # vLLM's quick reduce on AMD: quickreduce::allreduce_prototype_twoshot
    Known("quick reduce", r"(.+::)?allreduce_prototype_\w+", "all_reduce"),
    # PyTorch symmetric memory: multimem_all_reduce_kernel, multimem_one_shot_all_reduce_kernel,
    # multimem_all_gather_kernel, multimem_one_shot_reduce_out_kernel (also Triton's of that name)
    *(
        Known("symmetric memory", rf"(.+::)?_?multimem_(one_shot_)?{kind}_\w*kernel\w*", kind)
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "reduce")
    ),
    # TensorRT-LLM and PyTorch's intra-node communication: oneShotAllReduceKernel,
    # twoShotAllReduceKernel, hybridCubeMeshAllReduceKernel
    Known(
        "one and two shot",
        r"(.+::)?(oneShot|twoShot|hybridCubeMesh)AllReduceKernel",
        "all_reduce",
    ),
    # TensorRT-LLM: lamport_style_one_shot_all_reduce_norm_kernel,
    # one_shot_all_reduce_norm_kernel, one_shot_prenorm_all_reduce_norm_kernel;
    # PyTorch symmetric memory: one_shot_all_reduce_kernel,
    # two_shot_all_reduce_kernel(_inplace); SGLang: inkling_two_shot_all_reduce_kernel
    Known(
        "one and two shot",
        r"(.+::)?([a-z_]+_)?(one|two)_shot_([a-z]+_)?all_reduce_\w*kernel\w*",
        "all_reduce",
    ),
    # TensorRT-LLM and FlashInfer: allreduce_fusion_kernel_oneshot_lamport, …_twoshot_sync,
    # moereduce_allreduce_fusion_kernel_…, moefinalize_…; aiter: allreduce_fusion_kernel_1stage
    Known("fused all-reduce", r"(.+::)?([a-z]+_)?allreduce_fusion_kernel\w*", "all_reduce"),
    # TensorRT-LLM and FlashInfer over multi-node NVLink: oneshotAllreduceFusionKernel,
    # twoshotAllreduceKernel, twoshot_allreduce_kernel, oneshot_allreduce_…
    Known(
        "fused all-reduce",
        r"(.+::)?(oneshot|twoshot)(Allreduce\w*Kernel|_allreduce_\w*kernel)\w*",
        "all_reduce",
    ),
    # TensorRT-LLM and FlashInfer, experts over multi-node NVLink: moeAllToAllKernel,
    # moeA2ADispatchKernel, moeA2ACombineKernel; the preparing and sanitising kernels are local
    Known("MoE all-to-all", r"(.+::)?moe(AllToAll|A2ADispatch|A2ACombine)Kernel", "all_to_all"),
    # Userbuffers of TransformerEngine and TensorRT-LLM: userbuffers_fp16_sum_inplace_gpu_rw
    # (all-reduce), …_rw_ag, …_mc_rs_oop_stride, kuserbuffers_pushrecv, kuserbuffers_pullsend
    Known("userbuffers", r"(.+::)?k?userbuffers_(\w+_)?alltoall\w*", "all_to_all"),
    Known("userbuffers", r"(.+::)?k?userbuffers_(push|pull)\w+", "send_recv"),
    Known("userbuffers", r"(.+::)?userbuffers_\w+_rs(_\w+)?", "reduce_scatter"),
    Known("userbuffers", r"(.+::)?userbuffers_\w+_ag(_\w+)?", "all_gather"),
    Known("userbuffers", r"(.+::)?userbuffers_fp16_sum_inplace_gpu_[a-z]+", "all_reduce"),
    Known("userbuffers", r"(.+::)?k?userbuffers_\w+"),
)
"""The list; of several that match, the first decides. To add a library is to add a line."""


@cache
def _patterns() -> tuple[tuple[Known, re.Pattern[str]], ...]:
    """Return the list, compiled; only for traces in which something may be on it."""
    return tuple((each, re.compile(each.pattern)) for each in COMMUNICATION)


_HINT = re.compile(
    r"nccl|rccl|msccl|shmem|deep_ep|cross_device_|all_?reduce|multimem|userbuffers|onerankreduce"
    r"|_on_stream_kernel|alltoallv|exchangesplit|moealltoall|moea2a",
    re.IGNORECASE,
)
"""Every name of the list holds one of these: looking for them is cheap."""


def recognise(names: Sequence[str], extra: Sequence[str] = ()) -> tuple[Known | None, ...]:
    """Which kernels communicate between GPUs, and what does the name of each say it does?

    Parameters
    ----------
    names : sequence of str, length n
        Distinct kernel names: full, short, or mangled.
    extra : sequence of str
        Further kernels, as :func:`user_pattern` takes them, searched for in the whole name as
        given. They come before the list: a user may know better what a kernel does.

    Returns
    -------
    tuple of Known or None, length n
        None for kernels that do not communicate.

    Raises
    ------
    SelectionError
        If one of `extra` cannot be read.
    """
    more = [(each := user_pattern(text), re.compile(each.pattern)) for text in extra]
    return tuple(_recognised(name, more) for name in names)


def is_communication(names: Sequence[str], extra: Sequence[str] = ()) -> npt.NDArray[np.bool_]:
    """Say which kernels communicate between GPUs, shape (n,); see :func:`recognise`."""
    return np.array([each is not None for each in recognise(names, extra)], dtype=np.bool_)


def user_pattern(text: str) -> Known:
    """Read a user's addition to the list.

    Parameters
    ----------
    text : str
        A regular expression, ``my_ring_kernel``, or one with what the kernels do,
        ``all_reduce=my_ring_kernel``.

    Raises
    ------
    SelectionError
        If it is no regular expression, or names a kind that does not exist.
    """
    kind, equals, pattern = text.partition("=")
    if not equals or not re.fullmatch(r"[a-z_]+", kind):
        kind, pattern = UNKNOWN, text
    elif kind not in KINDS:
        raise SelectionError(f"There is no kind of communication {kind!r}.", nearest(kind, KINDS))
    try:
        re.compile(pattern)
    except re.error as error:
        raise SelectionError(
            f"{pattern!r} is no regular expression of communication kernels: {error}.",
            "Give a piece of the kernels' name, with . [ ( * + ? { | ^ $ \\ behind a backslash.",
        ) from None
    if not pattern:
        raise SelectionError("The pattern of communication kernels is empty: it matches all.")
    return Known(USER, pattern, kind)


def _recognised(name: str, more: Sequence[tuple[Known, re.Pattern[str]]]) -> Known | None:
    for known, pattern in more:
        if pattern.search(name):
            return known
    return _listed(name)


@lru_cache(maxsize=1 << 14)
def _listed(name: str) -> Known | None:
    """Return what the list says of a name; several metrics ask for the same names."""
    if _HINT.search(name) is None:
        return None
    function = function_name(name)
    for known, pattern in _patterns():
        if pattern.fullmatch(function):
            return known
    return None
