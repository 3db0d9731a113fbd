"""A damaged file gives a clear error or what sqlite3 gives: no garbage, no crash, no loop."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

import kernelscope as ks
from kernelscope import oracle
from kernelscope.errors import DamagedFileError, KernelscopeError
from kernelscope.parsers.sqlite import SqliteFile
from tests.parsers.damage import DAMAGES, Damage, check_damaged
from tests.parsers.tables import make_trace

PAGE = 1024


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "trace.sqlite"
    return make_trace(path, 800, page_size=PAGE).read_bytes()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_random_damage(damage: Damage, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite"
    outcomes = set()
    for seed in range(120):
        rng = random.Random(seed)
        data = bytearray(whole)
        damage(rng, data, PAGE)
        path.write_bytes(data)
        outcomes |= set(check_damaged(path))
    assert outcomes - {"columnar"}  # some damage was noticed


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("log", [False, True], ids=["alone", "beside a log"])
def test_a_damaged_export_is_read_or_refused(damage: Damage, log: bool, tmp_path: Path) -> None:
    """What the reader lets pass, the parser meets: fractions as ids, say."""
    path = oracle.write(oracle.SCENES["graphs"](), tmp_path / "trace.sqlite")
    whole, outcomes = path.read_bytes(), set()
    if log:
        path.with_name(path.name + "-wal").write_bytes(b"nonsense" * 900)
    for seed in range(25):
        data = bytearray(whole)
        damage(random.Random(seed), data, 4096)
        path.write_bytes(data)
        try:
            ks.analyze(ks.read(path))
            outcomes.add("read")
        except KernelscopeError as error:
            outcomes.add(type(error).__name__)
    assert outcomes - {"read"}  # some damage was noticed


def _root(path: Path) -> int:
    root = SqliteFile.open(path).layouts["KERNEL"].root
    assert path.read_bytes()[(root - 1) * PAGE] == 5  # an interior page
    return root


def _children(data: bytes | bytearray, number: int) -> list[int]:
    """Where the child page numbers of an interior page lie in the file."""
    base = (number - 1) * PAGE
    count = int.from_bytes(data[base + 3 : base + 5], "big")
    pointers = [base + 12 + 2 * i for i in range(count)]
    return [base + int.from_bytes(data[at : at + 2], "big") for at in pointers] + [base + 8]


def test_a_page_that_is_its_own_child(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(whole)
    root = _root(path)
    data = bytearray(whole)
    for at in _children(whole, root):
        data[at : at + 4] = root.to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="malformed"):
        SqliteFile.open(path).read("KERNEL", ["start"])


def test_a_row_that_goes_past_the_end_of_its_page(whole: bytes, tmp_path: Path) -> None:
    """SQLite alone reads on in memory, and says now this, now that."""
    path = tmp_path / "trace.sqlite"
    path.write_bytes(whole)
    data = bytearray(whole)
    first = _children(whole, _root(path))[0]
    leaf = (int.from_bytes(data[first : first + 4], "big") - 1) * PAGE
    assert data[leaf] == 13  # a leaf
    data[leaf + 8 : leaf + 10] = (PAGE - 2).to_bytes(2, "big")
    data[leaf + PAGE - 2 : leaf + PAGE] = 0x30, 1  # 48 bytes, row 1
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="malformed"):
        SqliteFile.open(path).read("KERNEL", ["start"])


def test_a_child_whose_row_number_goes_past_the_end_of_its_page(
    whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(whole)
    data = bytearray(whole)
    last = _root(path) * PAGE - 1
    assert data[last] < 0x80  # where the row number of the first child ends
    data[last] = 0xFF
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="malformed"):
        SqliteFile.open(path).read("KERNEL", ["start"])


def test_pages_that_lead_to_more_rows_than_there_is_room_for(tmp_path: Path) -> None:
    """Every interior page has one child, many times over: SQLite alone would go on for ever."""
    path = make_trace(tmp_path / "trace.sqlite", 30_000, page_size=PAGE)
    data = bytearray(path.read_bytes())
    root = _root(path)
    interior = [
        number
        for number in range(2, len(data) // PAGE + 1)
        if data[(number - 1) * PAGE] == 5 and number != root
    ]
    leaf = int.from_bytes(data[(at := _children(data, interior[0])[0]) : at + 4], "big")
    chain = [root, *interior[:8], leaf]
    for number, below in pairwise(chain):
        for at in _children(data, number):
            data[at : at + 4] = below.to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="more rows than the file has room for"):
        SqliteFile.open(path).read("KERNEL", ["start"])


@pytest.mark.parametrize("pages", [1, 2, 20])
def test_a_file_cut_at_a_page(whole: bytes, tmp_path: Path, pages: int) -> None:
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[: pages * PAGE])
    assert check_damaged(path) == ["DatabaseError"]
