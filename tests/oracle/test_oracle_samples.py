"""The committed samples are what the generator makes, row by row, and small."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "traces"


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", FOLDER / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def content(path: Path) -> dict[str, tuple[str, list[Any]]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type='table'")
        return {
            name: (sql, database.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall())
            for name, sql in tables.fetchall()
        }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    maker().main(folder)
    return folder


@pytest.mark.parametrize("name", sorted(maker().SAMPLES))
def test_samples_are_as_committed(name: str, fresh: Path) -> None:
    assert content(fresh / f"{name}.sqlite") == content(FOLDER / f"{name}.sqlite")
    made, committed = (
        json.loads((folder / f"{name}.answers.json").read_text(encoding="utf-8"))
        for folder in (fresh, FOLDER)
    )
    assert made == committed


def test_samples_are_small_and_explained() -> None:
    files = sorted(FOLDER.glob("*.sqlite"))
    assert sum(file.stat().st_size for file in files) < 3_000_000
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {file.stem for file in files} == set(maker().SAMPLES)
    assert all(file.stem in text for file in files)
