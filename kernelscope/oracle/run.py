"""Write small runs down by hand: one line an event, readable in a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelscope.oracle.events import (
    Call,
    Copy,
    Event,
    Graph,
    GraphNode,
    Kernel,
    Memset,
    OsCall,
    Overhead,
    Range,
    Sample,
    Switch,
    Sync,
)
from kernelscope.oracle.plan import PLAIN, Plan, Setup, plan_of

Span = tuple[int, int]
Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the making; every method returns a new one with an event more.

    Attributes
    ----------
    events : tuple of events
        What happened so far.
    process, thread, device, context, stream : int
        Where the next events happen; see :meth:`on`.
    setup : Setup
        The machine.

    Examples
    --------
    >>> plan = (
    ...     Run()
    ...     .kernel(100, 200, "gemm", call=(40, 50))
    ...     .on(stream=13)
    ...     .copy(150, 300, "HtoD", bytes=1024)
    ...     .plan()
    ... )
    >>> len(plan.kernels), len(plan.calls), len(plan.copies)
    (1, 1, 1)
    """

    events: tuple[Event, ...] = ()
    process: int = 1000
    thread: int = 1000
    device: int = 0
    context: int = 1
    stream: int = 7
    setup: Setup = PLAIN

    def on(self, **where: int) -> Run:
        """Return the run with another process, thread, device, context or stream from here on.

        A new process without a thread gets the thread of its own number.
        """
        if "process" in where and "thread" not in where:
            where = {**where, "thread": where["process"]}
        changes: dict[str, Any] = dict(where)
        return replace(self, **changes)

    def add(self, *events: Event) -> Run:
        """Return the run with events added as they are."""
        return replace(self, events=(*self.events, *events))

    def kernel(  # noqa: PLR0913 - a kernel has that many sides; all but two have defaults
        self,
        start: int,
        end: int,
        name: str = "kernel",
        *,
        call: Span | None = None,
        grid: Shape = (1, 1, 1),
        block: Shape = (128, 1, 1),
        correlation: int | None = None,
        **more: Any,
    ) -> Run:
        """Add an execution, with the launch that caused it where `call` gives its times."""
        number = self._next() if correlation is None else correlation
        fields = {
            **self._place(),
            **{f"grid_{axis}": size for axis, size in zip("xyz", grid, strict=True)},
            **{f"block_{axis}": size for axis, size in zip("xyz", block, strict=True)},
            **more,
        }
        run = self if call is None else self.call(*call, "cudaLaunchKernel", number)
        return run.add(Kernel(start, end, name, correlation=number, **fields))

    def copy(
        self,
        start: int,
        end: int,
        kind: str = "HtoD",
        *,
        call: Span | None = None,
        correlation: int | None = None,
        **more: Any,
    ) -> Run:
        """Add a copy, with the ``cudaMemcpyAsync`` that caused it where `call` gives its times."""
        number = self._next() if correlation is None else correlation
        memories = dict(zip(("src_memory", "dst_memory"), _MEMORIES[kind], strict=True))
        run = self if call is None else self.call(*call, "cudaMemcpyAsync", number)
        fields = {**self._place(), **memories, **more}
        return run.add(Copy(start, end, kind, correlation=number, **fields))

    def memset(self, start: int, end: int, *, call: Span | None = None, **more: Any) -> Run:
        """Add a memset, with its ``cudaMemsetAsync`` where `call` gives its times."""
        number = self._next()
        run = self if call is None else self.call(*call, "cudaMemsetAsync", number)
        return run.add(Memset(start, end, correlation=number, **{**self._place(), **more}))

    def graph(
        self,
        start: int,
        end: int,
        *,
        call: Span | None = None,
        correlation: int | None = None,
        **more: Any,
    ) -> Run:
        """Add a CUDA graph traced as one unit, with its ``cudaGraphLaunch`` where `call` is given.

        The kernels of a graph that was traced node by node are added one by one, each with the
        `correlation` of the launch and its ``graph_node``.
        """
        number = self._next() if correlation is None else correlation
        run = self if call is None else self.call(*call, "cudaGraphLaunch", number)
        return run.add(Graph(start, end, correlation=number, **{**self._place(), **more}))

    def node(self, time: int, node: int, original: int | None = None) -> Run:
        """Add the making of a graph node by the current thread; a clone names its `original`."""
        return self.add(GraphNode(time, time, node, **self._thread(), original=original))

    def call(
        self, start: int, end: int, name: str, correlation: int | None = None, **more: Any
    ) -> Run:
        """Add a CUDA call."""
        number = self._next() if correlation is None else correlation
        fields = {"process": self.process, "thread": self.thread, "correlation": number, **more}
        return self.add(Call(start, end, name, **fields))

    def sync(self, start: int, end: int, **more: Any) -> Run:
        """Add a synchronisation: `stream` and `event` say of what kind."""
        place = {k: v for k, v in self._place().items() if k != "stream"}
        return self.add(Sync(start, end, **{**place, **more}))

    def range(self, start: int, end: int | None, name: str, **more: Any) -> Run:
        """Add an NVTX range; an `end` of None was never closed."""
        return self.add(Range(start, end, name, **{**self._thread(), **more}))

    def overhead(self, start: int, end: int, name: str = "CUPTI Buffer flush") -> Run:
        """Add time that the profiler took on the current thread."""
        return self.add(Overhead(start, end, name, **self._thread()))

    def on_core(self, start: int, end: int, cpu: int = 0) -> Run:
        """Add a stretch of time in which the current thread was on a core."""
        where = self._thread()
        return self.add(Switch(start, True, cpu, **where), Switch(end, False, cpu, **where))

    def os_call(self, start: int, end: int, name: str = "poll") -> Run:
        """Add a call of the operating-system runtime on the current thread."""
        return self.add(OsCall(start, end, name, **self._thread()))

    def samples(self, time: int, values: Mapping[str, int], gpu: int = 0) -> Run:
        """Add what the counters of a GPU show at a moment, by metric."""
        return self.add(*(Sample(time, name, value, gpu) for name, value in values.items()))

    def plan(self) -> Plan:
        """Return the run as a plan."""
        return plan_of(self.events, self.setup)

    def _next(self) -> int:
        return len(self.events) + 1

    def _thread(self) -> dict[str, int]:
        return {"process": self.process, "thread": self.thread}

    def _place(self) -> dict[str, int]:
        return {
            "process": self.process,
            "device": self.device,
            "context": self.context,
            "stream": self.stream,
        }


_MEMORIES: dict[str, tuple[str, str]] = {
    "HtoD": ("pinned", "device"),
    "DtoH": ("device", "pinned"),
    "DtoD": ("device", "device"),
    "PtoP": ("device", "device"),
    "HtoH": ("pinned", "pinned"),
    "unified HtoD": ("unknown", "unknown"),
    "unified DtoH": ("unknown", "unknown"),
    "unified DtoD": ("unknown", "unknown"),
}
"""What is usually copied from and to, by kind."""
