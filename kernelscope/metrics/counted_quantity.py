"""A quantity of a group of executions: what was counted, and how far it is known."""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.metrics.counted_values import Counted

Capability = tuple[int, int] | None
"""Compute capability of the GPU that counted; None where it is not told."""

COLD_CACHE, PARTIAL, UNKNOWN_SHAPE, PACKED = "cold_cache", "partial", "shape", "packed"
"""Caveats: see ``work_results.COUNTED_WORK``."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quantity:
    """A quantity of a group, and where it comes from.

    Attributes
    ----------
    counted : Counted
        What was counted.
    counters : str
        The formula.
    caveat : str or None
        See ``work_results.COUNTED_WORK``.
    least, exact, most : float
        What the count is to be multiplied with for the lower bound, the value and the upper bound;
        NaN where there is none.
    """

    counted: Counted
    counters: str
    caveat: str | None = None
    least: float = 1.0
    exact: float = 1.0
    most: float = 1.0

    def figures(self, counted: Counted | None = None) -> tuple[float, float, float]:
        """Return value, lower and upper bound, NaN where unknown: of `counted` executions."""
        what = self.counted if counted is None else counted
        return what.mean * self.exact, what.low * self.least, what.high * self.most
