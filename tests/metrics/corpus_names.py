"""Kernel names of the corpus, and what each is known to say.

The names belong to other people's runs: the project holds a digest of each, beside the function's
own name where that is a library's, and what somebody who read the whole name says of it. A row
without a family is a name that the decoder is known not to know: a program's own kernel.

``python -m tests.metrics.corpus_names`` prints the file anew; read what changed before keeping it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from kernelscope.errors import KernelscopeError
from kernelscope.metrics.kernel_decoder import KernelName, decode
from kernelscope.parsers import read
from kernelscope.parsers.counter_formats import read_counters
from tests.corpus import CORPUS, nsys_traces, nvprof_traces

EXPECTED = Path(__file__).with_name("corpus_names.csv")
COLUMNS = ("digest", "function", "family", "operation", "direction", "input_type", "pipe",
           "tensor_core")  # fmt: skip
_NOT_OURS_TO_TELL = ("openmp", "openacc", "numba", "mxnet")
"""Families whose functions a program names."""


def digest(name: str) -> str:
    """Return what stands for a name in the file."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def expected() -> dict[str, dict[str, str]]:
    """Return the rows of the file by digest."""
    with EXPECTED.open(encoding="utf-8", newline="") as lines:
        return {row["digest"]: row for row in csv.DictReader(lines)}


def row_of(found: KernelName, name: str) -> dict[str, str]:
    """Return the row that a decoded name makes."""
    said = {column: getattr(found, column, None) for column in COLUMNS[2:]}
    own = found.family is None or found.family in _NOT_OURS_TO_TELL
    said |= {"digest": digest(name), "function": "" if own else found.function[:80]}
    return {column: "" if said[column] is None else str(said[column]) for column in COLUMNS}


@cache
def times() -> Counter[str]:
    """Return the time of each kernel of the corpus in ns, 0 where only counters were recorded."""
    assert CORPUS is not None
    total: Counter[str] = Counter()
    for path in (*nsys_traces(), *nvprof_traces()):
        total.update(_trace(path))
    for path in sorted((CORPUS / "traces" / "kineto").glob("*.gz")):
        total.update(_kineto(path))
    for path in sorted((CORPUS / "traces" / "ncu").glob("*")):
        total.update(_counted(path))
    labels = CORPUS / "oracles" / "nersc-dl-profiling" / "kernel_labels_v100.csv"
    for row in labelled(labels):
        total[row["kernel_name"]] += round(float(row["time_s"]) * 1e9)
    return total


def labelled(path: Path) -> list[dict[str, str]]:
    """Return the kernels of which somebody counted whether they used tensor cores."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _trace(path: Path) -> dict[str, int]:
    try:
        kernels = read(path).kernels
    except KernelscopeError:
        return {}
    names = kernels.categories("name")
    spans = kernels["end_ns"].astype(np.int64) - kernels["start_ns"]
    sums = np.bincount(kernels["name"], weights=spans, minlength=len(names))
    counts = np.bincount(kernels["name"], minlength=len(names))
    return {name: int(ns) for name, ns, n in zip(names, sums, counts, strict=True) if n}


def _kineto(path: Path) -> Counter[str]:
    """Return the kernels of a Chrome trace; one file is damaged, so events are sought in it."""
    text = gzip.decompress(path.read_bytes()).decode()
    decoder = json.JSONDecoder()
    total: Counter[str] = Counter()
    for match in re.finditer(r'\{\s*"ph"', text):
        try:
            event, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if str(event.get("cat", "")).lower() == "kernel":
            total[event["name"]] += round(1000 * float(event.get("dur", 0)))
    return total


def _counted(path: Path) -> dict[str, int]:
    try:
        executions = read_counters(path).executions
    except KernelscopeError:
        return {}
    return {name: 0 for name in executions.texts("kernel_name") if name}


def main() -> None:
    """Print the file as the decoder would have it."""
    rows = sorted(
        (row_of(decode(name), name) for name in times()),
        key=lambda row: (row["family"], row["function"], row["digest"]),
    )
    print(",".join(COLUMNS))  # noqa: T201 - a script
    for row in rows:
        print(",".join(row[column] for column in COLUMNS))  # noqa: T201


if __name__ == "__main__":
    main()
