"""The tables of NVTX ranges that metrics return; the rules are those of ``results``.

A *path* stands as one text: the names from the outermost range to the row's own, with
``range_paths.SEPARATOR`` between them, which a report splits again. Names are raw: digits are
folded only where the caller asks for it.

Kernel counts and times include inherited work; without it they are ``kernels`` less
``attribution.inherited`` and ``attribution.concurrent``, and ``kernel_ns`` less
``inherited_kernel_ns``.
"""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, text

_PATH = Column(
    "path",
    "category",
    "path",
    "names from the outermost range to this one, a unit separator between",
)
_NAME = text("name", "the range's own name")
_DOMAIN = text("domain", "NVTX domain; empty for the default domain")
_STYLE = text(
    "style",
    "push_pop, start_end, or crossing (a push/pop range that crosses another and is treated "
    "like a start/end range)",
)
_PROCESS = integer("process_id", "id", "the process that opened it", optional=True)

_HOST: tuple[Column, ...] = (
    integer("instances", "count", "ranges that start in the window"),
    integer("host_ns", "ns", "sum of the ranges' own durations inside the window"),
    integer(
        "projected_ns",
        "ns",
        "sum over ranges of the time from the first start to the last end of what they launched",
    ),
)

_OPAQUE = integer(
    "opaque_ns",
    "ns",
    "sum of the time of CUDA graphs launched inside that were traced as one unit: busy, but the "
    "kernels in them are unknown and in no kernel figure",
)

_DEVICE: tuple[Column, ...] = (
    integer(
        "busy_ns",
        "ns",
        "union of all work launched inside: kernels, copies, memsets, opaque graphs",
    ),
    integer("kernel_ns", "ns", "sum of kernel time launched inside, nested ranges included"),
    _OPAQUE,
)

_KERNELS: tuple[Column, ...] = (
    integer("kernels", "count", "kernels launched inside that start in the window, each once"),
    *(
        integer(f"attribution.{how}", "count", f"how many of the kernels belong to it: {meaning}")
        for how, meaning in (
            ("direct", "launched while it was open on the launching thread"),
            ("inherited", "launched elsewhere while its iteration or phase was open"),
            ("graph", "direct, as nodes of a CUDA graph launched inside it"),
            ("concurrent", "launched by a data pipeline while its iteration was open"),
        )
    ),
    integer("inherited_kernel_ns", "ns", "the part of kernel_ns that is inherited or concurrent"),
)

RANGES = TableSchema(
    "ranges",
    "Which parts of the program take the device's time?",
    (
        _PATH,
        _NAME,
        _DOMAIN,
        _STYLE,
        _PROCESS,
        integer("depth", "count", "how many ranges stand around it"),
        *_HOST,
        integer("projected_union_ns", "ns", "union of those times"),
        *_DEVICE,
        integer(
            "self_kernel_ns",
            "ns",
            "the part of kernel_ns in no range inside this one; only push/pop ranges nest",
            optional=True,
        ),
        *_KERNELS,
    ),
)

RANGES_BY_NAME = TableSchema(
    "ranges_by_name",
    "Which ranges take the device's time, wherever they stand?",
    (_NAME, _DOMAIN, _STYLE, _PROCESS, *_HOST, *_DEVICE, *_KERNELS),
)

RANGE_INSTANCES = TableSchema(
    "range_instances",
    "What did each range, one by one, put on the device, and when?",
    (
        integer("row", "id", "its row in the trace's ranges"),
        _PATH,
        _NAME,
        _DOMAIN,
        _STYLE,
        _PROCESS,
        integer("thread_id", "id", "the thread that opened it", optional=True),
        integer("start_ns", "ns", "when it was opened"),
        integer("end_ns", "ns", "when it was closed"),
        integer("depth", "count", "how many ranges of its thread and domain enclose it"),
        integer("parent", "id", "row of the range that encloses it", optional=True),
        integer("projected_start_ns", "ns", "first start of what it launched", optional=True),
        integer("projected_end_ns", "ns", "last end of what it launched", optional=True),
        integer(
            "launches",
            "count",
            "calls inside that launched work, whenever that ran; a graph launch is one",
        ),
        integer(
            "operations",
            "count",
            "kernels, copies and memsets; a graph's nodes are many, an opaque graph is one",
        ),
        integer("kernels", "count", "kernels"),
        integer("kernel_ns", "ns", "sum of kernel time"),
        _OPAQUE,
    ),
)

UNATTRIBUTED = TableSchema(
    "unattributed",
    "Which kernel time, and which opaque graphs, belong to no range, and why?",
    (
        text(
            "domain",
            "the domain whose push/pop ranges do not hold the work; missing where no range "
            "of any domain does",
            optional=True,
        ),
        text("reason", "see attribution.REASONS"),
        integer("kernels", "count", "kernels that start in the window"),
        integer("total_ns", "ns", "sum of their time inside the window"),
        integer("opaque_ns", "ns", "sum of the time of CUDA graphs traced as one unit"),
    ),
)

GRAPH_KERNELS = TableSchema(
    "graph_kernels",
    "Under which ranges were the kernels of CUDA graphs captured, and under which launched?",
    (
        Column(
            "path",
            "category",
            "path",
            "innermost push/pop range of the graph's launch, or the iteration or phase that it "
            "inherits; a library's own only where the program has none; digits folded",
            optional=True,
        ),
        Column(
            "capture_path",
            "category",
            "path",
            "innermost push/pop range in which the kernel's node was made; missing where no "
            "range was open, or the making was not recorded or only as the capture ended",
            optional=True,
        ),
        text("name", "the kernel's full name"),
        integer("kernels", "count", "executions that start in the window"),
        integer("total_ns", "ns", "sum of their time inside the window"),
    ),
)

NVTX_FINDINGS = TableSchema(
    "nvtx_findings",
    "Are the program's ranges sound, and do they cover the device's work?",
    (
        text("code", "a stable name for scripts"),
        text("severity", "info or warning"),
        integer("count", "count", "how many ranges, names or kernels it concerns"),
        Column("share", "float64", "ratio", "of all ranges, or of all kernel time", True),
        text("example", "the name of one of them", optional=True),
        text("message", "what it means, and what to do"),
    ),
)
