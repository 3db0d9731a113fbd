"""The repeating unit of sequences of which the unit is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope.metrics import kernel_sequence
from kernelscope.metrics.kernel_sequence import (
    RepeatingUnit,
    agrees,
    busiest_stream,
    repeating_unit,
)
from kernelscope.metrics.launch_times import launch_times
from kernelscope.trace import Trace
from tests.metrics.training import merged, trace


def run(names: str | list[str]) -> Trace:
    """Kernels of these names, one each 10 ns."""
    return trace((), [10 * i for i in range(len(names))], names=list(names))


def found(names: str | list[str]) -> RepeatingUnit | None:
    built = run(names)
    return repeating_unit(built, launch_times(built))


def unit(names: str | list[str]) -> tuple[int, int] | None:
    """Kernels per unit, and units."""
    result = found(names)
    return None if result is None else (result.kernels, len(result.family.starts))


STEP = "abcabcabcxyzpq"
"""Three layers of ``abc``, the way back, an optimizer."""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (STEP * 20, (14, 20)),
        (STEP * 5, (14, 5)),
        ("ab" * 50, (2, 50)),
        ("a" * 50, (1, 50)),
        (("a" * 20 + "b" * 20) * 10, (40, 10)),  # no kernel occurs once per unit
        ("tune" * 9 + STEP * 20, (14, 20)),
        (STEP[:5] + "w" + STEP[5:] + STEP * 19, (14, 20)),  # a kernel more in the first step
        (STEP * 9 + "log" + STEP * 10 + "log" + STEP, (14, 20)),
        (STEP * 4, None),
        ("abcdefghijklmnopqrstuvwxyz", None),
        ("", None),
    ],
)
def test_units(names: str, expected: tuple[int, int] | None) -> None:
    assert unit(names) == expected


def test_the_unit_lies_between_launches_of_its_first_kernel() -> None:
    result = found(STEP * 10)
    assert result is not None
    family = result.family
    assert family.folded_name == "repeating unit of 14 kernels"
    assert family.starts.tolist() == list(range(0, 1400, 140))
    assert family.ends[:-1].tolist() == family.starts[1:].tolist()
    assert family.ends[-1] == 1391  # behind the launch of the last kernel
    assert len(family.rows) == 0
    assert result.confidence == pytest.approx(1.0)


def test_a_few_differing_kernels_cost_confidence_only() -> None:
    names = list(STEP * 40)
    for place in (100, 250, 400):
        names[place] = "other"
    result = found(names)
    assert result is not None
    assert result.kernels == 14
    assert len(result.family.starts) >= 37
    assert 0.9 < result.confidence < 1


def test_what_happens_every_tenth_step_does_not_make_ten_steps_one() -> None:
    step = [f"kernel {i}" for i in range(100)]
    names = [name for i in range(100) for name in (*step, *(["log"] if i % 10 == 9 else []))]
    assert unit(names) == (100, 100)


def test_random_kernels_do_not_repeat() -> None:
    letters = np.random.default_rng(0).integers(0, 26, 3000)
    assert unit([chr(97 + letter) for letter in letters]) is None


def test_a_kernel_that_prevails_is_not_a_pattern() -> None:
    chance = np.random.default_rng(0)
    names = [
        "same" if chance.random() < 0.9 else f"other {chance.integers(50)}" for _ in range(3000)
    ]
    assert unit(names) is None


def test_long_sequences_are_compared_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fifth layer would always be one of the same eight of a step's forty."""
    monkeypatch.setattr(kernel_sequence, "MAX_COMPARED", 1600)
    layers = list("abcd" * 40)
    assert unit([*layers, *"opqrstuvwxyz"] * 60) == (172, 60)


def test_a_repeating_part_that_covers_little_of_the_run_is_none() -> None:
    start = [chr(200 + i) for i in range(300)]
    assert unit([*start, *(STEP * 6)]) is None


def test_the_busiest_stream_is_taken() -> None:
    one, other = run(STEP * 10), trace((), [5, 15, 25], process=2, duration=20)
    both = merged(other, one)
    rows = busiest_stream(both.kernels)
    assert len(rows) == len(STEP) * 10
    assert (both.kernels["process_id"][rows] == 1).all()


def test_communication_kernels_do_not_make_a_stream_busy() -> None:
    spinning = trace(
        (),
        [0, 500],
        process=2,
        duration=10_000,
        names=["ncclDevKernel_AllReduce_Sum_f32_RING_LL"] * 2,
    )
    both = merged(spinning, run(STEP * 10))
    assert len(busiest_stream(both.kernels)) == len(STEP) * 10


def test_agreement_with_markers() -> None:
    one, other, half = found(STEP * 20), found(STEP * 21), found(STEP * 10)
    assert one is not None
    assert other is not None
    assert half is not None
    assert agrees(one.family, other.family)
    assert not agrees(one.family, half.family)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30),
    st.integers(6, 30),
    st.integers(0, 5),
)
def test_a_repeated_unit_is_found(once: list[str], times: int, begin: int) -> None:
    """The unit found divides the one built, which may repeat inside itself."""
    names = ["warm"] * min(begin, len(once)) + [*once, "last"] * times
    result = found(names)
    assert result is not None
    assert (len(once) + 1) % result.kernels == 0
    assert len(result.family.starts) == pytest.approx(
        times * (len(once) + 1) / result.kernels, abs=1
    )
    assert all(start < end for start, end in pairwise(result.family.starts.tolist()))
