"""The data of a run of the benchmarks: frozen, written as JSON and read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.exports import Export
from benchmarks.measuring import Sample
from benchmarks.rounds import Series

SCHEMA_VERSION = 1
_SAMPLES = ("warmups", "samples")
_LINES_DEPTH = 4
"""Down to this depth JSON takes a line an item; a sample stands on one line."""


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured, where, on what.

    Attributes
    ----------
    date : str
        When it began, ISO 8601 in UTC.
    kernelscope : mapping
        ``version``, ``commit``, ``changed``: whether the code is another than the commit's;
        ``compiled``: whether modules were, before the rounds that count.
    machine, versions : mapping
        See :mod:`benchmarks.machine`.
    repeats : int
        Rounds that count.
    help_imports_numpy : bool
        Whether ``kernelscope --help`` imports NumPy.
    exports : tuple of Export
        The files.
    series : tuple of Series
        All samples.
    """

    date: str
    kernelscope: Mapping[str, Any]
    machine: Mapping[str, Any]
    versions: Mapping[str, Any]
    repeats: int
    help_imports_numpy: bool
    exports: tuple[Export, ...]
    series: tuple[Series, ...]

    def find(self, workload: str, export: str | None) -> Series | None:
        """Return the samples of a workload on an export; None if it was not run there."""
        for each in self.series:
            if (each.workload, each.export) == (workload, export):
                return each
        return None


def figures(series: Series | None, name: str) -> list[float]:
    """Return one figure of each sample.

    Parameters
    ----------
    series : Series or None
        None gives no figures.
    name : str
        A field of :class:`Sample`, or ``stage.field`` for one of a stage: ``read.cpu_s``.
    """
    *stage, field = name.split(".")
    samples = series.samples if series else []
    if stage:
        return [sample.stages[stage[0]][field] for sample in samples]
    return [float(getattr(sample, field)) for sample in samples]


def save(results: Results, path: Path, verdicts: list[dict[str, Any]]) -> None:
    """Write the data, and what they say about the targets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"schema_version": SCHEMA_VERSION, **asdict(results), "targets": verdicts}
    path.write_text(_text(data) + "\n", encoding="utf-8")


def load(path: Path) -> Results:
    """Read what :func:`save` wrote.

    Raises
    ------
    ValueError
        If the file is of another version of the schema.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    found = data.pop("schema_version", None)
    if found != SCHEMA_VERSION:
        raise ValueError(f"{path} has schema version {found}, not {SCHEMA_VERSION}")
    del data["targets"]  # they follow from the samples
    exports = tuple(Export(**each) for each in data.pop("exports"))
    series = tuple(_series(each) for each in data.pop("series"))
    return Results(**data, exports=exports, series=series)


def _series(data: dict[str, Any]) -> Series:
    warmups, samples = ([Sample(**each) for each in data.pop(name)] for name in _SAMPLES)
    return Series(**data, warmups=warmups, samples=samples)


def _text(value: Any, depth: int = 0) -> str:
    if depth == _LINES_DEPTH or not isinstance(value, dict | list | tuple) or not value:
        return json.dumps(value, ensure_ascii=False)
    indent = "  " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_text(each, depth + 1)}" for key, each in value.items()]
        opening, closing = "{}"
    else:
        items = [_text(each, depth + 1) for each in value]
        opening, closing = "[]"
    inner = f",\n{indent}".join(items)
    return f"{opening}\n{indent}{inner}\n{indent[2:]}{closing}"
