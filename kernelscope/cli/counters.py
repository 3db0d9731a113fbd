"""``kernelscope counters``: what the hardware counted, and for which kernels."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from kernelscope.cli.lists import listing, write
from kernelscope.cli.output import destination
from kernelscope.cli.progress import progress
from kernelscope.errors import SelectionError, nearest

if TYPE_CHECKING:
    from kernelscope.parsers.counter_set import CounterSet
    from kernelscope.trace import Table


@click.command("counters")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@click.option(
    "--metric",
    "metrics",
    metavar="GLOB",
    multiple=True,
    help="Only counters of this name: 'dram__*'; may be repeated.",
)
@click.option(
    "--kernel",
    "kernels",
    metavar="GLOB",
    multiple=True,
    help="Only kernels of this name: '*gemm*'; may be repeated.",
)
@click.option(
    "--by",
    type=click.Choice(["kernel", "shape", "execution"]),
    default="kernel",
    show_default=True,
    help="Bring the executions of a kernel together, those of one grid and block, or none.",
)
@listing
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    files: tuple[str, ...],
    metrics: tuple[str, ...],
    kernels: tuple[str, ...],
    by: str,
    top: int,
    format_name: str,
    output: str | None,
) -> int:
    """Say what the hardware counted, and for which kernels.

    FILE is a report of Nsight Compute (.ncu-rep), CSV that ncu or nvprof printed, with whatever
    the program printed around it, or a database of nvprof that holds metrics. Several files are
    several runs of a program, such as one for each metric.

    \b
    Examples:
      kernelscope counters report.ncu-rep --metric 'dram__bytes*'
      kernelscope counters flops.csv bytes.csv --kernel '*gemm*' --by shape
      kernelscope counters metrics.nvprof --format csv --output counters.csv
    """  # noqa: D301 - click wants the control character
    targets = [destination(output, file) for file in files]
    with progress(1) as step:
        step(f"Reading {os.path.basename(files[0])}")
        from kernelscope.parsers.counter_formats import read_counters  # noqa: PLC0415
        from kernelscope.report import counters as report  # noqa: PLC0415 - not for --help

        counted = chosen(read_counters(*files), kernels, metrics)
        table = _table(counted, by)
    write(
        format_name,
        targets[0],
        top,
        text=lambda page: report.page_of(counted, table, page, properties=bool(metrics)),
        data=lambda: report.document(counted, table),
        table=table,
    )
    return 0


def _table(counted: CounterSet, by: str) -> Table:
    return counted.counters if by == "execution" else counted.by_kernel(shapes=by == "shape")


def chosen(counted: CounterSet, kernels: Sequence[str], metrics: Sequence[str]) -> CounterSet:
    """Return the part that globs name; all of it where there is none.

    Raises
    ------
    SelectionError
        If a glob names nothing that was counted.
    """
    for globs, column, option in (
        (kernels, "kernel_name", "--kernel"),
        (metrics, "metric", "--metric"),
    ):
        table = counted.executions if column == "kernel_name" else counted.counters
        names = table.categories(column)
        for glob in globs:
            if not any(map(_accepts([glob]), names)):
                raise SelectionError(f"{option} {glob!r} names nothing.", nearest(glob, names))
    if not (kernels or metrics):
        return counted
    return counted.where(kernel=_accepts(kernels), metric=_accepts(metrics))


def _accepts(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether a name matches one of the globs, or is that name itself."""
    if not globs:
        return lambda _: True
    pattern = re.compile("|".join(fnmatch.translate(glob) for glob in globs))
    return lambda name: name in globs or pattern.match(name) is not None
