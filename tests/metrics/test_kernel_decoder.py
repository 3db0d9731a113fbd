"""Kernel names whose meaning is known: written here by hand from what libraries document."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.communication_names import recognise
from kernelscope.metrics.decoder_tables.functions import FUNCTIONS
from kernelscope.metrics.decoder_tables.functors import FUNCTORS
from kernelscope.metrics.decoder_tables.grammars import GRAMMARS
from kernelscope.metrics.decoder_tables.namespaces import FORMS, WORDS
from kernelscope.metrics.decoder_tables.rows import (
    CERTAINTIES,
    DIRECTIONS,
    OPERATIONS,
    PIPES,
    TENSOR_PIPES,
)
from kernelscope.metrics.kernel_decoder import KernelName, decode, decode_all
from kernelscope.metrics.kernel_names import LONGEST_HEAD, name_parts

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, {}, at::detail::Array<char*, 3> >"
    "(int, {}, at::detail::Array<char*, 3>)"
)
ADD = ELEMENTWISE.format(*["at::native::CUDAFunctor_add<float>"] * 2)
FA3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
    "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
    "cute::tuple<cute::C<128>, cute::C<80>, cute::C<256> >, 256, cutlass::bfloat16_t, float, "
    "cutlass::arch::Sm90, false> > > >(flash::Params)"
)
ATOM = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>, "
    "cute::TiledMMA<cute::MMA_Atom<cute::SM90_64x128x16_F32BF16BF16_SS<0, 1> > > > >(Params)"
)

KNOWN: list[tuple[str, dict[str, Any]]] = [
    ("volta_sgemm_128x64_nn", {
        "family": "cublas", "operation": "gemm", "pipe": "FFMA", "tensor_core": False,
        "input_type": "fp32", "tile_m": 128, "tile_n": 64, "layout": "nn",
        "architecture": "volta"}),
    ("volta_fp16_sgemm_fp16_32x128_nn", {
        "pipe": "FFMA", "input_type": "fp16", "accumulate_type": "fp32", "output_type": "fp16"}),
    ("volta_dgemm_64x64_nt", {"pipe": "DFMA", "input_type": "fp64"}),
    ("volta_hgemm_128x64_nt", {"pipe": "HFMA2", "tensor_core": False}),
    ("volta_h884gemm_256x64_ldg8_tn", {"pipe": "HMMA", "accumulate_type": "fp16"}),
    ("volta_fp16_s884cudnn_fp16_128x128_ldg8_dgrad_f2f_exp_small_nhwc2nchw_tt_v1", {
        "family": "cudnn", "operation": "convolution", "direction": "data_gradient",
        "pipe": "HMMA", "instruction": "8x8x4", "layout": "nhwc2nchw"}),
    ("volta_scudnn_128x128_stridedB_splitK_small_nn_v1", {
        "direction": "backward", "split_k": True, "pipe": "FFMA"}),
    ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", {
        "operation": "convolution", "direction": None, "pipe": "FFMA"}),
    ("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_tn", {
        "pipe": "HMMA", "instruction": "16x8x8"}),
    ("turing_h1688gemm_128x128_ldg8_nn", {"pipe": "HMMA", "accumulate_type": "fp16"}),
    ("turing_int8_i8816cudnn_int8_256x128_ldg16_relu_interior_nt_v1", {
        "pipe": "IMMA", "input_type": "int8", "accumulate_type": "int32"}),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", {
        "pipe": "BF16", "tile_k": 32, "stages": 5, "instruction": "16x8x16"}),
    ("ampere_sgemm_32x32_sliced1x4_tn", {"pipe": "FFMA", "layout": "tn"}),
    ("sgemm_128x128x8_NN_vec", {"family": "cublas", "pipe": "FFMA", "tile_k": 8, "layout": "nn"}),
    ("Volta_hmma_implicit_gemm_fprop_fp32_nhwc_128x64x64x1_1x3x3x0x1", {
        "family": "xmma", "operation": "convolution", "direction": "forward", "pipe": "HMMA",
        "accumulate_type": "fp32", "tile_k": 64, "layout": "nhwc"}),
    ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_"
     "tensor16x8x8_execute_kernel__5x_cublas", {
        "pipe": "TF32", "input_type": "fp32", "instruction": "16x8x8", "stages": 4,
        "layout": "tn"}),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_"
     "alignc4_execute_kernel__5x_cublas", {
        "family": "xmma", "pipe": "FFMA", "tensor_core": False, "layout": "nn"}),
    ("sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_nchw_"
     "vect_c_32_tilesize256x128x64_stage4_warpsize4x2x1_g1_tensor16x8x32_simple_t1r1s1", {
        "pipe": "IMMA", "output_type": "int8", "accumulate_type": "int32"}),
    ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_"
     "tensor16x8x32_execute_kernel__51_cublas", {
        "pipe": "FP8", "input_type": "e4m3", "output_type": "bf16"}),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
     "execute_segment_k_off_kernel__5x_cublas", {"pipe": "BF16", "architecture": "sm90"}),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(Params)", {
        "family": "cutlass2", "pipe": "TF32", "input_type": "fp32", "stages": 5, "tile_k": 16}),
    ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8>"
     "(Params)", {"pipe": "HMMA", "output_type": "fp16", "layout": "tn"}),
    ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_32x2_nn_align1>(P)", {
        "pipe": "BF16"}),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(Params)", {
        "pipe": "FFMA", "tensor_core": False}),
    ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>(Params)", {
        "pipe": "DMMA"}),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_s161616gemm_f16_32x32_64x2_tn_align8>(P)", {
        "pipe": "HMMA", "instruction": "16x16x16"}),
    ("cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_1x2x1_0_tnn_align8", {
        "family": "cutlass3", "pipe": "HMMA", "instruction": "64x128x16", "stages": None,
        "accumulate_type": "fp32", "layout": "tnn"}),
    ("cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_tnn_align1_bias_f32_relu", {
        "pipe": "FFMA", "stages": 3}),
    ("cutlass3x_sm100_bstensorop_gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_256x192x256_0_"
     "tnn_align32_o_vs16_2sm", {"pipe": "FP4", "output_type": "fp16"}),
    (ATOM, {"family": "cutlass3", "operation": "gemm", "pipe": "BF16",
            "instruction": "64x128x16"}),
    ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN", {
        "family": "nvjet", "operation": "gemm", "pipe": "HMMA", "output_type": "fp16",
        "tile_k": 64, "stages": 4, "layout": "ntn"}),
    ("nvjet_sm100_tst_64x8_64x16_2x4_h_bz_splitK_TNT", {
        "pipe": "BF16", "split_k": True, "architecture": "sm100", "layout": "tnt"}),
    ("nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", {
        "pipe": "FP8", "output_type": "bf16", "accumulate_type": "fp32"}),
    ("nvjet_sm100_oohsh_128x256_256x5_2x2_2cta_h_bz_Avec16UE4M3_Bvec16UE4M3_TNT", {
        "pipe": "FP4", "output_type": "fp16"}),
    ("nvjet_sss_128x256_64x4_2x1_v_bz_NTN", {
        "family": "nvjet", "pipe": None, "tensor_core": None, "input_type": "fp32"}),
    ("void cudnn::detail::implicit_convolve_sgemm<__half, __half, 1024, 5, 5, 3>(int)", {
        "family": "cudnn", "operation": "convolution", "pipe": "FFMA", "input_type": "fp16"}),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)", {
        "operation": "winograd", "auxiliary": True}),
    ("void fft2d_r2c_32x32<float, false, 1u, false>(float2*)", {
        "family": "cudnn", "operation": "fft"}),
    ("void cudnn::ops::nchwToNhwcKernel<__half, __half, float, true>(P)", {
        "operation": "layout", "auxiliary": True, "accumulate_type": "fp32", "pipe": None}),
    ("cudnn::gemm::computeOffsetsKernel(cudnn::gemm::ComputeOffsetsParams)", {
        "operation": "setup", "auxiliary": True}),
    ("dgrad_1x1_stride_2x2", {
        "family": "cudnn", "direction": "data_gradient", "pipe": None, "tensor_core": None}),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(P)", {
        "family": "cublaslt", "operation": "reduction", "auxiliary": True, "pipe": None}),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float>(P)", {
        "family": "cublas", "operation": "gemv", "pipe": "FFMA"}),
    (ADD, {"family": "aten", "operation": "elementwise", "pipe": "FFMA", "input_type": "fp32"}),
    (ELEMENTWISE.format(*["at::native::CUDAFunctor_add<c10::Half>"] * 2), {
        "operation": "elementwise", "pipe": None, "tensor_core": False, "input_type": "fp16"}),
    (ELEMENTWISE.format(*["at::native::FillFunctor<int>"] * 2), {
        "operation": "fill", "pipe": "ALU"}),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::tanh_backward_kernel_cuda("
     "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(double, double)#1}>(int)",
     {"direction": "data_gradient", "pipe": "DFMA"}),
    ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
     "at::TensorIteratorBase&)::{lambda(float)#1}, at::native::memory::LoadWithCast<1> >(int)", {
        "operation": "copy", "pipe": None, "input_type": None}),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
     "at::native::MeanOps<float, float>, unsigned int, float, 4> >(P)", {
        "operation": "reduction", "pipe": "FFMA"}),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
     "at::native::(anonymous namespace)::TensorListMetadata<2>, "
     "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >(P)", {
        "family": "aten", "operation": "optimizer"}),
    ("void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>, float*>(P)", {
        "family": "apex", "operation": "reduction"}),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(P)", {
        "family": "aten", "operation": "softmax", "direction": "forward"}),
    ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)64, (int)4, "
     "(bool)0, (bool)0, cutlass::half_t, Flash_kernel_traits<(int)64>>>(P)", {
        "family": "flash_attention", "operation": "attention", "direction": "forward",
        "pipe": "HMMA", "tile_m": 128, "tile_k": 64}),
    (FA3, {"family": "flash_attention", "pipe": "BF16", "architecture": "sm90", "tile_k": 256}),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(P)", {"operation": "attention", "pipe": "TF32"}),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm70(P)", {"pipe": "FFMA", "tensor_core": False}),
    ("fmha_cutlassB_bf16_aligned_64x128_k64_sm80(P)", {
        "pipe": "BF16", "direction": "data_gradient"}),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_"
     "kernel0_0", {"family": "cudnn", "operation": "attention", "pipe": None,
                   "tensor_core": True, "direction": "forward"}),
    ("triton_poi_fused_add_cos_sin_0", {"family": "inductor", "operation": "elementwise"}),
    ("triton_red_fused_native_layer_norm_4", {"operation": "normalization"}),
    ("triton_per_fused__softmax_1", {"operation": "softmax"}),
    ("triton_tem_fused_addmm_relu_3", {"operation": "gemm", "tensor_core": None}),
    ("triton__0d1d2d3de", {"family": "triton", "operation": None}),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int> >(P)", {
        "family": "cub", "operation": "sort"}),
    ("void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::"
     "ParallelForAgent<thrust::cuda_cub::__uninitialized_fill::functor<int> > >(P)", {
        "family": "thrust", "operation": "fill"}),
    ("void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
     "Eigen::TensorMap<Eigen::Tensor<float, 1, 1, int> >, Eigen::TensorCwiseBinaryOp<"
     "Eigen::internal::scalar_sum_op<float, float> > > >, int>(P)", {
        "family": "eigen", "operation": "elementwise", "pipe": "FFMA"}),
    ("loop_add_fusion_3", {"family": "xla", "operation": "elementwise"}),
    ("input_reduce_fusion", {"family": "xla", "operation": "reduction"}),
    ("fusion_12", {"family": "xla", "operation": None, "certainty": "likely"}),
    ("cupy_add__float32_float32_float32", {"family": "cupy", "pipe": "FFMA"}),
    ("cupy_multiply__float_float64_float64", {"pipe": "DFMA", "output_type": "fp64"}),
    ("cupy_add__int32_float32_float64", {"operation": "elementwise", "pipe": None}),
    ("cupy_copy__float64_float32", {"operation": "copy", "pipe": "ALU"}),
    ("add[abi:v1,cw51cXTLSUwv1sDUaKthrqNgqqmjgOR3](Array<float, 1, C, mutable, aligned>)", {
        "family": "numba"}),
    ("void dali::kernels::transpose_impl::TransposeDeinterleaveBatch<int>(P)", {
        "family": "dali", "operation": "layout", "certainty": "likely"}),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", {
        "family": "nccl", "operation": "collective"}),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(P)", {"operation": "collective"}),
    ("main_42_gpu", {"family": "openacc"}),
    ("nvkernel_main_F1L61_6", {"family": "openmp"}),
    ("void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<F> >(F)", {
        "family": "kokkos"}),
    ("<unnamed>::nvfuser_none_f0_c0_r0_g0(<unnamed>::Tensor<<unnamed>::__half, (int)3>)", {
        "family": "nvfuser"}),
    ("void mshadow::cuda::MapPlanKernel<mshadow::sv::saveto, 8, mshadow::expr::Plan<float> >(P)", {
        "family": "mshadow", "operation": "elementwise"}),
    ("void op_of_mine<float>(cudnnTensorStruct, float const*)", {
        "family": "cudnn", "certainty": "likely"}),
    ("gemm", {"family": None, "pipe": None, "tensor_core": None, "certainty": "unknown"}),
    ("void my_softmax<float>(float*)", {"family": None, "operation": None}),
    ("", {"family": None, "function": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), KNOWN, ids=[name[:60] for name, _ in KNOWN])
def test_a_name_says_what_its_library_documents(name: str, expected: dict[str, Any]) -> None:
    found = decode(name)

    assert {field: getattr(found, field) for field in expected} == expected


def test_a_mangled_name_says_what_the_same_name_says_in_cpp() -> None:
    mangled = (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEENS_6detail5"
        "ArrayIPcLi3EEEEEviT0_T1_"
    )

    found = decode(mangled)

    assert (found.family, found.operation, found.pipe) == ("aten", "elementwise", "FFMA")
    assert decode(found.name) == found  # the demangled name


def test_a_name_too_damaged_to_demangle_is_read_by_its_identifiers() -> None:
    found = decode("_ZN5cudnn3ops16nchwToNhwcKernelI")

    assert (found.function, found.family) == ("cudnn::ops::nchwToNhwcKernel", "cudnn")


@pytest.mark.parametrize("name", [name for name, _ in KNOWN])
def test_what_is_said_is_of_the_vocabulary(name: str) -> None:
    found = decode(name)

    assert found.operation in (*OPERATIONS, None)
    assert found.direction in (*DIRECTIONS, None)
    assert found.pipe in (*PIPES, None)
    assert found.certainty in CERTAINTIES
    assert (found.certainty == "unknown") == (found.family is None) == (not found.evidence)
    if found.pipe is not None:
        assert found.tensor_core == (found.pipe in TENSOR_PIPES)


def test_the_tables_speak_the_vocabulary() -> None:
    words = [*WORDS, *(word for words in FUNCTORS.values() for word in words)]
    said = [(row.operation, row.direction, row.pipe) for row in FUNCTIONS]
    said += [(word.operation, word.direction, word.pipe) for word in words]
    operations = [*(row.operation for row in GRAMMARS), *(row.operation for row in FORMS)]

    assert {*operations, *(each for each, _, _ in said)} <= {*OPERATIONS, None}
    assert {direction for _, direction, _ in said} <= {*DIRECTIONS, None}
    assert {pipe for _, _, pipe in said} <= {*PIPES, None}


def test_a_function_is_listed_once_for_each_scope() -> None:
    listed = [(name, row.scope) for row in FUNCTIONS for name in row.names.split()]

    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "name", ["ncclDevKernel_SendRecv(P)", "void oneShotAllReduceKernel<float>(P)", "mscclpp::x(P)"]
)
def test_what_the_list_of_communication_knows_is_a_collective(name: str) -> None:
    assert recognise([name])[0] is not None
    assert decode(name).operation == "collective"


# ---------------------------------------------------------------------------------------------
# Any text is a name
# ---------------------------------------------------------------------------------------------

_PIECES = st.lists(
    st.sampled_from(
        ["void ", "at::native::", "<", ">", "(", ")", "{", "float", "__half", ", ", "4", "_Z",
         "sm80_xmma_gemm_", "f32f32_f32f32_f32_", "nvjet_", "cutlass_80_tensorop_", "s1688gemm_",
         "128x128_", "volta_", "cupy_", "__", "::SM90_", "_traits", "fmha_", "elementwise_kernel",
         "FlashAttnFwdSm", "[abi:v1,", "_0d1d", "\x1b[2J", "\n", "汉", "\udcff", "99999999999x9"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(st.one_of(st.text(max_size=80), _PIECES))
def test_any_text_decodes_and_always_to_the_same(name: str) -> None:
    found = decode(name)

    assert isinstance(found, KernelName)
    assert decode_all.__wrapped__((name,)) == (found,)
    assert decode(found.name).family == found.family  # demangling twice changes nothing
    assert found.operation in (*OPERATIONS, None)


@pytest.mark.parametrize(
    "name",
    [
        "<" * 100_000,
        "(" * 100_000,
        "f<" + "g<" * 50_000,
        "void f<" + "float, " * 15_000 + ">(int)",
        ">::" * 33_000,
        "x::" * 33_000 + "f",
        "sm80_xmma_" + "indexed_" * 12_000,
        "cutlass_80_tensorop_" * 5_000,
        "Flash_fwd_kernel_traits<" * 4_000,
        "dgrad::kernel<" * 4_000 + "_traits",
        "cudnn_generated_" + "sdpa_sm" * 14_000,
        "triton_poi_fused_" + "add_" * 25_000,
        "k_0d" + "1d" * 50_000,
        "volta_" + "1" * 100_000 + "gemm_128x128_nn",
        "cupy_" + "_" * 100_000,
        "\x1b[31m" * 20_000,
        "_Z" + "N" * 100_000,
        "_ZN" + "1a" * 50_000,
        "a " * 50_000,
    ],
    ids=range(19),
)
def test_a_pathological_name_takes_bounded_time(name: str) -> None:
    decode("_Z1fv")  # loads the demangler
    began = time.process_time()

    decode_all.__wrapped__((name,))

    assert time.process_time() - began < 0.1


def test_what_stands_far_inside_is_looked_at_and_what_is_farther_is_not() -> None:
    inside = f"void cutlass::device_kernel<{'x, ' * 500}cute::SM90_64x8x16_F32F16F16_SS>(P)"
    beyond = (
        f"void cutlass::device_kernel<{'x, ' * LONGEST_HEAD}cute::SM90_64x8x16_F32F16F16_SS>(P)"
    )

    assert decode(inside).pipe == "HMMA"
    assert decode(beyond).pipe is None


@pytest.mark.slow
def test_a_hundred_thousand_names_decode_in_two_seconds() -> None:
    names = tuple(
        name.replace("128", str(100 + row), 1) + f" {row}"
        for row in range(1 + 100_000 // len(KNOWN))
        for name, _ in KNOWN
    )[:100_000]
    began = time.process_time()

    decode_all.__wrapped__(names)

    assert time.process_time() - began < 2


def test_the_parts_of_a_name() -> None:
    assert name_parts("void a::b<c<int>, 4>(d<e>, f)") == ("a::b", "c<int>, 4", "d<e>, f)")
    assert name_parts("f(int)") == ("f", "", "int)")
    assert name_parts("void f<g<int>(h)") == ("f", "g<int>(h)", "")  # a bracket is missing
