"""Copies and the calls that issued them agree with the rules of `nsys analyze`.

The rules join copies with calls on the correlation id alone: in a trace of several processes they
could print wrong pairs. None of these traces shows one, and a known answer stands in for it. They
take call-chain wrappers for calls, which is asserted. An empty file is no oracle: nsys writes one,
too, where it cannot run the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import kernelscope as ks
from kernelscope.metrics.api_calls import calls_without_wrappers
from kernelscope.metrics.device_time import devices, measure
from kernelscope.metrics.intervals import subtract, total, union
from kernelscope.metrics.transfers import copy_calls, copy_exposure, migrations, transfers
from kernelscope.parsers.nsys import api_name
from kernelscope.trace import Table, Trace
from tests.agreement.test_nsys_summaries import CALL_CHAINS
from tests.corpus import each, nsys_traces, nsys_traces_with, oracle

read = lru_cache(maxsize=2)(ks.read)

Row = dict[str, Any]
Found = tuple[Any, ...]

SMALL_BYTES = 64_000
"""Synchronous copies to the device of up to this size return early: the rule leaves them out."""


def traces_with_rows(rule: str) -> list[Path]:
    return [path for path in nsys_traces_with(rule) if oracle(path.stem, rule)]


def our_pairs(trace: Trace) -> list[tuple[Row, Row]]:
    """Return each copy with the call that issued it."""
    calls = calls_without_wrappers(trace.api_calls).records()
    rows = copy_calls(trace).row.tolist()
    copies = trace.copies.records()
    return [(copy, calls[row]) for copy, row in zip(copies, rows, strict=True) if row >= 0]


def pageable_async(copy: Row, call: Row) -> bool:
    name = call["name"].removeprefix("cudaMemcpy")
    pageable = "pageable" in (copy["src_memory"], copy["dst_memory"])
    return pageable and name != call["name"] and "Async" in name


def synchronous(copy: Row, call: Row) -> bool:
    if not call["name"].startswith("cudaMemcpy") or "Async" in call["name"]:
        return False
    if copy["kind"] == "HtoD" and copy["bytes"] <= SMALL_BYTES:
        return False
    return copy["kind"] not in ("DtoD", "memset")


def synchronous_memset(copy: Row, call: Row) -> bool:
    name = call["name"]
    memory = copy["kind"] == "memset" and copy["dst_memory"] in ("pinned", "managed")
    return memory and name.startswith("cudaMemset") and "Async" not in name


def as_printed(pairs: list[tuple[Row, Row]], rule: Callable[[Row, Row], bool]) -> Counter[Found]:
    return Counter(
        (
            copy["end_ns"] - copy["start_ns"],
            copy["start_ns"],
            copy["src_memory"],
            copy["dst_memory"],
            copy["bytes"],
            copy["process_id"],
            copy["device_id"],
            copy["stream_id"],
            call["name"],
        )
        for copy, call in pairs
        if rule(copy, call)
    )


def printed(trace_file: Path, rule: str) -> Counter[Found]:
    return Counter(
        (
            int(row["Duration (ns)"]),
            int(row["Start (ns)"]),
            row["Src Kind"].lower(),
            row["Dst Kind"].lower(),
            int(row["Bytes (B)"]),
            int(row["PID"]),
            int(row["Device ID"]),
            int(row["Stream ID"]),
            api_name(row["API Name"]),
        )
        for row in oracle(trace_file.stem, rule)
    )


@each(traces_with_rows("rule_cuda_memcpy_async"))
def test_asynchronous_copies_of_pageable_memory(trace_file: Path) -> None:
    theirs = printed(trace_file, "rule_cuda_memcpy_async")
    assert as_printed(our_pairs(read(trace_file)), pageable_async) == theirs


@each(traces_with_rows("rule_cuda_memcpy_sync"))
def test_synchronous_copies(trace_file: Path) -> None:
    theirs = printed(trace_file, "rule_cuda_memcpy_sync")
    assert as_printed(our_pairs(read(trace_file)), synchronous) == theirs


@each(nsys_traces())
def test_synchronous_memsets_of_host_memory(trace_file: Path) -> None:
    """nsys prints none of any trace, and there are none."""
    assert not oracle(trace_file.stem, "rule_cuda_memset_sync")
    assert not as_printed(our_pairs(read(trace_file)), synchronous_memset)


@each(traces_with_rows("rule_cuda_api_sync"))
def test_synchronisations(trace_file: Path) -> None:
    trace = read(trace_file)
    theirs = Counter(
        (int(row["Duration (ns)"]), int(row["Start (ns)"]), int(row["PID"]), int(row["TID"]),
         api_name(row["API Name"]))
        for row in oracle(trace_file.stem, "rule_cuda_api_sync")
    )  # fmt: skip
    ours = synchronisations(calls_without_wrappers(trace.api_calls))
    both = synchronisations(trace.api_calls)
    assert both == theirs
    assert (ours < both) == (trace_file.stem in CALL_CHAINS)


def synchronisations(calls: Table) -> Counter[Found]:
    return Counter(
        (call["end_ns"] - call["start_ns"], call["start_ns"], call["process_id"],
         call["thread_id"], call["name"])
        for call in calls.records()
        if call["name"].startswith(("cudaDeviceSynchronize", "cudaStreamSynchronize"))
    )  # fmt: skip


@each(nsys_traces())
def test_exposed_copies_are_those_of_the_partition(trace_file: Path) -> None:
    """P∧¬(C∨M∨G) is what the partition calls `copy_only`; the rows of a device cover it."""
    trace = read(trace_file)
    time = measure(trace)
    rows = devices(trace, measured=time).records()
    for row, device in zip(copy_exposure(time).records(), rows, strict=True):
        assert row["exposed_ns"] == device["partition.copy_only_ns"]
        assert row["hidden_ns"] + row["exposed_ns"] == row["copy_ns"]
    table = transfers(trace, measured=time)
    assert table["operations"].sum() == len(trace.copies)
    for index, account in enumerate(time.devices):
        pairs = zip(time.identity.lanes, time.identity.index, strict=True)
        lanes = {lane for lane, number in pairs if number == index}
        mine = [row for row in table.records() if (row["process_id"], row["device_id"]) in lanes]
        moves = [row["exposed_ns"] for row in mine if row["kind"] not in ("memset", "HtoH")]
        exposed = total(subtract(account.copies, account.kernels))
        assert max(moves, default=0) <= exposed <= sum(moves)
        for row in mine:
            if row["busy_ns"] is not None:
                assert row["hidden_ns"] + row["exposed_ns"] == row["busy_ns"] <= row["total_ns"]


@each(nsys_traces())
def test_migrations_are_all_there(trace_file: Path) -> None:
    trace = read(trace_file)
    kinds = np.array([str(kind) for kind in trace.copies.texts("kind")])
    moved = np.char.startswith(kinds, "unified") if len(kinds) else np.zeros(0, dtype=np.bool_)
    table = migrations(trace)
    assert table["operations"].sum() == moved.sum()
    start, end = (trace.copies[name][moved] for name in ("start_ns", "end_ns"))
    assert table["total_ns"].sum() == (end - start).sum()
    assert total(union(start, end)) <= table["busy_ns"].sum() <= (end - start).sum()
