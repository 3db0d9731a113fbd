"""Every version of `nvtx` makes the same calls, and none lets memory grow."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.annotation.recorder import recorded, run

VERSIONS = ["0.2.11", "0.2.12", "0.2.13", None]
"""The last with module functions only, the first ones with methods, and the one that is here."""

PROGRAM = """
    import asyncio, os
    import kernelscope as ks
    import nvtx
    assert nvtx.__file__.startswith(os.environ["NVTX_FOLDER"]), nvtx.__file__

    @ks.annotate(payload=2.5)
    def plain():
        ks.mark("here", payload=3, category="mine")

    async def task(name):
        with ks.phase(name):
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(task("a"), task("b"))

    for batch in ks.iterations("ab", batch_size=8, name="step"):
        with ks.phase("forward", path="net", inputs=[((2, 3), "float32")], flops=12), ks.phase(""):
            plain()
        with ks.phase("x", domain="mine", category="y"), ks.start_range("s", payload=-1):
            pass
    with ks.phase("default domain", domain=""):
        asyncio.run(main())
"""

MANY = """
    import resource
    import kernelscope as ks

    def memory():
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

    @ks.annotate
    def called():
        pass

    def go(count):
        for number in ks.iterations(range(count), batch_size=1):
            with ks.phase("forward"):
                called()
            if number % 10 == 0:
                ks.mark("mark", payload=number)
                with ks.phase("numbered", payload=number), ks.start_range("s", payload=number):
                    pass

    go(20_000)
    before = memory()
    go(1_000_000)
    grown = memory() - before
    assert grown < 1 << 20, grown
"""


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder that holds one version of `nvtx`; none for the one that is installed."""
    if request.param is None:
        return []
    folder = tmp_path_factory.mktemp("nvtx-version")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:",
         "--target", folder, f"nvtx=={request.param}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"cannot be installed here: nvtx {request.param}: {done.stderr[-300:]}")
    return [folder]


versions = pytest.mark.parametrize(
    "package",
    [
        pytest.param(version, marks=[pytest.mark.slow] if version else [], id=version or "here")
        for version in VERSIONS
    ],
    indirect=True,
)


@pytest.mark.slow
@versions
def test_every_version_makes_the_same_calls(tool: Path, package: list[Path]) -> None:
    expected = recorded(tool, PROGRAM, NVTX_FOLDER="")
    found = recorded(tool, PROGRAM, path=package, NVTX_FOLDER=str(package[0]) if package else "")

    assert len(expected) > 40
    assert len({call.thread for call in found}) == 1
    assert [replace(call, thread=0) for call in found] == [
        replace(call, thread=0) for call in expected
    ]


@versions
def test_no_version_does_anything_where_no_tool_listens(package: list[Path]) -> None:
    run(
        """
        import kernelscope as ks
        from kernelscope.annotation.ranges import OFF
        loader = iter("ab")
        assert ks.phase("a") is ks.phase("b", domain="mine") is ks.phase("c", domain="") is OFF
        assert iter(ks.iterations(loader)) is loader
        """,
        path=package,
    )


@versions
def test_a_million_iterations_leave_nothing_behind(tool: Path, package: list[Path]) -> None:
    run(MANY, path=package, NVTX_INJECTION64_PATH=str(tool), RECORDER_OUTPUT="")


def test_a_million_iterations_without_a_tool() -> None:
    run(MANY)
