"""Theoretical occupancy: how many blocks of a launch fit on a multiprocessor.

The rules are those of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA toolkit:
``cudaOccMaxActiveBlocksPerMultiprocessor``), for compute capability 3.0 and later:

- warps: a block takes ⌈threads / 32⌉ of the SM's warps;
- registers: a warp takes its registers rounded up to 256, and warps are spread over the SM's
  sub-partitions (4; 2 on 6.0), each with its share of the registers;
- shared memory: a block takes static + dynamic, and from 8.0 on 1 KiB that the system reserves,
  rounded up to 128 bytes from 8.0 on and to 256 before.

The driver may set aside less shared memory than an SM can have; the limit here is the SM's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

WARP = 32
REGISTER_UNIT = 256
"""Registers are given to a warp in units of this (``cudaOccRegAllocationGranularity``)."""
RESERVED_SHARED_BYTES = 1024
"""Of each block from compute capability 8.0 on (CUDA C++ Programming Guide, 8.x)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a multiprocessor can hold; every figure known.

    Attributes
    ----------
    compute_major, compute_minor : int
        Compute capability.
    sm_count : int
        Multiprocessors of the device.
    blocks, warps, registers, shared_bytes : int
        Limits of one multiprocessor.
    """

    compute_major: int
    compute_minor: int
    sm_count: int
    blocks: int
    warps: int
    registers: int
    shared_bytes: int


def resident_blocks(
    limits: Limits, threads: Int64s, registers: Int64s, shared_bytes: Int64s
) -> Int64s:
    """Return how many blocks fit on one multiprocessor at once; 0 where not even one does.

    Parameters
    ----------
    limits : Limits
        Of the device.
    threads, registers, shared_bytes : ndarray of int64, shape (n,)
        Threads of a block, registers of a thread, and static + dynamic shared memory of a block.
    """
    new = limits.compute_major >= 8
    warps = np.maximum(-(-threads // WARP), 1)
    fit = np.minimum(limits.blocks, limits.warps // warps)

    parts = 2 if (limits.compute_major, limits.compute_minor) == (6, 0) else 4
    per_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    by_register = (limits.registers // parts) // np.maximum(per_warp, 1) * parts // warps
    fit = np.where(per_warp > 0, np.minimum(fit, by_register), fit)

    unit = 128 if new else 256
    shared = -(-(shared_bytes + (RESERVED_SHARED_BYTES if new else 0)) // unit) * unit
    by_shared = limits.shared_bytes // np.maximum(shared, 1)
    return np.asarray(np.where(shared > 0, np.minimum(fit, by_shared), fit), dtype=np.int64)


def sm_fill(
    limits: Limits, blocks: Int64s, threads: Int64s, registers: Int64s, shared_bytes: Int64s
) -> npt.NDArray[np.float64]:
    """Return at most which share of the device's block slots each launch can use.

    min(1, blocks / (multiprocessors × resident blocks per multiprocessor)); NaN where the
    launch cannot run by these limits, which then cannot be the device's.

    Parameters
    ----------
    limits : Limits
        Of the device.
    blocks : ndarray of int64, shape (n,)
        Blocks of the grid.
    threads, registers, shared_bytes : ndarray of int64, shape (n,)
        As :func:`resident_blocks` takes them.
    """
    slots: Any = limits.sm_count * resident_blocks(limits, threads, registers, shared_bytes)
    fill = np.minimum(1.0, blocks / np.maximum(slots, 1))
    return np.asarray(np.where(slots > 0, fill, np.nan))
