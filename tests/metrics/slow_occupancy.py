"""Occupancy of one launch, as slowly and as plainly as the published rules read.

A block is put on an SM after another until one does not fit. Written after the CUDA programming
guide and the description of NVIDIA's occupancy calculator, without the code that is tested.
"""

from __future__ import annotations

from kernelscope.metrics.occupancy import Limits


def up(value: int, unit: int) -> int:
    """Return `value` rounded up to whole units."""
    while value % unit:
        value += 1
    return value


def taken_shared(limits: Limits, shared: int) -> int:
    """Return what a block takes of the SM's shared memory."""
    if limits.compute_major >= 8:
        return up(shared + 1024, 128)
    return up(shared, 256)


def carveout_used(limits: Limits, carveout: int, taken: int) -> int:
    """Return the shared memory of an SM."""
    fixed = limits.compute_major in (5, 6)
    if fixed or carveout == 0 or carveout < taken:
        return limits.shared_bytes
    return min(carveout, limits.shared_bytes)


def sub_partitions(limits: Limits) -> int:
    return 2 if (limits.compute_major, limits.compute_minor) == (6, 0) else 4


def fits_registers(limits: Limits, blocks: int, warps: int, per_warp: int, parts: int) -> bool:
    """Put the warps of so many blocks on the sub-partitions, one after another."""
    free = [limits.registers // parts] * parts
    for _ in range(blocks * warps):
        place = max(range(parts), key=lambda part: free[part])
        if free[place] < per_warp:
            return False
        free[place] -= per_warp
    return True


def refused(limits: Limits, threads: int, registers: int, shared: int) -> str | None:
    """Return the resource for which not even one block runs."""
    warps = max(up(threads, 32) // 32, 1)
    per_warp = up(registers * 32, 256)
    if threads > 1024:
        return "warps"
    # 6.0 runs what the other chips of its generation run, and no more.
    for parts in {sub_partitions(limits), 4}:
        if per_warp * up(warps, parts) > limits.block_registers:
            return "registers"
    if registers > (255 if limits.compute_major < 7 else 256):
        return "registers"
    most = limits.block_shared_bytes
    if most is None:
        most = limits.shared_bytes - (1024 if limits.compute_major >= 8 else 0)
        most = min(most, 49152) if limits.compute_major < 7 else most
    reserved = 1024 if limits.compute_major >= 8 else 0
    return "shared_memory" if taken_shared(limits, shared) > most + reserved else None


def resident(limits: Limits, threads: int, registers: int, shared: int, carveout: int) -> int:
    """Return how many blocks fit at once."""
    if refused(limits, threads, registers, shared):
        return 0
    warps = max(up(threads, 32) // 32, 1)
    per_warp = up(registers * 32, 256)
    taken = taken_shared(limits, shared)
    there = carveout_used(limits, carveout, taken)
    blocks = 0
    while True:
        more = blocks + 1
        if more > limits.blocks or more * warps > limits.warps or more * taken > there:
            return blocks
        if not fits_registers(limits, more, warps, per_warp, sub_partitions(limits)):
            return blocks
        blocks = more
