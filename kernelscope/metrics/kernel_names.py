"""What a kernel's name says about it: which kernels communicate between GPUs.

A closed list, matched on the *function's* own name, never on its template arguments or
parameters: ``reduce_kernel<…all_reduce…>`` is arithmetic. Communication kernels spin while they
wait for their peers, so they are counted apart from compute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

COMMUNICATION: tuple[tuple[str, str], ...] = (
    # NCCL to 2.17: ncclAllReduceRingLLKernel_sum_f32, ncclKernel_AllReduce_RING_LL_Sum_float;
    # later ncclDevKernel_AllReduce_Sum_f32_RING_LL, symmetric ncclSymDevKernel_…,
    # ncclSymkDevKernel_…; RCCL keeps these names (ncclDevKernel_Generic_4).
    ("NCCL, RCCL", r"nccl\w*Kernel(_\w+)?"),
    # RCCL before it took NCCL's names: rcclGenericKernel, rcclKernel_…
    ("RCCL", r"rccl\w*Kernel(_\w+)?"),
    # MSCCL's interpreter in the forks of NCCL: mscclKernel_Sum_float_Simple
    ("MSCCL", r"mscclKernel(_\w+)?"),
    # MSCCL++: mscclpp::executionKernel<…>, mscclpp::allreduce::…
    ("MSCCL++", r"mscclpp::.+"),
    # NVSHMEM's own kernels: nvshmemi_…_kernel, nvshmemx_…, nvshmemi_proxy_…
    ("NVSHMEM", r"(.+::)?nvshmem\w*"),
    # DeepEP, normal and low latency. Every kernel of these namespaces waits for peers
    # (dispatch, combine, notify_dispatch, cached_notify, barrier, clean_low_latency_buffer);
    # deep_ep::layout is local arithmetic.
    ("DeepEP", r"deep_ep::(legacy::)?(internode|intranode|internode_ll)::\w+"),
    # vLLM, SGLang and aiter: cross_device_reduce_1stage, …_2stage, …_2stage_write_mode
    ("custom all-reduce", r"(.+::)?cross_device_reduce_[12]stage\w*"),
    # vLLM's quick reduce on AMD: quickreduce::allreduce_prototype_twoshot
    ("quick reduce", r"(.+::)?allreduce_prototype_\w+"),
    # TensorRT-LLM and PyTorch's intra-node communication: oneShotAllReduceKernel,
    # twoShotAllReduceKernel, hybridCubeMeshAllReduceKernel
    ("one and two shot", r"(.+::)?(oneShot|twoShot|hybridCubeMesh)AllReduceKernel"),
    # TensorRT-LLM: lamport_style_one_shot_all_reduce_norm_kernel,
    # one_shot_all_reduce_norm_kernel, one_shot_prenorm_all_reduce_norm_kernel;
    # PyTorch symmetric memory: one_shot_all_reduce_kernel,
    # two_shot_all_reduce_kernel(_inplace); SGLang: inkling_two_shot_all_reduce_kernel
    ("one and two shot", r"(.+::)?([a-z_]+_)?(one|two)_shot_([a-z]+_)?all_reduce_\w*kernel\w*"),
    # PyTorch symmetric memory: multimem_all_reduce_kernel, multimem_one_shot_all_reduce_kernel,
    # multimem_all_gather_kernel, multimem_one_shot_reduce_out_kernel
    (
        "symmetric memory",
        r"(.+::)?multimem_(one_shot_)?(all_reduce|all_gather|reduce)_\w*kernel\w*",
    ),
    # TensorRT-LLM and FlashInfer: allreduce_fusion_kernel_oneshot_lamport, …_twoshot_sync,
    # moereduce_allreduce_fusion_kernel_…, moefinalize_…; aiter: allreduce_fusion_kernel_1stage
    ("fused all-reduce", r"(.+::)?([a-z]+_)?allreduce_fusion_kernel\w*"),
    # TensorRT-LLM and FlashInfer over multi-node NVLink: oneshotAllreduceFusionKernel,
    # twoshotAllreduceKernel, twoshot_allreduce_kernel, oneshot_allreduce_…
    ("fused all-reduce", r"(.+::)?(oneshot|twoshot)(Allreduce\w*Kernel|_allreduce_\w*kernel)\w*"),
    # Userbuffers of TransformerEngine and TensorRT-LLM: userbuffers_fp16_sum_inplace_gpu_rw_…,
    # kuserbuffers_pushrecv, kuserbuffers_pullsend
    ("userbuffers", r"(.+::)?k?userbuffers_\w+"),
)
"""(library, pattern of the qualified function name), matched as a whole."""

_PATTERN = re.compile("|".join(f"(?:{pattern})" for _, pattern in COMMUNICATION))
_HINT = re.compile(
    r"nccl|rccl|msccl|nvshmem|deep_ep|cross_device_reduce|all_?reduce|multimem|userbuffers",
    re.IGNORECASE,
)
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|_GLOBAL__N_\w*|\{anonymous\}")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_MANGLED = re.compile(r"_ZN?K?(?=L?\d)")
_LENGTH = re.compile(r"L?(\d+)")


def is_communication(names: Sequence[str], extra: Sequence[str] = ()) -> npt.NDArray[np.bool_]:
    """Say which kernels communicate between GPUs.

    Parameters
    ----------
    names : sequence of str, length n
        Distinct kernel names: full, short, or mangled.
    extra : sequence of str
        Regular expressions of further kernels, searched for in the whole name as given.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    more = [re.compile(pattern) for pattern in extra]
    return np.array(
        [
            (_HINT.search(name) is not None and _PATTERN.fullmatch(function_name(name)) is not None)
            or any(pattern.search(name) for pattern in more)
            for name in names
        ],
        dtype=np.bool_,
    )


def function_name(name: str) -> str:
    """Return a kernel's qualified name without return type, template arguments and parameters.

    ``void ns::(anonymous namespace)::f<int>(float *)`` is ``ns::f``. Of a mangled name
    (Itanium ABI) the length-prefixed identifiers are read: ``_ZN2ns1fIiEEvPf`` is ``ns::f``.
    """
    mangled = _MANGLED.match(name)
    if mangled:
        return _demangled(name, mangled.end())
    plain = _ANONYMOUS.sub("", name)
    while (shorter := _ARGUMENTS.sub("", plain)) != plain:
        plain = shorter
    plain = re.split(r"[(<\[]", plain, maxsplit=1)[0].strip()
    words = plain.split(" ")
    return "::".join(part for part in words[-1].split("::") if part)


def _demangled(name: str, position: int) -> str:
    parts: list[str] = []
    while found := _LENGTH.match(name, position):
        position = found.end() + int(found[1])
        parts.append(name[found.end() : position])
        if not name.startswith("_ZN"):
            break
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_"))
