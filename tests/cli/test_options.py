"""Moments of a trace as a user writes them."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.cli.options import between, moment


def read(text: str | None) -> tuple[int | None, int | None] | None:
    return between(click.Context(click.Command("x")), click.Option(["--between"]), text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1.5s", 1_500_000_000),
        ("20ms", 20_000_000),
        ("20 ms", 20_000_000),
        ("300us", 300_000),
        ("300µs", 300_000),
        ("7ns", 7),
        ("1500", 1500),
        ("2.s", 2_000_000_000),
        ("0.000000001s", 1),
        ("", None),
    ],
)
def test_units(text: str, ns: int | None) -> None:
    assert moment(text) == ns


@given(st.integers(min_value=0, max_value=10**18))
def test_no_nanosecond_is_lost(ns: int) -> None:
    seconds, rest = divmod(ns, 10**9)

    assert moment(f"{seconds}.{rest:09d}s") == moment(f"{ns}ns") == ns


@pytest.mark.parametrize("text", ["1.5", "1h", "s", "-1s", "1e3", "0.0000000001s", "one"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        moment(text)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        (None, None),
        ("1.5s,2s", (1_500_000_000, 2_000_000_000)),
        ("1.5s,", (1_500_000_000, None)),
        (",2ms", (None, 2_000_000)),
        ("1 s , 2 s", (1_000_000_000, 2_000_000_000)),
    ],
)
def test_pairs(text: str | None, pair: tuple[int | None, int | None] | None) -> None:
    assert read(text) == pair


@pytest.mark.parametrize("text", ["", ",", "1s", "2s,1s", "1s,1s", "1s,2s,3s", "a,b"])
def test_what_is_no_pair(text: str) -> None:
    with pytest.raises(click.BadParameter):
        read(text)


@pytest.mark.parametrize("text", ["0.5s,99999999999999999999999999s", f"{2**63},"])
def test_a_moment_beyond_every_trace_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="beyond the 9223372036 s"):
        read(text)


def test_the_last_moment_of_a_trace_can_be_named() -> None:
    assert moment(f"{2**63 - 1}ns") == 2**63 - 1
