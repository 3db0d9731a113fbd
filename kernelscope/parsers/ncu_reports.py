"""Reports of Nsight Compute, ``.ncu-rep``, through NVIDIA's package ``ncu-report``.

The package (``pip install 'kernelscope[ncu]'``) reads reports of every version, needs no GPU, and
gives each value as it was counted: unscaled, whole numbers exactly. What is not in it, such as the
process and the version of the tool, is read from the report's blocks (:mod:`ncu_blocks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from kernelscope.errors import DamagedFileError, NeedsExportError
from kernelscope.parsers import counter_units, ncu_blocks
from kernelscope.parsers.counter_file import CounterFile
from kernelscope.parsers.counter_set import SHAPE, Collected, CounterSet, Value

NAME = "ncu report"
DESCRIPTION = "reports of Nsight Compute (.ncu-rep)"

INSTALL = (
    "Install the package that reads it, which needs no GPU: pip install 'kernelscope[ncu]'; or "
    "print the report as text where ncu is: ncu --import REPORT.ncu-rep --csv --page raw > FILE.csv"
)
AGAIN = "Copy it again, if it was whole elsewhere; else profile again: ncu --export REPORT PROGRAM"

_GRID = [f"launch__{part}_dim_{axis}" for part in ("grid", "block") for axis in "xyz"]
_NUMBERS = {
    "device_id": "launch__device_id",
    "context_id": "launch__context_id",
    "stream_id": "launch__stream_id",
    "compute_major": "device__attribute_compute_capability_major",
    "compute_minor": "device__attribute_compute_capability_minor",
    **dict(zip(SHAPE, _GRID, strict=True)),
}
_DEVICE_NAME = "device__attribute_display_name"
_PASSES = "profiler__replayer_passes"


def recognises(file: CounterFile) -> bool:
    """Return whether the file begins as a report; never raises."""
    return file.head.startswith(ncu_blocks.MAGIC)


def parse(file: CounterFile) -> CounterSet:
    """Read every result of a report.

    Raises
    ------
    NeedsExportError
        If the package that reads reports is not installed.
    DamagedFileError
        If the report is cut off, or holds no result.
    """
    try:
        with file.path.open("rb") as opened:
            report = ncu_blocks.read(opened)
    except ncu_blocks.BrokenBlockError as error:
        raise DamagedFileError(
            f"{file.path} is a report of Nsight Compute that was cut off or damaged: {error}, and "
            f"the file has {file.path.stat().st_size:,} bytes.",
            AGAIN,
        ) from error
    part = Collected("ncu", str(file.path), "ncu report", counter_units.of_ncu)
    for place, action in enumerate(_actions(file)):
        process = report.processes[place] if place < len(report.processes) else (None, None)
        _add_action(part, action, place, process[0])
    if not part.executions:
        raise DamagedFileError(
            f"{file.path} is a report of Nsight Compute without a result: no kernel was profiled.",
            "Look at what ncu printed: a filter that no kernel matched, or no permission to count "
            "(ERR_NVGPUCTRPERM).",
        )
    programs = [name for _, name in report.processes if name]
    part.source.update(
        tool_version=report.tool_version,
        started_at=report.started_at,
        process_name=programs[0] if programs else None,
        passes=_most_passes(part),
        **report.options(),
    )
    whole = part.finished()
    doubts = tuple(_doubts(file, report, len(part.executions)))
    return CounterSet(whole.counters, whole.executions, whole.sources, doubts)


def _doubts(file: CounterFile, report: ncu_blocks.Report, executions: int) -> Iterator[str]:
    results = len(report.processes)
    if results != executions:
        yield f"{file.path}: of {results:,} results the package for reports gave {executions:,}."
    if report.tool_version is None:  # it stands behind the first result
        yield (
            f"{file.path} does not say which version of Nsight Compute wrote it, as whole reports "
            "do: it may be cut off between two results."
        )


def _actions(file: CounterFile) -> Iterator[Any]:
    """Iterate over the results of a report in the order of their launches."""
    try:
        import ncu_report  # noqa: PLC0415 - an extra, of 17 MB
    except ImportError as error:
        raise NeedsExportError(
            f"{file.path} is a report of Nsight Compute, and the package ncu-report, which reads "
            "it, is not installed.",
            INSTALL,
        ) from error
    try:
        context = ncu_report.load_report(str(file.path))
    except Exception as error:  # whatever the library raises
        raise DamagedFileError(
            f"{file.path} is a report of Nsight Compute that cannot be read: {error}", AGAIN
        ) from error
    for index in range(context.num_ranges()):
        results = context.range_by_idx(index)
        for number in range(results.num_actions()):
            yield results.action_by_idx(number)


def _add_action(part: Collected, action: Any, place: int, process: int | None) -> None:
    metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
    known = {name: _value(metric) for name, metric in metrics.items() if metric is not None}
    row = len(part.executions)
    numbers = {column: _whole(known.get(metric)) for column, metric in _NUMBERS.items()}
    device = known.get(_DEVICE_NAME)
    part.executions.append(
        {
            **numbers,
            "execution": place,
            "process_id": process,
            "kernel_name": action.name(action.NameBase_DEMANGLED) or action.name(),
            "device_name": device if isinstance(device, str) else None,
        }
    )
    for name, value in known.items():
        problem = "no_value" if value is None else None
        part.add(row, name, value, metrics[name].unit(), problem=problem)


def _value(metric: Any) -> Value:
    value = metric.value()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str) else None


def _whole(value: Value) -> int | None:
    """Return a whole number, which older reports hold as a double."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _most_passes(part: Collected) -> int | None:
    found = zip(part.metric, part.value, strict=True)
    passes = [whole for metric, value in found if metric == _PASSES and (whole := _whole(value))]
    return max(passes, default=None)
