"""The capture opens before the first chosen iteration, and closes behind the last one, once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.annotation.recorder import compiled, events, recorded, run

SOURCE = Path(__file__).with_name("profiler.c")
RUNTIME = [
    "cudaDeviceSynchronize",
    "cudaProfilerStart",
    "cudaDeviceSynchronize",
    "cudaProfilerStop",
]
DRIVER = ["cuCtxSynchronize", "cuProfilerStart", "cuCtxSynchronize", "cuProfilerStop"]

LOOP = """
    loop = ks.iterations(range(4), profile=range(1, 3))
    for number in loop:
        say(number)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A CUDA runtime with the name that a wheel gives it, and a driver."""
    folder = tmp_path_factory.mktemp("cuda")
    return {
        "runtime": compiled(SOURCE, folder, name="libcudart-9335f6a2.so.12.0.107"),
        "driver": compiled(SOURCE, folder, "-DDRIVER", name="libcuda.so.1"),
    }


def called(
    tmp_path: Path, loaded: Sequence[Path], program: str, **environment: str
) -> tuple[list[str], str]:
    """Run a loop with some CUDA libraries loaded; return what happened, and what was warned of."""
    output = tmp_path / "calls"
    loads = "\n".join(f"    ctypes.CDLL({str(path)!r})" for path in loaded)
    done = run(
        f"""
    import ctypes, os
    import kernelscope as ks
{loads}
    def say(what):
        print(what, file=open(os.environ["PROFILER_OUTPUT"], "a"))
{program}
        """,
        path=(),
        PROFILER_OUTPUT=str(output),
        **environment,
    )
    return output.read_text().split(), done.stderr


def test_the_runtime_is_asked_first(tmp_path: Path, libraries: dict[str, Path]) -> None:
    both = [libraries["driver"], libraries["runtime"]]
    found, warned = called(tmp_path, both, LOOP)

    assert found == ["0", *RUNTIME[:2], "1", "2", *RUNTIME[2:], "3"]
    assert warned == ""


def test_the_driver_alone(tmp_path: Path, libraries: dict[str, Path]) -> None:
    found, warned = called(tmp_path, [libraries["driver"]], LOOP)

    assert found == ["0", *DRIVER[:2], "1", "2", *DRIVER[2:], "3"]
    assert warned == ""


def test_the_driver_where_the_runtime_refuses(tmp_path: Path, libraries: dict[str, Path]) -> None:
    found, warned = called(tmp_path, list(libraries.values()), LOOP, NO_START="1")

    assert found == ["0", *RUNTIME[:2], *DRIVER[:2], "1", "2", *DRIVER[2:], "3"]
    assert warned == ""


def test_no_cuda_at_all(tmp_path: Path) -> None:
    found, warned = called(tmp_path, [], LOOP)

    assert found == ["0", "1", "2", "3"]
    assert warned.count("CaptureWarning") == 1
    assert "--nvtx-capture=capture@kernelscope" in warned


SHORT = {"cudaProfilerStart": "start", "cudaProfilerStop": "stop", "cudaDeviceSynchronize": ""}

PROGRAMS = {
    "a shorter loader": (
        """
    for n in ks.iterations(range(2), profile=range(1, 9)): say(n)
        """,
        "0 start 1 stop",
    ),
    "one iteration": (
        """
    for n in ks.iterations(range(1), profile=range(0, 1)): say(n)
        """,
        "start 0 stop",
    ),
    "a break": (
        """
    for n in ks.iterations(range(9), profile=range(0, 9)): break
    say("after")
        """,
        "start stop after",
    ),
    "an exception": (
        """
    try:
        for n in ks.iterations(range(9), profile=range(0, 9)): raise KeyError
    except KeyError:
        say("after")
        """,
        "start stop after",
    ),
    "epochs of one loop": (
        """
    loop = ks.iterations(range(2), profile=range(3, 4))
    for epoch in range(3):
        for n in loop: say(n)
        """,
        "0 1 0 start 1 stop 0 1",
    ),
    "once for each name": (
        """
    for epoch in range(2):
        for n in ks.iterations(range(2), profile=range(1, 2)): say(n)
    for n in ks.iterations(range(2), name="other", profile=range(0, 1)): say(n)
        """,
        "0 start 1 stop 0 1 start 0 stop 1",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("listening", [False, True], ids=["no tool", "tool"])
def test_when_it_opens_and_closes(
    tmp_path: Path, tool: Path, libraries: dict[str, Path], *, program: str, listening: bool
) -> None:
    nvtx = {"NVTX_INJECTION64_PATH": str(tool)} if listening else {}
    text, expected = PROGRAMS[program]
    found, _ = called(tmp_path, [libraries["runtime"]], text, **nvtx)

    assert [name for each in found if (name := SHORT.get(each, each))] == expected.split()


def test_the_nvtx_capture_range_holds_the_chosen_iterations(tool: Path) -> None:
    calls = recorded(
        tool,
        """
        import warnings
        import kernelscope as ks
        warnings.simplefilter("ignore", ks.annotation.CaptureWarning)
        for number in ks.iterations(range(4), profile=range(1, 3)):
            pass
        """,
    )
    (start,) = (place for place, c in enumerate(calls) if c.call == "start")
    (end,) = (place for place, c in enumerate(calls) if c.call == "end")
    wanted = [each for n in (1, 2) for each in (("data loading", n), ("iteration", n))]

    assert (calls[start].domain, calls[start].message) == ("kernelscope", "capture")
    assert calls[start].category == 5
    inside = events(calls[start + 1 : end])
    assert [(message, payload) for call, message, payload in inside if call == "push"] == wanted
    assert [call for call, _, _ in inside].count("pop") == 4
