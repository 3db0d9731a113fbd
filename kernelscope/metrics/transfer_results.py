"""The tables that say how copies reach memory: kept from whom, hidden behind what, and how fast."""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

BLOCKING: tuple[str, ...] = ("no", "yes")
"""Whether the host waited in the call that copied; missing where no call was recorded."""

_KIND = text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, memset, unified HtoD, …")
_PROCESS = integer("process_id", "id", "the process", optional=True)
_DEVICE = integer("device_id", "id", "CUDA ordinal of the device that carried it out")

_TOTALS: tuple[Column, ...] = (
    integer("operations", "count", "operations that start in the window"),
    integer(
        "bytes", "bytes", "bytes of those operations; missing where not recorded", optional=True
    ),
    integer("total_ns", "ns", "sum of durations inside the window"),
    real("bytes_per_s", "bytes/s", "Σ bytes over Σ duration of those operations"),
    real("median_bytes_per_s", "bytes/s", "median of the rates of those operations"),
)

_EXPOSURE: tuple[Column, ...] = (
    integer(
        "busy_ns",
        "ns",
        "union of the row's operations inside the window; missing for copies between host "
        "memories, which occupy no device",
        optional=True,
    ),
    integer(
        "hidden_ns",
        "ns",
        "the part of busy_ns in which a kernel or graph of any process ran on the same GPU",
        optional=True,
    ),
    integer("exposed_ns", "ns", "the rest of busy_ns: no kernel ran beside it", optional=True),
)

TRANSFERS = TableSchema(
    "transfers",
    "Which copies make the host wait, which hide behind kernels, and how fast are they?",
    (
        _KIND,
        text("src_memory", "kind of memory copied from: pageable, pinned, …", optional=True),
        text("dst_memory", "kind of memory written: pageable, pinned, …", optional=True),
        text(
            "call",
            "the CUDA call that issued it; missing for migrations and where not recorded",
            optional=True,
        ),
        text(
            "blocking",
            "yes where the call returned when its copy had ended, or lasted longer than 50 µs; "
            "no for nodes of a graph",
            optional=True,
        ),
        _PROCESS,
        _DEVICE,
        integer("src_device_id", "id", "device copied from, where it is another", optional=True),
        integer("dst_device_id", "id", "device copied to, where it is another", optional=True),
        *_TOTALS,
        real("link_bytes_per_s", "bytes/s", "what the link can do; missing: not known"),
        integer(
            "blocked_ns",
            "ns",
            "time of the host inside the calls beyond their first 50 µs, in the window, each call "
            "once",
            optional=True,
        ),
        *_EXPOSURE,
    ),
)

MIGRATIONS = TableSchema(
    "migrations",
    "Why does unified memory migrate, and what does that take?",
    (
        _KIND,
        text("cause", "page fault, prefetch, speculative prefetch, eviction, …", optional=True),
        _PROCESS,
        _DEVICE,
        *_TOTALS,
        *_EXPOSURE,
    ),
)

COPY_EXPOSURE = TableSchema(
    "copy_exposure",
    "How much of each GPU's copying hides behind kernels?",
    (
        integer("device", "id", "the row of `devices`"),
        integer("copy_ns", "ns", "union of copies and migrations, those of peers included"),
        integer(
            "hidden_ns",
            "ns",
            "the part of it in which a kernel or graph ran; missing of a serialised capture",
            optional=True,
        ),
        integer(
            "exposed_ns", "ns", "the rest: `partition.copy_only_ns` of the device", optional=True
        ),
    ),
)

RESULTS: tuple[TableSchema, ...] = (TRANSFERS, MIGRATIONS, COPY_EXPOSURE)
"""The tables of this topic."""
