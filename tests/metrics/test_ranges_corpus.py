"""Ranges of other people's real runs: sums hold, and known launches inherit what they should."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.metrics.attribution import Attribution, attribute
from kernelscope.metrics.inheritance import HOW
from kernelscope.metrics.library_domains import is_data_pipeline, is_library
from kernelscope.metrics.ranges import ranges, unattributed
from kernelscope.trace import Trace
from tests.corpus import CORPUS, each, needs_corpus, nsys_traces
from tests.metrics.scenes import named

read = lru_cache(maxsize=2)(ks.read)

TRAINING = {
    "2022.4.2_A100_training_baseline",
    "2022.4.2_A100x4_training_ddp",
    "2022.4.2_A100x4_training_ddp_bucketcap",
    "2023.4.4_A100_training_amp_bf16_fused",
    "2023.4.4_A100_training_dali",
}
"""Traces whose steps are ranges called ``step #``."""


def trace_named(stem: str) -> Trace:
    assert CORPUS is not None
    return read(CORPUS / "traces" / "nsys" / f"{stem}.sqlite")


def attributions(path: Path) -> list[Attribution]:
    trace = read(path)
    found = [attribute(trace), attribute(trace, strict=True), attribute(trace, process_ranges=True)]
    if path.stem in TRAINING:
        found.append(attribute(trace, family=named(trace, "step #")))
    return found


@each(nsys_traces())
def test_all_kernel_time_is_in_a_path_or_unattributed(trace_file: Path) -> None:
    """In each domain, with every rule, inherited or not."""
    trace = read(trace_file)
    kernel_ns = int((trace.kernels["end_ns"] - trace.kernels["start_ns"]).sum())
    for attribution in attributions(trace_file):
        table = ranges(trace, attribution=attribution).records()
        left = unattributed(trace, attribution=attribution).records()
        for domain in attribution.enclosed.innermost:
            own = [row["self_kernel_ns"] or 0 for row in table if row["domain"] == domain]
            rest = [row["total_ns"] for row in left if row["domain"] == domain]
            assert sum(own) + sum(rest) == kernel_ns
        for row in table:
            assert row["kernels"] == sum(row[f"attribution.{how}"] for how in HOW[1:])
            assert row["busy_ns"] <= row["projected_union_ns"] <= row["projected_ns"]
            assert (row["self_kernel_ns"] or 0) <= row["kernel_ns"]


def launched_by_thread(attribution: Attribution) -> dict[tuple[int, str], int]:
    """Count kernels by launching thread and how they belong to their step."""
    trace, mine = attribution.enclosed.trace, attribution.kernels
    known = mine.launch >= 0
    pairs = np.stack([trace.api_calls["thread_id"][mine.launch[known]], mine.how[known]])
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)
    return {
        (thread, HOW[how]): count
        for (thread, how), count in zip(distinct.T.tolist(), counts.tolist(), strict=True)
    }


@needs_corpus
def test_the_backward_thread_inherits_the_step() -> None:
    """PyTorch launches 10,030 of 28,674 kernels from a thread that has no ranges."""
    trace = trace_named("2022.4.2_A100_training_baseline")
    found = attribute(trace, family=named(trace, "step #"))
    assert launched_by_thread(found) == {
        (114004, "direct"): 18644,
        (114646, "inherited"): 10030,
    }
    assert not len(unattributed(trace, attribution=found))
    assert (found.kernels.phase[found.kernels.how == HOW.index("inherited")] < 0).all()


@needs_corpus
def test_kernels_in_nccls_own_ranges_inherit_the_step_and_dali_is_concurrent() -> None:
    trace = trace_named("2022.4.2_A100x4_training_ddp")
    found = attribute(trace, family=named(trace, "step #"))
    assert launched_by_thread(found) == {
        (79184, "direct"): 8850,
        (79418, "none"): 27,  # DALI fills its queue before the first step
        (79418, "concurrent"): 1946,
        (79542, "inherited"): 11741,
    }
    names = trace.kernels.texts("name")
    nccl = np.array(["nccl" in (name or "").lower() for name in names])
    in_range = np.append(found.enclosed.innermost["NCCL"], -1)[found.kernels.call] >= 0
    assert nccl.sum() > 400
    assert (in_range[nccl]).all()
    assert (found.kernels.how[nccl] == HOW.index("inherited")).all()
    assert (found.kernels.phase[found.kernels.how == HOW.index("concurrent")] == -1).all()


@needs_corpus
def test_domains_of_libraries_among_those_recorded() -> None:
    seen: set[str] = set()
    for path in nsys_traces():
        seen |= set(read(path).ranges.texts("domain")) - {None}  # type: ignore[arg-type]
    assert {domain for domain in seen if is_library(domain)} == {"NCCL", "DALI", "MPI", "CCCL"}
    assert {domain for domain in seen if is_data_pipeline(domain)} == {"DALI"}
    assert {domain for domain in seen if not is_library(domain)} == {
        "",
        "de.tu-darmstadt.parallel.extra_prof",  # a tracer's, with the program's own functions
        "TensorRT",  # its `execute` is what the program calls once a request
        "domain 1",  # the capture did not record its name
    }


@pytest.mark.parametrize("domain", ["cuBLAS", "cuDNN", "nvFuser", "NVSHMEM", "UCX", "thrust"])
def test_libraries_whatever_the_case(domain: str) -> None:
    assert is_library(domain)
    assert is_library(domain.upper())
    assert not is_data_pipeline(domain)


def test_the_default_domain_and_the_programs_own_are_no_libraries() -> None:
    assert not is_library("")
    assert not is_library("train")
    assert not is_library("my_mpi_solver")
