"""``kernelscope profile`` with an nsys and an ncu that fail in every way that real ones can."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kernelscope as ks
from tests.capture.fakes import IMPORTER, ROOT, SAMPLE, fake_ncu, fake_nsys, script
from tests.cli.conftest import Outcome
from tests.parsers.counter_texts import raw, written

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fakes are scripts of POSIX")

OK = (sys.executable, "-c", "print('trained')")


def environment(tools: Path) -> dict[str, str]:
    named = {
        f"KERNELSCOPE_{name.upper()}": str(tools / name)
        for name in ("nsys", "ncu")
        if (tools / name).exists()
    }
    rest = {k: v for k, v in os.environ.items() if not k.startswith("KERNELSCOPE_N")}
    return {**rest, **named, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def profile(tools: Path, *arguments: str | Path, program: tuple[str, ...] = OK) -> Outcome:
    """Run ``kernelscope profile`` in a process of its own, in the tools' folder."""
    command = [sys.executable, "-m", "kernelscope", "profile", *map(str, arguments), "--", *program]
    done = subprocess.run(
        command, cwd=tools, env=environment(tools), capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return found


def status(folder: Path) -> dict[str, str]:
    return {step["name"]: step["status"] for step in manifest(folder)["steps"]}


def test_everything_lands_in_one_folder(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    outcome = profile(tmp_path, "-o", "run")
    folder = tmp_path / "run"

    assert outcome.code == 0
    assert "trained" in outcome.out
    assert "Where device time goes" in outcome.out
    assert "Everything is in run." in outcome.err
    assert status(folder) == {"record": "done", "export": "done", "analyze": "done"}
    listed = {each["name"] for each in manifest(folder)["files"]}
    assert listed == {"trace.nsys-rep", "trace.sqlite", "report.txt", "analysis.json"}
    assert listed | {"manifest.json"} == {path.name for path in folder.iterdir()}
    found = manifest(folder)
    assert found["program"] == list(OK)
    assert found["tools"]["nsys"]["version"] == "2022.4.2"
    assert shlex.split(found["steps"][0]["command_line"]) == found["steps"][0]["command"]
    assert json.loads((folder / "analysis.json").read_text())["kernels"]


def test_an_old_nsys_writes_another_report(tmp_path: Path) -> None:
    fake_nsys(tmp_path, version="nsys 2020.4.3")
    assert profile(tmp_path, "-o", "run", "--no-analyze").code == 0
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "trace.qdrep", "trace.sqlite", "manifest.json",
    }  # fmt: skip


def test_a_dry_run_runs_nothing(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    fake_ncu(tmp_path, SAMPLE)
    outcome = profile(tmp_path, "-o", "run", "--dry-run", "--counters", "--capture", "cuda")

    assert outcome.code == 0
    assert not (tmp_path / "run").exists()
    lines = [line for line in outcome.out.splitlines() if not line.startswith("#")]
    record, export, count, show, analyze = map(shlex.split, lines)
    assert record[0] == str(tmp_path / "nsys")
    assert tuple(record[-3:]) == OK
    assert export[1] == "export"
    assert "KERNELS_OF_THE_FIRST_RUN" in count[count.index("--kernel-name") + 1]
    assert show[1] == "--import"
    assert analyze[:2] == ["kernelscope", "analyze"]
    assert analyze[-2:] == ["--counters", "run/counters.csv"]


def test_counters_of_a_second_run_enter_the_report(tmp_path: Path) -> None:
    """The fake ncu counted a kernel of the sample."""
    row = ks.read(str(SAMPLE)).kernels.records()[0]
    grid, block = (
        f"({', '.join(str(row[f'{part}_{axis}']) for axis in 'xyz')})" for part in ("grid", "block")
    )
    flops = [
        (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum", "inst")
        for op in ("fadd", "fmul", "ffma")
    ]
    text = raw(flops, [(1, 2, 3)]).replace('"gemm"', f'"{row["name"]}"')
    text = text.replace("(4, 2, 1)", grid).replace("(256, 1, 1)", block)
    fake_nsys(tmp_path)
    fake_ncu(tmp_path, written(tmp_path, text, "counted.csv"))
    outcome = profile(tmp_path, "-o", "run", "--counters")

    assert outcome.code == 0
    assert "Counted work" in outcome.out
    assert status(tmp_path / "run") == dict.fromkeys(
        ("record", "export", "count", "print", "analyze"), "done"
    )
    count = manifest(tmp_path / "run")["steps"][2]["command"]
    assert count[count.index("--clock-control") + 1] == "none"
    assert re.search(r"launches of \d+ kernels, which make up 9\d% of the", outcome.err)
    assert any("make up 9" in note for note in manifest(tmp_path / "run")["notes"])
    assert "nccl" not in count[count.index("--kernel-name") + 1].lower()


def test_where_counting_fails_the_trace_is_reported_without(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    fake_ncu(tmp_path, SAMPLE, "fails")
    outcome = profile(tmp_path, "-o", "run", "--counters")

    assert outcome.code == 1
    assert "Where device time goes" in outcome.out
    assert "Nothing was counted" in outcome.err
    assert status(tmp_path / "run")["count"] == "failed"


def test_a_program_that_fails_is_reported_and_its_code_returned(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    outcome = profile(tmp_path, "-o", "run", program=(sys.executable, "-c", "raise SystemExit(7)"))

    assert outcome.code == 7
    assert "Where device time goes" in outcome.out
    assert "record failed (exit code 7); going on" in outcome.err


@pytest.mark.parametrize(
    ("how", "code", "message", "hint"),
    [
        ("fails before", 2, "the run recorded nothing (exit code 5)", "Try it by hand"),
        ("killed", 2, "the run recorded nothing (ended by SIGKILL)", "Try it by hand"),
        ("no report", 2, "the run recorded nothing", "Try it by hand"),
        ("empty report", 2, "the run recorded nothing", "Try it by hand"),
        ("no importer", 2, "the run recorded nothing", "QdstrmImporter"),
        ("export fails", 2, "the trace could not be exported (exit code 3)", "nsys export"),
        ("export: disk full", 2, "the trace could not be exported", "where there is room"),
    ],
)
def test_nsys_fails(tmp_path: Path, how: str, code: int, message: str, hint: str) -> None:
    fake_nsys(tmp_path, how)
    outcome = profile(tmp_path, "-o", "run")

    assert outcome.code == code
    assert message in outcome.err
    assert hint in outcome.err
    assert "Traceback" not in outcome.err
    assert manifest(tmp_path / "run")["steps"]  # what was tried is written down


def test_what_nsys_could_not_import_is_imported(tmp_path: Path) -> None:
    """Debian's nsys lies apart from its importer, and does not find it."""
    libraries = tmp_path / "usr" / "lib"
    nsys = fake_nsys(libraries / "x86_64" / "nsight-systems" / "target", "importer not found")
    script(libraries / "nsight-systems" / "host-linux-x64" / "QdstrmImporter", IMPORTER)
    (tmp_path / "nsys").symlink_to(nsys)
    outcome = profile(tmp_path, "-o", "run")

    assert outcome.code == 0, outcome.err
    assert "Where device time goes" in outcome.out
    assert [*status(tmp_path / "run")] == ["record", "import", "export", "analyze"]


def test_a_version_that_nobody_can_read(tmp_path: Path) -> None:
    fake_nsys(tmp_path, says="NVIDIA Nsight Systems, built on a Tuesday")
    outcome = profile(tmp_path, "-o", "run", "--no-analyze")

    assert outcome.code == 0
    assert manifest(tmp_path / "run")["tools"]["nsys"]["version"] is None


def test_a_run_without_kernels_is_reported_and_said(tmp_path: Path) -> None:
    with sqlite3.connect(shutil.copy(SAMPLE, tmp_path / "idle.sqlite")) as database:
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    database.close()
    fake_nsys(tmp_path, sample=tmp_path / "idle.sqlite")
    fake_ncu(tmp_path, SAMPLE)
    outcome = profile(tmp_path, "-o", "run", "--counters")

    assert outcome.code == 0
    assert "No kernel was recorded" in outcome.err
    assert "there is none to count" in outcome.err
    assert (tmp_path / "run" / "report.txt").stat().st_size
    assert "count" not in status(tmp_path / "run")


def test_an_export_that_cannot_be_read_is_written_down(tmp_path: Path) -> None:
    fake_nsys(tmp_path, "broken export")
    outcome = profile(tmp_path, "-o", "run")

    assert outcome.code == 2
    assert "trace.sqlite" in outcome.err
    assert "Traceback" not in outcome.err
    assert status(tmp_path / "run")["analyze"] == "failed"


def test_a_failure_behind_the_recording_loses_nothing(tmp_path: Path) -> None:
    fake_nsys(tmp_path, "fails after")
    outcome = profile(tmp_path, "-o", "run")
    assert outcome.code == 9
    assert "Where device time goes" in outcome.out


@pytest.mark.parametrize("whole_group", [True, False], ids=["ctrl-c", "kill -INT"])
def test_an_interruption_leaves_what_was_recorded(tmp_path: Path, whole_group: bool) -> None:
    fake_nsys(tmp_path, "interrupted")
    code = f"import time; print('running', flush=True); time.sleep({60 if whole_group else 2})"
    program = (sys.executable, "-c", code)
    command = [sys.executable, "-m", "kernelscope", "profile", "-o", "run", "--", *program]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["recording\n", "running\n"]
        if whole_group:
            os.killpg(running.pid, signal.SIGINT)
        else:
            os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=100)

    assert "Interrupted: waiting" in err
    assert "Where device time goes" in out
    assert running.returncode == 130
    assert status(tmp_path / "run") == {
        "record": "interrupted", "export": "done", "analyze": "done",
    }  # fmt: skip


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    folder = tmp_path / "run"
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from kernelscope.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "profile", "-o", folder, "--", *OK],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "manifest.json could not be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr


def test_results_are_not_mixed(tmp_path: Path) -> None:
    fake_nsys(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("dear")
    outcome = profile(tmp_path, "-o", "run")
    assert outcome.code == 2
    assert "the folder is not empty" in outcome.err
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_each_rank_has_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    assert profile(tmp_path, "-o", "run/rank%q{RANK}", "--no-analyze").code == 0
    assert (tmp_path / "run" / "rank3" / "trace.sqlite").exists()
    outcome = profile(tmp_path, "-o", "run/%q{SLURM_PROCID}")
    assert outcome.code == 2
    assert "the environment has no SLURM_PROCID" in outcome.err


def test_nvtx_that_this_nsys_does_not_hear_is_said_before_the_run(tmp_path: Path) -> None:
    package = tmp_path / "site"
    (package / "nvtx-0.2.12.dist-info").mkdir(parents=True)
    (package / "nvtx-0.2.12.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: nvtx\nVersion: 0.2.12\n"
    )
    fake_nsys(tmp_path)
    command = [sys.executable, "-m", "kernelscope", "profile", "-o", "run", "--dry-run", "--", *OK]
    path = os.pathsep.join([str(package), str(ROOT)])
    done = subprocess.run(
        command, cwd=tmp_path, env={**environment(tmp_path), "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "records no range of nvtx 0.2.12" in done.stdout
    assert done.stdout.index("records no range") < done.stdout.index("# 1. record")


def test_no_nsys_at_all(tmp_path: Path) -> None:
    outcome = profile(tmp_path, "-o", "run")
    if "neither on PATH" not in outcome.err:
        pytest.skip("this machine has nsys")
    assert outcome.code == 2
    assert "KERNELSCOPE_NSYS" in outcome.err
    assert not (tmp_path / "run").exists()
