"""What annotations write is what the parsers read: each holds the scheme on its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelscope as ks
from kernelscope import oracle, schema
from kernelscope.annotation import scheme
from kernelscope.metrics.find_iterations import find
from kernelscope.parsers import annotation_scheme
from kernelscope.parsers.annotation_scheme import annotated_columns
from kernelscope.trace import Categorical, Table
from tests.annotation.recorder import Call, recorded

COLUMNS = (
    "name", "domain", "style", "role", "payload_int", "payload_float", "module_path",
    "input_shapes", "input_dtypes", "flops_model", "batch_size",
)  # fmt: skip

PROGRAM = """
    import kernelscope as ks

    class Net:
        @ks.annotate
        def forward(self):
            inputs = [((2, 3, 32, 32), "float32"), ((), "int64")]
            with ks.phase("conv1", path="net.0; {conv}%", inputs=inputs, flops=10**13):
                pass

    for batch in ks.iterations("abcdef", batch_size=64, profile=range(1, 5), name="train"):
        Net().forward()
        with ks.phase("own category", category="mine"), ks.phase("{ks1 a=b}"):
            pass
        with ks.phase("looks {ks1 flops=3}", payload=0.25):
            pass
        with ks.phase("elsewhere {ks1 flops=3}", domain="mine", payload=7):
            pass
"""


def exported(calls: Sequence[Call], path: Path, *, generation: str) -> Table:
    """Write the recorded ranges as an export, one call every 100 ns; return what is read of it."""
    run = oracle.Run()
    opened: dict[Any, list[tuple[int, Call]]] = {}
    fractions: list[tuple[float, int]] = []
    for place, call in enumerate(calls):
        time = 1000 + 100 * place
        pushed = (call.domain, call.thread)
        if call.call in ("push", "start"):
            key = pushed if call.call == "push" else call.result
            opened.setdefault(key, []).append((time, call))
            if call.message.startswith("conv1"):
                run = run.kernel(time + 60, time + 90, "gemm", call=(time + 10, time + 20))
        elif call.call in ("pop", "end"):
            start, first = opened[pushed if call.call == "pop" else call.result].pop()
            whole = isinstance(first.payload, int)
            run = run.range(
                start, time, first.message, domain=first.domain, registered=True,
                category=first.category, payload=first.payload if whole else None,
                style="push_pop" if call.call == "pop" else "start_end",
            )  # fmt: skip
            if first.payload is not None and not whole:
                fractions.append((first.payload, start))
    written = oracle.write(run.plan(), path, generation=generation, overwrite=True)
    with closing(sqlite3.connect(written)) as db, db:
        db.executemany("UPDATE NVTX_EVENTS SET doubleValue = ? WHERE start = ?", fractions)
    return ks.read(written).ranges


def rows(ranges: Table) -> list[dict[str, Any]]:
    columns = {name: ranges.values(name) for name in COLUMNS}
    return [
        {name: column[row] for name, column in columns.items() if column[row] is not None}
        for row in np.argsort(ranges["start_ns"], kind="stable").tolist()
    ]


@pytest.mark.parametrize("generation", ["2020.5", "2022.4", "2025.5"])
def test_a_program_comes_back(tool: Path, tmp_path: Path, generation: str) -> None:
    calls = recorded(tool, PROGRAM)
    found = rows(exported(calls, tmp_path / "t.sqlite", generation=generation))
    here = {"domain": "kernelscope", "style": "push_pop"}
    iteration = [
        {**here, "name": "data loading", "role": "data loading", "payload_int": 2},
        {**here, "name": "train", "role": "iteration", "payload_int": 2, "batch_size": 64},
        {**here, "name": "Net.forward", "role": "function", "module_path": "__main__.Net.forward"},
        {
            **here, "name": "conv1", "role": "phase", "module_path": "net.0; {conv}%",
            "input_shapes": "[2,3,32,32] []", "input_dtypes": "float32 int64",
            "flops_model": 10**13,
        },
        {**here, "name": "own category", "role": "phase"},
        {**here, "name": "{ks1 a=b}", "role": "phase"},
        {**here, "name": "looks {ks1 flops=3}", "role": "phase", "payload_float": 0.25},
        {**here, "name": "elsewhere {ks1 flops=3}", "domain": "mine", "payload_int": 7},
    ]  # fmt: skip

    # The capture's own range, around iterations 1 to 4, is none of the program's.
    assert len(found) == 6 * len(iteration) + 1
    assert found[2 * len(iteration) : 3 * len(iteration)] == iteration
    assert found[-1] == {**here, "name": "data loading", "role": "data loading", "payload_int": 6}


@pytest.mark.parametrize("generation", ["2022.4", "2025.5"])
def test_the_iterations_are_found(tool: Path, tmp_path: Path, generation: str) -> None:
    exported(recorded(tool, PROGRAM), tmp_path / "t.sqlite", generation=generation)
    found = find(ks.read(tmp_path / "t.sqlite"))

    assert found is not None
    assert (found.family.folded_name, len(found.family.starts)) == ("train", 6)


def read_back(message: str, category: int | None = None) -> dict[str, Any]:
    """Return what one message says beside a range of another domain, whose name stays."""
    columns = annotated_columns(
        Categorical.of(["other", scheme.DOMAIN]),
        Categorical.of([message, message]),
        None if category is None else np.array([1, category]),
    )
    table = Table.make(schema.RANGES, _whole(columns))
    first, second = ({n: table.values(n)[row] for n in columns} for row in (0, 1))
    assert {key for key, value in first.items() if value is not None} == {"name"}
    assert first["name"] == message
    return {name: value for name, value in second.items() if value is not None}


def _whole(columns: Any) -> Any:
    texts = {name: Categorical.constant("x", 2) for name in ("domain", "style")}
    times = {name: np.zeros(2, np.int64) for name in ("start_ns", "end_ns")}
    return {**times, **texts, "closed": np.ones(2, np.bool_), **columns}


NAMES = st.text(max_size=30) | st.from_regex(r"[a{} ]{0,4} \{ks[0-9] [a=;{}%]{0,5}\}")


@given(
    name=NAMES,
    path=st.none() | st.text(max_size=30),
    flops=st.none() | st.integers(0, 10**18 - 1),
    tensors=st.none()
    | st.lists(
        st.tuples(
            st.lists(st.integers(0, 10**6), max_size=4),
            st.sampled_from(["float32", "int64", "bfloat16", "bool"]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_whatever_is_said_is_read(
    name: str, path: str | None, flops: int | None, tensors: list[tuple[list[int], str]] | None
) -> None:
    said = scheme.described(tensors) if tensors else None
    expected: dict[str, Any] = {"name": name, "module_path": path, "flops_model": flops}
    if tensors:
        shapes = [f"[{','.join(map(str, shape))}]" for shape, _ in tensors]
        expected["input_shapes"] = " ".join(shapes)
        expected["input_dtypes"] = " ".join(dtype for _, dtype in tensors)

    found = read_back(scheme.message(name, **{"path": path, "in": said, "flops": flops}))

    assert found == {key: value for key, value in expected.items() if value is not None}


def test_both_sides_hold_the_same_roles() -> None:
    assert annotation_scheme.DOMAIN == scheme.DOMAIN
    assert dict(enumerate(scheme.ROLES, start=1)) == annotation_scheme.ROLES
    for number, role in annotation_scheme.ROLES.items():
        assert read_back("x", category=number) == {"name": "x", "role": role}
    assert read_back("x", category=6) == {"name": "x"}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("a {ks2 flops=3}", {"name": "a {ks2 flops=3}"}),  # another version is not understood
        ("a {ks1 flops=3; new=4; ; =; x}", {"name": "a", "flops_model": 3}),
        ("a {ks1 flops=-3; batch=1e3}", {"name": "a"}),
        ("a {ks1 flops=9999999999999999999}", {"name": "a"}),
        ("a {ks1 in=float32[2] nonsense}", {"name": "a"}),
        ("a {ks1 path=%7B%3b%}", {"name": "a", "module_path": "{%3b%"}),
        ("a {ks1 }", {"name": "a"}),
        (" {ks1 batch=2}", {"name": "", "batch_size": 2}),
        ("a {ks1 batch=2} ", {"name": "a {ks1 batch=2} "}),
    ],
)
def test_what_is_not_understood(message: str, said: dict[str, Any]) -> None:
    assert read_back(message) == said


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((2, 3), np.float16), "float16[2,3]"),
        (np.float64(1), "float64[]"),
        (((np.int64(7),), np.float32), "float32[7]"),
        (((1,), "torch.bfloat16"), "bfloat16[1]"),
    ],
)
def test_shapes_and_dtypes(value: Any, expected: str) -> None:
    assert scheme.described([value]) == expected
