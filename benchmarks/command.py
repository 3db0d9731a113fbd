"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from benchmarks.exports import KINDS, LARGEST, export
from benchmarks.measuring import ROOT, ChildError, compiled_modules, run
from benchmarks.results import Results, load, save
from benchmarks.rounds import measure
from benchmarks.table import text
from benchmarks.targets import as_data, verdicts
from benchmarks.workloads import child

DESCRIPTION = "Measure kernelscope beside SQLite, pandas and nsys."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, or show the results of an earlier run; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.show:
            results = load(options.show)
        else:
            results = _measured(options)
            path = options.output or _default_output(results)
            save(results, path, as_data(verdicts(results)))
            _progress(f"written: {path}")
    except (ChildError, ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(text(results))
    return 0


def _measured(options: argparse.Namespace) -> Results:
    began = datetime.now(UTC)
    described = machine.machine()  # first of all: the load is not ours yet
    with _folder(options.files) as folder, compiled_modules():
        exports = []
        for kernels in options.kernels:
            for kind in (each for each in KINDS if kernels <= LARGEST.get(each, kernels)):
                _progress(f"export: {kind}, {kernels:,} kernels")
                exports.append(export(folder, kind, kernels))
        series = measure(folder, exports, options.repeats, _progress)
    return Results(
        date=began.isoformat(timespec="seconds"),
        kernelscope=machine.kernelscope() | {"compiled": True},
        machine=described,
        versions=machine.versions(),
        repeats=options.repeats,
        help_imports_numpy=run(child("help-modules"), dict).said["numpy"],
        exports=tuple(exports),
        series=tuple(series),
    )


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is None:
        with tempfile.TemporaryDirectory(prefix="kernelscope-benchmarks-") as made:
            yield Path(made)
    else:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()


def _default_output(results: Results) -> Path:
    name = f"{results.date[:10]}-{machine.short_cpu(results.machine['cpu'])}.json"
    return ROOT / "benchmarks" / "results" / name


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _kernels(given: str) -> int:
    number = float(given)
    if number < 1 or not number.is_integer():
        raise ValueError
    return int(number)


def _rounds(given: str) -> int:
    if int(given) < 1:
        raise ValueError
    return int(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=DESCRIPTION)
    parser.add_argument(
        "--kernels",
        nargs="+",
        type=_kernels,
        default=[10_000, 100_000, 1_000_000],
        metavar="N",
        help="how many kernels the exports have; by default 1e4 1e5 1e6",
    )
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="take the exports from here, and leave those made; by default they are deleted",
    )
    parser.add_argument(
        "--repeats", type=_rounds, default=5, metavar="N", help="rounds that count; by default 5"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write the samples; by default benchmarks/results/DATE-CPU.json",
    )
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="print the table of an earlier run instead"
    )
    return parser
