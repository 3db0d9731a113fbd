"""Waiting of host threads, told by what a call does and how long it takes."""

from __future__ import annotations

import pytest

from kernelscope.metrics.call_classes import class_of
from kernelscope.metrics.launch_times import launch_times
from kernelscope.metrics.waiting import WAITS, waiting
from tests import build

US = 1000


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaDeviceSynchronize", "synchronization"),
        ("cuCtxSynchronize", "synchronization"),
        ("cudaStreamSynchronize", "synchronization"),
        ("cuEventSynchronize", "synchronization"),
        ("cudaStreamWaitEvent", "other"),
        ("cudaEventQuery", "other"),
        ("cudaEventRecord", "other"),
        ("cudaLaunchKernel", "launch"),
        ("cudaLaunchKernelExC", "launch"),
        ("cuLaunchKernelEx", "launch"),
        ("cudaGraphLaunch", "launch"),
        ("cudaGraphInstantiate", "other"),
        ("cudaMemcpyAsync", "copy"),
        ("cuMemcpyDtoHAsync_v2", "copy"),
        ("cudaMemPrefetchAsync", "copy"),
        ("cudaMemset", "memset"),
        ("cuMemsetD32Async", "memset"),
        ("cudaMallocManaged", "allocation"),
        ("cuMemAllocHost_v2", "allocation"),
        ("cudaHostRegister", "allocation"),
        ("cudaFreeAsync", "free"),
        ("cuMemUnmap", "free"),
        ("cudaHostUnregister", "free"),
        ("cuModuleLoadDataEx", "module"),
        ("cuLibraryLoadData", "module"),
        ("cuModuleGetLoadingMode", "other"),
        ("cudaMemGetInfo", "other"),
        ("cudaOccupancyMaxActiveClusters", "other"),
    ],
)
def test_a_calls_class_is_told_by_its_name(name: str, kind: str) -> None:
    assert class_of(name) == kind


def waits(*calls: tuple[int, int, str], kernels: int = 0) -> list[tuple[int, int, str]]:
    trace = build.trace(api_calls=build.api_calls(*calls))
    found = waiting(trace)
    kinds = [WAITS[code] for code in found.kind.tolist()]
    return list(zip(found.start.tolist(), found.end.tolist(), kinds, strict=True))


def test_a_synchronisation_waits_from_beginning_to_end() -> None:
    assert waits((5, 7, "cudaStreamSynchronize")) == [(5, 7, "synchronization")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaMemcpyAsync", "blocked: copy"),
        ("cudaMemsetAsync", "blocked: copy"),
        ("cudaMalloc", "blocked: allocation"),
        ("cudaFree", "blocked: allocation"),
        ("cuModuleLoadData", "blocked: module"),
        ("cudaLaunchKernel", "blocked: module"),
    ],
)
def test_other_calls_wait_from_their_first_50_us_on(name: str, kind: str) -> None:
    assert waits((0, 50 * US, name), (100 * US, 151 * US, name)) == [(150 * US, 151 * US, kind)]


def test_events_and_queries_are_work_however_long() -> None:
    assert waits((0, 10**9, "cudaEventQuery"), (0, 10**9, "cudaGraphInstantiate")) == []


@pytest.mark.parametrize(("outstanding", "kind"), [(999, "module"), (1000, "queue")])
def test_a_long_launch_waits_for_a_full_queue_or_for_its_code(outstanding: int, kind: str) -> None:
    started = 7  # launches whose execution has begun are no longer outstanding
    count = outstanding + started
    calls = build.joined(
        *(build.api_calls((i, i, "cudaLaunchKernel"), correlation_id=i) for i in range(count)),
        build.api_calls((5000, 5000 + 60 * US, "cudaLaunchKernel"), correlation_id=count),
    )
    kernels = build.joined(
        *(build.kernels((4000, 4001), correlation_id=i) for i in range(started)),
        *(build.kernels((10**9, 10**9 + 1), correlation_id=i) for i in range(started, count + 1)),
    )
    trace = build.trace(api_calls=calls, kernels=kernels)
    found = waiting(trace)
    assert [WAITS[code] for code in found.kind.tolist()] == [f"blocked: {kind}"]
    assert found.start.tolist() == [5000 + 50 * US]


def test_copies_and_memsets_fill_the_queue_as_kernels_do() -> None:
    calls = build.joined(
        *(build.api_calls((i, i, "cudaMemsetAsync"), correlation_id=i) for i in range(600)),
        *(build.api_calls((i, i, "cudaLaunchKernel"), correlation_id=i) for i in range(600, 1000)),
        build.api_calls((5000, 5000 + 60 * US, "cudaLaunchKernel"), correlation_id=1000),
    )
    late = (10**9, 10**9 + 1)
    trace = build.trace(
        api_calls=calls,
        copies=build.joined(
            *(build.copies((*late, "memset"), correlation_id=i) for i in range(600))
        ),
        kernels=build.joined(*(build.kernels(late, correlation_id=i) for i in range(600, 1001))),
    )
    for launches in (None, launch_times(trace)):
        found = waiting(trace, launches)
        assert [WAITS[code] for code in found.kind.tolist()] == ["blocked: queue"]
