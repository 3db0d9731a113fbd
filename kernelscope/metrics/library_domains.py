"""Which NVTX domains belong to libraries, so that their ranges are never the user's iterations."""

from __future__ import annotations

import re

_LIBRARY = re.compile(
    r"nccl|cublas|cudnn|cccl|cub|thrust|dali|mpi|nvfuser|nvshmem|cufft|cusolver|cusparse"
    r"|tensorrt|ucx|openacc|libcudf|cuml|raft|rmm",
    re.IGNORECASE,
)
_DATA_PIPELINE = re.compile(r"dali", re.IGNORECASE)


def is_library(domain: str) -> bool:
    """Return whether a library opened the ranges of an NVTX domain."""
    return _LIBRARY.match(domain) is not None


def is_data_pipeline(domain: str) -> bool:
    """Return whether the ranges of an NVTX domain prepare data for a later batch."""
    return _DATA_PIPELINE.match(domain) is not None
