"""Which NVTX ranges and which iteration does each kernel, copy and opaque graph belong to?

Work belongs to the ranges that are open where its **launch call** begins: to those of the
calling thread, one stack per domain (:mod:`kernelscope.metrics.nesting`), and to every
start/end range of that thread (of any thread of the process with `process_ranges`), which
overlap as they like. Everything here is decided once per launching call; kernels and copies
take what their call has. The nodes of a CUDA graph all take what the graph's launch has, and so
does a graph that was traced as one unit.

Of an iteration family, a launch outside its ranges *inherits* the iteration whose period is
open at its call, in each process that carries the family from its own
(:mod:`kernelscope.metrics.inheritance`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.metrics.enclosing import Enclosed, enclosed
from kernelscope.metrics.grouping import group
from kernelscope.metrics.inheritance import NONE, Inheritance, inheritance, no_inheritance
from kernelscope.metrics.iteration_family import IterationFamily
from kernelscope.metrics.launch_times import LaunchTimes
from kernelscope.metrics.launching import Launching
from kernelscope.trace import Table, Trace

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]

REASONS = (
    "",
    "no_launch_row",
    "unknown_thread",
    "no_range_on_thread",
    "between_ranges",
    "outside_iterations",
    "another_process",
    "several_annotating_threads",
)
"""Why work belongs to nothing: index 0 where it belongs to something.

- ``no_launch_row``: the capture holds no call with its process and correlation id;
- ``unknown_thread``: the capture does not say which thread called;
- ``no_range_on_thread``: the calling thread opened no range;
- ``between_ranges``: it did, but none was open at the call;
- ``outside_iterations``: the call lies before the first iteration or after the last;
- ``another_process``: the iterations are other processes', and this one carries none;
- ``several_annotating_threads``: more than one thread of the process carries the iteration
  family, so that a thread without ranges could belong to either.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attributed:
    """What each of n kernels, copies or opaque graphs belongs to: what its call does.

    Attributes
    ----------
    call : ndarray of int32, shape (n,)
        Number of its launching call (see :class:`Launching`); −1 where there is none.
    launch : ndarray of int32, shape (n,)
        The same as a row of ``trace.api_calls``.
    around : Enclosed
        The ranges around each call.
    given : Inheritance
        The iteration of each call.
    """

    call: Int32s
    launch: Int32s
    around: Enclosed
    given: Inheritance

    @property
    def how(self) -> Int8s:
        """Index into `HOW`, shape (n,).

        With an iteration family, how the work belongs to its *iteration*; without, whether any
        range holds it.
        """
        return self._of_call(self.given.how, NONE)

    @property
    def iteration(self) -> Int32s:
        """Index of the iteration in the family, shape (n,); −1 for none.

        And −1 for those of the family's twins: iterations of other processes have no number.
        """
        return self._of_call(self.given.iteration, -1)

    @property
    def phase(self) -> Int32s:
        """Row in ``trace.ranges`` of the part of the iteration, shape (n,); −1 for none."""
        return self._of_call(self.given.phase, -1)

    @property
    def reason(self) -> Int8s:
        """Index into `REASONS`, shape (n,): why `how` is ``none``."""
        reason = _reasons(self.around.trace.ranges, self.around.calls, self.given)
        return self._of_call(reason, REASONS.index("no_launch_row"))

    def _of_call(self, values: npt.NDArray[Any], default: int) -> npt.NDArray[Any]:
        return np.append(values, values.dtype.type(default))[self.call]  # −1: the last place


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribution:
    """The ranges and iterations of all device work; see :func:`attribute`.

    Attributes
    ----------
    enclosed : Enclosed
        The ranges around each launching call, and the place of every range.
    family : IterationFamily or None
        The iterations, where asked for.
    inheritance : Inheritance
        The iteration of each launching call.
    kernels, copies, graphs : Attributed
        What each row of ``trace.kernels``, ``trace.copies`` and ``trace.graphs`` belongs to.
    """

    enclosed: Enclosed
    family: IterationFamily | None
    inheritance: Inheritance
    kernels: Attributed
    copies: Attributed
    graphs: Attributed


def attribute(  # noqa: PLR0913 - what is at hand already
    trace: Trace,
    *,
    family: IterationFamily | None = None,
    phases: bool = True,
    strict: bool = False,
    process_ranges: bool = False,
    launches: LaunchTimes | None = None,
) -> Attribution:
    """Which ranges and which iteration does each kernel, copy and opaque graph belong to?

    Parameters
    ----------
    trace : Trace
        The trace.
    family : IterationFamily, optional
        The iterations, those of other processes as its twins; launches outside their ranges
        inherit those of their process.
    phases : bool
        Whether such launches inherit the phase, too: the range directly inside the iteration.
    strict : bool
        Apply the rule of ``nsys stats``: a range must hold the whole call, start/end ranges
        that another thread closed hold nothing, and nothing is inherited. Graphs traced as one
        unit belong nowhere: nsys projects kernels, copies and memsets.
    process_ranges : bool
        Start/end ranges hold the launches of every thread of their process.
    launches : LaunchTimes, optional
        Of the same trace, where the caller has them already.

    Raises
    ------
    ValueError
        If `strict` is asked for together with what nsys does not know.
    """
    if strict and (family is not None or process_ranges):
        raise ValueError("nsys knows neither iterations nor ranges of a whole process")
    around = enclosed(trace, strict=strict, process_ranges=process_ranges, launches=launches)
    given = no_inheritance(around) if family is None else inheritance(around, family, phases=phases)
    calls = around.calls
    return Attribution(
        enclosed=around,
        family=family,
        inheritance=given,
        kernels=Attributed(calls.kernel_call, calls.kernel_row, around, given),
        copies=Attributed(calls.copy_call, calls.copy_row, around, given),
        graphs=Attributed(calls.graph_call, calls.graph_row, around, given),
    )


def _reasons(ranges: Table, calls: Launching, given: Inheritance) -> Int8s:
    """Return why each call belongs to nothing; 0 where it belongs to something."""
    reason = np.where(given.how == NONE, given.reason, 0).astype(np.int8)
    unexplained = (given.how == NONE) & (reason == 0)
    reason[unexplained] = place_reasons(ranges, calls)[unexplained]
    return reason


def place_reasons(ranges: Table, calls: Launching) -> Int8s:
    """Return why a call that no range holds is held by none, from its thread alone."""
    reason = np.zeros(len(calls), dtype=np.int8)
    opened = set(group(ranges["process_id"], ranges["thread_id"]).keys)
    for (process, thread), part in calls.threads.items():
        if thread is None:
            reason[part] = REASONS.index("unknown_thread")
        elif (process, thread) in opened:
            reason[part] = REASONS.index("between_ranges")
        else:
            reason[part] = REASONS.index("no_range_on_thread")
    return reason
