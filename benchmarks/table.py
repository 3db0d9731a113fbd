"""The results as a table for people."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.exports import KINDS, Export
from benchmarks.results import Results, figures
from benchmarks.targets import Verdict, power, verdicts
from benchmarks.workloads import START_UPS, WORKLOADS, Workload
from kernelscope.units import MISSING, count

HEAD = ("", "CPU s", "±", "of it the work", "wall s", "peak MB")


def text(results: Results) -> str:
    """Return everything that was measured, and the targets."""
    lines = [*_about(results)]
    rows = [_row(results, each, None) for each in START_UPS]
    lines += ["", "Start", *_aligned([HEAD[:-1], *(row[:-1] for row in rows)])]
    for export in results.exports:
        chosen = [each for each in WORKLOADS if export.kind in each.kinds]
        lines += ["", _title(export)]
        lines += _aligned([HEAD, *(_row(results, each, export) for each in chosen)])
    lines += ["", "Targets: median of the rounds, lowest to highest", *_targets(results)]
    return "\n".join(lines)


def _about(results: Results) -> Iterator[str]:
    machine, versions, code = results.machine, results.versions, results.kernelscope
    commit = code["commit"]  # unknown outside a checkout
    known = f" ({commit[:12]}{', changed' if code['changed'] else ''})" if commit else ""
    yield f"kernelscope {code['version']}{known}, {results.date[:10]}"
    yield (
        f"{machine['cpu']}, {machine['cores'] or machine['cores_of_machine']} cores, "
        f"{machine['memory_bytes'] / 1e9:.0f} GB; {machine['system']}"
    )
    yield ", ".join(
        f"{name} {version or 'not here'}" for name, version in versions.items() if name != "click"
    )
    yield (
        f"Medians of {results.repeats} rounds; ± is the median deviation from them. "
        "CPU: user and system, whole process."
    )
    if code.get("compiled"):
        yield "The warm-up compiles the Python modules, as pip does when it installs them."


def _title(export: Export) -> str:
    return (
        f"{power(export.kernels)} kernels, {export.bytes / 1e6:,.0f} MB, "
        f"{count(export.ranges)} ranges: {KINDS[export.kind]}"
    )


def _row(results: Results, workload: Workload, export: Export | None) -> tuple[str, ...]:
    """Return the medians of a workload as text, under :data:`HEAD`."""
    series = results.find(workload.name, export.name if export else None)
    if series is None or not series.samples:
        reason = series.absent if series and series.absent else "not measured"
        return (f"{workload.title} ({reason})", *[MISSING] * (len(HEAD) - 1))
    cpu = figures(series, "cpu_s")
    peak = statistics.median(figures(series, "max_rss_bytes")) / 1e6
    work = [
        f"{stage} {seconds(figures(series, f'{stage}.cpu_s'))}"
        for stage in series.samples[0].stages
    ]
    return (
        workload.title,
        seconds(cpu),
        _spread(cpu),
        ", ".join(work) or MISSING,
        seconds(figures(series, "wall_s")),
        f"{peak:,.0f}",
    )


def _targets(results: Results) -> list[str]:
    rows = [("", "at most", "measured", "", "")]
    for each in verdicts(results):
        limit = MISSING if each.limit is None else f"{each.limit:g} {each.unit}"
        rows.append((each.title, limit, *_measured(each), _verdict(each)))
    return _aligned(rows)


def _measured(verdict: Verdict) -> tuple[str, str]:
    if verdict.value is None:
        return MISSING, ""
    low, high = min(verdict.values), max(verdict.values)
    value = f"{verdict.value:.3g} {verdict.unit}"
    return value, f"{low:.3g} to {high:.3g}" if len(verdict.values) > 1 else ""


def _verdict(verdict: Verdict) -> str:
    if verdict.value is None:
        return "not measured"
    if verdict.limit is None:
        return "to compare"
    if verdict.met:
        return "met"
    if verdict.limit == 0:
        return "NOT MET"
    return f"NOT MET: {verdict.value / verdict.limit - 1:.0%} over"


def seconds(values: Sequence[float]) -> str:
    """Return the median of `values` as text with three significant digits."""
    middle = statistics.median(values)
    return f"{middle:.3f}" if middle < 10 else f"{middle:.1f}"


def _spread(values: Sequence[float]) -> str:
    """Return the median deviation from the median, as a share of it."""
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return f"{deviation / middle:.0%}" if middle and len(values) > 1 else MISSING


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: the first column to the left, the others to the right."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(width[0])]
        cells += [cell.rjust(size) for cell, size in zip(rest, width[1:], strict=True)]
        lines.append("  ".join(("", *cells)).rstrip())
    return lines
