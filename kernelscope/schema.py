"""Every table and column that kernelscope knows, with dtype, unit and meaning.

The schema is the contract: what a parser must deliver, what a metric returns, how a report
formats a column and what the documentation prints are all read from here. A column stands in
this file or it does not exist.

Conventions
-----------
Time is integer nanoseconds on the trace's own clock, intervals are half-open ``[start, end)``,
bytes are integers, ratios lie between 0 and 1, and the unit stands in the column's name
(``_ns``, ``_bytes``, ``_per_s``, ``_ratio``). *Optional* columns may hold missing values;
the others never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DType = Literal["int64", "float64", "category", "bool"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        The column's name; a dot groups it in JSON (``quantiles_ns.p5``).
    dtype : {"int64", "float64", "category", "bool"}
        The type that ``Table.df`` shows. Storage may be narrower (int32 where values fit).
    unit : str
        ``ns``, ``bytes``, ``1/s``, ``ratio``, ``id``, ``text``, ``path``, ``count``, …
    meaning : str
        One sentence.
    optional : bool
        Whether values may be missing. Absent is not zero.
    """

    name: str
    dtype: DType
    unit: str
    meaning: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its name, the question that it answers, and its columns in order."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return the column called `name`.

        Raises
        ------
        KeyError
            If the table has no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name!r} has no column {name!r}; it has {self.names}")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)


def integer(name: str, unit: str, meaning: str, *, optional: bool = False) -> Column:
    """Return a column of int64."""
    return Column(name, "int64", unit, meaning, optional)


def real(name: str, unit: str, meaning: str, *, optional: bool = True) -> Column:
    """Return a column of float64; most are quotients, which may have no value."""
    return Column(name, "float64", unit, meaning, optional)


def text(name: str, meaning: str, *, optional: bool = False) -> Column:
    """Return a column of texts."""
    return Column(name, "category", "text", meaning, optional)


_START = integer("start_ns", "ns", "when it began")
_END = integer("end_ns", "ns", "when it ended")
_PROCESS = integer("process_id", "id", "the process, by the operating system's id", optional=True)
_THREAD = integer("thread_id", "id", "the thread, by the operating system's id", optional=True)
_DEVICE = integer("device_id", "id", "the process's own CUDA ordinal of the device")
_CONTEXT = integer("context_id", "id", "the CUDA context", optional=True)
_STREAM = integer("stream_id", "id", "the CUDA stream", optional=True)
_CORRELATION = integer(
    "correlation_id",
    "id",
    "ties the event to its CUDA call, within one process only",
    optional=True,
)
_GRAPH_NODE = integer("graph_node_id", "id", "the CUDA graph node that ran", optional=True)

# ---------------------------------------------------------------------------------------------
# Canonical tables: what a parser delivers
# ---------------------------------------------------------------------------------------------

KERNELS = TableSchema(
    "kernels",
    "Which kernels ran on the device, one row per execution?",
    (
        _START,
        _END,
        _PROCESS,
        _DEVICE,
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        _GRAPH_NODE,
        text("name", "the kernel's full (demangled) name"),
        text("short_name", "the kernel's name without template arguments", optional=True),
        text("launch_type", "regular, cooperative, …", optional=True),
        integer("grid_x", "count", "blocks along x", optional=True),
        integer("grid_y", "count", "blocks along y", optional=True),
        integer("grid_z", "count", "blocks along z", optional=True),
        integer("block_x", "count", "threads per block along x", optional=True),
        integer("block_y", "count", "threads per block along y", optional=True),
        integer("block_z", "count", "threads per block along z", optional=True),
        integer("registers_per_thread", "count", "registers of each thread", optional=True),
        integer("static_shared_bytes", "bytes", "static shared memory per block", optional=True),
        integer("dynamic_shared_bytes", "bytes", "dynamic shared memory per block", optional=True),
        integer(
            "shared_carveout_bytes",
            "bytes",
            "shared memory per SM that the driver set aside",
            optional=True,
        ),
        integer("local_bytes_per_thread", "bytes", "local memory of each thread", optional=True),
        integer("cluster_x", "count", "blocks per cluster along x", optional=True),
        integer("cluster_y", "count", "blocks per cluster along y", optional=True),
        integer("cluster_z", "count", "blocks per cluster along z", optional=True),
    ),
)

API_CALLS = TableSchema(
    "api_calls",
    "Which CUDA runtime and driver calls did the host make?",
    (
        _START,
        _END,
        _PROCESS,
        _THREAD,
        _CORRELATION,
        text("name", "the call, without its ABI version suffix"),
        text("kind", "runtime, driver, or wrapper (a call-chain row around one of these)"),
        integer(
            "return_value", "code", "cudaError or CUresult that the call returned", optional=True
        ),
    ),
)

COPIES = TableSchema(
    "copies",
    "Which copies, memsets and unified-memory migrations ran?",
    (
        _START,
        _END,
        _PROCESS,
        _DEVICE,
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        _GRAPH_NODE,
        text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, memset, unified HtoD, …"),
        text("src_memory", "kind of memory copied from", optional=True),
        text("dst_memory", "kind of memory written", optional=True),
        integer("bytes", "bytes", "how much was moved or set", optional=True),
        integer("src_device_id", "id", "device copied from, where it is another", optional=True),
        integer("dst_device_id", "id", "device copied to, where it is another", optional=True),
        text("migration_cause", "why unified memory migrated", optional=True),
    ),
)

GRAPHS = TableSchema(
    "graphs",
    "Which CUDA graphs ran as one opaque unit, without a row per node?",
    (
        _START,
        _END,
        _PROCESS,
        _DEVICE,
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        integer("graph_id", "id", "the graph that was instantiated", optional=True),
        integer("graph_exec_id", "id", "the instance that ran", optional=True),
    ),
)

GRAPH_NODES = TableSchema(
    "graph_nodes",
    "When were the nodes of CUDA graphs made, and of which node is each a clone?",
    (
        _START,
        _END,
        _PROCESS,
        _THREAD,
        integer("graph_node_id", "id", "the node that executions name"),
        integer(
            "original_graph_node_id",
            "id",
            "the captured node that it was cloned from",
            optional=True,
        ),
    ),
)

SYNCS = TableSchema(
    "syncs",
    "Which synchronisations did CUDA record?",
    (
        _START,
        _END,
        _PROCESS,
        integer("device_id", "id", "the process's own CUDA ordinal of the device", optional=True),
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        text(
            "kind",
            "stream_wait_event, event_synchronize, stream_synchronize or "
            "context_synchronize, told by which fields are set",
        ),
        integer("event_id", "id", "the CUDA event waited for", optional=True),
    ),
)

EVENT_RECORDS = TableSchema(
    "event_records",
    "In which stream was each CUDA event recorded, and by which call?",
    (
        _PROCESS,
        integer("device_id", "id", "the process's own CUDA ordinal of the device", optional=True),
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        integer("event_id", "id", "the event; ids are used again", optional=True),
    ),
)

RANGES = TableSchema(
    "ranges",
    "Which NVTX ranges did the program open?",
    (
        _START,
        _END,
        _PROCESS,
        _THREAD,
        integer(
            "end_thread_id",
            "id",
            "the thread that closed a start/end range, where another",
            optional=True,
        ),
        text("domain", "NVTX domain; empty for the default domain"),
        text("name", "the range's message"),
        text("style", "push_pop (nests on its thread) or start_end"),
        integer("category", "id", "the NVTX category", optional=True),
        integer("payload_int", "1", "integer payload", optional=True),
        real("payload_float", "1", "floating-point payload", optional=True),
        integer(
            "message_bytes",
            "bytes",
            "size of the message, from a communication library's structured payload",
            optional=True,
        ),
        integer(
            "communicator_ranks",
            "count",
            "ranks of the communicator that such a payload names, where its making was recorded",
            optional=True,
        ),
        Column("closed", "bool", "flag", "false where the trace ended before the range did"),
        text(
            "role",
            "what a range of kernelscope's own annotations is: iteration, data loading, phase or "
            "function; missing in other domains",
            optional=True,
        ),
        text(
            "module_path",
            "where it stands in the model or the program, as such an annotation says",
            optional=True,
        ),
        text("input_shapes", "shapes of the inputs, as it says: [64,3,32,32] [64]", optional=True),
        text("input_dtypes", "their dtypes, in the same order: float32 int64", optional=True),
        integer("flops_model", "FLOP", "FLOPs that the model counts for the range", optional=True),
        integer("batch_size", "count", "samples of the iteration, as it says", optional=True),
    ),
)

DEVICES = TableSchema(
    "devices",
    "Which GPUs did the capture describe?",
    (
        integer(
            "process_id",
            "id",
            "the process whose ordinal this is; missing: any process",
            optional=True,
        ),
        integer(
            "device_id",
            "id",
            "CUDA ordinal; missing where CUDA does not see the GPU",
            optional=True,
        ),
        integer("gpu_id", "id", "the profiler's own number of the GPU", optional=True),
        Column(
            "identifies",
            "bool",
            "flag",
            "true where (process, ordinal) → GPU is recorded, so that gpu_id or uuid tell "
            "physical devices apart",
        ),
        text("uuid", "the GPU's UUID", optional=True),
        text("name", "the GPU's product name", optional=True),
        text("bus", "PCI location", optional=True),
        text("chip", "chip name, e.g. GA100", optional=True),
        integer("compute_major", "1", "compute capability, major", optional=True),
        integer("compute_minor", "1", "compute capability, minor", optional=True),
        integer("sm_count", "count", "streaming multiprocessors", optional=True),
        integer("clock_hz", "Hz", "maximum SM clock", optional=True),
        integer("memory_bytes", "bytes", "device memory", optional=True),
        integer("memory_bytes_per_s", "bytes/s", "peak device-memory bandwidth", optional=True),
        integer("l2_bytes", "bytes", "L2 cache", optional=True),
        integer("max_threads_per_block", "count", "limit of a block", optional=True),
        integer("max_warps_per_sm", "count", "limit of an SM", optional=True),
        integer("max_blocks_per_sm", "count", "limit of an SM", optional=True),
        integer("max_registers_per_sm", "count", "32-bit registers of an SM", optional=True),
        integer("max_registers_per_block", "count", "limit of a block", optional=True),
        integer("max_shared_bytes_per_sm", "bytes", "shared memory of an SM", optional=True),
        integer(
            "max_shared_bytes_per_block", "bytes", "limit of a block without opt-in", optional=True
        ),
        integer(
            "max_shared_bytes_per_block_optin",
            "bytes",
            "limit of a block with opt-in",
            optional=True,
        ),
        integer("threads_per_warp", "count", "threads of a warp", optional=True),
    ),
)

PROCESSES = TableSchema(
    "processes",
    "Which processes did the capture see?",
    (
        integer("process_id", "id", "operating-system id"),
        text("name", "executable", optional=True),
    ),
)

THREADS = TableSchema(
    "threads",
    "Which threads did the capture name?",
    (
        integer("process_id", "id", "operating-system id of the process", optional=True),
        integer("thread_id", "id", "operating-system id of the thread"),
        text("name", "the thread's name", optional=True),
    ),
)

OVERHEADS = TableSchema(
    "overheads",
    "What did the profiler itself cost?",
    (_START, _END, _PROCESS, _THREAD, text("name", "what the profiler did")),
)

OS_CALLS = TableSchema(
    "os_calls",
    "Which operating-system calls did the program's threads make?",
    (_START, _END, _PROCESS, _THREAD, text("name", "the call; short ones are not recorded")),
)

ON_CORE = TableSchema(
    "on_core",
    "When was each thread of the program running on a processor core?",
    (
        _START,
        _END,
        _PROCESS,
        _THREAD,
        integer("cpu", "id", "the core, as the operating system counts them", optional=True),
    ),
)

COUNTERS = TableSchema(
    "counters",
    "What did the hardware count, per kernel execution or summed up over several?",
    (
        _PROCESS,
        integer("device_id", "id", "the process's own CUDA ordinal of the device", optional=True),
        _CONTEXT,
        _STREAM,
        integer(
            "correlation_id",
            "id",
            "with the process, the execution of `kernels` that was counted; missing where the "
            "source has no timeline",
            optional=True,
        ),
        integer(
            "execution",
            "id",
            "the source's own number of the execution, in the order of launches",
            optional=True,
        ),
        text("kernel_name", "the kernel's full name", optional=True),
        *(
            integer(f"{part}_{axis}", "count", f"{what} along {axis}", optional=True)
            for part, what in (("grid", "blocks"), ("block", "threads per block"))
            for axis in "xyz"
        ),
        text("metric", "the counter's name, as its source spells it"),
        integer("metric_id", "id", "the source's number of the counter", optional=True),
        text(
            "section",
            "the heading that a label stands under, where the source prints labels: two sections "
            "may use one label for two things",
            optional=True,
        ),
        real("value", "see unit", "the value; missing where it is not to be trusted"),
        integer(
            "value_int", "see unit", "the same, exactly, where it is a whole number", optional=True
        ),
        real(
            "rounding",
            "see unit",
            "how far `value` may lie from what was counted: a text holds a few digits only; "
            "0 where it is exact",
        ),
        text("value_text", "the value where it is no number: a name, a setting", optional=True),
        text(
            "unit",
            "count, bytes, bytes/s, ns, Hz, ratio (recorded in %), level (0 idle to 10 max), 1 (a "
            "quotient), 1/s, 1/cycle, …; missing where the source does not say",
            optional=True,
        ),
        text("unit_recorded", "the unit as the source spells it: Kbyte, %, …", optional=True),
        text("statistic", "value of one execution; or mean, min, max, sum over several"),
        integer("executions", "count", "how many executions the value is of"),
        integer("instance", "id", "the unit of the hardware that counted: an SM", optional=True),
        text(
            "problem",
            "overflow, invalid, unknown_kind, no_value (n/a, nan or an empty cell) or unreadable: "
            "why there is no value",
            optional=True,
        ),
        text("source", "who counted: nvprof, ncu, …"),
        text("file", "where it was read from; missing: the trace's own file", optional=True),
        integer(
            "run", "id", "the run of the program, by its number in `counter_sources`", optional=True
        ),
    ),
)

COUNTED_EXECUTIONS = TableSchema(
    "counted_executions",
    "Which kernel executions were counted, and how can they be found in a trace?",
    (
        integer("run", "id", "the run of the program, by its number in `counter_sources`"),
        integer(
            "execution",
            "id",
            "the source's own number of the execution, in the order of launches; missing where "
            "the row sums up several",
            optional=True,
        ),
        _PROCESS,
        integer("device_id", "id", "the process's own CUDA ordinal of the device", optional=True),
        _CONTEXT,
        _STREAM,
        integer("correlation_id", "id", "the execution's id in its own run", optional=True),
        text("kernel_name", "the kernel's name, as its source spells it", optional=True),
        *(
            integer(f"{part}_{axis}", "count", f"{what} along {axis}", optional=True)
            for part, what in (("grid", "blocks"), ("block", "threads per block"))
            for axis in "xyz"
        ),
        integer("executions", "count", "how many executions the row stands for"),
        real(
            "duration_ns",
            "ns",
            "how long it took, of several the mean, while the hardware was counting: it tells "
            "executions apart, and is no time of the program",
        ),
        text("device_name", "the GPU's product name", optional=True),
        integer("compute_major", "1", "compute capability, major", optional=True),
        integer("compute_minor", "1", "compute capability, minor", optional=True),
        text("started_at", "when it was launched, as the source prints it", optional=True),
    ),
)

COUNTER_SOURCES = TableSchema(
    "counter_sources",
    "Which runs of a program were counted, by what, and under which conditions?",
    (
        integer("run", "id", "the number that other tables refer to, from 0"),
        text("file", "where it was read from"),
        integer("part", "id", "which table of the file, from 0: a log may hold several"),
        text("tool", "who counted: nvprof or ncu"),
        text("tool_version", "as recorded", optional=True),
        text("format", "what the file is"),
        text("process_name", "the program; of several, the first", optional=True),
        text("started_at", "when the report was begun, ISO 8601 in UTC", optional=True),
        Column("summarised", "bool", "flag", "true where values are sums over executions only"),
        integer("executions", "count", "kernel executions that were counted"),
        integer("metrics", "count", "different counters"),
        text(
            "replay_mode",
            "how a kernel was run again for what does not fit one pass: kernel, application, …",
            optional=True,
        ),
        integer("passes", "count", "the most passes that an execution took", optional=True),
        text("clock_control", "what the tool did to the clocks: base, none, …", optional=True),
        text("cache_control", "what it did to the caches before a pass: all, none", optional=True),
    ),
)

GPU_SAMPLES = TableSchema(
    "gpu_samples",
    "What did the GPUs' own counters show, sample by sample?",
    (
        integer(
            "time_ns",
            "ns",
            "when it was taken: it speaks of the time since the sample before it",
            optional=True,
        ),
        text("source", "who sampled: the profiler's serialized id of a GPU's counters"),
        integer("gpu_id", "id", "the profiler's own number of the GPU", optional=True),
        text("metric", "the counter's name and unit, as the profiler spells them"),
        integer(
            "value", "see metric", "as recorded; missing where it is no whole number", optional=True
        ),
        text(
            "problem",
            "no_time, time_outside, no_number, negative or above_peak: why it is in no figure",
            optional=True,
        ),
    ),
)

QUARANTINE = TableSchema(
    "quarantine",
    "Which events were left out because their times cannot be true?",
    (
        text("table", "the table that the event belongs to"),
        integer("row", "id", "the event's place in the table as recorded, from 0"),
        integer("start_ns", "ns", "recorded start", optional=True),
        integer("end_ns", "ns", "recorded end", optional=True),
        text("name", "the event's name or kind", optional=True),
        text("reason", "why it was left out"),
    ),
)

CANONICAL: tuple[TableSchema, ...] = (
    KERNELS,
    API_CALLS,
    COPIES,
    GRAPHS,
    GRAPH_NODES,
    SYNCS,
    EVENT_RECORDS,
    RANGES,
    DEVICES,
    PROCESSES,
    THREADS,
    OVERHEADS,
    OS_CALLS,
    ON_CORE,
    COUNTERS,
    GPU_SAMPLES,
    QUARANTINE,
)
"""The tables of a :class:`kernelscope.trace.Trace`, in the order of its fields."""
