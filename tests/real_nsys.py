"""Debian's nsys 2022.4.2, unpacked into a folder and never installed, and the last nvtx it hears.

Its dependencies would bring in a CUDA driver library. It needs no GPU for NVTX.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = (
    "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    "http://deb.debian.org/debian bookworm main contrib non-free\n"
)
PACKAGES = ("nsight-systems", "nsight-systems-target", "libssh-4")

COMMAND = """\
#!/bin/bash
# As an installed nsys: with its libraries, and with the importer that it does not find elsewhere.
export LD_LIBRARY_PATH={system}:{host}
{system}/nsight-systems/target-linux-x64/nsys "$@"
code=$?
for each in "$@"; do case $each in --output=*) output=${{each#--output=}};; esac; done
if [ "$1" = profile ] && [ -f "$output.qdstrm" ]; then
  {host}/QdstrmImporter -i "$output.qdstrm" -o "$output.nsys-rep" >/dev/null && rm "$output.qdstrm"
fi
exit $code
"""


def unpacked(folder: Path) -> Path:
    """Fetch and unpack the packages; return ``usr/lib`` of them. Skips where they cannot be had."""
    if sys.platform != "linux" or not all(map(shutil.which, ("apt-get", "dpkg"))):
        pytest.skip("cannot be installed here: nsys 2022.4.2, as there is no apt-get")
    for part in ("lists/partial", "cache/archives/partial", "root"):
        (folder / part).mkdir(parents=True)
    (folder / "sources.list").write_text(SOURCE, encoding="ascii")
    options = [
        f"-o=Dir::Etc::SourceList={folder}/sources.list", "-o=Dir::Etc::SourceParts=/dev/null",
        f"-o=Dir::State::Lists={folder}/lists", f"-o=Dir::Cache={folder}/cache",
        "-o=APT::Sandbox::User=", "-o=Acquire::Retries=1", "-q",
    ]  # fmt: skip
    for command in (["update"], ["download", *PACKAGES]):
        done = subprocess.run(
            ["apt-get", *options, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"cannot be installed here: nsys 2022.4.2: {done.stderr[-300:]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
        package.unlink()
    return folder / "root" / "usr" / "lib"


def as_command(libraries: Path) -> Path:
    """Write a script that behaves as an installed nsys, and return it."""
    path = libraries / "nsys"
    system, host = libraries / "x86_64-linux-gnu", libraries / "nsight-systems" / "host-linux-x64"
    path.write_text(COMMAND.format(system=system, host=host), encoding="utf-8")
    path.chmod(0o755)
    return path


def audible_nvtx(folder: Path) -> Path:
    """Install the last ``nvtx`` that this nsys hears into a folder of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:",
         "--target", folder, "nvtx==0.2.11"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"cannot be installed here: nvtx 0.2.11: {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="session")
def nsys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds ``usr/lib`` of the unpacked packages."""
    folder = tmp_path_factory.mktemp("nsys")
    yield unpacked(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def audible(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder with the last `nvtx` that this nsys hears."""
    return [audible_nvtx(tmp_path_factory.mktemp("nvtx"))]
