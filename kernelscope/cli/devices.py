"""``kernelscope devices``: which GPUs are known, and what they can do at most."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kernelscope.cli.lists import listing, write
from kernelscope.cli.options import gpus, known_gpus
from kernelscope.cli.output import destination

if TYPE_CHECKING:
    from pathlib import Path

    from kernelscope.device.matching import Match

Row = dict[str, Any]


@click.command("devices")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=known_gpus)
@click.option(
    "--trace",
    "file",
    metavar="FILE",
    type=click.Path(),
    help="Show what the GPUs of this trace are taken for, and why.",
)
@gpus
@listing
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    name: str | None,
    file: str | None,
    gpu: str | None,
    clock_hz: int | None,
    top: int,
    format_name: str,
    output: str | None,
) -> int:
    """Say which GPUs are known, and what they can do at most.

    Without NAME, the catalogue, newest GPUs first; with it, everything that is known of one GPU:
    each figure with its sources and how far it can be trusted, what a multiprocessor holds, and
    the peak of each pipe by input and accumulate type, dense.

    \b
    Examples:
      kernelscope devices
      kernelscope devices 'A100 80GB'
      kernelscope devices H100 --clock 1755
      kernelscope devices --trace trace.sqlite
    """  # noqa: D301 - click wants the control character
    if name is not None and file is not None:
        raise click.UsageError(
            "NAME and --trace do not go together: --gpu NAME says what its GPUs are."
        )
    if file is None and gpu is not None:
        raise click.UsageError("--gpu goes with --trace; kernelscope devices NAME shows one GPU.")
    if file is None and name is None and clock_hz is not None:
        raise click.UsageError("--clock goes with NAME or --trace.")
    target = destination(output, file)
    if file is not None:
        _of_trace(file, gpu, clock_hz, format_name, target, top)
    elif name is not None:
        _of_name(name, clock_hz, format_name, target, top)
    else:
        _catalogue(format_name, target, top)
    return 0


def _catalogue(format_name: str, target: Path | None, top: int) -> None:
    from kernelscope.device import devices  # noqa: PLC0415 - not for --help
    from kernelscope.report import devices as report  # noqa: PLC0415

    found = report.listed(devices())
    write(
        format_name,
        target,
        top,
        text=lambda page: report.list_page(found, page),
        data=lambda: report.document(found),
        table=report.catalogue(found),
    )


def _of_name(
    name: str, clock_hz: int | None, format_name: str, target: Path | None, top: int
) -> None:
    from kernelscope.device import find_device  # noqa: PLC0415 - not for --help
    from kernelscope.report import devices as report  # noqa: PLC0415

    found = find_device(name, clock_hz=clock_hz)
    write(
        format_name,
        target,
        top,
        text=lambda page: report.device_page(found, page),
        data=lambda: report.document([found]),
        table=report.peak_table([found]),
    )


def _of_trace(  # noqa: PLR0913, PLR0917 - what the command was asked for
    file: str,
    gpu: str | None,
    clock_hz: int | None,
    format_name: str,
    target: Path | None,
    top: int,
) -> None:
    from kernelscope.cli.progress import progress  # noqa: PLC0415 - not for --help
    from kernelscope.device.matching import match  # noqa: PLC0415
    from kernelscope.report import devices as report  # noqa: PLC0415

    if gpu is not None:
        match({}, gpu=gpu)  # an unknown name is refused before the work begins
    with progress(1) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.parsers import read  # noqa: PLC0415

        trace = read(file)
    found: list[tuple[Row, Match]] = [
        (row, match(row, gpu=gpu, clock_hz=clock_hz)) for row in _described(trace, gpu)
    ]
    write(
        format_name,
        target,
        top,
        text=lambda page: report.matches_page(found, page),
        data=lambda: report.matches_document(file, found),
        table=report.peak_table([each.device for _, each in found if each.device is not None]),
    )


def _described(trace: Any, gpu: str | None) -> list[Row]:
    """Return what the trace says of each GPU that CUDA sees, those alike once."""
    from kernelscope.metrics.known_devices import with_known_limits  # noqa: PLC0415

    rows = trace.devices.records()
    if gpu is not None:
        rows = with_known_limits(trace, gpu)[0].devices.records()
    seen: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        apart = ("process_id", "device_id", "gpu_id", "uuid", "bus", "identifies")
        same = tuple(value for key, value in row.items() if key not in apart)
        if row["device_id"] is not None:
            seen.setdefault(same, row)
    return list(seen.values())
