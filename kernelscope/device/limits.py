"""What one multiprocessor holds, by compute capability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kernelscope.device import catalogue
from kernelscope.device.catalogue import Figure


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one multiprocessor of a compute capability holds.

    Attributes
    ----------
    compute_major, compute_minor : int
        Compute capability.
    threads, blocks, registers : int
        Resident at once; registers of 32 bits.
    block_registers : int
        Registers of one block at most.
    shared_sizes : tuple of int
        Bytes that its shared memory can be set to, ascending; the last is the most.
    block_shared_bytes : int
        Shared memory of one block at most, with opt-in, without what is reserved.
    reserved_shared_bytes : int
        What the system takes of each block's shared memory.
    sources : mapping of str to Figure
        Where each of them is from.
    """

    compute_major: int
    compute_minor: int
    threads: int
    blocks: int
    registers: int
    block_registers: int
    shared_sizes: tuple[int, ...]
    block_shared_bytes: int
    reserved_shared_bytes: int
    sources: Mapping[str, Figure] = field(repr=False, compare=False)

    @property
    def shared_bytes(self) -> int:
        """Shared memory at most."""
        return self.shared_sizes[-1]


@cache
def sm_limits(major: int, minor: int) -> SmLimits | None:
    """Return what a multiprocessor of a compute capability holds; None where that is not known."""
    raw = catalogue.capability(f"{major}.{minor}")
    if raw is None:
        return None
    found = catalogue.figures(raw)
    return SmLimits(
        compute_major=major,
        compute_minor=minor,
        threads=found["threads"].value,
        blocks=found["blocks"].value,
        registers=found["registers"].value,
        block_registers=found["block_registers"].value,
        shared_sizes=tuple(kib << 10 for kib in found["shared_kib"].value),
        block_shared_bytes=found["block_shared_kib"].value << 10,
        reserved_shared_bytes=found["reserved_shared_bytes"].value,
        sources=found,
    )
