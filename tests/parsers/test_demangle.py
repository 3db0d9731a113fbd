"""Mangled names become readable, in bounded time, and never wrong."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.kernel_names import function_name
from kernelscope.parsers import demangle
from kernelscope.parsers.demangle import LARGEST_BOUND, demangled, longest_outcome
from tests.corpus import needs_corpus, nsys_traces

pycxxfilt = pytest.importorskip("pycxxfilt", reason="pycxxfilt is not installed")


def one(name: str) -> str:
    return demangled([name])[name]


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("_Z3addPfS_i", "add(float*, float*, int)"),
        ("volta_sgemm_128x64_tn", "volta_sgemm_128x64_tn"),
        ("_Zbroken", "_Zbroken"),
        ("_Z1f\0", "_Z1f\0"),
        ("_Z", "_Z"),
        ("", ""),
        ("_Z1fIJidEEvDpT_", "void f<int, double>(int, double)"),
        ("_Z1fIiLi4ELb1EEvT_", "void f<int, 4, true>(int)"),
        (
            "_ZN2at6native54_GLOBAL__N__4b00444d_21_DistributionNormal_cu_17e44f7d1fEv",
            "at::native::(anonymous namespace)::f()",
        ),
    ],
)
def test_names(mangled: str, plain: str) -> None:
    assert one(mangled) == plain


def doubling(steps: int, times: int = 2) -> str:
    """A name whose every component repeats the one before it."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def reference(number: int) -> str:
        if number == 0:
            return "S_"
        text, number = "", number - 1
        while True:
            text, number = digits[number % 36] + text, number // 36
            if not number:
                return f"S{text}_"

    return "_Z1f1aIiiE" + "".join(f"S_I{reference(n + 1) * times}E" for n in range(steps))


PATHOLOGICAL = {
    "doubling": doubling(60),
    "eightfold": doubling(40, 8),
    "packs": "_Z1fIJiiiiiiiiiiEEv" + "Dp1aIT_" * 60 + "E" * 60,
    "pointers": "_Z1f" + "P" * 100_000 + "i",
    "templates": "_Z1f" + "1aI" * 50_000 + "i" + "E" * 50_000,
    "scopes": "_" + "Z" * 60_000 + "1fvE" * 60_000 + "1x",
}


@pytest.mark.parametrize("name", PATHOLOGICAL.values(), ids=PATHOLOGICAL)
def test_pathological_names_stay_mangled_at_once(name: str) -> None:
    start = time.process_time()
    assert one(name) == name
    assert time.process_time() - start < 1


def test_many_costly_names_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "MOST_OUTPUT", 5_000)
    names = [doubling(6) + "i" * n for n in range(1, 20)]
    assert names[-1] == demangled(names)[names[-1]]
    assert names[0] != demangled(names)[names[0]]


def test_without_the_demangler_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_demangler", lambda: None)
    assert one("_Z3addPfS_i") == "_Z3addPfS_i"
    assert not demangle.available()


@pytest.mark.parametrize("times", [1, 2, 3, 8])
@pytest.mark.parametrize("steps", range(8))
def test_nothing_spells_more_than_its_bound(steps: int, times: int) -> None:
    name = doubling(steps, times)
    assert longest_outcome(name) >= len(pycxxfilt.itanium_demangle(name))


_PIECES = st.sampled_from(
    [
        "i", "f", "d", "b", "y", "x", "Pi", "PKf", "1a", "3foo", "N1a1bE", "1aIiE", "1aIS_E", "S_",
        "S0_", "S1_", "S2_", "T_", "T0_", "DpT_", "Dp1aIT_E", "St6vectorIiE", "Ss", "Sa", "PFvvE",
        "PFiT_E", "Li4E", "Lb1E", "A4_i", "RT_", "OT0_", "KPc", "M1aFvvE", "XspT_E", "DTfp_E",
        "UlvE_", "NS_1cE", "cvi",
    ]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=6), st.lists(_PIECES, max_size=8), st.booleans(), st.booleans())
def test_random_names_spell_no_more_than_their_bound(
    arguments: list[str], parameters: list[str], pack: bool, nested: bool
) -> None:
    inside = "".join(arguments)
    template = f"I{'J' + inside + 'E' if pack else inside}E" if arguments else ""
    scope = f"N2ns1f{template}E" if nested else f"1f{template}"
    name = f"_Z{scope}{'v' if template else ''}{''.join(parameters) or 'v'}"
    bound = longest_outcome(name)
    if bound > LARGEST_BOUND:
        return
    try:
        text = pycxxfilt.itanium_demangle(name)
    except ValueError:
        return
    assert len(text) <= bound


@needs_corpus
def test_nsight_systems_says_the_same_of_its_kernels() -> None:
    """Of the mangled and demangled names that an export holds side by side."""
    query = (
        "SELECT DISTINCT m.value, d.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN StringIds d ON d.id = k.demangledName JOIN StringIds m ON m.id = k.mangledName"
    )
    pairs: dict[str, str] = {}
    for path in nsys_traces():
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
            try:
                pairs |= dict(database.execute(query).fetchall())
            except sqlite3.OperationalError:
                continue  # an export without mangled names, or without kernels
    mangled = [name for name in pairs if name.startswith("_Z")]
    plain = demangled(mangled)

    assert len(mangled) > 300
    for name in mangled:
        assert plain[name] != name
        assert function_name(plain[name]) == function_name(pairs[name])
