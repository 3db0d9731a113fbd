"""What general kernels do, by what is written in their template arguments.

The first row of which a piece stands in the arguments decides.
"""

from __future__ import annotations

from kernelscope.metrics.decoder_tables.rows import Word

FUNCTORS: dict[str, tuple[Word, ...]] = {
    "aten": (
        Word("_backward Backward backward_ BackwardCUDA", "elementwise", "data_gradient"),
        # These convert, too, from and to types that stand nowhere in the name.
        Word(
            "direct_copy_kernel copy_device_to_device bfloat16_copy_kernel float16_copy_kernel "
            "float8_copy_kernel CopyFunctor copy_kernel_cuda",
            "copy",
        ),
        Word("FillFunctor fill_kernel arange_cuda_out linspace_cuda range_cuda", "fill", None,
             "ALU"),
        Word("masked_scale_kernel dropout", "dropout"),
        Word(
            "normal_and_transform uniform_and_transform normal_kernel uniform_kernel bernoulli "
            "random_from_to random_kernel exponential_kernel cauchy_kernel geometric_kernel "
            "log_normal_kernel",
            "random",
        ),
        Word("flip_kernel roll_cuda", "layout", None, "ALU"),
        Word("put_kernel index_put index_kernel gather_kernel take_kernel", "index", None, "ALU"),
        Word("upsample interpolate", "resize"),
        Word("mse_kernel smooth_l1 huber_kernel binary_cross_entropy", "loss"),
        Word("batch_norm", "normalization"),
    ),
    "multi_tensor": (
        Word(
            "Adam LAMB Lamb SGD Sgd Adagrad NovoGrad RMSprop Adadelta LARS OptimizerTensorList",
            "optimizer",
        ),
        Word("L2Norm LpNorm LpMax MaxNorm", "reduction"),
        Word("CopyFunctor Copy<", "copy", None, "ALU"),
        Word("ZeroFunctor", "fill", None, "ALU"),
        Word("", "elementwise"),
    ),
    "eigen": (
        Word("ReductionOp ReducerOp ArgMax TensorTuple", "reduction"),
        Word("ScanOp scan", "scan"),
        Word("scalar_random Philox", "random"),
        Word("TensorSlicingOp TensorStridingSlicingOp TensorConcatenation TensorChipping", "copy",
             None, "ALU"),
        Word("TensorShufflingOp TensorReverseOp TensorInflationOp", "layout", None, "ALU"),
        Word("TensorPaddingOp TensorImagePatch", "layout"),
        Word("TensorCwiseUnaryOp TensorCwiseBinaryOp TensorCwiseTernaryOp TensorSelectOp",
             "elementwise"),
        Word("scalar_constant_op", "fill", None, "ALU"),
        Word("TensorBroadcastingOp", "copy", None, "ALU"),
        Word("TensorConversionOp", "copy"),
        Word("", "elementwise"),
    ),
    "thrust": (
        Word("sort Sort", "sort", None, "ALU"),
        Word("__uninitialized_fill __fill", "fill", None, "ALU"),
        Word("__copy __uninitialized_copy __gather __scatter", "copy", None, "ALU"),
        Word("__reduce ReduceAgent", "reduction"),
        Word("__scan ScanAgent", "scan"),
        Word("__unique __partition __copy_if __set_operations __merge", "index"),
        Word("__transform __tabulate __for_each __replace __parallel_for", "elementwise"),
    ),
    "mshadow": (
        Word("ReduceWithAxisExp ReduceTo1DExp", "reduction"),
        Word("", "elementwise"),
    ),
    "inductor": (
        Word("convolution", "convolution"),
        Word("attention flex_", "attention"),
        Word("addmm bmm _mm_ mm_", "gemm"),
        Word("", None),
    ),
    "inductor_reduction": (
        Word("softmax", "softmax"),
        Word("layer_norm batch_norm group_norm rms_norm", "normalization"),
        Word("nll_loss mse_loss cross_entropy", "loss"),
        Word("", "reduction"),
    ),
    "cupy": (
        Word("scan", "scan"),
        Word("sum prod max min mean var any all argmax argmin amax amin nan", "reduction"),
        Word("copy", "copy", None, "ALU"),
        Word("fill arange eye", "fill", None, "ALU"),
        Word("take scatter nonzero getitem choose", "index"),
        Word("random", "random"),
        Word("transpose", "layout"),
        Word("tensordot dot matmul", None),
        Word("", "elementwise"),
    ),
}  # fmt: skip
"""Kind of general kernel → its functors. A row without pieces is what the rest is."""
