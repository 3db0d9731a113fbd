"""What Nsight Systems calls things, as data: tables, columns and enumerations by version.

Sources: the ENUM_* tables of exports from 2022.4 to 2026.2 and the column history of public
exports from 2020.3 on. Parsers ask for every spelling; a file answers with those it has.
"""

from __future__ import annotations

from kernelscope.parsers.cupti_names import DEVICE_COLUMNS

NEWEST_KNOWN = (2026, 2)
"""The newest Nsight Systems whose exports were looked at; newer ones are read with a warning."""

UNSET_ID = 4294967295
"""What CUPTI writes into an unsigned 32-bit id that does not apply."""

COPY_KINDS = {
    0: "unknown", 1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA",
    8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "unified HtoD", 12: "unified DtoH", 13: "unified DtoD",
}  # fmt: skip

MEMORY_KINDS = {
    0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device static",
    6: "managed static", 7: "unknown",
}  # fmt: skip

MIGRATION_CAUSES = {
    0: "unknown", 1: "prefetch", 2: "page fault", 3: "speculative prefetch", 4: "eviction",
    5: "access counters",
}  # fmt: skip

LAUNCH_TYPES = {
    0: "unknown", 1: "regular", 2: "cooperative", 3: "cooperative multi-device",
}  # fmt: skip

API_KINDS = {0: "runtime", 1: "driver"}
"""``eventClass`` of a CUDA call; every other class is a call-chain wrapper around one."""

RANGE_STYLES = {59: "push_pop", 60: "start_end", 70: "push_pop", 71: "start_end"}
"""``eventType`` of NVTX ranges (70 and 71 come from nvtxt files); all else is no range."""

NVTX_DOMAIN_CREATE = 75

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GRAPH_NODES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
"""Where graph nodes are made: the newer and the older name of one table."""

HOST_DEVICE = 2147483647
"""``deviceId`` of a graph whose first node runs on the host."""

SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENT_RECORDS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
NVTX = "NVTX_EVENTS"
OVERHEAD = "PROFILER_OVERHEAD"
OS_CALLS = "OSRT_API"
OS_CALL_CLASS = 27
"""``eventClass`` of an operating-system call; the others mark the profiler's own doings."""

SCHEDULING = "SCHED_EVENTS"
SYSTEM = "TARGET_INFO_SYSTEM_ENV"

GPU_METRICS = "GPU_METRICS"
GPU_METRIC_NAMES = "TARGET_INFO_GPU_METRICS"
GENERIC_EVENTS = "GENERIC_EVENTS"
GENERIC_TYPES = "GENERIC_EVENT_TYPES"

GPU_ID_MASK = 0xFF
"""The low byte of a sample's ``typeId`` is the GPU's ``TARGET_INFO_GPU.id``; the rest is the
machine's serialized id."""

MOST_PERCENT = 120
"""Counters of one sample are not read at one instant, so that a share may come out a little above
100; a share beyond this is none."""

HOW_TO_RECORD = {
    "kernels": ((KERNEL,), "Cuda", "nsys profile --trace=cuda"),
    "api_calls": ((RUNTIME,), "Cuda", "nsys profile --trace=cuda"),
    "copies": ((MEMCPY, MEMSET), "Cuda", "nsys profile --trace=cuda"),
    "graphs": ((GRAPH,), "Cuda", ""),
    "graph_nodes": (GRAPH_NODES, "Cuda", ""),
    "syncs": ((SYNCHRONIZATION,), "Cuda", "nsys profile --trace=cuda"),
    "event_records": ((EVENT_RECORDS,), "Cuda", ""),
    "ranges": ((NVTX,), "NvtxEvents", "nsys profile --trace=cuda,nvtx, and NVTX in the program"),
    "devices": (
        ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"), "",
        "nsys profile --trace=cuda on a machine whose GPUs nsys may query",
    ),
    "processes": (("PROCESSES",), "", "Nsight Systems 2022.1 or newer"),
    "threads": (("ThreadNames",), "", "name the threads in the program (pthread_setname_np)"),
    "overheads": ((OVERHEAD,), "", "Nsight Systems writes it where there is any"),
    "os_calls": ((OS_CALLS,), "", "nsys profile --trace=cuda,nvtx,osrt"),
    "on_core": ((SCHEDULING,), "", "nsys profile --cpuctxsw=process-tree"),
    "gpu_samples": ((GPU_METRICS,), "", "nsys profile --gpu-metrics-devices=all"),
}  # fmt: skip
"""Canonical table → (its tables in the export, the capture event that traces it, how to).

Tables without a way to record them (programs without CUDA graphs have none, and exports before
2022 no records of events) are not missed.
"""

NOT_MISSED = frozenset({"gpu_samples"})
"""Tables that most captures do without: they are not among what was not recorded."""

KERNEL_COLUMNS = {
    "grid_x": "gridX", "grid_y": "gridY", "grid_z": "gridZ",
    "block_x": "blockX", "block_y": "blockY", "block_z": "blockZ",
    "registers_per_thread": "registersPerThread",
    "static_shared_bytes": "staticSharedMemory",
    "dynamic_shared_bytes": "dynamicSharedMemory",
    "shared_carveout_bytes": "sharedMemoryExecuted",
    "local_bytes_per_thread": "localMemoryPerThread",
    "cluster_x": "clusterX", "cluster_y": "clusterY", "cluster_z": "clusterZ",
}  # fmt: skip

ANY = (0, (1 << 31) - 1)
SENSIBLE = {
    **{f"{part}_{axis}": (1, (1 << 31) - 1) for part in ("grid", "block") for axis in "xyz"},
    "bytes": (0, 1 << 50),
}
"""What launch shapes and sizes can be; what lies outside is no shape and no size, but missing."""

EVENT_COLUMNS = {
    "context_id": "contextId",
    "stream_id": "streamId",
    "correlation_id": "correlationId",
}

GPU_COLUMNS = {
    "name": "name", "bus": "busLocation", "chip": "chipName", "uuid": "uuid",
    "compute_major": "computeMajor", "compute_minor": "computeMinor",
    "sm_count": "smCount", "clock_hz": "clockRate", "memory_bytes": "totalMemory",
    "memory_bytes_per_s": "memoryBandwidth", "l2_bytes": "l2CacheSize",
    "max_threads_per_block": "maxThreadsPerBlock", "max_warps_per_sm": "maxWarpsPerSm",
    "max_blocks_per_sm": "maxBlocksPerSm", "max_registers_per_sm": "maxRegistersPerSm",
    "max_registers_per_block": "maxRegistersPerBlock",
    "max_shared_bytes_per_sm": "maxShmemPerSm",
    "max_shared_bytes_per_block": "maxShmemPerBlock",
    "max_shared_bytes_per_block_optin": "maxShmemPerBlockOptin",
    "threads_per_warp": "threadsPerWarp",
}  # fmt: skip
"""``TARGET_INFO_GPU`` from 2021.2 on: clockRate in Hz, memoryBandwidth in B/s."""

CUDA_GPU_COLUMNS = {"name": "name", "bus": "pciBusId", **DEVICE_COLUMNS}
"""``TARGET_INFO_CUDA_GPU`` of 2020, as CUPTI has it: kHz and kB/s."""
