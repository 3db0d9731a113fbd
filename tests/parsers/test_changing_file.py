"""A file that another program changes, cuts short or replaces while it is read."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.errors import DamagedFileError, TraceFileError
from kernelscope.parsers import btree_records
from kernelscope.parsers.btree_pages import Pages, Stamp, Unsupported, leaves
from kernelscope.parsers.sqlite import SqliteFile
from tests.parsers.tables import make_trace

PAGE = 1024


def cut(path: Path) -> None:
    with path.open("rb+") as file:
        file.truncate(3 * PAGE)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.seek(PAGE)
        file.write(b"\xff" * (size - PAGE))


def replace(path: Path) -> None:
    other = path.with_name("other.sqlite")
    oracle.write(oracle.SCENES["cupy_like"](), other, overwrite=True).replace(path)


def remove(path: Path) -> None:
    path.unlink()


CHANGES = [cut, empty, overwrite, replace, remove]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_trace(tmp_path / "a.sqlite", 4000, page_size=PAGE)


@pytest.mark.parametrize("column", ["start", "text"])
def test_a_log_that_appears_is_not_looked_into(path: Path, column: str) -> None:
    """SQLite would put an index of it beside the file."""
    table = "KERNEL" if column == "start" else "NVTX"
    file = SqliteFile.open(path)
    path.with_name(path.name + "-wal").write_bytes(b"nonsense" * 900)
    with pytest.raises(DamagedFileError, match="changed while it was read"):
        file.read(table, [column])
    with pytest.raises(DamagedFileError, match="changed while it was read"):
        file.read_bytes(table, column, 8)
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.sqlite", "a.sqlite-wal"]


@pytest.mark.parametrize("change", [cut, empty, overwrite])
def test_a_file_that_was_spoilt_since_it_was_opened(
    path: Path, change: Callable[[Path], None]
) -> None:
    file = SqliteFile.open(path)
    change(path)
    with pytest.raises(TraceFileError, match=r"a\.sqlite: table 'KERNEL' cannot be read"):
        file.read("KERNEL", ["start"])


@pytest.mark.parametrize("change", [cut, empty, overwrite])
def test_a_file_that_is_spoilt_between_two_chunks(
    path: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(btree_records, "CHUNK_BYTES", 16 * PAGE)
    file = SqliteFile.open(path)
    _after_reads(monkeypatch, 20, lambda: change(path))
    with pytest.raises(TraceFileError, match=r"a\.sqlite: table 'KERNEL' cannot be read"):
        file.read("KERNEL", ["start"])


def test_pages_that_are_no_longer_there_are_an_error(path: Path) -> None:
    stamp = Stamp.of(path)
    root = SqliteFile.open(path).layouts["KERNEL"].root
    with Pages.open(path, stamp) as pages:
        numbers = leaves(pages, root)
        whole = np.empty((len(numbers), PAGE), np.uint8)
        pages.read(numbers, whole)
        data = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, PAGE)
        assert (whole == data[numbers - 1]).all()
        pages.read(numbers[::-1], whole)
        assert (whole == data[numbers[::-1] - 1]).all()
        cut(path)
        with pytest.raises(Unsupported, match="cut short while it was read"):
            pages.read(numbers, whole)
        with pytest.raises(Unsupported, match="cut short while it was read"):
            leaves(pages, root)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("reads", [0, 1, 8, 30])
def test_a_trace_is_of_one_file_or_an_error(
    tmp_path: Path, change: Callable[[Path], None], reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of the old file beside tables of a new one would be neither."""
    path = oracle.write(oracle.SCENES["resnet"](), tmp_path / "run.sqlite")
    _after_reads(monkeypatch, reads, lambda: change(path))
    with pytest.raises(DamagedFileError, match="changed while it was read") as caught:
        ks.read(path)
    assert str(path) in caught.value.message


def _after_reads(monkeypatch: pytest.MonkeyPatch, count: int, change: Callable[[], None]) -> None:
    """Let something happen to the file once, after some reads of its pages."""
    done = 0
    read = Pages.read

    def meanwhile(self: Pages, *args: Any) -> None:
        nonlocal done
        if done == count:
            change()
        done += 1
        read(self, *args)

    monkeypatch.setattr(Pages, "read", meanwhile)


SCRIPT = """
    import sys
    from kernelscope.cli import main
    from kernelscope.parsers.btree_pages import Pages

    read, left = Pages.read, [4]

    def cut_meanwhile(self, *args):
        left[0] -= 1
        if left[0] == 0:
            open(sys.argv[1], "rb+").truncate(4096)
        read(self, *args)

    Pages.read = cut_meanwhile
    sys.exit(main(["analyze", sys.argv[1]]))
"""


def test_the_process_survives_a_file_that_is_cut_short(tmp_path: Path) -> None:
    """Had the file been mapped, the system would have killed it (SIGBUS)."""
    path = oracle.write(oracle.SCENES["resnet"](), tmp_path / "run.sqlite")
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "run.sqlite changed while it was read" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_nothing_maps_a_file_into_memory() -> None:
    sources = Path(ks.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "import mmap" in path.read_text(encoding="utf-8")]
