"""How full launches can make a GPU, and what it can do at most."""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import CUDA_GUIDE, OWN, Explanation

CALCULATOR = "NVIDIA's occupancy calculator (cuda_occupancy.h of the CUDA toolkit)"

_SHAPE = ("kernels.grid_x", "kernels.grid_y", "kernels.grid_z", "kernels.block_x",
          "kernels.block_y", "kernels.block_z")  # fmt: skip
_RESOURCES = ("kernels.registers_per_thread", "kernels.static_shared_bytes",
              "kernels.dynamic_shared_bytes", "kernels.shared_carveout_bytes",
              "kernels.cluster_x")  # fmt: skip
_LIMITS = ("devices.compute_major", "devices.compute_minor", "devices.max_blocks_per_sm",
           "devices.max_warps_per_sm", "devices.max_registers_per_sm",
           "devices.max_shared_bytes_per_sm")  # fmt: skip
_INPUTS = (*_SHAPE[3:], *_RESOURCES, *_LIMITS)
_BOUND = (
    "An upper bound where shared memory's carve-out is not recorded, where clusters are used, and "
    "where a block uses several named barriers, which no trace records (see occupancy_note)."
)
_NULL = "Missing where the shape's executions differ in it: occupancy_note says why."

ENTRIES: tuple[Explanation, ...] = (
    Explanation(
        key="launch_shapes.occupancy",
        question="How many warps of an SM can this launch shape keep resident, at most?",
        formula="resident_blocks · ⌈threads of a block / 32⌉ / warps that an SM can hold",
        unit="ratio",
        denominator="the warps that one SM can hold: 64, 48 or 32 by compute capability",
        inputs=_INPUTS,
        source=CALCULATOR,
        pitfalls=f"Theoretical, not achieved: a grid smaller than the GPU, or its last wave, "
        f"leaves SMs emptier; and high occupancy is not speed. {_BOUND} {_NULL}",
        elsewhere="ncu's Theoretical Occupancy (sm__maximum_warps_per_active_cycle_pct), which "
        "agrees exactly; achieved occupancy is counted by the hardware.",
    ),
    Explanation(
        key="launch_shapes.resident_blocks",
        question="How many blocks of this launch shape fit on an SM at once?",
        formula="min over warps, registers, shared memory and blocks of ⌊what an SM has / what a "
        "block takes⌋",
        unit="count",
        inputs=_INPUTS,
        source=f"{CALCULATOR}; limits as recorded, else from {CUDA_GUIDE}",
        pitfalls=_BOUND,
        elsewhere="The smallest of ncu's launch__occupancy_limit_* (warps, registers, shared_mem, "
        "blocks); ncu before 2022 leaves the carve-out out of account.",
    ),
    Explanation(
        key="launch_shapes.limiter",
        question="What keeps more blocks of this launch shape off an SM?",
        formula="the resources that allow no more than resident_blocks, joined by +; carveout "
        "where only the driver's setting does; none_fits where no block fits",
        unit="text",
        inputs=_INPUTS,
        source=OWN,
        pitfalls="Where several limit, all of them have to be lessened. Shared memory counts by "
        "the most that an SM can have: the driver sets aside no more than is of use.",
    ),
    Explanation(
        key="launch_shapes.waves",
        question="How often does this launch fill the GPU with blocks?",
        formula="blocks of the grid / (resident_blocks · SMs)",
        unit="1",
        inputs=(*_SHAPE, *_RESOURCES, *_LIMITS, "devices.sm_count"),
        source=f"{OWN}, as ncu's launch__waves_per_multiprocessor",
        pitfalls="Below 1 the grid does not fill the GPU once. Missing with clusters: how many fit "
        "at once depends on how SMs are grouped, which is not recorded.",
    ),
    Explanation(
        key="launch_shapes.tail_efficiency",
        question="How much does the last, partial wave cost?",
        formula="waves / ⌈waves⌉",
        unit="ratio",
        denominator="waves rounded up: the time of whole waves, if blocks take equally long",
        inputs=(*_SHAPE, *_RESOURCES, *_LIMITS, "devices.sm_count"),
        source=OWN,
        pitfalls="Blocks that take unequally long overlap waves, and the tail costs less.",
    ),
    Explanation(
        key="launch_shapes.occupancy_note",
        question="Why is the occupancy missing, or an upper bound?",
        formula="what is not recorded, or differs between the shape's executions",
        unit="text",
        inputs=_INPUTS,
        source=OWN,
    ),
    Explanation(
        key="peaks.per_s",
        question="What can a pipe, or a memory, of the GPU do at most?",
        formula="lanes · 2 · SMs · clock; of tensor cores FLOP per clock and SM · SMs · clock",
        unit="see the row's unit",
        inputs=("devices.name", "devices.compute_major", "devices.sm_count", "devices.clock_hz",
                "devices.memory_bytes_per_s"),
        source="kernelscope's catalogue (kernelscope devices NAME shows the sources)",
        pitfalls="Dense, by accumulate type, at a clock that the GPU may not hold: the basis "
        "stands beside it, and --clock gives another. Of a MIG instance, by its own SMs.",
        elsewhere="Tables of peaks often mix sparse with dense rates, boost with tensor clocks.",
    ),
    Explanation(
        key="peaks.clock_hz",
        question="At which clock is the peak reckoned?",
        formula="--clock, else the trace's maximum clock, else the catalogue's boost clock; tensor "
        "cores at their own clock where the catalogue has one and it is lower",
        unit="Hz",
        inputs=("devices.clock_hz",),
        source=OWN,
        pitfalls="The clock of the run is not recorded: it may be lower, and then the peak is.",
    ),
)  # fmt: skip
