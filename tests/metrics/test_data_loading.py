"""Names that say *data is being fetched*, and names that only seem to."""

from __future__ import annotations

import pytest

from kernelscope.metrics.data_loading import os_call_loads_data, range_loads_data


@pytest.mark.parametrize(
    "name",
    [
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "_BaseDataLoaderIter.__next__",
        "DataLoader.__next__",
        "[DALI][Loader] ReadOne",
        "next", "load 3", "Load", "fetch", "prefetch", "data", "dataset",
        "batch 5: fetch", "get_batch", "getBatch", "next batch", "load training batch",
        "DataLoader", "dataloader_next", "data_loading", "data loader", "wait for data",
        "input_fetch", "prefetch batch", "read images", "load_data", "load samples",
    ],
)  # fmt: skip
def test_ranges_that_fetch_data(name: str) -> None:
    assert range_loads_data(name)


@pytest.mark.parametrize(
    "name",
    [
        "data copy in 3", "copy data to device", "step 3", "iter 5 batch 3", "batch", "input",
        "wait", "read", "forward", "pipeline batch 4", "data_parallel",
        "load_state_dict", "load checkpoint", "load model weights", "prefetch parameters",
        "DistributedDataParallel.forward", "FSDP::pre_forward_prefetch",
        "sample next token", "get item", "offload", "download", "payload", "workload",
        "batch norm get input", "cudaMemPrefetchAsync", "load tile", "aten::index_select",
        "nvFuser::loadData shared", "", "123",
    ],
)  # fmt: skip
def test_ranges_that_may_do_anything(name: str) -> None:
    assert not range_loads_data(name)


def test_all_ranges_of_a_data_pipelines_domain_fetch_data() -> None:
    assert range_loads_data("__Transpose_3", "DALI")
    assert not range_loads_data("__Transpose_3", "mine")


def test_operating_system_calls_that_take_data_in() -> None:
    assert all(map(os_call_loads_data, ["read", "pread64", "recv", "fread", "poll"]))
    unclear = ["write", "ioctl", "pthread_cond_wait", "sem_wait", "futex", "epoll_wait", "open64"]
    assert not any(map(os_call_loads_data, [*unclear, "mmap", "sleep", "sched_yield", "reader"]))
