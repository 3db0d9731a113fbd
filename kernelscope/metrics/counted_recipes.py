"""How FLOPs, bytes and instructions follow from what a vendor's tool counts: data, no code.

A recipe adds up counters, each times a factor. Recipes of a quantity stand best first; the first
one counts whose counters are all there. Sources:

- FLOPs are add + mul + 2·fma of the thread instructions that a predicate did not switch off
  (NERSC's roofline method, Yang et al. 2020; nvprof's ``flop_count_…`` are defined alike).
- A half-precision instruction works on one element or, packed, on two, which Nsight Compute does
  not count apart: NERSC's method takes one, the sections of newer releases (``…_hfma_pred_on_x4``)
  two. The recipe is the lower bound, twice that the upper one. Packed instructions of single
  precision, from compute capability 10.0 on, have counters of their own (``…_ffma2_…``).
- A transaction of nvprof, and a sector of Nsight Compute, is 32 bytes.
- L1 is what passes the tag stage of L1TEX: global, local, surface and texture; shared memory, which
  moves up to 128 bytes a transaction, is no part of it.
- Percentages and levels are no counts: nothing is made of them. What Nsight Compute gives per
  second, or per cycle, is a count over the duration of the same execution, and is taken back to it
  by that duration where the count itself was not stored. (It agrees in every report that holds
  both.) A mean of rates is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR_BYTES = 32

Terms = tuple[tuple[float, str], ...]
"""Factor and counter."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to a quantity.

    Attributes
    ----------
    quantity : str
        See :data:`UNITS`.
    terms : tuple of (float, str)
        What is added up.
    partial : bool
        Whether more belongs to it that these counters do not see: the sum is a lower bound.
    packed : bool
        Whether an instruction may have worked on two elements: see above.
    before : (int, int) or None
        On GPUs of this compute capability and later there is more that these counters do not see.
    """

    quantity: str
    terms: Terms
    partial: bool = False
    packed: bool = False
    before: tuple[int, int] | None = None


DURATION = "gpu__time_duration.sum"
"""How long an execution took, in ns; what is per second is over this."""

CYCLES = "{unit}__cycles_elapsed.avg"
"""The same in cycles of a unit of the hardware; what is per elapsed cycle is over this. `unit` is
what the counter's name begins with."""

PER_SECOND, PER_CYCLE = ".per_second", ".per_cycle_elapsed"

UNITS = {
    "fp16_flops": "flop",
    "fp32_flops": "flop",
    "fp64_flops": "flop",
    "tensor_flops": "flop",
    "tensor_int_ops": "op",
    "tensor_instructions": "count",
    "instructions": "count",
    "l1_bytes": "bytes",
    "l2_bytes": "bytes",
    "dram_bytes": "bytes",
    "dram_read_bytes": "bytes",
    "dram_write_bytes": "bytes",
}
"""Quantity → unit, in the order of a report. FLOPs without `tensor` are those of CUDA cores."""

_LETTER = {"fp16": "h", "fp32": "f", "fp64": "d"}
_NVPROF = {"fp16": "hp", "fp32": "sp", "fp64": "dp"}
_UNITS_OF_SM = ("smsp", "sm")  # the four parts of an SM, or all of it: the sums are the same


def _flops(precision: str) -> list[Recipe]:
    quantity, letter, nvprof = f"{precision}_flops", _LETTER[precision], _NVPROF[precision]

    def thread_instructions(of_sm: str, more: str = "") -> Terms:
        return tuple(
            (factor, f"{of_sm}__sass_thread_inst_executed_op_{letter}{op}{more}_pred_on.sum")
            for factor, op in _OPS
        )

    ncu = []
    for of_sm in _UNITS_OF_SM:
        plain = thread_instructions(of_sm)
        if precision == "fp32":
            twice = tuple((2 * factor, name) for factor, name in thread_instructions(of_sm, "2"))
            ncu.append(Recipe(quantity, (*plain, *twice)))
        ncu.append(
            Recipe(
                quantity,
                plain,
                packed=precision == "fp16",
                before=(10, 0) if precision == "fp32" else None,
            )
        )
    total = f"flop_count_{nvprof}"
    parts = tuple((factor, f"{total}_{op}") for factor, op in _OPS)
    return [*ncu, Recipe(quantity, ((1, total),)), Recipe(quantity, parts)]


_OPS = ((1, "add"), (1, "mul"), (2, "fma"))


def _bytes(quantity: str, *counters: str, partial: bool = False) -> Recipe:
    return Recipe(quantity, tuple((1, each) for each in counters), partial)


def _sectors(quantity: str, *counters: str, partial: bool = False) -> Recipe:
    return Recipe(quantity, tuple((SECTOR_BYTES, each) for each in counters), partial)


_L1 = "l1tex__t_sectors_pipe_lsu_mem"

RECIPES: tuple[Recipe, ...] = (
    *_flops("fp16"),
    *_flops("fp32"),
    *_flops("fp64"),
    *(_bytes("tensor_instructions", f"{sm}__inst_executed_pipe_tensor.sum") for sm in _UNITS_OF_SM),
    *(_bytes("instructions", f"{sm}__inst_executed.sum") for sm in _UNITS_OF_SM),
    _bytes("instructions", "inst_executed"),
    _bytes("l1_bytes", "l1tex__t_bytes.sum"),
    _sectors("l1_bytes", "l1tex__t_sectors.sum"),
    _sectors(
        "l1_bytes", f"{_L1}_global_op_ld.sum", f"{_L1}_global_op_st.sum", partial=True
    ),
    _sectors(
        "l1_bytes", "gld_transactions", "gst_transactions", "local_load_transactions",
        "local_store_transactions", partial=True,
    ),
    _sectors("l1_bytes", "gld_transactions", "gst_transactions", partial=True),
    _bytes("l2_bytes", "lts__t_bytes.sum"),
    _sectors("l2_bytes", "lts__t_sectors.sum"),
    _sectors(
        "l2_bytes", *(f"lts__t_sectors_op_{op}.sum" for op in ("read", "write", "atom", "red"))
    ),
    _sectors("l2_bytes", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", partial=True),
    _sectors("l2_bytes", "l2_read_transactions", "l2_write_transactions"),
    _bytes("dram_bytes", "dram__bytes.sum"),
    _bytes("dram_bytes", "dram__bytes_read.sum", "dram__bytes_write.sum"),
    _sectors("dram_bytes", "dram__sectors_read.sum", "dram__sectors_write.sum"),
    _bytes("dram_bytes", "dram_read_bytes", "dram_write_bytes"),
    _sectors("dram_bytes", "dram_read_transactions", "dram_write_transactions"),
    *(
        recipe
        for way in ("read", "write")
        for recipe in (
            _bytes(f"dram_{way}_bytes", f"dram__bytes_{way}.sum"),
            _sectors(f"dram_{way}_bytes", f"dram__sectors_{way}.sum"),
            _bytes(f"dram_{way}_bytes", f"dram_{way}_bytes"),
            _sectors(f"dram_{way}_bytes", f"dram_{way}_transactions"),
        )
    ),
)  # fmt: skip

TENSOR_OPS = (
    r"sm__ops_path_tensor_src_(?P<source>\w+?)_dst_\w+?(?P<sparse>_sparsity_(?:on|off))?\.sum"
)
"""Operations on tensor cores by the type of their operands (Nsight Compute from 2023 on)."""

TENSOR_PATHS = ("fp16", "bf16", "tf32", "fp64")
"""Operands that no count of operations may leave out, if it finds none at all."""

TENSOR_INSTRUCTIONS = (
    r"(?:sm|smsp)__inst_executed_pipe_tensor_op_(?P<kind>hmma|dmma|gmma|imma|bmma)\.sum"
)
"""Instructions on tensor cores by their kind; in a gmma a warp group works together."""

TENSOR_KINDS: tuple[tuple[str, tuple[int, int]], ...] = (
    ("hmma", (7, 0)),
    ("dmma", (8, 0)),
    ("gmma", (9, 0)),
)
"""Kinds whose operations are FLOPs, and the compute capability that has them first."""

WHOLE_NUMBERS = ("imma", "bmma")
"""Kinds whose operations are integer's."""

TENSOR_SHAPES: tuple[tuple[str, int], ...] = (
    (r"[a-wyz]16832(?![0-9])", 8192),
    (r"[a-wyz]16816(?![0-9])", 4096),
    (r"[a-wyz]8816(?![0-9])", 2048),
    (r"[a-wyz]1688(?![0-9])", 2048),
    (r"[a-wyz]1684(?![0-9])", 1024),
    (r"[a-wyz]884(?![0-9])", 512),
)
"""Instruction shape in a kernel's name (``s884``, ``h1688``, ``s16816``) → operations of one warp
instruction, 2·m·n·k; 884 of Volta runs as steps of 512 ."""

TENSOR_SHAPE = r"_tensor(\d+)x(\d+)x(\d+)(?![0-9])"
"""The same as XMMA's names spell it: ``tensor16x8x16``."""

INTEGER_NAMES = r"(?<![a-z])(?:i8816|i16816|i16832|igemm|imma|i8i8|s8s8|u8u8|int8)"
"""In names of kernels whose tensor cores work on whole numbers."""

TENSOR_BOUNDS: dict[tuple[int, int], tuple[int, int]] = {
    (7, 0): (512, 512),
    (7, 2): (512, 2048),
    (7, 5): (512, 2048),
    (8, 0): (512, 8192),
    (8, 6): (512, 8192),
    (8, 7): (512, 8192),
    (8, 9): (512, 8192),
}
"""Compute capability → floating-point operations of one warp instruction at least and at most,
where the name does not tell its shape. Volta has one shape. From 9.0 on an instruction of a warp
group works on up to 64 × 256 × 16, and nothing is concluded."""
