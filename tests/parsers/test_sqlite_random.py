"""Random databases: both ways of reading agree with plain sqlite3, or the fast one refuses."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelscope.parsers.sqlite import SqliteFile
from tests.parsers.tables import check_table

_EDGES = [0, 1, 2, -1, 127, 128, -128, -129]
_EDGES += [
    side * 2**bits + off for bits in (15, 23, 31, 47, 62) for side in (1, -1) for off in (-1, 0)
]
_EDGES += [2**63 - 1, -(2**63), -(2**31) - 1]
_REALS = [0.0, -0.0, 1.0, -3.0, 0.5, 1e300, -1e-300, float("inf"), 2.0**52, 2.0**60]
_LETTERS = ["a", "B", " ", "é", "漢", "🙂", "\0", "\\xff", "'"]
_LENGTHS = [0, 1, 2, 7, 8, 9, 15, 16, 17, 57, 58, 59, 100, 255, 256, 257, 300]
_TYPES = [
    "INTEGER",
    "INT",
    "INTEGER NOT NULL",
    "TEXT",
    "TEXT NOT NULL",
    "REAL",
    "",
    "NUMERIC",
    "BLOB",
]


@dataclass(frozen=True)
class Recipe:
    """How a database is made."""

    page_size: int
    auto_vacuum: int
    encoding: str
    wal: bool
    types: tuple[str, ...]
    key: str
    without_rowid: bool
    rowids: str
    rows: int
    null_share: float
    odd_share: float
    long_text: int
    delete: bool
    vacuum: bool
    add: str
    seed: int


recipes = st.builds(
    Recipe,
    page_size=st.sampled_from([512, 1024, 4096, 4096, 32768, 65536]),
    auto_vacuum=st.sampled_from([0, 0, 1, 2]),
    encoding=st.sampled_from(["UTF-8"] * 6 + ["UTF-16le", "UTF-16be"]),
    wal=st.sampled_from([False] * 7 + [True]),
    types=st.lists(st.sampled_from(_TYPES), min_size=1, max_size=12).map(tuple),
    key=st.sampled_from(
        ["", "", "INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY DESC", "INT PRIMARY KEY"]
    ),
    without_rowid=st.sampled_from([False] * 9 + [True]),
    rowids=st.sampled_from(["natural", "huge", "negative", "any"]),
    rows=st.sampled_from([0, 1, 2, 10, 100, 400, 1500]),
    null_share=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    odd_share=st.sampled_from([0.0, 0.0, 0.0, 0.01]),
    long_text=st.sampled_from([0, 0, 0, 3000]),
    delete=st.booleans(),
    vacuum=st.booleans(),
    add=st.sampled_from(["", "", "INTEGER", "TEXT", "REAL DEFAULT NULL", "INTEGER DEFAULT 7"]),
    seed=st.integers(0, 2**32),
)


def _text(rng: random.Random, recipe: Recipe) -> str:
    length = rng.choice([*_LENGTHS, recipe.long_text] if rng.random() < 0.1 else _LENGTHS[:8])
    return "".join(rng.choices(_LETTERS, k=length)) if rng.random() < 0.5 else "x" * length


def _value(rng: random.Random, declared: str, recipe: Recipe) -> Any:
    if rng.random() < recipe.odd_share:
        return rng.choice([None if "NOT NULL" not in declared else 5, 2.5, "odd", b"\xff\0", 3])
    if rng.random() < recipe.null_share and "NOT NULL" not in declared:
        return None
    if declared.startswith("TEXT"):
        return _text(rng, recipe)
    if declared == "REAL":
        return rng.choice(_REALS)
    return rng.choice(_EDGES) if rng.random() < 0.3 else rng.randrange(rng.choice([2, 200, 70_000]))


def _keys(rng: random.Random, recipe: Recipe) -> list[int]:
    spans = {
        "natural": (1, 5000),
        "huge": (2**45, 2**63 - 1),
        "negative": (-(2**63), -1),
        "any": (-(2**63), 2**63 - 1),
    }
    low, high = spans[recipe.rowids]
    keys = {rng.randint(low, high) for _ in range(recipe.rows)}
    return sorted(keys | {low, high} if recipe.rows > 2 else keys)


def _create(db: sqlite3.Connection, recipe: Recipe) -> list[str]:
    """Create the table; return its columns' types in order."""
    db.execute("PRAGMA synchronous = OFF")
    db.execute(f"PRAGMA page_size = {recipe.page_size}")
    db.execute(f"PRAGMA auto_vacuum = {recipe.auto_vacuum}")
    db.execute(f"PRAGMA encoding = '{recipe.encoding}'")
    types = list(recipe.types)
    key = recipe.key or ("INTEGER PRIMARY KEY" if recipe.without_rowid else "")
    if key:
        types.insert(len(types) // 2, key)
    columns = ", ".join(f'"c {i}" {declared}' for i, declared in enumerate(types))
    db.execute(f"CREATE TABLE t ({columns}){' WITHOUT ROWID' if recipe.without_rowid else ''}")
    if recipe.wal:
        db.execute("PRAGMA journal_mode = WAL")
    return types


def _insert(db: sqlite3.Connection, rng: random.Random, recipe: Recipe, types: list[str]) -> None:
    named = [f'"c {i}"' for i in range(len(types))]
    rowid = not any("PRIMARY KEY" in declared for declared in types)
    marks = ", ".join("?" * (len(named) + rowid))
    names = ", ".join(["rowid"] * rowid + named)
    keys = _keys(rng, recipe)
    rows = [
        [key] * rowid
        + [
            key if "PRIMARY KEY" in declared else _value(rng, declared, recipe)
            for declared in types
        ]
        for key in keys
    ]
    db.execute("BEGIN")
    db.executemany(f"INSERT OR IGNORE INTO t ({names}) VALUES ({marks})", rows)
    db.execute("COMMIT")


def _build(db: sqlite3.Connection, recipe: Recipe) -> None:
    rng = random.Random(recipe.seed)
    db.create_function("chance", 0, rng.random)
    types = _create(db, recipe)
    _insert(db, rng, recipe, types)
    if recipe.delete:
        db.execute("DELETE FROM t WHERE chance() < 0.3")
    if recipe.add:
        db.execute(f'ALTER TABLE t ADD COLUMN "c {len(types)}" {recipe.add}')
        _insert(db, rng, recipe, [*types, recipe.add.split()[0]])
    if recipe.vacuum and not recipe.wal:
        db.execute("VACUUM")


def _check(recipe: Recipe) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            _build(db, recipe)
            if recipe.wal:  # the log is only there as long as the writer is
                how = check_table(SqliteFile.open(path), "t").how
                assert how.startswith("sqlite3: a write-ahead log") or not recipe.rows
        return check_table(SqliteFile.open(path), "t").how


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(recipes)
def test_both_paths_agree_with_plain_sqlite3(recipe: Recipe) -> None:
    _check(recipe)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(recipes)
def test_what_is_ordinary_is_read_by_columns(recipe: Recipe) -> None:
    fields = {name: getattr(recipe, name) for name in Recipe.__dataclass_fields__}
    usual = {
        "encoding": "UTF-8",
        "wal": False,
        "without_rowid": False,
        "odd_share": 0.0,
        "long_text": 0,
        "add": "",
        "page_size": max(recipe.page_size, 32768),
    }
    assert _check(Recipe(**{**fields, **usual})) == "columnar"
