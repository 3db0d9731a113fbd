"""Nsight Systems' SQLite tables in three generations of its exporter: data, no code to speak of.

Columns are written in a line each: ``name`` is an INTEGER that may be NULL, ``name!`` an INTEGER
NOT NULL, ``name$`` TEXT, ``name$!`` TEXT NOT NULL, ``name~`` REAL, ``name#`` the integer primary
key. The order is that of real exports, read off with ``PRAGMA table_info``; tables that no
export of a generation was seen with are taken from its neighbours and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GENERATIONS: tuple[str, ...] = ("2020.5", "2022.4", "2025.5")
"""The exporters that can be written."""

VERSIONS: Mapping[str, tuple[str, str]] = {
    "2022.4": ("2022.4.2.1", "3.0.0"),
    "2025.5": ("2025.5.2.266", "3.24.0"),
}
"""Product and schema version that an export states; that of 2020.5 states none."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of an export."""

    name: str
    type: str
    required: bool
    key: bool = False


def fields(columns: str) -> tuple[Field, ...]:
    """Read a line of columns; see the module's docstring for the notation."""
    return tuple(_field(word) for word in columns.split())


def _field(word: str) -> Field:
    if word.endswith("#"):
        return Field(word[:-1], "INTEGER", True, key=True)
    required = word.endswith("!")
    name = word.rstrip("!")
    types = {"$": "TEXT", "~": "REAL"}
    return Field(name.rstrip("$~"), types.get(name[-1], "INTEGER"), required)


def create(table: str, columns: str, generation: str) -> str:
    """Return the CREATE TABLE statement as that generation formats it."""
    lines = [
        f"{field.name} {field.type}"
        + (" NOT NULL" if field.required else "")
        + (" PRIMARY KEY" if field.key else "")
        for field in fields(columns)
    ]
    if generation == "2020.5":
        return f"CREATE TABLE {table} ({', '.join(lines)})"
    # Later exporters put every column on its own line with a comment behind it, commas and
    # all; a reader of the DDL must cope with that.
    commented = [
        f"    {line}{',' if i < len(lines) else ''}  -- {_comment(line.split()[0])}"
        for i, line in enumerate(lines, 1)
    ]
    return "\n".join((f"CREATE TABLE {table} (", "    -- synthetic", "", *commented, ")"))


def _comment(column: str) -> str:
    target = REFERENCES.get(column)
    return f"REFERENCES {target}" if target else f"{column}, as the exporter calls it."


REFERENCES: Mapping[str, str] = {
    **dict.fromkeys(
        ("nameId", "demangledName", "shortName", "mangledName", "textId", "jsonTextId"),
        "StringIds(id)",
    ),
    "copyKind": "ENUM_CUDA_MEMCPY_OPER(id)",
    "srcKind": "ENUM_CUDA_MEM_KIND(id)",
    "dstKind": "ENUM_CUDA_MEM_KIND(id)",
    "memKind": "ENUM_CUDA_MEM_KIND(id)",
    "eventType": "ENUM_NSYS_EVENT_TYPE(id)",
    "eventClass": "ENUM_NSYS_EVENT_CLASS(id)",
}
"""What the comment behind a column says it refers to."""

_WHEN = "start! end!"
_WHERE = "deviceId! contextId! streamId! correlationId globalPid"
_WHERE_GREEN = "deviceId! contextId! greenContextId streamId! correlationId globalPid"
_SHAPE = "registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ!"
_MEMORY = (
    "staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! "
    "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
)
_COPY = (
    "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId "
    "dstContextId migrationCause graphNodeId"
)
_NVTX = (
    "start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId "
    "uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText$"
)
_GPU = (
    "vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate "
    "smCount pwGpuId uuid$ luid chipName$ cuDevice ctxswDevPath$ ctrlDevPath$ revision nodeMask "
    "constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin "
    "maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm "
    "maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY "
    "maxGridDimZ computeMajor computeMinor smMajor smMinor"
)
_CUDA_GPU = (
    "vmId! name$! pciBusId$ globalMemoryBandwidth! globalMemorySize! constantMemorySize! "
    "l2CacheSize! numThreadsPerWarp! coreClockRate! numMemcpyEngines! numMultiprocessors! "
    "maxIPC! maxWarpsPerMultiprocessor! maxBlocksPerMultiprocessor! maxRegistersPerBlock! "
    "maxSharedMemoryPerBlock! maxThreadsPerBlock! maxBlockDimX! maxBlockDimY! maxBlockDimZ! "
    "maxGridDimX! maxGridDimY! maxGridDimZ! computeCapabilityMajor! computeCapabilityMinor! "
    "deviceId! pid maxSharedMemoryPerMultiprocessor maxRegistersPerMultiprocessor"
)
_NULL_STREAM = "streamId! hwId! vmId! processId! deviceId! contextId!"
_STREAM = "streamId! hwId! vmId! processId! contextId! priority! flag!"
_RUNTIME = f"{_WHEN} eventClass! globalTid correlationId nameId! returnValue! callchainId"
# Of graphs no export was seen: NVIDIA's published schema has these columns.
_GRAPH = f"{_WHEN} deviceId! graphId! graphExecId! contextId! streamId! correlationId globalPid"
_GRAPH_NODE = f"{_WHEN} eventClass! globalTid nameId! graphNodeId! originalGraphNodeId"
_STRINGS = "id# value$!"

_COMMON_INFO: Mapping[str, str] = {
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "PROCESSES": "globalPid pid name$",
}
_SESSION = "utcEpochNs utcTime$ localTime$"
_ENVIRONMENT = "devStateName$! name$! nameEnum! value$!"
_METADATA = "name$! value$"

TABLES: Mapping[str, Mapping[str, str]] = {
    "2020.5": {
        "StringIds": _STRINGS,
        "PROFILER_OVERHEAD": f"{_WHEN} globalTid correlationId nameId! returnValue!",
        "CUPTI_ACTIVITY_KIND_RUNTIME": _RUNTIME,
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_WHEN} {_WHERE} {_COPY}",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_WHEN} {_WHERE} value! bytes! graphNodeId memKind",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_WHEN} {_WHERE} syncType! eventId!",
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            f"{_WHEN} {_WHERE} demangledName! shortName! launchType cacheConfig {_SHAPE} {_MEMORY}"
        ),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"{_WHERE} eventId!",  # as in 2022
        "NVTX_EVENTS": _NVTX,  # as in 2022
        "OSRT_API": (  # as in 2021
            f"{_WHEN} eventClass! globalTid correlationId nameId! returnValue! nestingLevel "
            "callchainId!"
        ),
        "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid",  # as in 2021
        "ThreadNames": "nameId! priority globalTid",
        "TARGET_INFO_CUDA_GPU": _CUDA_GPU,
        "TARGET_INFO_GPU": "vmId! deviceId! name$ busLocation$ isDiscrete",
        "TARGET_INFO_CUDA_NULL_STREAM": _NULL_STREAM,
        "TARGET_INFO_CUDA_STREAM": _STREAM,
    },
    "2022.4": {
        "StringIds": _STRINGS,
        "TARGET_INFO_SYSTEM_ENV": f"globalVid! {_ENVIRONMENT}",
        "TARGET_INFO_SESSION_START_TIME": _SESSION,
        **_COMMON_INFO,
        "NVTX_EVENTS": _NVTX,
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"{_WHERE} eventId!",
        "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid",
        "CUPTI_ACTIVITY_KIND_RUNTIME": _RUNTIME,
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_WHEN} {_WHERE} {_COPY} virtualAddress",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_WHEN} {_WHERE} syncType! eventId!",
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            f"{_WHEN} {_WHERE} demangledName! shortName! mangledName launchType cacheConfig "
            f"{_SHAPE} {_MEMORY}"
        ),
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_WHEN} {_WHERE} value! bytes! graphNodeId memKind",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _GRAPH,
        "CUDA_GRAPH_EVENTS": _GRAPH_NODE,
        "PROFILER_OVERHEAD": f"{_WHEN} globalTid nameId! returnValue!",
        "OSRT_API": (
            f"{_WHEN} eventClass! globalTid nameId! returnValue! nestingLevel callchainId!"
        ),
        "GENERIC_EVENT_SOURCES": "sourceId# data$!",  # as the User Guide has them
        "GENERIC_EVENT_TYPES": "typeId# sourceId! data$!",
        "GENERIC_EVENTS": "rawTimestamp! timestamp typeId! data$!",
        "ThreadNames": "nameId! priority globalTid",
        "TARGET_INFO_GPU": _GPU,
        "TARGET_INFO_CUDA_NULL_STREAM": _NULL_STREAM,
        "TARGET_INFO_CUDA_STREAM": _STREAM,
        "EXPORT_META_DATA": _METADATA,
    },
    "2025.5": {
        "StringIds": _STRINGS,
        "TARGET_INFO_SYSTEM_ENV": f"globalVid {_ENVIRONMENT}",
        "TARGET_INFO_SESSION_START_TIME": _SESSION,
        **_COMMON_INFO,
        "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text$! globalPid",
        "NVTX_EVENTS": f"{_NVTX} binaryData$",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"timestamp {_WHERE_GREEN} eventId! eventSyncId",  # 2026
        "PROFILER_OVERHEAD": f"{_WHEN} globalTid nameId! overheadType!",
        "CUPTI_ACTIVITY_KIND_RUNTIME": _RUNTIME,
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_WHEN} {_WHERE_GREEN} {_COPY} virtualAddress copyCount",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_WHEN} {_WHERE_GREEN} value! bytes! graphNodeId memKind",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _GRAPH.replace(
            "contextId!", "contextId! greenContextId"
        ),
        "CUDA_GRAPH_NODE_EVENTS": _GRAPH_NODE,
        "CUPTI_ACTIVITY_KIND_OVERHEAD": (
            f"{_WHEN} eventClass! globalTid correlationId nameId overheadType!"
        ),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
            f"{_WHEN} {_WHERE_GREEN} deprecatedSyncType syncType! eventId! eventSyncId"
        ),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            f"{_WHEN} {_WHERE_GREEN} demangledName! shortName! mangledName launchType cacheConfig "
            f"{_SHAPE} {_MEMORY} qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId "
            "clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize "
            "maxActiveClusters"
        ),
        "OSRT_API": (
            f"{_WHEN} eventClass! globalTid nameId! returnValue! nestingLevel callchainId! "
            "argumentsId!"
        ),
        "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState threadBlock",
        # as the User Guide has them
        "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName$! metricId! metricName$!",
        "GPU_METRICS": "timestamp typeId! metricId! value!",
        "ThreadNames": "nameId! priority globalTid",
        "TARGET_INFO_GPU": _GPU,
        "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid!",
        "TARGET_INFO_CUDA_CONTEXT_INFO": (
            "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId "
            "isGreenContext"
        ),
        "TARGET_INFO_CUDA_STREAM": _STREAM,
        "META_DATA_CAPTURE": _METADATA,
        "META_DATA_EXPORT": _METADATA,
    },
}
"""Generation → table → columns, in the order of a real export."""
