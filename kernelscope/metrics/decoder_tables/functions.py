"""Functions of libraries, by their own name.

A name without ``scope`` is matched in any namespace: libraries move their kernels between them
(``cudnn::detail::``, ``cudnn::ops::``, none), and copies of a library bear its names.
"""

from __future__ import annotations

from kernelscope.metrics.decoder_tables.rows import Function as F

_ATEN = (
    # What these do stands in their functor: see functors.py.
    F(
        "aten", None,
        "vectorized_elementwise_kernel unrolled_elementwise_kernel "
        "vectorized_templated_elementwise_kernel unrolled_templated_elementwise_kernel "
        "elementwise_kernel_with_index kernelPointwiseApply1 kernelPointwiseApply2 "
        "kernelPointwiseApply3 kernelPointwiseApply4",
    ),
    F("aten", None, "elementwise_kernel", scope="at::native"),
    F("aten", None, "elementwise_kernel", certainty="likely"),
    F("aten", "random", "distribution_elementwise_grid_stride_kernel distribution_nullary_kernel "
      "distribution_binary_elementwise_kernel randperm_handle_duplicate_keys_kernel"),
    F("aten", "reduction", "reduce_kernel", scope="at::native"),
    F("aten", "reduction", "kernelReduceAll kernelReduceAllPass1 kernelReduceAllPass2 "
      "kernelTransformReduceOuterDimIndex kernelTransformReduceInnermostDimIndex "
      "kernelReduceContigDim kernelReduceNoncontigDim kernelReduceNoncontigDim_shared "
      "lpnorm_cleanup lpmax_cleanup"),
    F("aten", "softmax", "softmax_warp_forward cunn_SoftMaxForward* cunn_SpatialSoftMaxForward*",
      "forward"),
    F("aten", "softmax", "softmax_warp_backward* cunn_SoftMaxBackward* "
      "cunn_SpatialSoftMaxBackward* masked_softmax_warp_backward", "data_gradient"),
    F("aten", "normalization", "vectorized_layer_norm_kernel LayerNormForwardCUDAKernel "
      "RowwiseMomentsCUDAKernel batch_norm_transform_input_kernel "
      "batch_norm_transform_input_channels_last_kernel "
      "batch_norm_collect_statistics_kernel batch_norm_collect_statistics_channels_last_kernel "
      "batch_norm_reduce_statistics_kernel "
      "ComputeFusedParamsCUDAKernel renorm_kernel", "forward"),
    F("aten", "normalization", "batch_norm_backward_kernel batch_norm_backward_reduce* "
      "GroupNormBackward* ComputeGradientFusedParamsCUDAKernel ComputeInternalGradientsCUDAKernel "
      "ComputeBackwardFusedParamsCUDAKernel", "backward"),
    F("aten", "normalization", "LayerNormBackwardCUDAKenrel LayerNormBackwardCUDAKernel "
      "layer_norm_grad_input_kernel layer_norm_grad_input_kernel_vectorized "
      "batch_norm_backward_elemt*", "data_gradient"),
    F("aten", "normalization", "GammaBetaBackward*", "weight_gradient"),
    F("aten", "pooling", "max_pool_forward_nchw max_pool_forward_nhwc adaptive_average_pool "
      "adaptive_average_pool_nhwc adaptivemaxpool avg_pool2d_out_cuda_frame* "
      "avg_pool3d_cuda_update_output max_pool3d_with_indices_single_out_frame", "forward"),
    F("aten", "pooling", "max_pool_backward_nchw max_pool_backward_nhwc "
      "adaptive_average_gradinput* atomic_adaptive_average_gradinput "
      "avg_pool2d_backward_out_cuda_frame*", "data_gradient"),
    F("aten", "resize", "upsample_bilinear2d_backward* upsample_nearest2d_backward* "
      "upsample_trilinear3d_backward* upsample_nearest3d_backward* upsample_gen2d_aa_backward*",
      "data_gradient"),
    F("aten", "resize", "upsample_bilinear2d_* upsample_nearest2d_* upsample_trilinear3d_* "
      "upsample_nearest3d_* upsample_nearest1d_* upsample_linear1d_* upsample_bicubic2d_* "
      "upsample_gen2d_aa_*", "forward"),
    F("aten", "embedding", "embedding_backward_feature_kernel EmbeddingBag_accGradParameters* "
      "EmbeddingBag_backward* compute_grad_weight compute_grad_weight_bags sum_and_scatter "
      "krn_partials_per_segment krn_partial_segment_offset",
      "weight_gradient"),
    F("aten", "embedding", "EmbeddingBag_updateOutputKernel*", "forward"),
    F("aten", "index", "indexSelectLargeIndex indexSelectSmallIndex index_elementwise_kernel "
      "vectorized_gather_kernel indexCopyLargeIndex indexCopySmallIndex", pipe="ALU"),
    # these may add
    F("aten", "index", "indexing_backward_kernel* indexFuncLargeIndex indexFuncSmallIndex "
      "indexAddLargeIndex indexAddSmallIndex _scatter_gather_elementwise_kernel "
      "_cuda_scatter_fill_internal_kernel"),
    F("aten", "sort", "bitonicSortKVInPlace radixSortKVInPlace gatherTopK gatherKthValue "
      "gatherMedian sort_postprocess_kernel fill_index_and_segment_kernel "
      "fill_reverse_indices_kernel computeBlockwiseWithinKCounts computeDigitCumSum "
      "radixFindKthValues", pipe="ALU"),
    F("aten", "scan", "tensor_kernel_scan_innermost_dim* tensor_kernel_scan_outer_dim*"),
    F("aten", "copy", "CatArrayBatchedCopy* split_with_sizes_copy* chunk_cat_cuda_kernel*",
      template="in", pipe="ALU"),
    F("aten", "layout", "im2col_kernel col2im_kernel vol2col_kernel vol2im_kernel", scope="at::",
      auxiliary=True),
    F("aten", "dropout", "fused_dropout_kernel fused_dropout_kernel_vec", template="in acc"),
    F("aten", "loss", "cunn_ClassNLLCriterion_updateOutput* nll_loss_forward* nll_loss2d_forward* "
      "SpatialClassNLLCriterion_updateOutput*", "forward"),
    F("aten", "loss", "cunn_ClassNLLCriterion_updateGradInput* nll_loss_backward* "
      "nll_loss2d_backward* SpatialClassNLLCriterion_updateGradInput*", "data_gradient"),
    F("aten", "convolution", "spatialDepthwiseConvolutionUpdateOutput "
      "conv_depthwise2d_forward_kernel* conv_depthwise3d_cuda_kernel", "forward", cores=True,
      template="in acc"),
    F("aten", "convolution", "spatialDepthwiseConvolutionUpdateGradInput "
      "conv_depthwise2d_backward_kernel* conv_depthwise3d_cuda_backward_input_kernel",
      "data_gradient", cores=True, template="in acc"),
    F("aten", "convolution", "spatialDepthwiseConvolutionAccGradParameters "
      "conv_depthwise2d_grad_weight_kernel* conv_depthwise3d_cuda_backward_weight_kernel",
      "weight_gradient", cores=True, template="in acc"),
    F("aten", "setup", "amp_update_scale_cuda_kernel", auxiliary=True),
    F("aten", "rnn", "lstm_cell_forward gru_cell_forward", "forward", cores=True),
    F("aten", "rnn", "lstm_cell_backward gru_cell_backward", "data_gradient", cores=True),
    F("multi_tensor", None, "multi_tensor_apply_kernel"),
)  # fmt: skip

_CUDNN = (
    F("cudnn", "convolution", "implicit_convolve_sgemm explicit_convolve_sgemm "
      "implicit_convolveNd_sgemm precomputed_convolve_sgemm", "forward", pipe="FFMA"),
    F("cudnn", "convolution", "conv2d_c1_k1_* conv2d_grouped_direct_kernel conv3d_grouped_direct* "
      "cudnn_depthwise* depthwise_fprop_direct_kernel", "forward", cores=True),
    F("cudnn", "convolution", "dgrad_engine dgrad2d_alg1_1 dgrad_alg0_engine dgrad_alg1_engine "
      "convolveNd_dgrad_float_engine", "data_gradient", pipe="FFMA"),
    F("cudnn", "convolution", "dgrad2d_grouped_direct_kernel dgrad2d_c1_k1_*", "data_gradient",
      cores=True),
    F("cudnn", "convolution", "dgrad_1x1_stride_2x2", "data_gradient"),
    F("cudnn", "convolution", "wgrad_alg0_engine* wgrad_alg1_engine* wgrad_alg1_nd_float_engine "
      "convolveNd_wgrad_engine", "weight_gradient", pipe="FFMA"),
    F("cudnn", "convolution", "wgrad2d_grouped_direct_kernel wgrad2d_c1_k1_* "
      "wgrad2d_shmem_tiling_kernel", "weight_gradient", cores=True),
    F("cudnn", "convolution", "first_layer_wgrad_kernel", "weight_gradient"),
    F("cudnn", "convolution", "first_layer_fwd_kernel", "forward"),
    F("cudnn", "normalization", "bn_fw_tr_1C11* bn_fw_inf_1C11* bn_fw_tr_* bn_fw_inf_*", "forward"),
    F("cudnn", "normalization", "bn_bw_1C11* bn_bw_*", "backward"),
    F("cudnn", "pooling", "pooling_fw_* pooling_fw_4d_kernel", "forward"),
    F("cudnn", "pooling", "pooling_bw_*", "data_gradient"),
    F("cudnn", "elementwise", "activation_fw_4d_kernel activation_fw_* op_generic_tensor_kernel "
      "op_tensor_kernel* OpTensorKernel add_tensor_kernel* addTensor_kernel*", "forward"),
    F("cudnn", "elementwise", "activation_bw_*", "data_gradient"),
    F("cudnn", "softmax", "softmax_fw_*", "forward"),
    F("cudnn", "softmax", "softmax_bw_*", "data_gradient"),
    F("cudnn", "dropout", "dropout_fp dropout_bp", scope="cudnn"),
    F("cudnn", "layout", "nchwToNhwcKernel nhwcToNchwKernel nchwToFoldedNhwcKernel "
      "nhwcToFoldedNhwcKernel foldedNhwcToNhwcKernel nchwToNchwKernel nhwcAddPaddingKernel "
      "nchwAddPaddingKernel tensorTransformGeneric nhwcToNcxhwxKernel ncxhwxToNhwcKernel",
      template="in out acc", auxiliary=True),
    F("cudnn", "layout", "im2col4d_kernel flip_filter", auxiliary=True),
    F("cudnn", "copy", "convertTensor_kernel", auxiliary=True, template="- in out"),
    F("cudnn", "elementwise", "scalePackedTensor_kernel scaleTensor_kernel", auxiliary=True),
    F("cudnn", "fill", "setTensor5d_kernel setTensorNd_kernel", auxiliary=True, pipe="ALU"),
    F("cudnn", "setup", "computeOffsetsKernel computeBOffsetsKernel computeWgradOffsetsKernel "
      "computeWgradBOffsetsKernel computeWgradSplitKOffsetsKernel", auxiliary=True, pipe="ALU"),
    F("cudnn", "winograd", "winogradForward*", "forward", auxiliary=True),
    F("cudnn", "winograd", "winogradWgrad*", "weight_gradient", auxiliary=True),
    F("cudnn", "winograd", "winogradDgrad*", "data_gradient", auxiliary=True),
    F("cudnn", "winograd", "generateWinogradTilesKernel", auxiliary=True),
    F("cudnn", "fft", "fft2d_r2c_* fft2d_c2r_* fft1d_r2c_* fft1d_c2r_* fft3d_r2c_* fft3d_c2r_*",
      auxiliary=True),
    F("cudnn", "reduction", "reduce_wgrad_nchw_helper reduceTensor_kernel", auxiliary=True),
    F("cudnn", "setup", "compute_gemm_pointers", auxiliary=True, pipe="ALU", certainty="likely"),
    F("cudnn", "rnn", "LSTM_elementWise_fp GENERIC_elementWise_fp GRU_elementWise_fp "
      "elemWiseRNNcell", "forward", cores=True),
    F("cudnn", "rnn", "LSTM_elementWise_bp* GENERIC_elementWise_bp* GRU_elementWise_bp*",
      "data_gradient", cores=True),
    F("cudnn", "rnn", "RNN_blockPersist_fp* persistRNN* RNN_fp*", "forward"),
    F("cudnn", "rnn", "RNN_blockPersist_bp* RNN_bp*", "data_gradient"),
)  # fmt: skip

_BLAS = (
    F("cublaslt", "reduction", "splitKreduce_kernel", auxiliary=True, scope="cublasLt"),
    F("cublas", "reduction", "splitKreduce_kernel", auxiliary=True),
    F("cublas", "gemv", "gemv2T_kernel_val gemv2N_kernel gemvNSP_kernel gemv2T_kernel "
      "gemvNSP_kernel_val dot_kernel reduce_1Block_kernel", cores=True),
    F("cublas", "gemv", "kernel", scope="internal::gemvx", cores=True),
    F("cublas", "gemm", "gemmSN_NN_kernel gemmSN_TN_kernel* gemmk1_kernel gemm_kernel2x2_core "
      "gemm_kernel1x1_core gemmk1_kernel_batched", cores=True),
    F("cublas", "gemm", "sgemm_largek_lds64 magma_lds128_sgemm_kernel magma_sgemmEx_kernel "
      "sgemm_largek_lds32 maxwell_sgemm*", pipe="FFMA"),
    F("cublas", "gemm", "dgemm_largek_lds64", pipe="DFMA"),
    F("cublas", "elementwise", "scal_kernel scal_kernel_val axpy_kernel_val axpy_kernel"),
    F("cublas", "reduction", "nrm2_kernel asum_kernel iamax_kernel iamin_kernel"),
    F("cublas", "elementwise", "globalKernel", scope="epilogue::impl", auxiliary=True),
    F("cublas", "linear_algebra", "trsm_left_kernel trsm_right_kernel trsv_kernel "
      "trmm_left_kernel"),
)  # fmt: skip

_CUB = (
    F("cub", "reduction", "DeviceReduceKernel DeviceReduceSingleTileKernel "
      "DeviceSegmentedReduceKernel DeviceReduceByKeyKernel DeviceHistogramSweepKernel "
      "DeviceReduceNondeterministicAtomicKernel DeterministicDeviceReduceKernel"),
    F("cub", "scan", "DeviceScanKernel DeviceScanByKeyKernel"),
    F("cub", "sort", "DeviceRadixSort* DeviceMergeSort* DeviceSegmentedRadixSort* "
      "DeviceSegmentedSort*", pipe="ALU"),
    F("cub", "index", "DeviceSelectSweepKernel DeviceUniqueByKeySweepKernel "
      "DevicePartitionSweepKernel DeviceThreeWayPartitionKernel DeviceRleSweepKernel"),
    F("cub", "copy", "BatchMemcpyKernel MultiBlockBatchMemcpyKernel", pipe="ALU"),
    F("cub", "elementwise", "DeviceForKernel static_kernel dynamic_kernel transform_kernel",
      scope="cub::"),
    F("cub", "setup", "DeviceScanInitKernel DeviceCompactInitKernel DeviceHistogramInitKernel "
      "DeviceUniqueByKeyInitKernel EmptyKernel", pipe="ALU", auxiliary=True),
    F("thrust", None, "_kernel_agent", scope="thrust::"),
)  # fmt: skip

_OTHERS = (
    F("eigen", None, "EigenMetaKernel EigenMetaKernelVectorized EigenMetaKernelNonVectorized"),
    F("eigen", "reduction", "FullReductionKernel* InnerReductionKernel* OuterReductionKernel* "
      "ReductionInitFullReduxKernel*", scope="Eigen::"),
    F("tensorflow", "reduction", "BlockReduceKernel RowReduceKernel ColumnReduceKernel "
      "ColumnReduceMax16ColumnsKernel ColumnReduceSimpleKernel CleanupSegments",
      scope="tensorflow::"),
    F("tensorflow", "softmax", "GenerateNormalizedProb GenerateNormalizedProbFused",
      scope="tensorflow::"),
    F("tensorflow", "layout", "ShuffleInTensor3Simple SwapDimension1And2InTensor3UsingTiles "
      "SwapDimension0And2InTensor3Simple S2B D2S_NCHW D2S_NHWC S2D_NCHW S2D_NHWC "
      "PadInputCustomKernelNHWC PadInputCustomKernelNCHW", scope="tensorflow::"),
    F("tensorflow", "fill", "SetZero SetToValue", scope="tensorflow::", pipe="ALU"),
    F("tensorflow", "elementwise", "ReluGradHalfKernel ReluGradHalfKernelVector",
      "data_gradient", scope="tensorflow::"),
    F("tensorflow", "elementwise", "BiasNHWCKernel BiasNCHWKernel"),
    F("tensorflow", "reduction", "BiasGradNHWC_SharedAtomics BiasGradNCHW_SharedAtomics",
      "weight_gradient"),
    F("tensorflow", "convolution", "DepthwiseConv2dGPUKernel*", "forward", cores=True),
    F("mshadow", None, "MapPlanKernel MapPlanLargeKernel MapReduceKeepLowestKernel "
      "MapReduceKeepDim1Kernel", scope="mshadow::"),
    F("mxnet", "elementwise", "mxnet_generic_kernel mxnet_generic_kernel_ex"),
    F("flash_attention", "attention", "flash_fwd_splitkv_combine_kernel fmha_bwd_dot_do_o_kernel "
      "flash_bwd_dot_do_o_kernel flash_bwd_convert_dq_kernel flash_bwd_convert_dkv_kernel "
      "flash_bwd_clear_dkvaccum_kernel prepare_varlen_num_blocks_kernel",
      cores=True, auxiliary=True),
    F("flash_attention", "attention", "flash_fwd_kernel flash_fwd_splitkv_kernel", "forward"),
    F("flash_attention", "attention", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
      "data_gradient"),
    F("flashinfer", "attention", "BatchPrefillWithPagedKVCacheKernel "
      "BatchPrefillWithRaggedKVCacheKernel BatchDecodeWithPagedKVCacheKernel "
      "SinglePrefillWithKVCacheKernel SingleDecodeWithKVCacheKernel", "forward"),
    F("vllm", "attention", "paged_attention_v1_kernel paged_attention_v2_kernel "
      "paged_attention_v2_reduce_kernel", "forward"),
    F("vllm", "normalization", "rms_norm_kernel fused_add_rms_norm_kernel", scope="vllm::"),
    F("vllm", "elementwise", "act_and_mul_kernel rotary_embedding_kernel", scope="vllm::"),
    F("vllm", "copy", "reshape_and_cache_kernel reshape_and_cache_flash_kernel copy_blocks_kernel",
      scope="vllm::"),
    F("vllm", "gemm", "Marlin", certainty="likely"),
    F("apex", "normalization", "cuApplyLayerNorm cuApplyRMSNorm", "forward"),
    F("apex", "normalization", "cuComputeGradInput", "data_gradient"),
    F("apex", "normalization", "cuComputePartGradGammaBeta cuComputeGradGammaBeta",
      "weight_gradient"),
    F("fbgemm", "embedding", "split_embedding_backward_*", "weight_gradient"),
    F("fbgemm", "embedding", "split_embedding_codegen_forward_* "
      "dense_embedding_codegen_forward_* split_embedding_nobag_codegen_forward_*", "forward"),
    F("fbgemm", "embedding", "split_embedding_codegen_grad_* permute_pooled_embs_kernel "
      "linearize_index_kernel bounds_check_indices_kernel"),
    F("curand", "random", "generate_seed_pseudo generate_seed_pseudo_mrg gen_sequenced "
      "gen_sequenced_generic generate_seed_sobol32"),
    F("cufft", "fft", "vector_fft regular_fft vector_fft_r2c vector_fft_c2r regular_bluestein_fft "
      "multi_bluestein_fft composite_2way_fft composite_2way_fft_r2c transpose_readWrite_alignment_"
      "kernel dpRealComplex::preprocessC2C_kernelMem"),
    F("tensorrt", "layout", "copyVectorizedKernel copyPackedKernel", scope="genericReformat",
      auxiliary=True),
    F("llm.c", "embedding", "encoder_forward_kernel* wte_backward_kernel wpe_backward_kernel "
      "encoder_backward_kernel*", certainty="likely"),
    F("llm.c", "normalization", "layernorm_forward_kernel* fused_residual_forward_kernel*",
      "forward", certainty="likely"),
    F("llm.c", "normalization", "layernorm_backward_kernel*", "backward", certainty="likely"),
    F("llm.c", "softmax", "softmax_forward_kernel*", "forward", certainty="likely"),
    F("llm.c", "softmax", "softmax_autoregressive_backward_*", "data_gradient",
      certainty="likely"),
    F("llm.c", "elementwise", "gelu_forward_kernel* residual_forward_kernel* gelu_backward_* "
      "add_bias_kernel", certainty="likely"),
    F("llm.c", "loss", "fused_classifier_kernel* crossentropy_forward_kernel*",
      certainty="likely"),
    F("llm.c", "optimizer", "adamw_kernel*", certainty="likely"),
    F("llm.c", "reduction", "matmul_backward_bias_kernel* global_norm_squared_kernel "
      "norm_kernel", certainty="likely"),
    F("llm.c", "layout", "permute_kernel unpermute_kernel permute_kernel_backward "
      "unpermute_kernel_backward", certainty="likely"),
    F("bitsandbytes", "quantization", "kQuantizeBlockwise kDequantizeBlockwise kQuantize "
      "kDequantize kInt8VectorQuant kdequant_mm_int32_fp16"),
    F("bitsandbytes", "gemv", "kgemm_4bit_inference_naive kgemm_4bit_inference", cores=True),
    F("bitsandbytes", "optimizer", "kOptimizer32bit1State kOptimizer32bit2State "
      "kOptimizerStatic8bit* kPreconditionOptimizer*"),
    F("mamba", "scan", "selective_scan_fwd_kernel", "forward"),
    F("mamba", "scan", "selective_scan_bwd_kernel", "backward"),
    F("mamba", "convolution", "causal_conv1d_fwd_kernel causal_conv1d_channellast_fwd_kernel",
      "forward", cores=True),
    F("mamba", "convolution", "causal_conv1d_bwd_kernel causal_conv1d_channellast_bwd_kernel",
      "backward", cores=True),
)  # fmt: skip

FUNCTIONS: tuple[F, ...] = (*_ATEN, *_CUDNN, *_BLAS, *_CUB, *_OTHERS)
"""The list. Of rows that a name fits, the first whose scope it has decides."""
