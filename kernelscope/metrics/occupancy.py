"""Theoretical occupancy: how many blocks of a launch fit on a multiprocessor, and what limits them.

The rules are those of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA toolkit:
``cudaOccMaxActiveBlocksPerMultiprocessor``), for compute capability 3.0 and later:

- warps: a block takes ⌈threads / 32⌉ of the SM's warps;
- registers: a warp takes its registers rounded up to 256, and warps are spread over the SM's
  sub-partitions (4; 2 on 6.0), each with its share of the registers. A block is refused whose
  registers, with its warps rounded up to the sub-partitions, are more than a block may have;
- shared memory: a block takes static + dynamic, and from 8.0 on 1 KiB that the system reserves,
  rounded up to 128 bytes from 8.0 on and to 256 before.

The driver sets aside as much of the SM's memory as shared memory as it finds right for a kernel
(the carve-out, from 7.0 on and on 3.x). Where it is recorded it is the limit, else the most that
the SM can have is, and what comes out is an upper bound. So it is where a block uses several named
barriers, which no trace records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

WARP = 32
REGISTER_UNIT = 256
"""Registers are given to a warp in units of this (``cudaOccRegAllocationGranularity``)."""
RESERVED_SHARED_BYTES = 1024
"""Of each block from compute capability 8.0 on (CUDA C++ Programming Guide, 8.x)."""
BLOCK_THREADS = 1024
"""A block has at most this many threads, on every capability."""
SHARED_WITHOUT_OPT_IN = 48 << 10
"""A block has at most this much shared memory before 7.0."""
UNLIMITED = np.iinfo(np.int64).max
"""What a resource allows that a launch does not use."""

RESOURCES = ("warps", "registers", "shared_memory", "blocks")
"""What can limit the blocks of an SM, in the order in which limiters are named."""
CARVEOUT = "carveout"
"""The limiter where only the driver's choice is: with more shared memory, more would fit."""
NONE_FITS = "none_fits"


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
    block_registers : int
        Registers of one block at most.
    block_shared_bytes : int or None
        Shared memory of one block at most, without what is reserved; None: as it follows from the
        capability and `shared_bytes`.
    """

    compute_major: int
    compute_minor: int
    sm_count: int
    blocks: int
    warps: int
    registers: int
    shared_bytes: int
    block_registers: int = 65536
    block_shared_bytes: int | None = None

    @property
    def reserved_shared_bytes(self) -> int:
        """What the system takes of each block's shared memory."""
        return RESERVED_SHARED_BYTES if self.compute_major >= 8 else 0

    @property
    def shared_of_block(self) -> int:
        """Shared memory of a block at most, what is reserved included."""
        if self.block_shared_bytes is not None:
            return self.block_shared_bytes + self.reserved_shared_bytes
        if self.compute_major < 7:
            return min(SHARED_WITHOUT_OPT_IN, self.shared_bytes)
        return self.shared_bytes

    @property
    def has_carveout(self) -> bool:
        """Whether the driver chooses how much of an SM's memory is shared memory."""
        return self.compute_major == 3 or self.compute_major >= 7


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Launches:
    """What decides how launches fit; arrays of one length.

    Attributes
    ----------
    blocks : ndarray of int64
        Blocks of the grid.
    threads, registers, shared_bytes : ndarray of int64
        Threads of a block, registers of a thread, and static + dynamic shared memory of a block.
    carveout : ndarray of int64
        Shared memory of an SM that the driver set aside; 0 where that is not known.
    cluster : ndarray of int64
        Blocks of a cluster; 1 without clusters.
    """

    blocks: Int64s
    threads: Int64s
    registers: Int64s
    shared_bytes: Int64s
    carveout: Int64s
    cluster: Int64s


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Occupancy:
    """How launches fit on a device; arrays of one length.

    Attributes
    ----------
    resident_blocks : ndarray of int64
        Blocks on one SM at once; 0 where not one fits.
    warps : ndarray of int64
        Warps of a block.
    limiting : ndarray of int64
        Bit i is set where ``RESOURCES[i]`` allows no more blocks than that. The driver sets aside
        no more shared memory than is of use, so that one counts by what the SM can have at most;
        without any bit the carve-out alone is the limit.
    occupancy : ndarray of float64
        Resident warps over the warps that an SM can hold; NaN where no block fits.
    waves : ndarray of float64
        Blocks of the grid over those that the device holds at once. NaN where no block fits, and
        with clusters: how many of them a device holds depends on how its SMs are grouped, which
        is not recorded.
    tail_efficiency : ndarray of float64
        Waves over waves rounded up: the share of the block slots that is used while all of a
        launch's waves take their turn.
    """

    resident_blocks: Int64s
    warps: Int64s
    limiting: Int64s
    occupancy: Float64s
    waves: Float64s
    tail_efficiency: Float64s

    @property
    def limiter(self) -> list[str]:
        """The limiting resources by name, joined by ``+``; ``none_fits`` where no block does."""
        fits = (self.resident_blocks > 0).tolist()
        return [
            _named(bits) if fit else NONE_FITS
            for bits, fit in zip(self.limiting.tolist(), fits, strict=True)
        ]


def _named(bits: int) -> str:
    names = [name for place, name in enumerate(RESOURCES) if bits >> place & 1]
    return "+".join(names) or CARVEOUT


def block_limits(limits: Limits, launches: Launches) -> npt.NDArray[np.int64]:
    """Return how many blocks each resource of an SM allows.

    Parameters
    ----------
    limits : Limits
        Of the device.
    launches : Launches
        n of them.

    Returns
    -------
    ndarray of int64, shape (4, n)
        A row for each of :data:`RESOURCES`; :data:`UNLIMITED` where a launch uses none of it.
    """
    warps = _warps(launches)
    fits = launches.threads <= BLOCK_THREADS
    return np.stack(
        [
            np.where(fits, limits.warps // warps, 0),
            _by_registers(limits, launches.registers, warps),
            _by_shared(limits, launches),
            np.full(len(warps), limits.blocks, dtype=np.int64),
        ]
    )


def _warps(launches: Launches) -> Int64s:
    return np.asarray(np.maximum(-(-launches.threads // WARP), 1), dtype=np.int64)


def _by_registers(limits: Limits, registers: Int64s, warps: Int64s) -> Int64s:
    per_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT

    def fitting(parts: int) -> Any:
        # The check of the hardware supposes that a block's warps are spread evenly.
        refused = per_warp * (-(-warps // parts) * parts) > limits.block_registers
        most = 255 if limits.compute_major < 7 else 256
        blocks = (limits.registers // parts) // np.maximum(per_warp, 1) * parts // warps
        return np.where(refused | (registers > most), 0, blocks)

    gp100 = (limits.compute_major, limits.compute_minor) == (6, 0)
    blocks = fitting(2 if gp100 else 4)
    if gp100:  # what does not run on the other chips of the generation does not on this one
        blocks = np.where(fitting(4) > 0, blocks, 0)
    return np.asarray(np.where(per_warp > 0, blocks, UNLIMITED), dtype=np.int64)


def _by_shared(limits: Limits, launches: Launches, *, at_most: bool = False) -> Int64s:
    unit = 128 if limits.compute_major >= 8 else 256
    taken = -(-(launches.shared_bytes + limits.reserved_shared_bytes) // unit) * unit
    there = np.full(len(taken), limits.shared_bytes, dtype=np.int64)
    if limits.has_carveout and not at_most:
        # Less than a block takes, it is not this launch's: nothing was recorded.
        told = (launches.carveout >= taken) & (launches.carveout > 0)
        there = np.where(told, np.minimum(launches.carveout, limits.shared_bytes), there)
    blocks = np.where(taken > limits.shared_of_block, 0, there // np.maximum(taken, 1))
    return np.asarray(np.where(taken > 0, blocks, UNLIMITED), dtype=np.int64)


def occupancy(limits: Limits, launches: Launches) -> Occupancy:
    """How full can a launch make the multiprocessors, and what keeps more of it off them?

    Parameters
    ----------
    limits : Limits
        Of the device.
    launches : Launches
        Any number of them.
    """
    each = block_limits(limits, launches)
    resident = each.min(axis=0)
    warps = _warps(launches)
    each[RESOURCES.index("shared_memory")] = _by_shared(limits, launches, at_most=True)
    places = np.arange(len(RESOURCES), dtype=np.int64)[:, None]
    limiting = ((each == resident) << places).sum(axis=0)
    fits = resident > 0
    slots: Any = np.maximum(resident * limits.sm_count, 1)
    told = fits & (launches.cluster <= 1)
    waves = np.where(told, launches.blocks / slots, np.nan)
    whole = np.maximum(-(-launches.blocks // slots), 1)
    return Occupancy(
        resident,
        warps,
        np.asarray(limiting, dtype=np.int64),
        np.asarray(np.where(fits, resident * warps / limits.warps, np.nan)),
        np.asarray(waves),
        np.asarray(waves / whole),
    )


def resident_blocks(
    limits: Limits, threads: Int64s, registers: Int64s, shared_bytes: Int64s
) -> Int64s:
    """Return how many blocks fit on one multiprocessor at once; 0 where not even one does.

    The SM may have the most shared memory that it can.

    Parameters
    ----------
    limits : Limits
        Of the device.
    threads, registers, shared_bytes : ndarray of int64, shape (n,)
        Threads of a block, registers of a thread, and static + dynamic shared memory of a block.
    """
    none = np.zeros(len(threads), dtype=np.int64)
    launches = Launches(none, threads, registers, shared_bytes, none, none + 1)
    return np.asarray(block_limits(limits, launches).min(axis=0), dtype=np.int64)


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
