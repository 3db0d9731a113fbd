from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelscope.metrics.short_names import LONGEST, short_names
from tests.metrics.test_kernel_decoder import ADD, FA3


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (ADD, "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(P)",
            "cutlass_80_simt_sgemm_64x64_8x5_tn_align1",
        ),
        (
            "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)64, "
            "(int)4, (bool)0, cutlass::bfloat16_t, X>>(P)",
            "flash_fwd<hdim64, bf16>",
        ),
        (FA3, "flash_fwd_sm90<hdim256, bf16>"),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
            "at::native::add_kernel_cuda(at::TensorIterator&)::{lambda()#1}::operator()() const::"
            "{lambda(c10::Half, c10::Half)#1}>(at::TensorIterator&)::{lambda(int)#4}>(int)",
            "elementwise_kernel<add_kernel_cuda<half>>",
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::"
            "(anonymous namespace)::OpaqueType<2u>, unsigned int, 3, 64, 64>(int)",
            "CatArrayBatchedCopy<OpaqueType>",
        ),
        ("void ns::kernel<int>(int)", "ns::kernel<int>"),
        ("", ""),
    ],
)
def test_a_short_name(name: str, short: str) -> None:
    assert short_names([name]) == [short]


def test_what_numbers_tell_apart_keeps_them() -> None:
    names = [f"void softmax_warp_forward<float, float, float, {n}, true>(float*)" for n in (6, 10)]

    assert short_names(names) == [
        "softmax_warp_forward<float, float, float, 6, true>",
        "softmax_warp_forward<float, float, float, 10, true>",
    ]


def test_what_nothing_tells_apart_is_numbered_in_order() -> None:
    names = ["f(int)", "f(long)", "g(int)", "f(char)"]

    assert short_names(names) == ["f", "f ~2", "g", "f ~3"]


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.tuples(st.sampled_from("fg"), st.sampled_from(["int", "4", "a<b>", "~2", "<"])).map(
                lambda parts: f"void ns::{parts[0]}<{parts[1]}>(int)"
            ),
        ),
        unique=True,
        max_size=12,
    )
)
def test_no_two_short_names_are_alike(names: list[str]) -> None:
    made = short_names(names)

    assert len(set(made)) == len(names)
    assert all(len(text) <= LONGEST + 8 for text in made)
