from __future__ import annotations

from typing import Any

import pytest

from kernelscope.metrics.device_identity import device_ordinals
from kernelscope.metrics.device_time import devices as devices_metric
from kernelscope.trace import Trace
from tests.build import copies, devices, joined, kernels, trace


def lanes(*pairs: tuple[int | None, int]) -> Any:
    return joined(*(kernels((0, 10), process_id=p, device_id=d) for p, d in pairs))


def ordinals(found: Trace) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in device_ordinals(found).records()]


def physical(found: Trace) -> list[str | None]:
    return devices_metric(found).texts("physical_id")


def test_one_process_is_known_by_its_ordinals() -> None:
    found = trace(kernels=lanes((1, 1), (1, 0)), devices=devices({}, {"device_id": 1}))
    assert ordinals(found) == [(0, 1, 0), (1, 1, 1)]
    assert physical(found) == ["0", "1"]


def test_equal_ordinals_of_two_processes_stay_apart() -> None:
    found = trace(kernels=lanes((2, 0), (1, 0), (1, 1)), devices=devices({}))
    assert ordinals(found) == [(0, 1, 1), (1, 1, 0), (2, 2, 0)]
    assert physical(found) == ["1", None, None]


def test_a_gpu_id_that_identifies_joins_processes() -> None:
    rows = devices(
        {"process_id": 1, "device_id": 0, "gpu_id": 3, "identifies": True},
        {"process_id": 2, "device_id": 1, "gpu_id": 3, "identifies": True},
        {"process_id": 2, "device_id": 0, "gpu_id": 1, "identifies": True},
    )
    found = trace(kernels=lanes((1, 0), (2, 1), (2, 0)), devices=rows)
    assert ordinals(found) == [(0, 2, 0), (1, 1, 0), (1, 2, 1)]
    assert physical(found) == ["1", "3"]


def test_two_devices_with_reversed_ids() -> None:
    rows = devices(
        {"process_id": 1, "device_id": 0, "gpu_id": 1, "identifies": True, "name": "second"},
        {"process_id": 1, "device_id": 1, "gpu_id": 0, "identifies": True, "name": "first"},
    )
    found = trace(
        kernels=joined(kernels((0, 10), device_id=0), kernels((5, 40), device_id=1)), devices=rows
    )
    assert ordinals(found) == [(0, 1, 1), (1, 1, 0)]
    table = devices_metric(found)
    assert table.texts("name") == ["first", "second"]
    assert table["busy_ns"].tolist() == [35, 10]


def test_a_gpu_id_that_does_not_identify_says_nothing() -> None:
    rows = devices({"gpu_id": 1, "device_id": 0}, {"gpu_id": 0, "device_id": 1})
    found = trace(kernels=lanes((1, 0), (2, 0)), devices=rows)
    assert physical(found) == [None, None]


def test_the_uuid_comes_first() -> None:
    rows = devices(
        {"process_id": 1, "gpu_id": 0, "uuid": "GPU-a", "identifies": True},
        {"process_id": 2, "gpu_id": 5, "uuid": "GPU-a", "identifies": True},
    )
    found = trace(kernels=lanes((1, 0), (2, 0)), devices=rows)
    assert ordinals(found) == [(0, 1, 0), (0, 2, 0)]
    assert physical(found) == ["GPU-a"]


def test_gpus_that_only_a_uuid_tells_apart_are_in_the_order_of_their_ordinals() -> None:
    rows = devices(
        *(
            {"process_id": 1, "device_id": ordinal, "uuid": uuid, "identifies": True}
            for ordinal, uuid in enumerate(("GPU-c", "GPU-a", "GPU-b"))
        )
    )
    found = trace(kernels=lanes((1, 2), (1, 0), (1, 1)), devices=rows)
    assert ordinals(found) == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]
    assert physical(found) == ["GPU-c", "GPU-a", "GPU-b"]


def test_a_row_without_uuid_takes_that_of_its_gpu_id() -> None:
    rows = devices(
        {"process_id": 1, "gpu_id": 5, "uuid": "GPU-a", "identifies": True},
        {"process_id": 2, "gpu_id": 5, "identifies": True},
    )
    assert physical(trace(kernels=lanes((1, 0), (2, 0)), devices=rows)) == ["GPU-a"]


def test_a_uuid_that_does_not_identify_says_nothing() -> None:
    rows = devices({"uuid": "GPU-a"})
    assert physical(trace(kernels=lanes((1, 0), (2, 0)), devices=rows)) == [None, None]


def test_contradicting_rows_identify_nothing() -> None:
    rows = devices(
        {"process_id": 1, "gpu_id": 0, "identifies": True},
        {"process_id": 1, "gpu_id": 1, "identifies": True},
    )
    assert physical(trace(kernels=lanes((1, 0)), devices=rows)) == ["0"]
    assert physical(trace(kernels=lanes((1, 0), (2, 0)), devices=rows)) == [None, None]


def test_a_row_of_any_process_names_the_device_of_each() -> None:
    rows = devices({"name": "any"}, {"process_id": 2, "name": "own"})
    found = trace(kernels=lanes((1, 0), (2, 0), (3, 1)), devices=rows)
    assert devices_metric(found).texts("name") == [None, "any", "own"]


def test_a_process_may_be_unknown() -> None:
    found = trace(kernels=lanes((None, 0), (None, 1)))
    assert ordinals(found) == [(0, None, 0), (1, None, 1)]
    assert physical(found) == ["0", "1"]


@pytest.mark.parametrize("kind", ["HtoH"])
def test_what_runs_on_the_host_uses_no_device(kind: str) -> None:
    found = trace(copies=copies((0, 10, kind)), devices=devices({}))
    assert ordinals(found) == []


def test_a_copy_alone_uses_the_device() -> None:
    found = trace(copies=copies((0, 10)), devices=devices({}, {"device_id": 1}))
    assert ordinals(found) == [(0, 1, 0)]
