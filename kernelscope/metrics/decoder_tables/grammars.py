"""Names that spell types, instruction and tile: one regular expression a family.

Sources: names of cuBLAS, cuDNN and TensorRT kernels in public traces; CUTLASS documents the
procedural names that its generator writes
(https://docs.nvidia.com/cutlass/latest/media/docs/cpp/profiler.html), and its MMA atoms
(``SM90_64x128x16_F32BF16BF16_SS``: shape, accumulator, A, B). The types of an XMMA name
read ``{A}{output}_{multiplied}{accumulated}_{epilogue}``: ``i8f32_i8i32_f32`` writes FP32,
``i8i8_i8i32_f32`` INT8.

No quantifier stands inside another, and the decoder looks at a bounded piece of a name.
"""

from __future__ import annotations

from kernelscope.metrics.decoder_tables.rows import Grammar

_T = (
    r"(?:bf16|tf32|fp16|fp32|fp64|f16|f32|f64|cf32|cf64|int8x32|int8x4|int8|int32|u?e4m3|u?e5m2|"
    r"e2m1|f8|f4|i8|i32|s8|u8|s4|u4|s32|b1)"
)
_SCALED = rf"(?:(?:u?e\dm\d)x)?{_T}"
_LETTER = r"(?P<letter>gc|gz|[shdczi])"
_MN = r"(?P<m>\d+)x(?P<n>\d+)"

GRAMMARS: tuple[Grammar, ...] = (
    # cuBLAS and cuDNN by hand, Maxwell to Ampere: volta_sgemm_128x64_nn,
    # volta_fp16_s884cudnn_fp16_256x128_ldg8_dgrad_f2f_exp_small_nhwc_tt_v1,
    # trt_ampere_h16816gemm_64x64_ldg8_relu_stages_64x5_tn_v1
    Grammar(
        "cublas",
        ("maxwell_", "pascal_", "volta_", "turing_", "ampere_", "hopper_"),
        rf"\b(?:(?P<lib>trt|cudnn|cublas)_)?(?P<arch>maxwell|pascal|volta|turing|ampere|hopper)_"
        rf"(?:(?P<out>{_T})_)?{_LETTER}(?P<mma>\d{{3,6}})?(?P<kind>gemm|cudnn)"
        rf"(?P<winograd>_winograd)?(?:_(?P<a>{_T}))?_{_MN}(?P<rest>\w*)",
    ),
    # nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN,
    # nvjet_sm100_oohsh_128x256_256x5_2x2_2cta_h_bz_Avec16UE4M3_Bvec16UE4M3_TNT
    Grammar(
        "nvjet",
        ("nvjet_",),
        rf"\bnvjet_(?:sm(?P<sm>\d+)_)?(?P<letters>[a-z]{{3,5}})_{_MN}_(?P<k>\d+)x(?P<stages>\d+)"
        r"_\d+x\d+(?P<rest>\w*)",
        "gemm",
    ),
    # sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_
    # stage4_warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn
    Grammar(
        "xmma",
        ("_xmma_",),
        rf"\bsm(?P<sm>\d+)_xmma_(?P<kind>[a-z_]+?)_(?:indexed_|wo_smem_|interleaved_)*"
        rf"(?P<a>{_T})(?P<out>{_T})_(?P<mul>{_T})(?P<acc>{_T})_{_T}_(?P<rest>\w*)",
    ),
    Grammar(
        "xmma",
        ("_xmma_pooling",),
        r"\bsm(?P<sm>\d+)_xmma_pooling_(?P<rest>\w*)",
        "pooling",
    ),
    # Volta_hmma_implicit_gemm_wgrad_fp32_nhwc_128x128x64x1_1x3x3x0x1
    Grammar(
        "xmma",
        ("mma_implicit_gemm",),
        r"\b(?P<arch>Volta|Turing|Ampere)_(?P<cls>hmma|imma)_implicit_gemm_"
        rf"(?P<kind>fprop|dgrad|wgrad)_(?P<acc>{_T})_(?P<layout>nhwc|nchw)_{_MN}x(?P<k>\d+)x\d+",
    ),
    # xmma_cudnn::implicit_gemm::strided_dgrad_indexed::kernel<…Ampere_hmma_fp32_traits,
    # xmma_cudnn::Cta_tile<xmma_cudnn::Ampere, (int)128, (int)64, (int)64, …
    Grammar(
        "xmma",
        ("_traits",),
        r"(?P<kind>dgrad|wgrad|fprop|gemm)\w*::kernel(?P<helper>_helper\w*)?<.{0,200}?"
        rf"(?P<arch>Volta|Turing|Ampere|Hopper)_(?P<cls>hmma|imma)_(?P<acc>{_T})_?\w*traits"
        r".{0,60}?Cta_tile<\w+::\w+, (?:\(int\))?(?P<m>\d+), (?:\(int\))?(?P<n>\d+), "
        r"(?:\(int\))?(?P<k>\d+)",
    ),
    # cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_1x2x1_0_tnn_align8,
    # cutlass3x_sm100_bstensorop_gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_256x192x256_0_tnn
    Grammar(
        "cutlass3",
        ("cutlass3x_",),
        r"\bcutlass3x_sm(?P<sm>\d+)_(?P<cls>simt|tensorop|bstensorop|sptensorop)_"
        rf"(?:{_LETTER}(?P<inst>\d+x\d+x\d+)?)?(?P<kind>gemm|fprop|dgrad|wgrad)_"
        rf"(?:block_?scaled_)?(?P<a>{_SCALED})_{_SCALED}_(?P<acc>{_T})_(?:void|{_SCALED})_"
        rf"(?P<out>void|{_SCALED})_{_MN}x(?P<k>\d+)(?:_\d+x\d+x\d+)?_(?P<stages>\d+)_"
        r"(?P<layout>[nt]{3})",
    ),
    # cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8, cutlass_80_simt_sgemm_…,
    # cutlass_tensorop_s1688wgrad_optimized_tf32_256x128_16x3_nhwc_align4
    Grammar(
        "cutlass2",
        ("cutlass_",),
        r"\bcutlass_(?:(?P<sm>\d{2,3})_)?(?P<cls>simt|tensorop|wmma_tensorop|sptensorop)_"
        rf"(?:(?P<out>{_T})_)?{_LETTER}(?P<mma>\d+)?(?P<mul>{_T})?"
        r"(?P<kind>gemm|fprop|dgrad|wgrad)\w*?"
        rf"(?:_(?P<a>{_T}))?_{_MN}_(?P<k>\d+)x(?P<stages>\d+)"
        r"(?:_(?P<layout>[nt]{2,3}|nhwc|nchw))?",
    ),
    # cutlass::device_kernel<…cute::MMA_Atom<cute::SM90_64x128x16_F32BF16BF16_SS<…
    Grammar(
        "cutlass3",
        ("::SM90_", "::SM80_", "::SM75_", "::SM70_", "::SM89_", "::SM120_", "::SM100_"),
        r"(?P<kind>)::SM(?P<sm>\d+)_(?P<inst>\d+x\d+x\d+)_(?P<acc>F32|F16|F64|S32)"
        r"(?P<a>BF16|TF32|F16|F64|E4M3|E5M2|S8|U8)",
        "gemm",
        deep=True,
    ),
    # cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0:
    # its f16 is BF16, too
    Grammar(
        "cudnn",
        ("_sdpa_sm",),
        r"\bcudnn_generated_\w*?sdpa_sm(?P<sm>\d+)_flash_(?P<kind>fprop|bprop)"
        rf"(?:_(?P<cls>wgmma|wmma))?_(?P<sixteen>b?f16|mxfp8|f?p?8\w*?)_knob_\d+_{_MN}x(?P<k>\d+)",
        "attention",
    ),
    # PyTorch's memory-efficient attention: fmha_cutlassF_bf16_aligned_64x128_rf_sm80
    Grammar(
        "cutlass_fmha",
        ("fmha_cutlass",),
        rf"\bfmha_cutlass(?P<kind>[FB])_(?P<a>f16|bf16|f32)_(?:not)?aligned_{_MN}_\w*?"
        r"sm(?P<sm>\d+)",
        "attention",
    ),
    # TensorRT's: fmha_v2_flash_attention_fp16_64_32_S_qkv_128_causal_sm80_kernel_nl
    Grammar(
        "trt_fmha",
        ("fmha_v2_",),
        r"\bfmha_v2_\w*?(?P<a>fp16|bf16|e4m3|int8)_\w*?sm(?P<sm>\d+)",
        "attention",
    ),
    # FlashAttention 3 and 2: flash::FlashAttnFwdSm90<…tuple<C<128>, C<176>, C<128>>, 128,
    # cutlass::bfloat16_t, float, …; Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4,
    # (bool)0, (bool)0, cutlass::bfloat16_t, …
    Grammar(
        "flash_attention",
        ("FlashAttnFwd", "FlashAttnBwd"),
        r"FlashAttn(?P<kind>Fwd|Bwd)Sm(?P<sm>\d+)<.{0,240}?, (?:\(int\))?(?P<hdim>\d+), "
        r"cutlass::(?P<a>half_t|bfloat16_t|float_e4m3_t)",
        "attention",
    ),
    Grammar(
        "flash_attention",
        ("lash_fwd_kernel_traits", "lash_bwd_kernel_traits"),
        r"lash_(?P<kind>fwd|bwd)_kernel_traits<(?:\(int\))?(?P<hdim>\d+), (?:\(int\))?(?P<m>\d+), "
        r"(?:\(int\))?(?P<n>\d+), [^>]{0,120}?cutlass::(?P<a>half_t|bfloat16_t)",
        "attention",
    ),
    # FlashAttention 1: fmha_fwd_loop_kernel<FMHA_kernel_traits<256, 64, 16, 1, 4, 8u, __half>, …:
    # keys and values of a block, head dimension, queries of a step
    Grammar(
        "flash_attention",
        ("FMHA_kernel_traits",),
        r"fmha_(?P<kind>fwd|bwd)_(?P<what>\w*)<FMHA_kernel_traits<(?:\(int\))?(?P<n>\d+), "
        r"(?:\(int\))?(?P<hdim>\d+), (?:\(int\))?(?P<m>\d+), [^>]{0,80}?"
        r"(?P<a>__half|__nv_bfloat16)",
        "attention",
    ),
    # TorchInductor: triton_poi_fused_add_cos_sin_0; a template's (tem) operation is in its name
    Grammar(
        "inductor",
        ("triton_",),
        r"\btriton_(?P<kind>poi|red|per|tem|for|unk)_fused_(?P<rest>\w+)",
    ),
    # CuPy: cupy_multiply__float_float32_float32, where float is a Python number
    Grammar("cupy", ("cupy_",), r"^cupy_(?P<kind>\w+)"),
    # Old assembly of cuBLAS: sgemm_128x128x8_NN_vec
    Grammar(
        "cublas",
        ("gemm_",),
        rf"\b(?P<letter>[sdczh])(?P<kind>gemm)_{_MN}x(?P<k>\d+)_(?P<layout>[NT]{{2}})\w*",
    ),
    # Kepler: sgemm_sm35_ldg_nn_64x16x64x16x16
    Grammar(
        "cublas",
        ("gemm_sm",),
        r"\b(?P<letter>[sdczh])(?P<kind>gemm)_sm(?P<sm>\d+)_\w*",
    ),
)
"""The list; of several that match, the first decides."""
