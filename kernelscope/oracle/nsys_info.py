"""What an Nsight Systems export says about machine, session and itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelscope.oracle import nsys_ddl
from kernelscope.oracle.gpus import Gpu
from kernelscope.oracle.nsys_ids import VM, Strings, global_id
from kernelscope.oracle.plan import Plan

Record = Mapping[str, Any]

SESSION_EPOCH_NS = 1_700_000_000_000_000_000
"""Wall-clock time of trace time 0: one moment for all plans, so that files repeat exactly."""

SESSION_TIME = "2023-11-14T22:13:20"

NULL_STREAM = 7


def tables(plan: Plan, generation: str, strings: Strings) -> dict[str, Sequence[Record]]:
    """Return the rows of every information table of `generation`.

    Parameters
    ----------
    plan : Plan
        What happened, and where.
    generation : str
        Whose tables and units.
    strings : Strings
        The export's strings; names of threads are added.

    Returns
    -------
    dict of str to sequence of mappings
        Table → rows; all rows of a table have the same columns.
    """
    common: dict[str, Sequence[Record]] = {
        "ThreadNames": [
            {"nameId": strings.id(t.name), "priority": 20, "globalTid": global_id(t.process, t.id)}
            for t in plan.threads
        ],
        "TARGET_INFO_CUDA_STREAM": _streams(plan),
    }
    if generation == "2020.5":
        return common | _machine_2020(plan)
    common |= _session(plan) | {"TARGET_INFO_GPU": [_gpu(plan, n) for n in range(len(plan.gpus))]}
    if generation == "2022.4":
        return common | {
            "TARGET_INFO_CUDA_NULL_STREAM": _null_streams(plan),
            "EXPORT_META_DATA": _export_metadata(generation),
        }
    return common | {
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": plan.gpus[d.gpu].id, "cudaId": d.ordinal, "pid": d.process}
            for d in plan.devices
        ],
        "TARGET_INFO_CUDA_CONTEXT_INFO": _contexts(plan),
        "DIAGNOSTIC_EVENT": _diagnostics(plan),
        "META_DATA_CAPTURE": _capture_metadata(),
        "META_DATA_EXPORT": _export_metadata(generation),
    }


def _used(plan: Plan, *names: str) -> list[tuple[int, ...]]:
    """Return the distinct combinations of columns over all device activity."""
    found: set[tuple[int, ...]] = set()
    for events in (plan.kernels, plan.copies, plan.memsets, plan.graphs):
        if not len(events):
            continue
        # One key per row: unique over a stacked copy of all columns would take far more memory.
        key = np.zeros(len(events), dtype=np.int64)
        sizes = [int(events[name].max()) + 1 for name in names]
        for name, size in zip(names, sizes, strict=True):
            key = key * size + events[name]
        for value in np.unique(key).tolist():
            parts: list[int] = []
            rest = value
            for size in reversed(sizes):
                rest, part = divmod(rest, size)
                parts.append(part)
            found.add(tuple(reversed(parts)))
    return sorted(found)


def _streams(plan: Plan) -> list[Record]:
    return [
        {
            "streamId": stream,
            "hwId": 0,
            "vmId": 1,
            "processId": process,
            "contextId": context,
            "priority": 0,
            "flag": 3 if stream == NULL_STREAM else 2,
        }
        for process, context, stream in _used(plan, "process", "context", "stream")
        if context  # migrations of unified memory belong to none
    ]


def _null_streams(plan: Plan) -> list[Record]:
    return [
        {
            "streamId": NULL_STREAM,
            "hwId": 0,
            "vmId": 1,
            "processId": process,
            "deviceId": device,
            "contextId": context,
        }
        for process, device, context in _used(plan, "process", "device", "context")
        if context
    ]


def _contexts(plan: Plan) -> list[Record]:
    return [
        {
            **{("nullStreamId" if key == "streamId" else key): value for key, value in row.items()},
            "parentContextId": 0,
            "isGreenContext": 0,
        }
        for row in _null_streams(plan)
    ]


def _gpu(plan: Plan, ordinal: int) -> Record:
    gpu = plan.gpus[ordinal]
    return {
        "vmId": VM,
        "id": gpu.id,
        "name": gpu.name,
        "busLocation": gpu.bus,
        "isDiscrete": 1,
        "l2CacheSize": gpu.l2_bytes,
        "totalMemory": gpu.memory_bytes,
        "memoryBandwidth": gpu.memory_bytes_per_s,
        "clockRate": gpu.clock_hz,
        "smCount": gpu.sm_count,
        "pwGpuId": gpu.id,
        "uuid": gpu.uuid,
        "luid": 0,
        "chipName": gpu.chip,
        "cuDevice": ordinal,
        "ctxswDevPath": "",
        "ctrlDevPath": "",
        "revision": 161,
        "nodeMask": 0,
        "constantMemory": 65_536,
        "maxIPC": 4,
        "maxRegistersPerBlock": 65_536,
        "maxShmemPerBlock": 49_152,
        "maxShmemPerBlockOptin": gpu.shared_per_block_optin,
        "maxShmemPerSm": gpu.shared_per_sm,
        "maxRegistersPerSm": 65_536,
        "threadsPerWarp": 32,
        "asyncEngines": gpu.copy_engines,
        "maxWarpsPerSm": gpu.max_warps_per_sm,
        "maxBlocksPerSm": gpu.max_blocks_per_sm,
        **_limits("maxThreadsPerBlock", "maxBlockDim", "maxGridDim"),
        "computeMajor": gpu.compute[0],
        "computeMinor": gpu.compute[1],
        "smMajor": gpu.compute[0],
        "smMinor": gpu.compute[1],
    }


def _limits(threads: str, block: str, grid: str) -> Record:
    blocks = zip("XYZ", (1024, 1024, 64), strict=True)
    grids = zip("XYZ", (2_147_483_647, 65_535, 65_535), strict=True)
    return {
        threads: 1024,
        **{block + axis: limit for axis, limit in blocks},
        **{grid + axis: limit for axis, limit in grids},
    }


def _machine_2020(plan: Plan) -> dict[str, Sequence[Record]]:
    return {
        "TARGET_INFO_CUDA_GPU": [
            _cuda_gpu(plan.gpus[d.gpu], d.ordinal, d.process) for d in plan.devices
        ],
        "TARGET_INFO_GPU": [
            {
                "vmId": VM,
                "deviceId": gpu.id,
                "name": gpu.name,
                "busLocation": gpu.bus,
                "isDiscrete": 1,
            }
            for gpu in plan.gpus
        ],
        "TARGET_INFO_CUDA_NULL_STREAM": _null_streams(plan),
    }


def _cuda_gpu(gpu: Gpu, ordinal: int, process: int) -> Record:
    return {
        "vmId": VM,
        "name": gpu.name,
        "pciBusId": gpu.bus,
        # kB/s and kHz here, where later tables have B/s and Hz; sizes are bytes in both.
        "globalMemoryBandwidth": gpu.memory_bytes_per_s // 1000,
        "globalMemorySize": gpu.memory_bytes,
        "constantMemorySize": 65_536,
        "l2CacheSize": gpu.l2_bytes,
        "numThreadsPerWarp": 32,
        "coreClockRate": gpu.clock_hz // 1000,
        "numMemcpyEngines": gpu.copy_engines,
        "numMultiprocessors": gpu.sm_count,
        "maxIPC": 4,
        "maxWarpsPerMultiprocessor": gpu.max_warps_per_sm,
        "maxBlocksPerMultiprocessor": gpu.max_blocks_per_sm,
        "maxRegistersPerBlock": 65_536,
        "maxSharedMemoryPerBlock": 49_152,
        **_limits("maxThreadsPerBlock", "maxBlockDim", "maxGridDim"),
        "computeCapabilityMajor": gpu.compute[0],
        "computeCapabilityMinor": gpu.compute[1],
        "deviceId": ordinal,
        "pid": process,
        "maxSharedMemoryPerMultiprocessor": gpu.shared_per_sm,
        "maxRegistersPerMultiprocessor": 65_536,
    }


def _session(plan: Plan) -> dict[str, Sequence[Record]]:
    environment = [
        ("CpuCores", 1, "64"),
        ("CpuArchitecture", 3, "x86_64"),
        ("HasDiscreteGpu", 203, "1"),
        ("NvDriverVersion", 205, "550.90.07"),
        # Real exports hold the whole environment of the program here, secrets included.
        ("DeviceEnvironment", 610, "HOME=/home/user\nAPI_TOKEN=never-show-this\n"),
        ("Hostname", 619, "synthetic"),
    ]
    return {
        "TARGET_INFO_SYSTEM_ENV": [
            {
                "globalVid": VM,
                "devStateName": "Local (CLI)",
                "name": name,
                "nameEnum": number,
                "value": value,
            }
            for name, number, value in environment
        ],
        "TARGET_INFO_SESSION_START_TIME": [
            {
                "utcEpochNs": SESSION_EPOCH_NS,
                "utcTime": SESSION_TIME,
                "localTime": SESSION_TIME,
            }
        ],
        "ANALYSIS_DETAILS": [
            # startTime and stopTime are on the machine's boot clock, not the trace's.
            {
                "globalVid": VM,
                "duration": plan.end,
                "startTime": 90_000_000_000,
                "stopTime": 90_000_000_000 + plan.end,
            }
        ],
        "PROCESSES": [
            {"globalPid": global_id(process.id), "pid": process.id, "name": process.name}
            for process in plan.processes
        ],
    }


def _diagnostics(plan: Plan) -> list[Record]:
    return [
        {
            "timestamp": 0,
            "timestampType": 1,
            "source": 1,
            "severity": 1,
            "text": "Common injection library initialized successfully.",
            "globalPid": global_id(process.id),
        }
        for process in plan.processes
    ]


def _capture_metadata() -> list[Record]:
    rows = [
        ("DEVICE_ID", "Local (CLI)"),
        ("CAPTURE_EVENT_TYPE", "OSRuntime"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("PROCESS_0:COMMAND", "python train.py"),
        ("PROCESS_0:COLLECT_NVTX_TRACE", "true"),
        ("PROCESS_0:COLLECT_CUDA_TRACE", "true"),
        ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph"),
    ]
    return [{"name": name, "value": value} for name, value in rows]


def _export_metadata(generation: str) -> list[Record]:
    product, schema = nsys_ddl.VERSIONS[generation]
    major, minor, micro = schema.split(".")
    lazy = "EXPORT_PARAM_LAZY" if generation == "2025.5" else "EXPORT_LAZY"
    rows = [
        ("EXPORT_PRODUCT_NAME", "kernelscope.oracle, in the layout of NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", product),
        ("EXPORT_PRODUCT_DATE", generation),
        ("EXPORT_SCHEMA_VERSION", schema),
        ("EXPORT_SCHEMA_VERSION_MAJOR", major),
        ("EXPORT_SCHEMA_VERSION_MINOR", minor),
        ("EXPORT_SCHEMA_VERSION_MICRO", micro),
        ("EXPORT_PLATFORM", "linux-desktop"),
        ("EXPORT_ARCH", "x64"),
        (lazy, "true"),
    ]
    return [{"name": name, "value": value} for name, value in rows]
