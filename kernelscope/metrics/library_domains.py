"""NVTX domains that belong to a library, not to the program that calls it.

A library's ranges say what the library does; they never mark a program's iterations and never
keep a launch from belonging to one. TensorRT is left out on purpose: its ``execute`` is what an
inference program calls once a request.
"""

from __future__ import annotations

LIBRARY_DOMAINS: frozenset[str] = frozenset(
    {
        "nccl", "rccl", "nvshmem", "ucx", "ucc", "mpi", "openacc", "openshmem",
        "cublas", "cublaslt", "cudnn", "cufft", "curand", "cusolver", "cusparse", "cutensor",
        "cub", "thrust", "cccl", "nvfuser", "dali", "nvimagecodec", "nvjpeg",
        "libcudf", "libraft", "librmm", "libkvikio", "libcuvs", "libcuml",
    }
)  # fmt: skip
"""Domain names in lower case. NCCL, MPI, CCCL and DALI were seen in recorded traces; the others
are the libraries' own names."""

DATA_PIPELINE_DOMAINS: frozenset[str] = frozenset({"dali", "nvimagecodec", "nvjpeg"})
"""Domains of libraries that prepare a later batch beside the step that runs."""


def is_library(domain: str) -> bool:
    """Return whether an NVTX domain is a library's own; the default domain, ``""``, is not."""
    return domain.lower() in LIBRARY_DOMAINS


def is_data_pipeline(domain: str) -> bool:
    """Return whether a domain is a data pipeline's, whose launches serve a later batch."""
    return domain.lower() in DATA_PIPELINE_DOMAINS
