"""What people call things that the code calls otherwise."""

from __future__ import annotations

_TABLES = {
    "kernels": "kernels",
    "api_calls": "CUDA calls",
    "copies": "copies and memsets",
    "graphs": "CUDA graphs traced as one unit",
    "graph_nodes": "nodes of CUDA graphs",
    "syncs": "synchronisations",
    "event_records": "records of CUDA events",
    "ranges": "NVTX ranges",
    "devices": "GPU information",
    "processes": "process names",
    "threads": "thread names",
    "overheads": "profiler overhead",
    "os_calls": "operating-system calls",
    "on_core": "thread scheduling",
    "counters": "hardware counters of kernels",
    "gpu_samples": "sampled GPU metrics",
    "quarantine": "rows left out",
}

CAUSES = {
    "profiler": "profiler overhead",
    "before_first": "before the first activity",
    "after_last": "after the last activity",
    "host: synchronization": "host waits in a synchronisation",
    "host: blocked_copy": "host held up in a copy",
    "host: blocked_allocation": "host held up allocating or freeing",
    "host: blocked_module": "host held up loading code",
    "host: blocked_queue": "host waits: launch queue is full",
    "host: cuda_call": "host in another CUDA call",
    "host: data_loading": "host loads data",
    "host: range": "host in range",
    "host: os_call": "host in an operating-system call",
    "host: off_core": "host asleep",
    "host: code": "host runs other code",
    "host: unknown": "launching thread not recorded",
    "in_call": "host in the launching call",
    "launch_latency": "launch latency",
    "intra_graph": "between activities of one graph",
    "kernel_to_kernel": "between queued activities",
    "dependency": "waits for another activity",
    "unexplained": "launched long before, no reason known",
    "unknown_launch": "launch not recorded",
}
"""Cause of idle time → what people read in a narrow column."""

_SAID = {
    ("host: off_core", "thread asleep, nothing recorded"): "host asleep",
    ("host: code", "scheduling not recorded"): "host runs other code, or sleeps",
}
"""Causes whose details begin with what better words say, and those words."""


_BLOCKED = {
    "(blocked: copy)": "(held up copying)",
    "(blocked: allocation)": "(held up allocating)",
    "(blocked: module)": "(loading code)",
    "(blocked: queue)": "(launch queue is full)",
}
"""How details say what held up a call → what people read."""


def cause_in_words(cause: str, detail: str) -> str:
    """Return what people read of a cause of idle time, with its detail where it has one."""
    for (of, said), words in _SAID.items():
        if cause == of and detail.startswith(said):
            return words + detail.removeprefix(said)
    for said, words in _BLOCKED.items():
        detail = detail.replace(said, words)
    words = CAUSES.get(cause, cause)
    return f"{words}: {detail}" if detail else words


def table_in_words(name: str) -> str:
    """Return what people call the canonical table `name`."""
    return _TABLES.get(name, name)
