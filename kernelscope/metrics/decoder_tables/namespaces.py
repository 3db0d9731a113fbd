"""Whose everything in a namespace is, forms of names that a compiler gives, and words of names."""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.metrics.decoder_tables.rows import Word

NAMESPACES: dict[str, str] = {
    "at": "aten", "at_cuda_detail": "aten", "c10": "aten", "cunn": "aten",
    "cub": "cub", "thrust": "thrust", "Eigen": "eigen", "tensorflow": "tensorflow",
    "xla": "xla", "stream_executor": "xla", "jax": "xla",
    "mxnet": "mxnet", "mshadow": "mshadow", "dali": "dali", "cudnn": "cudnn",
    "cask_cudnn": "cudnn", "xmma_cudnn": "xmma", "cask": "xmma", "cublasLt": "cublaslt",
    "cutlass": "cutlass", "cutlass_cudnn": "cutlass", "cutlass_cudnn_infer": "cutlass",
    "cutlass_cudnn_train": "cutlass", "cutlass__5x_cudnn": "cutlass", "cute": "cutlass",
    "flash": "flash_attention", "pytorch_flash": "flash_attention",
    "pytorch_fmha": "flash_attention", "flashinfer": "flashinfer",
    "CUTENSOR_NAMESPACE": "cutensor", "cutensor_internal_namespace": "cutensor",
    "cusparse": "cusparse", "cusolver": "cusolver", "cufft": "cufft", "curand": "curand",
    "nvfuser": "nvfuser", "fbgemm_gpu": "fbgemm", "fbgemm_utils": "fbgemm",
    "caffe2": "caffe2", "paddle": "paddle", "phi": "paddle", "onnxruntime": "onnxruntime",
    "vllm": "vllm", "transformer_engine": "transformer_engine", "tensorrt_llm": "tensorrt_llm",
    "fastertransformer": "fastertransformer", "apex": "apex", "deep_gemm": "deep_gemm",
    "genericReformat": "tensorrt", "nvinfer1": "tensorrt", "cudapy": "numba",
    "Kokkos": "kokkos", "RAJA": "raja", "alpaka": "alpaka", "raft": "raft", "cudf": "cudf",
    "cuml": "cuml", "cugraph": "cugraph", "rmm": "rmm", "faiss": "faiss", "cuvs": "cuvs",
    "sycl": "sycl",
}  # fmt: skip
"""The first namespace of a function → its library."""


@dataclass(frozen=True, slots=True)
class Form:
    """Names as a compiler or a framework makes them, matched on the qualified function name.

    Attributes
    ----------
    family : str
        Who makes them.
    hints : tuple of str
        One of them stands in every such name.
    pattern : str
        Regular expression that the whole function name matches.
    operation : str or None
        What they do, where the form says it.
    certainty : str
        ``likely`` where people choose such names, too.
    """

    family: str
    hints: tuple[str, ...]
    pattern: str
    operation: str | None = None
    certainty: str = "certain"


FORMS: tuple[Form, ...] = (
    # Triton to 2.1 wrote how arguments are specialised: triton__0d1d2d3d, matmul_kernel_0d1d2de
    Form("triton", ("_0d",), r"\w*?_0d[0-9dec]*"),
    Form("nvfuser", ("nvfuser_",), r"(?:.+::)?nvfuser_\w+"),
    # nvFuser to 2023: CudaCodeGen::kernel12
    Form("nvfuser", ("CudaCodeGen::",), r"CudaCodeGen::kernel\d+"),
    # OpenMP offloading of LLVM, and of NVHPC: nvkernel_main_F1L61_6
    Form("openmp", ("__omp_offloading_",), r"__omp_offloading_.*"),
    Form("openmp", ("nvkernel_",), r"nvkernel_\w+_F\d+L\d+(?:_\w+)?"),
    # OpenACC of NVHPC and PGI: main_42_gpu, main_42_gpu__red
    Form("openacc", ("_gpu",), r"\w+_\d+_gpu(?:__red)?"),
    Form("openacc", ("__pgi_uacc_",), r"\w*__pgi_uacc_\w+"),
    Form("kokkos", ("cuda_parallel_launch_",), r"(?:.+::)?cuda_parallel_launch_\w+"),
    # XLA names kernels after HLO instructions: loop_add_fusion_3, input_reduce_fusion
    Form("xla", ("_fusion",), r"(?:loop|wrapped)_\w*fusion(?:_\d+)?", "elementwise"),
    Form("xla", ("reduce_fusion",), r"input_\w*reduce_fusion(?:_\d+)?", "reduction"),
    Form("xla", ("gemm_fusion",), r"(?:triton_)?gemm_fusion\w*", "gemm"),
    Form("xla", ("transpose_fusion",), r"(?:input_)?transpose_fusion(?:_\d+)?", "layout",
         "likely"),
    Form("xla", ("fusion",), r"(?:\w+_)?fusion(?:_\d+)*", None, "likely"),
    Form("xla", ("triton_softmax",), r"triton_softmax(?:_computation)?(?:_\d+)*", "softmax",
         "likely"),
    Form("cusparse", ("csrmv_", "csrmm_", "csrsv", "cusparse"),
         r"(?:csrmv_|csrmm_|csrsv\d?_)\w+|\w*cusparse\w*", "sparse", "likely"),
    Form("cusolver", ("getrf", "potrf", "geqrf", "cusolver"),
         r"\w*(?:getrf|potrf|geqrf|getrs|syevj|gesvd|cusolver)\w*", "linear_algebra", "likely"),
    Form("magma", ("magma",), r"\w*magma\w*", None, "likely"),
)  # fmt: skip
"""The list; the first that matches decides."""

WORDS: tuple[Word, ...] = (
    Word("attention fmha mha", "attention"),
    Word("softmax Softmax SoftMax", "softmax"),
    Word("layer_norm LayerNorm layernorm batch_norm BatchNorm group_norm GroupNorm rms_norm "
         "rmsnorm RMSNorm", "normalization"),
    Word("dropout Dropout", "dropout"),
    Word("quantize Quantize dequant qparam rowwise_to_float float_to_FP8", "quantization"),
    Word("embedding Embedding embs", "embedding"),
    Word("pool Pool", "pooling"),
    Word("Resize resize upsample Upsample Resample", "resize"),
    Word("convolve conv2d Conv2d convolution Convolution", "convolution"),
    Word("gemv Gemv", "gemv"),
    Word("gemm Gemm matmul Matmul", "gemm"),
    Word("Adam adam optimizer Optimizer sgd Sgd", "optimizer"),
    Word("nll_loss NLL cross_entropy CrossEntropy", "loss"),
    Word("Transpose transpose permute Permute permutation Flip Deinterleave", "layout"),
    Word("sort Sort topk TopK", "sort"),
    Word("scan Scan cumsum", "scan"),
    Word("gather Gather scatter Scatter index Index concat Concat", "index"),
    Word("reduce Reduce StdDev", "reduction"),
    Word("memset fill Fill", "fill"),
    Word("copy Copy memcpy", "copy"),
    Word("Kernel4d elementwise Elementwise pointwise", "elementwise"),
)  # fmt: skip
"""What a function of a known library likely does. A user's function may be called anything."""
