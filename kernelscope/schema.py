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


def _int(name: str, unit: str, meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "int64", unit, meaning, optional)


def _float(name: str, unit: str, meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "float64", unit, meaning, optional)


def _text(name: str, meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "category", "text", meaning, optional)


_START = _int("start_ns", "ns", "when it began")
_END = _int("end_ns", "ns", "when it ended")
_PROCESS = _int("process_id", "id", "the process, by the operating system's id", optional=True)
_THREAD = _int("thread_id", "id", "the thread, by the operating system's id", optional=True)
_DEVICE = _int("device_id", "id", "the process's own CUDA ordinal of the device")
_CONTEXT = _int("context_id", "id", "the CUDA context", optional=True)
_STREAM = _int("stream_id", "id", "the CUDA stream", optional=True)
_CORRELATION = _int(
    "correlation_id",
    "id",
    "ties the event to its CUDA call, within one process only",
    optional=True,
)
_GRAPH_NODE = _int("graph_node_id", "id", "the CUDA graph node that ran", optional=True)

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
        _text("name", "the kernel's full (demangled) name"),
        _text("short_name", "the kernel's name without template arguments", optional=True),
        _text("launch_type", "regular, cooperative, …", optional=True),
        _int("grid_x", "count", "blocks along x", optional=True),
        _int("grid_y", "count", "blocks along y", optional=True),
        _int("grid_z", "count", "blocks along z", optional=True),
        _int("block_x", "count", "threads per block along x", optional=True),
        _int("block_y", "count", "threads per block along y", optional=True),
        _int("block_z", "count", "threads per block along z", optional=True),
        _int("registers_per_thread", "count", "registers of each thread", optional=True),
        _int("static_shared_bytes", "bytes", "static shared memory per block", optional=True),
        _int("dynamic_shared_bytes", "bytes", "dynamic shared memory per block", optional=True),
        _int(
            "shared_carveout_bytes",
            "bytes",
            "shared memory per SM that the driver set aside",
            optional=True,
        ),
        _int("local_bytes_per_thread", "bytes", "local memory of each thread", optional=True),
        _int("cluster_x", "count", "blocks per cluster along x", optional=True),
        _int("cluster_y", "count", "blocks per cluster along y", optional=True),
        _int("cluster_z", "count", "blocks per cluster along z", optional=True),
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
        _text("name", "the call, without its ABI version suffix"),
        _text("kind", "runtime, driver, or wrapper (a call-chain row around one of these)"),
        _int("return_value", "code", "cudaError or CUresult that the call returned", optional=True),
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
        _text("kind", "HtoD, DtoH, DtoD, PtoP, HtoH, memset, unified HtoD, …"),
        _text("src_memory", "kind of memory copied from", optional=True),
        _text("dst_memory", "kind of memory written", optional=True),
        _int("bytes", "bytes", "how much was moved or set", optional=True),
        _int("src_device_id", "id", "device copied from, where it is another", optional=True),
        _int("dst_device_id", "id", "device copied to, where it is another", optional=True),
        _text("migration_cause", "why unified memory migrated", optional=True),
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
        _int("graph_id", "id", "the graph that was instantiated", optional=True),
        _int("graph_exec_id", "id", "the instance that ran", optional=True),
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
        _int("graph_node_id", "id", "the node that executions name"),
        _int(
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
        _int("device_id", "id", "the process's own CUDA ordinal of the device", optional=True),
        _CONTEXT,
        _STREAM,
        _CORRELATION,
        _text(
            "kind",
            "stream_wait_event, event_synchronize, stream_synchronize or "
            "context_synchronize, told by which fields are set",
        ),
        _int("event_id", "id", "the CUDA event waited for", optional=True),
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
        _int(
            "end_thread_id",
            "id",
            "the thread that closed a start/end range, where another",
            optional=True,
        ),
        _text("domain", "NVTX domain; empty for the default domain"),
        _text("name", "the range's message"),
        _text("style", "push_pop (nests on its thread) or start_end"),
        _int("category", "id", "the NVTX category", optional=True),
        _int("payload_int", "1", "integer payload", optional=True),
        _float("payload_float", "1", "floating-point payload", optional=True),
        Column("closed", "bool", "flag", "false where the trace ended before the range did"),
    ),
)

DEVICES = TableSchema(
    "devices",
    "Which GPUs did the capture describe?",
    (
        _int(
            "process_id",
            "id",
            "the process whose ordinal this is; missing: any process",
            optional=True,
        ),
        _int(
            "device_id",
            "id",
            "CUDA ordinal; missing where CUDA does not see the GPU",
            optional=True,
        ),
        _int("gpu_id", "id", "the profiler's own number of the GPU", optional=True),
        Column(
            "identifies",
            "bool",
            "flag",
            "true where (process, ordinal) → GPU is recorded, so that gpu_id or uuid tell "
            "physical devices apart",
        ),
        _text("uuid", "the GPU's UUID", optional=True),
        _text("name", "the GPU's product name", optional=True),
        _text("bus", "PCI location", optional=True),
        _text("chip", "chip name, e.g. GA100", optional=True),
        _int("compute_major", "1", "compute capability, major", optional=True),
        _int("compute_minor", "1", "compute capability, minor", optional=True),
        _int("sm_count", "count", "streaming multiprocessors", optional=True),
        _int("clock_hz", "Hz", "maximum SM clock", optional=True),
        _int("memory_bytes", "bytes", "device memory", optional=True),
        _int("memory_bytes_per_s", "bytes/s", "peak device-memory bandwidth", optional=True),
        _int("l2_bytes", "bytes", "L2 cache", optional=True),
        _int("max_threads_per_block", "count", "limit of a block", optional=True),
        _int("max_warps_per_sm", "count", "limit of an SM", optional=True),
        _int("max_blocks_per_sm", "count", "limit of an SM", optional=True),
        _int("max_registers_per_sm", "count", "32-bit registers of an SM", optional=True),
        _int("max_registers_per_block", "count", "limit of a block", optional=True),
        _int("max_shared_bytes_per_sm", "bytes", "shared memory of an SM", optional=True),
        _int(
            "max_shared_bytes_per_block", "bytes", "limit of a block without opt-in", optional=True
        ),
        _int(
            "max_shared_bytes_per_block_optin",
            "bytes",
            "limit of a block with opt-in",
            optional=True,
        ),
        _int("threads_per_warp", "count", "threads of a warp", optional=True),
    ),
)

PROCESSES = TableSchema(
    "processes",
    "Which processes did the capture see?",
    (
        _int("process_id", "id", "operating-system id"),
        _text("name", "executable", optional=True),
    ),
)

THREADS = TableSchema(
    "threads",
    "Which threads did the capture name?",
    (
        _int("process_id", "id", "operating-system id of the process", optional=True),
        _int("thread_id", "id", "operating-system id of the thread"),
        _text("name", "the thread's name", optional=True),
    ),
)

OVERHEADS = TableSchema(
    "overheads",
    "What did the profiler itself cost?",
    (_START, _END, _PROCESS, _THREAD, _text("name", "what the profiler did")),
)

QUARANTINE = TableSchema(
    "quarantine",
    "Which events were left out because their times cannot be true?",
    (
        _text("table", "the table that the event belongs to"),
        _int("row", "id", "the event's place in the table as recorded, from 0"),
        _int("start_ns", "ns", "recorded start", optional=True),
        _int("end_ns", "ns", "recorded end", optional=True),
        _text("name", "the event's name or kind", optional=True),
        _text("reason", "why it was left out"),
    ),
)

CANONICAL: tuple[TableSchema, ...] = (
    KERNELS,
    API_CALLS,
    COPIES,
    GRAPHS,
    GRAPH_NODES,
    SYNCS,
    RANGES,
    DEVICES,
    PROCESSES,
    THREADS,
    OVERHEADS,
    QUARANTINE,
)
"""The tables of a :class:`kernelscope.trace.Trace`, in the order of its fields."""
