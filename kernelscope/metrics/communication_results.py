"""The tables of communication: by kind, and of each device.

Rates are lower bounds: a rank's kernel starts when the rank is ready and spins until its peers
are, so that its duration holds the waiting.
"""

from __future__ import annotations

from kernelscope.schema import Column, TableSchema, integer, real, text

_TIMES: tuple[Column, ...] = (
    integer("calls", "count", "executions that start in the window"),
    integer("total_ns", "ns", "sum of durations inside the window"),
    integer("busy_ns", "ns", "time in which any of them ran: exposed and overlapped"),
    integer(
        "exposed_ns",
        "ns",
        "the part of busy_ns in which no process computed on the same GPU; missing, as the two "
        "that follow, of a serialised capture",
        optional=True,
    ),
    integer(
        "exposed_without_graphs_ns",
        "ns",
        "the part of exposed_ns in which no CUDA graph that was traced as one unit ran either",
        optional=True,
    ),
    integer("overlapped_ns", "ns", "the part of busy_ns beside compute kernels", optional=True),
)

_PROCESS = integer("process_id", "id", "the process: one rank, or several", optional=True)
_DEVICE = integer("device_id", "id", "the process's own CUDA ordinal of the device")

COMMUNICATION = TableSchema(
    "communication",
    "How long do GPUs communicate, and how much of that does compute not hide?",
    (
        _PROCESS,
        _DEVICE,
        text("library", "whose kernels they are; user for those that a user added"),
        text("kind", "all_reduce, all_gather, …; unknown where neither name nor NVTX tells"),
        text(
            "kind_source", "name, nvtx, or both; missing where the kind is unknown", optional=True
        ),
        *_TIMES,
        integer(
            "bytes",
            "bytes",
            "size of the data of those calls as nccl-tests counts it: of the whole array for "
            "all_gather, reduce_scatter and all_to_all; missing where any size is not known",
            optional=True,
        ),
        text("bytes_source", "nvtx_payload, nvtx_text, or both", optional=True),
        text("bytes_missing_because", "why there are none", optional=True),
        integer(
            "ranks", "count", "ranks of the communicator; missing where they differ", optional=True
        ),
        text("ranks_source", "nvtx_payload, user, or both", optional=True),
        real(
            "algorithm_bytes_per_s",
            "bytes/s",
            "Σ bytes over Σ duration of the calls that start in the window: a lower bound, since "
            "waiting for peers is inside",
        ),
        real(
            "bus_bytes_per_s",
            "bytes/s",
            "the same with the share that a link must carry, 2(n − 1)/n for all_reduce, (n − 1)/n "
            "for all_gather, reduce_scatter, all_to_all, gather and scatter, 1 for others: a "
            "lower bound",
        ),
        Column("lower_bound", "bool", "flag", "whether the rates are lower bounds: always"),
    ),
)

COMMUNICATION_BY_DEVICE = TableSchema(
    "communication_by_device",
    "How much communication does each GPU of a process not hide behind compute?",
    (_PROCESS, _DEVICE, *_TIMES),
)
"""Kinds that run at once count once here, so that these rows are at most the sum of those by
kind; of a device that one process uses alone, ``exposed_without_graphs_ns`` is the
``communication_only_ns`` of the partition."""
