"""What people call things that the code calls otherwise."""

from __future__ import annotations

_TABLES = {
    "kernels": "kernels",
    "api_calls": "CUDA calls",
    "copies": "copies and memsets",
    "syncs": "synchronisations",
    "event_records": "records of CUDA events",
    "ranges": "NVTX ranges",
    "devices": "GPU information",
    "processes": "process names",
    "threads": "thread names",
    "overheads": "profiler overhead",
    "os_calls": "operating-system calls",
    "on_core": "thread scheduling",
    "quarantine": "rows left out",
}


def table_in_words(name: str) -> str:
    """Return what people call the canonical table `name`."""
    return _TABLES.get(name, name)
