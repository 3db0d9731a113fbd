"""Kernel, API and copy summaries agree with what `nsys stats` prints, to the integer."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import kernelscope as ks
from kernelscope.metrics import results
from kernelscope.metrics.aggregate import by_total, durations_by_group
from kernelscope.metrics.api_calls import api_calls
from kernelscope.metrics.copies import copies_by_kind
from kernelscope.metrics.kernels import kernels, launch_shapes
from kernelscope.metrics.window import whole
from kernelscope.parsers.nsys import api_name
from kernelscope.trace import Categorical, ColumnData, Table, Trace
from tests.agreement.close import assert_close, assert_statistics
from tests.corpus import each, nsys_traces_with, oracle

read = lru_cache(maxsize=2)(ks.read)

CALL_CHAINS = {"2021x_A100x4_cuda_callchains_s10", "2022.2.1_A100_saxpy_mpi_callchains"}
"""Exports in which each call stands twice; nsys sums the wrapper as a row of its own."""


@each(nsys_traces_with("cuda_gpu_kern_sum"))
def test_kernels_by_name(trace_file: Path) -> None:
    """`cuda_gpu_kern_sum`: one row per full name."""
    ours = {row["name"]: row for row in kernels(read(trace_file)).records()}
    printed = oracle(trace_file.stem, "cuda_gpu_kern_sum")
    assert len(ours) == len(printed)
    for row in printed:
        assert ours[row["Name"]]["executions"] == int(row["Instances"])
        assert_statistics(ours[row["Name"]], row, row["Name"])


@each(nsys_traces_with("cuda_gpu_kern_sum_base"))
def test_kernels_by_base_name(trace_file: Path) -> None:
    """`cuda_gpu_kern_sum:base`: one row per name without template arguments."""
    trace = read(trace_file)
    printed = oracle(trace_file.stem, "cuda_gpu_kern_sum_base")
    ours = {row["name"]: row for row in _by_base_name(trace).records()}
    assert len(ours) == len(printed)
    for row in printed:
        assert ours[row["Name"]]["executions"] == int(row["Instances"])
        assert_statistics(ours[row["Name"]], row, row["Name"])


def _by_base_name(trace: Trace) -> Table:
    short = trace.kernels.categories("short_name")
    figures = durations_by_group(
        trace.kernels, whole(trace), trace.kernels["short_name"], len(short), "executions"
    )
    none = np.full(len(short), np.nan)
    names = Categorical(np.arange(len(short), dtype=np.int32), short)
    columns: dict[str, ColumnData] = {"name": names, **figures}
    columns |= {"share": none, "share_of_window": none}
    return by_total(results.KERNELS, columns, "executions")


@each(nsys_traces_with("cuda_gpu_kern_gb_sum"))
def test_kernels_by_launch_shape(trace_file: Path) -> None:
    """`cuda_gpu_kern_gb_sum`: one row per name + grid + block."""
    ours = {
        (
            row["name"],
            tuple(row[f"grid.{axis}"] for axis in range(3)),
            tuple(row[f"block.{axis}"] for axis in range(3)),
        ): row
        for row in launch_shapes(read(trace_file)).records()
    }
    printed = oracle(trace_file.stem, "cuda_gpu_kern_gb_sum")
    assert len(ours) == len(printed)
    for row in printed:
        grid, block = (
            tuple(int(part.replace(" ", "")) for part in row[column].split(","))
            if "," in row[column]
            else tuple(int(part) for part in row[column].split())
            for column in ("GridXYZ", "BlockXYZ")
        )
        key = (row["Name"], grid, block)
        assert ours[key]["executions"] == int(row["Instances"])
        assert_statistics(ours[key], row, key)


@each(nsys_traces_with("cuda_api_sum"))
def test_api_calls(trace_file: Path) -> None:
    """`cuda_api_sum`, whose names keep five-digit version suffixes that ours lose."""
    ours = {row["name"]: row for row in api_calls(read(trace_file)).records()}
    printed = oracle(trace_file.stem, "cuda_api_sum")
    names = [api_name(row["Name"]) for row in printed]
    if trace_file.stem in CALL_CHAINS:
        _assert_wrappers_are_apart(read(trace_file), printed)
        return
    assert len(set(names)) == len(names) == len(ours)
    for name, row in zip(names, printed, strict=True):
        assert ours[name]["calls"] == int(row["Num Calls"])
        assert_statistics(ours[name], row, name)


def _assert_wrappers_are_apart(trace: Trace, printed: list[dict[str, str]]) -> None:
    """nsys prints a wrapper beside each call, under the same name: together twice the calls."""
    calls = trace.api_calls
    wrapper = calls.categories("kind").index("wrapper")
    all_calls = {**calls.columns, "kind": Categorical.constant("runtime", len(calls))}
    nsys_sees = trace.with_tables(api_calls=Table.make(calls.schema, all_calls))
    both = {row["name"]: row for row in api_calls(nsys_sees).records()}
    ours = {row["name"]: row for row in api_calls(trace).records()}
    by_name: dict[str, list[dict[str, str]]] = {}
    for row in printed:
        by_name.setdefault(api_name(row["Name"]), []).append(row)
    assert by_name.keys() == both.keys()
    for name, rows in by_name.items():
        assert both[name]["calls"] == sum(int(row["Num Calls"]) for row in rows)
        assert both[name]["total_ns"] == sum(int(row["Total Time (ns)"]) for row in rows)
        if name in ours and len(rows) == 2:  # the call and its wrapper, each a row as nsys has it
            mine = tuple(ours[name][key] for key in ("calls", "total_ns", "min_ns", "max_ns"))
            assert mine in {tuple(int(row[column]) for column in EXACT) for row in rows}
    assert sum(row["calls"] for row in both.values()) - sum(
        row["calls"] for row in ours.values()
    ) == int((calls["kind"] == wrapper).sum())
    assert any(len(rows) == 2 for rows in by_name.values())


EXACT = ("Num Calls", "Total Time (ns)", "Min (ns)", "Max (ns)")

COPY_NAMES = {
    "[CUDA memset]": "memset",
    "[CUDA memcpy Host-to-Device]": "HtoD",
    "[CUDA memcpy Device-to-Host]": "DtoH",
    "[CUDA memcpy Device-to-Device]": "DtoD",
    "[CUDA memcpy Peer-to-Peer]": "PtoP",
    "[CUDA memcpy Host-to-Host]": "HtoH",
    "[CUDA memcpy HtoD]": "HtoD",
    "[CUDA memcpy DtoH]": "DtoH",
    "[CUDA memcpy DtoD]": "DtoD",
    "[CUDA memcpy Unified Host-to-Device]": "unified HtoD",
    "[CUDA memcpy Unified Device-to-Host]": "unified DtoH",
    "[CUDA memcpy Unified Device-to-Device]": "unified DtoD",
}


@each(nsys_traces_with("cuda_gpu_mem_time_sum"))
def test_copies_by_kind(trace_file: Path) -> None:
    """`cuda_gpu_mem_time_sum` and `cuda_gpu_mem_size_sum`."""
    ours = {row["kind"]: row for row in copies_by_kind(read(trace_file)).records()}
    printed = oracle(trace_file.stem, "cuda_gpu_mem_time_sum")
    assert len(ours) == len(printed)
    for row in printed:
        mine = ours[COPY_NAMES[row["Operation"]]]
        assert mine["operations"] == int(row["Count"])
        assert_statistics(mine, row, row["Operation"])
    for row in oracle(trace_file.stem, "cuda_gpu_mem_size_sum"):
        mine = ours[COPY_NAMES[row["Operation"]]]
        assert mine["bytes"] == int(row["Total (B)"])
        assert mine["operations"] == int(row["Count"])
        assert_close(mine["bytes"] / mine["operations"], row["Avg (B)"], row["Operation"])


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
        ("cudaMallocAsync_v11020", "cudaMallocAsync"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cuMemAlloc_v2", "cuMemAlloc_v2"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("_v7000", "_v7000"),
    ],
)
def test_api_names_lose_their_abi_suffix(recorded: str, name: str) -> None:
    assert api_name(recorded) == name
