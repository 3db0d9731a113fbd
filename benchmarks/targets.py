"""What the figures should be, and whether they are.

A ratio is formed within each round, of processes that ran side by side, and its median over the
rounds counts. SQLite's side is always the CPU time of the statement alone, from connecting to the
last row, as the process clocks itself: Python's start and imports are not in it. kernelscope's
side is the same for the reading of columns, and the whole process for a command.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.results import Results, figures

Quantity = tuple[str, str | None, str]
"""Workload, export, figure."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure beside its target.

    Attributes
    ----------
    title : str
        What it is.
    unit : str
        ``×``, ``s``, ``ms``, ``GB`` (10⁹ bytes) or ``modules``.
    limit : float or None
        The most that it should be; None for what is shown to compare.
    values : list of float
        One a round; empty if it was not measured.
    """

    title: str
    unit: str
    limit: float | None
    values: list[float]

    @property
    def value(self) -> float | None:
        """The median."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none, or nothing was measured."""
        if self.limit is None or self.value is None:
            return None
        return self.value <= self.limit


def verdicts(results: Results) -> list[Verdict]:
    """Hold the figures against every target."""
    found = [*_start(results)]
    for kernels in (1_000_000, 10_000_000):
        found += _reading(results, kernels)
    found += _whole(results)
    return [each for each in found if each.limit is not None or each.values]


def as_data(found: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Return verdicts as plain data."""
    return [asdict(each) | {"value": each.value, "met": each.met} for each in found]


def _of(results: Results, quantity: Quantity) -> list[float]:
    workload, export, figure = quantity
    return figures(results.find(workload, export), figure)


def _ratios(results: Results, over: Quantity, under: Quantity) -> list[float]:
    """Return the ratios round by round; a large export takes part in the first rounds only."""
    pairs = zip(_of(results, over), _of(results, under), strict=False)
    return [above / below for above, below in pairs if below]


def _start(results: Results) -> list[Verdict]:
    helps, bare = (_of(results, (name, None, "wall_s")) for name in ("help", "python"))
    extra = [(help_ - python) * 1e3 for help_, python in zip(helps, bare, strict=True)]
    ten_thousand = _of(results, ("analyze", "training_10000", "cpu_s"))
    return [
        Verdict("kernelscope --help, wall time over python -c pass", "ms", 60, extra),
        Verdict("kernelscope --help, imports of NumPy", "", 0, [results.help_imports_numpy + 0.0]),
        Verdict("analyze, 10⁴ kernels, CPU", "s", 0.35, ten_thousand),
    ]


def _reading(results: Results, kernels: int) -> list[Verdict]:
    export = f"training_{kernels}"
    read = ("read_columns", export, "read.cpu_s")
    size = power(kernels)

    def over(title: str, limit: float | None, under: Quantity, above: Quantity = read) -> Verdict:
        return Verdict(f"{title}, {size}", "×", limit, _ratios(results, above, under))

    return [
        over("reading / SQLite's sum", 3, ("sqlite_sum", export, "statement.cpu_s")),
        over("reading / pandas.read_sql", 0.1, ("pandas", export, "read_sql.cpu_s")),
        over(
            "reading / SQLite's sum, whole processes",
            None,
            ("sqlite_sum", export, "cpu_s"),
            ("read_columns", export, "cpu_s"),
        ),
    ]


def _whole(results: Results) -> list[Verdict]:
    found = [_device_report(results)]
    for kind, what, limit, grows, memories in (
        ("plain", "analyze", 4.0, 12, (0.35, 2.2)),
        ("training", "analyze, nested ranges", 4.0, 12, (None, None)),
        ("operators", "analyze, a range a launch", None, None, (None, None)),
    ):
        million, ten = f"{kind}_1000000", f"{kind}_10000000"
        analyze = ("analyze", million, "cpu_s")
        for title, most, under in (
            (f"{what} / SQLite's GROUP BY, 10⁶", limit, "sqlite_group_by.statement"),
            (f"{what} / SQLite's GROUP BY, whole processes, 10⁶", None, "sqlite_group_by"),
            (f"{what} / SQLite's text summary, 10⁶", None, "sqlite_summary.statement"),
        ):
            workload, *stage = under.split(".")
            quantity = (workload, million, ".".join((*stage, "cpu_s")))
            found.append(Verdict(title, "×", most, _ratios(results, analyze, quantity)))
        growth = _ratios(results, ("analyze", ten, "cpu_s"), analyze)
        found.append(Verdict(f"{what}, growth from 10⁶ to 10⁷", "×", grows, growth))
        for export, size, memory in zip((million, ten), ("10⁶", "10⁷"), memories, strict=True):
            title = f"{what}, peak memory, {size}"
            found.append(Verdict(title, "GB", memory, _memory(results, export)))
    return found


def _device_report(results: Results) -> Verdict:
    """Return the bound of what `analyze` was at first: kernels, copies, calls and devices."""
    million = "plain_1000000"
    over = ("device_report", million, "cpu_s")
    ratios = _ratios(results, over, ("sqlite_group_by", million, "statement.cpu_s"))
    return Verdict("report of kernels and devices / SQLite's GROUP BY, 10⁶", "×", 2.5, ratios)


def _memory(results: Results, name: str) -> list[float]:
    """Return the peaks: the file is read, not mapped, so none of it counts as memory."""
    return [peak / 1e9 for peak in _of(results, ("analyze", name, "max_rss_bytes"))]


def power(kernels: int) -> str:
    """Return a number as people write it: ``10⁶`` for a power of ten, else ``2,000``."""
    digits = str(kernels)
    if kernels >= 1000 and digits.strip("0") == "1":
        return "10" + str(len(digits) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{kernels:,}"
