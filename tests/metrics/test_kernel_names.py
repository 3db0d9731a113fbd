from __future__ import annotations

import pytest

from kernelscope.metrics.kernel_names import function_name


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void a::b<c::d<int>, (e)3>(f::g *)", "a::b"),
        ("std::enable_if<(bool)1, void>::type ns::f<int>(int)", "ns::f"),
        ("void (anonymous namespace)::f<int>(int)", "f"),
        ("ns::<unnamed>::f", "ns::f"),
        ("_ZN2ns1fIiEEvPf", "ns::f"),
        ("_ZN12_GLOBAL__N_11fEv", "f"),
        ("_Z3addPKf", "add"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_function_name(name: str, function: str) -> None:
    assert function_name(name) == function
