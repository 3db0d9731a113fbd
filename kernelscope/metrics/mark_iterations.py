"""Which stretches of a run are its training iterations, and which of them are steady."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.find_iterations import RunnerUp, find, named
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.iteration_results import STATES
from kernelscope.metrics.kernel_sequence import repeating_unit
from kernelscope.metrics.launch_times import LaunchTimes, launch_times
from kernelscope.metrics.steady import Labels, label
from kernelscope.trace import Trace

Int32s = npt.NDArray[np.int32]

MIN_KERNELS = 2
"""A unit of the kernel sequence that is shorter is no iteration."""

_ONE_KERNEL = "The kernel sequence repeats a single kernel, which is no iteration."
_LAYER_OR_STEP = (
    "The iterations are what repeats in the kernel sequence: a layer and a step cannot be told "
    "apart. Annotate the steps, or name their ranges with --iteration."
)
_SERIALISED = "The profiler ran the kernels one by one: there are no step times to be found."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Marked:
    """The iterations of a trace, found and labelled, before anything is measured in them.

    Attributes
    ----------
    family : IterationFamily or None
        None where there are none; `notes` says why.
    source : {"nvtx", "kernel_sequence", "user"} or None
        How they were found.
    score : float or None
        Of the family, or the confidence of the kernel sequence.
    runner_up : RunnerUp or None
        The family that would be next.
    also_in : tuple of (process, thread)
        Where else the same ranges are.
    state : ndarray of int32, shape (m,)
        What each iteration is, index into `STATES`.
    notes : tuple of str
        One sentence each.
    """

    family: IterationFamily | None
    source: str | None
    score: float | None
    runner_up: RunnerUp | None
    also_in: tuple[tuple[int | None, int | None], ...]
    state: Int32s
    notes: tuple[str, ...]

    def where(self, state: str) -> npt.NDArray[np.intp]:
        """Return the numbers of the iterations that are in `state`."""
        return np.flatnonzero(self.state == STATES.index(state))

    @property
    def from_ranges(self) -> bool:
        """Whether the iterations are NVTX ranges."""
        return self.source in ("nvtx", "user")


def mark_iterations(
    trace: Trace, pattern: str | None = None, launches: LaunchTimes | None = None
) -> Marked:
    """Which stretches of time are the training iterations?

    Parameters
    ----------
    trace : Trace
        The whole trace: what is usual in a run is not decided by a part of it.
    pattern : str, optional
        Name of the ranges, a glob; else they are looked for, first among the NVTX ranges, then
        in the kernel sequence.
    launches : LaunchTimes, optional
        Of the same trace, where the caller has them already.

    Raises
    ------
    NotRecordedError, SelectionError
        If there is no range called `pattern`.
    """
    if trace.capture.serialised is not None:
        return Marked(None, None, None, None, (), np.empty(0, dtype=np.int32), (_SERIALISED,))
    launches = launches or launch_times(trace)
    if pattern is not None:
        chosen = named(trace, pattern, launches)
        return _marked(
            chosen.family, "user", chosen.score, chosen.runner_up, chosen.also_in, notes=()
        )
    found = find(trace, launches)
    if found is not None:
        return _marked(found.family, "nvtx", found.score, found.runner_up, found.also_in, notes=())
    reason = _why_no_ranges(trace)
    unit = repeating_unit(trace, launches)
    if unit is None or unit.kernels < MIN_KERNELS:
        none = "The kernel sequence does not repeat." if unit is None else _ONE_KERNEL
        return Marked(None, None, None, None, (), np.empty(0, dtype=np.int32), (reason, none))
    notes = (reason, _LAYER_OR_STEP)
    return _marked(unit.family, "kernel_sequence", unit.confidence, None, (), notes=notes)


def _why_no_ranges(trace: Trace) -> str:
    if not len(trace.ranges):
        return "The trace holds no NVTX ranges."
    if not len(trace.kernels):
        return "No kernels were recorded, so no NVTX ranges can be told to be iterations."
    return "No NVTX ranges of the program recur evenly enough to be iterations."


def _marked(  # noqa: PLR0913 - one value each
    family: IterationFamily,
    source: str,
    score: float,
    runner_up: RunnerUp | None,
    also_in: tuple[tuple[int | None, int | None], ...],
    *,
    notes: tuple[str, ...],
) -> Marked:
    labels = label((family.ends - family.starts)[:-1])
    return Marked(family, source, score, runner_up, also_in, _states(labels), notes)


def _states(labels: Labels) -> Int32s:
    """Return the state of each iteration: that of its period, and *last* behind them."""
    state = np.full(len(labels.outlier) + 1, STATES.index("steady"), dtype=np.int32)
    state[: labels.warmup] = STATES.index("warmup")
    state[:-1][labels.outlier] = STATES.index("outlier")
    state[-1] = STATES.index("last")
    return state
