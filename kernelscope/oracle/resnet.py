"""A ResNet-18 in training: one rank of a data-parallel job on an A100, twelve iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelscope.oracle.gpus import A100
from kernelscope.oracle.machine import Machine, Work
from kernelscope.oracle.plan import Plan, Setup, Thread, plan_of

ITERATIONS = 12
STALL_BEFORE = 8
"""The iteration that has to wait for its data: the period of the one before is long."""

FLUSH_IN = 5
"""The iteration in which the profiler empties its buffers."""

PROCESS = 20_400
MAIN, AUTOGRAD, PROFILER = PROCESS, PROCESS + 61, PROCESS + 33
COMPUTE, COPIES, NCCL = 7, 14, 20

BATCH = 64
IMAGES = BATCH * 3 * 224 * 224 * 4
ELEMENTWISE_BYTES_PER_S = 1.3e12
CONVOLUTION_FLOP_PER_S = 42e12

_SM80 = "sm80_xmma_{}_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize{}"
_END = "_stage{}_warpsize{}_g1_tensor16x8x8_execute_kernel_cudnn"
_ADD = "CUDAFunctor_add<float>, at::detail::Array<char *, (int)3>"
_CLAMP = "<unnamed>::launch_clamp_scalar(at::TensorIteratorBase &, c10::Scalar, c10::Scalar)"
_RELU_BACKWARD = "BinaryFunctor<float, float, float, <unnamed>::threshold_kernel_impl<float>>"
_SGD = "<unnamed>::FusedSgdMathFunctor<float, (int)3, (bool)0>"
_NORM_FORWARD = "cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, (int)512, (bool)1, (int)1>"
_NORM_BACKWARD = "cudnn::bn_bw_1C11_kernel_new<float, float, float2, (int)512, (bool)1, (int)1>"
_TO_NHWC = "cudnn::ops::nchwToNhwcKernel<float, float, float, (bool)0, (bool)1>"
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm *, unsigned long, ncclWork *)"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as the ranges name it: convolutions, channels, and height and width of its output."""

    name: str
    convolutions: int
    channels: int
    size: int

    @property
    def elements(self) -> int:
        """Elements of the output of one convolution for the whole batch."""
        return BATCH * self.channels * self.size**2


LAYERS: tuple[Layer, ...] = (
    Layer("conv1", 1, 64, 112),
    *(
        Layer(f"layer{stage}.{block}", 3 if stage > 1 and block == 0 else 2, channels, size)
        for stage, channels, size in ((1, 64, 56), (2, 128, 28), (3, 256, 14), (4, 512, 7))
        for block in (0, 1)
    ),
)


def resnet() -> Plan:
    """Return the plan: iterations, phases, layers, a backward thread, NCCL, data loading, stalls.

    Iteration 0 warms up. Loading stalls before iteration 8, outside of any iteration's range.
    The profiler flushes its buffers in iteration 5. Batches are copied one iteration ahead on
    their own stream, under the forward pass; gradients are reduced on NCCL's stream, under the
    backward pass, the last bucket beyond it.
    """
    machine = Machine(18, process=PROCESS, start=412_000_000, loading=2_600_000)
    machine.switch(MAIN, True, 3)
    machine.overhead(PROFILER, 411_000_000, 411_060_000, "TLS allocation")
    machine.call(MAIN, "cudaMalloc", 180_000)
    machine.copy(MAIN, "HtoD", IMAGES, COPIES, pageable=True)
    machine.record(MAIN, 1, COPIES)
    for index in range(ITERATIONS):
        _iteration(machine, index)
    machine.switch(MAIN, False, 3)
    end = machine.now(MAIN)
    machine.overhead(
        PROFILER, end + 20_000, end + 400_000, "CUDA profiling data flush on process exit"
    )
    threads = (
        Thread(PROCESS, MAIN, "python"),
        Thread(PROCESS, AUTOGRAD, "pt_autograd_0"),
        Thread(PROCESS, PROFILER, "CUPTI worker th"),
    )
    facts = {
        "warmup": [0],
        "waits_for_data_after": STALL_BEFORE - 1,
        "profiler_flush_in": FLUSH_IN,
        "main_thread": MAIN,
        "backward_thread": AUTOGRAD,
    }
    setup = Setup(gpus=(A100,), threads=threads, iteration_family="iteration #", facts=facts)
    return plan_of(sorted(machine.events, key=_moment), setup)


def _moment(event: object) -> int:
    # Records of CUDA events have no time of their own; they stay in front, in their order.
    return int(getattr(event, "start", 0))


def _iteration(machine: Machine, index: int) -> None:
    wait = 62_000_000 if index == STALL_BEFORE else 1_400_000
    with machine.range(MAIN, "data loading"):
        machine.sleep(MAIN, wait, "pthread_cond_timedwait", 3)
        machine.think(MAIN, 150_000)
    slow = 9.0 if index == 0 else 1.0
    with machine.range(MAIN, f"iteration {index}"):
        with machine.range(MAIN, "h2d"):
            machine.stream_wait(MAIN, 1, COMPUTE)
            machine.copy(MAIN, "HtoD", IMAGES, COPIES)
            machine.copy(MAIN, "HtoD", BATCH * 8, COPIES)
            machine.record(MAIN, 1, COPIES)
        with machine.range(MAIN, "forward"):
            _forward(machine, slow, index == FLUSH_IN)
        with machine.range(MAIN, "backward"):
            _backward(machine, slow)
        with machine.range(MAIN, "optimizer"):
            _optimizer(machine, slow)
        machine.copy(MAIN, "DtoH", 4, COMPUTE, pageable=True)
        machine.synchronize(MAIN, COMPUTE)
        machine.think(MAIN, 40_000)


def _forward(machine: Machine, slow: float, flush: bool) -> None:
    for layer in LAYERS:
        with machine.range(MAIN, layer.name, registered=True):
            if flush and layer.name == "layer2.1":
                # The next launch has to wait for the profiler's lock.
                begin = machine.now(MAIN)
                machine.overhead(PROFILER, begin, begin + 9_020_000, "CUPTI Buffer flush")
                machine.call(MAIN, "cudaStreamIsCapturing", 1, until=begin + 9_040_000)
            for work in _forward_of(layer):
                machine.think(MAIN, 6_000 * slow)
                machine.launch(MAIN, work, took=5_500 * slow)
    with machine.range(MAIN, "fc", registered=True):
        for work in _head():
            machine.think(MAIN, 6_000 * slow)
            machine.launch(MAIN, work, took=5_500 * slow)
    with machine.range(MAIN, "loss", registered=True):
        for work in _loss(""):
            machine.think(MAIN, 9_000)
            machine.launch(MAIN, work, took=5_500 * slow)


def _backward(machine: Machine, slow: float) -> None:
    asleep = machine.now(MAIN)
    machine.wait(AUTOGRAD, asleep + 30_000)
    machine.switch(AUTOGRAD, True, 9)
    for work in _loss("backward"):
        machine.launch(AUTOGRAD, work, took=5_500 * slow)
    bucket = 0
    for layer in (*reversed(LAYERS),):
        for work in _backward_of(layer):
            machine.think(AUTOGRAD, 7_000 * slow)
            machine.launch(AUTOGRAD, work, took=5_500 * slow)
        if layer.name in ("layer4.1", "layer4.0", "layer3.0", "conv1"):
            bucket += 1
            _all_reduce(machine, bucket, (9_440_000, 18_880_000, 12_600_000, 5_900_000))
    machine.stream_wait(AUTOGRAD, 40 + bucket, COMPUTE)
    machine.switch(AUTOGRAD, False, 9)
    machine.asleep(MAIN, asleep + 4_000, machine.now(AUTOGRAD) + 25_000, "pthread_cond_wait", 3)


def _all_reduce(machine: Machine, bucket: int, sizes: tuple[int, ...]) -> None:
    """Reduce a bucket of gradients on NCCL's stream, behind what the backward has queued."""
    size = sizes[bucket - 1]
    machine.record(AUTOGRAD, 30 + bucket, COMPUTE)
    with machine.range(AUTOGRAD, "ncclAllReduce", domain="NCCL", registered=True, payload=size):
        machine.stream_wait(AUTOGRAD, 30 + bucket, NCCL)
        work = Work(
            _ALL_REDUCE,
            int(60_000 + size / 38),
            (24, 1, 1),
            (640, 1, 1),
            96,
            41_760,
            carveout=65_536,
        )
        machine.launch(AUTOGRAD, work, NCCL, took=9_000, name="cudaLaunchKernelExC")
    machine.record(AUTOGRAD, 40 + bucket, NCCL)


def _optimizer(machine: Machine, slow: float) -> None:
    machine.think(MAIN, 120_000)
    name = (
        "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
        f"TensorListMetadata<(int)3>, at::native::{_SGD}>(T1, T2, T3...)"
    )
    for blocks in (320, 320, 318, 97):
        work = Work(name, 150 * blocks + 2_000, (blocks, 1, 1), (512, 1, 1), 48, carveout=16_384)
        machine.think(MAIN, 15_000)
        machine.launch(MAIN, work, took=5_500 * slow)
    for size in (46_800_000, 204_800):
        machine.memset(MAIN, size)


def _forward_of(layer: Layer) -> Iterator[Work]:
    if layer.name == "conv1":
        yield Work(
            f"void {_TO_NHWC}(cudnn::ops::nchw2nhwc_params_t<T3>, const T1 *, T2 *)",
            _moving(2 * IMAGES),
            (1568, 1, 64),
            (256, 1, 1),
            32,
            4_224,
            carveout=102_400,
        )
    for number in range(layer.convolutions):
        yield _convolution("fprop", layer)
        yield _norm(_NORM_FORWARD, layer, 3)
        if number == 1:
            yield _elementwise(_ADD, layer.elements, 3)
        if number < 2:
            yield _elementwise(_CLAMP, layer.elements, 2)


def _backward_of(layer: Layer) -> Iterator[Work]:
    for _ in range(layer.convolutions):
        yield _elementwise(_RELU_BACKWARD, layer.elements, 3)
        yield _norm(_NORM_BACKWARD, layer, 5)
        yield _convolution("dgrad", layer)
        yield _convolution("wgrad", layer)


def _moving(size: float) -> int:
    return int(1_800 + size * 1e9 / ELEMENTWISE_BYTES_PER_S)


def _elementwise(what: str, elements: int, tensors: int) -> Work:
    name = (
        f"void at::native::vectorized_elementwise_kernel<(int)4, at::native::{what}>(int, T2, T3)"
    )
    return Work(name, _moving(4 * tensors * elements), (elements // 512, 1, 1), (128, 1, 1), 16)


def _norm(what: str, layer: Layer, passes: int) -> Work:
    name = f"void {what}(cudnnTensorStruct, const T1 *, T3, T3 *)"
    return Work(
        name, _moving(4 * passes * layer.elements), (layer.channels, 1, 1), (512, 1, 1), 56, 4_128
    )


def _convolution(what: str, layer: Layer) -> Work:
    """Return the kernel that cuDNN takes for a layer: larger tiles for more channels."""
    flop = 2 * layer.elements * 9 * layer.channels if layer.channels > 64 else None
    flop = flop or 2 * layer.elements * (147 if layer.size == 112 else 9 * 64)
    rows, columns, stages, warps = (
        (128, 128, 4, "2x2x1") if layer.channels < 256 else (64, 64, 5, "2x2x1")
    )
    name = _SM80.format(what, f"{rows}x{columns}x16") + _END.format(stages, warps)
    pixels = BATCH * layer.size**2
    grid = (max(1, layer.channels // columns), -(-pixels // rows), 1)
    if what == "wgrad":
        grid = (max(1, layer.channels // columns), 9, 12)
    slower = {"fprop": 1.0, "dgrad": 1.1, "wgrad": 1.25}[what]
    duration = int(flop * slower * 1e9 / CONVOLUTION_FLOP_PER_S)
    registers = {"fprop": 252, "dgrad": 232, "wgrad": 246}[what]
    return Work(name, duration, grid, (128, 1, 1), registers, 0, 67_584, 167_936)


def _head() -> Iterator[Work]:
    yield Work(
        "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, "
        "at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4>>(T3)",
        6_400,
        (1024, 1, 1),
        (32, 16, 1),
        32,
        16,
    )
    yield Work(
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4>(T1::Params)",
        11_300,
        (16, 1, 4),
        (128, 1, 1),
        110,
        0,
        49_152,
        carveout=102_400,
    )


def _loss(direction: str) -> Iterator[Work]:
    softmax = "backward" if direction else "forward"
    yield Work(
        f"void <unnamed>::softmax_warp_{softmax}<float, float, float, (int)10, (bool)1>(T2 *, int)",
        3_100,
        (16, 1, 1),
        (32, 4, 1),
        40,
    )
    yield Work(
        f"void at::native::<unnamed>::nll_loss_{softmax}_reduce_cuda_kernel_2d<float, long>(T1 *)",
        3_600,
        (1, 1, 1),
        (32, 1, 1),
        24,
        512,
    )
