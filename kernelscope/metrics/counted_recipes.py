"""How FLOPs, bytes and instructions follow from what a vendor's tool counts: data, no code.

A recipe adds up counters, each times a factor. Recipes of a quantity stand best first; the first
one counts whose counters are all there. Sources:

- FLOPs are add + mul + 2·fma of the thread instructions that a predicate did not switch off
  (NERSC's roofline method, Yang et al. 2020; nvprof's ``flop_count_…`` are defined alike). The
  half-precision counters enter as they are recorded, as in that method: a packed instruction is
  counted there by its elements.
- A transaction of nvprof, and a sector of Nsight Compute, is 32 bytes.
- L1 is what passes the tag stage of L1TEX: global, local, surface and texture; shared memory, which
  moves up to 128 bytes a transaction, is no part of it.
- Percentages, levels and rates are no counts: nothing is made of them.
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
    """

    quantity: str
    terms: Terms
    partial: bool = False


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

    def of(add: str, mul: str, fma: str) -> Recipe:
        return Recipe(quantity, ((1, add), (1, mul), (2, fma)))

    ncu = [
        of(*(f"{of_sm}__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum" for op in _OPS))
        for of_sm in _UNITS_OF_SM
    ]
    total = f"flop_count_{nvprof}"
    return [*ncu, Recipe(quantity, ((1, total),)), of(*(f"{total}_{op}" for op in _OPS))]


_OPS = ("add", "mul", "fma")


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

TENSOR_KINDS = {
    "float": ("hmma", "dmma", "gmma", "hgmma", "qgmma"),
    "int": ("imma", "igmma", "bmma", "bgmma"),
}
"""Tensor instructions whose operations are FLOPs, and those that are integer's."""

TENSOR_INSTRUCTIONS = r"(?:sm|smsp)__inst_executed_pipe_tensor_(?:op|type)_(?P<kind>\w+?)\.sum"

TENSOR_SHAPES: tuple[tuple[str, int], ...] = (
    (r"(?<![0-9])16816(?![0-9])", 4096),
    (r"(?<![0-9])16832(?![0-9])", 8192),
    (r"(?<![0-9])8816(?![0-9])", 2048),
    (r"(?<![0-9])1688(?![0-9])", 2048),
    (r"(?<![0-9])1684(?![0-9])", 1024),
    (r"(?<![0-9])884(?![0-9])", 512),
)
"""Instruction shape in a kernel's name (``s884``, ``h1688``, ``s16816``) → operations of one warp
instruction, 2·m·n·k; 884 runs as steps of 512."""

TENSOR_BOUNDS: dict[tuple[int, int], tuple[int, int]] = {
    (7, 0): (512, 512),
    (7, 2): (512, 2048),
    (7, 5): (512, 2048),
    (8, 0): (512, 8192),
    (8, 6): (512, 8192),
    (8, 7): (512, 8192),
    (8, 9): (512, 8192),
}
"""Compute capability → operations of one warp instruction at least and at most, where the name does
not tell its shape. Volta has one shape. From 9.0 on an instruction of a warp group works on up to
64 × 256 × 16, and nothing is concluded."""
