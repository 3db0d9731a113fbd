"""The decoder on every kernel name of the corpus, and against hardware counters."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from kernelscope.metrics.kernel_decoder import decode, decode_all
from kernelscope.metrics.short_names import short_names
from kernelscope.parsers.counter_formats import read_counters
from tests.corpus import CORPUS, needs_corpus, needs_ncu_report
from tests.metrics.corpus_names import digest, expected, labelled, row_of, times

V100 = "nersc-dl-profiling/kernel_labels_v100.csv"

SAYS_NOTHING = {"dgrad_1x1_stride_2x2"}
"""Of the kernels with counted tensor-core use, those whose name says neither type nor instruction.
(It does use tensor cores.)"""

COUNTED = {f"flop_count_{kind}_{op}" for kind in ("sp", "dp") for op in ("add", "mul", "fma")}
"""Not "special": those are conversions, too, on a pipe of their own."""

LEAST_OF_TIME = 0.9
"""Share of the corpus' kernel time that a family covers, at least; 0.95 when this was written."""


def v100() -> list[dict[str, str]]:
    assert CORPUS is not None
    return labelled(CORPUS / "oracles" / V100)


@needs_corpus
def test_tensor_core_use_is_what_counters_counted_on_a_v100() -> None:
    rows = v100()
    said = {row["kernel_name"]: decode(row["kernel_name"]).tensor_core for row in rows}
    counted = {row["kernel_name"]: row["uses_tensor_core"] == "1" for row in rows}

    assert len(rows) == 308
    assert {name for name, answer in said.items() if answer is None} == SAYS_NOTHING
    assert {name: answer for name, answer in said.items() if answer is not None} == {
        name: answer for name, answer in counted.items() if name not in SAYS_NOTHING
    }


@needs_corpus
def test_pipes_of_cuda_cores_are_those_that_counted_flops_on_a_v100() -> None:
    """FP32 kernels execute next to no FP16 FLOPs; what does no arithmetic executes none."""
    for row in v100():
        fp32, fp16 = float(row["fp32_flops"]), float(row["fp16_flops"])
        pipe = decode(row["kernel_name"]).pipe
        if pipe == "FFMA":
            assert fp16 <= 0.02 * fp32, row["kernel_name"]
        elif pipe == "ALU":
            assert fp32 == fp16 == 0, row["kernel_name"]


@needs_corpus
def test_pipes_are_those_that_nvprof_counted_flops_of_on_a_gtx_1060() -> None:
    assert CORPUS is not None
    counters = read_counters(CORPUS / "traces" / "nvprof" / "GTX1060_metrics__prof.nvvp").counters
    flops: defaultdict[str, dict[str, float]] = defaultdict(lambda: {"sp": 0, "dp": 0})
    for name, metric, value in zip(
        counters.texts("kernel_name"), counters.texts("metric"), counters.values("value"),
        strict=True,
    ):  # fmt: skip
        if name and metric in COUNTED:
            flops[name][metric[11:13]] += value or 0
    pipes = {name: decode(name).pipe for name in flops}

    assert sorted(filter(None, pipes.values())) == ["ALU", *["DFMA"] * 4]
    for name, pipe in pipes.items():
        if pipe == "DFMA":
            assert flops[name]["dp"] > 0 == flops[name]["sp"]
        elif pipe == "ALU":
            assert flops[name] == {"sp": 0, "dp": 0}


@needs_corpus
@needs_ncu_report
def test_every_name_says_what_a_reader_said_of_it() -> None:
    """Where it fails after a change of tables: read the names, then renew the file."""
    known = expected()
    made = {digest(name): row_of(decode(name), name) for name in times()}

    assert set(made) == set(known)
    for key, row in made.items():
        assert row == known[key]


@needs_corpus
def test_families_cover_the_time_of_the_corpus() -> None:
    names = tuple(times())
    covered = sum(times()[each.name] for each in decode_all(names) if each.family is not None)

    assert covered / sum(times().values()) >= LEAST_OF_TIME


@needs_corpus
def test_no_two_short_names_of_the_corpus_are_alike() -> None:
    names = [each.name for each in decode_all(tuple(times()))]

    assert len(set(short_names(names))) == len(names)


@needs_corpus
def test_a_decoded_name_says_the_same_when_decoded_again() -> None:
    for found in decode_all(tuple(times())):
        assert decode(found.name) == found


def test_the_file_of_the_corpus_names_no_kernel_twice() -> None:
    path = Path(__file__).with_name("corpus_names.csv")

    assert len(expected()) == len(path.read_text(encoding="utf-8").splitlines()) - 1


def test_a_name_without_a_family_says_nothing_else() -> None:
    for row in expected().values():
        if not row["family"]:
            assert not any(value for column, value in row.items() if column != "digest")
