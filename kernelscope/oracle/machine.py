"""A host and its GPU in slow motion: calls take host time, work waits for its turn on a stream.

Scenes drive it like a program drives CUDA, and it notes what happens. It is the one thing here
that changes as it goes; what comes out is a frozen plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelscope.oracle.events import (
    Call,
    Copy,
    Event,
    EventRecord,
    Kernel,
    Memset,
    OsCall,
    Overhead,
    Range,
    Switch,
    Sync,
)

Shape = tuple[int, int, int]

HOST_TO_DEVICE_BYTES_PER_S = 24_000_000_000
"""What a pinned copy over PCIe 4.0 ×16 reaches in practice."""

DEVICE_BYTES_PER_S = 1_250_000_000_000
"""What a copy inside an A100 reaches in practice."""


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel that can be launched: what it is, and how long it usually runs."""

    name: str
    duration: int
    grid: Shape = (1, 1, 1)
    block: Shape = (128, 1, 1)
    registers: int = 32
    static_shared: int = 0
    dynamic_shared: int = 0
    carveout: int = 32_768


class Machine:
    """One process on one GPU.

    Parameters
    ----------
    seed : int
        Of the jitter; the same seed and the same program give the same run.
    process, device : int
        Identifiers.
    start : int
        Trace time at which the program begins, ns.
    loading : int
        What the first launch of every kernel takes on top, because its module is loaded, ns.
    """

    def __init__(
        self, seed: int, *, process: int, device: int = 0, start: int = 0, loading: int = 0
    ) -> None:
        # Only random() itself is promised to repeat in every Python version.
        self._random = random.Random(seed).random
        self._process, self._device = process, device
        self._begin = start
        self._loading = loading
        self._loaded: set[str] = set()
        self._clocks: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._ready: dict[int, int] = {}
        self._correlation = 100
        self.events: list[Event] = []

    def jitter(self, mean: float, spread: float = 0.1) -> int:
        """Return about `mean`, evenly spread by ± `spread` of it."""
        return int(mean * (1 + spread * (2 * self._random() - 1)))

    def now(self, thread: int) -> int:
        """Return what the clock of `thread` shows, ns."""
        return self._clocks.get(thread, self._begin)

    def wait(self, thread: int, until: int) -> None:
        """Let `thread` do nothing until then, or nothing if that has passed."""
        self._clocks[thread] = max(self.now(thread), until)

    def think(self, thread: int, about: float) -> None:
        """Let `thread` work on the host for about that many ns."""
        self._clocks[thread] = self.now(thread) + self.jitter(about, 0.3)

    def call(
        self, thread: int, name: str, took: float, kind: str = "runtime", until: int = 0
    ) -> Call:
        """Make a CUDA call that takes about `took` ns, and longer if it waits `until` then."""
        begin = self.now(thread)
        end = max(begin + self.jitter(took, 0.25), until)
        self._correlation += 1
        call = Call(begin, end, name, self._process, thread, self._correlation, kind)
        self.events.append(call)
        self._clocks[thread] = end
        return call

    def launch(
        self,
        thread: int,
        work: Work,
        stream: int = 7,
        *,
        took: float = 5_500,
        name: str = "cudaLaunchKernel",
    ) -> Kernel:
        """Launch a kernel."""
        kind = "driver" if name.startswith("cuLaunch") else "runtime"
        first = work.name not in self._loaded
        self._loaded.add(work.name)
        call = self.call(thread, name, took + (self._loading if first else 0), kind)
        begin, end = self._run(stream, call, self.jitter(work.duration, 0.06))
        kernel = Kernel(
            begin,
            end,
            work.name,
            **self._place(stream, call),
            **{f"grid_{axis}": size for axis, size in zip("xyz", work.grid, strict=True)},
            **{f"block_{axis}": size for axis, size in zip("xyz", work.block, strict=True)},
            registers=work.registers,
            static_shared=work.static_shared,
            dynamic_shared=work.dynamic_shared,
            carveout=work.carveout,
        )
        self.events.append(kernel)
        return kernel

    def copy(
        self, thread: int, kind: str, size: int, stream: int = 7, *, pageable: bool = False
    ) -> Copy:
        """Copy asynchronously; from or to pageable memory the call blocks all the same."""
        call = self.call(thread, "cudaMemcpyAsync", 7_000)
        rate = DEVICE_BYTES_PER_S if kind == "DtoD" else HOST_TO_DEVICE_BYTES_PER_S
        begin, end = self._run(stream, call, self.jitter(1_300 + size * 1e9 / rate, 0.04))
        host = "pageable" if pageable else "pinned"
        memories = {"HtoD": (host, "device"), "DtoH": ("device", host)}
        source, target = memories.get(kind, ("device", "device"))
        if pageable:
            self.events[-1] = Call(
                call.start, end + 3_000, call.name, self._process, thread, call.correlation
            )
            self.wait(thread, end + 3_000)
        place = self._place(stream, call)
        copy = Copy(begin, end, kind, size, **place, src_memory=source, dst_memory=target)
        self.events.append(copy)
        return copy

    def memset(self, thread: int, size: int, stream: int = 7) -> Memset:
        """Set device memory asynchronously."""
        call = self.call(thread, "cudaMemsetAsync", 5_000)
        begin, end = self._run(stream, call, self.jitter(1_100 + size * 1e9 / DEVICE_BYTES_PER_S))
        memset = Memset(begin, end, size, **self._place(stream, call))
        self.events.append(memset)
        return memset

    def record(self, thread: int, event: int, stream: int = 7) -> None:
        """Record a CUDA event behind what has been queued on `stream`."""
        call = self.call(thread, "cudaEventRecord", 1_500)
        self._ready[event] = self._free.get(stream, 0)
        self.events.append(EventRecord(event, **self._place(stream, call)))

    def stream_wait(self, thread: int, event: int, stream: int) -> None:
        """Let `stream` wait for a recorded event."""
        call = self.call(thread, "cudaStreamWaitEvent", 1_200)
        self._free[stream] = max(self._free.get(stream, 0), self._ready[event])
        self.events.append(
            Sync(call.start + 200, call.end - 200, event=event, **self._place(stream, call))
        )

    def synchronize(self, thread: int, stream: int = 7) -> None:
        """Wait on the host until `stream` has nothing left to do."""
        call = self.call(
            thread, "cudaStreamSynchronize", 4_000, until=self._free.get(stream, 0) + 2_500
        )
        self.events.append(Sync(call.start + 300, call.end - 300, **self._place(stream, call)))

    @contextmanager
    def range(self, thread: int, name: str, **more: Any) -> Iterator[None]:
        """Hold an NVTX range open on `thread`."""
        begin = self.now(thread)
        self.think(thread, 700)
        slot = len(self.events)
        yield
        self.think(thread, 500)
        mark = Range(begin, self.now(thread), name, self._process, thread, **more)
        # Where it was opened: exports hold ranges in the order of their starts.
        self.events.insert(slot, mark)

    def sleep(self, thread: int, about: float, os_call: str, cpu: int) -> None:
        """Let `thread` wait off its core in an operating-system call."""
        begin = self.now(thread)
        self.think(thread, about)
        self.asleep(thread, begin, self.now(thread), os_call, cpu)

    def asleep(self, thread: int, begin: int, end: int, os_call: str, cpu: int) -> None:
        """Note that `thread` was off its core in an operating-system call."""
        self.events += [
            OsCall(begin, end, os_call, self._process, thread),
            Switch(begin + 800, False, cpu, self._process, thread),
            Switch(end - 800, True, cpu, self._process, thread),
        ]
        self.wait(thread, end)

    def switch(self, thread: int, on_core: bool, cpu: int) -> None:
        """Note that `thread` went onto a core or off it."""
        self.events.append(Switch(self.now(thread), on_core, cpu, self._process, thread))

    def overhead(self, thread: int, begin: int, end: int, name: str) -> None:
        """Note what the profiler did on `thread`."""
        self.events.append(Overhead(begin, end, name, self._process, thread))

    def _place(self, stream: int, call: Call) -> dict[str, Any]:
        return {
            "process": self._process,
            "device": self._device,
            "context": 1,
            "stream": stream,
            "correlation": call.correlation,
        }

    def _run(self, stream: int, call: Call, duration: int) -> tuple[int, int]:
        """Take the stream's next free time after the call has reached the device."""
        arrives = call.end + self.jitter(1_800, 0.3)
        begin = max(arrives, self._free.get(stream, 0) + self.jitter(1_000, 0.4))
        self._free[stream] = begin + duration
        return begin, begin + duration
