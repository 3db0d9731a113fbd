"""``kernelscope doctor``: each check in environments made for it, and the self-test."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from kernelscope.capture import checks
from kernelscope.capture.checks import FAILED, MISSING, OK, UNKNOWN, WARNING, Check
from kernelscope.capture.self_test import EXPECTED, NAME, judged, self_test
from kernelscope.capture.tools import NSYS, Tool
from kernelscope.report import doctor
from kernelscope.report.layout import Page
from tests.capture.fakes import IMPORTER, fake_ncu, fake_nsys, script
from tests.cli.conftest import Outcome

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fakes are scripts of POSIX")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is PATH and, for what is read of the system, the root of all files."""
    for name in ("KERNELSCOPE_NSYS", "KERNELSCOPE_NCU"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    monkeypatch.setattr("kernelscope.capture.tools._FOLDERS", {"nsys": (), "ncu": ()})
    return tmp_path


def written(machine: Path, name: str, text: str) -> None:
    path = machine / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def say(name: str) -> Check:
    return next(each for each in checks.checked() if each.name == name)


def test_a_machine_that_only_analyzes_has_no_failure(machine: Path) -> None:
    found = {each.name: each.status for each in checks.checked()}
    assert found["version"] == OK
    assert found["nsys"] == found["ncu"] == found["GPUs"] == MISSING
    assert FAILED not in found.values()
    assert list(found) == list(checks.CHECKS)


def test_tools_that_are_there(machine: Path) -> None:
    fake_nsys(machine)
    fake_ncu(machine, machine)
    assert say("nsys") == Check("nsys", OK, f"Nsight Systems 2022.4.2 ({machine / 'nsys'})")
    assert say("ncu").found.startswith("Nsight Compute 2022.3.0")


def test_a_tool_that_does_not_run(machine: Path) -> None:
    script(machine / "nsys", "import sys; sys.exit('cannot open libssh.so.4')")
    found = say("nsys")
    assert found.status == FAILED
    assert "libssh.so.4" in found.found
    assert "--version" in found.next


@pytest.mark.parametrize(
    ("installed", "status"), [("0.2.11", OK), ("0.2.12", FAILED), ("0.2.17", FAILED)]
)
def test_nvtx_against_nsys(
    machine: Path, monkeypatch: pytest.MonkeyPatch, installed: str, status: str
) -> None:
    fake_nsys(machine)
    monkeypatch.setattr(checks, "version", lambda _: installed)
    assert say("nvtx").status == status
    if status == FAILED:
        assert "pip install 'nvtx<0.2.12'" in say("nvtx").next


def test_nvtx_without_nsys(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    assert say("nvtx").status == OK
    monkeypatch.setattr(checks, "version", absent)
    assert say("nvtx") == Check("nvtx", FAILED, "not installed", "pip install nvtx")
    assert say("packages").found == "none"


def test_gpus(machine: Path) -> None:
    script(machine / "nvidia-smi", "print('NVIDIA A100-SXM4-40GB, 8.0, 40960 MiB')")
    assert say("GPUs") == Check("GPUs", OK, "NVIDIA A100-SXM4-40GB, 8.0, 40960 MiB")
    script(machine / "nvidia-smi", 'import sys; sys.exit("couldn\'t communicate with the driver")')
    assert say("GPUs").status == FAILED
    assert "communicate" in say("GPUs").found


def library(**functions: Callable[..., int]) -> Callable[[str], Any]:
    return lambda _: type("Library", (), {k: staticmethod(v) for k, v in functions.items()})


def test_the_driver(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(place: Any) -> int:
        place._obj.value = 12040
        return 0

    monkeypatch.setattr(ctypes, "CDLL", library(cuDriverGetVersion=version))
    assert say("driver").found == "for CUDA 12.4"
    assert say("CUPTI").status == OK
    written(machine, "proc/driver/nvidia/version", "NVRM version: NVIDIA 550.54  x86_64\nGCC\n")
    assert say("driver").found == "NVIDIA 550.54 x86_64, for CUDA 12.4"
    monkeypatch.setattr(ctypes, "CDLL", library(cuDriverGetVersion=lambda _: 3))
    assert say("driver").status == FAILED


@pytest.mark.parametrize(
    ("params", "administrator", "status"),
    [
        ("RmProfilingAdminOnly: 0\n", False, OK),
        ("RmProfilingAdminOnly: 1\n", True, OK),
        ("RmProfilingAdminOnly: 1\n", False, WARNING),
        ("Other: 1\n", False, UNKNOWN),
    ],
)
def test_counter_permissions(
    machine: Path, monkeypatch: pytest.MonkeyPatch, params: str, administrator: bool, status: str
) -> None:
    monkeypatch.setattr(checks, "_administrator", lambda: administrator)
    assert say("counters").status == UNKNOWN
    written(machine, "proc/driver/nvidia/params", params)
    assert say("counters").status == status


@pytest.mark.parametrize(("level", "status"), [(-1, OK), (2, OK), (3, WARNING)])
def test_scheduling(
    machine: Path, monkeypatch: pytest.MonkeyPatch, level: int, status: str
) -> None:
    monkeypatch.setattr(checks, "_administrator", lambda: False)
    written(machine, "proc/sys/kernel/perf_event_paranoid", f"{level}\n")
    assert say("scheduling").status == status


def test_room(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, status in ((1 << 40, OK), (1 << 20, WARNING), (None, UNKNOWN)):
        monkeypatch.setattr(checks, "free_bytes", lambda _, free=free: free)
        assert say("room").status == status


def test_a_check_that_breaks_is_not_known(machine: Path) -> None:
    written(machine, "proc/sys/kernel/perf_event_paranoid", "many")
    found = say("scheduling")
    assert found.status == UNKNOWN
    assert found.found.startswith("ValueError")


def test_what_arrived_is_judged() -> None:
    old = Tool(NSYS, Path("nsys"), (2022, 4, 2))
    assert judged(EXPECTED, old) == Check("self-test", OK, "11 of 11 ranges arrived")
    some = judged({**EXPECTED, "forward": 1}, old)
    assert (some.status, some.found) == (FAILED, "9 of 11 ranges arrived: forward 1 of 3")
    none = judged({}, old)
    assert none.status == FAILED
    assert "records no range of nvtx" in none.next
    unknown = judged({}, Tool(NSYS, Path("nsys"), (2026, 1, 1)))
    assert unknown.status == UNKNOWN
    assert "NVTX_INJECTION64_PATH" in unknown.next


def test_the_self_test_says_where_it_ends(machine: Path) -> None:
    assert self_test() == Check("self-test", MISSING, "not tried: there is no nsys")
    for how, words in (
        ("fails before", "nsys wrote no report; it said: cannot attach"),
        ("export fails", "nsys exported nothing; it said: Export failed"),
    ):
        fake_nsys(machine, how)
        found = self_test()
        assert (found.status, found.found) == (FAILED, words)
    fake_nsys(machine)  # exports the sample, which holds none of these ranges
    assert self_test().found == "0 of 11 ranges arrived"


def test_a_program_that_fails_is_not_laid_upon_nvtx(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nsys(machine)
    program = "import kernelscope_of_nobody"
    monkeypatch.setattr("kernelscope.capture.self_test.PROGRAM", program)
    found = self_test()
    assert found.status == FAILED
    assert "without nsys too: ModuleNotFoundError" in found.found
    assert "kernelscope_of_nobody" in found.found
    assert "0.2.12" not in found.found + found.next


def test_a_program_that_fails_under_nsys_only(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nsys(machine)
    text = (machine / "nsys").read_text(encoding="utf-8")
    # As where an injected library ends the program: the recording is there, and says nothing.
    script(machine / "nsys", text.replace("subprocess.run(program)", "subprocess.run(['false'])"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(machine), "/bin", "/usr/bin"]))
    assert self_test().found == "the program ends well without nsys only"


def test_what_nsys_could_not_import_is_imported(machine: Path) -> None:
    """Debian's nsys lies apart from its importer, and does not find it."""
    libraries = machine / "usr" / "lib"
    nsys = fake_nsys(libraries / "x86_64" / "nsight-systems" / "target", "importer not found")
    (machine / "nsys").symlink_to(nsys)
    assert self_test().found.startswith("nsys wrote no report")
    script(libraries / "nsight-systems" / "host-linux-x64" / "QdstrmImporter", IMPORTER)
    assert self_test().found == "0 of 11 ranges arrived"


def test_a_self_test_that_breaks_does_not_break_the_doctor(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("what nobody thought of")

    fake_nsys(machine)
    monkeypatch.setattr("kernelscope.capture.self_test._arrived", broken)
    assert self_test() == Check(NAME, UNKNOWN, "ValueError: what nobody thought of")
    monkeypatch.setenv("KERNELSCOPE_NSYS", "/nowhere")
    assert self_test().status == FAILED
    assert self_test().next.startswith("Unset it")


def test_the_command(
    machine: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelscope.cli import main  # noqa: PLC0415 - with the machine's PATH

    def run(*arguments: str) -> Outcome:
        code = main(["doctor", *arguments])
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    outcome = run("--format", "json")
    assert outcome.code == 0
    rows = json.loads(outcome.out)["checks"]
    assert [row["name"] for row in rows] == [*checks.CHECKS, "self-test"]
    assert set(rows[0]) == {"name", "status", "found", "next"}
    monkeypatch.setattr(checks, "version", lambda _: "0.2.12")
    fake_nsys(machine)
    assert run("--no-self-test").code == 1


@pytest.mark.parametrize("width", [60, 120])
def test_the_page_fits(width: int) -> None:
    found = [
        Check("nsys", status, "something that was found " * 5, "what to do about it " * 5)
        for status in (OK, WARNING, FAILED, MISSING, UNKNOWN)
    ]
    text = doctor.render(found, Page(width))
    assert max(map(len, text.splitlines())) <= width
    assert [line[0] for line in text.splitlines() if line[2:6] == "nsys"] == list("✓!✗--")
    assert doctor.render(found, Page(width), unicode=False).isascii()
