"""What CUPTI's records call things, where nvprof and early Nsight Systems keep its names."""

from __future__ import annotations

DEVICE_COLUMNS = {
    "compute_major": "computeCapabilityMajor", "compute_minor": "computeCapabilityMinor",
    "sm_count": "numMultiprocessors", "clock_hz": "coreClockRate",
    "memory_bytes": "globalMemorySize", "memory_bytes_per_s": "globalMemoryBandwidth",
    "l2_bytes": "l2CacheSize", "max_threads_per_block": "maxThreadsPerBlock",
    "max_warps_per_sm": "maxWarpsPerMultiprocessor",
    "max_blocks_per_sm": "maxBlocksPerMultiprocessor",
    "max_registers_per_sm": "maxRegistersPerMultiprocessor",
    "max_registers_per_block": "maxRegistersPerBlock",
    "max_shared_bytes_per_sm": "maxSharedMemoryPerMultiprocessor",
    "max_shared_bytes_per_block": "maxSharedMemoryPerBlock",
    "threads_per_warp": "numThreadsPerWarp",
}  # fmt: skip
"""``CUpti_ActivityDevice``: coreClockRate in kHz, globalMemoryBandwidth in kB/s."""
