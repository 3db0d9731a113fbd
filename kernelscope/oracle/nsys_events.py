"""Device activity, CUDA calls and host events, as an export holds them."""

from __future__ import annotations

import numpy as np

from kernelscope.oracle import nsys_enums, nsys_graphs, nsys_nvtx, nsys_samples
from kernelscope.oracle.events import short_name
from kernelscope.oracle.nsys_columns import (
    Content,
    Source,
    enum,
    string_ids,
    take,
    thread_ids,
    when,
    where,
)
from kernelscope.oracle.nsys_ids import Strings
from kernelscope.oracle.plan import MISSING, Events, Plan


def contents(plan: Plan, generation: str, strings: Strings) -> dict[str, tuple[Content, ...]]:
    """Return what goes into every table of events of `generation`; strings get their numbers."""
    return {
        "NVTX_EVENTS": nsys_nvtx.contents(plan, generation, strings),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (_event_records(plan.event_records, generation),),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (_calls(plan.calls, strings),),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (_copies(plan.copies, generation),),
        "CUPTI_ACTIVITY_KIND_MEMSET": (_memsets(plan.memsets, generation),),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (_syncs(plan.syncs, generation),),
        "CUPTI_ACTIVITY_KIND_KERNEL": (_kernels(plan.kernels, generation, strings),),
        **nsys_graphs.contents(plan, generation, strings),
        "PROFILER_OVERHEAD": (_overheads(plan.overheads, generation, strings),),
        "OSRT_API": (_os_calls(plan.os_calls, generation, strings),),
        "SCHED_EVENTS": (_switches(plan.switches, generation),),
        **nsys_samples.contents(plan, generation),
    }


def _kernels(kernels: Events, generation: str, strings: Strings) -> Content:
    name = kernels.texts("name")
    columns: dict[str, Source] = {
        **when(kernels),
        **where(kernels, generation),
        "demangledName": string_ids(name, strings),
        "shortName": string_ids(name, strings, short_name),
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": take(kernels["registers"]),
        **{
            f"{shape}{axis.upper()}": take(kernels[f"{shape}_{axis}"])
            for shape in ("grid", "block")
            for axis in "xyz"
        },
        "staticSharedMemory": take(kernels["static_shared"]),
        "dynamicSharedMemory": take(kernels["dynamic_shared"]),
        "localMemoryPerThread": 0,
        "localMemoryTotal": 208_797_696,
        "gridId": lambda part: np.arange(part.start + 1, part.stop + 1),
        "sharedMemoryExecuted": take(kernels["carveout"]),
        "graphNodeId": take(kernels["graph_node"]),
        "sharedMemoryLimitConfig": 0,
    }
    if generation != "2020.5":
        columns["mangledName"] = string_ids(name, strings, _mangled)
    if generation == "2025.5":
        cluster = ("X", "Y", "Z", "SchedulingPolicy")
        columns.update({f"cluster{part}": 0 for part in cluster})
        columns.update({"maxPotentialClusterSize": 0, "maxActiveClusters": 0})
    return Content(len(kernels), columns)


def _mangled(name: str) -> str:
    base = short_name(name)
    return base if base == name else f"_Z{len(base)}{base}v"


def _calls(calls: Events, strings: Strings) -> Content:
    return Content(
        len(calls),
        {
            **when(calls),
            "eventClass": enum(calls.texts("kind"), nsys_enums.CALL_CLASSES),
            "globalTid": thread_ids(calls),
            "correlationId": take(calls["correlation"]),
            "nameId": _call_names(calls, strings),
            "returnValue": take(calls["result"]),
        },
    )


def _call_names(calls: Events, strings: Strings) -> Source:
    # Call-chain wrappers are exported under the bare name, the calls inside with a version.
    kinds, names = calls.texts("kind"), calls.texts("name")
    if "wrapper" not in kinds.categories:
        return string_ids(names, strings, _versioned)
    bare = np.array([strings.id(n) for n in names.categories], dtype=np.int64)
    versioned = np.array([strings.id(_versioned(n)) for n in names.categories], dtype=np.int64)
    wrapper = kinds.categories.index("wrapper")
    return lambda part: np.where(
        kinds.codes[part] == wrapper, bare[names.codes[part]], versioned[names.codes[part]]
    )


def _versioned(name: str) -> str:
    version = nsys_enums.ABI_VERSIONS.get(name)
    return f"{name}_v{version}" if version else name


def _copies(copies: Events, generation: str) -> Content:
    columns: dict[str, Source] = {
        **when(copies),
        **where(copies, generation),
        "bytes": take(copies["bytes"]),
        "copyKind": enum(copies.texts("kind"), nsys_enums.COPY_KINDS),
        "srcKind": enum(copies.texts("src_memory"), nsys_enums.MEMORY_KINDS),
        "dstKind": enum(copies.texts("dst_memory"), nsys_enums.MEMORY_KINDS),
        "srcDeviceId": take(copies["src_device"]),
        "srcContextId": take(copies["src_context"]),
        "dstDeviceId": take(copies["dst_device"]),
        "dstContextId": take(copies["dst_context"]),
        "migrationCause": enum(copies.texts("cause"), nsys_enums.MIGRATION_CAUSES),
    }
    if generation != "2020.5":
        columns["virtualAddress"] = take(copies["address"])
    if generation == "2025.5":
        columns["copyCount"] = 1
    return Content(len(copies), columns)


def _memsets(memsets: Events, generation: str) -> Content:
    return Content(
        len(memsets),
        {
            **when(memsets),
            **where(memsets, generation),
            "value": take(memsets["value"]),
            "bytes": take(memsets["bytes"]),
            "memKind": enum(memsets.texts("memory"), nsys_enums.MEMORY_KINDS),
        },
    )


def _syncs(syncs: Events, generation: str) -> Content:
    stream, event = syncs["stream"], syncs["event"]
    has_stream, has_event = stream != MISSING, event != MISSING
    numbers = nsys_enums.SYNC_TYPES[generation]
    kind = np.select(
        [has_stream & has_event, has_event, has_stream],
        [numbers["stream_wait"], numbers["event"], numbers["stream"]],
        numbers["context"],
    )
    columns = {
        **when(syncs),
        **where(syncs, generation),
        "streamId": take(np.where(has_stream, stream, nsys_enums.UNSET)),
        "syncType": take(kind),
        "eventId": take(np.where(has_event, event, nsys_enums.UNSET)),
    }
    if generation == "2025.5":
        columns["greenContextId"] = None
        columns["eventSyncId"] = nsys_enums.UNSET
    return Content(len(syncs), columns)


def _event_records(records: Events, generation: str) -> Content:
    columns = {**where(records, generation), "eventId": take(records["event"])}
    if generation == "2025.5":
        columns |= {"timestamp": 0, "eventSyncId": nsys_enums.UNSET}
    return Content(len(records), columns)


def _overheads(overheads: Events, generation: str, strings: Strings) -> Content:
    last = "overheadType" if generation == "2025.5" else "returnValue"
    columns: dict[str, Source] = {
        **when(overheads),
        "globalTid": thread_ids(overheads),
        "nameId": string_ids(overheads.texts("name"), strings),
        last: 0,
    }
    if generation == "2020.5":
        columns["correlationId"] = 0
    return Content(len(overheads), columns)


def _os_calls(calls: Events, generation: str, strings: Strings) -> Content:
    columns: dict[str, Source] = {
        **when(calls),
        "eventClass": nsys_enums.OS_CALL_CLASS,
        "globalTid": thread_ids(calls),
        "nameId": string_ids(calls.texts("name"), strings),
        "returnValue": 0,
        "nestingLevel": 0,
        "callchainId": 0,
    }
    extra = {"2020.5": "correlationId", "2025.5": "argumentsId"}.get(generation)
    return Content(len(calls), {**columns, extra: 0} if extra else columns)


def _switches(switches: Events, generation: str) -> Content:
    columns: dict[str, Source] = {
        "start": take(switches["start"]),
        "cpu": take(switches["cpu"]),
        "isSchedIn": take(switches["on_core"]),
        "globalTid": thread_ids(switches),
    }
    if generation == "2025.5":
        columns["threadState"] = 0
    return Content(len(switches), columns)
