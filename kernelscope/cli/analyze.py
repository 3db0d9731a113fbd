"""``kernelscope analyze``: where the time of a trace went."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from kernelscope.cli.formats import DEFAULT_TABLE, FORMATS, Request, checked, render
from kernelscope.cli.options import counters, gpus, samples, selection, with_counters
from kernelscope.cli.output import emit
from kernelscope.cli.process import keep_freed_memory
from kernelscope.cli.progress import progress

if TYPE_CHECKING:
    from kernelscope.metrics.analysis import Analysis


def _tables(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from kernelscope.metrics.analysis import TABLES  # noqa: PLC0415 - for the shell only

    return [each.name for each in TABLES if each.name.startswith(incomplete)]


@click.command("analyze")
@click.argument("file", metavar="FILE", type=click.Path())
@selection
@samples
@gpus
@click.option(
    "--communication",
    multiple=True,
    metavar="PATTERN",
    help="Kernels in whose name this regular expression is found communicate between GPUs, too; "
    "all_reduce=PATTERN says what they do. May be repeated.",
)
@counters
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Rows of each list in text and markdown; 0 shows all. Data formats are never cut.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What to write: a report for people, everything for scripts, or one table.",
)
@click.option(
    "--table",
    metavar="NAME",
    shell_complete=_tables,
    help=f"The table that csv and markdown write; {DEFAULT_TABLE} by default.",
)
@click.option(
    "--output",
    "-o",
    metavar="PATH",
    type=click.Path(),
    help="Write to this file; csv also to a folder, one file per table.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace an SQLite database, and the metadata beside it, that --output names.",
)
@click.option("--strict", is_flag=True, help="Exit with code 1 if a check fails.")
def command(  # noqa: PLR0913 - click passes an argument per option
    *,
    file: str,
    format_name: str,
    table: str | None,
    output: str | None,
    top: int,
    force: bool,
    strict: bool,
    **chosen: Any,
) -> int:
    """Say where the time of a trace went.

    The report: what was captured, where device time goes, what to mend first and what that can
    save, why the GPU stands still, CPU and GPU beside each other, iterations and ranges, top
    kernels, copies, communication, CUDA calls, launches, streams, the work that was counted, and
    whether the figures can be trusted.

    FILE is a trace: an SQLite export of Nsight Systems, or its .nsys-rep report where nsys is
    installed, or a database of nvprof.

    Names in CSV are data, as the trace holds them: a cell may begin with =, which a spreadsheet
    takes for a formula.

    \b
    Examples:
      kernelscope analyze trace.sqlite
      kernelscope analyze trace.sqlite --between 1.5s,2s --device 0
      kernelscope analyze trace.sqlite --only steady --batch-size 64
      kernelscope analyze trace.sqlite --communication 'all_reduce=my_ring_kernel'
      kernelscope analyze trace.sqlite --counters report.ncu-rep
      kernelscope analyze trace.sqlite --format json --output trace.json
      kernelscope analyze trace.sqlite --format csv --output tables/
    """  # noqa: D301 - click wants the control character
    request = Request(format_name, output, table, top, force)
    target = checked(request, file, chosen["counters"])
    if chosen["gpu"] is not None:
        from kernelscope.device import find_device  # noqa: PLC0415 - not for --help

        find_device(chosen["gpu"])  # an unknown name is refused before the work begins
    keep_freed_memory()
    with progress(3) as step:
        step(f"Reading {os.path.basename(file)}")
        from kernelscope.metrics.analysis import analyze  # noqa: PLC0415 - not for --help
        from kernelscope.parsers import read  # noqa: PLC0415

        trace = read(file)
        chosen = with_counters(chosen)
        step("Computing")
        result = analyze(trace, **chosen)
        step("Writing")
        text = render(result, request, target)
    if text is not None:
        emit(text, target)
    return _verdict(result) if strict else 0


def _verdict(result: Analysis) -> int:
    if result.ok:
        return 0
    failed = sum(not ok for ok in result.tables["checks"]["ok"])
    click.echo(f"--strict: {failed} of {len(result.tables['checks'])} checks failed.", err=True)
    return 1
