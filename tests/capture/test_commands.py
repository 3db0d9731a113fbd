"""Commands of nsys and ncu, for the options that real versions list."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope.capture.ncu_command import METRICS, Counting, count_command, what_to_count
from kernelscope.capture.nsys_command import (
    CAPTURES,
    Recording,
    export_command,
    profile_command,
    scheduling_hangs,
)
from kernelscope.capture.nvtx_versions import heard, package_version, why_unheard
from kernelscope.capture.tools import (
    NSYS,
    Tool,
    find_tool,
    listed_options,
    need_tool,
    options_of,
    parsed_version,
)
from kernelscope.errors import ToolError
from kernelscope.metrics.counted_work import counted_work
from tests.capture.fakes import OPTIONS, SAMPLE, fake_nsys, help_text, script
from tests.parsers.counter_texts import raw, written

NSYS_VERSIONS = [name for name in OPTIONS if name.startswith("nsys")]
NCU_VERSIONS = [name for name in OPTIONS if name.startswith("ncu")]
PROGRAM = ("python", "train.py", "--lr", "0.1")


def recorded(version: str, **wanted: object) -> tuple[list[str], list[str]]:
    options = frozenset(OPTIONS[version]["options"])
    made = Recording(**wanted)  # type: ignore[arg-type]
    return profile_command(Path("/opt/nsys"), options, made, Path("run/trace"), PROGRAM)


def used(command: list[str]) -> set[str]:
    """The long options of a command, the program's left out."""
    return {word.partition("=")[0] for word in command if word.startswith("--")} - {"--lr"}


@pytest.mark.parametrize("version", NSYS_VERSIONS)
@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("graphs", ["node", "graph"])
def test_nsys_is_asked_for_nothing_that_it_does_not_know(
    version: str, capture: str, graphs: str
) -> None:
    command, _ = recorded(version, capture=capture, graphs=graphs)

    assert used(command) <= set(OPTIONS[version]["options"])
    assert command[:2] == ["/opt/nsys", "profile"]
    assert tuple(command[-4:]) == PROGRAM
    assert command[-5] == "--output=run/trace"
    assert "--sample=none" in command
    assert "--cpuctxsw=process-tree" in command


def test_the_program_goes_on_when_the_capture_ends() -> None:
    """nsys ends the program with the capture unless told otherwise."""
    old, _ = recorded("nsys 2020.4.3", capture="cuda")
    new, _ = recorded("nsys 2023.4.4", capture="nvtx")

    assert {"--capture-range=cudaProfilerApi", "--stop-on-range-end=true", "--kill=none"} <= set(
        old
    )
    assert {
        "--capture-range=nvtx", "--nvtx-capture=capture@kernelscope", "--capture-range-end=stop",
    } <= set(new)  # fmt: skip


def test_graphs_are_opened_where_nsys_can() -> None:
    assert "--cuda-graph-trace=node" in recorded("nsys 2022.4.2")[0]
    assert "--cuda-graph-trace=graph" in recorded("nsys 2022.4.2", graphs="graph")[0]
    command, lacks = recorded("nsys 2020.4.3", graphs="graph")
    assert not any("graph" in word for word in command)
    assert lacks == ["it has no --cuda-graph-trace, and records graphs node by node"]
    assert not any("graph" in word for word in recorded("nsys 2022.4.2", trace="nvtx,osrt")[0])


def test_gpu_metrics_by_either_name() -> None:
    assert "--gpu-metrics-device=all" in recorded("nsys 2022.4.2", gpu_metrics=True)[0]
    newer = frozenset(OPTIONS["nsys 2023.4.4"]["options"]) | {"--gpu-metrics-devices"}
    command, _ = profile_command(
        Path("nsys"), newer, Recording(gpu_metrics=True), Path("t"), PROGRAM
    )
    assert "--gpu-metrics-devices=all" in command
    with pytest.raises(ToolError, match="does not sample GPU metrics"):
        recorded("nsys 2020.4.3", gpu_metrics=True)


def test_options_of_the_user_are_passed_on() -> None:
    command, _ = recorded("nsys 2022.4.2", extra=("--duration=5",))
    assert command.index("--duration=5") < command.index("--output=run/trace")


def test_options_of_the_user_replace_ours() -> None:
    """nsys 2022.4.2 says "usage" to an option that is given twice."""
    extra = ("--sample=process-tree", "--trace=cuda", "--duration=5")
    command, _ = recorded("nsys 2022.4.2", extra=extra)
    names = [word.partition("=")[0] for word in command[2:-4]]

    assert set(extra) <= set(command)
    assert len(names) == len(set(names))
    with pytest.raises(ToolError, match="where the report goes"):
        recorded("nsys 2022.4.2", extra=("--output=elsewhere",))


def test_scheduling_is_left_out_where_nsys_would_not_end() -> None:
    assert scheduling_hangs((2022, 4, 2), "6.18.44")
    assert not scheduling_hangs((2022, 4, 2), "5.15.0-91-generic")
    assert not scheduling_hangs((2023, 4, 4), "6.18.44")
    assert not scheduling_hangs(None, "")
    assert "--cpuctxsw=none" in recorded("nsys 2022.4.2", scheduling=False)[0]


def test_export() -> None:
    command = export_command(Path("nsys"), Path("a.nsys-rep"), Path("a.sqlite"))
    assert command == ["nsys", "export", "--type=sqlite", "--output=a.sqlite", "a.nsys-rep"]


COUNTED = Counting(("gemm_kernel", "operator<"), 120, 30, 0.93)


@pytest.mark.parametrize("version", NCU_VERSIONS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_ncu_is_asked_for_nothing_that_it_does_not_know(version: str, capture: str) -> None:
    options = frozenset(OPTIONS[version]["options"])
    command, lacks = count_command(
        Path("ncu"), options, COUNTED, Path("run/counters"), PROGRAM, capture
    )

    assert used(command) <= set(OPTIONS[version]["options"])
    assert lacks == []
    assert tuple(command[-4:]) == PROGRAM
    pairs = dict(pairwise(command))
    assert pairs["--clock-control"] == pairs["--cache-control"] == "none"
    assert pairs["--target-processes"] == "all"
    assert (pairs["--launch-skip"], pairs["--launch-count"]) == ("120", "30")
    assert pairs["--metrics"].split(",") == list(METRICS)
    name = pairs.get("--kernel-name", "").removeprefix("regex:") or pairs["--kernel-regex"]
    assert re.search(name, "gemm_kernel")
    assert re.search(name, "operator<")
    assert not re.search(name, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    assert ("--profile-from-start" in pairs) == (capture == "cuda")
    assert pairs.get("--nvtx-include") == ("kernelscope@capture" if capture == "nvtx" else None)


def test_an_ncu_that_cannot_choose_kernels_is_not_run() -> None:
    with pytest.raises(ToolError, match="may hang"):
        count_command(Path("ncu"), {"--metrics"}, COUNTED, Path("c"), PROGRAM)


def test_the_counters_suffice_for_flops_of_all_pipes_and_bytes(tmp_path: Path) -> None:
    text = raw([(name, "byte" if "bytes" in name else "inst") for name in METRICS], [range(13)])
    [group] = counted_work(ks.read_counters(written(tmp_path, text)))
    assert {"fp16_flops", "fp32_flops", "fp64_flops", "tensor_flops", "dram_bytes", "l2_bytes"} <= {
        *group.work
    }


def test_the_kernels_that_matter_are_counted_in_one_steady_iteration() -> None:
    trace = ks.read(str(SAMPLE))
    analysis = ks.analyze(trace)
    wanted = what_to_count(trace, analysis, captured=False)
    steps = analysis.iteration_summary

    assert wanted.covers >= 0.9
    assert wanted.skip > 0
    assert 0 < wanted.launches < len(trace.kernels) / (steps.count - 2)
    assert what_to_count(trace, analysis, captured=True).skip == 0
    assert what_to_count(trace, analysis, captured=False, most=5).launches == 5


def test_versions() -> None:
    assert parsed_version("NVIDIA Nsight Systems version 2022.4.2.1-df9881f") == (2022, 4, 2)
    assert parsed_version("Version 2024.1.1.0 (build 33998838)") == (2024, 1, 1)
    assert parsed_version("no version") is None
    assert package_version("0.2.11\n") == (0, 2, 11)
    assert package_version("nothing") is None
    assert listed_options(help_text(["--one", "--two-three"])) == {"--one", "--two-three"}
    assert listed_options("\t--nvtx-domain-[include|exclude]=\n") == {
        "--nvtx-domain-include", "--nvtx-domain-exclude",
    }  # fmt: skip
    assert listed_options("  -c [ --launch-count ] arg   Limit, see --other\n") == {
        "--launch-count"
    }


def test_nvtx_is_heard_or_not_or_nobody_knows() -> None:
    def nsys(*version: int) -> Tool:
        return Tool(NSYS, Path("nsys"), version or None)  # type: ignore[arg-type]

    assert heard((0, 2, 11), nsys(2022, 4, 2)) is True
    assert heard((0, 2, 12), nsys(2023, 4, 4)) is False
    assert heard((0, 2, 17), nsys(2026, 1, 1)) is None
    assert heard(None, nsys(2022, 4, 2)) is heard((0, 2, 12), nsys()) is None
    assert "pip install 'nvtx<0.2.12'" in why_unheard((0, 2, 12), nsys(2022, 4, 2))


def test_a_tool_is_found_by_the_environment_then_on_path(tmp_path: Path) -> None:
    named = fake_nsys(tmp_path / "named")
    on_path = fake_nsys(tmp_path / "path", version="nsys 2020.4.3")
    environ = {"PATH": str(on_path.parent)}

    first = find_tool(NSYS, {**environ, "KERNELSCOPE_NSYS": str(named)})
    second = find_tool(NSYS, environ)
    assert first is not None
    assert second is not None
    assert (first.path, first.version) == (named, (2022, 4, 2))
    assert (second.path, second.version) == (on_path, (2020, 4, 3))
    assert "Nsight Systems 2022.4.2" in str(first)
    with pytest.raises(ToolError, match="no executable file"):
        find_tool(NSYS, {"KERNELSCOPE_NSYS": str(tmp_path / "absent")})


@pytest.mark.skipif(shutil.which("nsys") is not None, reason="this machine has nsys")
def test_a_tool_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelscope.capture.tools._FOLDERS", {NSYS: ()})
    with pytest.raises(ToolError, match="neither on PATH") as caught:
        need_tool(NSYS, {"PATH": ""})
    assert "KERNELSCOPE_NSYS" in caught.value.hint


def test_a_tool_that_does_not_work(tmp_path: Path) -> None:
    broken = script(tmp_path / "nsys", "import sys; sys.exit('libssh.so.4: cannot open')")
    tool = find_tool(NSYS, {"KERNELSCOPE_NSYS": str(broken), "PATH": ""})
    assert tool is not None
    assert tool.version is None
    with pytest.raises(ToolError, match=r"lists no options.*libssh"):
        options_of(tool, "profile")
