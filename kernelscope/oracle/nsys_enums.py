"""The numbers that Nsight Systems writes for kinds of copies, memories, causes and calls."""

from __future__ import annotations

from collections.abc import Mapping

EnumRows = tuple[tuple[int, str, str], ...]

COPY_KINDS: Mapping[str, int] = {
    "unknown": 0,
    "HtoD": 1,
    "DtoH": 2,
    "HtoA": 3,
    "AtoH": 4,
    "AtoA": 5,
    "AtoD": 6,
    "DtoA": 7,
    "DtoD": 8,
    "HtoH": 9,
    "PtoP": 10,
    "unified HtoD": 11,
    "unified DtoH": 12,
    "unified DtoD": 13,
}
"""Copy kind → ``copyKind``."""

MEMORY_KINDS: Mapping[str, int] = {
    "pageable": 0,
    "pinned": 1,
    "device": 2,
    "array": 3,
    "managed": 4,
    "device static": 5,
    "managed static": 6,
    "unknown": 7,
}
"""Kind of memory → ``srcKind``, ``dstKind``, ``memKind``. Not CUPTI's numbers."""

MIGRATION_CAUSES: Mapping[str, int] = {
    "unknown": 0,
    "prefetch": 1,
    "page fault": 2,
    "speculative prefetch": 3,
    "eviction": 4,
    "access counters": 5,
}
"""Why unified memory migrated → ``migrationCause``."""

CALL_CLASSES: Mapping[str, int] = {"runtime": 0, "driver": 1, "wrapper": 67}
"""Kind of call → ``eventClass``."""

OS_CALL_CLASS = 27

RANGE_TYPES: Mapping[str, int] = {"push_pop": 59, "start_end": 60}
"""Style of an NVTX range → ``eventType``."""

THREAD_NAME_TYPE = 39
DOMAIN_TYPE = 75

UNSET = 4_294_967_295
"""*None* in an id column of a synchronisation."""

SYNC_TYPES: Mapping[str, Mapping[str, int]] = {
    "2020.5": {"event": 2, "stream_wait": 3, "stream": 3, "context": 1},
    "2022.4": {"event": 2, "stream_wait": 3, "stream": 3, "context": 1},
    "2025.5": {"event": 1, "stream_wait": 2, "stream": 2, "context": 4},
}
"""What rows hold, which is not what ENUM_CUPTI_SYNC_TYPE says."""

ABI_VERSIONS: Mapping[str, int] = {
    "cudaDeviceSynchronize": 3020,
    "cudaEventCreateWithFlags": 3020,
    "cudaEventQuery": 3020,
    "cudaEventRecord": 3020,
    "cudaEventSynchronize": 3020,
    "cudaFree": 3020,
    "cudaFreeAsync": 11020,
    "cudaGraphInstantiate": 12000,
    "cudaGraphLaunch": 10000,
    "cudaHostAlloc": 3020,
    "cudaLaunchKernel": 7000,
    "cudaLaunchKernelExC": 11060,
    "cudaMalloc": 3020,
    "cudaMallocAsync": 11020,
    "cudaMallocManaged": 6000,
    "cudaMemcpy": 3020,
    "cudaMemcpyAsync": 3020,
    "cudaMemcpyPeerAsync": 4000,
    "cudaMemset": 3020,
    "cudaMemsetAsync": 3020,
    "cudaStreamBeginCapture": 10000,
    "cudaStreamCreateWithFlags": 5000,
    "cudaStreamEndCapture": 10000,
    "cudaStreamIsCapturing": 10000,
    "cudaStreamSynchronize": 3020,
    "cudaStreamWaitEvent": 3020,
}
"""Runtime calls are exported with the CUDA version of their ABI; driver calls without."""

_MEMCPY = "CUDA_MEMCPY_KIND_"
_MEMORY = "CUDA_MEMOPR_MEMORY_KIND_"
_LAUNCH = "CUDA_KERNEL_LAUNCH_TYPE_"
_CAUSE = "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_"
_SYNC = "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_"
_STREAM = "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_"


def _numbered(prefix: str, names: str, labels: str) -> EnumRows:
    return tuple(
        (i, prefix + name, label)
        for i, (name, label) in enumerate(zip(names.split(), labels.split(","), strict=True))
    )


_LAUNCH_TYPES = _numbered(
    _LAUNCH,
    "UNKNOWN REGULAR COOPERATIVE_SINGLE_DEVICE COOPERATIVE_MULTI_DEVICE",
    "Unknown,Regular,Coop Single Device,Coop Multi Device",
)

_COMMON: Mapping[str, EnumRows] = {
    "ENUM_NSYS_EVENT_TYPE": (
        (33, "NvtxCategory", "NvtxCategory"),
        (34, "NvtxMark", "NvtxMark"),
        (39, "NvtxThread", "NvtxThread"),
        (59, "NvtxPushPopRange", "NvtxPushPopRange"),
        (60, "NvtxStartEndRange", "NvtxStartEndRange"),
        (75, "NvtxDomainCreate", "NvtxDomainCreate"),
        (76, "NvtxDomainDestroy", "NvtxDomainDestroy"),
    ),
    "ENUM_NSYS_EVENT_CLASS": (
        (0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        (27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OSRT runtime"),
    ),
    "ENUM_CUDA_MEMCPY_OPER": _numbered(
        _MEMCPY,
        "UNKNOWN HTOD DTOH HTOA ATOH ATOA ATOD DTOA DTOD HTOH PTOP UVM_HTOD UVM_DTOH UVM_DTOD",
        "Unknown,Host-to-Device,Device-to-Host,Host-to-Array,Array-to-Host,Array-to-Array,"
        "Array-to-Device,Device-to-Array,Device-to-Device,Host-to-Host,Peer-to-Peer,"
        "Unified Host-to-Device,Unified Device-to-Host,Unified Device-to-Device",
    ),
    "ENUM_CUDA_MEM_KIND": _numbered(
        _MEMORY,
        "PAGEABLE PINNED DEVICE ARRAY MANAGED DEVICE_STATIC MANAGED_STATIC UNKNOWN",
        "Pageable,Pinned,Device,Array,Managed,Device Static,Managed Static,Unknown",
    ),
    "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG": _numbered(
        "CUDA_SHARED_MEM_LIMIT_", "DEFAULT OPTIN", "Default,Opt in"
    ),
    "ENUM_CUDA_UNIF_MEM_MIGRATION": _numbered(
        _CAUSE,
        "UNKNOWN USER COHERENCE PREFETCH EVICTION ACCESS_COUNTERS",
        # "prefecth" is how every exporter writes it.
        "Unknown,User prefetch,Page fault,Speculative prefecth,Eviction,Access counters",
    ),
    "ENUM_CUDA_FUNC_CACHE_CONFIG": _numbered(
        "CU_FUNC_CACHE_PREFER_", "NONE SHARED L1 EQUAL", "None,Shared,L1,Equal"
    ),
    "ENUM_CUPTI_SYNC_TYPE": _numbered(
        _SYNC,
        "UNKNOWN EVENT_SYNCHRONIZE STREAM_WAIT_EVENT STREAM_SYNCHRONIZE CONTEXT_SYNCHRONIZE",
        "Unknown,Event sync,Stream wait sync,Stream sync,Context sync",
    ),
}

ENUMS: Mapping[str, Mapping[str, EnumRows]] = {
    "2020.5": {},
    "2022.4": {**_COMMON, "ENUM_CUDA_KRENEL_LAUNCH_TYPE": _LAUNCH_TYPES},
    "2025.5": {
        **_COMMON,
        "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _LAUNCH_TYPES,
        "ENUM_CUPTI_STREAM_TYPE": _numbered(
            _STREAM,
            "UNKNOWN DEFAULT NON_BLOCKING NULL",
            "Unknown stream type,Default stream,Non-blocking stream,Null stream",
        ),
        "ENUM_SAMPLING_THREAD_STATE": _numbered(
            "",
            "Unknown Running Interruptible Uninterruptible Stopped Terminated Unscheduled "
            "Waiting OSRuntime Initialized Transition",
            "Unknown,Running,Interruptible,Uninterruptible,Stopped,Terminated,Unscheduled,"
            "Waiting,OS runtime,Initialized,Transition",
        ),
    },
}
"""Generation → enum table → rows; the exporters write more of them, about other APIs."""
