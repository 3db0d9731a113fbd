from __future__ import annotations

import pytest

from kernelscope.metrics.communication_names import is_communication
from kernelscope.metrics.kernel_names import function_name

COMMUNICATION = [
    # from traces
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm *, unsigned long, ncclWork *)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "_Z33ncclBroadcastRingLLKernel_copy_i88ncclColl",
    "_Z33ncclAllReduceTreeLLKernel_sum_i328ncclColl",
    # from sources and issues of the libraries
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",
    "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymkDevWorkArgs)",
    "rcclGenericKernel<1, false>(ncclDevComm*, unsigned long)",
    "void mscclKernel_Sum_float_Simple<true>(ncclDevComm*)",
    "void mscclpp::executionKernel<int, mscclpp::LL16Packet>(int, int)",
    "void nvshmemi_proxy_quiet_kernel(int)",
    "nvshmemi_init_array_kernel<(rdxn_ops)0>",
    "void deep_ep::internode_ll::dispatch<(bool)1, (bool)0, (int)7168>(void *, float *)",
    "void deep_ep::internode_ll::combine<true, 7168, 11>(void*)",
    "void deep_ep::internode::dispatch<false, 4, false, 7, 13>(int4*)",
    "void deep_ep::intranode::notify_dispatch<8>(int const*)",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    "void sglang::cross_device_reduce_2stage<half, 4>(RankData*)",
    "_ZN5aiter26cross_device_reduce_2stageIDF16bLi8ELb0EEEv",
    "void quickreduce::allreduce_prototype_twoshot<int>(int)",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(AllReduceParams)",
    "void c10d::intra_node_comm::twoShotAllReduceKernel<8>(int)",
    "void tensorrt_llm::kernels::lamport_style_one_shot_all_reduce_norm_kernel<half, 8>(P)",
    "void tensorrt_llm::kernels::reduce_fusion::one_shot_all_reduce_norm_kernel<half>(P)",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(x**)",
    "void <unnamed>::one_shot_all_reduce_kernel<c10::BFloat16, (int)16, (int)8>(T1 **)",
    "two_shot_all_reduce_kernel",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
    "void multimem_one_shot_all_reduce_kernel<float, 16>(float*)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
    "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>(P)",
    "void tensorrt_llm::kernels::ar_fusion::moe::"
    "moereduce_allreduce_fusion_kernel_oneshot_lamport<int>(P)",
    "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, half>(half*)",
    "void tensorrt_llm::kernels::mnnvl::twoshot_allreduce_kernel<8, float>(float*)",
    "userbuffers_fp16_sum_inplace_gpu_rw_rs_oop_stride<8>(int)",
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
]


@pytest.mark.parametrize("name", COMMUNICATION)
def test_communication(name: str) -> None:
    assert is_communication([name]).tolist() == [True]


@pytest.mark.parametrize("name", INNOCENT)
def test_not_communication(name: str) -> None:
    assert is_communication([name]).tolist() == [False]


def test_a_user_can_extend_the_list() -> None:
    names = ("my_ring_kernel<float>(int)", "gemm")
    assert is_communication(names).tolist() == [False, False]
    assert is_communication(names, [r"^my_ring"]).tolist() == [True, False]
    assert is_communication((), [r"x"]).tolist() == []


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void a::b<c::d<int>, (e)3>(f::g *)", "a::b"),
        ("std::enable_if<(bool)1, void>::type ns::f<int>(int)", "ns::f"),
        ("void (anonymous namespace)::f<int>(int)", "f"),
        ("ns::<unnamed>::f", "ns::f"),
        ("_ZN2ns1fIiEEvPf", "ns::f"),
        ("_ZN12_GLOBAL__N_11fEv", "f"),
        ("_Z3addPKf", "add"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_function_name(name: str, function: str) -> None:
    assert function_name(name) == function
