"""What nvprof calls things, as data: tables, columns and enumerations of CUPTI's activity records.

A database is a dump of the structures of ``cupti_activity.h``; kinds and columns keep CUPTI's
names, so that what Nsight Systems took over from CUPTI is said in `nsys_names` and shared.
"""

from __future__ import annotations

OLDEST_KNOWN, NEWEST_KNOWN = 8, 16
"""``Version`` of the databases that were looked at: CUDA 7.5 to 11.8, after which nvprof ended."""

NO_STRING = "-- null --"
"""What nvprof writes into its string table for a string that is not there."""

PREFIX = "CUPTI_ACTIVITY_KIND_"
TIMELINE_KERNEL = PREFIX + "CONCURRENT_KERNEL"
SERIAL_KERNEL = PREFIX + "KERNEL"
DEVICE_LAUNCHED_KERNEL = PREFIX + "CDP_KERNEL"
KERNEL_TABLES = (TIMELINE_KERNEL, SERIAL_KERNEL, DEVICE_LAUNCHED_KERNEL)

RUNTIME, DRIVER = PREFIX + "RUNTIME", PREFIX + "DRIVER"
MEMCPY, PEER_MEMCPY, MEMSET = PREFIX + "MEMCPY", PREFIX + "MEMCPY2", PREFIX + "MEMSET"
UNIFIED_MEMORY = PREFIX + "UNIFIED_MEMORY_COUNTER"
SYNCHRONIZATION = PREFIX + "SYNCHRONIZATION"
CUDA_EVENT = PREFIX + "CUDA_EVENT"
MARKER, MARKER_DATA = PREFIX + "MARKER", PREFIX + "MARKER_DATA"
OVERHEAD, NAME = PREFIX + "OVERHEAD", PREFIX + "NAME"
DEVICE, CONTEXT = PREFIX + "DEVICE", PREFIX + "CONTEXT"
METRIC, METRIC_INSTANCE = PREFIX + "METRIC", PREFIX + "METRIC_INSTANCE"

ON_DEVICE = (*KERNEL_TABLES, MEMCPY, PEER_MEMCPY, MEMSET)
"""Tables whose rows are work of a device."""

EVENTS = (
    *KERNEL_TABLES, RUNTIME, DRIVER, MEMCPY, PEER_MEMCPY, MEMSET, UNIFIED_MEMORY, MARKER, METRIC,
    METRIC_INSTANCE,
)  # fmt: skip
"""A database in which all of these are empty is an empty shell: nothing was captured."""

PROCESS_OBJECT, THREAD_OBJECT = 1, 2
"""``objectKind`` (CUpti_ActivityObjectKind)."""

MARKER_START, MARKER_END = 2, 4
"""Bits of a marker's flags; an instantaneous one has bit 1, and is no range."""

MEMORY_KINDS = {
    0: "unknown", 1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed",
    6: "device static", 7: "managed static",
}  # fmt: skip
"""CUpti_ActivityMemoryKind; Nsight Systems counts one lower."""

LAUNCH_TYPES = {0: "regular", 1: "cooperative", 2: "cooperative multi-device"}
"""CUpti_ActivityLaunchType; Nsight Systems counts one higher."""

SYNC_KINDS = {
    1: "event_synchronize", 2: "stream_wait_event", 3: "stream_synchronize",
    4: "context_synchronize",
}  # fmt: skip
"""CUpti_ActivitySynchronizationType."""

OVERHEAD_KINDS = {
    0: "Unknown", 1: "Driver compiler", 0x10000: "CUPTI Buffer flush",
    0x20000: "CUPTI instrumentation", 0x30000: "CUPTI resource creation",
}  # fmt: skip
"""CUpti_ActivityOverheadKind; the flush is spelled as Nsight Systems does: idle time knows it."""

MIGRATIONS = {1: "unified HtoD", 2: "unified DtoH", 8: "unified DtoD"}
"""``counterKind`` of unified memory that moved; the others count faults and the like."""

THOUSANDS = ("clock_hz", "memory_bytes_per_s")
"""Columns of a device that CUPTI holds in kHz and kB/s."""

UNITS = {
    "count": "count", "bytes": "bytes", "throughput": "bytes/s", "percent": "ratio",
    "ratio": "1", "level": "level",
}  # fmt: skip
"""Kind of a metric (``data/nvprof_metrics.json``) → its unit.

What CUPTI calls a percentage becomes a ratio of 0 to 1; what it calls a ratio is a quotient of two
counts, such as instructions per cycle.
"""

PERCENT = "percent"
"""The kind of which databases hold a hundred times the value."""

WHOLE_KINDS = ("count", "bytes", "throughput", "level")
"""Kinds whose values are unsigned integers; the others are doubles."""

WITHOUT_METRICS = "a timeline: nvprof without --metrics, --events and --analysis-metrics"
HOW_TO_RECORD = {
    "kernels": WITHOUT_METRICS,
    "api_calls": WITHOUT_METRICS,
    "copies": WITHOUT_METRICS,
    "syncs": f"{WITHOUT_METRICS}, of CUDA 9 or newer",
    "event_records": WITHOUT_METRICS,
    "ranges": "mark NVTX ranges in the program: a timeline of nvprof holds them",
    "devices": "nvprof describes the GPUs that the program uses",
    "processes": "nvprof names the process where it knows it",
    "threads": "name the threads in the program (nvtxNameOsThread)",
    "overheads": "nvprof writes it where there is any",
    "counters": "nvprof --metrics …, in a run of its own",
}
"""Canonical table → how to record it."""
