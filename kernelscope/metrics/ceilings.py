"""The peaks that kernels are measured against: which one counts for which work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelscope.metrics.kernel_decoder import KernelName
from kernelscope.trace import Table

CORE_PIPES: Mapping[str, str] = {"fp32_flops": "fp32", "fp64_flops": "fp64", "fp16_flops": "fp16"}
"""Quantity of work on CUDA cores → the pipe of the table ``peaks`` that does it."""

TENSOR_FLOPS, TENSOR_INT = "tensor_flops", "tensor_int_ops"
TENSOR = "tensor"
"""The pipe of tensor work of which nothing tells the type."""

MEMORIES: Mapping[str, str] = {"dram_bytes": "dram", "l2_bytes": "l2"}
"""Quantity of work → memory level of the table ``peaks``. The catalogue has no peak of L1."""

_TYPE_OF = {
    "HMMA": "fp16", "BF16": "bf16", "TF32": "tf32", "FP8": "fp8", "FP4": "fp4", "DMMA": "fp64",
    "IMMA": "int8",
}  # fmt: skip
"""Pipe that a name proves → input type of the peaks of tensor cores."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a pipe or memory does at most.

    Attributes
    ----------
    name : str
        As the table ``peaks`` calls it; `TENSOR` where several pipes may be meant.
    low, high : float
        FLOP/s, OP/s or bytes/s, of the GPU and pipe that can do least, and most.
    basis : str or None
        The clock that it is reckoned at.
    """

    name: str
    low: float
    high: float
    basis: str | None

    @property
    def certain(self) -> bool:
        """Whether there is one peak."""
        return self.low == self.high


class Ceilings:
    """The peaks of the GPUs that a trace uses.

    Parameters
    ----------
    peaks : Table
        Under ``peak_results.PEAKS``.
    devices : sequence of int
        The GPUs that ran kernels, by their place in ``devices``.
    """

    def __init__(self, peaks: Table, devices: Sequence[int]) -> None:
        self._of: dict[str, dict[int, float]] = {}
        self._basis: dict[str, str | None] = {}
        self._devices = tuple(devices)
        for row in peaks.records():
            if row["device"] in self._devices:
                self._of.setdefault(row["pipe"], {})[row["device"]] = row["per_s"]
                self._basis.setdefault(row["pipe"], row["clock_basis"])

    def of(self, name: str) -> Ceiling | None:
        """Return the peak of a pipe or memory; None where one of the GPUs has none that is known.

        The pipe that no GPU has (tensor cores on Pascal) has none, too: see :meth:`lacks`.
        """
        return self._together(name, [name])

    def lacks(self, name: str) -> bool:
        """Return whether the peaks are known, and say that no GPU has the pipe."""
        return "fp32" in self._of and not any(
            pipe == name or pipe.startswith(f"{name}_") for pipe in self._of
        )

    def on(self, device: int, name: str) -> float:
        """Return the peak of a pipe of one GPU; NaN where it is not known."""
        return self._of.get(name, {}).get(device, math.nan)

    def of_tensor(self, quantity: str, name: KernelName, formula: str | None) -> Ceiling | None:
        """Return the peak of a kernel's tensor work.

        Parameters
        ----------
        quantity : str
            `TENSOR_FLOPS` or `TENSOR_INT`.
        name : KernelName
            The kernel's: pipe and accumulate type choose the peak where it tells them.
        formula : str or None
            The counters: they may rule FP64 out.
        """
        return self._together(TENSOR, self._tensor_pipes(quantity, name, formula))

    def _tensor_pipes(self, quantity: str, name: KernelName, formula: str | None) -> list[str]:
        every = [pipe for pipe in self._of if pipe.startswith("tensor_")]
        whole = [pipe for pipe in every if pipe.startswith(("tensor_int", "tensor_binary"))]
        if quantity == TENSOR_INT:
            return whole
        rest = [pipe for pipe in every if pipe not in whole]
        wanted = _TYPE_OF.get(name.pipe or "")
        chosen = [pipe for pipe in rest if wanted and pipe.startswith(f"tensor_{wanted}_")]
        if chosen:
            sums = [pipe for pipe in chosen if pipe.endswith(f"_{name.accumulate_type}")]
            return sums or chosen
        if formula is not None and "hmma" in formula and "dmma" not in formula:
            return [pipe for pipe in rest if not pipe.startswith("tensor_fp64_")]
        return rest

    def _together(self, name: str, pipes: Sequence[str]) -> Ceiling | None:
        values = [self._of.get(pipe, {}) for pipe in pipes]
        complete = [found for found in values if all(each in found for each in self._devices)]
        if not complete or not self._devices:
            return None
        figures = [found[device] for found in complete for device in self._devices]
        known = pipes[0] if len(pipes) == 1 else name
        return Ceiling(known, min(figures), max(figures), self._basis.get(pipes[0]))
