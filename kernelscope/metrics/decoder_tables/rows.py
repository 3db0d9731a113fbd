"""Rows of the decoder's tables, and the words that their columns may hold."""

from __future__ import annotations

from dataclasses import dataclass

OPERATIONS: tuple[str, ...] = (
    "gemm", "gemv", "convolution", "attention", "rnn",
    "elementwise", "reduction", "normalization", "softmax", "loss", "dropout", "optimizer",
    "embedding", "pooling", "resize", "index", "sort", "scan", "copy", "layout", "fill", "random",
    "quantization", "fft", "winograd", "linear_algebra", "sparse", "collective", "setup",
)  # fmt: skip
"""What a kernel computes. ``fft`` and ``winograd`` are transforms, of whatever; ``layout`` moves
data into another order; ``setup`` prepares pointers, offsets or states for another kernel."""

DIRECTIONS: tuple[str, ...] = ("forward", "backward", "data_gradient", "weight_gradient")
"""The pass of training; ``backward`` where the name does not say which gradients.

It is the form of the computation: the forward pass of a transposed convolution is the data
gradient of a convolution, and runs kernels that say so."""

PIPES: tuple[str, ...] = (
    "FFMA", "DFMA", "HFMA2", "ALU",
    "HMMA", "BF16", "TF32", "IMMA", "FP8", "FP4", "DMMA", "BMMA",
)  # fmt: skip
"""Where a kernel's arithmetic runs. CUDA cores: FP32, FP64 and packed FP16 arithmetic, and what is
no floating-point arithmetic. Tensor cores: FP16, BF16, TF32, integer, FP8, FP4, FP64, binary."""

TENSOR_PIPES = frozenset(PIPES[4:])

CERTAINTIES: tuple[str, ...] = ("certain", "likely", "unknown")

MATRIX = frozenset({"gemm", "convolution", "attention", "rnn"})
"""Operations that tensor cores may do; library kernels for any other run on CUDA cores."""

TYPES: dict[str, str] = {
    "f16": "fp16", "fp16": "fp16", "half": "fp16", "Half": "fp16", "__half": "fp16",
    "__half2": "fp16", "half_t": "fp16", "half2": "fp16", "float16": "fp16",
    "bf16": "bf16", "BFloat16": "bf16", "__nv_bfloat16": "bf16", "__nv_bfloat162": "bf16",
    "bfloat16_t": "bf16", "bfloat16": "bf16", "__bfloat": "bf16",
    "tf32": "tf32", "tfloat32_t": "tf32",
    "f32": "fp32", "fp32": "fp32", "float": "fp32", "float2": "fp32", "float4": "fp32",
    "float32": "fp32", "cf32": "complex64", "complex64": "complex64", "cuComplex": "complex64",
    "f64": "fp64", "fp64": "fp64", "double": "fp64", "double2": "fp64", "float64": "fp64",
    "cf64": "complex128", "complex128": "complex128", "cuDoubleComplex": "complex128",
    "i8": "int8", "s8": "int8", "int8": "int8", "int8x4": "int8", "int8x32": "int8",
    "u8": "uint8", "uint8": "uint8", "i32": "int32", "s32": "int32", "int32": "int32",
    "i64": "int64", "int64": "int64", "s4": "int4", "u4": "uint4", "b1": "binary",
    "e4m3": "e4m3", "fe4m3": "e4m3", "f8": "fp8", "fp8": "fp8", "mxfp8": "fp8",
    "e5m2": "e5m2", "fe5m2": "e5m2", "e2m1": "fp4", "f4": "fp4", "fp4": "fp4",
    "__nv_fp8_e4m3": "e4m3", "__nv_fp8_e5m2": "e5m2", "Float8_e4m3fn": "e4m3",
    "Float8_e5m2": "e5m2", "float_e4m3_t": "e4m3", "float_e5m2_t": "e5m2",
    "float_e2m1_t": "fp4",
}  # fmt: skip
"""How libraries spell types → what kernelscope calls them."""

TENSOR_PIPE_OF: dict[str, str] = {
    "fp16": "HMMA", "bf16": "BF16", "tf32": "TF32", "int8": "IMMA", "uint8": "IMMA",
    "int4": "IMMA", "uint4": "IMMA", "e4m3": "FP8", "e5m2": "FP8", "fp8": "FP8", "fp4": "FP4",
    "fp64": "DMMA", "binary": "BMMA",
}  # fmt: skip
"""Type that a tensor core multiplies → its pipe."""

CORE_PIPE_OF: dict[str, str] = {"fp32": "FFMA", "fp64": "DFMA"}
"""Type that CUDA cores compute in, where it is the only one of a name → the pipe."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Names that spell what they compute, read by one regular expression.

    Attributes
    ----------
    family : str
        Whose kernels they are.
    hints : tuple of str
        One of them stands in every such name; looking for them is cheap.
    pattern : str
        Its named groups are read by :mod:`kernel_decoder`: ``kind``, ``arch``, ``sm``, ``letter``
        (of the accumulator), ``mma`` (shape in digits), ``inst``, ``cls``, ``a``, ``mul``,
        ``acc``, ``out``, ``letters`` (nvjet), ``m``, ``n``, ``k``, ``stages``, ``layout``.
    operation : str or None
        What they compute; None where ``kind`` says it.
    deep : bool
        Whether it is to be looked for far inside a name, and not only near its start.
    """

    family: str
    hints: tuple[str, ...]
    pattern: str
    operation: str | None = None
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """Functions of one library that do the same.

    Attributes
    ----------
    family : str
        Whose they are.
    operation : str or None
        What they compute; None where their template arguments say it.
    names : str
        Their own names without namespaces, separated by blanks; one that ends in ``*`` is a
        beginning.
    direction : str or None
        The pass of training.
    scope : str
        A namespace that the qualified name must hold, where others use the name, too.
    template : str
        What the first template arguments are: ``in``, ``out``, ``acc`` or ``-``.
    pipe : str or None
        The pipe whatever the types are; None where the types decide.
    cores : bool
        Whether these are known to run on CUDA cores, though tensor cores could.
    auxiliary : bool
        Whether they only serve another kernel: they do none of the model's work.
    certainty : str
        ``likely`` where other programs use such a name, too.
    """

    family: str
    operation: str | None
    names: str
    direction: str | None = None
    scope: str = ""
    template: str = ""
    pipe: str | None = None
    cores: bool = False
    auxiliary: bool = False
    certainty: str = "certain"


@dataclass(frozen=True, slots=True)
class Word:
    """What a piece of a name says.

    Attributes
    ----------
    hints : str
        Pieces separated by blanks; any of them says it.
    operation : str or None
        What is computed; None leaves it open.
    direction : str or None
        The pass of training.
    pipe : str or None
        The pipe whatever the types are.
    """

    hints: str
    operation: str | None
    direction: str | None = None
    pipe: str | None = None
