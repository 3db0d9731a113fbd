"""The list of communication kernels on real names, and on names that only look like them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kernelscope.errors import SelectionError
from kernelscope.metrics.communication_names import (
    COMMUNICATION,
    KINDS,
    Known,
    is_communication,
    recognise,
    user_pattern,
)
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces

NCCL = "NCCL, RCCL"

REAL = [
    # from traces
    ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", NCCL, "send_recv"),
    (
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm *, unsigned long, ncclWork *)",
        NCCL,
        "all_reduce",
    ),
    # in one of these traces it ran all-reduce, all-gather and all-to-all alike
    (
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        NCCL,
        "unknown",
    ),
    ("_Z33ncclBroadcastRingLLKernel_copy_i88ncclColl", NCCL, "broadcast"),
    ("_Z33ncclAllReduceTreeLLKernel_sum_i328ncclColl", NCCL, "all_reduce"),
    # from sources and issues of the libraries
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", NCCL, "all_reduce"),
    ("ncclReduceRingLLKernel_sum_f16(ncclColl)", NCCL, "reduce"),
    ("ncclReduceScatterRingLLKernel_sum_f16(ncclColl)", NCCL, "reduce_scatter"),
    ("ncclAllGatherRingLLKernel_copy_i8(ncclColl)", NCCL, "all_gather"),
    ("ncclSendRecvKernel_copy_i8(ncclColl)", NCCL, "unknown"),
    (
        "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
        NCCL,
        "reduce_scatter",
    ),
    (
        "ncclKernel_Reduce_RING_LL_Sum_double(ncclDevComm*, unsigned long, ncclWork*)",
        NCCL,
        "reduce",
    ),
    (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        NCCL,
        "all_reduce",
    ),
    (
        "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        NCCL,
        "all_reduce",
    ),
    (
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        NCCL,
        "reduce_scatter",
    ),
    ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", NCCL, "reduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", NCCL, "all_gather"),
    ("ncclDevKernel_AllGatherV_RING_LL(ncclDevKernelArgsStorage<4096ul>)", NCCL, "all_gather"),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", NCCL, "broadcast"),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", NCCL, "unknown"),
    ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", NCCL, "unknown"),
    ("ncclSymDevKernel_AllGather_STMC(ncclSymDevArgs)", NCCL, "all_gather"),
    ("ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymkDevWorkArgs)", NCCL, "all_reduce"),
    ("ncclSymkDevKernel_ReduceScatter_LL_sum_f8e4m3_profile(x)", NCCL, "reduce_scatter"),
    (
        "void (anonymous namespace)::oneRankReduce<FuncPreMulSum<float>>(void*, void*, unsigned "
        "long, unsigned long, bool)",
        NCCL,
        "unknown",
    ),
    ("rcclGenericKernel<1, false>(ncclDevComm*, unsigned long)", "RCCL", "unknown"),
    ("void mscclKernel_Sum_float_Simple<true>(ncclDevComm*)", "MSCCL", "unknown"),
    (
        "void mscclpp::executionKernel<int, mscclpp::LL16Packet>(int, int)",
        "MSCCL++",
        "unknown",
    ),
    ("void mscclpp::collective::allreducePacket<float>(float*)", "MSCCL++", "all_reduce"),
    ("void nvshmemi_proxy_quiet_kernel(int)", "NVSHMEM", "unknown"),
    ("nvshmemi_proxy_rma_entrypoint_blocking(void*, void*, int)", "NVSHMEM", "send_recv"),
    ("nvshmemi_init_array_kernel<(rdxn_ops)0>", "NVSHMEM", "unknown"),
    ("void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)", "NVSHMEM", "barrier"),
    ("_Z36barrier_on_stream_kernel_threadgroupIL13threadgroup_t1EEvii", "NVSHMEM", "barrier"),
    ("sync_all_on_stream_kernel_block()", "NVSHMEM", "barrier"),
    ("void alltoall_on_stream_kernel<float>(int, float*, float const*)", "NVSHMEM", "all_to_all"),
    ("nvshmemi_int_wait_until_on_stream_kernel(int volatile*, int, int)", "NVSHMEM", "unknown"),
    (
        "allToAllV(void*, void*, long*, unsigned long, int)",
        "symmetric memory",
        "all_to_all",
    ),
    ("void exchangeSplitAndOffset_2d<true>(long*, long*)", "symmetric memory", "all_to_all"),
    (
        "void deep_ep::internode_ll::dispatch<(bool)1, (bool)0, (int)7168>(void *, float *)",
        "DeepEP",
        "all_to_all",
    ),
    ("void deep_ep::internode_ll::combine<true, 7168, 11>(void*)", "DeepEP", "all_to_all"),
    ("void deep_ep::internode::dispatch<false, 4, false, 7, 13>(int4*)", "DeepEP", "all_to_all"),
    ("void deep_ep::intranode::notify_dispatch<8>(int const*)", "DeepEP", "all_to_all"),
    ("void deep_ep::intranode::cached_notify_combine<8>(void**, int*)", "DeepEP", "barrier"),
    (
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*)",
        "DeepEP",
        "all_to_all",
    ),
    (
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "custom all-reduce",
        "all_reduce",
    ),
    (
        "void sglang::cross_device_reduce_2stage<half, 4>(RankData*)",
        "custom all-reduce",
        "all_reduce",
    ),
    ("_ZN5aiter26cross_device_reduce_2stageIDF16bLi8ELb0EEEv", "custom all-reduce", "all_reduce"),
    (
        "void cross_device_reduce_scatter<float, 8>(RankData*)",
        "custom all-reduce",
        "reduce_scatter",
    ),
    ("void quickreduce::allreduce_prototype_twoshot<int>(int)", "quick reduce", "all_reduce"),
    (
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(AllReduceParams)",
        "one and two shot",
        "all_reduce",
    ),
    (
        "void c10d::intra_node_comm::twoShotAllReduceKernel<8>(int)",
        "one and two shot",
        "all_reduce",
    ),
    (
        "void tensorrt_llm::kernels::lamport_style_one_shot_all_reduce_norm_kernel<half, 8>(P)",
        "one and two shot",
        "all_reduce",
    ),
    (
        "void tensorrt_llm::kernels::reduce_fusion::one_shot_all_reduce_norm_kernel<half>(P)",
        "one and two shot",
        "all_reduce",
    ),
    (
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(x**)",
        "one and two shot",
        "all_reduce",
    ),
    (
        "void <unnamed>::one_shot_all_reduce_kernel<c10::BFloat16, (int)16, (int)8>(T1 **)",
        "one and two shot",
        "all_reduce",
    ),
    ("two_shot_all_reduce_kernel", "one and two shot", "all_reduce"),
    (
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "symmetric memory",
        "all_reduce",
    ),
    (
        "void multimem_one_shot_all_reduce_kernel<float, 16>(float*)",
        "symmetric memory",
        "all_reduce",
    ),
    ("void multimem_all_gather_kernel<16>(char*, char*)", "symmetric memory", "all_gather"),
    ("void multimem_one_shot_reduce_out_kernel<float, 16>(x)", "symmetric memory", "reduce"),
    (
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
        "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>(P)",
        "fused all-reduce",
        "all_reduce",
    ),
    (
        "void tensorrt_llm::kernels::ar_fusion::moe::"
        "moereduce_allreduce_fusion_kernel_oneshot_lamport<int>(P)",
        "fused all-reduce",
        "all_reduce",
    ),
    (
        "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, half>(half*)",
        "fused all-reduce",
        "all_reduce",
    ),
    (
        "void tensorrt_llm::kernels::mnnvl::twoshot_allreduce_kernel<8, float>(float*)",
        "fused all-reduce",
        "all_reduce",
    ),
    (
        "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8, true>(int const*)",
        "MoE all-to-all",
        "all_to_all",
    ),
    ("void tensorrt_llm::kernels::moeAllToAllKernel<1, false>(P)", "MoE all-to-all", "all_to_all"),
    ("userbuffers_fp16_sum_inplace_gpu_rw_rs_oop_stride<8>(int)", "userbuffers", "reduce_scatter"),
    ("userbuffers_fp16_sum_inplace_gpu_mc_ag<8>(int)", "userbuffers", "all_gather"),
    ("userbuffers_fp16_sum_inplace_gpu_rw<8>(int)", "userbuffers", "all_reduce"),
    ("kuserbuffers_pushrecv(int, int, int*, int*, int)", "userbuffers", "send_recv"),
    ("kuserbuffers_inc(int*)", "userbuffers", "unknown"),
    ("kuserbuffers_alltoall(int, int)", "userbuffers", "all_to_all"),
    # NVSHMEM, from its sources
    ("void fcollect_on_stream_kernel<int>(int, int*, int const*)", "NVSHMEM", "all_gather"),
    ("void broadcast_on_stream_kernel<int>(int, int*)", "NVSHMEM", "broadcast"),
    ("void reducescatter_on_stream_kernel<int, (rdxn_ops)1>(int)", "NVSHMEM", "reduce_scatter"),
    ("void rdxn_on_stream_kernel<int, (rdxn_ops)1>(int)", "NVSHMEM", "all_reduce"),
    ("void rocshmem_reduce_on_stream_kernel<int, (ROCSHMEM_OP)0>(int)", "NVSHMEM", "all_reduce"),
    ("void mscclpp::collective::allgatherFullmesh2<true>(x)", "MSCCL++", "all_gather"),
    ("void cross_device_all_gather<float, 8>(RankData*)", "custom all-reduce", "all_gather"),
    ("multimem_reduce_scatter_kernel", "symmetric memory", "reduce_scatter"),
    # what may come in a namespace all of whose kernels wait for peers
    ("void deep_ep::internode::something_new<8>(int*)", "DeepEP", "unknown"),
]

INNOCENT = [
    # from traces
    "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, "
    "at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4>>(T3)",
    "void clover::par_reduce_kernel<field_summary(global_variables &, parallel_ &)>(T1)",
    "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float, int, cub::Sum>>(T2)",
    "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, double>(int)",
    "calcAllFullSum",
    # names that only mention communication
    "reduce_kernel",
    "all_reduce",
    "void reduce_kernel<one_shot_all_reduce_kernel>(float*)",
    "void elementwise_kernel<ncclDevKernel_Generic>(int)",
    "void apply(ncclKernel_AllReduce_RING_LL_Sum_float *)",
    "void layer_norm<deep_ep::internode::dispatch>(int)",
    "deep_ep::layout::get_dispatch_layout<256, 32>(int const*)",
    "triton_poi_fused_add_all_reduce_4",
    "void moe::dispatch<8>(int)",
    "void my::combine(float*)",
    "void multimember_reduce_kernel(int)",
    "not_ncclKernel_AllReduce",
    "_Z13reduce_kernelIncclDevKernel_x",
    "",
    "gather_kernel",
    "void broadcast_kernel<float>(float*)",
    "barrier_kernel",
    "void my_on_stream_kernel<int>(int)",
    "void app::alltoall_on_stream_kernel<int>(int)",
    "void deep_ep::kernels::dispatch_kernel<float>(float const*)",
    "void tensorrt_llm::kernels::moe_comm::moeA2APrepareDispatchKernel(int*)",
    "void moeAllToAllMemsetKernel(int*)",
    "void ncclhelper(int)",
    "_Z9allreducePf",
]


@pytest.mark.parametrize(("name", "library", "kind"), REAL)
def test_communication(name: str, library: str, kind: str) -> None:
    (known,) = recognise([name])
    assert known is not None
    assert (known.library, known.kind) == (library, kind)
    assert is_communication([name]).tolist() == [True]


@pytest.mark.parametrize("name", INNOCENT)
def test_not_communication(name: str) -> None:
    assert recognise([name]) == (None,)
    assert is_communication([name]).tolist() == [False]


def test_every_line_of_the_list_is_of_a_known_kind_and_has_a_name_that_it_decides() -> None:
    assert {each.kind for each in COMMUNICATION} <= set(KINDS)
    decided = {id(known) for known in recognise([name for name, _, _ in REAL])}
    idle = [each.pattern for each in COMMUNICATION if id(each) not in decided]
    assert not idle


def test_a_user_can_extend_the_list() -> None:
    names = ("my_ring_kernel<float>(int)", "gemm")
    assert is_communication(names).tolist() == [False, False]
    assert is_communication(names, [r"^my_ring"]).tolist() == [True, False]
    assert is_communication((), [r"x"]).tolist() == []
    assert recognise(names, [r"all_reduce=^my_ring"]) == (
        Known("user", "^my_ring", "all_reduce"),
        None,
    )
    # a user knows better than the list
    known = recognise(["ncclDevKernel_Generic_4(x)"], ["all_gather=Generic_4"])
    assert known == (Known("user", "Generic_4", "all_gather"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my[ring", "is no regular expression"),
        ("all_redcue=ring", "all_reduce"),
        ("", "matches all"),
        ("all_reduce=", "matches all"),
    ],
)
def test_a_pattern_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        user_pattern(text)


def test_an_equals_sign_inside_a_pattern() -> None:
    assert user_pattern("(?=ring)") == Known("user", "(?=ring)", "unknown")


EXPECTED = {
    "2022.4.2_A100x4_training_ddp": {("ncclKernel_AllReduce_RING_LL_Sum_float", "all_reduce")},
    "2022.4.2_A100x4_training_ddp_bucketcap": {
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "all_reduce")
    },
    "2026.2.1_2gpu_nccl_mfu_before": {("ncclDevKernel_SendRecv", "send_recv")},
}


KERNEL_NAMES = """
    SELECT value FROM StringIds
    WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL)
"""


def has_kernels(db: sqlite3.Connection) -> bool:
    found = db.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
    ).fetchall()
    return bool(found)


@each(nsys_traces())
def test_all_names_of_a_trace(trace_file: Path) -> None:
    db = sqlite3.connect(f"file:{trace_file}?mode=ro&immutable=1", uri=True)
    try:
        names = [text for (text,) in db.execute(KERNEL_NAMES)] if has_kernels(db) else []
    finally:
        db.close()
    found = {
        (name.split("(")[0], known.kind)
        for name, known in zip(names, recognise(names), strict=True)
        if known is not None
    }
    assert found == EXPECTED.get(trace_file.stem, set())


@needs_corpus
def test_names_in_the_vendors_lists() -> None:
    assert CORPUS is not None
    text = "\n".join(
        path.read_text(errors="replace") for path in (CORPUS / "oracles" / "nvprof").rglob("*.csv")
    )
    for name, kind in (
        ("ncclAllReduceTreeLLKernel_sum_i32(ncclColl)", "all_reduce"),
        ("ncclBroadcastRingLLKernel_copy_i8(ncclColl)", "broadcast"),
    ):
        assert name in text
        (known,) = recognise([name])
        assert known is not None
        assert known.kind == kind
