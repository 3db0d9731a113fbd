"""The corpus: real traces of other people's runs, and what the vendors' tools print of them.

It is too large, and not ours, to lie in the project. Tests that need it look for it beside the
project (``../shared``) or where ``KERNELSCOPE_CORPUS`` points, and skip, saying so, elsewhere::

    from tests.corpus import each, nsys_traces, oracle

    @each(nsys_traces())
    def test_totals_agree(trace_file: Path) -> None:
        expected = oracle(trace_file.stem, "cuda_gpu_kern_sum")
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_LOOKED_IN = Path(os.environ.get("KERNELSCOPE_CORPUS") or _ROOT.parent / "shared")
_SQLITE_MAGIC = b"SQLite format 3\0"

CORPUS: Path | None = _LOOKED_IN if (_LOOKED_IN / "traces").is_dir() else None
"""The folder that holds ``traces`` and ``oracles``; None where there is none."""

needs_corpus = pytest.mark.skipif(
    CORPUS is None,
    reason=f"no corpus of traces in {_LOOKED_IN} (KERNELSCOPE_CORPUS can point elsewhere)",
)

needs_ncu_report = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None,
    reason="ncu-report is not installed: pip install 'kernelscope[ncu]'",
)


def each(traces: Sequence[Path], name: str = "trace_file") -> pytest.MarkDecorator:
    """Run a test once per trace, as its argument `name`; skip it once without the corpus.

    Reports of Nsight Compute are skipped where the package that reads them is not installed.
    """
    cases = [
        pytest.param(
            path, id=path.stem, marks=[needs_ncu_report] if path.suffix == ".ncu-rep" else []
        )
        for path in traces
    ]
    return pytest.mark.parametrize(
        name, cases if CORPUS else [pytest.param(None, id="no-corpus", marks=needs_corpus)]
    )


def nsys_traces() -> list[Path]:
    """Return the Nsight Systems exports; not the SQLite file among them that is none."""
    return [path for path in _files("nsys") if not path.name.startswith("NOTNSYS")]


def nvprof_traces() -> list[Path]:
    """Return the nvprof and Visual Profiler databases; not the older formats beside them."""
    return [path for path in _files("nvprof") if _is_sqlite(path)]


def oracle(trace_stem: str, report: str) -> list[dict[str, str]]:
    """Return what ``nsys stats`` printed of a trace, one dictionary a row.

    Parameters
    ----------
    trace_stem : str
        The trace's file name without its suffix.
    report : str
        The report's name, e.g. ``cuda_gpu_kern_sum``.

    Raises
    ------
    FileNotFoundError
        If there is no such report of that trace.
    """
    path = _oracle_path(trace_stem, report)
    if path is None:
        raise FileNotFoundError(f"no oracle {report} of {trace_stem} in {_LOOKED_IN}")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return list(csv.DictReader(lines))


def nsys_traces_with(report: str) -> list[Path]:
    """Return the Nsight Systems exports of which there is an oracle called `report`."""
    return [path for path in nsys_traces() if _oracle_path(path.stem, report)]


def _files(kind: str) -> list[Path]:
    return sorted(path for path in (CORPUS / "traces" / kind).iterdir()) if CORPUS else []


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC


def _oracle_path(trace_stem: str, report: str) -> Path | None:
    folder = _LOOKED_IN / "oracles" / "nsys_stats" / trace_stem
    paths = (folder / f"{report}{suffix}" for suffix in (".csv", ".csv.gz"))
    return next((path for path in paths if path.is_file()), None)


def nvprof_oracle(trace_stem: str, report: str) -> list[list[str]]:
    """Return what ``nvprof --csv -i`` printed of a database, line by line, cells apart.

    Parameters
    ----------
    trace_stem : str
        The database's file name without its suffix.
    report : str
        ``print-gpu-trace``, ``print-api-trace``, ``summary``, …

    Raises
    ------
    FileNotFoundError
        If there is no such report of that database.
    """
    folder = _LOOKED_IN / "oracles" / "nvprof"
    paths = [folder / f"{trace_stem}.{report}.csv{suffix}" for suffix in ("", ".gz")]
    for path in paths:
        if path.is_file():
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
                return list(csv.reader(lines))
    raise FileNotFoundError(f"no oracle {report} of {trace_stem} in {folder}")


def counter_files(kind: str, suffix: str) -> list[Path]:
    """Return the counter files of a folder of traces, ``ncu`` or ``nvprof``, by suffix."""
    return [path for path in _files(kind) if path.suffix == suffix]


def oracle_folder(name: str) -> Path:
    """Return a folder of oracles, whether it is there or not."""
    return _LOOKED_IN / "oracles" / name


def opened(path: Path) -> str:
    """Return the text of an oracle, compressed or not."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return lines.read()
